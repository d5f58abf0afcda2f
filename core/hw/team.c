/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of threads: see topo.h. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/machine.h"
#include "core/hw/topo.h"

#define SPINS_BEFORE_SLEEP 20000 /* about 50 us: longer than the work between two samples */
#define SPINS_BEFORE_YIELD 20000

struct member {
    struct team *team;
    unsigned number, cpu;
    int bind_error;
    pthread_t thread;
    uint64_t begin_ns, end_ns;
    char pad[64]; /* members do not share a cache line */
};

struct team {
    const struct topo *topo;
    unsigned n;
    team_fn *fn;
    void *arg;
    bool leave;
    _Atomic unsigned generation; /* one more for each run */
    _Atomic unsigned ready, done;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct member members[];
};

static void wait_until(_Atomic unsigned *count, unsigned value)
{
    for (unsigned spins = 0; atomic_load_explicit(count, memory_order_acquire) != value; spins++) {
        if (spins < SPINS_BEFORE_YIELD)
            cpu_pause();
        else
            sched_yield(); /* more threads than CPUs: let them come */
    }
}

static void take_part(struct team *t, struct member *m)
{
    atomic_fetch_add(&t->ready, 1);
    wait_until(&t->ready, t->n);
    m->begin_ns = clock_now_ns();
    t->fn(t->arg, m->number, t->n);
    m->end_ns = clock_now_ns();
    atomic_fetch_add(&t->done, 1);
}

static unsigned wait_for_next(struct team *t, unsigned seen)
{
    for (unsigned spins = 0; spins < SPINS_BEFORE_SLEEP; spins++) {
        unsigned now = atomic_load_explicit(&t->generation, memory_order_acquire);
        if (now != seen)
            return now;
        cpu_pause();
    }
    pthread_mutex_lock(&t->lock);
    while (atomic_load(&t->generation) == seen)
        pthread_cond_wait(&t->wake, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return atomic_load(&t->generation);
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    struct team *t = m->team;

    m->bind_error = topo_bind_self(t->topo, m->cpu);
    atomic_fetch_add(&t->ready, 1);
    for (unsigned seen = 0;;) {
        seen = wait_for_next(t, seen);
        if (t->leave)
            return NULL;
        take_part(t, m);
    }
}

static void next_generation(struct team *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->generation, 1);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

static void send_home(struct team *t, unsigned started)
{
    t->leave = true;
    next_generation(t);
    for (unsigned i = 1; i < started; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

int team_open(struct team **team, const struct topo *topo, const unsigned *cpus, unsigned n)
{
    unsigned started = 1;

    if (!n)
        return -EINVAL;
    struct team *t = xcalloc(1, sizeof(*t) + n * sizeof(t->members[0]));
    t->topo = topo;
    t->n = n;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    for (unsigned i = 0; i < n; i++)
        t->members[i] = (struct member){.team = t, .number = i, .cpu = cpus[i]};
    int err = topo_bind_self(topo, cpus[0]);
    for (; !err && started < n; started += err ? 0 : 1)
        err = -pthread_create(&t->members[started].thread, NULL, member_main, &t->members[started]);
    if (!err) {
        wait_until(&t->ready, n - 1); /* all have tried to bind themselves */
        for (unsigned i = 1; i < n && !err; i++)
            err = t->members[i].bind_error;
    }
    if (err) {
        send_home(t, started);
        return err;
    }
    *team = t;
    return 0;
}

void team_close(struct team *team)
{
    if (team)
        send_home(team, team->n);
}

unsigned team_size(const struct team *team)
{
    return team->n;
}

void team_run(struct team *t, team_fn *fn, void *arg, uint64_t *ns, uint64_t *each_ns)
{
    t->fn = fn;
    t->arg = arg;
    atomic_store(&t->ready, 0);
    atomic_store(&t->done, 0);
    next_generation(t);
    take_part(t, &t->members[0]);
    wait_until(&t->done, t->n);
    uint64_t begin = UINT64_MAX, end = 0;
    for (unsigned i = 0; i < t->n; i++) {
        const struct member *m = &t->members[i];
        begin = m->begin_ns < begin ? m->begin_ns : begin;
        end = m->end_ns > end ? m->end_ns : end;
        if (each_ns)
            each_ns[i] = m->end_ns - m->begin_ns;
    }
    *ns = end - begin;
}

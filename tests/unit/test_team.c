/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: every thread runs once, at the same time as the others, on the CPU it was given; the time
 * of a run covers the slowest. */
#include <sched.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "core/hw/topo.h"
#include "tests/unit/unit.h"

#define THREADS_MAX 8

struct machine {
    struct topo *topo;
    cpu_set_t before; /* the caller's affinity, put back after each test: a team binds its caller */
    unsigned cpus[THREADS_MAX]; /* usable ones, over again where there are fewer */
    unsigned n_cpus;
};

static int open_machine(void **state)
{
    struct machine *m = calloc(1, sizeof(*m));

    if (!m || sched_getaffinity(0, sizeof(m->before), &m->before) || topo_open(&m->topo))
        return -1;
    m->n_cpus = topo_cpus(m->topo) < THREADS_MAX ? topo_cpus(m->topo) : THREADS_MAX;
    if (topo_spread(m->topo, -1, m->n_cpus, m->cpus))
        return -1;
    for (unsigned i = m->n_cpus; i < THREADS_MAX; i++)
        m->cpus[i] = m->cpus[i % m->n_cpus];
    *state = m;
    return 0;
}

static int close_machine(void **state)
{
    struct machine *m = *state;
    int err = sched_setaffinity(0, sizeof(m->before), &m->before);

    topo_close(m->topo);
    free(m);
    return err;
}

struct record {
    _Atomic unsigned runs[THREADS_MAX], here;
    cpu_set_t allowed[THREADS_MAX];
    unsigned threads[THREADS_MAX];
};

static void write_down(void *arg, unsigned thread, unsigned threads)
{
    struct record *r = arg;

    atomic_fetch_add(&r->runs[thread], 1);
    r->threads[thread] = threads;
    sched_getaffinity(0, sizeof(r->allowed[thread]), &r->allowed[thread]);
    atomic_fetch_add(&r->here, 1);
    while (atomic_load(&r->here) < threads)
        sched_yield();
}

/* Of threads, on a CPU each or sharing some; they wake though they fell asleep, and all are there at the same time. */
static void check_team(const struct machine *m, unsigned n, unsigned runs)
{
    struct record *r = calloc(1, sizeof(*r));
    struct team *team;

    assert_int_equal(team_open(&team, m->topo, m->cpus, n), 0);
    assert_int_equal(team_size(team), n);
    for (unsigned i = 0; i < runs; i++) {
        uint64_t ns = 0;
        if (i % 10 == 1)
            usleep(20000); /* longer than they spin */
        r->here = 0;
        team_run(team, write_down, r, &ns, NULL);
        for (unsigned t = 0; t < n; t++)
            assert_int_equal(r->runs[t], i + 1); /* all are back when the run is */
        assert_true(ns > 0);
    }
    for (unsigned t = 0; t < n; t++) {
        assert_int_equal(r->threads[t], n);
        assert_int_equal(CPU_COUNT(&r->allowed[t]), 1);
        assert_true(CPU_ISSET(m->cpus[t], &r->allowed[t]));
    }
    team_close(team);
    free(r);
}

TEST_WITH(test_every_thread_runs_once_where_it_belongs, open_machine, close_machine)
{
    check_team(*state, 1, 50);
    check_team(*state, 2, 50);
    check_team(*state, 3, 20);
    check_team(*state, THREADS_MAX, 5); /* more than this machine has CPUs, perhaps */
}

static void sleep_by_number(void *arg, unsigned thread, unsigned threads)
{
    const unsigned *sleep_ms = arg;

    (void)threads;
    usleep(sleep_ms[thread] * 1000);
}

/* From the first start to the last end, and nothing of before or after; each thread has its own time. */
TEST_WITH(test_time_covers_the_slowest, open_machine, close_machine)
{
    static const unsigned naps[][3] = {{1, 2, 30}, {30, 2, 1}, {2, 30, 1}};
    const struct machine *m = *state;
    struct team *team;

    assert_int_equal(team_open(&team, m->topo, m->cpus, 3), 0);
    for (size_t i = 0; i < 3; i++) {
        bool own = false;
        for (unsigned go = 0; go < 50 && !own;
             go++) { /* other work may keep a short sleeper waiting */
            uint64_t ns = 0, each[3] = {0}, begin_ns = clock_now_ns();
            team_run(team, sleep_by_number, (void *)naps[i], &ns, each);
            assert_true(ns <= clock_now_ns() - begin_ns);
            own = true;
            for (unsigned t = 0; t < 3; t++) {
                assert_true(each[t] >= naps[i][t] * UINT64_C(1000000) && ns >= each[t]);
                own &= naps[i][t] == 30 || each[t] < 30000000;
            }
        }
        assert_true(own);
    }
    team_close(team);
}

TEST_WITH(test_errors, open_machine, close_machine)
{
    const struct machine *m = *state;
    struct team *team = NULL;
    unsigned first_bad[] = {1000000, m->cpus[0]};
    unsigned later_bad[] = {m->cpus[0], m->cpus[0], 1000000, m->cpus[0]};

    assert_int_equal(team_open(&team, m->topo, m->cpus, 0), -EINVAL);
    assert_true(team_open(&team, m->topo, first_bad, 2) < 0);
    assert_true(team_open(&team, m->topo, later_bad, 4) < 0);
    assert_null(team);
    team_close(NULL);
}

/* Of threads that wait for one another for ever. */
static int set_alarm(void **state)
{
    (void)state;
    alarm(240);
    return 0;
}
TESTS_WITH(set_alarm, NULL);

/* SPDX-License-Identifier: Apache-2.0 */
/* Asking many hosts at once: hosts_ask() of launcher.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "harness/hosts/agent.h"
#include "harness/hosts/end.h"
#include "harness/hosts/launcher.h"

#define AT_ONCE       32 /* connections */
#define JOBS_AT_ONCE  4  /* of mpirun or srun */
#define SLICE_MS      20
#define STOP_GRACE_NS 1000000000ull

/* A host that is being asked. */
struct asking {
    struct host *host;
    struct argv words; /* of its order */
    struct hosts_order order;
    char agent[4096];
    json_t *begin, *end;
    double begin_s, end_s;
    uint64_t since_ns;
    bool done;
    bool again; /* its job ended without an answer: to be asked once more, by itself */
};

struct batch {
    struct hosts_run *run;
    hosts_take_fn *take;
    void *arg;
    struct end ends[AT_ONCE];
    struct asking asking[AT_ONCE];
    unsigned n;
};

/* The clock that people set, which is what is compared. */
static double wall_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int start(const struct batch *b, struct asking *a, struct end *e)
{
    *e = (struct end){END_NONE, .name = a->host->name, .silent = true, .talks = true};
    a->order.run = b->run;
    a->order.host = a->host;
    a->order.agent = a->agent;
    a->order.n_ranks = 1;
    a->order.program = a->order.task == TASK_ASK ? a->words.all[0] : NULL;
    a->order.arguments = (const char *const *)a->words.all + (a->order.task == TASK_ASK);
    host_agent_path(b->run, a->host, a->agent, sizeof(a->agent));
    b->run->launcher->command(&a->order, &e->command);
    a->begin_s = wall_s();
    a->since_ns = clock_now_ns();
    a->done = a->again = false;
    return end_start(e);
}

/* Why there is no answer. */
static void say_why(const struct batch *b, const struct asking *a, const struct end *e, char *text,
                    size_t len)
{
    char error[200], why[HOST_VERSION_MAX], calls[HOST_VERSION_MAX];

    message_line(a->begin, "name", calls, sizeof(calls));
    if (*message_line(a->begin, "error", error, sizeof(error)))
        snprintf(text, len, "on '%s': %s", e->name, error);
    else if (*message_line(a->begin, "why", why, sizeof(why)))
        host_say_missing(a->order.program, e->name, calls, why, text, len);
    else if (end_is_over(e))
        host_say_unreached(b->run, e, a->agent, text, len);
    else
        host_say_mute(b->run, e, text, len);
}

/* Is the host done? `alone`: no other is asked meanwhile. */
static void look(const struct batch *b, struct asking *a, struct end *e, bool alone)
{
    struct host_answer answer = {.begin_s = a->begin_s};
    char why[900];
    json_t *m;

    while (!a->done && !a->end && (m = end_answer(e)) != NULL) {
        if (!a->begin)
            a->end_s = wall_s();
        *(a->begin ? &a->end : &a->begin) = m;
    }
    bool late = clock_now_ns() >= a->since_ns + b->run->wait_ns;

    if (a->done || (!a->end && !late && !end_is_over(e)))
        return;
    a->done = true;
    a->again = !a->begin && !late && !alone && b->run->launcher->ranks;
    if (a->again)
        return;
    answer.begin = a->begin;
    answer.end = a->end;
    answer.end_s = a->end_s;
    answer.why = a->end ? NULL : why;
    if (!a->end)
        say_why(b, a, e, why, sizeof(why));
    b->take(a->host, &answer, b->arg);
}

/* Until all of them are done. 0 or -errno. */
static int attend(const struct batch *b, struct asking *asking, struct end *ends, unsigned n)
{
    int err = 0;

    for (unsigned left = n; !err && left;) {
        err = ends_attend(ends, n, SLICE_MS);
        left = 0;
        for (unsigned i = 0; !err && i < n; i++) {
            look(b, &asking[i], &ends[i], n == 1);
            left += !asking[i].done;
        }
    }
    ends_stop(ends, n, STOP_GRACE_NS);
    return err;
}

/* Several mpirun on one machine share a folder of Open MPI. One that ends removes it while another
 * enters it ("A call to mkdir was unable to create the desired directory"). A host that failed
 * beside others is asked once more, alone. */
static int ask_batch(struct batch *b, int err)
{
    if (err)
        ends_stop(b->ends, b->n, 0);
    else
        err = attend(b, b->asking, b->ends, b->n);
    for (unsigned i = 0; i < b->n; i++) {
        struct asking *a = &b->asking[i];

        if (!err && a->again && !(err = start(b, a, &b->ends[i])))
            err = attend(b, a, &b->ends[i], 1);
        argv_release(&a->words);
        json_decref(a->begin);
        json_decref(a->end);
    }
    b->n = 0;
    return err;
}

int hosts_ask(struct hosts_run *run, enum hosts_task task, hosts_order_fn *order,
              hosts_take_fn *take, void *arg)
{
    struct batch *b = xcalloc(1, sizeof(*b));
    unsigned at_once = run->launcher->ranks ? JOBS_AT_ONCE : AT_ONCE;
    int err = 0;

    b->run = run;
    b->take = take;
    b->arg = arg;
    ends_allow(at_once);
    for (size_t i = 0; !err && i < run->hosts.n; i++) {
        struct asking *a = &b->asking[b->n];

        *a = (struct asking){.host = &run->hosts.all[i], .order = {.task = task}};
        order(a->host, &a->words, arg);
        if (!a->words.n)
            continue;
        err = start(b, a, &b->ends[b->n++]);
        if (!err && b->n == at_once)
            err = ask_batch(b, 0);
    }
    err = ask_batch(b, err);
    free(b);
    return err;
}

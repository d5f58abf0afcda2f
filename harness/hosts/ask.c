/* SPDX-License-Identifier: Apache-2.0 */
/* What all hosts are asked, or do, at once: hosts_ask() and hosts_sweep() of launcher.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "harness/hosts/end.h"
#include "harness/hosts/launcher.h"

#define AT_ONCE       32 /* connections */
#define JOBS_AT_ONCE  4  /* of mpirun or srun */
#define SLICE_MS      20
#define STOP_GRACE_NS 1000000000ull
#define SWEEP_NS      3000000000ull

struct batch {
    const struct hosts_run *run;
    const char *program;
    const char *const *arguments;
    hosts_take_fn *take;
    void *arg;
    char token[HOSTS_TOKEN_SIZE];
    struct end ends[AT_ONCE];
    const struct host *hosts[AT_ONCE];
    bool done[AT_ONCE];
    unsigned n;
};

static int start(struct batch *b, const struct host *h, enum hosts_task task)
{
    struct end *e = &b->ends[b->n];
    char path[4096];

    host_program_path(b->run, h, b->program, path, sizeof(path));
    *e = (struct end){.name = h->name, .silent = true, .in = -1, .out = -1, .err = -1};
    b->run->launcher->command(&(struct hosts_order){.run = b->run,
                                                    .task = task,
                                                    .host = h,
                                                    .token = b->token,
                                                    .program = path,
                                                    .arguments = b->arguments},
                              &e->command);
    b->hosts[b->n] = h;
    b->done[b->n++] = false;
    return end_start(e);
}

static bool all_done(const struct batch *b)
{
    for (unsigned i = 0; i < b->n; i++)
        if (!b->done[i])
            return false;
    return true;
}

static int ask_batch(struct batch *b)
{
    uint64_t until_ns = clock_now_ns() + b->run->wait_ns;
    int err = 0;

    while (!err && !all_done(b)) {
        err = ends_attend(b->ends, b->n, SLICE_MS);
        for (unsigned i = 0; !err && i < b->n; i++) {
            const struct end *e = &b->ends[i];
            const char *text = e->output.text ? e->output.text : "";
            struct stream_parts parts;

            if (!b->done[i]) {
                b->done[i] = true;
                if (stream_is_whole(text, e->output.size, b->token) &&
                    !stream_parts(text, e->output.size, b->token, &parts))
                    b->take(b->hosts[i], parts.rows, parts.n_rows, NULL, b->arg);
                else if (clock_now_ns() >= until_ns || end_is_over(e)) {
                    struct stream_hello missing =
                        stream_hello(e->output.text ? e->output.text : "", "missing", b->token);
                    char path[4096], why[900];

                    host_program_path(b->run, b->hosts[i], b->program, path, sizeof(path));
                    if (missing.there)
                        host_say_missing(path, b->hosts[i]->name, &missing, why, sizeof(why));
                    else if (end_is_over(e))
                        host_say_unreached(b->run, e, why, sizeof(why));
                    else
                        host_say_mute(b->run, e, why, sizeof(why));
                    b->take(b->hosts[i], NULL, 0, why, b->arg);
                } else
                    b->done[i] = false;
            }
        }
    }
    ends_stop(b->ends, b->n, STOP_GRACE_NS);
    b->n = 0;
    return err;
}

int hosts_ask(const struct hosts_run *run, const char *program, const char *const *arguments,
              hosts_take_fn *take, void *arg)
{
    struct batch *b = xcalloc(1, sizeof(*b));
    unsigned at_once = run->launcher->ranks ? JOBS_AT_ONCE : AT_ONCE;
    int err = host_token(b->token);

    b->run = run;
    b->program = program;
    b->arguments = arguments;
    b->take = take;
    b->arg = arg;
    ends_allow(at_once);
    for (size_t i = 0; !err && i < run->hosts.n; i++) {
        err = start(b, &run->hosts.all[i], TASK_ASK);
        if (!err && b->n == at_once)
            err = ask_batch(b);
    }
    if (!err)
        err = ask_batch(b);
    else
        ends_stop(b->ends, b->n, 0);
    free(b);
    return err;
}

void hosts_sweep(const struct hosts_run *run)
{
    struct batch *b = xcalloc(1, sizeof(*b));
    unsigned at_once = run->launcher->ranks ? JOBS_AT_ONCE : AT_ONCE;

    for (size_t i = 0; i < run->hosts.n; i++) {
        b->run = run;
        b->program = "";
        if (!run->hosts.all[i].problem)
            start(b, &run->hosts.all[i], TASK_SWEEP);
        if (b->n == at_once || i + 1 == run->hosts.n) {
            ends_wait(b->ends, b->n, SWEEP_NS);
            ends_stop(b->ends, b->n, 0);
            b->n = 0;
        }
    }
    free(b);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Launching one case: start the benchmark, read its rows, fill in what only the harness knows, make
 * a row where the benchmark made none. */
#ifndef PLUMB_HARNESS_LAUNCH_H
#define PLUMB_HARNESS_LAUNCH_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/child.h"
#include "harness/hosts/hosts.h"
#include "harness/plan/bench_info.h"
#include "harness/plan/plan.h"
#include "harness/run/kept.h"
#include "harness/store/store.h"

struct launch_context {
    const struct bench_list *benches;
    const char *run; /* the run's name */
    uint64_t seed;
    double cores;         /* of the whole machine; 0: not known */
    const json_t *limits; /* of this machine, see limits_row.h; NULL: none */
    const struct hosts_run
        *hosts;        /* of launches between hosts; without a launcher: there are none */
    struct kept *kept; /* what earlier launches of this run chose; learns what this one does */
    const volatile int *cancel;
    void (*tick)(void *arg);
    void *tick_arg;
};

/* What came of it: everything that store_commit needs. */
struct launched {
    struct launch_record record;
    bool cancelled; /* to be forgotten: the launch stays to do */
    bool wrong;     /* a row says wrong data */
    bool lost;      /* a rank was lost that none of it needed: see summary */
    bool known;     /* it failed for a reason already printed: one of its hosts cannot take part */
    char summary[256]; /* one line for the log of a failure: "memory --op triad: killed by signal
                          11" */
    uint64_t child_ns; /* the time that the benchmark itself took */
    char *header, *stored_header, *rows, *samples, *log;
    struct child_result child;
};

/* 0 or -errno when nothing could be launched at all (memory, processes). Release *out in any case.
 */
int launch_run(const struct launch_context *c, const struct launch *l, struct launched *out);
void launched_release(struct launched *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark `step` is made of: its parameters and its rows. The plan of a step: plan.h; who
 * runs it: run.h. */
#ifndef PLUMB_BENCHES_STEP_WORK_H
#define PLUMB_BENCHES_STEP_WORK_H

#include <stdint.h>
#include <stdio.h>

#include "benches/step/plan.h"
#include "core/bench/bench.h"
#include "core/session/links.h"
#include "core/session/ranks.h"

struct step_params {
    struct ranks_params group;
    struct way_params way;
    const char *model, *raw;
    uint64_t ranks, batch, sequence, bucket, zero, prefetch, tp, pp, ep, micro, compute_ns;
    int dtype, overlap, order, compute, update, inject;
    double tflops, memory_rate, slow;
};

#define STEP_SAMPLES 2048

/* The shares of a step, in percent of its time, by sample since the warm-up. */
struct step_shares {
    double step_ns[STEP_SAMPLES], exposed[STEP_SAMPLES], bubble[STEP_SAMPLES];
    double alone_ns[STEP_SAMPLES], slowdown[STEP_SAMPLES]; /* of real compute */
    double update_ns[STEP_SAMPLES];                        /* of the rank that takes longest */
    size_t n;
};

struct step_work {      /* pt->bench_state: outlives the points */
    struct ranks ranks; /* first: ranks_evidence() */
    struct step_spec spec;
    struct step_layer *layers;
    unsigned n, members[WORLD_RANKS_MAX];
    double passes_ns; /* both passes of the whole model on one rank, where that is stated */
    double update_ns, update_bytes; /* of the rank that has most: stated; moved */
    double longest_ns;              /* compute alone of the rank that has most */
    double least_ns; /* the shortest step with that compute: a pipeline's is longer */
    bool begun;
    uint64_t samples; /* since the warm-up */
    /* How long compute of each rank waited in a step, ms: by rank, then by sample as in shares. NULL: not
     * kept */
    double *waits_ms;
    struct step_shares shares;
    const char *backend;
    FILE *raw;    /* NULL: none is kept */
    unsigned job; /* of the sweep: counted from 1, in the order in which they are measured */
    char limit_source[LINKS_SOURCE_BYTES + 128];
};

/* A file of what the figures are made of, for whoever would compute them again: ns of each rank in each sample, and the bytes that
 * each sent in all samples. "": none. 0 or -errno. */
int raw_begin(struct step_work *w, const char *path);
int raw_end(struct step_work *w); /* 0; -EIO: it is not complete */
/* One sample: the times of all ranks, and how long the compute just took alone; 0: it is stated. */
void values_count(struct step_work *w, const struct collective_times *times, uint64_t slowest,
                  uint64_t alone_ns);
/* The shortest compute of the slowest rank that was seen, alone or in a step: what runs alone may be disturbed, too. Of
 * a pipeline's stages the slowest one's: how long the others hold it up is not known. */
double values_compute_ns(const struct step_shares *s);
/* Communication makes no compute faster. So where slowdowns are below 0, beyond their interval, something else slowed
 * down what ran alone, and nothing is known of them. */
bool values_was_disturbed(const double *slowdown, size_t n);
/* What a step must move over the links of nodes, whatever the algorithms: bytes each way, and of all
 * nodes together. */
struct step_traffic {
    double out[WORLD_RANKS_MAX], in[WORLD_RANKS_MAX], total;
};
/* Ranks are those of the world. `on_the_way`: switches add. Errors as of step_plan_make(). */
int values_traffic(const struct step_spec *spec, const struct step_layer *layers,
                   const struct world *world, bool on_the_way, struct step_traffic *t);
/* How long the nodes' links take for that at least: gbps[node], GB/s; NAN: not known, then it bounds
 * nothing. *named: the node whose own links take longest. */
double values_network_ns(const struct step_traffic *t, const double *gbps, unsigned nodes,
                         unsigned *named);
/* Limit, figures and columns: after session_end(). */
void values_finish(struct point *pt, struct step_work *w);

#endif

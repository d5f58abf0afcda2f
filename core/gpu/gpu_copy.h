/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark copy does with a GPU at one end or both: one point. gpu_copy.c has the hooks; the
 * others what is asked before (rules), what is timed (run), where the host's side lies (numa), several
 * GPUs at once (together) and chains of loads (load).
 */
#ifndef PLUMB_CORE_GPU_GPU_COPY_H
#define PLUMB_CORE_GPU_GPU_COPY_H

#include "core/device/copy_work.h"
#include "core/gpu/gpu_copy_lane.h"

#define GPU_COPY_GPUS_MAX (GPU_COPY_LANES_MAX / 2)
#define GPU_COPY_RATIOS   64

/* The last so many of something; their median is its level. */
struct gpu_copy_level {
    double last[GPU_COPY_RATIOS];
    uint64_t n;
};
void gpu_copy_level_add(struct gpu_copy_level *l, double value);
double gpu_copy_level_median(const struct gpu_copy_level *l); /* NAN: there is none yet */

struct gpu_copy {
    const struct copy_params *params;
    enum copy_engine engine; /* neither is auto */
    enum copy_memory memory;
    struct place ends[2];
    struct gpu *gpu[2]; /* of the ends; NULL: the host's */
    int cpu;            /* that calls; -1: not bound */

    /* lanes[g * each + d]: direction d with GPU g, 0 being the point's own. */
    struct gpu_copy_lane lanes[GPU_COPY_LANES_MAX];
    struct gpu_copy_lane *all[GPU_COPY_LANES_MAX]; /* pointers to them, in the same order */
    unsigned each, gpus;                           /* directions; GPUs that copy at once */
    struct gpu *others[GPU_COPY_GPUS_MAX];         /* others[g] is GPU number g, from 1 */
    bool peers_enabled;

    int (*run)(struct gpu_copy *c, uint64_t inner, uint64_t *ns); /* one sample */
    uint64_t inner;                                               /* of the last sample */
    struct gpu_copy_pace alone, beside; /* this GPU's lanes; with those of the other GPUs */
    struct gpu_copy_level time_ns;      /* of one copy forward, of this GPU alone */
    struct gpu_copy_level overlap;  /* of all lanes at once: the shortest time over the longest */
    struct gpu_copy_level together; /* this GPU's rate with others, of its rate alone */

    struct gpu_copy_chain *chain; /* --metric load-latency */
};

/* The GPU that the point is about: it runs the copies forward. */
struct gpu *gpu_copy_main(const struct gpu_copy *c);
bool gpu_copy_peers(const struct gpu_copy *c);   /* both ends are GPUs, two of them */
bool gpu_copy_local(const struct gpu_copy *c);   /* both ends are one GPU */
int gpu_copy_host_end(const struct gpu_copy *c); /* 0, 1; -1: none is the host's */

/* point_gpu() for a GPU whose errors will be this point's. */
int gpu_copy_open_gpu(struct point *pt, unsigned index, struct gpu **gpu);
/* Adds what the GPU's driver said of a failure to the reason; returns err. */
int gpu_copy_failed(struct point *pt, const struct gpu_copy *c, int err);

/* Run. How copies are made, and how a sample is taken: sets c->run, the column `clock`, and what the
 * sampler must know of it. */
enum gpu_copy_how gpu_copy_how_of(const struct gpu_copy *c);
void gpu_copy_choose_run(struct point *pt, struct gpu_copy *c);

/* Rules. Chooses engine and memory, and shows what there is between these ends. */
void gpu_copy_resolve(struct point *pt, struct gpu_copy *c);
/* The GPUs are open. What does not go together, or not on them: -EOPNOTSUPP with the reason; fills the
 * column `path`. */
int gpu_copy_refuse(struct point *pt, struct gpu_copy *c);
int gpu_copy_fits(struct point *pt, const struct gpu_copy *c); /* the memory is there */

/* Numa. Binds the caller to a CPU of the host's end, or near to the GPU; fills the column `numa`. */
int gpu_copy_bind(struct point *pt, struct gpu_copy *c);
/* The node that the host memory of GPU number g is bound to (0: the point's own GPU); -1 where there is one node. */
int gpu_copy_node(struct point *pt, const struct gpu_copy *c, unsigned g);
/* For the time of allocation: host memory that the driver takes comes from that node, as far as the
 * system lets a process say so. */
int gpu_copy_node_begin(struct point *pt, const struct gpu_copy *c, unsigned g);
void gpu_copy_node_end(struct point *pt, const struct gpu_copy *c, unsigned g);
/* Remarks: pages on another node than asked for; this node against those measured before. */
void gpu_copy_node_verdict(struct point *pt, const struct gpu_copy *c);

/* Together. Opens the other GPUs of --together. */
int gpu_copy_open_others(struct point *pt, struct gpu_copy *c);
void gpu_copy_together_series(struct point *pt, const struct gpu_copy *c);
int gpu_copy_run_together(struct gpu_copy *c, uint64_t inner, uint64_t *ns);
/* The remark on shared links; runs pairs to find who shares one. */
int gpu_copy_together_verdict(struct point *pt, struct gpu_copy *c);

/* Load. */
int gpu_copy_chain_open(struct point *pt, struct gpu_copy *c);
int gpu_copy_run_chain(struct gpu_copy *c, uint64_t inner, uint64_t *ns);
int gpu_copy_chain_check(struct point *pt, struct gpu_copy *c);
void gpu_copy_chain_close(struct gpu_copy *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory at one end of a GPU's copies: of the device, or of the host in the kinds that a driver
 * tells apart. Filled with words that are a function of their position (gpu_kernels.h), so that any
 * part of what arrived can be checked without keeping a second copy of it.
 *
 * A lane: copies of one message by one GPU, one after the other, from memory to memory. Several
 * lanes run at once from a common start.
 *
 * What the benchmark copy does with a GPU at one end or both, one point: gpu_copy.c has the hooks,
 * gpu_copy_rules.c what is asked before, gpu_copy_lane.c what is timed (copies and chains of loads),
 * gpu_copy_memory.c the buffers and the node that they are on, gpu_copy_peer.c a GPU of another
 * process.
 */
#ifndef PLUMB_BENCHES_COPY_GPU_COPY_H
#define PLUMB_BENCHES_COPY_GPU_COPY_H

#include "benches/copy/copy_work.h"
#include "benches/copy/remote.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_chain.h"
#include "core/hw/host_buffer.h"

#define COPY_MEMORY_RIGHT SIZE_MAX

struct copy_memory_config {
    struct gpu *gpu; /* whose memory it is; of host memory: the GPU that it is pinned for */
    enum copy_memory kind;
    bool on_host;
    int node; /* of host memory; -1: any */
    size_t bytes;
    bool fabric;     /* of the device: by a fabric handle */
    unsigned beside; /* that so many are looked at in a check, each the less; 0 and 1: alone */
    void *lent;      /* of the device: memory that is there already, and is not freed */
    struct copy_remote *remote;  /* of another process, reached from `gpu`; NULL: of this one */
    unsigned remote_memory;      /* its number there */
    const unsigned char *handle; /* of remote memory */
};

struct gpu_copy_memory { /* zeroed: not allocated */
    struct copy_memory_config config;
    void *at;
    size_t rounded;            /* to whole words of the device */
    struct host_buffer buffer; /* where it is not the driver's own */
    bool pinned;
    struct gpu_stream *stream; /* gpu_aside_open()'s: for what is not timed */
};

/* Host memory comes from the node of the calling thread, or where it is not the driver's own from
 * config->node. 0 or -errno with *error; release in any case. */
int gpu_copy_memory_alloc(struct gpu_copy_memory *m, const struct topo *topo,
                          const struct copy_memory_config *config, char *error, size_t len);
void gpu_copy_memory_free(struct gpu_copy_memory *m);

/* The words of `seed`, written by the device, or by the host where it can; done
 * when these return. */
int gpu_copy_memory_fill(struct gpu_copy_memory *m, uint64_t seed, bool by_device);
int gpu_copy_memory_poison(struct gpu_copy_memory *m);
/* The offset of the first byte that is not of `seed`, or COPY_MEMORY_RIGHT. Looks at all of up to
 * 256 MiB, of more (and of memory that is slow to read) at windows from the first to the last byte.
 * by_device: fetched by a copy of the device's, which reads it where it then lies. */
int gpu_copy_memory_check(struct gpu_copy_memory *m, uint64_t seed, bool by_device,
                          size_t *wrong_at);
/* For tests: makes the byte in the middle wrong. */
int gpu_copy_memory_spoil(struct gpu_copy_memory *m);

#define GPU_COPY_LANES_MAX 64 /* all pairs of 8 GPUs */

enum gpu_copy_how {
    GPU_COPY_ENGINE,  /* the driver's copy */
    GPU_COPY_KERNEL,  /* of threads: copy16, or copy1 where the length asks for it */
    GPU_COPY_MIGRATE, /* managed pages moved by the driver: source and destination are one */
    GPU_COPY_FAULTS,  /* managed pages, called over by a kernel's faults on them */
    GPU_COPY_SPREAD,  /* of a kernel to an address that stands for memory of several GPUs */
};

/* Memory of the lane's GPU and of all others that one address of the lane's GPU stores to. */
struct gpu_copy_spread {
    struct gpu_multicast *group;
    unsigned n;
    struct gpu *gpus[GPU_COPY_LANES_MAX];
    struct gpu_copy_memory memory[GPU_COPY_LANES_MAX];
    void *all;
    unsigned wrong; /* number of the memory that was wrong in the last check */
};

struct gpu_copy_lane { /* zeroed: not open */
    struct gpu *gpu;   /* which runs the copies */
    enum gpu_copy_how how;
    struct gpu_timer timer;
    struct gpu_copy_memory src, dst; /* dst is not used where pages are moved, nor with: */
    struct gpu_copy_spread *spread;  /* NULL, or where the copies arrive */
    bool to_device;
    bool staged; /* through host memory by the driver, which may have to work for it: never held */
    size_t bytes;
    struct gpu_kernel *kernel;
    const char *kernel_name;
    unsigned grid, block;
};

/* Opens stream and events, and finds the kernel: `share` of the GPU's threads, 1 is all. src and
 * dst are allocated already, and freed by close. */
int gpu_copy_lane_open(struct gpu_copy_lane *l, unsigned share, struct gpu_watch *watch);
void gpu_copy_lane_close(struct gpu_copy_lane *l);

/* Data of `seed` at the source, poison at the destination; at the side that the
 * copies come from. */
int gpu_copy_lane_fill(struct gpu_copy_lane *l, uint64_t seed);
/* See gpu_copy_memory_check(): of what arrived, read from where it was to arrive. */
int gpu_copy_lane_check(struct gpu_copy_lane *l, uint64_t seed, size_t *wrong_at);

/* One copy, not timed. */
int gpu_copy_lane_once(struct gpu_copy_lane *l);

/* How lanes that run at once keep each other company: those that are slower make fewer copies, by
 * their times in the run before, so that all are at work from the start to the end. Zeroed: nothing
 * is known yet. One for each set of lanes. */
struct gpu_copy_pace {
    double each_ns[GPU_COPY_LANES_MAX]; /* of one copy */
    uint64_t count[GPU_COPY_LANES_MAX]; /* made in the last run */
    double overlap;                     /* in it: the shortest lane's time over the longest's */
};

/*
 * What is timed: `count` copies in the fastest lane.
 *
 * By events: all is queued first, then released (staged: it runs while it is queued). ns[i] is
 * lane i's own time by its GPU's events, *span_ns from the common start until the last lane is
 * done, by the first lane's GPU; both as if every lane had made `count` copies at its rate.
 * Lanes on other GPUs start when they hear of the first one's start, some us later. No more
 * than gpu_copy_most() copies.
 */
int gpu_copy_time_by_events(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                            struct gpu_copy_pace *pace, uint64_t *ns, uint64_t *span_ns);
/* Of so many lanes, and of so many that one GPU runs; 0: any number. */
uint64_t gpu_copy_most(unsigned lanes, unsigned on_one_gpu, bool staged);
/* Of the first n lanes of the run before, all on one GPU: the same span of them alone. */
int gpu_copy_span(struct gpu_copy_lane *const *lanes, unsigned n, uint64_t count,
                  const struct gpu_copy_pace *pace, uint64_t *span_ns);

/* One lane by the host's clock, from the first call until the host knows that all is there. */
int gpu_copy_time_by_host(struct gpu_copy_lane *l, uint64_t count, uint64_t *ns);
/* The same for managed pages, which are brought back before each copy, outside of the time. */
int gpu_copy_time_moving(struct gpu_copy_lane *l, uint64_t count, uint64_t *ns);

#define GPU_COPY_GROUPS_MAX GPU_COPY_LANES_MAX
#define GPU_COPY_RATIOS     64

/* The last so many of something; their median is its level. */
struct gpu_copy_level {
    double last[GPU_COPY_RATIOS];
    uint64_t n;
};
void gpu_copy_level_add(struct gpu_copy_level *l, double value);
double gpu_copy_level_median(const struct gpu_copy_level *l); /* NAN: there is none yet */

struct gpu_copy_peer {
    struct copy_remote *remote; /* the session's */
    struct copy_remote_memory memory;
    bool taken;
    double own_gbps;
    char own_domain[64], limit_source[2][160]; /* of one direction, and of both */
};

/* A GPU that copies from or to the host, or a pair of GPUs; several copy at once. */
struct gpu_copy_group {
    struct gpu *runner;  /* of its copies; of group 0 only where it is a pair: gpu_copy_main() */
    struct gpu *pair[2]; /* of two GPUs: source and destination */
};

struct gpu_copy_times {                 /* what the samples told */
    uint64_t inner;                     /* of the last one */
    struct gpu_copy_pace alone, beside; /* this GPU's lanes; with those of the other GPUs */
    struct gpu_copy_level overlap;  /* of all lanes at once: the shortest time over the longest */
    struct gpu_copy_level together; /* this GPU's rate with others, of its rate alone */
};

struct gpu_copy {
    const struct copy_params *params;
    enum copy_engine engine; /* neither is auto */
    enum copy_memory memory;
    struct place ends[2];
    struct gpu *gpu[2]; /* of the ends; NULL: the host's, or another process' */
    int cpu;            /* that calls; -1: not bound */

    /* lanes[g * each + d]: direction d of group g, 0 being the point's own. */
    struct gpu_copy_lane lanes[GPU_COPY_LANES_MAX];
    struct gpu_copy_lane *all[GPU_COPY_LANES_MAX]; /* pointers to them, in the same order */
    unsigned each, groups;                         /* directions; groups that copy at once */
    struct gpu_copy_group group[GPU_COPY_GROUPS_MAX];
    const char *end_address; /* of the one end of a pattern that only NVLinks leave, or "" */
    bool peers_enabled;
    struct gpu_copy_times times;

    struct gpu_chain *chain;        /* --metric load-latency */
    struct gpu_copy_spread *spread; /* --handle multicast */
    struct gpu_copy_peer *peer;     /* an end is another process' GPU */
};

/* The GPU that the point is about: it runs the copies forward. */
struct gpu *gpu_copy_main(const struct gpu_copy *c);
bool gpu_copy_peers(const struct gpu_copy *c); /* both ends are GPUs of this machine, two of them */
/* Each group is a pair of GPUs. */
bool gpu_copy_pattern(const struct gpu_copy *c);
/* Which GPU of two runs the copies from the first to the second. */
struct gpu *gpu_copy_runner(const struct gpu_copy *c, struct gpu *from, struct gpu *to);
bool gpu_copy_local(const struct gpu_copy *c);   /* both ends are one GPU */
int gpu_copy_host_end(const struct gpu_copy *c); /* 0, 1; -1: none is the host's */

/* point_gpu() for a GPU whose errors will be this point's. */
int gpu_copy_open_gpu(struct point *pt, unsigned index, struct gpu **gpu);
/* Adds what the GPU's driver said of a failure to the reason; returns err. */
int gpu_copy_failed(struct point *pt, const struct gpu_copy *c, int err);

/* Rules. Chooses engine and memory. */
void gpu_copy_resolve(struct point *pt, struct gpu_copy *c);
/* The GPUs are open. What does not go together, or not on them: -EOPNOTSUPP with the reason; fills the column `path`. */
int gpu_copy_refuse(struct point *pt, struct gpu_copy *c);
int gpu_copy_fits(struct point *pt, const struct gpu_copy *c); /* the memory is there */

/* Numa. Binds the caller to a CPU of the host's end, or near to the GPU; fills
 * the column `numa`. */
int gpu_copy_bind(struct point *pt, struct gpu_copy *c);
/* The node that the host memory of GPU number g is bound to (0: the point's own GPU); -1 where
 * there is one node. */
int gpu_copy_node(struct point *pt, const struct gpu_copy *c, unsigned g);
/* For the time of allocation: host memory that the driver takes comes from that node, as far as the
 * system lets a process say so. */
int gpu_copy_node_begin(struct point *pt, const struct gpu_copy *c, unsigned g);
void gpu_copy_node_end(struct point *pt, const struct gpu_copy *c, unsigned g);
/* Where the pages are, with a remark if that is another node than asked for. */
void gpu_copy_node_evidence(struct point *pt, const struct gpu_copy *c);

/* Together. Opens the other GPUs of --together, or the pairs of cuda:all. */
int gpu_copy_open_others(struct point *pt, struct gpu_copy *c);
void gpu_copy_together_series(struct point *pt, const struct gpu_copy *c);
int gpu_copy_run_together(struct gpu_copy *c, uint64_t inner, uint64_t *ns);
/* The remark on shared links; runs pairs to find who shares one. */
int gpu_copy_together_verdict(struct point *pt, struct gpu_copy *c);

/* Multicast. Opens all GPUs, the source first; in c->spread. */
int gpu_copy_spread_open(struct point *pt, struct gpu_copy *c);
int gpu_copy_spread_refuse(struct point *pt, struct gpu_copy *c);
/* The memory of all of them; copies of the lane go there. */
int gpu_copy_spread_alloc(struct point *pt, struct gpu_copy *c, struct gpu_copy_lane *l);
void gpu_copy_spread_close(struct gpu_copy *c);
int gpu_copy_spread_poison(struct gpu_copy_spread *s);
/* As gpu_copy_memory_check(), of the first that is wrong: s->wrong. */
int gpu_copy_spread_check(struct gpu_copy_spread *s, uint64_t seed, size_t *wrong_at);

/* Peer: an end that is another process' GPU, copy_peer_end(). */
/* What cannot be on this GPU: -EOPNOTSUPP with the reason; fills the columns. */
int gpu_copy_peer_refuse(struct point *pt, struct gpu_copy *c);
/* Meets the other process, once for all points, and has it take its memory: c->peer. */
int gpu_copy_peer_open(struct point *pt, struct gpu_copy *c);
/* Adds to the reason what the other process said last; returns err. */
int gpu_copy_peer_failed(struct point *pt, const struct gpu_copy *c, int err);
void gpu_copy_peer_evidence(struct point *pt, const struct gpu_copy *c);
void gpu_copy_peer_close(struct gpu_copy *c);
/* The fabric of a GPU, from the management library: data of all its NVLinks in one direction (NAN:
 * not told), and the name of its part of the fabric ("": not told). */
void gpu_copy_fabric_of(struct gpu *gpu, double *gbps, char *domain, size_t len);
/* " (NVML: the NVLink fabric is not ready: in progress)"; "" where there is nothing to say. Returns
 * text. */
#define GPU_FABRIC_TEXT 160
const char *gpu_copy_fabric_state(struct gpu *gpu, char *text, size_t len);

/* Load. */
int gpu_copy_chain_open(struct point *pt, struct gpu_copy *c);
int gpu_copy_run_chain(struct gpu_copy *c, uint64_t inner, uint64_t *ns);
int gpu_copy_chain_check(struct point *pt, struct gpu_copy *c);
void gpu_copy_chain_close(struct gpu_copy *c);

#endif

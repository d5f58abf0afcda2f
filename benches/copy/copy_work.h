/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the benchmark `copy` and the devices that it runs on share: its parameters, the names of
 * their values, what is kept from point to point, and the ends of a point.
 */
#ifndef PLUMB_BENCHES_COPY_COPY_WORK_H
#define PLUMB_BENCHES_COPY_COPY_WORK_H

#include "core/bench/bench.h"
#include "core/group/pair.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"

/* As source or destination of copies between GPUs: all others at once. */
#define COPY_ALL PLACE_GPU_PREFIX "all"
/* The same: a GPU of another process, which a pair has (pair.h), of the same number as the GPU at the
 * other end. */
#define COPY_PEER PLACE_GPU_PREFIX "peer"

/* Conditions on --source and --destination, and whatever `more` asks for: two GPUs; the host at one end
 * or both; all GPUs at one end. */
#define TWO_GPUS(more)                                                                             \
    "source=" PLACES_OF_GPUS " destination=" PLACES_OF_GPUS " source!=@destination" more           \
    " | source=" COPY_ALL " destination=" COPY_ALL more
#define AN_END(of, more) "source=" of more " | destination=" of more

/* memcpy is the host's, ce (copy engine) and sm (a kernel) a GPU's; auto: memcpy or ce, or sm where
 * it takes loads. */
enum copy_engine { COPY_ENGINE_AUTO, COPY_MEMCPY, COPY_CE, COPY_SM };
enum copy_direction { COPY_ONE_WAY, COPY_BOTH };
/* Of the host's side; auto: pageable, or pinned where a GPU is at the other end. */
enum copy_memory {
    COPY_MEMORY_AUTO,
    COPY_PAGEABLE,
    COPY_HUGE,
    COPY_HUGETLB,
    COPY_PINNED,
    COPY_PINNED_HUGE,
    COPY_WRITE_COMBINED,
    COPY_MANAGED,
};
enum copy_metric { COPY_BANDWIDTH, COPY_LATENCY, COPY_LOAD_LATENCY };
enum copy_op { COPY_WRITE, COPY_READ };        /* between GPUs: who runs the copy */
enum copy_access { COPY_DIRECT, COPY_STAGED }; /* between GPUs: peer access on or off */
/* Between GPUs: how their memory was taken. */
enum copy_handle { COPY_PLAIN, COPY_FABRIC, COPY_MULTICAST };
enum copy_inject { COPY_SOUND, COPY_CORRUPT };

/* The words of options, in the order of the enums; NULL after the last. */
extern const char *const copy_engines[];
extern const char *const copy_directions[];
extern const char *const copy_memories[];
extern const char *const copy_ops[];

struct copy_params {
    int engine, direction, memory, metric, op, access, handle, inject;
    const char *source, *destination, *together;
    uint64_t size;
    struct pair_params meet;
};

/* pt->bench_state: outlives the points. */
struct copy_session {
    struct ceilings ceilings;   /* copies by one core, by size and places */
    struct copy_remote *remote; /* the other end of the pair; NULL: not met yet */
    struct meet_secret secret;
    struct pair_params pair; /* as the points have it */
    int unreachable;         /* it could not be met: not tried again for each point */
    char why_unreachable[MEET_ERROR_BYTES];
};

/* Meets the other end, if that has not been done. 0, or -errno with why_unreachable set. */
int copy_session_meet(struct copy_session *s, const volatile int *cancel);

/* Source and destination; where one is all GPUs, the first that the other is not. 0, or -errno with the reason set: -ENODEV also for a pair of GPUs where
 * there is one. */
int copy_ends(struct point *pt, struct place ends[2]);
bool copy_is_all(const char *name);
/* Which of them is COPY_PEER: 0, 1; -1: neither. The other one then is a GPU here. */
int copy_peer_end(const struct copy_params *p);

/* What runs copies between these ends: the GPU's code where an end is one. */
const struct device_work *copy_work_of(const struct place ends[2]);

/* Is this point's combination worth a measurement in a sweep? Not: a GPU and itself. */
bool copy_wanted(struct point *pt);

/* A series of `bytes` in GB/s, or where the point is about latency in us. */
struct series *copy_series(struct point *pt, const char *direction, double bytes);

extern const struct device_work host_copy_work, gpu_copy_work;
int host_copy_possible(struct point *pt); /* of struct bench, between places of the host */

/*
 * Between places of the host (host_copy.c): a lane for each direction, with the memory it comes from
 * at one end and the memory it goes to at the other. Lane 0 goes from end 0 to end 1, lane 1 back.
 *
 * Messages over these lanes, timed and checked: by memcpy, a thread for each direction. Before each
 * run what is sent changes, after it the change is looked for; the times hold neither.
 */
struct transfer {
    struct place ends[2];
    size_t bytes;  /* of one message */
    unsigned used; /* lanes: 1 or 2 */
    bool corrupt;  /* for tests: spoil the data */
    struct {
        struct host_buffer src, dst;
    } lane[2];
    struct team *team;
    uint64_t count;
    uint64_t number; /* of the run: what the stamps must say */
    uint64_t wrong;  /* messages found wrong so far */
};

/* Allocates what ends, bytes and used ask for, bound to its nodes where there are several,
 * untouched. 0 or -errno with *error. */
int transfer_alloc(struct transfer *t, const struct topo *topo, enum host_pages memory, char *error,
                   size_t len);
/* Then the threads: forward runs on the first CPU, back on the other. 0 or -errno. */
int transfer_open(struct transfer *t, const struct topo *topo, const unsigned cpus[2],
                  uint64_t seed);
void transfer_close(struct transfer *t); /* however far it came; a zeroed one is left alone */

/* Moves `count` messages in each direction that there is. ns[0]: of the thread that copies forward;
 * with two lanes also ns[1]: of the one back, ns[2]: from the first start to the last end. */
void transfer_run(struct transfer *t, uint64_t count, uint64_t ns[3]);

/* Copies one message of fresh data and compares all of it. Wrong data is counted. */
void transfer_verify(struct transfer *t, uint64_t seed);

/* Where an end's pages lie. */
void transfer_where(const struct transfer *t, unsigned end, struct host_where *where);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the backends over a library have in common: which part of the buffers a call is of, and what
 * must at least have gone from node to node, whatever the library did. */
#ifndef PLUMB_CORE_COLLECTIVE_LIBRARY_H
#define PLUMB_CORE_COLLECTIVE_LIBRARY_H

#include "core/collective/collective.h"

/* Bytes from the beginning of the input and of the result; in place, of the one vector. */
struct library_part {
    uint64_t input, result;
};
struct library_part library_part(const struct collective *c, const struct collective_call *call);

/* Bytes that this member's node must send to and receive from others in an operation of `bytes`
 * (the vector), at the least: what no algorithm and no reduction on the way can save. Told by the
 * node's first member; 0 for its others. */
struct library_least {
    double out_bytes, in_bytes;
};
struct library_least library_least(const struct collective *c, double bytes);

/* Is all that the point's `device` names here, each of "eth0+eth1" an interface or an RDMA port? 0;
 * -ENODEV with error, which lists those that there are. */
int library_devices(struct collective *c);

/* The flow of all that, over `device` ("a+b": over all of them together); none where that is "" or
 * nothing must have gone. */
void library_flow(struct collective_told *told, const char *device, struct library_least least,
                  double bytes);

/* A rank's GPU for backends over a library that works in a GPU's memory: which of them, its stream,
 * the buffers, and waiting for them by asking, so that the channels are looked after and nothing
 * waits for good. What it says begins with the backend's name. */

/* What `chosen` begins with where ranks share GPUs. */
#define LIBRARY_GPU_SHARED "rehearsal, ranks share GPUs; "

struct library_gpu;
/* 0, -EAGAIN, or an error that is said */
typedef int library_look_fn(struct collective *c, struct library_gpu *g);

struct library_gpu {
    struct gpus *gpus;
    struct gpu *gpu;
    struct gpu_stream *stream;
    void *native;         /* the same, as a library takes it */
    void *input, *result; /* the device's; in place, input is the result */
    void *word;           /* of library_gpu_take(), where a backend wants one; else NULL */
    bool left;            /* a thread of this process is in the library for good */
    bool broken;          /* what is in the stream cannot be waited for any more */
    library_look_fn
        *failed; /* has the library, or has it not (0, -EAGAIN)? NULL: it tells nothing */
};

/* All that return int: 0, or -errno with c->error. */
/* GPU: this rank's number on its node, modulo the GPUs that it sees (*count); and a stream. Its
 * context is this thread's then. */
int library_gpu_open(struct collective *c, struct library_gpu *g, unsigned *count);
/* So many bytes of its memory, all-zero as soon as the stream is idle. */
int library_gpu_take(struct collective *c, struct library_gpu *g, size_t bytes, void **at);
/* Input and result for the point, all-zero; waits until the stream is idle. */
int library_gpu_buffers(struct collective *c, struct library_gpu *g);
void library_gpu_close(struct library_gpu *g); /* however far it came */

/* Its context is this thread's from here on. */
void library_gpu_enter(struct library_gpu *g);

/* Until look() says something else than -EAGAIN. Twenty times a second the channels are seen to,
 * and failed() is asked. Nothing counts as standing still before `expected_ns`. Whoever gave up
 * cannot know what the library and the device are still at: broken. */
int library_gpu_await(struct collective *c, struct library_gpu *g, library_look_fn *look,
                      uint64_t expected_ns);
int library_gpu_look(struct collective *c, struct library_gpu *g); /* is the stream idle? */
/* What `bytes` of a vector may take on a network that is slow. */
uint64_t library_gpu_slowest_ns(const struct collective *c, double bytes);
/* Until it is; `bytes` of a vector are under way. */
int library_gpu_wait(struct collective *c, struct library_gpu *g, double bytes);
/* Done when it returns. */
int library_gpu_copy(struct collective *c, struct library_gpu *g, void *to, const void *from,
                     size_t bytes);

/* Which GPU this is, for others: nothing, where it has no name of its own. They may have something
 * else before it, up to `from`. */
void library_gpu_card(struct library_gpu *g, struct collective_card *card);
/* Is it this one? */
bool library_gpu_is(struct library_gpu *g, const struct collective_card *card, size_t from);
/* Member 0 gets those of all others: do any two members have the same? */
bool library_gpu_shared(struct library_gpu *g, const struct collective_card *cards, unsigned n,
                        size_t from);
bool library_gpu_simulated(const struct library_gpu *g);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call to a GPU costs the host, by the host's clock: handing a kernel over, waiting for it,
 * graphs, events, memory, the driver itself. One operation is one number; nothing is held back, for
 * queueing is what is measured.
 */
#ifndef PLUMB_BENCHES_LAUNCH_GPU_LAUNCH_H
#define PLUMB_BENCHES_LAUNCH_GPU_LAUNCH_H

#include "core/hw/gpu.h"

struct launch;

#define LAUNCH_NODES   1u  /* is made of --nodes kernels */
#define LAUNCH_BYTES   2u  /* takes --size bytes */
#define LAUNCH_MANY    4u  /* a sample is many operations, and the wait for the last of them */
#define LAUNCH_KEEPS   8u  /* holds such an allocation beside the one that is measured */
#define LAUNCH_ON_HOST 16u /* the bytes are the host's */

struct launch_op {
    const char *name, *help;
    unsigned flags;
    int (*once)(struct launch *l); /* the timed thing */
    /* Those that follow may be NULL. Not timed, after each: keeps what is queued short, so that a
     * full queue makes nobody wait. */
    int (*rest)(struct launch *l);
    int (*prepare)(struct launch *l);
    int (*check)(struct launch *l, char *what, size_t len); /* as launch_check() */
};

extern const char *const launch_names[];               /* of them, for an option; ends with NULL */
const struct launch_op *launch_find(const char *name); /* NULL: there is none */

struct launch {
    struct gpu *gpu;
    const struct launch_op *op;
    struct gpu_stream *stream;
    struct gpu_event *event;
    struct gpu_kernel *empty, *fill;
    struct gpu_graph *graph;
    void *kept;     /* memory taken in stream order */
    void *device;   /* LAUNCH_WORDS of 8 bytes */
    uint64_t *host; /* as many, page-locked */
    uint64_t nodes, bytes, queued, count /* operations until now */;
};

#define LAUNCH_WORDS 4096

/* `nodes` and `bytes` count where the operation's flags say so. 0 or -errno (see gpu_error());
 * close it in any case. */
int launch_open(struct launch *l, struct gpu *gpu, const struct launch_op *op, uint64_t nodes,
                uint64_t bytes);
void launch_close(struct launch *l);

/* One operation. 0 with *ns, or -errno. */
int launch_once(struct launch *l, uint64_t *ns);
/* n operations one after the other, and the wait until the GPU has done the last. */
int launch_many(struct launch *l, uint64_t n, uint64_t *ns);

/* Does what is called that way really run on the GPU? Fills memory by a kernel handed over in the
 * same way, and compares all of it; where the operation moves bytes, those too. 0, -EBADMSG with
 * *what, or -errno. */
int launch_check(struct launch *l, uint64_t seed, char *what, size_t len);

#endif

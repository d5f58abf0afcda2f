/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU of another process, on this host or another one, which its process fills and checks
 * as it is asked to, and of which it gives fabric handles (gpu.h: share). One or two memories at a time, by number.
 *
 * The end that leads asks; errors are 0 or -errno, with copy_remote_error(): a sentence that names
 * the other end where that failed.
 */
#ifndef PLUMB_BENCHES_COPY_REMOTE_H
#define PLUMB_BENCHES_COPY_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/group/channel.h"
#include "core/hw/gpu.h"

/* Of both ends: what they send is as it is. */
uint32_t copy_remote_protocol(void);

/* The end that is asked: serves until the other one says goodbye. A channel_child_fn without an
 * argument. */
int copy_remote_serve(struct channel *c, void *arg);

struct copy_remote;

/* Takes the channel in any case: it is closed with this. */
int copy_remote_open(struct copy_remote **r, struct channel *c);
void copy_remote_close(struct copy_remote *r); /* NULL is left alone */
const char *copy_remote_error(const struct copy_remote *r);
bool copy_remote_broken(const struct copy_remote *r); /* the other end is gone */

/* Between requests: 0, or the other end is gone or silent, with the error. Cheap. */
int copy_remote_alive(struct copy_remote *r);

#define COPY_REMOTE_MEMORIES 2 /* one for each direction */

struct copy_remote_order {
    uint32_t gpu, memories;
    uint64_t bytes; /* of each */
};

struct copy_remote_memory { /* sent as it is */
    unsigned char handle[COPY_REMOTE_MEMORIES][GPU_HANDLE_BYTES];
    char gpu[96], address[24], host[64], origin[16];
    double nvlink_gbps; /* data of all NVLinks of that GPU, one direction; NAN: not told */
    char domain[64];    /* the NVLinks that it is at, and the part of them; "": not told */
};

int copy_remote_alloc(struct copy_remote *r, const struct copy_remote_order *order,
                      struct copy_remote_memory *memory);
int copy_remote_free(struct copy_remote *r); /* also where there is none */
/* As gpu_copy_memory_fill(), _poison(), _spoil() and _check(), which alone has a wrong_at. */
enum copy_remote_deed {
    COPY_REMOTE_FILL,
    COPY_REMOTE_POISON,
    COPY_REMOTE_SPOIL,
    COPY_REMOTE_CHECK
};
int copy_remote_do(struct copy_remote *r, enum copy_remote_deed what, unsigned memory,
                   uint64_t seed, size_t *wrong_at);

#endif

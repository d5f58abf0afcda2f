/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared memory: the sender copies into a ring, the receiver out of it, both at the same time. One
 * ring for each direction, each with one writer and one reader.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/transport/shm_ring.h"
#include "core/transport/transport.h"

static struct shm_ring *ring_from(const struct transport *t, unsigned sender)
{
    return (struct shm_ring *)t->state + sender;
}

static int shm_open_rings(struct transport *t)
{
    void *at = mmap(NULL, 2 * sizeof(struct shm_ring), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return -errno;
    t->state = at;
    return 0;
}

/* The receiver touches its ring first: it lies on the receiver's node. By reading, since the sender
 * may be at work already. */
static int shm_attach(struct transport *t)
{
    const volatile char *data = ring_from(t, !group_rank(t->group))->data;

    for (size_t i = 0; i < SHM_RING_BYTES; i += SHM_PAGE_BYTES)
        (void)data[i];
    return 0;
}

static ssize_t shm_push(struct transport *t, const void *data, size_t len)
{
    return (ssize_t)shm_ring_push(ring_from(t, group_rank(t->group)), data, len);
}

static ssize_t shm_pull(struct transport *t, void *data, size_t len)
{
    return (ssize_t)shm_ring_pull(ring_from(t, !group_rank(t->group)), data, len);
}

static const char *shm_describe(const struct transport *t, char *text, size_t len)
{
    (void)t;
    snprintf(text, len, "ring of %u KiB, %u KiB at once", SHM_RING_BYTES >> 10,
             SHM_CHUNK_BYTES >> 10);
    return text;
}

static void shm_close(struct transport *t)
{
    if (t->state)
        munmap(t->state, 2 * sizeof(struct shm_ring));
    t->state = NULL;
}

const struct transport_ops transport_shm = {
    .name = "shm",
    .open = shm_open_rings,
    .attach = shm_attach,
    .push = shm_push,
    .pull = shm_pull,
    .describe = shm_describe,
    .close = shm_close,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a GPU that messages are sent from or received into: taken, and filled and checked
 * through a page-locked buffer of the host, a part at a time; the CPU never touches it itself. One
 * thread at a time. Errors: -errno, with a sentence in device_memory_error().
 */
#ifndef PLUMB_CORE_WIRE_MEMORY_H
#define PLUMB_CORE_WIRE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_MEMORY_ALIGN 65536u /* of a GPU's pages */

struct device_memory;

/* Of "cuda:0"; *m is NULL where the place is the host ("" or "host"). */
int device_memory_open(struct device_memory **m, const char *place, char *error, size_t len);
void device_memory_close(struct device_memory *m); /* with all that was taken; NULL is left alone */
const char *device_memory_name(const struct device_memory *m); /* "cuda:0" */
const char *device_memory_error(const struct device_memory *m);
bool device_memory_simulated(const struct device_memory *m);
/* The way to an RDMA device, in the words of nvidia-smi topo: "PIX"; "" where the system does not
 * say. */
const char *device_memory_way(const struct device_memory *m, const char *device);
/* At a multiple of DEVICE_MEMORY_ALIGN, and nobody else's in its last one. */
int device_memory_take(struct device_memory *m, size_t bytes, void **at);
/* A dma-buf of memory that was taken, for the caller to close; or -errno and why there is none. */
int device_memory_export(struct device_memory *m, void *at, size_t bytes, char *why, size_t len);
/* pattern_fill() and pattern_check(). `wrong`: every byte is another one than that. *first:
 * PATTERN_RIGHT, or the first byte that is wrong. */
int device_memory_fill(struct device_memory *m, void *at, size_t bytes, uint64_t seed, bool wrong);
int device_memory_check(struct device_memory *m, const void *at, size_t bytes, uint64_t seed,
                        size_t *first);

#endif

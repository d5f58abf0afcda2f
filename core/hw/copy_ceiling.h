/* SPDX-License-Identifier: Apache-2.0 */
/* The best that one core can do to copy a buffer within a process: what any way between two processes
 * is held against. */
#ifndef PLUMB_CORE_HW_COPY_CEILING_H
#define PLUMB_CORE_HW_COPY_CEILING_H

#include <stddef.h>
#include <stdint.h>

/* Copies the same bytes `count` times. */
void copy_by_memcpy(void *dst, const void *src, size_t bytes, uint64_t count);

/* The best of several short runs of memcpy and of the copy kernels (every vector unit; stores that
 * are regular and non-temporal) by the calling thread, in GB/s of payload: each byte counts once. 0 where
 * there is no memory for that. The buffers start on a cache line, `bytes` long; dst is overwritten. */
double copy_ceiling(void *dst, const void *src, size_t bytes);

#endif

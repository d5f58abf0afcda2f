/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of a row that was measured on a GPU. The row's column `address` (two addresses, joined
 * by
 * '+', of a copy between GPUs) says which GPUs of the machine they were; what a column does not
 * say, or the limits do not know, gives no limit.
 *
 *   matrix products   the dense rate of the row's type; of 8-bit floats with fast sums and f16 with
 * f16 sums that of the 16-bit accumulator, where the GPU has one of its own memory            HBM's
 * or GDDR's rate, of rows that are served by it copies            host and GPU: the slowest of the
 * link and the way to the root (the chip-to-chip link, where there is one); between GPUs: the
 * NVLinks of the pair, else the slower one of their links; within one: half of its memory's rate,
 * since each byte is read and written. A sum of both directions has twice the limit
 *
 * A simulated row never gets a datasheet's figure.
 */
#ifndef PLUMB_HARNESS_JOIN_GPU_H
#define PLUMB_HARNESS_JOIN_GPU_H

#include "harness/run/join.h"

/* 1 and *out filled in, or 0. */
int join_gpu_limit(const json_t *limits, const char *bench, const struct table *rows, size_t row,
                   struct joined_limit *out);

#endif

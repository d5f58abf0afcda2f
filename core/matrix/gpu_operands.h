/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices on a GPU: their forms, their operands, and the check of a result. Who
 * multiplies: gpu_ops.gemm (core/hw/gpu.h). */
#ifndef PLUMB_CORE_MATRIX_GPU_OPERANDS_H
#define PLUMB_CORE_MATRIX_GPU_OPERANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hw/gpu.h"
#include "core/hw/gpu_kernels.h"
#include "core/matrix/matrix.h"

extern const struct gemm_form gemm_gpu_forms[];

/* A product of this form and shape, for gpu_gemm_ops.plan. */
struct gpu_gemm_problem gpu_operands_problem(const struct gemm_form *form,
                                             const struct gemm_shape *shape, bool b_is_nk);

/* Operands of matrix products in a GPU's memory: several sets of A, B and C, which products take in
 * turn, so that the second-level cache never holds what the next one reads. A and B are functions
 * of the position (gpu_kernels.h): the check computes them again, and of C only the rows that it
 * looks at are fetched. */

/* Between two uses of a set at least so many times the cache's size are touched. */
#define GPU_OPERANDS_CACHES 3

struct gpu_operands_config {
    const struct gemm_form *form;
    struct gemm_shape shape;
    bool b_is_nk;
    enum gpu_data data;
    uint64_t seed;
};

struct gpu_operands {
    struct gpu_operands_config config;
    struct gpu *gpu;
    struct gpu_stream *stream;             /* that all of this is queued in */
    void *a, *b, *c;                       /* of all sets, one behind the other */
    uint64_t a_stride, b_stride, c_stride; /* bytes from a set to the next */
    uint64_t sets;
    unsigned char *rows; /* of C, fetched for the check */
    size_t row[GEMM_CHECK_LINES], n_rows;
    uint64_t checked_set;
    bool spoil;
};

/* How many sets there should be: one more than make GPU_OPERANDS_CACHES caches, and no more than
 * fit into `room` bytes. 0: not even one fits. */
uint64_t gpu_operands_sets(const struct gpu_operands_config *config, uint64_t l2_bytes,
                           uint64_t room, uint64_t *set_bytes);

/* The type of an operand in gpu_kernels.h, by its element. */
enum gpu_value gpu_value_of_element(enum gemm_element type);

/* Allocates `sets` sets and fills A and B. 0 or -errno with gpu_error(). */
int gpu_operands_open(struct gpu_operands *o, struct gpu *gpu, struct gpu_stream *stream,
                      const struct gpu_operands_config *config, uint64_t sets);
/* One set for several shapes in turn: as much of A, B and C as the largest of each needs.
 * config.shape is the caller's to set before a check. */
int gpu_operands_share(struct gpu_operands *o, struct gpu *gpu, struct gpu_stream *stream,
                       const struct gpu_operands_config *config, const struct gemm_shape *shapes,
                       size_t n);
uint64_t gpu_operands_shared_bytes(const struct gemm_form *form, const struct gemm_shape *shapes,
                                   size_t n);
uint64_t gpu_operands_bytes(const struct gpu_operands *o); /* of all sets */
/* Every C becomes what no product gives (NaN; INT32_MIN): an entry that is not written is found. */
int gpu_operands_poison(struct gpu_operands *o);
void gpu_operands_close(struct gpu_operands *o); /* a zeroed one is left alone */

static inline const void *gpu_operands_a(const struct gpu_operands *o, uint64_t set)
{
    return (const char *)o->a + set * o->a_stride;
}

static inline const void *gpu_operands_b(const struct gpu_operands *o, uint64_t set)
{
    return (const char *)o->b + set * o->b_stride;
}

static inline void *gpu_operands_c(const struct gpu_operands *o, uint64_t set)
{
    return (char *)o->c + set * o->c_stride;
}

/* Holds C of one set against f64: see gemm_check_source(). `spoil`: one fetched entry is made wrong
 * before. */
int gpu_operands_check(struct gpu_operands *o, uint64_t set, bool spoil, struct gemm_check *out);

#endif

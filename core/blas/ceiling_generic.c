/* SPDX-License-Identifier: Apache-2.0 */
/* Ceiling loops in plain C with 128-bit vectors, for CPUs that no other file knows. A library with
 * better instructions may exceed them, and its row then says so. */
#include "core/blas/ceiling.h"
#include "core/blas/ceiling_sums.h"

typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));

#define PLAIN         __attribute__((noinline))
#define STEP(s, x, y) ((s) * (x) + (y))

CEILING_LOOP(f32_plain, PLAIN, f32x4, f32x4, 12, STEP)
CEILING_LOOP(f64_plain, PLAIN, f64x2, f64x2, 12, STEP)
CEILING_LOOP(int_plain, PLAIN, u32x4, u32x4, 12, STEP)

static bool always(const struct cpu_features *f)
{
    (void)f;
    return true;
}

#define MEASURED "measured: register-only "

const struct ceiling_loop ceiling_generic[] = {
    {GEMM_F32, MEASURED "plain C loop of 128 bits", 12 * 4 * 2, always, f32_plain},
    {GEMM_F64, MEASURED "plain C loop of 128 bits", 12 * 2 * 2, always, f64_plain},
    {GEMM_BF16, MEASURED "plain C loop of 128 bits in f32", 12 * 4 * 2, always, f32_plain},
    {GEMM_INT8, MEASURED "plain C loop of 128 bits in 32-bit integers", 12 * 4 * 2, always,
     int_plain},
    {.run = NULL},
};

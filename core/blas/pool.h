/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process keeps between matrix products: the libraries it has opened (a failure is kept too,
 * so that it is not tried again for every case) and the ceilings it has measured.
 */
#ifndef PLUMB_CORE_BLAS_POOL_H
#define PLUMB_CORE_BLAS_POOL_H

#include "core/blas/ceiling.h"
#include "core/blas/cpu_features.h"
#include "core/blas/library.h"

struct gemm_pool;

int gemm_pool_open(struct gemm_pool **pool); /* 0 or -ENOMEM */
void gemm_pool_close(struct gemm_pool *pool);

/* The opened library, or NULL with *err and the reason as its open() left them. `file` counts at
 * the first call for a library. The caller must be able to use all CPUs: see library.h. */
struct gemm_engine *gemm_pool_engine(struct gemm_pool *pool, const struct gemm_library *library,
                                     const char *file, int *err, char *why);

struct gemm_ceiling {
    double operations_per_ns; /* of all threads together */
    const char *source;       /* for limit_source; static */
};

/* The ceiling of a type with n threads on these CPUs, measured at the first call, or again when
 * `again` is set: then the higher of both is kept. 0 or -errno of ceiling_measure(). */
int gemm_pool_ceiling(struct gemm_pool *pool, enum gemm_dtype dtype,
                      const struct gemm_threads *threads, bool again, struct gemm_ceiling *out);

#endif

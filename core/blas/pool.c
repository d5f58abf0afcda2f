/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries and ceilings of a process: see pool.h. */
#include "core/blas/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARIES_MAX 8

struct slot {
    const struct gemm_library *library; /* NULL: not used yet */
    struct gemm_engine *engine;
    int err;
    char why[GEMM_WHY_BYTES];
};

struct known_ceiling {
    enum gemm_dtype dtype;
    unsigned threads, first_cpu;
    struct gemm_ceiling value;
};

struct gemm_pool {
    struct cpu_features features;
    struct slot slots[LIBRARIES_MAX];
    struct known_ceiling *ceilings;
    size_t n_ceilings;
};

int gemm_pool_open(struct gemm_pool **pool)
{
    *pool = calloc(1, sizeof(**pool));
    if (!*pool)
        return -ENOMEM;
    cpu_features_read(&(*pool)->features);
    return 0;
}

void gemm_pool_close(struct gemm_pool *pool)
{
    for (int i = 0; pool && i < LIBRARIES_MAX; i++)
        if (pool->slots[i].engine)
            pool->slots[i].library->close(pool->slots[i].engine);
    if (pool)
        free(pool->ceilings);
    free(pool);
}

struct gemm_engine *gemm_pool_engine(struct gemm_pool *pool, const struct gemm_library *library,
                                     const char *file, int *err, char *why)
{
    struct slot *slot = pool->slots;

    while (slot->library && slot->library != library)
        slot++;
    if (!slot->library) {
        slot->library = library;
        slot->engine = library->open(file, &slot->err, slot->why);
    }
    *err = slot->err;
    memcpy(why, slot->why, GEMM_WHY_BYTES);
    return slot->engine;
}

static struct known_ceiling *ceiling_slot(struct gemm_pool *pool, enum gemm_dtype dtype,
                                          const struct gemm_threads *threads)
{
    for (size_t i = 0; i < pool->n_ceilings; i++) {
        struct known_ceiling *known = &pool->ceilings[i];
        if (known->dtype == dtype && known->threads == threads->n &&
            known->first_cpu == threads->cpus[0])
            return known;
    }
    struct known_ceiling *grown =
        realloc(pool->ceilings, (pool->n_ceilings + 1) * sizeof(*pool->ceilings));
    if (!grown)
        return NULL;
    pool->ceilings = grown;
    grown[pool->n_ceilings] = (struct known_ceiling){
        .dtype = dtype, .threads = threads->n, .first_cpu = threads->cpus[0]};
    return &grown[pool->n_ceilings++];
}

int gemm_pool_ceiling(struct gemm_pool *pool, enum gemm_dtype dtype,
                      const struct gemm_threads *threads, bool again, struct gemm_ceiling *out)
{
    struct known_ceiling *known = ceiling_slot(pool, dtype, threads);
    int err = known ? 0 : -ENOMEM;

    if (!err && (!known->value.source || again)) {
        const struct ceiling_loop *loops[CEILING_LOOPS_MAX];
        struct ceiling_rate best;

        err = ceiling_measure(loops, ceiling_loops(dtype, &pool->features, loops), threads->topo,
                              threads->cpus, threads->n, &best);
        if (!err && best.operations_per_ns > known->value.operations_per_ns)
            known->value = (struct gemm_ceiling){best.operations_per_ns, best.loop->source};
    }
    if (!err)
        *out = known->value;
    return err;
}

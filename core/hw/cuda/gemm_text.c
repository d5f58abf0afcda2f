/* SPDX-License-Identifier: Apache-2.0 */
/* What an algorithm of cuBLASLt is, in words. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/cuda/gemm_library.h"

/* Made by build.mk from the header's enums, which grow with each version: [23] = "128x256". */
static const char *const tiles[] = {
#include "cuda/cublaslt_tiles.h"
};
static const char *const stages[] = {
#include "cuda/cublaslt_stages.h"
};
static const char *const clusters[] = {
#include "cuda/cublaslt_clusters.h"
};

#define NAME(table, id) ((id) < sizeof(table) / sizeof((table)[0]) ? (table)[id] : NULL)

/* 0 where the algorithm has no such thing; some attributes take two bytes, which lie first. */
static uint32_t attribute(const struct gemm_library *lib, const cublasLtMatmulAlgo_t *algo,
                          cublasLtMatmulAlgoConfigAttributes_t what, size_t bytes)
{
    uint16_t half = 0;
    uint32_t word = 0;
    void *to = bytes == sizeof(half) ? (void *)&half : (void *)&word;

    if (lib->cublasLtMatmulAlgoConfigGetAttribute(algo, what, to, bytes, NULL) !=
        CUBLAS_STATUS_SUCCESS)
        return 0;
    return bytes == sizeof(half) ? half : word;
}

static void add(char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t len, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, len - used, format, args);
    va_end(args);
}

/* By its name, or its number where the library is newer than the header; nothing for 0. */
static void add_named(char *text, size_t len, const char *what, const char *name, uint32_t id)
{
    if (id && name)
        add(text, len, " %s %s", what, name);
    else if (id)
        add(text, len, " %s #%u", what, id);
}

const char *gemm_algo_text(const struct gemm_library *lib, const cublasLtMatmulAlgo_t *algo,
                           char *text, size_t len)
{
    uint32_t tile = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_TILE_ID, 4);
    uint32_t stage = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_STAGES_ID, 4);
    uint32_t cluster = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2);
    uint32_t inner = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2);
    uint32_t reduction = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4);
    uint32_t swizzle = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4);
    uint32_t custom = attribute(lib, algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4);
    int32_t split = (int32_t)attribute(lib, algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4);

    snprintf(text, len, "algo %u", attribute(lib, algo, CUBLASLT_ALGO_CONFIG_ID, 4));
    add_named(text, len, "tile", NAME(tiles, tile), tile);
    add_named(text, len, "stages", NAME(stages, stage), stage);
    add(text, len, " split-k %d", split);
    add_named(text, len, "cluster", NAME(clusters, cluster), cluster);
    add_named(text, len, "inner", NULL, inner);
    add_named(text, len, "reduction", NULL, reduction);
    add_named(text, len, "swizzle", NULL, swizzle);
    add_named(text, len, "option", NULL, custom);
    return text;
}

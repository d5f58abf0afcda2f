/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of oneDNN's C interface that a matrix product needs, for releases 2 and 3 alike, so that
 * neither's header is needed to build. The values are from oneapi/dnnl/dnnl_types.h and
 * dnnl_common_types.h; those below are the same in both. What differs: a memory descriptor is a
 * struct of the caller's in 2 and an opaque object in 3 (here a pointer in both), and 2 describes a
 * matmul in two steps.
 */
#ifndef PLUMB_BENCHES_GEMM_ONEDNN_ABI_H
#define PLUMB_BENCHES_GEMM_ONEDNN_ABI_H

#include <stddef.h>
#include <stdint.h>

#define DNNL_DIMS_MAX 12

/* In release 2: dnnl_memory_desc_t has 696 bytes and dnnl_matmul_desc_t 2800. */
#define DNNL2_MEMORY_DESC_ROOM 2048
#define DNNL2_MATMUL_DESC_ROOM 16384

enum { DNNL_SUCCESS = 0, DNNL_UNIMPLEMENTED = 3 };
enum { DNNL_BF16 = 2, DNNL_F32 = 3, DNNL_S32 = 4, DNNL_S8 = 5, DNNL_U8 = 6 };
enum { DNNL_TAG_ANY = 1, DNNL_TAG_AB = 3 };
enum { DNNL_CPU = 1, DNNL_STREAM_IN_ORDER = 1 };
enum { DNNL_QUERY_IMPL_INFO_STR = 8, DNNL_QUERY_WEIGHTS_MD = 131 };
enum { DNNL_ARG_SRC = 1, DNNL_ARG_DST = 17, DNNL_ARG_WEIGHTS = 33 };
enum { DNNL_RUNTIME_SEQ = 1, DNNL_RUNTIME_OMP = 2 }; /* dnnl_config.h */

#define DNNL_ALLOCATE ((void *)(size_t)-1)

struct dnnl_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

struct dnnl_arg {
    int arg;
    void *memory;
};

struct dnnl_api {
    const struct dnnl_version *(*version)(void);
    int (*engine_create)(void **engine, int kind, size_t index);
    int (*engine_destroy)(void *engine);
    int (*stream_create)(void **stream, void *engine, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*memory_create)(void **memory, const void *md, void *engine, void *data);
    int (*memory_destroy)(void *memory);
    int (*primitive_create)(void **primitive, const void *pd);
    int (*primitive_destroy)(void *primitive);
    int (*primitive_execute)(const void *primitive, void *stream, int n,
                             const struct dnnl_arg *args);
    int (*pd_destroy)(void *pd);
    int (*pd_query)(const void *pd, int what, int index, void *result);
    const void *(*pd_query_md)(const void *pd, int what, int index);
    int (*reorder_pd_create)(void **pd, const void *from, void *from_engine, const void *to,
                             void *to_engine, const void *attr);
    /* release 2 */
    int (*md2_init)(void *md, int n, const int64_t *dims, int type, int tag);
    int (*matmul2_init)(void *desc, const void *src, const void *weights, const void *bias,
                        const void *dst);
    int (*pd2_create)(void **pd, const void *desc, const void *attr, void *engine,
                      const void *hint);
    /* release 3 */
    int (*md3_create)(void **md, int n, const int64_t *dims, int type, int tag);
    int (*md3_destroy)(void *md);
    int (*matmul3_create)(void **pd, void *engine, const void *src, const void *weights,
                          const void *bias, const void *dst, const void *attr);
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a case of matrix products asks for, made into what a place and a library can do; and the
 * search for the fastest shape there. */
#ifndef PLUMB_CORE_BLAS_REQUEST_H
#define PLUMB_CORE_BLAS_REQUEST_H

#include "core/blas/library.h"

/* As options have it: numbers of choices. */
struct gemm_asked {
    const char *device; /* "host", "cuda:1" */
    int dtype, library, layout, sums, data;
    uint64_t threads;
    const char *files[GEMM_FILES];
};

/* The place of "host", "cuda:1" and its number there; whether a GPU is there shows when it is opened.
 * 0; -EINVAL with *error. */
int gemm_where_find(const char *device, const struct gemm_where **where, unsigned *index,
                    char *error, size_t len);

/* The types that all of these devices together have, as an option's list: "f64,f32,bf16". "" where
 * none of them is a device, or the host alone is asked for, whose types are the default. */
const char *gemm_types_text(char *const *devices, size_t n, char *text, size_t len);

/* The request in that place; sets the options' columns to what they come to (the library that auto
 * means). 0; -EOPNOTSUPP with the reason and what to take. */
int gemm_resolve(struct point *pt, const struct gemm_asked *asked, const struct gemm_where *where,
                 struct gemm_request *request);

/* where->begin, unless the sums would overflow. */
int gemm_begin(const struct gemm_where *where, struct gemm_run *run, const struct gemm_shape *shape,
               bool brief);

/* Searches (search.h) for at most budget_ns in a run that is open; no begin is in effect before or
 * after. 0 with *shape and a remark on the search; or -errno with the reason. */
int gemm_seek(const struct gemm_where *where, struct gemm_run *run, uint64_t budget_ns,
              struct gemm_shape *shape);

#endif

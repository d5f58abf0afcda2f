/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix libraries as small ops tables. Each is opened at run time, so that one build serves
 * machines with and without them. A library's own threads run bound, one on each CPU of a list.
 *
 * The order of calls:  open -> (bind -> (prepare -> run, many times -> finish)*)* -> close.
 * A process opens each library once, while the caller may use all the CPUs that a later bind names:
 * a library counts the CPUs when it is loaded and starts threads then, which are noted to be bound
 * (threads_unbind_self() in threads.h).
 *
 * Every hook that can fail says why in `why` (no full stop): 0; -ENODEV: the library is not here;
 * -EOPNOTSUPP: it cannot do this; any other -errno: an error.
 */
#ifndef PLUMB_CORE_BLAS_LIBRARY_H
#define PLUMB_CORE_BLAS_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "core/blas/matrix.h"
#include "core/topo.h"

#define GEMM_WHY_BYTES 384

/* The CPUs of a run: thread i on cpus[i]; thread 0 is the caller. */
struct gemm_threads {
    const struct topo *topo;
    const unsigned *cpus;
    unsigned n;
};

struct gemm_library {
    const char *name; /* of the option and the column: "onednn" */
    unsigned dtypes;  /* a bit 1u << enum gemm_dtype for each type that it serves */
    struct gemm_engine *(*open)(const char *file, int *err, char *why);
    int (*bind)(struct gemm_engine *e, const struct gemm_threads *threads, char *why);
    /* Everything that a user does once: primitives, packing. The problem must live until finish. */
    int (*prepare)(struct gemm_engine *e, const struct gemm_problem *p, char *why);
    /* The timed thing: C = A B, `inner` times over. 0 or -errno. */
    int (*run)(struct gemm_engine *e, uint64_t inner);
    void (*finish)(struct gemm_engine *e); /* undoes prepare; harmless without one */
    void (*close)(struct gemm_engine *e);
};

/* An opened library; the libraries' own structs begin with it. */
struct gemm_engine {
    const struct gemm_library *library;
    char kernel[64];             /* version and kernels in use; after prepare they are final */
    char remark[GEMM_WHY_BYTES]; /* what its rows should say, or "" */
};

/* Ends with NULL. The first that serves a type is the one to take by default. */
extern const struct gemm_library *const gemm_libraries[];

extern const struct gemm_library gemm_onednn;        /* onednn.c */
extern const struct gemm_library gemm_openblas;      /* openblas.c: as it comes */
extern const struct gemm_library gemm_openblas_best; /* openblas.c: with kernels that fit the CPU */

/* For the implementations. Writes a reason; returns err. */
int gemm_why(char *why, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct gemm_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the struct that is filled */
    int optional;
};

/* Opens `file`, or else the first of `names` (NULL-terminated) that is there. NULL with -ENODEV:
 * the reason names the Debian package. An engine keeps its handle open when it is closed: libraries
 * whose threads still wait for work must not be unmapped. */
void *gemm_dlopen(const char *file, const char *const *names, const char *package, int *err,
                  char *why);

/* Fills function pointers in *table from symbols (ends with a NULL name). 0 or -ENODEV. */
int gemm_dlsym(void *handle, const struct gemm_symbol *symbols, void *table, char *why);

#endif

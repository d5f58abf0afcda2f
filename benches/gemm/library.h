/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix libraries as small ops tables, and the places that they run in: the host's CPUs
 * (host_blas.c) and a GPU (gpu_blas.c). Each library is opened at run time, so that one build
 * serves machines with and without it. The place owns the operands, times the products with its
 * own clock and says what carried them; the library multiplies.
 *
 * What a process keeps between matrix products: the libraries it has opened (a failure is kept too,
 * so that it is not tried again for every case) and the ceilings it has measured.
 *
 * What a case of matrix products asks for, made into what a place and a library can do; and the
 * search for the fastest shape there.
 */
#ifndef PLUMB_BENCHES_GEMM_LIBRARY_H
#define PLUMB_BENCHES_GEMM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bench/bench.h"
#include "core/matrix/gpu_operands.h"
#include "core/matrix/library.h"
#include "core/search.h"

/*
 * The measured ceiling of matrix products: how many operations a second the fastest unit does when
 * nothing but the unit is used. A loop multiplies and adds registers, with enough independent sums
 * that no result is waited for; all threads run it at the same time on the same CPUs as the
 * benchmark. Measured, since guests hide the clock and a datasheet does not know the clock that
 * these units run at.
 *
 * The tables (ceiling.c) hold one loop for each unit and type. The table of another
 * architecture is empty. The fastest loop that this CPU can run counts.
 */

#define CEILING_IN_BYTES  2048 /* operands, 64-byte aligned */
#define CEILING_OUT_BYTES 2048 /* of each thread */

struct ceiling_loop {
    enum gemm_dtype dtype;
    bool is_detour;     /* by instructions of another type: f32's for bf16 */
    const char *source; /* for limit_source: "measured: register-only avx512f FMA loop" */
    double operations;  /* of one turn: a multiply-add of one element counts two */
    bool (*usable)(const struct cpu_features *f);
    /* Does `turns` turns. Reads its operands from `in`; leaves its sums in `out`, so that no
     * compiler may drop them. */
    void (*run)(uint64_t turns, const void *in, void *out);
};

/* Each ends with an entry whose `run` is NULL. */
extern const struct ceiling_loop ceiling_amx[], ceiling_x86[], ceiling_arm[], ceiling_generic[];

#define CEILING_LOOPS_MAX 12

/* All loops that compute products of a type on this CPU, also by way of a wider type;
 * one at least. */
size_t ceiling_loops(enum gemm_dtype dtype, const struct cpu_features *f,
                     const struct ceiling_loop *loops[CEILING_LOOPS_MAX]);

struct ceiling_rate {
    const struct ceiling_loop *loop; /* the fastest */
    double operations_per_ns;
    double own_per_ns; /* of the fastest loop that is no detour; 0: the CPU has none */
};

/* The fastest of these loops, each by n threads bound to cpus[0..n): the best of some 25 runs
 * of 2 ms. The caller ends bound to cpus[0]. 0 or -errno. Takes 60 ms, and 10 to 60 ms for
 * each further loop. */
int ceiling_measure(const struct ceiling_loop *const *loops, size_t n_loops,
                    const struct topo *topo, const unsigned *cpus, unsigned n,
                    struct ceiling_rate *best);

struct gemm_run;

/* What a case asks for, but for its shape. */
struct gemm_request {
    const struct gemm_library *library;
    const struct gemm_form *form;
    bool b_is_nk; /* layout nt */
    enum gpu_data data;
    unsigned index; /* of the place: which GPU */
    unsigned threads;
    const char *file;      /* this library file, not the system's; NULL */
    const char *algorithm; /* "auto", or one that an earlier launch chose */
};

/*
 * A place. The order of calls for a point:
 *
 *   open -> limit -> (begin -> sample, many times -> check, evidence -> end)* -> close
 *
 * Hooks return 0 or -errno, having said why by point_reason(): -ENODEV, -ELIBACC and -EOPNOTSUPP mean that it
 * cannot be done here. All are required, but for those that say otherwise.
 */
struct gemm_where {
    const char *name; /* for messages: "the host's CPUs" */
    bool gpu;         /* of GPUs; else the host */
    const struct gemm_form *forms;
    bool transposes; /* takes B in layout nt */

    /* Opens the library, and what it runs on; sets the columns that say which. */
    int (*open)(struct point *pt, const struct gemm_request *request, struct gemm_run **run);
    void (*close)(struct gemm_run *run); /* also what an open left half-way; never NULL */
    /* Makes the operands, and everything that a user does once. `brief`: a search is only passing
     * by, choices are to be made fast. */
    int (*begin)(struct gemm_run *run, const struct gemm_shape *shape, bool brief);
    void (*end)(struct gemm_run *run); /* harmless without a begin */
    int (*sample)(struct gemm_run *run, uint64_t inner, uint64_t *ns);
    /* Holds what the last sample has left against f64. `spoil`: a wrong entry is put in before, to
     * test the check. */
    int (*check)(struct gemm_run *run, bool spoil, struct gemm_check *out);
    int (*evidence)(struct gemm_run *run);
    /* Sets the series' limit, between open and begin: what is physically possible here. NULL: that
     * is known from elsewhere, or not at all. */
    int (*limit)(struct gemm_run *run);
    /* How many cores, or multiprocessors, work on a product: a search tries shapes that they can
     * share evenly. */
    unsigned (*units)(const struct gemm_run *run);
    /* Says which of its libraries are here, as struct bench's `backends`. */
    void (*backends)(backend_say_fn *say, void *arg);
};

extern const struct gemm_where gemm_on_host, gemm_on_gpu;
int gemm_has_cpus(struct point *pt, unsigned threads); /* of the host. 0, or -EOPNOTSUPP */
extern const struct gemm_where *const gemm_wheres[];   /* NULL-terminated */

/* What the places' own structs begin with. */
struct gemm_run {
    struct point *pt;
    struct gemm_request request;
    struct gemm_shape shape; /* from begin on */
};

/* Ends with NULL. The first that serves a type in a place is the one to take by default. */
extern const struct gemm_library *const gemm_libraries[];
/* For an option: "auto", then their names in the same order; NULL-terminated. */
extern const char *const gemm_library_names[];

extern const struct gemm_library gemm_cublaslt;      /* gpu_blas.c: the heuristics' first choice */
extern const struct gemm_library gemm_cublaslt_best; /* gpu_blas.c: the fastest of their answers */

/* The library to take by default for a type in a place; NULL: none has it. */
const struct gemm_library *gemm_library_for(const struct gemm_where *where, enum gemm_dtype dtype);

/* The types that a place's libraries serve, a bit each. */
unsigned gemm_types_of(const struct gemm_where *where);

#define GEMM_LIBRARIES_MAX 8

struct gemm_pool { /* pt->bench_state */
    struct {
        const struct gemm_library *library; /* NULL: not used yet */
        struct gemm_engine *engine;
        int err;
        char why[GEMM_WHY_BYTES];
    } slots[GEMM_LIBRARIES_MAX];
    struct gemm_known_ceiling *ceilings;
    size_t n_ceilings;
};

void gemm_pool_release(struct gemm_pool *pool);

/* As options have it: numbers of choices. */
struct gemm_asked {
    const char *device; /* "host", "cuda:1" */
    int dtype, library, layout, sums, data;
    uint64_t threads;
    const char *files[GEMM_FILES];
    const char *algorithm;
};

/* The place of "host", "cuda:1" and its number there; whether a GPU is there shows when it is
 * opened. 0; -EINVAL with *error. */
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

/* Searches for at most budget_ns in a run that is open; no begin is in effect before or
 * after. 0 with *shape and a remark on the search; or -errno with the reason. */
int gemm_seek(const struct gemm_where *where, struct gemm_run *run, uint64_t budget_ns,
              struct gemm_shape *shape);

/*
 * The search for the shape of a matrix product with the highest rate. Squares first, 512 to 16384;
 * from the best of them uphill: m and n rounded to what the units can share evenly in tiles of 128
 * x 256, each side longer and shorter by 1024, doubled and halved, then by 512, 256 and 128. The
 * first neighbour that is faster is the next place to look round from.
 *
 * Pure: times come from the callbacks, and the same times give the same search.
 */

#define GEMM_SEARCH_PATIENCE 24 /* shapes without one, after which it stops */

struct gemm_search {
    /* Operations a ns of a shape. 0; -EOPNOTSUPP, -ENOMEM: it cannot be done, and is passed over;
     * any other -errno ends the search. */
    int (*rate)(void *arg, const struct gemm_shape *shape, double *operations_per_ns);
    uint64_t (*now_ns)(void *arg); /* NULL: the clock */
    void *arg;
    uint64_t budget_ns; /* no shape is begun after it, nor one that would take an eighth of it */
    uint64_t longest;   /* side */
    unsigned units;     /* that share a product; 0, 1: not known */
};

struct gemm_search_result {
    struct gemm_shape best; /* m 0: no shape could be done */
    double operations_per_ns;
    unsigned tried, refused, too_long;
    uint64_t elapsed_ns;
    enum search_stop stop;
};

int gemm_search_run(const struct gemm_search *s, struct gemm_search_result *out);

/* "the best of 57 shapes in 20.3 s; stopped: no gain over 0.5 % in the last 24". Returns text. */
const char *gemm_search_text(const struct gemm_search_result *r, char *text, size_t len);

#endif

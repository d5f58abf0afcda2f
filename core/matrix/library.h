/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that multiply matrices on the host's CPUs, as small ops tables. Each is opened at run
 * time, so that one build serves machines with and without it. A GPU's library is behind
 * gpu_ops.gemm (core/hw/gpu.h).
 */
#ifndef PLUMB_CORE_MATRIX_LIBRARY_H
#define PLUMB_CORE_MATRIX_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/hw/topo.h"
#include "core/matrix/matrix.h"

/* What the CPU's vector and matrix units can do, as far as matrix products care, and as far as the
 * kernel lets a process use it. Sources: CPUID and XGETBV on x86-64, AT_HWCAP on arm64; all false
 * elsewhere. */
struct cpu_features {
    /* x86-64; avx512 is F, CD, BW, DQ and VL together, as in every such core since 2017 */
    bool avx2, fma, avx_vnni, avx512f, avx512, avx512_vnni, avx512_bf16, amx_tile, amx_bf16,
        amx_int8;
    /* arm64 */
    bool neon, dotprod, sve, bf16, i8mm;
};

void cpu_features_read(struct cpu_features *f);

/* The widest vector unit in words: "avx512", "avx2", "sve" or "neon". */
const char *cpu_features_widest(const struct cpu_features *f);

#define GEMM_WHY_BYTES 384

/* Files that options name. */
enum gemm_file { GEMM_FILE_NONE, GEMM_FILE_ONEDNN, GEMM_FILE_OPENBLAS, GEMM_FILES };

/* The CPUs of a run: thread i on cpus[i]; thread 0 is the caller. topo NULL: threads stay where they
 * are. */
struct gemm_threads {
    const struct topo *topo;
    const unsigned *cpus;
    unsigned n;
};

/*
 * A library. Those of the host have these hooks, called in the order
 *
 *   open -> (bind -> (prepare -> run, many times -> finish)*)* -> close.
 *
 * Several problems may be ready at once; `bind` and `run` are of one thread.
 *
 * A benchmark opens each library once, while the caller may use all the CPUs that a later bind
 * names: a library counts the CPUs when it is loaded and starts threads then, which are noted to
 * be bound (threads_unbind_self()). Every hook that can fail says why in `why` (no
 * full stop): 0; -ELIBACC: the library is not here; -EOPNOTSUPP: it cannot do this; any other
 * -errno: an error.
 */
struct gemm_library {
    const char *name;    /* of the option and the column: "onednn" */
    bool gpu;            /* of GPUs: it has none of the hooks */
    unsigned dtypes;     /* a bit 1u << enum gemm_dtype for each type that it serves */
    enum gemm_file file; /* the option that names its file */
    unsigned candidates; /* on a GPU: how many of the heuristics' answers are tried */
    /* What the names of variables of the environment that steer it begin with;
     * NULL-terminated, or NULL. */
    const char *const *steered_by;

    struct gemm_engine *(*open)(const char *file, int *err, char *why);
    int (*bind)(struct gemm_engine *e, const struct gemm_threads *threads, char *why);
    /* Everything that a user does once: primitives, packing. The problem must live until finish. NULL
     * with *err. */
    struct gemm_product *(*prepare)(struct gemm_engine *e, const struct gemm_problem *p, int *err,
                                    char *why);
    /* The timed thing: C = A B, `inner` times over. 0 or -errno. */
    int (*run)(struct gemm_product *product, uint64_t inner);
    void (*finish)(struct gemm_product *product); /* NULL is left alone */
    void (*close)(struct gemm_engine *e);
};

/* An opened library of the host; the libraries' own structs begin with it. */
struct gemm_engine {
    const struct gemm_library *library;
    char kernel[64];             /* version and kernels in use; after prepare they are final */
    char remark[GEMM_WHY_BYTES]; /* what its rows should say, or "" */
};

/* A problem that is ready to be multiplied; the libraries' own structs begin with it. */
struct gemm_product {
    struct gemm_engine *engine;
};

extern const struct gemm_library gemm_onednn;   /* onednn.c */
extern const struct gemm_library gemm_openblas; /* openblas.c */

/* All of the above, in the order in which one is to be tried for a type; ends with NULL. */
extern const struct gemm_library *const gemm_host_libraries[];

/* For the implementations. Writes a reason; returns err. */
int gemm_why(char *why, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct gemm_symbol {
    const char *name;
    size_t offset; /* of the function pointer in the struct that is filled */
    int optional;
};

/* Opens `file`, or else the first of `names` (NULL-terminated) that is there, that of a bundle
 * (scripts/bundle: plumb-NAME leads to it) before the machine's own; the bundle's that does not load
 * has none stand in for it. NULL with -ELIBACC: the reason names the Debian package. An engine keeps
 * its handle open when it is closed: libraries whose threads still wait for work must not be
 * unmapped. */
void *gemm_dlopen(const char *file, const char *const *names, const char *package, int *err,
                  char *why);

/* Fills function pointers in *table from symbols (ends with a NULL name). 0 or -ELIBACC. */
int gemm_dlsym(void *handle, const struct gemm_symbol *symbols, void *table, char *why);

/*
 * The value of OPENBLAS_CORETYPE that fits `f` better than the kernel set `current` (what
 * openblas_get_corename() says), or NULL if none is known to.
 *
 * A build for many CPUs (DYNAMIC_ARCH) chooses a kernel set by the CPU's family and model. A CPU
 * that is newer than the library gets a set that may use half of its vector width. A set that the
 * table does not know, one of a newer release, is never called worse.
 */
const char *openblas_better_core(const struct cpu_features *f, const char *current);

/* Putting the threads of others where they belong. A library starts its threads itself; they are
 * bound from outside: OpenMP's by running a parallel region of our own on the same threads, plain
 * ones by their task numbers. */

/* Lets the calling thread use every CPU of the topology again. 0 or -errno. */
int threads_unbind_self(const struct topo *topo);

/* The tasks (threads) of this process, ascending. A list belongs to the caller: free(ids). */
struct task_list {
    pid_t *ids;
    size_t n;
};
int tasks_read(struct task_list *out); /* 0 or -errno of /proc */

/* Appends to `mine` what is in `after` and not in `before`. */
void tasks_add_new(struct task_list *mine, const struct task_list *before,
                   const struct task_list *after);

int task_bind(const struct topo *topo, pid_t task, unsigned cpu); /* 0 or -errno */

/* Has the OpenMP run-time behind a library's handle use threads->n threads for regions that the
 * caller starts, and binds them, the caller first. 0; -EOPNOTSUPP: no such run-time, or it gives
 * fewer threads; -errno. */
int omp_bind(void *handle, const struct gemm_threads *threads, char *why);

/* Ends the threads that the OpenMP run-time behind a handle keeps waiting, where it
 * can (OpenMP 5). */
void omp_release(void *handle);

/* The CPU time of each task of this process. A list belongs to the caller: free(list). */
struct task_time {
    pid_t task;
    unsigned cpu; /* the system's number of the one it was last on */
    double used_s;
};
struct task_times {
    struct task_time *list;
    size_t n;
};
int task_times_read(struct task_times *out); /* 0 or -errno of /proc */

/* What the tasks that are now on `cpu` have used since `begin`. Steps of 10 ms. */
double task_times_since(const struct task_times *begin, const struct task_times *now, unsigned cpu);

#endif

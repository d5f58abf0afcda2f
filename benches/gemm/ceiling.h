/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CPU's vector and matrix units can do, as far as matrix products care, and as far as the
 * kernel lets a process use it. Sources: CPUID and XGETBV on x86-64, AT_HWCAP on arm64; all false
 * elsewhere.
 *
 * The measured ceiling of matrix products: how many operations a second the fastest unit does when
 * nothing but the unit is used. A loop multiplies and adds registers, with enough independent sums
 * that no result is waited for; all threads run it at the same time on the same CPUs as the
 * benchmark. Measured, since guests hide the clock and a datasheet does not know the clock that
 * these units run at.
 *
 * The tables (ceiling_loops.c) hold one loop for each unit and type. The table of another architecture
 * is empty. The fastest loop that this CPU can run counts.
 */
#ifndef PLUMB_BENCHES_GEMM_CEILING_H
#define PLUMB_BENCHES_GEMM_CEILING_H

#include <stdbool.h>
#include <stdint.h>

#include "benches/gemm/matrix.h"
#include "core/hw/topo.h"

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

#define CEILING_IN_BYTES  2048 /* operands, 64-byte aligned */
#define CEILING_OUT_BYTES 2048 /* of each thread */

struct ceiling_loop {
    enum gemm_dtype dtype;
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
};

/* The fastest of these loops, each by n threads bound to cpus[0..n): the best of some 25 runs
 * of 2 ms. The caller ends bound to cpus[0]. 0 or -errno. Takes 60 ms, and 10 to 60 ms for
 * each further loop. */
int ceiling_measure(const struct ceiling_loop *const *loops, size_t n_loops,
                    const struct topo *topo, const unsigned *cpus, unsigned n,
                    struct ceiling_rate *best);

#endif

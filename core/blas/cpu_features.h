/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CPU's vector and matrix units can do, as far as matrix products care, and as far as the
 * kernel lets a process use it. Sources: CPUID and XGETBV on x86-64, AT_HWCAP on arm64; all false
 * elsewhere.
 */
#ifndef PLUMB_CORE_BLAS_CPU_FEATURES_H
#define PLUMB_CORE_BLAS_CPU_FEATURES_H

#include <stdbool.h>

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

#endif

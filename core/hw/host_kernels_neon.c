/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for Arm's Advanced SIMD, which every 64-bit Arm CPU has: 16 bytes a load or store. */
#if defined(__aarch64__)
#include "core/hw/host_kernels.h"

#define K_ISA     host_isa_neon
#define K_NAME    "neon"
#define K_PRESENT true
#define K_TARGET
#define K_BYTES 16
#define K_REG   "w"
/* Stores of pairs are the only non-temporal ones: each vector by its two halves. */
#define K_STREAM(p, v)                                                                             \
    __asm__ volatile("mov d31, %1.d[1]\n\tstnp %d1, d31, [%0]" ::"r"(p), "w"(v) : "v31", "memory")
#define K_FENCE() __asm__ volatile("dmb ishst" ::: "memory")
#include "core/hw/host_kernels_body.h"
#endif

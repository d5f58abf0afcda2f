/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX2 with FMA: 32 bytes a load or store. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "core/hw/host_kernels.h"

#define K_ISA          host_isa_avx2
#define K_NAME         "avx2"
#define K_PRESENT      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
#define K_TARGET       __attribute__((target("avx2,fma")))
#define K_BYTES        32
#define K_REG          "x"
#define K_STREAM(p, v) _mm256_stream_si256((__m256i *)(p), (__m256i)(v))
#define K_FENCE()      _mm_sfence()
#include "core/hw/host_kernels_body.h"
#endif

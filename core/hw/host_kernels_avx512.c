/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX-512 (F): 64 bytes a load or store. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "core/hw/host_kernels.h"

#define K_ISA          host_isa_avx512
#define K_NAME         "avx512"
#define K_PRESENT      __builtin_cpu_supports("avx512f")
#define K_TARGET       __attribute__((target("avx512f")))
#define K_BYTES        64
#define K_REG          "v"
#define K_STREAM(p, v) _mm512_stream_si512((__m512i *)(p), (__m512i)(v))
#define K_FENCE()      _mm_sfence()
#include "core/hw/host_kernels_body.h"
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for SSE2, which every x86-64 CPU has: 16 bytes a load or store. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "core/hw/host_kernels.h"

#define K_ISA     host_isa_sse2
#define K_NAME    "sse2"
#define K_PRESENT true
#define K_TARGET
#define K_BYTES        16
#define K_REG          "x"
#define K_STREAM(p, v) _mm_stream_si128((__m128i *)(p), (__m128i)(v))
#define K_FENCE()      _mm_sfence()
#include "core/hw/host_kernels_body.h"
#endif

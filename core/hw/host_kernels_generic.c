/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels as the compiler's own vectors of 16 bytes: any CPU, no non-temporal stores. */
#include "core/hw/host_kernels.h"

#define K_ISA     host_isa_generic
#define K_NAME    "generic"
#define K_PRESENT true
#define K_TARGET
#define K_BYTES 16
#define K_REG   K_REG_GENERIC
#if defined(__x86_64__)
#define K_REG_GENERIC "x"
#elif defined(__aarch64__)
#define K_REG_GENERIC "w"
#else
#define K_REG_GENERIC "m" /* through memory: right anywhere, fast nowhere */
#endif
#include "core/hw/host_kernels_body.h"

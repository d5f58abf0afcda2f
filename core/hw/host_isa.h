/* SPDX-License-Identifier: Apache-2.0 */
/* The vector units' tables, one from each host_kernels_*.c; host_kernels.c alone needs them. */
#ifndef PLUMB_CORE_HW_HOST_ISA_H
#define PLUMB_CORE_HW_HOST_ISA_H

#include "core/hw/host_kernels.h"

extern const struct host_isa host_isa_avx512, host_isa_avx2, host_isa_sse2, host_isa_neon,
    host_isa_generic;

#endif

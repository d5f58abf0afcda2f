/* SPDX-License-Identifier: Apache-2.0 */
/* The loops as the compiler's own vectors of 16 bytes: any CPU. */
#define R_ISA     reduce_generic
#define R_NAME    "generic"
#define R_PRESENT true
#define R_TARGET
#define R_BYTES 16
#include "core/collective/reduce_body.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that add two vectors, one set for each vector unit (reduce_*.c, all from
 * reduce_body.h), and half-precision numbers one by one. */
#ifndef PLUMB_CORE_COLLECTIVE_REDUCE_H
#define PLUMB_CORE_COLLECTIVE_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective/collective.h"

/* to = a (+) b of n elements; to may be a or b. */
typedef void reduce_fn(void *to, const void *a, const void *b, size_t n);

struct reduce_isa {
    const char *name; /* avx512 */
    bool (*present)(void);
    reduce_fn *reduce[COLLECTIVE_TYPES][2]; /* [enum collective_sum] */
};

/* All that were built, widest first; NULL-terminated. The last one is present everywhere. */
extern const struct reduce_isa *const reduce_isas[];

/* The one element nearest to a value: ties to even. */
float reduce_float_of_f16(uint16_t x);
uint16_t reduce_f16_of_float(float x);
float reduce_float_of_bf16(uint16_t x);
uint16_t reduce_bf16_of_float(float x);

#endif

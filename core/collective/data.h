/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data of collectives, and what must come out: chosen so that each result is exact in its type in
 * whatever order and precision it is made, but for averages, which have a range.
 *
 *   sum        whole numbers from 0 to a largest that leaves n of them exact: e5m2 has 3 bits of
 *              significand (sums to 8), e4m3 4, bf16 8, f16 11, f32 24, f64 53, i32 31, i8 7, i64 53.
 *              Where n members are too many for that, only some of them put in more than 0 at each
 *              place
 *   max, min   whole numbers of both signs, to half of that
 *   prod       of whole types: odd numbers of all bits, so that the product, which wraps, is odd, and
 *              no factor can be missing from it. Of the others: at each place one member has all
 *              bits of a significand, up to five more have 2 or 1/2, the rest 1, with signs: no
 *              product of some of them leaves the type's range, nor is any rounded
 *   avg        as sum; of floating-point types two members at each place put in more than 0. They
 *              may be multiplied by 1/n first, as NCCL does it, or last, and rounded in between or
 *              not, each time to the nearest: the result lies between what the most and the least of
 *              that make. Of whole types the sum is divided, and the quotient cut to a whole number
 *
 * Values repeat after DATA_PERIOD elements, which is prime, so that results are worked out once and
 * every element of every result is compared.
 */
#ifndef PLUMB_CORE_COLLECTIVE_DATA_H
#define PLUMB_CORE_COLLECTIVE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective/collective.h"

#define DATA_PERIOD 4099u
#define DATA_RIGHT  UINT64_MAX

struct data_expected;

/* Member m's input, all of it (as many elements as the op takes). `position`: of the first element
 * of this piece within it. */
void data_fill(void *at, uint64_t n_elements, uint64_t position, const struct collective_point *p,
               unsigned members, unsigned m);

/* What the result of member m must be. */
struct data_expected *data_expect(const struct collective_point *p, uint64_t count,
                                  unsigned members, unsigned m);
/* Compares a piece of the result that begins at `position`: the place of the first wrong element,
 * or DATA_RIGHT. `got`, `wanted`: of it. */
uint64_t data_check(const struct data_expected *x, const void *at, uint64_t n_elements,
                    uint64_t position, double *got, double *wanted);
void data_expect_free(struct data_expected *x); /* NULL is left alone */

/* Why the host's sums cannot make what this point asks for, and what to do; NULL: they can. */
const char *data_lacks(const struct collective_point *p);
/* All inputs of this member, of every call; and all results of it, after the calls have run on these
 * inputs. 0; -EBADMSG with c->error: wrong data; or what the backend or attend() says. */
int collective_fill(struct collective *c, uint64_t seed);
int collective_compare(struct collective *c, uint64_t seed);

/* to = a (+) b; to may be a or b. */
void data_reduce(enum collective_type type, enum collective_sum sum, void *to, const void *a,
                 const void *b, uint64_t count);
/* One element from a number, to the nearest (ties to even; fp8: at most its largest), and back; of
 * i64 to 53 bits. */
void data_put(enum collective_type type, void *at, uint64_t i, double value);
double data_get(enum collective_type type, const void *at, uint64_t i);

/* The loops that add two vectors, one set for each vector unit (reduce_*.c, all from
 * reduce_body.h), and half-precision numbers one by one. */

/* to = a (+) b of n elements; to may be a or b. */
typedef void reduce_fn(void *to, const void *a, const void *b, size_t n);

struct reduce_isa {
    const char *name; /* avx512 */
    bool (*present)(void);
    reduce_fn *reduce[COLLECTIVE_TYPES][COLLECTIVE_SUMS]; /* NULL: none */
};

/* All that were built, widest first; NULL-terminated. The last one is present everywhere. */
extern const struct reduce_isa *const reduce_isas[];

/* The one element nearest to a value: ties to even. */
float reduce_float_of_f16(uint16_t x);
uint16_t reduce_f16_of_float(float x);
float reduce_float_of_bf16(uint16_t x);
uint16_t reduce_bf16_of_float(float x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ceiling loops share: CEILING_LOOP defines one loop with N sums, each in a variable of
 * its own, so that any compiler keeps them in registers.
 *
 * N is 8, 12 or 20: it hides the latency (4 to 6 cycles on the cores of today, times two units)
 * and fits the registers beside the operands. STEP(sum, x, y) gives the next sum. ATTRIBUTES is the
 * function's target.
 */
#ifndef PLUMB_BENCHES_GEMM_CEILING_SUMS_H
#define PLUMB_BENCHES_GEMM_CEILING_SUMS_H

#include <stdint.h>
#include <string.h>

#define CEILING_X8(DO, ARG)                                                                        \
    DO(0, ARG) DO(1, ARG) DO(2, ARG) DO(3, ARG) DO(4, ARG) DO(5, ARG) DO(6, ARG) DO(7, ARG)
#define CEILING_X12(DO, ARG) CEILING_X8(DO, ARG) DO(8, ARG) DO(9, ARG) DO(10, ARG) DO(11, ARG)
#define CEILING_X20(DO, ARG)                                                                       \
    CEILING_X12(DO, ARG)                                                                           \
    DO(12, ARG) DO(13, ARG) DO(14, ARG) DO(15, ARG) DO(16, ARG) DO(17, ARG) DO(18, ARG) DO(19, ARG)

#define CEILING_LOAD(I, TYPE)                                                                      \
    TYPE sum##I;                                                                                   \
    memcpy(&sum##I, from + 128 + (I) * sizeof(TYPE), sizeof(TYPE));
#define CEILING_STEP(I, STEP)  sum##I = STEP(sum##I, x, y);
#define CEILING_STORE(I, TYPE) memcpy(to + (I) * sizeof(TYPE), &sum##I, sizeof(TYPE));

/* clang-format off */
#define CEILING_LOOP(NAME, ATTRIBUTES, SUM, OPERAND, N, STEP)                                      \
    ATTRIBUTES static void NAME(uint64_t turns, const void *in, void *out)                         \
    {                                                                                              \
        const char *from = in;                                                                     \
        char *to = out;                                                                            \
        OPERAND x, y;                                                                              \
        memcpy(&x, from, sizeof(x));                                                               \
        memcpy(&y, from + 64, sizeof(y));                                                          \
        CEILING_X##N(CEILING_LOAD, SUM)                                                            \
        for (; turns; turns--) {                                                                   \
            CEILING_X##N(CEILING_STEP, STEP)                                                       \
        }                                                                                          \
        CEILING_X##N(CEILING_STORE, SUM)                                                           \
    }
/* clang-format on */

#endif

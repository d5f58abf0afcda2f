/* SPDX-License-Identifier: Apache-2.0 */
/* The ceiling of copies: see copy_ceiling.h. */
#include "core/hw/copy_ceiling.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/clock.h"
#include "core/hw/host_kernels.h"

#define RUNS   3         /* of each way, at least ... */
#define NS     10000000u /* ... and for so long */
#define RUN_NS 100000u
#define UNITS  2 /* the widest vector units */

/* One loop for the ceiling and for what is held against it: inlined, they would differ by a cycle. */
__attribute__((noinline)) void copy_by_memcpy(void *dst, const void *src, size_t bytes,
                                              uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        memcpy(dst, src, bytes);
        __asm__ volatile("" ::: "memory"); /* each one is copied */
    }
}

static void libc_copy(struct kernel_args *k)
{
    copy_by_memcpy(k->dst, k->a, k->bytes, k->passes);
}

static uint64_t timed(kernel_fn *copy, struct kernel_args *args, uint64_t passes)
{
    args->passes = passes;
    uint64_t begin = clock_now_ns();
    copy(args);
    return clock_now_ns() - begin;
}

/* ns a pass, the least of all runs: what disturbs can only lengthen. Short runs, in which the clock
 * weighs, do not count; the number of passes grows until there are none. */
static double best_pass_ns(kernel_fn *copy, struct kernel_args *args)
{
    uint64_t passes = 1, spent_ns = 0;
    double best = INFINITY;

    for (int runs = 0; runs < RUNS || spent_ns < NS;) {
        uint64_t ns = timed(copy, args, passes);
        if (ns < RUN_NS) {
            passes *= 2;
            continue;
        }
        best = fmin(best, (double)ns / (double)passes);
        spent_ns += ns;
        runs++;
    }
    return best;
}

double copy_ceiling(void *dst, const void *src, size_t bytes)
{
    struct kernel_args args = {.dst = dst, .a = src, .bytes = bytes};
    double best = best_pass_ns(libc_copy, &args);
    int units = 0;

    for (size_t i = 0; host_isas[i] && units < UNITS && bytes % KERNEL_BLOCK == 0; i++) {
        if (!host_isas[i]->present())
            continue;
        units++;
        for (int form = 0; form < KERNEL_FORMS; form++) {
            kernel_fn *copy = host_isas[i]->kernels[KERNEL_COPY][KERNEL_F64][form];
            best = copy ? fmin(best, best_pass_ns(copy, &args)) : best;
        }
    }
    return (double)bytes / best;
}

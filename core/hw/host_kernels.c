/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a vector unit: see host_kernels.h. */
#include "core/hw/host_kernels.h"

#include <string.h>

#include "core/clock.h"
#include "core/hw/host_isa.h"

/* Full-width hardware gains 2, or 1.33 where narrow loads have more ports; halves gain nothing. In the middle of
 * the gap, by ratio, so that all launches of a run choose the same. */
#define WORTH_FACTOR 1.15
#define WORTH_RUNS   12
#define WORTH_PASSES 2048 /* a run of tens of us: wide units take up to 20 us to wake */
#define WORTH_BYTES  8192 /* in any first-level cache */

const struct host_isa *const host_isas[] = {
#if defined(__x86_64__)
    &host_isa_avx512,  &host_isa_avx2, &host_isa_sse2,
#elif defined(__aarch64__)
    &host_isa_neon,
#endif
    &host_isa_generic, NULL,
};

const struct host_isa *host_isa_find(const char *name)
{
    for (size_t i = 0; host_isas[i]; i++)
        if (!strcmp(name, host_isas[i]->name) && host_isas[i]->present())
            return host_isas[i];
    return NULL;
}

#define ISAS_MAX 8

_Static_assert(sizeof(host_isas) / sizeof(host_isas[0]) <= ISAS_MAX + 1,
               "host_isas outgrew race()");

static uint64_t load_ns(const struct host_isa *isa)
{
    static const char words[WORTH_BYTES] __attribute__((aligned(64)));
    struct kernel_args args = {.a = words, .bytes = sizeof(words), .passes = WORTH_PASSES};
    uint64_t begin = clock_now_ns();

    isa->kernels[KERNEL_READ][KERNEL_F64][KERNEL_NEAR](&args);
    return clock_now_ns() - begin;
}

/* The shortest run of each, since what disturbs can only lengthen; taken in turns, so that a disturbance hits all. */
static void race(uint64_t best_ns[ISAS_MAX])
{
    for (size_t i = 0; i < ISAS_MAX; i++)
        best_ns[i] = UINT64_MAX;
    for (int run = 0; run < WORTH_RUNS; run++)
        for (size_t i = 0; host_isas[i]; i++) {
            uint64_t ns = host_isas[i]->present() ? load_ns(host_isas[i]) : UINT64_MAX;
            best_ns[i] = ns < best_ns[i] ? ns : best_ns[i];
        }
}

const struct host_isa *host_isa_worth(const uint64_t *ns)
{
    const struct host_isa *best = NULL;
    double best_ns = 0;

    /* From wide to narrow, as in the table. The generic one only where there is no other. */
    for (size_t i = 0; host_isas[i] && (!best || host_isas[i] != &host_isa_generic); i++) {
        if (ns[i] == UINT64_MAX)
            continue;
        if (best && (double)ns[i] > best_ns * WORTH_FACTOR)
            break; /* the wider one is worth it */
        best = host_isas[i];
        best_ns = (double)ns[i];
    }
    return best;
}

const struct host_isa *host_isa_best(void)
{
    uint64_t ns[ISAS_MAX];

    race(ns);
    return host_isa_worth(ns);
}

unsigned kernel_arrays(enum kernel_op op)
{
    static const unsigned arrays[KERNEL_OPS] = {
        [KERNEL_READ] = 1,  [KERNEL_WRITE] = 1, [KERNEL_COPY] = 2,
        [KERNEL_SCALE] = 2, [KERNEL_ADD] = 3,   [KERNEL_TRIAD] = 3};

    return arrays[op];
}

bool kernel_stores(enum kernel_op op)
{
    return op != KERNEL_READ;
}

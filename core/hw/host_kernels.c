/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a vector unit: see host_kernels.h. */
#include "core/hw/host_kernels.h"

#include <stdint.h>
#include <string.h>

#include "core/clock.h"
#include "core/search.h"

/* Full-width hardware gains 2, or 1.33 where narrow loads have more ports; halves gain nothing. In
 * the middle of the gap, by ratio, so that all launches of a run choose the same. */
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

/* The shortest run of each, since what disturbs can only lengthen; taken in turns, so that a
 * disturbance hits all. */
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

/* ---- The ceiling of copies ---- */

#define UNITS    2 /* the widest vector units */
#define WAYS_MAX (1 + UNITS * KERNEL_FORMS)

static const struct search_stage stages[] = {{3, 10000000, 0, 0, 0}, {0}};
static const struct search_policy best_run = {.stages = stages, .run_ns = 100000};

/* One loop for the ceiling and for what is held against it: inlined, they would differ by a
 * cycle. */
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

struct copies {
    struct kernel_args args;
    unsigned n;
    kernel_fn *ways[WAYS_MAX];
};

/* A run of a search. Its unit of work is a pass. */
static int time_copy(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct copies *c = arg;

    c->args.passes = passes;
    uint64_t begin = clock_now_ns();
    c->ways[i](&c->args);
    run->ns = clock_now_ns() - begin;
    run->cost = (double)run->ns / (double)passes;
    return 0;
}

static void list_copies(struct copies *c)
{
    int units = 0;

    c->ways[c->n++] = libc_copy;
    for (size_t i = 0; host_isas[i] && units < UNITS && c->args.bytes % KERNEL_BLOCK == 0; i++) {
        if (!host_isas[i]->present())
            continue;
        units++;
        for (int form = 0; form < KERNEL_FORMS; form++)
            if (host_isas[i]->kernels[KERNEL_COPY][KERNEL_F64][form])
                c->ways[c->n++] = host_isas[i]->kernels[KERNEL_COPY][KERNEL_F64][form];
    }
}

double copy_ceiling(void *dst, const void *src, size_t bytes)
{
    struct copies copies = {.args = {.dst = dst, .a = src, .bytes = bytes}};
    struct search search = {.policy = &best_run, .run = time_copy, .arg = &copies};
    struct search_result best;

    list_copies(&copies);
    search.n = copies.n;
    return search_run(&search, &best) ? 0 : (double)bytes / best.cost;
}

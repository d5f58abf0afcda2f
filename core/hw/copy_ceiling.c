/* SPDX-License-Identifier: Apache-2.0 */
/* The ceiling of copies: see copy_ceiling.h. */
#include "core/hw/copy_ceiling.h"

#include <stdint.h>
#include <string.h>

#include "core/clock.h"
#include "core/hw/host_kernels.h"
#include "core/search.h"

#define UNITS    2 /* the widest vector units */
#define WAYS_MAX (1 + UNITS * KERNEL_FORMS)

static const struct search_stage stages[] = {{3, 10000000, 0, 0, 0}, {0}};
static const struct search_policy best_run = {.stages = stages, .run_ns = 100000};

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

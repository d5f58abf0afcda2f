/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a team: see arrays.h. */
#include "benches/memory/arrays.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/memory/entries.h"
#include "core/rng.h"

#define PAGE             4096u
#define PAGE_PARTS_BYTES 65536u /* parts from this size on are whole pages: arrays start alike */

static size_t part_bytes(const struct arrays_config *c, unsigned threads)
{
    uint64_t part = c->bytes / kernel_arrays(c->op) / threads;

    return part - part % (part >= PAGE_PARTS_BYTES ? PAGE : KERNEL_BLOCK);
}

/* dst lies first, then a, then b, as many of them as the operation has. */
static void lay_out(struct arrays *a, struct arrays_part *part, char *at)
{
    enum kernel_op op = a->config.op;
    struct kernel_args *args = &part->args;

    args->bytes = a->part_bytes;
    args->dst = kernel_stores(op) ? at : NULL;
    at += args->dst ? a->part_bytes : 0;
    args->a = at;
    args->b = at + a->part_bytes;
    if (op == KERNEL_WRITE)
        args->a = NULL;
    if (kernel_arrays(op) < 3)
        args->b = NULL;
}

void arrays_lay_out(struct arrays *a)
{
    for (unsigned i = 0; i < a->threads; i++)
        lay_out(a, &a->parts[i], a->buffers[i].at);
}

/* Each source of each thread has a seed of its own. Neighbouring seeds are drawn from, not used: what is
 * made of seeds a step of the generator apart would be the same numbers in other places. */
static uint64_t seed_of(const struct arrays *a, unsigned thread, unsigned source)
{
    uint64_t seed = a->config.seed + 2 * thread + source;

    return rng_splitmix64(&seed);
}

/* Random data where the operation reads, and what is no number where it writes. */
static void fill_part(void *arg, unsigned thread, unsigned threads)
{
    struct arrays *a = arg;
    const struct arrays_config *c = &a->config;
    struct arrays_part *part = &a->parts[thread];

    (void)threads;
    lay_out(a, part, a->buffers[thread].at);
    if (part->args.dst)
        memset(part->args.dst, 0xff, a->part_bytes); /* not a number: no result looks like this */
    if (part->args.a)
        part->sum =
            entries_fill((void *)part->args.a, a->part_bytes, c->type, seed_of(a, thread, 0));
    if (part->args.b)
        entries_fill((void *)part->args.b, a->part_bytes, c->type, seed_of(a, thread, 1));
}

void arrays_fill(struct arrays *a, struct team *team)
{
    uint64_t ns;

    team_run(team, fill_part, a, &ns, NULL);
}

/* Each thread allocates, binds and touches its own. */
static void open_part(void *arg, unsigned thread, unsigned threads)
{
    struct arrays *a = arg;
    const struct arrays_config *c = &a->config;
    struct arrays_part *part = &a->parts[thread];

    part->err = host_alloc(&a->buffers[thread], c->topo, a->part_bytes * kernel_arrays(c->op),
                           c->memory, c->node, part->error, sizeof(part->error));
    if (!part->err)
        fill_part(arg, thread, threads);
}

static int first_error(const struct arrays *a, char *error, size_t len)
{
    for (unsigned i = 0; i < a->threads; i++)
        if (a->parts[i].err) {
            snprintf(error, len, "%s", a->parts[i].error);
            return a->parts[i].err;
        }
    return 0;
}

int arrays_open(struct arrays *a, const struct arrays_config *config, struct team *team,
                char *error, size_t len)
{
    uint64_t ns;
    int err = -ENOMEM;

    *a = (struct arrays){.config = *config, .threads = team_size(team)};
    a->part_bytes = part_bytes(config, a->threads);
    if (!a->part_bytes) {
        snprintf(error, len,
                 "the size is less than one block of %u bytes for each array and thread",
                 KERNEL_BLOCK);
        return -ERANGE;
    }
    a->buffers = calloc(a->threads, sizeof(*a->buffers));
    a->parts = calloc(a->threads, sizeof(*a->parts));
    snprintf(error, len, "out of memory");
    if (a->buffers && a->parts) {
        team_run(team, open_part, a, &ns, NULL);
        err = first_error(a, error, len);
    }
    if (err)
        arrays_close(a);
    return err;
}

void arrays_close(struct arrays *a)
{
    for (unsigned i = 0; a->buffers && i < a->threads; i++)
        host_free(&a->buffers[i]);
    free(a->buffers);
    free(a->parts);
    *a = (struct arrays){0};
}

static void run_part(void *arg, unsigned thread, unsigned threads)
{
    struct arrays *a = arg;

    (void)threads;
    a->kernel(&a->parts[thread].args);
}

void arrays_time(struct arrays *a, struct team *team, kernel_fn *kernel, uint64_t passes,
                 double scalar, uint64_t *ns)
{
    a->kernel = kernel;
    a->passes = passes;
    for (unsigned i = 0; i < a->threads; i++) {
        a->parts[i].args.passes = passes;
        a->parts[i].args.scalar = scalar;
    }
    team_run(team, run_part, a, ns, NULL);
}

bool arrays_sums_right(const struct arrays *a)
{
    for (unsigned i = 0; i < a->threads; i++)
        if (a->parts[i].args.sum != a->parts[i].sum * a->passes)
            return false;
    return true;
}

static void check_part(void *arg, unsigned thread, unsigned threads)
{
    static const char *const names[] = {
        [ENTRIES_DST] = "", [ENTRIES_A] = " of a", [ENTRIES_B] = " of b"};
    struct arrays *a = arg;
    struct arrays_part *part = &a->parts[thread];
    struct entries_wrong w;

    (void)threads;
    part->err = entries_check(a->config.op, a->config.type, &part->args, seed_of(a, thread, 0),
                              seed_of(a, thread, 1), &w);
    if (part->err && w.array == ENTRIES_GONE)
        snprintf(part->error, sizeof(part->error),
                 "wrong data in thread %u's part, which was right when it was read again", thread);
    else if (part->err)
        snprintf(part->error, sizeof(part->error),
                 "wrong data: entry %zu%s of thread %u's part is %g, not %g", w.entry,
                 names[w.array], thread, w.got, w.want);
}

int arrays_check(struct arrays *a, struct team *team, char *error, size_t len)
{
    uint64_t ns;

    if (!kernel_stores(a->config.op)) {
        if (arrays_sums_right(a))
            return 0;
        snprintf(error, len,
                 "wrong data: the sum of what was read is not that of what was written");
        return -EBADMSG;
    }
    team_run(team, check_part, a, &ns, NULL);
    return first_error(a, error, len);
}

uint64_t arrays_set_bytes(const struct arrays *a)
{
    return (uint64_t)a->part_bytes * kernel_arrays(a->config.op) * a->threads;
}

uint64_t arrays_pass_bytes(const struct arrays *a)
{
    return arrays_set_bytes(a); /* each array once a pass: there is none that is not touched */
}

void arrays_spoil(struct arrays *a)
{
    struct kernel_args *args = &a->parts[a->threads - 1].args;
    char *at = args->dst ? args->dst : (char *)args->a;

    at[args->bytes - 1] ^= 0x40; /* an exponent: no rounding hides it */
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a team: see arrays.h. */
#include "core/device/arrays.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

#define PAGE             4096u
#define PAGE_PARTS_BYTES 65536u /* parts from this size on are whole pages: arrays start alike */

#define CEILING_RUNS   5         /* of each vector unit, at least ... */
#define CEILING_NS     10000000u /* ... and for so long */
#define CEILING_RUN_NS 500000u
#define CEILING_UNITS  2 /* the widest ones */

static size_t part_bytes(const struct arrays_config *c, unsigned threads)
{
    uint64_t part = c->bytes / kernel_arrays(c->op) / threads;

    return part - part % (part >= PAGE_PARTS_BYTES ? PAGE : KERNEL_BLOCK);
}

static void fill_source(void *at, size_t bytes, enum kernel_type type, struct rng *rng)
{
    if (type == KERNEL_F32)
        for (float *p = at, *end = p + bytes / sizeof(*p); p < end; p++)
            *p = (float)(1 + (rng_u64(rng) >> 54));
    else
        for (double *p = at, *end = p + bytes / sizeof(*p); p < end; p++)
            *p = (double)(1 + (rng_u64(rng) >> 54));
}

static uint64_t sum_words(const void *at, size_t bytes)
{
    uint64_t sum = 0;

    for (const uint64_t *p = at, *end = p + bytes / sizeof(*p); p < end; p++)
        sum += *p;
    return sum;
}

/* dst lies first, then a, then b, as many of them as the operation has. */
static void lay_out(struct arrays *a, struct arrays_part *part, char *at)
{
    enum kernel_op op = a->config.op;
    struct kernel_args *args = &part->args;

    args->bytes = a->part_bytes;
    if (kernel_stores(op)) {
        args->dst = at;
        at += a->part_bytes;
    }
    args->a = at;
    args->b = at + a->part_bytes;
    if (op == KERNEL_WRITE)
        args->a = NULL;
    if (kernel_arrays(op) < 3)
        args->b = NULL;
}

/* Random data where the operation reads, and what is no number where it writes. */
static void fill_part(void *arg, unsigned thread, unsigned threads)
{
    struct arrays *a = arg;
    const struct arrays_config *c = &a->config;
    struct arrays_part *part = &a->parts[thread];
    struct rng rng;

    (void)threads;
    lay_out(a, part, a->buffers[thread].at);
    rng_seed(&rng, c->seed + thread * 0x9e3779b97f4a7c15u);
    if (part->args.dst)
        memset(part->args.dst, 0xff, a->part_bytes); /* not a number: no result looks like this */
    if (part->args.a)
        fill_source((void *)part->args.a, a->part_bytes, c->type, &rng);
    if (part->args.b)
        fill_source((void *)part->args.b, a->part_bytes, c->type, &rng);
    part->sum = part->args.a ? sum_words(part->args.a, a->part_bytes) : 0;
}

/* Each thread allocates, binds and touches its own. */
static void open_part(void *arg, unsigned thread, unsigned threads)
{
    struct arrays *a = arg;
    const struct arrays_config *c = &a->config;
    struct arrays_part *part = &a->parts[thread];

    part->err = c->device->alloc(&a->buffers[thread], c->topo, a->part_bytes * kernel_arrays(c->op),
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
        a->config.device->free(&a->buffers[i]);
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

/* In double, which holds every value that occurs exactly, for f32 too. */
static double expected(enum kernel_op op, double a, double b, double scalar)
{
    switch (op) {
    case KERNEL_WRITE:
        return scalar;
    case KERNEL_COPY:
        return a;
    case KERNEL_SCALE:
        return scalar * a;
    case KERNEL_ADD:
        return a + b;
    default:
        return a + scalar * b;
    }
}

static double entry(const void *at, enum kernel_type type, size_t i)
{
    if (!at)
        return 0;
    return type == KERNEL_F32 ? ((const float *)at)[i] : ((const double *)at)[i];
}

static void check_part(void *arg, unsigned thread, unsigned threads)
{
    struct arrays *a = arg;
    struct arrays_part *part = &a->parts[thread];
    enum kernel_type type = a->config.type;
    size_t n = a->part_bytes / (type == KERNEL_F32 ? sizeof(float) : sizeof(double));

    (void)threads;
    part->err = 0;
    for (size_t i = 0; i < n; i++) {
        double want = expected(a->config.op, entry(part->args.a, type, i),
                               entry(part->args.b, type, i), part->args.scalar);
        double got = entry(part->args.dst, type, i);
        if (got == want)
            continue;
        part->err = -EBADMSG;
        snprintf(part->error, sizeof(part->error),
                 "wrong data: entry %zu of thread %u's part is %g, not %g", i, thread, got, want);
        return;
    }
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

/* ns a pass, the least of all runs: what disturbs can only lengthen. Short runs, in which the start
 * weighs, do not count; the number of passes grows until there are none. */
static double best_pass_ns(struct arrays *a, struct team *team, kernel_fn *kernel)
{
    double best = INFINITY;
    uint64_t passes = 1, spent_ns = 0, ns;

    for (int runs = 0; runs < CEILING_RUNS || spent_ns < CEILING_NS;) {
        arrays_time(a, team, kernel, passes, 0, &ns);
        best = fmin(best, (double)ns / (double)passes);
        if (ns < CEILING_RUN_NS) {
            passes *= 2;
            continue;
        }
        spent_ns += ns;
        runs++;
    }
    return best;
}

/* All memory of each thread as one array, cut down to whole blocks of `streams` parts. Returns its
 * bytes. */
static double as_one(struct arrays *a, unsigned streams)
{
    size_t block = (size_t)KERNEL_BLOCK * streams,
           bytes = a->part_bytes * kernel_arrays(a->config.op) / block * block;

    for (unsigned i = 0; i < a->threads; i++) {
        struct kernel_args *args = &a->parts[i].args;
        args->a = args->dst = a->buffers[i].at;
        args->bytes = bytes;
    }
    return (double)bytes * a->threads;
}

/* Loads as one stream and as several: for the caches one is as fast as any, for memory it may not be. */
static double best_loads(struct arrays *a, struct team *team, const struct host_isa *isa)
{
    double best = 0;

    for (unsigned i = 0; i < KERNEL_STREAMS; i++) {
        double bytes = as_one(a, i + 1);
        if (bytes > 0)
            best = fmax(best, bytes / best_pass_ns(a, team, isa->read_streams[i]));
    }
    return best;
}

static double best_stores(struct arrays *a, struct team *team, const struct host_isa *isa)
{
    double best = 0, bytes = as_one(a, 1);

    for (int form = 0; form < KERNEL_FORMS; form++) {
        kernel_fn *kernel = isa->kernels[KERNEL_WRITE][KERNEL_F32][form];
        if (kernel)
            best = fmax(best, bytes / best_pass_ns(a, team, kernel));
    }
    return best;
}

/* The best of the widest vector units, in GB/s. */
static double best_bandwidth(struct arrays *a, struct team *team, enum kernel_op op)
{
    double best = 0;
    unsigned units = 0;

    for (size_t i = 0; host_isas[i] && units < CEILING_UNITS; i++) {
        if (!host_isas[i]->present())
            continue;
        units++;
        best = fmax(best, op == KERNEL_READ ? best_loads(a, team, host_isas[i])
                                            : best_stores(a, team, host_isas[i]));
    }
    return best;
}

void arrays_ceiling(struct arrays *a, struct team *team, struct arrays_ceiling *ceiling)
{
    uint64_t ns;

    ceiling->read_gbps = best_bandwidth(a, team, KERNEL_READ);
    ceiling->write_gbps = NAN;
    if (kernel_stores(a->config.op))
        ceiling->write_gbps = best_bandwidth(a, team, KERNEL_WRITE);
    team_run(team, fill_part, a, &ns, NULL); /* the stores went over the data */
}

double arrays_limit(enum kernel_op op, const struct arrays_ceiling *ceiling)
{
    double arrays = kernel_arrays(op), writes = kernel_stores(op) ? 1 : 0, reads = arrays - writes;
    double read_time = reads / ceiling->read_gbps,
           write_time = writes ? writes / ceiling->write_gbps : 0;

    return arrays / fmax(read_time, write_time);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a team: see arrays.h. */
#include "benches/memory/arrays.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/memory/entries.h"
#include "core/rng.h"
#include "core/search.h"

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

/* The kernels' arguments as arrays_open() leaves them. The ceilings' loops have others. */
static void arrays_lay_out(struct arrays *a)
{
    for (unsigned i = 0; i < a->threads; i++)
        lay_out(a, &a->parts[i], a->buffers[i].at);
}

/* Each source of each thread has a seed of its own. Neighbouring seeds are drawn from, not used:
 * what is made of seeds a step of the generator apart would be the same numbers in other places. */
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

/* Lays out, and fills what is read with random numbers and what is written with NaN. Each thread
 * fills its own part. */
static void arrays_fill(struct arrays *a, struct team *team)
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

/* ---- Ceilings: loads alone, stores alone ---- */

#define UNITS     2 /* the widest vector units */
#define FORMS_MAX (UNITS * (KERNEL_STREAMS > KERNEL_FORMS ? KERNEL_STREAMS : KERNEL_FORMS))
#define STORED    3 /* no zeros: some memory takes lines of zeros twice as fast */

/* The forms of one loop, and what they go over. */
struct forms {
    struct arrays *arrays;
    struct team *team;
    unsigned n;
    struct form {
        kernel_fn *kernel;
        unsigned streams; /* a thread's memory is cut down to whole blocks of so many parts */
    } forms[FORMS_MAX];
};

static void add_form(struct forms *f, kernel_fn *kernel, unsigned streams)
{
    if (kernel)
        f->forms[f->n++] = (struct form){kernel, streams};
}

static unsigned widest_units(const struct host_isa *units[UNITS])
{
    unsigned n = 0;

    for (size_t i = 0; host_isas[i] && n < UNITS; i++)
        if (host_isas[i]->present())
            units[n++] = host_isas[i];
    return n;
}

/* Loads as one stream and as several: for the caches one is as fast as any, for memory it
 * may not be. */
static void list_loads(struct forms *f)
{
    const struct host_isa *units[UNITS];
    unsigned n = widest_units(units);

    for (unsigned u = 0; u < n; u++)
        for (unsigned i = 0; i < KERNEL_STREAMS; i++)
            add_form(f, units[u]->read_streams[i], i + 1);
}

/* Only stores of the kind that the operation has: those round the caches move other bytes. */
static void list_stores(struct forms *f)
{
    const struct host_isa *units[UNITS];
    unsigned n = widest_units(units);

    for (unsigned u = 0; u < n; u++)
        for (int form = 0; form < KERNEL_FORMS; form++)
            if ((form == KERNEL_NT) == f->arrays->config.nt)
                add_form(f, units[u]->kernels[KERNEL_WRITE][KERNEL_F32][form], 1);
}

/* All memory of each thread as one array of whole blocks of the form's parts. Returns the bytes
 * of all threads. */
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

/* A run of a search. Its unit of work is a byte. */
static int run_form(void *arg, unsigned way, uint64_t passes, struct search_run *run)
{
    struct forms *f = arg;
    double bytes = as_one(f->arrays, f->forms[way].streams);

    if (!(bytes > 0))
        return -EOPNOTSUPP;
    arrays_time(f->arrays, f->team, f->forms[way].kernel, passes, STORED, &run->ns);
    run->cost = (double)run->ns / (bytes * (double)passes);
    return 0;
}

/* By the form with this number, counted from 1, or by the best of all, whose number is then
 * written. 0 where none moves anything. */
static double best_rate(struct arrays *a, struct team *team, void (*list)(struct forms *),
                        unsigned *number)
{
    struct forms f = {.arrays = a, .team = team};
    struct search search = {.policy = &search_peak, .run = run_form, .arg = &f};
    struct search_result best;

    list(&f);
    search.n = f.n;
    if (*number) {
        f.forms[0] = f.forms[*number - 1];
        search.n = 1;
    }
    int err = search_run(&search, &best);
    if (!*number)
        *number = best.best + 1;
    return err ? 0 : 1 / best.cost;
}

static bool loads(enum kernel_op op)
{
    return op != KERNEL_WRITE;
}

void arrays_ceiling(struct arrays *a, struct team *team, struct arrays_ceiling *ceiling)
{
    enum kernel_op op = a->config.op;
    bool stored = kernel_stores(op) && !ceiling->write_form;

    if (loads(op) && !ceiling->read_form)
        ceiling->read_gbps = best_rate(a, team, list_loads, &ceiling->read_form);
    if (stored)
        ceiling->write_gbps = best_rate(a, team, list_stores, &ceiling->write_form);
    if (stored) /* over the data */
        arrays_fill(a, team);
    else
        arrays_lay_out(a);
}

void arrays_ceiling_again(struct arrays *a, struct team *team, const struct arrays_ceiling *before,
                          struct arrays_ceiling *ceiling)
{
    enum kernel_op op = a->config.op;

    *ceiling = *before;
    if (loads(op))
        ceiling->read_gbps = best_rate(a, team, list_loads, &ceiling->read_form);
    if (kernel_stores(op))
        ceiling->write_gbps = best_rate(a, team, list_stores, &ceiling->write_form);
}

struct arrays_ceiling arrays_ceiling_best(const struct arrays_ceiling *a,
                                          const struct arrays_ceiling *b)
{
    struct arrays_ceiling best = *a;

    best.read_gbps = fmax(a->read_gbps, b->read_gbps);
    best.write_gbps = fmax(a->write_gbps, b->write_gbps);
    return best;
}

double arrays_limit(enum kernel_op op, bool fills, const struct arrays_ceiling *ceiling)
{
    struct limit_parts parts = arrays_limit_parts(op, fills, ceiling);

    return limit_of_parts(&parts);
}

struct limit_parts arrays_limit_parts(enum kernel_op op, bool fills,
                                      const struct arrays_ceiling *ceiling)
{
    double arrays = kernel_arrays(op), writes = kernel_stores(op) ? 1 : 0, reads = arrays - writes;

    return (struct limit_parts){.rate = {ceiling->read_gbps, ceiling->write_gbps},
                                .share = reads / arrays,
                                .fill = fills && reads > 0 ? writes / arrays : 0};
}

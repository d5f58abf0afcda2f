/* SPDX-License-Identifier: Apache-2.0 */
/* The ceilings of arrays: see arrays.h. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "benches/memory/arrays.h"
#include "core/search.h"

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

/* Loads as one stream and as several: for the caches one is as fast as any, for memory it may not be. */
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

/* All memory of each thread as one array of whole blocks of the form's parts. Returns the bytes of all
 * threads. */
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

/* By the form with this number, counted from 1, or by the best of all, whose number is then written.
 * 0 where none moves anything. */
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

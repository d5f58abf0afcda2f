/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of a team: see arrays.h. */
#include "benches/memory/arrays.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/topo.h"
#include "core/rng.h"
#include "core/search.h"

/* ---- What arrays hold ---- */

#define ENTRIES_BLOCK 64u

/* A cache line as a vector, which the compiler cuts into whatever vectors the CPU has. */
typedef uint64_t words __attribute__((vector_size(ENTRIES_BLOCK), may_alias));
typedef double f64s __attribute__((vector_size(ENTRIES_BLOCK), may_alias));
typedef float f32s __attribute__((vector_size(ENTRIES_BLOCK), may_alias));

#define LANES       (ENTRIES_BLOCK / sizeof(uint64_t))
#define COUNT(type) (ENTRIES_BLOCK / ((type) == KERNEL_F32 ? sizeof(float) : sizeof(double)))
#define COUNT_MAX   (ENTRIES_BLOCK / sizeof(float))

/* Eight xorshift64 generators side by side (G. Marsaglia, "Xorshift RNGs", 2003): no
 * multiplication, which vector units lack for 64 bits, and one number does not wait
 * for its neighbour. */
struct stream {
    words state;
};

static void stream_open(struct stream *s, uint64_t seed)
{
    for (size_t lane = 0; lane < LANES; lane++)
        s->state[lane] = rng_splitmix64(&seed) | 1; /* zero would stay zero */
}

static inline void stream_step(struct stream *s)
{
    s->state ^= s->state << 13;
    s->state ^= s->state >> 7;
    s->state ^= s->state << 17;
}

/* Ten random bits as the upper ones of a mantissa whose exponent stands for 1024 are a number from
 * 1024 to 2047: no conversion, which vector units lack for 64 bits, too. */
static inline void next_f64(struct stream *s, f64s *entries)
{
    stream_step(s);
    *entries = (f64s)((s->state >> 12 & 0x000ffc0000000000u) | 0x4090000000000000u) - 1023.0;
}

static inline void next_f32(struct stream *s, f32s *entries)
{
    stream_step(s);
    *entries = (f32s)((s->state >> 9 & 0x007fe000007fe000u) | 0x4480000044800000u) - 1023.0f;
}

static uint64_t added(const words *sums)
{
    uint64_t sum = 0;

    for (size_t lane = 0; lane < LANES; lane++)
        sum += (*sums)[lane];
    return sum;
}

static uint64_t ored(const words *bits)
{
    uint64_t any = 0;

    for (size_t lane = 0; lane < LANES; lane++)
        any |= (*bits)[lane];
    return any;
}

void entries_fill_bits(void *at, size_t bytes, uint64_t seed)
{
    words *p = at, *end = p + bytes / sizeof(*p);
    struct stream s;

    for (stream_open(&s, seed); p < end; p++) {
        stream_step(&s);
        *p = s.state;
    }
}

/* dst = of_a a + of_b b + plus: one formula for every operation that stores. */
struct formula {
    double of_a, of_b, plus;
};

static struct formula formula_of(enum kernel_op op, double scalar)
{
    switch (op) {
    case KERNEL_WRITE:
        return (struct formula){.plus = scalar};
    case KERNEL_COPY:
        return (struct formula){.of_a = 1};
    case KERNEL_SCALE:
        return (struct formula){.of_a = scalar};
    case KERNEL_ADD:
        return (struct formula){.of_a = 1, .of_b = 1};
    default:
        return (struct formula){.of_a = 1, .of_b = scalar};
    }
}

/* Written once for both types.
 *
 * differ_*: the bits in which anything differs from what it must be; no entry is 0 or negative, so
 * equal values have equal bits. An array that the operation has not got is NULL; as a source it
 * takes part as random numbers times 0. */
#define OF_TYPE(type, vec, elem)                                                                   \
    static uint64_t fill_##type(vec *p, size_t blocks, uint64_t seed)                              \
    {                                                                                              \
        words sums = {0};                                                                          \
        struct stream s;                                                                           \
        vec v;                                                                                     \
                                                                                                   \
        stream_open(&s, seed);                                                                     \
        for (size_t i = 0; i < blocks; i++) {                                                      \
            next_##type(&s, &v);                                                                   \
            sums += (words)v;                                                                      \
            p[i] = v;                                                                              \
        }                                                                                          \
        return added(&sums);                                                                       \
    }                                                                                              \
                                                                                                   \
    static uint64_t differ_##type(const struct formula *f, const struct kernel_args *args,         \
                                  uint64_t seed_a, uint64_t seed_b)                                \
    {                                                                                              \
        const vec *dst = args->dst, *a = args->a, *b = args->b;                                    \
        vec of_a = (vec){0} + (elem)f->of_a, of_b = (vec){0} + (elem)f->of_b,                      \
            plus = (vec){0} + (elem)f->plus, v, w;                                                 \
        struct stream sa, sb;                                                                      \
        words bits = {0};                                                                          \
                                                                                                   \
        stream_open(&sa, seed_a);                                                                  \
        stream_open(&sb, seed_b);                                                                  \
        for (size_t i = 0; i < args->bytes / sizeof(vec); i++) {                                   \
            next_##type(&sa, &v);                                                                  \
            next_##type(&sb, &w);                                                                  \
            bits |= (words)dst[i] ^ (words)(of_a * v + of_b * w + plus);                           \
            if (a)                                                                                 \
                bits |= (words)a[i] ^ (words)v;                                                    \
            if (b)                                                                                 \
                bits |= (words)b[i] ^ (words)w;                                                    \
        }                                                                                          \
        return ored(&bits);                                                                        \
    }

OF_TYPE(f32, f32s, float)
OF_TYPE(f64, f64s, double)

uint64_t entries_fill(void *at, size_t bytes, enum kernel_type type, uint64_t seed)
{
    return type == KERNEL_F32 ? fill_f32(at, bytes / ENTRIES_BLOCK, seed)
                              : fill_f64(at, bytes / ENTRIES_BLOCK, seed);
}

static double entry(const void *at, enum kernel_type type, size_t i)
{
    return type == KERNEL_F32 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

/* `want` of the entries of the next block. */
static void next_block(struct stream *s, enum kernel_type type, double *want)
{
    union {
        f32s f32;
        f64s f64;
    } made;

    if (type == KERNEL_F32)
        next_f32(s, &made.f32);
    else
        next_f64(s, &made.f64);
    for (size_t i = 0; i < COUNT(type); i++)
        want[i] = entry(&made, type, i);
}

/* Is there an entry, of those of a block that start with number `first`, that is not as wanted? */
static bool find(const void *at, enum kernel_type type, size_t first, const double *want,
                 struct entries_wrong *wrong)
{
    for (size_t i = 0; at && i < COUNT(type); i++) {
        wrong->entry = first + i;
        wrong->got = entry(at, type, wrong->entry);
        wrong->want = want[i];
        if (wrong->got != wrong->want)
            return true;
    }
    return false;
}

/* Which one it is, when it is known that there is one. In double, which holds
 * every value exactly. */
static void find_first(const struct formula *f, enum kernel_type type,
                       const struct kernel_args *args, uint64_t seed_a, uint64_t seed_b,
                       struct entries_wrong *wrong)
{
    double dst[COUNT_MAX], a[COUNT_MAX], b[COUNT_MAX];
    size_t n = COUNT(type);
    struct stream sa, sb;

    stream_open(&sa, seed_a);
    stream_open(&sb, seed_b);
    for (size_t first = 0; first < args->bytes / ENTRIES_BLOCK * n; first += n) {
        next_block(&sa, type, a);
        next_block(&sb, type, b);
        for (size_t i = 0; i < n; i++)
            dst[i] = f->of_a * a[i] + f->of_b * b[i] + f->plus;
        wrong->array = ENTRIES_A;
        if (find(args->a, type, first, a, wrong))
            return;
        wrong->array = ENTRIES_B;
        if (find(args->b, type, first, b, wrong))
            return;
        wrong->array = ENTRIES_DST;
        if (find(args->dst, type, first, dst, wrong))
            return;
    }
    wrong->array = ENTRIES_GONE;
}

int entries_check(enum kernel_op op, enum kernel_type type, const struct kernel_args *args,
                  uint64_t seed_a, uint64_t seed_b, struct entries_wrong *wrong)
{
    const struct formula f = formula_of(op, args->scalar);
    uint64_t bits = type == KERNEL_F32 ? differ_f32(&f, args, seed_a, seed_b)
                                       : differ_f64(&f, args, seed_a, seed_b);

    if (!bits)
        return 0;
    find_first(&f, type, args, seed_a, seed_b, wrong);
    return -EBADMSG;
}

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

    *a = (struct arrays){.config = *config, .threads = team_size(team)};
    a->part_bytes = part_bytes(config, a->threads);
    if (!a->part_bytes) {
        snprintf(error, len,
                 "the size is less than one block of %u bytes for each array and thread",
                 KERNEL_BLOCK);
        return -ERANGE;
    }
    a->buffers = xcalloc(a->threads, sizeof(*a->buffers));
    a->parts = xcalloc(a->threads, sizeof(*a->parts));
    team_run(team, open_part, a, &ns, NULL);
    int err = first_error(a, error, len);
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
    uint64_t ns;

    if (loads(op) && !ceiling->read_form)
        ceiling->read_gbps = best_rate(a, team, list_loads, &ceiling->read_form);
    if (stored)
        ceiling->write_gbps = best_rate(a, team, list_stores, &ceiling->write_form);
    if (stored) /* over the data */
        team_run(team, fill_part, a, &ns, NULL);
    for (unsigned i = 0; !stored && i < a->threads; i++) /* the loops have arguments of their own */
        lay_out(a, &a->parts[i], a->buffers[i].at);
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

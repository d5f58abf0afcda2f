/* SPDX-License-Identifier: Apache-2.0 */
/* memory on the host: the hooks of the benchmark for CPUs, their caches and their memory. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/memory/arrays.h"
#include "benches/memory/memory_work.h"
#include "core/alloc.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"
#include "core/units.h"

enum { MEMORY_REGULAR, MEMORY_NT };

/* Words of options, which the hooks of hosts and of GPUs read, too. */
const char *const memory_ops[] = {"read", "write", "copy",    "scale",
                                  "add",  "triad", "latency", NULL};
const char *const memory_types[] = {"f32", "f64", NULL};
const char *const memory_pages[] = {"base", "thp", "hugetlb", NULL};
const char *const memory_isas[] = {"auto", "avx512", "avx2", "sse2", "neon", "generic", NULL};
const char *const memory_launches[] = {"both", "tuned", "plain", NULL};
const char *const memory_levels[] = {"any", "L1", "L2", "L3", "L4", "DRAM", NULL};

/* So many times the last cache serves a sixteenth of the loads at most. */
#define LATENCY_FAR_TIMES 16u

enum { LATENCY_RANDOM, LATENCY_BY_PAGE, LATENCY_CHAINS };

/*
 * Two chains of pointers through one buffer, followed in turns. The random one goes through all
 * lines and pays for the translation of nearly every load. The other goes page by page and pays for
 * one in 32. A timing test tells whether the hardware translates small pages: a guest cannot ask.
 */
struct host_latency {
    struct host_buffer buffer;
    struct chase chains[LATENCY_CHAINS];
    bool small_pages; /* the hardware's; of too little memory not told: false */
};

/* ---- Load latency ---- */

/* What there is room for, in whole pages, and what is to be said of it. */
static uint64_t chain_bytes(struct point *pt, const struct memory_params *p)
{
    uint64_t half = host_available() / 2, last = topo_last_cache_bytes(point_topo(pt));
    uint64_t bytes = p->size <= half ? p->size : half / CHASE_PAGE * CHASE_PAGE;
    char text[24];

    if (bytes < p->size)
        point_reason(pt, 0, "the chain has %s, half of the available memory, not what was asked",
                     units_format_size(bytes >> 20 << 20, text, sizeof(text)));
    if (last && bytes > last && bytes < LATENCY_FAR_TIMES * last)
        point_reason(pt, 0,
                     "the chain is %.2g times the last cache, which serves a part of the loads: "
                     "memory's own latency takes %d times",
                     (double)bytes / (double)last, LATENCY_FAR_TIMES);
    return bytes;
}

static int build(struct host_latency *l, struct point *pt, uint64_t bytes)
{
    struct chase_translation t;
    uint64_t seed = pt->common->seed;
    int err = chase_translation(l->buffer.at, bytes, seed, &t);

    if (err && err != -ERANGE)
        return err;
    /* Lines that a second-level cache cannot hold are slow by themselves, and would pass
     * for small pages. */
    bool told = !err && topo_cache_bytes(point_topo(pt), 2) >= CHASE_TRANSLATION_CACHE;

    l->small_pages = told && chase_pages_are_small(&t);
    point_column(pt, "hardware_pages", "%s", !told ? "" : l->small_pages ? "small" : "huge");
    err = chase_build(&l->chains[LATENCY_RANDOM], l->buffer.at, bytes, seed);
    /* Of one page there is no order of pages. */
    return err || bytes < 2 * CHASE_PAGE
               ? err
               : chase_build_pages(&l->chains[LATENCY_BY_PAGE], l->buffer.at, bytes, seed);
}

/* Allocates and builds. A remark if the chain is shorter than asked (half of the memory at most),
 * or less than 16 times the last cache. 0 or -errno, with the reason set. */
static int host_latency_open(struct host_latency *l, struct point *pt,
                             const struct memory_params *p, const struct placement *place)
{
    uint64_t bytes = chain_bytes(pt, p);
    char error[160] = "";
    int err = host_alloc(&l->buffer, point_topo(pt), bytes, (enum host_pages)p->pages,
                         place->memory_node, error, sizeof(error));

    if (err)
        return point_reason(pt, err, "%s", error);
    err = build(l, pt, bytes);
    if (err)
        return err;
    for (int i = 0; i < LATENCY_CHAINS; i++)
        if (l->chains[i].order &&
            chase_look(&l->chains[i])) /* a walk along it would end anywhere */
            return point_reason(pt, -EBADMSG,
                                "wrong data: a line of the chain does not lead to the next");
    return 0;
}

struct hops {
    struct chase *chase;
    uint64_t n;
};

static void run_hops(void *arg, unsigned thread, unsigned threads)
{
    struct hops *hops = arg;

    (void)thread;
    (void)threads;
    chase_run(hops->chase, hops->n);
}

/* ---- The hooks ---- */

struct state {
    struct memory_params own;           /* the size that --level chose is in it */
    const struct memory_params *params; /* = &own */
    struct placement place;
    struct team *team;
    struct arrays arrays;
    struct host_latency latency;
    kernel_fn *kernel;
    uint64_t runs;
    bool wrong, fills;             /* stores read the line first that they fill */
    struct arrays_ceiling ceiling; /* before the samples */
    char keys[2][CEILING_PLACE];   /* places of loads and of stores: struct memory_session */
    char threads_text[24];
};

/* So many times the last cache (64 MiB where that is hidden), and at most a quarter of the
 * memory. */
static uint64_t far_bytes(const struct topo *topo, unsigned times)
{
    uint64_t last = topo ? topo_last_cache_bytes(topo) : 0, most = host_available() / 4;

    last = times * (last ? last : (uint64_t)64 << 20);
    last = last < most ? last : most;
    return last < 65536 ? 65536 : last;
}

static const char *sizes_up_to(unsigned times, char *text, size_t len)
{
    struct topo *topo = NULL;
    char size[24];

    topo_open(&topo); /* NULL where it fails */
    snprintf(text, len, "16K..%s", units_format_size(far_bytes(topo, times), size, sizeof(size)));
    topo_close(topo);
    return text;
}

const char *memory_host_sizes(void)
{
    static char text[48]; /* made once, then read only */

    return sizes_up_to(4, text, sizeof(text));
}

const char *memory_host_latency_sizes(void)
{
    static char text[48]; /* made once, then read only */

    return sizes_up_to(LATENCY_FAR_TIMES, text, sizeof(text));
}

/* Columns that say nothing here are empty; threads are those that ran, not "0". */
static void set_columns(struct series *s, struct state *st, bool reads_only, bool latency)
{
    snprintf(st->threads_text, sizeof(st->threads_text), "%u", st->place.threads);
    s->set[0].column = "threads";
    s->set[0].value = st->threads_text;
    if (reads_only) {
        s->set[1].column = "stores";
        s->set[1].value = "";
    }
    if (latency) {
        s->set[2].column = "dtype";
        s->set[2].value = "";
    }
}

static void set_level(struct point *pt, struct state *st, uint64_t set_bytes)
{
    const char *level = cache_level(point_topo(pt), st->place.cpus, st->place.threads,
                                    set_bytes / st->place.threads);
    bool allocates = st->params->op != MEMORY_LATENCY &&
                     kernel_stores((enum kernel_op)st->params->op) &&
                     st->params->stores == MEMORY_REGULAR && strcmp(level, "L1") != 0;

    point_option(pt, "level", "%s", level);
    point_column(pt, "working_set", "%llu", (unsigned long long)set_bytes);
    point_column(pt, "write_allocate", "%s", allocates ? "yes" : "no");
    st->fills = allocates && *level; /* where a guest hides the caches the limit errs upwards */
}

/* What is known of loads (or stores) alone: their rate and the number of the form
 * that reached it. */
static void recall(const struct ceilings *known, const char *key, double *gbps, unsigned *form)
{
    char form_key[CEILING_PLACE + 8];
    double number;

    snprintf(form_key, sizeof(form_key), "%s/form", key);
    if (!ceilings_find(known, key, gbps) && !ceilings_find(known, form_key, &number))
        *form = (unsigned)number;
}

static void remember(struct ceilings *known, const char *key, double gbps, unsigned form)
{
    char form_key[CEILING_PLACE + 8];

    snprintf(form_key, sizeof(form_key), "%s/form", key);
    if (!form || !*key)
        return;
    ceilings_raise(known, key, gbps);
    ceilings_raise(known, form_key, form);
}

static void remember_both(struct point *pt, const struct state *st, const struct arrays_ceiling *c)
{
    struct ceilings *known = &((struct memory_session *)pt->bench_state)->ceilings;

    remember(known, st->keys[0], c->read_gbps, c->read_form);
    remember(known, st->keys[1], c->write_gbps, c->write_form);
}

static double limit_of(const struct state *st, const struct arrays_ceiling *c)
{
    return arrays_limit((enum kernel_op)st->params->op, st->fills, c);
}

/* Looks up or measures what loads alone and stores alone reach in the same place. */
static void find_limit(struct point *pt, struct state *st)
{
    struct ceilings *known = &((struct memory_session *)pt->bench_state)->ceilings;
    const struct memory_params *p = st->params;
    struct arrays_ceiling *c = &st->ceiling;
    const char *paths[] = {"loads", p->stores == MEMORY_NT ? "nt stores" : "regular stores"};

    for (int k = 0; k < 2; k++)
        ceiling_place(st->keys[k], paths[k], st->place.cpus, st->place.threads,
                      "%llu bytes, memory %d, pages %s", (unsigned long long)p->size,
                      st->place.memory_node, memory_pages[p->pages]);
    recall(known, st->keys[0], &c->read_gbps, &c->read_form);
    recall(known, st->keys[1], &c->write_gbps, &c->write_form);
    arrays_ceiling(&st->arrays, st->team, c);
    remember_both(pt, st, c);
}

static void set_parts(const struct state *st, const struct arrays_ceiling *c, struct series *s)
{
    s->parts = arrays_limit_parts((enum kernel_op)st->params->op, st->fills, c);
    memcpy(s->parts.place, st->keys, sizeof(st->keys));
    s->limit = limit_of_parts(&s->parts);
}

/* Loads alone and stores alone are what their ceilings are made of. */
static void set_limit(struct point *pt, const struct state *st)
{
    static const char *const sources[] = {
        [KERNEL_READ] = "reference: best loads at this size and place",
        [KERNEL_WRITE] = "reference: best stores at this size and place",
    };
    enum kernel_op op = (enum kernel_op)st->params->op;
    struct series *s = &pt->series[0];

    set_parts(st, &st->ceiling, s);
    s->limit_kind = LIMIT_MEASURED;
    s->limit_source = "measured: best loads and best stores at this size and place, at the same "
                      "time";
    if (st->fills)
        s->limit_source = "measured: best loads, the lines that stores fill among them, and best "
                          "stores at this size and place, at the same time";
    if ((size_t)op < sizeof(sources) / sizeof(*sources) && sources[op]) {
        s->limit_kind = LIMIT_REFERENCE;
        s->limit_source = sources[op];
    }
}

static int setup_bandwidth(struct point *pt, struct state *st)
{
    const struct memory_params *p = st->params;
    struct memory_session *session = pt->bench_state;

    if (!session->isa)
        session->isa = host_isa_best();
    const struct host_isa *isa = p->isa ? host_isa_find(memory_isas[p->isa]) : session->isa;
    struct arrays_config config = {.topo = point_topo(pt),
                                   .op = (enum kernel_op)p->op,
                                   .type = (enum kernel_type)p->dtype,
                                   .bytes = p->size,
                                   .memory = (enum host_pages)p->pages,
                                   .node = st->place.memory_node,
                                   .nt = p->stores == MEMORY_NT,
                                   .seed = pt->common->seed};
    char error[160];

    if (!isa)
        return point_reason(pt, -EOPNOTSUPP, "this CPU has no '%s'", memory_isas[p->isa]);
    point_option(pt, "isa", "%s", isa->name);
    point_column(pt, "bytes_rule", "stream");
    int err = arrays_open(&st->arrays, &config, st->team, error, sizeof(error));
    if (err)
        return point_reason(pt, err == -ERANGE ? -EOPNOTSUPP : err, "%s", error);
    set_level(pt, st, arrays_set_bytes(&st->arrays));
    uint64_t first = topo_cache_bytes(point_topo(pt), 1);
    bool near = arrays_set_bytes(&st->arrays) / st->place.threads <= (first ? first : 32768);
    st->kernel = isa->kernels[p->op][p->dtype][p->stores == MEMORY_NT ? KERNEL_NT
                                               : near                 ? KERNEL_NEAR
                                                                      : KERNEL_FAR];
    if (!st->kernel)
        return point_reason(pt, -EOPNOTSUPP, "'%s' has no non-temporal stores", isa->name);
    find_limit(pt, st);
    pt->series[0].quantity = (double)arrays_set_bytes(&st->arrays); /* each array once a pass */
    set_limit(pt, st);
    if (p->inject == MEMORY_CORRUPT && !kernel_stores(config.op))
        arrays_spoil(&st->arrays);
    return 0;
}

static int setup_latency(struct point *pt, struct state *st)
{
    const struct memory_params *p = st->params;
    int err = host_latency_open(&st->latency, pt, p, &st->place);

    if (err)
        return err;
    point_option(pt, "isa", "%s", "");
    if (st->latency.chains[LATENCY_BY_PAGE].order)
        set_columns(point_series(pt, "latency_page_by_page", "ns", 0), st, true, true);
    set_level(pt, st, st->latency.chains[LATENCY_RANDOM].lines * CHASE_LINE);
    if (p->inject == MEMORY_CORRUPT)
        st->latency.chains[LATENCY_RANDOM].hops++;
    return 0;
}

/* Bytes for each thread that a cache serves: 8 times the cache below, so that little is served by
 * that one, but half of what the thread has of this one at most, which neighbours and other guests
 * use, too. Caches that are close to one another leave 1.5 times the one below and three quarters
 * of this one. 0 where no size is both. */
static uint64_t level_set_bytes(const struct topo *topo, const struct placement *place, int level)
{
    uint64_t here = cache_share(topo, (unsigned)level, place->cpus, place->threads), below = 0;

    for (int k = level - 1; k > 0 && !below; k--)
        below = cache_share(topo, (unsigned)k, place->cpus, place->threads);
    uint64_t bytes = below && 8 * below < here / 2 ? 8 * below : here / 2;
    bytes = bytes > below + below / 2 ? bytes : below + below / 2;
    return bytes <= here - here / 4 ? bytes / 64 * 64 : 0;
}

static int refuse_level(struct point *pt, const struct state *st)
{
    char here[24], last[24];
    int level = st->own.level;
    uint64_t share =
        cache_share(point_topo(pt), (unsigned)level, st->place.cpus, st->place.threads);

    if (!share)
        return point_reason(pt, -EOPNOTSUPP, "no %s cache is visible here", memory_levels[level]);
    uint64_t below =
        cache_share(point_topo(pt), (unsigned)level - 1, st->place.cpus, st->place.threads);
    return point_reason(pt, -EOPNOTSUPP,
                        "no size is served by %s alone: a thread has %s of it, and %s of %s; fewer "
                        "--threads have more each",
                        memory_levels[level], units_format_size(share, here, sizeof(here)),
                        units_format_size(below, last, sizeof(last)), memory_levels[level - 1]);
}

/* The size for --level. */
static int choose_size(struct point *pt, struct state *st)
{
    struct topo *topo = point_topo(pt);
    bool latency = st->own.op == MEMORY_LATENCY, cache = st->own.level < MEMORY_DRAM;

    if (st->own.level <= MEMORY_ANY_LEVEL)
        return 0;
    st->own.size = cache ? st->place.threads * level_set_bytes(topo, &st->place, st->own.level)
                         : far_bytes(topo, latency ? LATENCY_FAR_TIMES : 4);
    if (!st->own.size)
        return refuse_level(pt, st);
    point_option(pt, "size", "%llu", (unsigned long long)st->own.size);
    if (cache)
        return 0;
    if (st->own.size < 2 * topo_last_cache_bytes(topo))
        return point_reason(pt, -EOPNOTSUPP,
                            "not enough memory: a quarter of what is available is less than twice "
                            "the last cache");
    if (!topo_last_cache_bytes(topo))
        point_reason(pt, 0,
                     "no cache is visible: this size is taken to be far beyond the last one");
    return 0;
}

int host_memory_possible(struct point *pt)
{
    const struct memory_params *p = pt->params;
    bool latency = p->op == MEMORY_LATENCY;
    struct placement place;
    char error[160];

    if (latency && p->threads > 1)
        return point_reason(pt, -EOPNOTSUPP, "latency is that of one thread: --threads 1");
    if (p->memory_node == PLACEMENT_REMOTE && topo_nodes(point_topo(pt)) < 2)
        return 0;
    int err = placement_resolve(point_topo(pt), (unsigned)p->threads, p->node, p->memory_node,
                                &place, error, sizeof(error));
    placement_release(&place);
    return err ? point_reason(pt, err, "%s", error) : 0;
}

static int setup(struct point *pt)
{
    const struct memory_params *p = pt->params;
    bool latency = p->op == MEMORY_LATENCY;
    struct state *st = pt->state = xcalloc(1, sizeof(*st));
    struct topo *topo = point_topo(pt);
    char error[160];

    if (!topo)
        return -EIO;
    st->own = *p;
    st->params = p = &st->own;
    int err = placement_resolve(topo, latency ? 1 : (unsigned)p->threads, p->node, p->memory_node,
                                &st->place, error, sizeof(error));
    struct series *s =
        latency ? point_series(pt, "latency", "ns", 0) : point_series(pt, "bandwidth", "GB/s", 0);
    point_option(pt, "launch", "%s", "");
    point_option(pt, "engine", "%s", "");
    if (err)
        return point_reason(pt, err, "%s", error);
    err = choose_size(pt, st);
    if (err)
        return err;
    uint64_t available = host_available();
    if (latency && p->threads > 1)
        return point_reason(pt, -EOPNOTSUPP, "latency is that of one thread: --threads 1");
    if (p->size > available - available / 8)
        return point_reason(pt, -EOPNOTSUPP, "not enough memory: %llu MiB are available",
                            (unsigned long long)(available >> 20));
    set_columns(s, st, latency || !kernel_stores((enum kernel_op)p->op), latency);
    err = team_open(&st->team, topo, st->place.cpus, st->place.threads);
    if (err)
        return point_reason(pt, err, "threads could not be started and bound: %s", strerror(-err));
    return latency ? setup_latency(pt, st) : setup_bandwidth(pt, st);
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;

    if (st->params->op == MEMORY_LATENCY) {
        for (int i = 0; i < LATENCY_CHAINS; i++) {
            struct hops hops = {&st->latency.chains[i], inner};
            if (st->latency.chains[i].order)
                team_run(st->team, run_hops, &hops, &ns[i], NULL);
        }
        return 0;
    }
    /* A scalar of its own for every sample: what the check finds was written by the last one. */
    arrays_time(&st->arrays, st->team, st->kernel, inner, (double)(3 + st->runs++ % 5), ns);
    if (st->params->op == KERNEL_READ && !arrays_sums_right(&st->arrays))
        st->wrong = true;
    return 0;
}

/* The ceilings once more, when nothing needs the arrays any more. The best of both counts, here and
 * for what is measured next in this place; where the two disagree, the machine changed meanwhile:
 * the row has both. */
static void confirm_limit(struct point *pt, struct state *st)
{
    struct arrays_ceiling again, best;
    struct series *s = &pt->series[0];

    arrays_ceiling_again(&st->arrays, st->team, &st->ceiling, &again);
    s->limit_before = limit_of(st, &st->ceiling);
    s->limit_after = limit_of(st, &again);
    best = arrays_ceiling_best(&st->ceiling, &again);
    set_parts(st, &best, s);
    remember_both(pt, st, &best);
}

static int check(struct point *pt)
{
    struct state *st = pt->state;
    char error[160] = "";

    for (int i = 0; st->params->op == MEMORY_LATENCY && i < LATENCY_CHAINS; i++)
        if (st->latency.chains[i].order && chase_check(&st->latency.chains[i]))
            return point_reason(pt, -EBADMSG, "wrong data: the chain of pointers leads elsewhere");
    if (st->params->op == MEMORY_LATENCY)
        return 0;
    if (st->params->inject == MEMORY_CORRUPT && st->params->op != KERNEL_READ)
        arrays_spoil(&st->arrays);
    int err = arrays_check(&st->arrays, st->team, error, sizeof(error));
    if (!err && st->wrong)
        err = point_reason(pt, -EBADMSG, "wrong data: a sample's sum was not right");
    else if (err)
        point_reason(pt, err, "%s", error);
    confirm_limit(pt, st);
    return err;
}

static int evidence(struct point *pt)
{
    struct state *st = pt->state;
    struct host_where where;
    bool latency = st->params->op == MEMORY_LATENCY;

    host_where(latency ? &st->latency.buffer : st->arrays.buffers, latency ? 1 : st->arrays.threads,
               &where);
    host_where_text(&where, pt->evidence, sizeof(pt->evidence));
    double share = host_huge_share(&where);
    if (st->params->pages != HOST_PAGES_BASE && share < 0.95)
        point_reason(pt, 0, "asked for '%s' pages, but only %.3g %% of the memory is on huge ones",
                     memory_pages[st->params->pages], 100 * share);
    if (latency && st->latency.small_pages && share >= 0.95)
        point_reason(pt, 0,
                     "huge pages of this system only: the hardware translates small ones, "
                     "and `latency` pays for that");
    return 0;
}

static void teardown(struct point *pt)
{
    struct state *st = pt->state;

    if (!st)
        return;
    arrays_close(&st->arrays);
    for (int i = 0; i < LATENCY_CHAINS; i++)
        chase_release(&st->latency.chains[i]);
    host_free(&st->latency.buffer);
    team_close(st->team);
    placement_release(&st->place);
    free(st);
}

const struct device_work host_memory_work = {
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
};

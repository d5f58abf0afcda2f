/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmark copy does on the host: see copy_work.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/copy/copy_work.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/host_kernels.h"
#include "core/hw/topo.h"
#include "core/rng.h"
#include "core/row.h"

/* ---- What is timed: messages over lanes ---- */

static uint64_t lane_seed(uint64_t seed, unsigned lane)
{
    return 2 * seed + lane;
}

int transfer_alloc(struct transfer *t, const struct topo *topo, enum host_pages memory, char *error,
                   size_t len)
{
    bool bind = topo_nodes(topo) > 1; /* else there is no need, and containers may refuse */
    int err = 0;

    for (unsigned i = 0; !err && i < t->used; i++) {
        int from = bind ? (int)t->ends[i].index : -1, to = bind ? (int)t->ends[1 - i].index : -1;
        err = host_alloc(&t->lane[i].src, topo, t->bytes, memory, from, error, len);
        if (!err)
            err = host_alloc(&t->lane[i].dst, topo, t->bytes, memory, to, error, len);
    }
    return err;
}

/* What an end sends from and receives in; NULL where it does not. */
static void *transfer_out(const struct transfer *t, unsigned end)
{
    return end < t->used ? t->lane[end].src.at : NULL;
}

static void *transfer_in(const struct transfer *t, unsigned end)
{
    return 1 - end < t->used ? t->lane[1 - end].dst.at : NULL;
}

/* Touches an end's memory: the pattern of `seed` to be sent, something else to be overwritten. */
static void transfer_fill(const struct transfer *t, unsigned end, uint64_t seed)
{
    if (transfer_out(t, end))
        pattern_fill(transfer_out(t, end), t->bytes, lane_seed(seed, end));
    if (transfer_in(t, end))
        memset(transfer_in(t, end), 0x55, t->bytes);
}

void transfer_where(const struct transfer *t, unsigned end, struct host_where *where)
{
    struct host_buffer buffers[2];
    size_t n = 0;

    if (transfer_out(t, end))
        buffers[n++] = t->lane[end].src;
    if (transfer_in(t, end))
        buffers[n++] = t->lane[1 - end].dst;
    host_where(buffers, n, where);
}

static void copy_lane(void *arg, unsigned thread, unsigned threads)
{
    struct transfer *t = arg;

    (void)threads;
    copy_by_memcpy(transfer_in(t, 1 - thread), transfer_out(t, thread), t->bytes, t->count);
}

int transfer_open(struct transfer *t, const struct topo *topo, const unsigned cpus[2],
                  uint64_t seed)
{
    transfer_fill(t, 0, seed);
    transfer_fill(t, 1, seed);
    return team_open(&t->team, topo, cpus, t->used);
}

void transfer_close(struct transfer *t)
{
    team_close(t->team);
    for (unsigned i = 0; i < t->used; i++) {
        host_free(&t->lane[i].src);
        host_free(&t->lane[i].dst);
    }
}

void transfer_run(struct transfer *t, uint64_t count, uint64_t ns[3])
{
    uint64_t each[2], all;

    t->count = count;
    t->number++;
    for (unsigned end = 0; end < t->used; end++)
        pattern_stamp(transfer_out(t, end), t->bytes, t->number + (t->corrupt && !end ? 1 : 0));
    team_run(t->team, copy_lane, t, &all, each);
    for (unsigned end = 0; end < t->used; end++)
        t->wrong +=
            pattern_check_stamp(transfer_in(t, 1 - end), t->bytes, t->number) != PATTERN_RIGHT;
    ns[0] = each[0];
    if (t->used == 2) {
        ns[1] = each[1];
        ns[2] = all;
    }
}

void transfer_verify(struct transfer *t, uint64_t seed)
{
    uint64_t ns;

    transfer_fill(t, 0, seed);
    transfer_fill(t, 1, seed);
    t->count = 1;
    team_run(t->team, copy_lane, t, &ns, NULL);
    for (unsigned end = 0; end < 2; end++)
        if (transfer_in(t, end))
            t->wrong += pattern_check(transfer_in(t, end), t->bytes, lane_seed(seed, 1 - end)) !=
                        PATTERN_RIGHT;
}

/* ---- A point ---- */

struct state {
    const struct copy_params *params;
    enum host_pages memory;
    struct transfer transfer;
    unsigned cpus[2]; /* of the ends */
    uint64_t runs;
};

/* A CPU for each end, two different ones where there are; a node without CPUs is served by any. */
static int choose_cpus(struct point *pt, struct state *st)
{
    const struct topo *topo = point_topo(pt);
    int from = (int)st->transfer.ends[0].index, to = (int)st->transfer.ends[1].index;

    if (from == to && !topo_spread(topo, from, 2, st->cpus))
        return 0;
    for (int i = 0; i < 2; i++)
        if (topo_spread(topo, (int)st->transfer.ends[i].index, 1, &st->cpus[i]) &&
            topo_spread(topo, -1, 1, &st->cpus[i]))
            return -ERANGE;
    if (st->cpus[0] == st->cpus[1] && st->transfer.used == 2)
        point_reason(pt, 0, "both ends share CPU %u: no other may be used there", st->cpus[0]);
    return 0;
}

/* Copies by one core, from one end's memory to the other's. */
static int measure_ceiling(struct point *pt, const struct state *st, unsigned from, double *gbps)
{
    struct transfer t = {.ends = {st->transfer.ends[from], st->transfer.ends[1 - from]},
                         .bytes = st->transfer.bytes,
                         .used = 1};
    char error[160] = "";
    int err = topo_bind_self(point_topo(pt), st->cpus[from]);

    if (err)
        snprintf(error, sizeof(error), "cannot bind this thread to CPU %u: %s", st->cpus[from],
                 strerror(-err));
    else
        err = transfer_alloc(&t, point_topo(pt), st->memory, error, sizeof(error));
    if (!err) {
        transfer_fill(&t, 0, pt->common->seed);
        transfer_fill(&t, 1, pt->common->seed);
        *gbps = copy_ceiling(transfer_in(&t, 1), transfer_out(&t, 0), t.bytes);
    }
    transfer_close(&t);
    return err ? point_reason(pt, err, "%s", error[0] ? error : strerror(-err)) : 0;
}

static int find_ceiling(struct point *pt, const struct state *st, unsigned from, char *place,
                        double *gbps)
{
    struct ceilings *ceilings = &((struct copy_session *)pt->bench_state)->ceilings;

    ceiling_place(place, "copies by one core", &st->cpus[from], 1,
                  "%zu bytes, from node %u to node %u, memory %d", st->transfer.bytes,
                  st->transfer.ends[from].index, st->transfer.ends[1 - from].index, st->memory);
    if (!ceilings_find(ceilings, place, gbps))
        return 0;
    int err = measure_ceiling(pt, st, from, gbps);
    if (!err)
        ceilings_add(ceilings, place, *gbps);
    return err;
}

/* The rows: one-way; or forward, reverse and, of bandwidths, their sum. */
static void choose_series(struct point *pt, const struct copy_params *p)
{
    double bytes = (double)p->size;

    if (p->direction == COPY_ONE_WAY) {
        copy_series(pt, "one-way", bytes);
        return;
    }
    copy_series(pt, "forward", bytes);
    copy_series(pt, "reverse", bytes);
    if (p->metric == COPY_BANDWIDTH)
        copy_series(pt, "sum", 2 * bytes);
}

static int set_limits(struct point *pt, const struct state *st)
{
    double gbps[3] = {0};
    int err = 0;

    for (unsigned i = 0; !err && i < st->transfer.used; i++) {
        err = find_ceiling(pt, st, i, pt->series[i].parts.place[0], &gbps[i]);
        gbps[2] += gbps[i];
    }
    if (pt->n_series == 3) /* of both, the sum: a place of its own */
        ceiling_place(pt->series[2].parts.place[0], "copies by two cores, added", st->cpus, 2,
                      "%zu bytes, nodes %u and %u, memory %d", st->transfer.bytes,
                      st->transfer.ends[0].index, st->transfer.ends[1].index, st->memory);
    for (size_t i = 0; i < pt->n_series; i++) {
        pt->series[i].limit = pt->series[i].parts.rate[0] = gbps[i];
        pt->series[i].parts.share = 1;
        pt->series[i].limit_kind = LIMIT_REFERENCE;
        pt->series[i].limit_source =
            i == 2 ? "reference: the two directions' best copies by one core, added"
                   : "reference: best copy by one core within a process, same size";
    }
    return err;
}

static int find_ends(struct point *pt, struct state *st)
{
    int err = copy_ends(pt, st->transfer.ends);

    if (err)
        return err;
    uint64_t needed = st->transfer.bytes * 2 * st->transfer.used, available = host_available();
    if (needed > available - available / 8)
        return point_reason(pt, -EOPNOTSUPP, "%llu MiB are needed, %llu available",
                            (unsigned long long)(needed >> 20),
                            (unsigned long long)(available >> 20));
    return choose_cpus(pt, st);
}

/* The host has nothing for parameters that are of GPUs alone. */
int host_copy_possible(struct point *pt)
{
    static const struct bench_rule rules[] = {
        {"engine=ce,sm", "a GPU's engine takes a GPU at one end: --source or --destination cuda:0"},
        {"memory=pinned,pinned-huge,wc,managed",
         "this kind of memory comes from a GPU's driver: it takes a GPU at one end"},
        {"metric=load-latency",
         "loads are those of a GPU: of the host's memory this benchmark has none"},
        {NULL, NULL}};

    return point_refuse(pt, rules);
}

/* What the host takes of parameters that were meant for GPUs too. */
static int take_params(struct point *pt, struct state *st)
{
    static const enum host_pages kinds[] = {[COPY_MEMORY_AUTO] = HOST_PAGES_BASE,
                                            [COPY_PAGEABLE] = HOST_PAGES_BASE,
                                            [COPY_HUGE] = HOST_PAGES_THP,
                                            [COPY_HUGETLB] = HOST_PAGES_HUGETLB};
    const struct copy_params *p = st->params;

    point_option(pt, "engine", "%s",
                 copy_engines[p->engine == COPY_ENGINE_AUTO ? COPY_MEMCPY : p->engine]);
    if (p->memory == COPY_MEMORY_AUTO)
        point_option(pt, "memory", "pageable");
    int err = host_copy_possible(pt);
    if (err)
        return err;
    st->memory = kinds[p->memory];
    st->transfer.bytes = p->size;
    st->transfer.used = p->direction == COPY_BOTH ? 2 : 1;
    return 0;
}

static int setup(struct point *pt)
{
    const struct copy_params *p = pt->params;
    struct state *st = pt->state = xcalloc(1, sizeof(*st));
    char error[160] = "";

    if (!point_topo(pt))
        return -EIO;
    st->params = p;
    choose_series(pt, p);
    int err = take_params(pt, st);
    if (err || (err = find_ends(pt, st)) != 0)
        return err;
    if (p->metric == COPY_LATENCY)
        pt->sample_ns = 0;
    else if ((err = set_limits(pt, st)) != 0)
        return err;
    err = transfer_alloc(&st->transfer, point_topo(pt), st->memory, error, sizeof(error));
    if (err)
        return point_reason(pt, err, "%s", error);
    st->transfer.corrupt = p->inject == COPY_CORRUPT;
    err = transfer_open(&st->transfer, point_topo(pt), st->cpus, pt->common->seed);
    return err ? point_reason(pt, err, "the threads that copy cannot be made: %s", strerror(-err))
               : 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;

    transfer_run(&st->transfer, inner, ns);
    st->runs++;
    return 0;
}

static int check(struct point *pt)
{
    struct state *st = pt->state;

    transfer_verify(&st->transfer, pt->common->seed + 1);
    if (st->transfer.wrong)
        return point_reason(pt, -EBADMSG, "wrong data in %llu of %llu messages that were looked at",
                            (unsigned long long)st->transfer.wrong,
                            (unsigned long long)(st->runs + 1) * st->transfer.used);
    return 0;
}

static int evidence(struct point *pt)
{
    struct state *st = pt->state;
    char text[96];

    if (st->transfer.used == 2)
        snprintf(pt->evidence, sizeof(pt->evidence), "forward by cpu%u, back by cpu%u", st->cpus[0],
                 st->cpus[1]);
    else
        snprintf(pt->evidence, sizeof(pt->evidence), "by cpu%u", st->cpus[0]);
    if (st->params->metric == COPY_LATENCY) { /* the remark is the same in all launches */
        point_reason(pt, 0, "one way, and one reading of the clock is in it");
        evidence_add(pt->evidence, sizeof(pt->evidence), "a reading of the clock takes %.3g ns",
                     clock_measure().cost_ns);
    }
    for (unsigned end = 0; end < 2; end++) {
        struct host_where where;

        transfer_where(&st->transfer, end, &where);
        double share = host_huge_share(&where);
        evidence_add(pt->evidence, sizeof(pt->evidence), "%s: %s", end ? "destination" : "source",
                     host_where_text(&where, text, sizeof(text)));
        if (st->memory == HOST_PAGES_THP && share < 0.95)
            point_reason(pt, 0, "asked for huge pages, but only %.3g %% of the %s is on them",
                         100 * share, end ? "destination" : "source");
    }
    return 0;
}

static void teardown(struct point *pt)
{
    struct state *st = pt->state;

    if (!st)
        return;
    transfer_close(&st->transfer);
    free(st);
}

const struct device_work host_copy_work = {
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
};

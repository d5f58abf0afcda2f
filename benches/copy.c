/* SPDX-License-Identifier: Apache-2.0 */
/* copy: bytes from one place to another, within a process and between two. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bench.h"
#include "core/ceilings.h"
#include "core/device/copy_ceiling.h"
#include "core/device/lanes.h"
#include "core/evidence.h"
#include "core/transfer.h"

enum { ONE_WAY, BOTH };
enum { BANDWIDTH, LATENCY };

static const char *const engines[] = {"memcpy", "shm", "pipe", "cma", "cma-write", NULL};
static const struct transport_ops *const transports[] = {NULL, &transport_shm, &transport_pipe,
                                                         &transport_cma, &transport_cma_write};
static const char *const directions[] = {"one-way", "both", NULL};
static const char *const memories[] = {"pageable", "huge", NULL};
static const enum device_memory memory_kinds[] = {DEVICE_BASE, DEVICE_THP};
static const char *const metrics[] = {"bandwidth", "latency", NULL};
static const char *const injects[] = {"none", "corrupt", "peer-dies", NULL}; /* transfer_fault */

struct params {
    int engine, direction, memory, metric, inject;
    const char *source, *destination;
    uint64_t size;
};

static const char *all_nodes(void);

#define AT(field) .offset = offsetof(struct params, field)

static const struct opt options[] = {
    {.name = "engine",
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN,
     AT(engine),
     .def = "memcpy,shm,pipe,cma",
     .choices = engines,
     .help = "memcpy: in one process; the others: between two, cma by process_vm_readv, cma-write "
             "by process_vm_writev"},
    {.name = "source",
     .type = OPT_STRING,
     .flags = OPT_LIST | OPT_COLUMN,
     AT(source),
     .make_default = all_nodes,
     .arg = "nodeN",
     .help = "where the bytes come from"},
    {.name = "destination",
     .type = OPT_STRING,
     .flags = OPT_LIST | OPT_COLUMN,
     AT(destination),
     .make_default = all_nodes,
     .arg = "nodeN",
     .help = "where they go"},
    {.name = "direction",
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN,
     AT(direction),
     .def = "one-way",
     .choices = directions,
     .help = "both: at once, with a row for forward, reverse and sum"},
    {.name = "memory",
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN,
     AT(memory),
     .def = "pageable",
     .choices = memories,
     .help = "kind of memory; huge: transparent huge pages"},
    {.name = "metric",
     .type = OPT_CHOICE,
     .flags = OPT_LIST,
     AT(metric),
     .def = "bandwidth",
     .choices = metrics,
     .help = "latency: one message a sample, from the call to its arrival"},
    {.name = "size",
     .letter = 's',
     .type = OPT_SIZE,
     .flags = OPT_LIST | OPT_COLUMN,
     AT(size),
     .def = "8,1K,64K,1M,16M,256M",
     .min = 1,
     .help = "of one message"},
    {.name = "inject",
     .type = OPT_CHOICE,
     .flags = OPT_HIDDEN,
     AT(inject),
     .def = "none",
     .choices = injects,
     .help = "for tests: spoil the data, or let the peer die"},
    {.name = NULL},
};

struct state {
    const struct params *params;
    struct lanes lanes;
    unsigned cpus[2]; /* of the ends */
    struct transfer *transfer;
    uint64_t runs, above_limit;
};

static const char *all_nodes(void)
{
    static char text[256]; /* made once, then read only */
    struct topo *topo = NULL;
    size_t at = 0;

    if (topo_open(&topo))
        return "node0";
    for (unsigned i = 0; i < topo_nodes(topo) && at + 16 < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%snode%u", at ? "," : "",
                               topo_node_id(topo, i));
    topo_close(topo);
    return text;
}

/* A CPU for each end, two different ones where there are; a node without CPUs is served by any. */
static int choose_cpus(struct point *pt, struct state *st)
{
    const struct topo *topo = point_topo(pt);
    int from = (int)st->lanes.ends[0].index, to = (int)st->lanes.ends[1].index;

    if (from == to && !topo_spread(topo, from, 2, st->cpus))
        return 0;
    for (int i = 0; i < 2; i++)
        if (topo_spread(topo, (int)st->lanes.ends[i].index, 1, &st->cpus[i]) &&
            topo_spread(topo, -1, 1, &st->cpus[i]))
            return -ERANGE;
    if (st->cpus[0] == st->cpus[1] && (st->params->engine || st->lanes.used == 2))
        point_reason(pt, 0, "both ends share CPU %u: no other may be used there", st->cpus[0]);
    return 0;
}

/* Copies by one core, from one end's memory to the other's. */
static int measure_ceiling(struct point *pt, const struct state *st, unsigned from, double *gbps)
{
    struct lanes l = {.ends = {st->lanes.ends[from], st->lanes.ends[1 - from]},
                      .bytes = st->lanes.bytes,
                      .used = 1};
    char error[160] = "";
    int err = topo_bind_self(point_topo(pt), st->cpus[from]);

    if (!err)
        err =
            lanes_alloc(&l, point_topo(pt), memory_kinds[st->params->memory], error, sizeof(error));
    if (!err) {
        lanes_fill(&l, 0, pt->common->seed);
        lanes_fill(&l, 1, pt->common->seed);
        *gbps = copy_ceiling(lanes_in(&l, 1), lanes_out(&l, 0), l.bytes);
    }
    lanes_free(&l);
    return err ? point_reason(pt, err, "%s", error[0] ? error : strerror(-err)) : 0;
}

static int find_ceiling(struct point *pt, const struct state *st, unsigned from, double *gbps)
{
    struct ceilings *ceilings = pt->bench_state;
    char key[128];

    snprintf(key, sizeof(key), "%zu/%u/%u/%d", st->lanes.bytes, st->lanes.ends[from].index,
             st->lanes.ends[1 - from].index, st->params->memory);
    if (!ceilings_find(ceilings, key, gbps))
        return 0;
    int err = measure_ceiling(pt, st, from, gbps);
    return err ? err : ceilings_add(ceilings, key, *gbps);
}

static void add_series(struct point *pt, const char *direction, double bytes)
{
    bool latency = ((const struct params *)pt->params)->metric == LATENCY;
    struct series *s = latency ? point_series(pt, "latency", "us", bytes)
                               : point_series(pt, "bandwidth", "GB/s", bytes);

    s->set[0].column = "direction";
    s->set[0].value = direction;
}

/* The rows: one-way; or forward, reverse and, of bandwidths, their sum. */
static void choose_series(struct point *pt, const struct params *p)
{
    double bytes = (double)p->size;

    if (p->direction == ONE_WAY) {
        add_series(pt, "one-way", bytes);
        return;
    }
    add_series(pt, "forward", bytes);
    add_series(pt, "reverse", bytes);
    if (p->metric == BANDWIDTH)
        add_series(pt, "sum", 2 * bytes);
}

static int set_limits(struct point *pt, const struct state *st)
{
    double gbps[3] = {0};
    int err = 0;

    for (unsigned i = 0; !err && i < st->lanes.used; i++) {
        err = find_ceiling(pt, st, i, &gbps[i]);
        gbps[2] += gbps[i];
    }
    for (size_t i = 0; i < pt->n_series; i++) {
        pt->series[i].limit = gbps[i];
        pt->series[i].limit_source =
            i < 2 ? "measured: best copy by one core within a process, same size"
                  : "measured: the two directions' best copies by one core, added";
    }
    return err;
}

static int explain(struct point *pt, int err)
{
    const struct params *p = pt->params;
    bool attach = !strncmp(engines[p->engine], "cma", 3);

    if (attach && (err == -EPERM || err == -EACCES || err == -ENOSYS))
        return point_reason(pt, -EOPNOTSUPP,
                            "cross-memory attach is refused (%s): as root, sysctl "
                            "kernel.yama.ptrace_scope=1; in a container, --cap-add SYS_PTRACE",
                            strerror(-err));
    if (err == -ECONNRESET || err == -EPIPE)
        return point_reason(pt, -ECONNRESET, "the process at the other end died");
    if (err == -ETIMEDOUT)
        return point_reason(pt, err, "the process at the other end stood still");
    return point_reason(pt, err, "'%s' failed: %s", engines[p->engine], strerror(-err));
}

static int find_ends(struct point *pt, struct state *st)
{
    const char *const names[2] = {st->params->source, st->params->destination};
    char error[160];

    for (int i = 0; i < 2; i++) {
        int err = place_find(names[i], point_topo(pt), &st->lanes.ends[i], error, sizeof(error));
        if (err)
            return point_reason(pt, err, "%s", error);
    }
    uint64_t needed = st->lanes.bytes * 2 * st->lanes.used,
             available = st->lanes.ends[0].device->available();
    if (needed > available - available / 8)
        return point_reason(pt, -EOPNOTSUPP, "%llu MiB are needed, %llu available",
                            (unsigned long long)(needed >> 20),
                            (unsigned long long)(available >> 20));
    return choose_cpus(pt, st);
}

static int setup(struct point *pt)
{
    const struct params *p = pt->params;
    struct state *st = calloc(1, sizeof(*st));
    char error[160] = "";

    pt->state = st;
    if (!st || !point_topo(pt))
        return st ? -EIO : -ENOMEM;
    st->params = p;
    st->lanes.bytes = p->size;
    st->lanes.used = p->direction == BOTH ? 2 : 1;
    choose_series(pt, p);
    int err = find_ends(pt, st);
    if (err)
        return err;
    if (p->metric == LATENCY)
        pt->sample_ns = 0;
    else if ((err = set_limits(pt, st)) != 0)
        return err;
    err = lanes_alloc(&st->lanes, point_topo(pt), memory_kinds[p->memory], error, sizeof(error));
    if (err)
        return point_reason(pt, err, "%s", error);
    struct transfer_config config = {.topo = point_topo(pt),
                                     .lanes = &st->lanes,
                                     .cpus = {st->cpus[0], st->cpus[1]},
                                     .transport = transports[p->engine],
                                     .settle = p->metric == LATENCY,
                                     .seed = pt->common->seed,
                                     .fault = (enum transfer_fault)p->inject};
    err = transfer_open(&st->transfer, &config);
    return err ? explain(pt, err) : 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    struct state *st = pt->state;
    int err = transfer_run(st->transfer, inner, ns);

    if (err)
        return explain(pt, err);
    st->runs++;
    if ((double)st->lanes.bytes * (double)inner / (double)ns[0] > 1.01 * pt->series[0].limit)
        st->above_limit++;
    return 0;
}

static int check(struct point *pt)
{
    struct state *st = pt->state;
    int err = transfer_verify(st->transfer, pt->common->seed + 1);

    if (err)
        return explain(pt, err);
    if (transfer_wrong(st->transfer))
        return point_reason(pt, -EBADMSG, "wrong data in %llu of %llu messages that were looked at",
                            (unsigned long long)transfer_wrong(st->transfer),
                            (unsigned long long)(st->runs + 1) * st->lanes.used);
    if (st->params->metric == BANDWIDTH && st->above_limit > st->runs / 2)
        point_reason(pt, 0, "above the measured ceiling: it is too low here");
    return 0;
}

static int evidence(struct point *pt)
{
    struct state *st = pt->state;
    struct device_where where[2];
    char text[96];
    int err = transfer_where(st->transfer, where);

    if (err)
        return err;
    transfer_describe(st->transfer, pt->evidence, sizeof(pt->evidence));
    for (int end = 0; end < 2; end++) {
        double share = evidence_huge_share(&where[end]);
        evidence_add(pt->evidence, sizeof(pt->evidence), "%s: %s", end ? "destination" : "source",
                     evidence_pages(&where[end], text, sizeof(text)));
        if (memory_kinds[st->params->memory] == DEVICE_THP && share < 0.95)
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
    transfer_close(st->transfer);
    lanes_free(&st->lanes);
    free(st);
}

static int open_session(struct point *ctx)
{
    ctx->bench_state = calloc(1, sizeof(struct ceilings));
    return ctx->bench_state ? 0 : -ENOMEM;
}

static void close_session(struct point *ctx)
{
    ceilings_release(ctx->bench_state);
    free(ctx->bench_state);
}

const struct bench bench = {
    .name = "copy",
    .help = "copies between NUMA nodes and between two processes",
    .about = "memcpy copies within one process by a thread at the source; shm, pipe and cma move "
             "messages\n"
             "between two processes bound to CPUs of the source and the destination. Time ends "
             "when the\n"
             "receiver has the last byte, on its own reading of the machine's one clock. GB/s "
             "count each\n"
             "byte of payload once, however often it is copied on its way. Both directions at once "
             "give a\n"
             "row for each and one for the sum: the bytes of both over the longer time. The limit "
             "is the\n"
             "best copy by one core within a process at the same size.",
    .needs = "",
    .options = options,
    .params_size = sizeof(struct params),
    .open = open_session,
    .close = close_session,
    .setup = setup,
    .sample = sample,
    .check = check,
    .evidence = evidence,
    .teardown = teardown,
    .sample_ns = BENCH_SAMPLE_DEFAULT,
};

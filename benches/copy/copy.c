/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy: bytes from one place to another, of the host, and to, from and between GPUs.
 *
 * What is timed, `inner` copies of one message in each direction:
 *
 *   of the host  host_copy.c: sample() -> transfer_run() -> copy_lane(): memcpy() by a thread for each
 *                direction
 *   with a GPU   gpu_copy.c: run(); gpu_copy_lane.c: queue_copy(), a copy of the driver's,
 *                queue_kernel(), threads of a GPU that copy, or queue_pages(), between two events of
 *                the GPU's or, where the host has to wait for each, by the host's clock; of
 *                load-latency gpu_chain_run(), a chain of loads
 *
 * What arrived is compared whole, or in windows where it is large, outside of the time. copy_work.c
 * has what both share, gpu_copy_rules.c what can be asked, remote.c the GPU of another process.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/copy/copy_work.h"
#include "benches/copy/remote.h"
#include "core/bench/bench.h"
#include "core/hw/gpu.h"
#include "core/program.h"

static void close_session(struct point *ctx)
{
    struct copy_session *session = ctx->bench_state;

    ceilings_release(&session->ceilings);
    /* The other end waits for this one, also where all points were refused before they had anything to ask. */
    if (pair_kind(&session->pair) != PAIR_NONE && !session->remote &&
        !(ctx->cancel && *ctx->cancel))
        copy_session_meet(session, ctx->cancel);
    bool broken = session->remote && copy_remote_broken(session->remote);
    copy_remote_close(session->remote);
    if (!broken) /* a rank that hangs would be waited for without end: the launcher ends it */
        pair_end();
}

static int instead(struct opts *o, const struct bench_common *common, const volatile int *cancel)
{
    const struct pair_service service = {.protocol = copy_remote_protocol(),
                                         .fn = copy_remote_serve};
    struct copy_params params = {0};

    (void)common;
    if (opts_apply(o, o->tables[0], NULL, &params))
        return EXIT_USAGE;
    return pair_serve(&params.meet, &service, cancel);
}

static int possible(struct point *pt)
{
    const struct copy_params *p = pt->params;
    const char *const names[2] = {p->source, p->destination};
    struct place ends[2] = {{0}};
    int peer = copy_peer_end(p);
    char ignored[160];

    for (int i = 0; i < 2; i++)
        if (place_parse(names[i], PLACE_ANY, &ends[i], ignored, sizeof(ignored)))
            ends[i].gpu = copy_is_all(names[i]);
    if (peer >= 0)
        return ends[1 - peer].gpu ? 0 : copy_ends(pt, ends);
    return ends[0].gpu || ends[1].gpu ? 0 : host_copy_possible(pt);
}

static int setup(struct point *pt)
{
    struct copy_session *session = pt->bench_state;
    struct place ends[2];

    session->pair = ((const struct copy_params *)pt->params)->meet;
    int err = copy_ends(pt, ends);

    if (!err)
        return work_setup(pt, copy_work_of(ends));
    copy_series(pt, copy_directions[COPY_ONE_WAY], 0);
    return err;
}

/* ---- Options ---- */

static const char *const copy_metrics[] = {"bandwidth", "latency", "load-latency", NULL};
static const char *const copy_accesses[] = {"on", "off", NULL};
static const char *const copy_handles[] = {"none", "fabric", "multicast", NULL};
static const char *const copy_injects[] = {"none", "corrupt", NULL};

#define AT(field)   .offset = offsetof(struct copy_params, field)
#define MEET(field) .offset = offsetof(struct copy_params, meet.field)
#define PLACE(field)                                                                               \
    .type = OPT_CUSTOM, .flags = OPT_LIST | OPT_COLUMN | OPT_PLACE, AT(field),                     \
    .arg = "nodeN|cuda:N|cuda:all|cuda:peer", .make_default = place_all_nodes, .parse = read_end,  \
    .expand = place_words_of_nodes

#define HOST_AND_GPU                                                                               \
    "source=" PLACES_OF_HOST " destination=" PLACES_OF_GPUS " | source=" PLACES_OF_GPUS            \
    " destination=" PLACES_OF_HOST

static const struct opt_scope pairs = {TWO_GPUS(""), "copies between two GPUs"};
/* A GPU that loads always reads. */
static const struct opt_scope pairs_but_loads = {TWO_GPUS(" metric!=load-latency"),
                                                 "copies between two GPUs"};
static const struct opt_scope host_and_gpu = {HOST_AND_GPU, "copies between host and GPU"};
static const struct opt_scope with_host = {
    "source=" PLACES_OF_HOST " | destination=" PLACES_OF_HOST, "copies from or to the host"};

static int read_end(const char *text, void *value, char *error, size_t len)
{
    *(const char **)value = text;
    return strcmp(text, COPY_ALL) && strcmp(text, COPY_PEER)
               ? place_read_any(text, value, error, len)
               : 0;
}

/* "none", "all", or GPUs: "cuda:1+cuda:2". */
static int read_together(const char *text, void *value, char *error, size_t len)
{
    char name[64];
    struct place place;
    int err = 0;

    *(const char **)value = text;
    if (!strcmp(text, "none") || !strcmp(text, "all"))
        return 0;
    for (const char *at = text; !err; at += strcspn(at, "+") + 1) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, "+"), at);
        err = place_parse(name, PLACE_GPU, &place, error, len);
        if (err)
            snprintf(error, len, "'%s' is not a GPU: none, all, or GPUs such as cuda:1+cuda:2",
                     name);
        if (!at[strcspn(at, "+")])
            break;
    }
    return err;
}

static const struct opt options[] = {
    PAIR_OPTIONS(MEET, "plumb-copy", "none, and cuda:peer is skipped"),
    {.name = "engine",
     OPT_WORD(OPT_SWEPT, engine, "auto", copy_engines),
     .help = "memcpy: by threads; ce: a GPU's copy engine; sm: a kernel on a GPU; auto: ce with a "
             "GPU, else memcpy"},
    {.name = "source",
     PLACE(source),
     .tried = "device from src",
     .help = "place of the source. nodes, gpus: each of them in turn; cuda:all, with GPUs: all "
             "others at once; cuda:peer: the GPU of HOST that has the same number"},
    {.name = "destination",
     PLACE(destination),
     .tried = "device to dst dest",
     .help = "place of the destination"},
    {.name = "direction",
     OPT_WORD(OPT_SWEPT | OPT_SPLITS, direction, "one-way", copy_directions),
     .help = "both: both directions at once, with rows for forward, reverse and sum"},
    {.name = "memory",
     OPT_WORD(OPT_SWEPT, memory, "auto", copy_memories),
     .scope = &with_host,
     .help = "kind of host memory. huge: transparent huge pages; hugetlb: from the reserved pool; "
             "only with a GPU: pinned, pinned-huge, wc (write-combined), managed; auto: pinned "
             "with a GPU, else pageable"},
    {.name = "op",
     OPT_WORD(OPT_SWEPT, op, "write", copy_ops),
     .scope = &pairs_but_loads,
     .help = "between GPUs: the source's GPU writes or the destination's reads"},
    {.name = "access",
     OPT_WORD(OPT_SWEPT, access, "on", copy_accesses),
     .scope = &pairs,
     .help = "between GPUs: peer access, or off: through host memory"},
    {.name = "handle",
     OPT_WORD(OPT_SWEPT, handle, "none", copy_handles),
     .scope = &pairs,
     .help = "between GPUs: memory taken plainly (none), or exported and imported as a fabric "
             "handle, as memory of another node is over NVLink; multicast: each store of one GPU "
             "reaches all GPUs, with --destination cuda:all"},
    {.name = "together",
     OPT_READ(OPT_SWEPT, together, "none", "none|all|cuda:N+..", read_together),
     .scope = &host_and_gpu,
     .help = "between host and GPU: these GPUs copy at the same time, and the GPU is compared with "
             "itself alone"},
    {.name = "metric",
     OPT_WORD(OPT_LIST, metric, "bandwidth", copy_metrics),
     .help = "bandwidth; latency: one message per sample, from the call to its arrival; "
             "load-latency: dependent loads of a GPU from the other place's memory"},
    {.name = "size",
     .letter = 's',
     OPT_NUMBER(OPT_SIZE, OPT_SWEPT, size, "8,1K,64K,1M,16M,256M", 1, 0),
     .help = "size of one message"},
    {.name = "inject",
     OPT_WORD(OPT_HIDDEN, inject, "none", copy_injects),
     .help = "for tests: spoil the data"},
    {.name = NULL},
};

const struct bench bench = {
    .name = "copy",
    .help = "copies between NUMA nodes, host and GPU, and GPUs",
    .about = "memcpy: one thread at the source copies. GB/s count each byte of payload once. If\n"
             "both directions run at once, there is a row for each, and one for the sum: the\n"
             "bytes of both over the time of both. The limit is the best copy of the same size\n"
             "by one core. Messages between two processes are what plumb-net measures.\n"
             "\n"
             "With a GPU, ce uses a copy engine, and sm a kernel. The GPU's events time copies\n"
             "that are queued before they start. The host's clock times latency, and copies of\n"
             "pageable and managed memory. See docs/copy.md.\n"
             "\n"
             "Between GPUs of two hosts over NVLink: `plumb-copy --listen 0.0.0.0\n"
             "--secret-file F` on one, `plumb-copy HOST --source cuda:0 --destination\n"
             "cuda:peer --secret-file F` on the other, or `mpirun -np 2 plumb-copy`.",
    .needs = "peer-if-asked",
    .arguments = "[HOST]",
    .options = options,
    .params_size = sizeof(struct copy_params),
    .defaults = pair_defaults,
    .instead = instead,
    .rows = &bench_rows,
    .bench_state_size = sizeof(struct copy_session),
    .close = close_session,
    .wanted = copy_wanted,
    .backends = gpus_say,
    .possible = possible,
    .setup = setup,
    .sample_ns = BENCH_SAMPLE_DEFAULT,
};

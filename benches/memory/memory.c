/* SPDX-License-Identifier: Apache-2.0 */
/* memory: bandwidth and latency of every level of the memory hierarchy, of the host and of GPUs.
 *
 * Timed, by the device that is asked for:
 *   host_memory.c  sample() -> arrays_time() -> a kernel of core/hw/host_kernels.h on each thread's
 *                  part; of latency chase_run(), a chain of loads
 *   gpu_memory.c   sample() -> gpu_variant_run() -> a kernel, or the driver's copy or set
 *   gpu_latency.c  sample() -> gpu_chain_run() -> queue_chase() of core/hw/gpu_chain.c
 * What is here chooses the device, and has the options. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/memory/memory_work.h"
#include "core/bench/bench.h"
#include "core/hw/gpu.h"
#include "core/hw/place.h"

/* Sizes of any GPU, four times apart; those that do not fit are skipped with the reason. */
#define GPU_SIZES         "256K..4Gx4"
#define GPU_SIZES_LATENCY "16K..1Gx4"

/* The sizes where none is given. With a GPU among the devices they are constant, so that rows of
 * different models can be compared. Latency alone has its own. */
static int choose_defaults(struct opts *o)
{
    const struct opt_values *devices = opts_values(o, "device"), *ops = opts_values(o, "op");
    bool gpu = false, latency = ops && ops->n;

    for (size_t i = 0; devices && i < devices->n; i++)
        gpu = gpu || strcmp(devices->texts[i], "host") != 0;
    for (size_t i = 0; ops && i < ops->n; i++)
        latency = latency && !strcmp(ops->texts[i], memory_ops[MEMORY_LATENCY]);
    if (!gpu)
        return opts_default(o, "size", latency ? memory_host_latency_sizes() : NULL);
    return opts_default(o, "size", latency ? GPU_SIZES_LATENCY : GPU_SIZES);
}

static void close_session(struct point *ctx)
{
    struct memory_session *session = ctx->bench_state;

    ceilings_release(&session->ceilings);
    free(session->tunings);
}

static int possible(struct point *pt)
{
    const struct memory_params *p = pt->params;
    struct place place;
    char ignored[160];

    if (!place_parse(p->device, PLACE_GPU, &place, ignored, sizeof(ignored)))
        return 0;
    return point_topo(pt) ? host_memory_possible(pt) : -EIO;
}

static int setup(struct point *pt)
{
    const struct memory_params *p = pt->params;
    const struct topo *topo = point_topo(pt);
    struct place place;
    char error[160];

    if (!topo)
        return -EIO;
    int err = place_find(p->device, topo, &place, error, sizeof(error));
    if (err)
        return point_reason(pt, err, "%s", error);
    return work_setup(pt, place.gpu ? &gpu_memory_work : &host_memory_work);
}

/* ---- Options ---- */

static const char *const memory_stores[] = {"regular", "nt", NULL};
static const char *const memory_engines[] = {"kernel", "driver", NULL};
static const char *const memory_injects[] = {"none", "corrupt", NULL};

#define AT(field) .offset = offsetof(struct memory_params, field)

static const struct opt_scope on_host = {"device=" PLACES_OF_HOST, "the host's memory"};
static const struct opt_scope by_stores = {"device=" PLACES_OF_HOST " op!=read,latency",
                                           "operations of the host that store"};
static const struct opt_scope on_gpu = {"device=" PLACES_OF_GPUS " op!=latency",
                                        "a GPU's bandwidth"};
static const struct opt_scope by_kernel = {"device=" PLACES_OF_GPUS " op!=latency engine=kernel",
                                           "bandwidth by a GPU's kernels"};
static const struct opt_scope by_search = {"device=" PLACES_OF_GPUS
                                           " op!=latency engine=kernel launch=both,tuned",
                                           "the tuned launch of a GPU's kernels"};
static const struct opt_scope by_size = {"level=any",
                                         "points without --level, which chooses the size"};
static const struct opt_scope typed = {
    "device=" PLACES_OF_HOST " op!=latency | op!=latency engine=kernel",
    "bandwidth of entries: not latency, not the driver's copies"};

static int read_device(const char *text, void *value, char *error, size_t len)
{
    struct place place;
    char ignored[160];
    int err = place_read_device(text, value, error, len);
    size_t at = strlen(error);

    if (err && !place_parse(text, PLACE_PART, &place, ignored, sizeof(ignored)))
        snprintf(error + at, len - at, "; --node and --memory-node choose nodes");
    return err;
}

static const struct opt options[] = {
    {.name = "device",
     OPT_READ(OPT_SWEPT | OPT_PLACE, device, "host", "host|cuda[:N]", read_device),
     .expand = place_words,
     .help = "device whose memory is measured; gpus: every GPU"},
    {.name = "op",
     OPT_WORD(OPT_SWEPT, op, "triad", memory_ops),
     .help = "operation of each pass; latency: dependent loads in random order"},
    {.name = "dtype",
     OPT_WORD(OPT_SWEPT, dtype, "f64", memory_types),
     .scope = &typed,
     .help = "type of the entries"},
    {.name = "stores",
     OPT_WORD(OPT_SWEPT, stores, "regular", memory_stores),
     .scope = &by_stores,
     .help = "kind of stores. nt: non-temporal stores, which bypass the caches (host)"},
    {.name = "pages",
     OPT_WORD(OPT_SWEPT, pages, "thp", memory_pages),
     .scope = &on_host,
     .help = "pages of the arrays: base, transparent huge, or huge from the reserved pool, "
             "vm.nr_hugepages (host)"},
    {.name = "threads",
     .letter = 't',
     OPT_NUMBER(OPT_U64, OPT_SWEPT, threads, "0", 0, 65536),
     .scope = &on_host,
     .left_by = "0",
     .help = "number of threads. 0: one per core; latency uses one (host)"},
    {.name = "node",
     OPT_READ(OPT_SWEPT, node, "any", "any|N", placement_parse_node),
     .scope = &on_host,
     .help = "NUMA node whose CPUs run the threads (host)"},
    {.name = "memory-node",
     OPT_READ(OPT_SWEPT, memory_node, "local", "local|remote|N", placement_parse_memory),
     .scope = &on_host,
     .help = "NUMA node of the memory; local: the node of each thread (host)"},
    {.name = "launch",
     OPT_WORD(OPT_SWEPT | OPT_SPLITS, launch, "both", memory_launches),
     .scope = &by_kernel,
     .help = "shape of the kernel. tuned: the fastest of a search; plain: the simplest; both: a "
             "row for each (GPU)"},
    {.name = "tuning",
     OPT_OF(OPT_STRING, OPT_KEPT, tuning, "auto"),
     .arg = "auto|SHAPE",
     .scope = &by_search,
     .help =
         "of the tuned launch: the value of an earlier row's column tuning, instead of a "
         "search. If it is none of the shapes here, or slower than the plain launch, the search "
         "runs all the same (GPU)"},
    {.name = "engine",
     OPT_WORD(OPT_SWEPT, engine, "kernel", memory_engines),
     .scope = &on_gpu,
     .help = "driver: the driver's functions for copy and write (GPU)"},
    {.name = "level",
     OPT_WORD(OPT_SWEPT, level, "any", memory_levels),
     .scope = &on_host,
     .left_by = "any",
     .help = "level of the memory hierarchy. It chooses a size that this level serves on this "
             "machine; any: --size chooses (host)"},
    {.name = "size",
     .letter = 's',
     OPT_NUMBER(OPT_SIZE, OPT_SWEPT, size, NULL, 1024, 0),
     .make_default = memory_host_sizes,
     .scope = &by_size,
     .help = "working set: the size of all arrays of all threads together"},
    {.name = "isa",
     OPT_WORD(OPT_SWEPT | OPT_KEPT, isa, "auto", memory_isas),
     .scope = &on_host,
     .left_by = "auto", /* by a timing test: it may fall one way or the other */
     .help = "vector unit. auto: the widest one that loads faster than the next, chosen once for "
             "each case of a run (host)"},
    {.name = "inject",
     OPT_WORD(OPT_HIDDEN, inject, "none", memory_injects),
     .help = "for tests: spoil the data, which must be found"},
    {.name = NULL},
};

const struct bench bench = {
    .name = "memory",
    .help = "bandwidth and load latency of caches and memory",
    .about = "Each thread works on its own part of the arrays. GB/s count each named array\n"
             "once per pass (the STREAM rule: read and write 1 array, copy and scale 2, add\n"
             "and triad 3). A regular store first reads its line. This read is not counted;\n"
             "write_allocate=yes: the hardware does it in addition.\n"
             "\n"
             "latency is the time of one dependent load in ns, along a random cycle through\n"
             "every cache line, with page walks. latency_page_by_page is the same, but with\n"
             "all loads from a page before the next page. The limit is computed from the best\n"
             "rates of loads alone and of stores alone, at the same size and place. On a GPU,\n"
             "all threads work on the arrays together, 16 bytes per access.",
    .needs = "",
    .options = options,
    .params_size = sizeof(struct memory_params),
    .defaults = choose_defaults,
    .rows = &bench_rows,
    .bench_state_size = sizeof(struct memory_session),
    .close = close_session,
    .possible = possible,
    .setup = setup,
    .backends = gpus_say,
    .sample_ns = BENCH_SAMPLE_DEFAULT,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* memory: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {
    {.name = "size", .sought_by = "level"},
    {.name = "level_used", .flags = COLUMN_DECIDES},
    {.name = "working_set", .flags = COLUMN_OUTCOME | COLUMN_BYTES},
    {.name = "bytes_rule", .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "write_allocate", .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "hardware_pages", .flags = COLUMN_OUTCOME},
    {.name = "address", .flags = COLUMN_OUTCOME},
    {.name = "shape", .flags = COLUMN_OUTCOME},
    {.name = "tuning", .flags = COLUMN_OUTCOME, .width = BENCH_COLUMN_ASIDE},
    {.name = NULL},
};

static const struct bench_metric metrics[] = {{.name = "bandwidth", .units = "GB/s"},
                                              {.name = "latency", .units = "ns"},
                                              {.name = "latency_page_by_page", .units = "ns"},
                                              {.name = NULL}};

#define GPU_MEMORY(what, operation, by)                                                            \
    {                                                                                              \
        .pipe = "GPU memory", .label = what,                                                       \
        .where = "metric=bandwidth op=" operation " engine" by "driver level!=L2 level!=",         \
        .at = "+size", .low_below = 75, .flags = HEADLINE_GPU                                      \
    }
#define HOST_MEMORY(in, what, these, place)                                                        \
    {                                                                                              \
        .pipe = in, .label = what, .where = these " level!=L1,L2,L3,L4", .at = "+size",            \
        .low_below = 60, .stage = place                                                            \
    }

/* Host: below 60 % of a measured ceiling or of a bus' peak, something other than the memory
 * bounds: well-tuned code on a healthy machine stays above. HBM and GDDR give 85 to 95 % of
 * their pins' rate. */
static const struct bench_headline headlines[] = {
    GPU_MEMORY("GPU triad", "triad", "!="),
    GPU_MEMORY("GPU read", "read", "!="),
    GPU_MEMORY("GPU copy", "copy", "!="),
    GPU_MEMORY("GPU copy by the driver", "copy", "="),
    {.pipe = "GPU memory",
     .label = "GPU triad L2",
     .where = "metric=bandwidth op=triad level=L2",
     .flags = HEADLINE_GPU},
    {.pipe = "GPU latency",
     .label = "GPU load latency",
     .where = "metric=latency op=latency level!=",
     .by = "level",
     .at = "+size",
     .stage = STAGE_LATENCY,
     .flags = HEADLINE_GPU},
    {.pipe = "Caches",
     .label = "triad",
     .where = "metric=bandwidth op=triad level!=DRAM level!=",
     .by = "level",
     .low_below = 60},
    HOST_MEMORY("Memory", "triad DRAM", "metric=bandwidth op=triad", STAGE_NONE),
    HOST_MEMORY("Memory", "read DRAM", "metric=bandwidth op=read", STAGE_NONE),
    HOST_MEMORY("Latency", "load latency", "metric=latency_page_by_page op=latency", STAGE_LATENCY),
    HOST_MEMORY("Latency", "load latency + page walks", "metric=latency op=latency", STAGE_LATENCY),
    {.pipe = NULL},
};

static const struct bench_contrast contrasts[] = {
    {.title = "tuned launch against plain",
     .where = "metric=bandwidth launch=tuned level!=L2 level!=",
     .column = "launch",
     .other = "launch=plain",
     .by = "op",
     .lower = "a plain launch is %s slower than the tuned one",
     .higher = "a plain launch is %s faster than the tuned one",
     .same = "a plain launch is as fast",
     .flags = HEADLINE_GPU},
    {.title = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "size", .lines = "op stores", .flags = PLOT_BYTES | PLOT_CACHE_MARKS},
    {.x = "size",
     .lines = "op launch engine device",
     .ignore = "stores pages threads node memory_node isa",
     .flags = PLOT_BYTES | PLOT_GPU},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {
    {.pipe = "GPU memory", .flags = HEADLINE_GPU}, {.pipe = "Memory"}, {.pipe = NULL}};

/* Threads on every core of all nodes, each with its own memory: all channels of the machine
 * may serve them. */
#define ALL_CHANNELS "unit=GB/s level=DRAM node=any memory_node=local address="
#define FILLED(ops, counted, moved)                                                                \
    {                                                                                              \
        .where = ALL_CHANNELS " write_allocate=yes op=" ops, .of = LIMIT_MACHINE,                  \
        .figures = "dram.gbytes_per_s", .times = (counted) / (moved),                              \
        .remark = "lines are read before stores fill them",                                        \
        .exceeded = "exceeded: the CPU omits reads of lines that stores fill, or a cache "         \
                    "serves a part"                                                                \
    }

static const struct bench_limit limits[] = {
    {.where = "level=HBM,DRAM address!=", .of = LIMIT_GPU, .figures = "memory_gbytes_per_s"},
    FILLED("write", 1., 2.),
    FILLED("copy,scale", 2., 3.),
    FILLED("add,triad", 3., 4.),
    {.where = ALL_CHANNELS, .of = LIMIT_MACHINE, .figures = "dram.gbytes_per_s"},
    {.where = NULL},
};

/* A load that a page walk delays shows the size of pages best, and its distance that of the node.
 */
#define ON_MEMORY(id, has, of, figure, options, one, other, ...)                                   \
    {                                                                                              \
        .check = id, .cause = has, .lost = of, .both = options, .with = one, .without = other,     \
        .metric = figure, .pipe = "Memory", __VA_ARGS__                                            \
    }
#define TWO_NODES .machine = "nodes!=0,1", .lacks = "it has one NUMA node"
#define THP_THERE .machine = "huge_pages!=never", .lacks = "transparent huge pages are off"

static const struct bench_experiment experiments[] = {
    ON_MEMORY("far-memory", "memory of another NUMA node", "memory bandwidth", "bandwidth",
              "--op read --level DRAM --node 0", "--memory-node remote", "--memory-node local",
              TWO_NODES),
    ON_MEMORY("far-memory", "memory of another NUMA node", "memory latency", "latency",
              "--op latency --level DRAM --node 0", "--memory-node remote", "--memory-node local",
              TWO_NODES),
    ON_MEMORY("huge-pages", "base pages in place of huge ones", "latency of random loads",
              "latency", "--op latency --size 256M", "--pages base", "--pages thp", THP_THERE),
    ON_MEMORY("huge-pages", "base pages in place of huge ones", "memory bandwidth", "bandwidth",
              "--op triad --size 256M", "--pages base", "--pages thp", THP_THERE),
    {.check = NULL},
};

static const struct bench_part parts[] = {
    {.where = "metric=bandwidth op=copy,triad memory_node!=remote",
     .of = JOB_STREAM,
     .measure = "plumb run node --only memory"},
    {.where = NULL}};

static const struct bench_start starts[] = {
    {.what = "driver and context of the GPU, its kernels", .where = "device=cuda:*"},
    {.what = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_MEMORY,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .contrasts = contrasts,
    .plots = plots,
    .pipes = pipes,
    .limits = limits,
    .experiments = experiments,
    .parts = parts,
    .starts = starts,
    .context = "device op dtype threads node",
    .shown = "level",
};

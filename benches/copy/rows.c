/* SPDX-License-Identifier: Apache-2.0 */
/* copy: what is said of its rows. */
#include "core/bench_rows.h"

static const struct bench_column columns[] = {
    {.name = "address", .flags = COLUMN_OUTCOME},
    {.name = "numa", .flags = COLUMN_OUTCOME},
    {.name = "path", .flags = COLUMN_OUTCOME},
    {.name = "atomics", .flags = COLUMN_OUTCOME},
    {.name = "clock", .flags = COLUMN_OUTCOME},
    {.name = "load"},
    {.name = NULL},
};

static const struct bench_metric metrics[] = {{.name = "bandwidth", .units = "GB/s"},
                                              {.name = "latency", .units = "us"},
                                              {.name = "load-latency", .units = "ns"},
                                              {.name = NULL}};

#define HOST_TO_GPU "source!=*:*"
#define GPU_TO_HOST "destination!=*:*"

#define GPU_COPIES(what, direction, low)                                                           \
    {                                                                                              \
        .pipe = "GPU copies", .label = what, .where = "metric=bandwidth direction=" direction,     \
        .at = "+size", .low_below = low, .flags = HEADLINE_GPU                                     \
    }
#define GPU_SUMS(what, ends)                                                                       \
    {                                                                                              \
        .pipe = "GPU peers", .label = what,                                                        \
        .where = "metric=bandwidth direction=one-way access=on " ends, .at = "+size",              \
        .flags = HEADLINE_GPU | HEADLINE_QUIET                                                     \
    }

/* Of a PCIe link, packet headers take 7 to 14 %, and page-locked copies lose some more: 78 % and
 * up. NVLink gives 75 to 90 % to one copy engine. memcpy is held against itself: not judged. */
static const struct bench_headline headlines[] = {
    GPU_COPIES("host to GPU, pinned", "one-way " HOST_TO_GPU " memory=pinned together=none", 70),
    GPU_COPIES("GPU to host, pinned", "one-way " GPU_TO_HOST " memory=pinned together=none", 70),
    GPU_COPIES("host and GPU both ways, sum", "sum memory=pinned together=none", 0),
    GPU_COPIES("host to GPU, pageable", "one-way " HOST_TO_GPU " memory=pageable", 0),
    {.pipe = "GPU peers",
     .label = "GPU to GPU by",
     .where = "metric=bandwidth direction=one-way source=*:* destination=*:* access=on "
              "source!=cuda:all destination!=cuda:all",
     .by = "path",
     .at = "+size",
     .low_below = 65,
     .flags = HEADLINE_GPU | HEADLINE_QUIET},
    GPU_SUMS("one GPU to all others, sum",
             "source!=cuda:all destination=cuda:all handle!=multicast"),
    GPU_SUMS("one GPU to all others, by multicast",
             "source!=cuda:all destination=cuda:all handle=multicast"),
    GPU_SUMS("all GPUs to one, sum", "source=cuda:all destination!=cuda:all"),
    GPU_SUMS("all GPUs to all others, sum", "source=cuda:all destination=cuda:all"),
    {.pipe = "GPU latency",
     .label = "copy latency host to GPU",
     .where = "metric=latency " HOST_TO_GPU " memory=pinned",
     .at = "-size",
     .stage = STAGE_LATENCY,
     .flags = HEADLINE_GPU | HEADLINE_TAIL},
    {.pipe = "Copies",
     .label = "%s",
     .where = "metric=bandwidth direction=one-way engine=memcpy",
     .by = "engine",
     .at = "+size"},
    {.pipe = "Latency",
     .label = "copy latency",
     .where = "metric=latency direction=one-way",
     .by = "engine",
     .at = "-size",
     .low_below = 60,
     .stage = STAGE_LATENCY},
    {.pipe = NULL},
};

#define TO_GPU   "metric=bandwidth direction=one-way " HOST_TO_GPU " together=none "
#define FROM_GPU "metric=bandwidth direction=one-way " GPU_TO_HOST " together=none "

/* Copies between the host and a GPU: the same ones, but for one column. */
#define HOST_AND_GPU(what, these, in, those, each, place)                                          \
    {                                                                                              \
        .title = what, .where = these "memory=pinned engine=ce", .column = in, .other = those,     \
        .by = each, .lower = place "it is %s slower", .higher = place "it is %s faster",           \
        .same = place "it is as fast", .flags = HEADLINE_GPU                                       \
    }

static const struct bench_contrast contrasts[] = {
    HOST_AND_GPU("host memory near the GPU against far, to the GPU", TO_GPU "numa=local ", "source",
                 "numa=remote", "destination", "from the remote node "),
    HOST_AND_GPU("host memory near the GPU against far, from the GPU", FROM_GPU "numa=local ",
                 "destination", "numa=remote", "source", "to the remote node "),
    HOST_AND_GPU("pinned memory against pageable, to the GPU", TO_GPU, "memory", "memory=pageable",
                 "", "from pageable memory "),
    HOST_AND_GPU("pinned memory against pageable, from the GPU", FROM_GPU, "memory",
                 "memory=pageable", "", "to pageable memory "),
    HOST_AND_GPU("copy engine against kernel, to the GPU", TO_GPU, "engine", "engine=sm", "",
                 "by a kernel "),
    HOST_AND_GPU("copy engine against kernel, from the GPU", FROM_GPU, "engine", "engine=sm", "",
                 "by a kernel "),
    {.title = "alone against all GPUs at once",
     .where = "metric=bandwidth load=alone",
     .column = "load",
     .other = "load=together",
     .by = "source destination direction",
     .lower = "while other GPUs copy too it is %s slower: they share a link or the host's memory",
     .higher = "while other GPUs copy too it is %s faster",
     .same = "other GPUs that copy too do not slow it",
     .flags = HEADLINE_GPU},
    {.title = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "size", .lines = "engine direction", .ignore = "op access together", .flags = PLOT_BYTES},
    {.x = "size",
     .lines = "memory direction engine source destination",
     .flags = PLOT_BYTES | PLOT_GPU},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {
    {.pipe = "PCIe", .flags = HEADLINE_GPU}, {.pipe = "Copies"}, {.pipe = NULL}};

/* Within a GPU no link is crossed, and how much of it L2 serves the row does not tell: no limit. */
#define ACROSS "path!=within* path!=*process "
/* All GPUs at one end, all of whose bytes pass the other end's NVLinks. A copy that is no part of
 * such a pattern has two addresses. */
#define ONE_END(which) which "=cuda:all access=on atomics=native"
#define PAIRS          ACROSS "source!=cuda:all destination!=cuda:all"

static const struct bench_limit limits[] = {
    {.where = ACROSS "access=off direction=sum",
     .of = LIMIT_HOST_LINK,
     .times = 2,
     .remark = "both directions"},
    {.where = ACROSS "access=off", .of = LIMIT_HOST_LINK},
    {.where = ONE_END("source") " | " ONE_END("destination"),
     .of = LIMIT_GPU,
     .figures = "nvlink_gbytes_per_s",
     .remark = "all NVLinks of the one GPU"},
    {.where = ACROSS "direction=sum",
     .of = LIMIT_PEER_LINK,
     .times = 2,
     .remark = "both directions"},
    {.where = PAIRS " | " ACROSS "atomics!=native", .of = LIMIT_PEER_LINK},
    {.where = NULL},
};

#define PAGEABLE(way, what)                                                                        \
    {                                                                                              \
        .check = "pageable-memory", .cause = "pageable host memory in place of pinned",            \
        .lost = "bandwidth of copies " what, .both = way " --engine ce --size 64M",                \
        .with = "--memory pageable", .without = "--memory pinned", .metric = "bandwidth",          \
        .pipe = "PCIe", .machine = "gpus!=0", .lacks = "it has no GPU that programs can use"       \
    }

static const struct bench_experiment experiments[] = {
    PAGEABLE("--source host --destination cuda:0", "to the GPU"),
    PAGEABLE("--source cuda:0 --destination host", "from the GPU"),
    {.check = NULL},
};

static const struct bench_start starts[] = {
    {.what = "driver and contexts of the GPUs, their kernels",
     .where = "source=cuda:* | destination=cuda:*"},
    {.what = NULL},
};

/* Pinned memory, on the node near the GPU. The bytes of a copy count once, in both. */
#define NVBANDWIDTH(where_, columns_, differs_)                                                    \
    {                                                                                              \
        .program = "nvbandwidth", .where = where_, .quantity = "bandwidth", .metric = "bandwidth", \
        .columns = "engine=@engine direction=@direction " columns_, .differs = differs_            \
    }
#define WITH_HOST   "op= access= handle= memory=pinned together=@beside numa=local"
#define TO_ONE      "source=node* destination=@destination "
#define FROM_ONE    "source=@source destination=node* "
#define WITH_PEER   "source=@source destination=@destination op=@op access=on handle=none"
#define TWICE       "beside it, the other GPUs copy twice as many bytes"
#define TO_THE_LAST "it divides all bytes by the time of the slowest pair, with as many for each"
#define CHAIN                                                                                      \
    "its chain has a fixed step of 128 bytes, ours is random and bypasses the first-level cache"
/* A chain of 2 MiB, whatever its option says of copies. */
#define NVBANDWIDTH_LOAD(where_, columns_)                                                         \
    {                                                                                              \
        .program = "nvbandwidth", .where = where_, .quantity = "latency",                          \
        .metric = "load-latency",                                                                  \
        .columns = "engine=@engine direction=@direction size=2097152 " columns_, .differs = CHAIN  \
    }

/* What it measures and no benchmark here does. */
#define NVBANDWIDTH_NOT(where_, refused_)                                                          \
    {                                                                                              \
        .program = "nvbandwidth", .where = where_, .quantity = "", .metric = "", .columns = "",    \
        .refused = refused_                                                                        \
    }

static const struct bench_imported imported[] = {
    NVBANDWIDTH("source=host direction=one-way beside=none", TO_ONE WITH_HOST, NULL),
    NVBANDWIDTH("destination=host direction=one-way beside=none", FROM_ONE WITH_HOST, NULL),
    NVBANDWIDTH("source=host engine=ce direction=forward,reverse beside=none", TO_ONE WITH_HOST,
                NULL),
    NVBANDWIDTH("source=host direction=one-way beside=all", TO_ONE WITH_HOST " load=together",
                TWICE),
    NVBANDWIDTH("destination=host direction=one-way beside=all",
                FROM_ONE WITH_HOST " load=together", TWICE),
    NVBANDWIDTH("source=host engine=ce direction=forward,reverse beside=all",
                TO_ONE WITH_HOST " load=together", TWICE),
    NVBANDWIDTH("op=read,write source!=cuda:all destination!=cuda:all "
                "direction=one-way,forward,reverse,sum",
                WITH_PEER, NULL),
    NVBANDWIDTH("op=read,write source=cuda:all | op=read,write destination=cuda:all", WITH_PEER,
                TO_THE_LAST),
    NVBANDWIDTH("test=device_local_copy", "source=@source destination=@destination", NULL),
    NVBANDWIDTH_LOAD("source=host", TO_ONE WITH_HOST),
    NVBANDWIDTH_LOAD("op=read chain=", WITH_PEER),
    NVBANDWIDTH_NOT("test=multinode_*",
                    "its GPUs are those of ranks, and it does not tell on which hosts these are"),
    NVBANDWIDTH_NOT("op= source=cuda:* destination=cuda:* test!=device_local_copy",
                    "since 0.5 its kernels' read test of one and all GPUs is the write test once "
                    "more"),
    NVBANDWIDTH_NOT("test=*_tma", "its copies are made by TMA, and no benchmark here has such"),
    NVBANDWIDTH_NOT("test=device_local_*_sm",
                    "which bytes of a kernel within a GPU it counts was not read in its sources"),
    NVBANDWIDTH_NOT("chain=host",
                    "before 0.8 its chain between GPUs leads through the host's memory"),
    NVBANDWIDTH_NOT("direction=total",
                    "it adds the rates of both directions, and the sum here is all bytes over the "
                    "time of both"),
    {.program = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_COPY,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .contrasts = contrasts,
    .plots = plots,
    .pipes = pipes,
    .limits = limits,
    .experiments = experiments,
    .starts = starts,
    .imported = imported,
    .context = "engine source destination memory",
    .from = "source",
    .to = "destination",
};

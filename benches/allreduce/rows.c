/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: what is said of its rows. */
#include "core/wire/wires.h"

static const struct bench_column columns[] = {
    {.name = "nodes", .width = 5, .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "vector_bytes",
     .width = BENCH_COLUMN_ASIDE,
     .flags = COLUMN_OUTCOME | COLUMN_DECIDES | COLUMN_BYTES},
    {.name = "chosen", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "rehearsal", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME | COLUMN_DECIDES},
    {.name = "gpu_addresses", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "busbw_per_link", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "library_algorithm", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "library_protocol", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "library_channels", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "rank", .width = 4},
    {.name = "rank_host", .width = 9, .flags = COLUMN_OUTCOME},
    {.name = "scope", .width = 8},
    {.name = "pages", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "detail", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = NULL},
};

#define SAME  "the same samples as another metric, turned round"
#define APART "what another case measures by itself"

static const struct bench_metric metrics[] = {
    {.name = "time", .units = "us", .where = "model!="},
    {.name = "algbw", .units = "GB/s", .unjudged = SAME, .says = "Size of the vector by the time"},
    {.name = "busbw",
     .units = "GB/s",
     .unjudged = SAME,
     .where = "model=",
     .says = "Bus bandwidth: bytes that each rank must move, by the time"},
    {.name = "operation_alone",
     .units = "us",
     .unjudged = APART,
     .says = "The time of the operation without products beside it"},
    {.name = "product_alone",
     .units = "us",
     .unjudged = APART,
     .says = "The time of the matrix products without the operation beside them"},
    {.name = "overlap",
     .units = "percent",
     .unjudged = "made of `time` and of what other cases measure",
     .says = "Share of the shorter of operation and products that is hidden behind the other"},
    {.name = "late_share", .units = "percent", .unjudged = WIRE_STATE},
    {.name = "waited_share", .units = "percent", .unjudged = WIRE_STATE},
    {.name = "blocked_share", .units = "percent", .unjudged = WIRE_STATE},
    WIRE_METRICS,
    {.name = NULL},
};

/* Bus bandwidth is what a wire carries: of its payload a ring leaves little; libraries' own choices
 * leave more. */
static const struct bench_headline headlines[] = {
    {.pipe = "Allreduce",
     .label = "allreduce",
     .where = "metric=busbw op=allreduce model= rehearsal= transport!=",
     .by = "transport",
     .at = "+ranks +size",
     .low_below = 85,
     .flags = HEADLINE_QUIET},
    {.pipe = "Allreduce",
     .label = "allreduce",
     .where = "metric=busbw op=allreduce model= rehearsal= transport= busbw_per_link=",
     .by = "backend",
     .at = "+ranks +size",
     .low_below = 85,
     .flags = HEADLINE_QUIET},
    /* Against all NVLinks of a GPU. Published tables of healthy nodes lie between 60 and 85 % of
     * that, by library and generation: none is low for it. */
    {.pipe = "Allreduce",
     .label = "allreduce on one node,",
     .where = "metric=busbw op=allreduce model= rehearsal= transport= busbw_per_link!=",
     .by = "backend",
     .at = "+ranks +size",
     .flags = HEADLINE_QUIET},
    {.pipe = "Allreduce latency",
     .label = "allreduce",
     .where = "metric=time op=allreduce model= rehearsal= transport!=",
     .by = "transport",
     .at = "+ranks -size backend=auto",
     .flags = HEADLINE_QUIET | HEADLINE_TAIL},
    {.pipe = "Allreduce latency",
     .label = "allreduce",
     .where = "metric=time op=allreduce model= rehearsal= transport=",
     .by = "backend",
     .at = "+ranks -size",
     .flags = HEADLINE_QUIET | HEADLINE_TAIL},
    {.pipe = "Gradients",
     .label = "gradients of",
     .where = "metric=time model!=",
     .by = "model",
     .at = "+ranks",
     .flags = HEADLINE_QUIET},
    {.pipe = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "size",
     .lines = "backend transport ranks scope op dtype",
     .ignore = "rank",
     .undrawn = "algbw late_share waited_share blocked_share",
     .elsewhere = "model!=",
     .flags = PLOT_BYTES},
    {.x = NULL},
};

#define RING "2 * (n - 1) / n"

/* A library's own algorithm is taken for a ring. How a library divides a broadcast decides its
 * terms, so there are none; nor are there any of auto, whose sizes go by several algorithms. With
 * halving and doubling, a rank beyond the power of two sends its whole vector to another, and gets
 * the result back. */
static const struct bench_terms terms[] = {
    {.where = "op=allreduce backend=halving",
     .messages = "2 * steps + 2 * beyond",
     .bytes = "2 * (p - 1) / p + 2 * beyond",
     .bus = RING},
    {.where = "op=allreduce backend=doubling",
     .messages = "steps + 2 * beyond",
     .bytes = "steps + 2 * beyond",
     .bus = RING},
    {.where = "op=allreduce backend!=auto", .messages = "2 * (n - 1)", .bytes = RING, .bus = RING},
    {.where = "op=reduce-scatter,all-gather,all-to-all backend!=auto",
     .messages = "n - 1",
     .bytes = "(n - 1) / n",
     .bus = "(n - 1) / n"},
    {.where = "op=send-receive", .messages = "1", .bytes = "1", .bus = "1"},
    {.where = NULL},
};

/* Of one node: see set_gpus(). Of gather and scatter the root's links alone carry all: another GPU
 * may be the slowest. */
static const struct bench_limit limits[] = {
    {.where = "metric=busbw backend=nccl nodes=1 model= rehearsal= op!=gather,scatter "
              "busbw_per_link!=",
     .of = LIMIT_NVLINK_GROUP,
     .figures = "nvlink_gbytes_per_s",
     .by = "busbw_per_link",
     .remark = "NVLink of the slowest GPU to the others, one direction, times busbw_per_link"},
    {.where = NULL},
};

static const struct bench_pipe pipes[] = {{.pipe = "Collectives"}, {.pipe = NULL}};

#define TOGETHER(operation, kind)                                                                  \
    {                                                                                              \
        .where = "metric=time model= overlap= backend!=auto op=" operation, .of = kind,            \
        .rate = "busbw", .measure = "plumb run cluster --hosts FILE --only allreduce"              \
    }

static const struct bench_part parts[] = {
    TOGETHER("allreduce", JOB_SUM),
    TOGETHER("reduce-scatter", JOB_SCATTER),
    TOGETHER("all-gather", JOB_GATHER),
    TOGETHER("all-to-all", JOB_EXCHANGE),
    TOGETHER("send-receive", JOB_MESSAGE),
    {.where = "metric=overlap",
     .of = JOB_OVERLAP,
     .measure = "plumb run cluster --hosts FILE --only allreduce"},
    {.where = NULL},
};

/* Rates follow from the time. Size is counted as ours. A barrier behind each operation (-z 1) would
 * be in the time. */
#define NCCL_FIGURE(collective_, op_, columns_, figure)                                            \
    {                                                                                              \
        .program = "nccl-tests",                                                                   \
        .where = "collective=" collective_ " groups=1 barrier= kernels= unaligned= maker=",        \
        .quantity = figure, .metric = figure,                                                      \
        .columns = "backend=nccl op=" op_ " dtype=@dtype " columns_ " size=@size ranks=@ranks "    \
                   "in_place=@in_place model= overlap= nodes=@nodes pipelined=@queued "            \
                   "aggregate=@agg graph=@graph register=@registered per_process=@each",           \
        .differs =                                                                                 \
            "its time is the mean over processes, unless -a was given; ours is that of the "       \
            "slowest rank"                                                                         \
    }
#define NCCL_TESTS(collective_, op_, columns_)                                                     \
    NCCL_FIGURE(collective_, op_, columns_, "time"),                                               \
        NCCL_FIGURE(collective_, op_, columns_, "algbw"),                                          \
        NCCL_FIGURE(collective_, op_, columns_, "busbw")

/* OSU's benchmarks tell no number of ranks. Without -f they have the mean over ranks alone, below the
 * slowest rank's by an unknown part: no case of ours. */
#define OSU_FIGURE(test_, memory_, backend_, columns_)                                             \
    {                                                                                              \
        .program = "osu-micro-benchmarks",                                                         \
        .where = "test=" test_ " full=1 memory=" memory_ " sent=", .quantity = "slowest",          \
        .metric = "time",                                                                          \
        .columns =                                                                                 \
            "in_place= model= overlap= backend=" backend_ " dtype=@dtype size=@size " columns_,    \
        .differs =                                                                                 \
            "each operation follows a barrier; its slowest rank is that of the largest mean, "     \
            "ours that of each sample"                                                             \
    }
#define OSU(test_, columns_)                                                                       \
    OSU_FIGURE(test_, "", "mpi", columns_), OSU_FIGURE(test_, "CUDA", "mpi-cuda", columns_)
#define NOT_OURS(program_, where_, refused_)                                                       \
    {                                                                                              \
        .program = program_, .where = where_, .quantity = "", .metric = "", .columns = "",         \
        .refused = refused_                                                                        \
    }

static const struct bench_imported imported[] = {
    NCCL_TESTS("all_reduce", "allreduce", "redop=@redop"),
    NCCL_TESTS("reduce_scatter", "reduce-scatter", "redop=@redop"),
    NCCL_TESTS("all_gather", "all-gather", ""),
    NCCL_TESTS("broadcast", "broadcast", "root=@root"),
    NCCL_TESTS("alltoall", "all-to-all", ""),
    NCCL_TESTS("sendrecv", "send-receive", ""), /* its lines have a redop, which it does not use */
    NCCL_TESTS("reduce", "reduce", "redop=@redop root=@root"),
    NCCL_TESTS("gather", "gather", "root=@root"),
    NCCL_TESTS("scatter", "scatter", "root=@root"),
    OSU("Allreduce-Latency-Test", "op=allreduce redop=sum"),
    OSU("Broadcast-Latency-Test", "op=broadcast root=0"),
    NOT_OURS("osu-micro-benchmarks", "test=Allreduce-Latency-Test,Broadcast-Latency-Test full=",
             "it is the mean over ranks, and ours is the time of the slowest: run it with -f"),
    NOT_OURS("osu-micro-benchmarks",
             "test=Allreduce-Latency-Test,Broadcast-Latency-Test memory!=,CUDA",
             "its buffers are on GPUs of a maker that has no name here"),
    NOT_OURS("nccl-tests", "groups=0", "it does not list its ranks"),
    NOT_OURS("nccl-tests", "groups!=0,1",
             "several groups of ranks run at once, and here a case is one group alone"),
    NOT_OURS("nccl-tests", "barrier!=", "a barrier behind each operation is in its time (-z 1)"),
    NOT_OURS("nccl-tests", "collective=hypercube",
             "it is an all-gather by an algorithm of its own"),
    NOT_OURS("nccl-tests", "collective=alltoallv",
             "its parts are of unequal size, and no benchmark here has such"),
    NOT_OURS("nccl-tests", "maker=AMD",
             "its GPUs are AMD's and its library is RCCL, which has no name here"),
    NOT_OURS("nccl-tests", "kernels=own",
             "kernels of nccl-tests itself move the data (-D), and not those of NCCL"),
    NOT_OURS("nccl-tests", "unaligned=1", "its buffers are not aligned (-u), and ours are"),
    NOT_OURS("osu-micro-benchmarks",
             "test=All-to-Allv-Personalized-Exchange-Latency-Test,Allgatherv-Latency-Test,"
             "Gatherv-Latency-Test,Scatterv-Latency-Test",
             "it calls MPI's function for parts of unequal size, and no benchmark here does"),
    {.program = NULL},
};

/* Of libraries a process opens one world, which fits the first case. */
static const struct bench_start starts[] = {
    {.what = "the other ranks, and the second for which the idle machine is watched",
     .where = "backend=ring,halving,doubling,auto transport=shm,cma,tcp"},
    {.what = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_GROUP,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .plots = plots,
    .terms = terms,
    .pipes = pipes,
    .limits = limits,
    .parts = parts,
    .starts = starts,
    .imported = imported,
    .context = "op dtype redop backend transport model overlap ranks nodes",
    .average = "busbw",
};

/* SPDX-License-Identifier: Apache-2.0 */
/* net: what is said of its rows. */
#include "core/wire/wires.h"

static const struct bench_column columns[] = {
    {.name = "side", .width = 4},
    {.name = "scope", .width = 8},
    {.name = "rail_gpu", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "rail_device", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "rail_peer_device", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "rail_way", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "gpu_direct", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "peer_host", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "cpus", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "detail", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = "peer_detail", .width = BENCH_COLUMN_ASIDE, .flags = COLUMN_OUTCOME},
    {.name = NULL},
};

static const struct bench_metric metrics[] = {
    {.name = "bandwidth", .units = "Gb/s", .where = "pattern=bandwidth"},
    {.name = "message_rate", .units = "Mop/s", .where = "pattern=rate"},
    {.name = "latency", .units = "us", .where = "pattern=latency"},
    {.name = "loaded_latency", .units = "us", .where = "pattern=loaded-latency"},
    {.name = "average_bandwidth",
     .units = "Gb/s"}, /* of stalls the median of the windows knows nothing */
    {.name = "load_bandwidth", .units = "Gb/s"}, /* less of it makes loaded_latency look better */
    {.name = "longest_window", .units = "ms", .unjudged = WIRE_COUNTS},
    WIRE_METRICS,
    {.name = NULL},
};

#define BY_TRANSPORT(in, what, these, and_flags, ...)                                              \
    {                                                                                              \
        .pipe = in, .label = what, .where = these, .by = "transport",                              \
        .flags = HEADLINE_OVER | HEADLINE_QUIET | (and_flags), __VA_ARGS__                         \
    }
#define SMALLEST .at = "-size"
#define BETWEEN_PROCESSES(word, name, what)                                                        \
    {.pipe = "Between two processes",                                                              \
     .label = what,                                                                                \
     .where = "metric=bandwidth transport=" name,                                                  \
     .flags = HEADLINE_QUIET},

/* Of a line's payload TCP and RDMA reach all but a few percent, where the CPU does
 * not bound them. */
static const struct bench_headline headlines[] = {
    BY_TRANSPORT("Network", "%s",
                 "metric=bandwidth direction!=both,sum transport!=" WIRES_NEAR_WORDS " rail=,all",
                 0, .low_below = 85),
    BY_TRANSPORT("Network", "both ways, sum,", "metric=bandwidth direction=sum", 0),
    BY_TRANSPORT("Network latency", "latency", "metric=latency pattern=latency", 0, SMALLEST),
    BY_TRANSPORT("Network latency", "latency under load,", "metric=loaded_latency", HEADLINE_TAIL,
                 SMALLEST),
    BY_TRANSPORT("Network rate", "message rate", "metric=message_rate rail=,all", 0, .at = "-size"),
    {.pipe = "GPU memory by RDMA",
     .label = "RDMA with",
     .where = "metric=bandwidth transport=rdma memory=cuda:* direction!=both,sum rail=,all",
     .by = "memory",
     .low_below = 85,
     .flags = HEADLINE_OVER | HEADLINE_QUIET},
    {.pipe = "GPU memory by RDMA",
     .label = "RDMA rail",
     .where = "metric=bandwidth memory=rail direction!=both,sum rail=[0-9]*",
     .by = "rail",
     .low_below = 85,
     .flags = HEADLINE_OVER | HEADLINE_QUIET},
    {.pipe = "Network",
     .label = "RDMA rail, host memory",
     .where = "metric=bandwidth memory=host direction!=both,sum rail=[0-9]*",
     .by = "rail",
     .low_below = 85,
     .flags = HEADLINE_OVER | HEADLINE_QUIET},
    WIRES_NEAR(BETWEEN_PROCESSES, BETWEEN_PROCESSES){.pipe = NULL},
};

static const struct bench_contrast contrasts[] = {
    {.title = "RDMA from and to host memory against GPU memory",
     .where = "metric=bandwidth transport=rdma memory=cuda:* direction!=both,sum rail=,all",
     .column = "memory",
     .other = "memory=host",
     .by = "memory direction",
     .lower = "host memory is %s slower than GPU memory",
     .higher = "host memory is %s faster: the path between this GPU and the adapter is slow",
     .same = "GPU memory is as fast as host memory"},
    {.title = NULL},
};

#define RAILS "metric=bandwidth rail=[0-9]* direction!=both,sum "
#define RAIL                                                                                       \
    .title = "rail", .column = "rail", .named = "rail_device rail_gpu peer=rail_peer_device"

/* Rails are built alike. From GPU memory an adapter reaches its line's rate where it reads and
 * writes that memory by itself, as it does from host memory. */
static const struct bench_sibling siblings[] = {
    {RAIL, .where = RAILS "memory=host", .below = 90, .says = "carries %s of the other rails"},
    {RAIL, .where = RAILS "memory!=host", .below = 90,
     .says = "carries %s of the other rails, from GPU memory"},
    {RAIL, .where = RAILS "memory=rail | " RAILS "peer_memory=rail",
     .against = "memory=host peer_memory=host", .but = "memory peer_memory", .below = 80,
     .says = "carries %s of its host-memory rate from GPU memory: GPUDirect is slow",
     .refused = "gpu_direct=refused",
     .absent = "has no GPUDirect: an adapter of either end cannot register GPU memory"},
    {.title = NULL},
};

static const struct bench_plot plots[] = {
    {.x = "size",
     .lines = "transport streams direction verb mode zerocopy poll side scope from to threads",
     .ignore = "pattern",
     .flags = PLOT_BYTES},
    {.x = NULL},
};

static const struct bench_pipe pipes[] = {
    {.pipe = "Copies", .where = "transport=" WIRES_NEAR_WORDS},
    {.pipe = "GPU memory by RDMA", .where = "memory=cuda:* | memory=rail"},
    {.pipe = "Network"},
    {.pipe = NULL}};

#define ON_WIRE(id, has, of, figure, options, one, other, ...)                                     \
    {                                                                                              \
        .check = id, .cause = has, .lost = of, .both = options " --no-cpu", .with = one,           \
        .without = other, .metric = figure, .pipe = "Network", __VA_ARGS__                         \
    }
#define BY_TCP   "--transport tcp --pattern bandwidth --size 1M"
#define BY_RDMA  "--transport rdma --pattern bandwidth --size 1M"
#define PINGS    " --pattern latency --size 8"
#define A_DEVICE .machine = "rdma!=0", .lacks = "it has no RDMA device"
#define TWO_CPUS .machine = "cpus!=1", .lacks = "it has one CPU"

static const struct bench_experiment experiments[] = {
    ON_WIRE("congestion", "BBR in place of CUBIC", "TCP bandwidth", "bandwidth", BY_TCP,
            "--congestion bbr", "--congestion cubic", .machine = "congestion=*+bbr+*",
            .lacks = "its kernel has no BBR that programs may choose"),
    ON_WIRE("one-connection", "one TCP connection in place of four", "TCP bandwidth", "bandwidth",
            BY_TCP, "--streams 1", "--streams 4", TWO_CPUS),
    ON_WIRE("mtu", "segments of MTU 1500 in place of those of MTU 9000", "TCP bandwidth",
            "bandwidth", BY_TCP, "--segment 1440", "--segment 8940", .machine = "peer!=",
            .lacks = "loopback has no frames: --peer names a host behind a line of MTU 9000"),
    ON_WIRE("lossy-line", "CUBIC, which each loss slows, in place of BBR, which it does not",
            "TCP bandwidth", "average_bandwidth",
            "--transport tcp --pattern bandwidth --size 64K --warmup 1s --budget 2s",
            "--congestion cubic", "--congestion bbr", .machine = "peer!= congestion=*+bbr+*",
            .lacks = "it takes --peer HOST, behind the line, and a BBR that programs may choose",
            .counts = "retransmits", .absent = "no packet was sent again: the line lost none"),
    ON_WIRE("tcp-waiting", "a thread that sleeps in place of one that polls", "TCP latency",
            "latency", "--transport tcp" PINGS, "--poll block", "--poll spin", TWO_CPUS),
    ON_WIRE("rdma-waiting", "completions by events in place of polling", "RDMA latency", "latency",
            "--transport rdma" PINGS, "--completion event", "--completion poll", A_DEVICE),
    ON_WIRE("one-queue", "one queue pair in place of four", "RDMA bandwidth", "bandwidth", BY_RDMA,
            "--streams 1", "--streams 4", A_DEVICE),
    ON_WIRE("strict-ordering", "buffers without relaxed ordering in place of with it",
            "RDMA bandwidth", "bandwidth", BY_RDMA, "--relaxed-ordering off",
            "--relaxed-ordering on", A_DEVICE),
    ON_WIRE("rdma-mtu", "a path MTU of 1024 in place of the port's", "RDMA bandwidth", "bandwidth",
            BY_RDMA, "--mtu 1024", "--mtu 0", .machine = "rdma!=0 rdma_mtu=4096",
            .lacks = "it has no RDMA device, or one whose MTU is below 4096"),
    {.check = NULL},
};

/* One port, one operation a call, a reliable connection: what ours does. Names of devices, MTU and
 * GID index are of the other machine. */
#define PLAIN "direction=forward connection=RC dual= post_list= received= way= memory=,cuda:*"
#define VERB_BANDWIDTH(verbs, direction)                                                           \
    {                                                                                              \
        .program = "perftest", .where = "test=bandwidth verb=" verbs " " PLAIN,                    \
        .quantity = "average_bandwidth", .metric = "average_bandwidth",                            \
        .columns = "transport=rdma pattern=bandwidth direction=" direction                         \
                   " verb=@verb size=@size streams=@qps depth=@depth completion=@completion "      \
                   "memory=@memory"                                                                \
    }
/* MPI is no transport of ours: such rows stand for themselves. */
#define BY_MPI(test_, quantity_, columns_, differs_)                                               \
    {                                                                                              \
        .program = "osu-micro-benchmarks", .where = "test=" test_ " sent=", .quantity = quantity_, \
        .metric = quantity_,                                                                       \
        .columns = "transport=mpi size=@size memory=@sender peer_memory=@receiver " columns_,      \
        .differs = differs_                                                                        \
    }
#define OF_PAIRS "it divides all bytes by the mean of the pairs' times"
#define NOT_OURS(program_, where_, refused_)                                                       \
    {                                                                                              \
        .program = program_, .where = where_, .quantity = "", .metric = "", .columns = "",         \
        .refused = refused_                                                                        \
    }

static const struct bench_imported imported[] = {
    VERB_BANDWIDTH("write,write-imm,send", "forward"),
    VERB_BANDWIDTH("read", "reverse"),
    {.program = "perftest",
     .where = "test=latency verb=write,read,send " PLAIN,
     .quantity = "latency",
     .metric = "latency",
     .columns = "transport=rdma pattern=latency verb=@verb size=@size completion=@completion "
                "memory=@memory"},
    NOT_OURS("perftest", "connection!=,RC", "its connection is not a reliable one (RC)"),
    NOT_OURS("perftest", "direction=both",
             "with -b it adds the rates of both directions, and the sum here is all bytes over the "
             "time of both"),
    NOT_OURS("perftest", "post_list!=", "it posts several operations at a time (Post List, -l)"),
    NOT_OURS("perftest", "received!=",
             "it posts several receives at a time (Recv Post List, --recv_post_list)"),
    NOT_OURS("perftest", "dual=ON", "it uses both ports of the device at once (-O, Dual-port)"),
    NOT_OURS("perftest", "verb=atomic", "no benchmark here measures atomics"),
    NOT_OURS("perftest", "verb=send-imm | verb=write-imm test=latency",
             "no benchmark here has its verb, with immediate data"),
    NOT_OURS("perftest", "way=multicast", "no benchmark here measures multicast"),
    NOT_OURS("perftest", "way=forwarding", "no benchmark here measures forwarding"),
    NOT_OURS("perftest", "memory=other",
             "its buffers are on GPUs of a maker that has no name here"),
    {.program = "iperf3",
     .where = "protocol=TCP direction=forward,reverse paced=",
     .quantity = "average_bandwidth",
     .metric = "average_bandwidth",
     .columns = "transport=tcp pattern=bandwidth direction=@direction size=@size "
                "streams=@streams"},
    NOT_OURS(
        "iperf3", "direction=both",
        "with --bidir each direction has a rate of its own, and ours are over the time of both"),
    NOT_OURS("iperf3", "protocol!=,TCP", "no benchmark here measures its protocol"),
    NOT_OURS("iperf3", "paced=1", "it sends at a rate that was asked for (-b, --fq-rate)"),
    BY_MPI("Latency-Test", "latency", "pattern=latency", NULL),
    BY_MPI("Bandwidth-Test", "average_bandwidth", "pattern=bandwidth direction=forward streams=1",
           NULL),
    BY_MPI("Bi-Directional-Bandwidth-Test", "average_bandwidth",
           "pattern=bandwidth direction=sum streams=1", NULL),
    BY_MPI("Multiple-Bandwidth-/-Message-Rate-Test", "average_bandwidth",
           "pattern=bandwidth direction=forward streams=@pairs", OF_PAIRS),
    BY_MPI("Multiple-Bandwidth-/-Message-Rate-Test", "message_rate",
           "pattern=rate direction=forward streams=@pairs", OF_PAIRS),
    NOT_OURS("osu-micro-benchmarks",
             "sent!=", "less is sent of a derived type (-D) than its size says"),
    NOT_OURS("osu-micro-benchmarks", "test=Multi-Latency-Test",
             "it is the latency of several pairs at once, and no benchmark here measures that"),
    {.program = NULL},
};

static const struct bench_start starts[] = {
    {.what = "the peer, and the second for which the idle machine is watched",
     .where = "transport=shm,cma,tcp"},
    {.what = NULL},
};

const struct bench_rows bench_rows = {
    .stage = STAGE_NETWORK,
    .columns = columns,
    .metrics = metrics,
    .headlines = headlines,
    .contrasts = contrasts,
    .siblings = siblings,
    .plots = plots,
    .pipes = pipes,
    .experiments = experiments,
    .starts = starts,
    .imported = imported,
    .context = "transport pattern direction streams",
};

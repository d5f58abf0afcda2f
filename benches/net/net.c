/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net: the same messages over shared memory, TCP and RDMA, the CPU they cost, and which way they
 * went.
 *
 * What is timed: threads stream without a pause (stream.c: net_work() -> turn()), and a sample is
 * what moved between two readings of their tallies (lead_rates.c: net_lead_stream()); or one message
 * there and back, between two readings of the clock (message.c: net_ping() -> burst()). Bytes move
 * by wire_send(), wire_receive() and wire_progress() of the transport (core/wire).
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "benches/net/net_work.h"
#include "core/bench/bench.h"
#include "core/hw/gpu.h"
#include "core/hw/place.h"
#include "core/hw/rail.h"
#include "core/program.h"
#include "core/units.h"
#include "core/wire/wires.h"

#define MOST_SAMPLES "20000000" /* that -D and -n keep: with what is made of them, 1 GB */

/* Memory of a rail's GPU takes a rail. */
static int need_rail(struct opts *o)
{
    static const char *const names[] = {"memory", "peer-memory"};

    for (size_t i = 0; i < 2 && !opts_values(o, "rail")->n; i++) {
        const struct opt_values *v = opts_values(o, names[i]);

        for (size_t k = 0; k < v->n; k++)
            if (!strcmp(v->texts[k], NET_MEMORY_RAIL)) {
                snprintf(o->error, sizeof(o->error),
                         "--%s rail is the memory of a rail's GPU: say which with --rail",
                         names[i]);
                return -EINVAL;
            }
    }
    return 0;
}

/* perftest's and iperf3's users write the host alone, and know -D and -n. */
static int choose_defaults(struct opts *o)
{
    bool is_set = opts_values(o, "duration")->given || opts_values(o, "iterations")->given;
    int err = pair_defaults(o);

    if (!err && opts_values(o, "duration")->given)
        err = opts_default(o, "budget", opts_values(o, "duration")->texts[0]);
    else if (!err && opts_values(o, "iterations")->given)
        err = opts_default(o, "budget", "1h");
    if (!err && is_set)
        err = opts_default(o, "min-samples", "1000000000"); /* it never converges */
    /* A latency of which nobody says how long or how often ends by our choice; else so many samples
     * are kept as are asked for. */
    if (!err && is_set)
        err = opts_default(o, "max-samples", MOST_SAMPLES);
    else if (!err && !opts_values(o, "max-samples")->given)
        err = opts_set(o, "samples-chosen", "true");
    if (!err && (opts_values(o, "host")->n || opts_values(o, "listen")->n))
        err = opts_default(o, "transport", "tcp,rdma");
    if (!err)
        err = need_rail(o);
    if (!err && !opts_values(o, "size")->given)
        err = opts_set(o, "sizes-chosen", "true");
    return err;
}

static int instead(struct opts *o, const struct bench_common *common, const volatile int *cancel)
{
    struct net_params params = {0};

    (void)common;
    if (opts_apply(o, o->tables[0], NULL, &params))
        return EXIT_USAGE;
    return net_peer_serve(&params, cancel);
}

/* Sizes that nobody chose: small ones for latency and rates, large ones for bandwidth. */
static bool is_wanted(struct point *pt)
{
    const struct net_params *p = pt->params;

    if (!p->sizes_chosen)
        return true;
    switch (p->pattern) {
    case NET_BANDWIDTH:
        return p->size >= 65536;
    case NET_MESSAGE_RATE:
        return p->size <= 64;
    case NET_LATENCY:
        return p->size == 8 || p->size == 1024 || p->size == 65536;
    default:
        return p->size == 8;
    }
}

/* GPUs, too: whose memory RDMA devices may reach; and which of these is near which GPU. */
static void list_backends(backend_say_fn *say, void *arg)
{
    wire_backends(say, arg);
    gpus_say(say, arg);
    rails_say(say, arg);
}

/* ---- Options ---- */

static const char *const patterns[] = {"bandwidth", "latency", "rate", "loaded-latency", NULL};
static const char *const ways[] = {"forward", "reverse", "both", NULL};
static const char *const off_on[] = {"off", "on", NULL};
static const char *const waits[] = {"block", "spin", NULL};
static const char *const injects[] = {"none", "corrupt", "elsewhere", NULL};

#define AT(field)   .offset = offsetof(struct net_params, field)
#define MEET(field) .offset = offsetof(struct net_params, meet.field)
#define SWEPT       .flags = OPT_LIST | OPT_COLUMN

static const struct opt_scope with_device = {"transport=" WIRES_FAR_WORDS " rail=",
                                             "transports between machines, without --rail"};
static const struct opt_scope by_tcp = {"transport=tcp", "TCP"};
static const struct opt_scope by_rdma = {"transport=rdma", "RDMA"};
static const struct opt_scope with_streams = {"pattern=bandwidth,rate,loaded-latency",
                                              "patterns that stream"};
static const struct opt_scope with_load = {"pattern=loaded-latency", "loaded-latency"};
static const struct opt_scope tcp_streams = {"transport=tcp pattern=bandwidth,rate,loaded-latency",
                                             "TCP streams"};
static const struct opt_scope tcp_pings = {"transport=tcp pattern=latency,loaded-latency",
                                           "TCP latency"};
static const struct opt_scope rdma_streams = {
    "transport=rdma pattern=bandwidth,rate,loaded-latency", "RDMA streams"};
static const struct opt_scope rdma_rates = {"transport=rdma pattern=bandwidth,rate",
                                            "RDMA bandwidth and rate"};

static int parse_node(const char *text, void *value, char *error, size_t len)
{
    static const struct place_word words[] = {
        {"near", NET_NODE_NEAR}, {"far", NET_NODE_FAR}, {NULL, 0}};

    return place_parse_word(text, words, value, error, len);
}

/* The host, a GPU, or NET_MEMORY_RAIL. */
static int parse_memory(const char *text, void *value, char *error, size_t len)
{
    *(const char **)value = text;
    return strcmp(text, NET_MEMORY_RAIL) != 0 ? place_read_device(text, value, error, len) : 0;
}

static const struct opt options[] = {
    PAIR_OPTIONS(MEET, "plumb-net", "a second process on this machine"),
    {.name = "transport",
     OPT_WORD(OPT_SWEPT, transport, "shm", wire_names),
     .help =
         "shm, and cma (process_vm_readv): both ends on one machine; default with HOST: tcp and "
         "rdma"},
    {.name = "pattern",
     OPT_WORD(OPT_SWEPT, pattern, "bandwidth,latency", patterns),
     .help = "bandwidth; latency: half of a round trip; rate: messages per second; loaded-latency: "
             "latency during a bandwidth stream"},
    {.name = "direction",
     OPT_WORD(OPT_SWEPT | OPT_SPLITS, way, "forward", ways),
     .scope = &with_streams,
     .help = "direction of the stream: from this end, to this end, or both at once (rows "
             "both-forward, both-reverse, sum)"},
    {.name = "size",
     .letter = 's',
     OPT_NUMBER(OPT_SIZE, OPT_SWEPT, size, "8,64,1K,64K,1M,16M", 1, NET_BYTES_MAX),
     .help = "message size; default: the useful sizes of each pattern"},
    {.name = "load-size",
     OPT_NUMBER(OPT_SIZE, OPT_SWEPT, load_size, "1M", 1, NET_BYTES_MAX),
     .scope = &with_load,
     .help = "message size of the load"},
    {.name = "streams",
     .letter = 'q',
     OPT_NUMBER(OPT_U64, OPT_SWEPT, streams, "1", 1, NET_CONNECTIONS_MAX),
     .scope = &with_streams,
     .help = "number of TCP connections or queue pairs"},
    {.name = "threads",
     .letter = 't',
     OPT_NUMBER(OPT_U64, OPT_SWEPT, threads, "0", 0, NET_WORKERS_MAX / 2),
     .scope = &with_streams,
     .left_by = "0",
     .help =
         "threads at each end for each direction; 0: one, or with --mode blocking one per stream"},
    {.name = "device",
     .letter = 'd',
     OPT_READ(OPT_SWEPT, device, NULL, "NIC[+NIC]", net_parse_devices),
     .scope = &with_device,
     .help = "interface, its address, or RDMA device (mlx5_0:1). Several at once with '+': a row "
             "for each and one for the sum. Default: the device that leads to the peer"},
    {.name = "peer-device",
     OPT_READ(OPT_SWEPT, peer_device, NULL, "NIC[+NIC]", net_parse_devices),
     .scope = &with_device,
     .help = "device of the peer, unless the peer's command line names one"},
    {.name = "rail",
     OPT_READ(OPT_SWEPT | OPT_SPLITS, rail, NULL, "N|rails", rail_read),
     .expand = rail_words,
     .scope = &by_rdma,
     .help = "GPU N of each end's machine with the RDMA device nearest to it; rails: each of this "
             "machine. --memory rail is that GPU's"},
    {.name = "node",
     OPT_READ(OPT_SWEPT, node, "near", "near|far|N", parse_node),
     .left_by = "near",
     .help = "NUMA node of threads and buffers: near the device, far from it, or N"},
    {.name = "peer-node",
     OPT_READ(OPT_SWEPT, peer_node, "near", "near|far|N", parse_node),
     .left_by = "near",
     .help = "NUMA node of the peer's threads and buffers"},
    {.name = "memory",
     OPT_READ(OPT_SWEPT, memory, "host", "host|cuda:N|rail", parse_memory),
     .expand = place_words,
     .scope = &by_rdma,
     .help = "memory of this end's buffers: the host's or a GPU's"},
    {.name = "peer-memory",
     OPT_READ(OPT_SWEPT, peer_memory, "host", "host|cuda:N|rail", parse_memory),
     .expand = place_words,
     .scope = &by_rdma,
     .help = "memory of the peer's buffers"},
    {.name = "mode",
     OPT_WORD(OPT_SWEPT, mode, "blocking", wire_tcp_modes),
     .scope = &tcp_streams,
     .help = "blocking: one thread per stream; epoll: several streams per thread"},
    {.name = "zerocopy",
     OPT_OF(OPT_FLAG, OPT_COLUMN, zerocopy, NULL),
     .scope = &tcp_streams,
     .help = "send with MSG_ZEROCOPY"},
    {.name = "poll",
     OPT_WORD(OPT_SWEPT, wait, "block", waits),
     .scope = &tcp_pings,
     .help = "how latency waits: block in the kernel, or spin"},
    WIRE_OPT_BUSY_POLL(SWEPT, AT(busy_poll_us), .scope = &by_tcp),
    WIRE_OPT_BUFFER(SWEPT, AT(buffer_bytes), .scope = &by_tcp),
    WIRE_OPT_CONGESTION(SWEPT, AT(congestion), .scope = &by_tcp,
                        .help = "congestion control (cubic, bbr, ...); default: the system's, "
                                "which the column `detail` shows"),
    WIRE_OPT_SEGMENT(SWEPT, AT(segment_bytes), .scope = &by_tcp, .left_by = "0"),
    WIRE_OPT_DATA_PORT(AT(data_port),
                       .help = "first port for TCP streams at the peer, for firewalls; 0: any"),
    {.name = "verb",
     OPT_WORD(OPT_SWEPT, verb, "write", wire_verbs),
     .scope = &by_rdma,
     .help = "RDMA operation; write-imm: a write with immediate data"},
    {.name = "depth",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, depth, "128", 1, 8192),
     .scope = &rdma_streams,
     .help = "work requests in flight on each queue pair"},
    {.name = "inline",
     OPT_READ(OPT_SWEPT, inline_bytes, "auto", "auto|BYTES", wire_parse_auto),
     .scope = &by_rdma,
     .help = "messages up to this size are sent inline"},
    {.name = "signal",
     OPT_NUMBER(OPT_U64, OPT_SWEPT, signal_every, "0", 0, 8192),
     .scope = &rdma_streams,
     .help = "one request in N is signalled; 0: chosen by size and depth"},
    WIRE_OPT_COMPLETION(
        SWEPT, AT(completion), .scope = &by_rdma,
        .help = "how a thread waits for completions: it polls, or sleeps until an event"),
    WIRE_OPT_MTU(SWEPT, AT(mtu), .scope = &by_rdma),
    WIRE_OPT_GID_INDEX(SWEPT, AT(gid_index), .scope = &by_rdma),
    {.name = "relaxed-ordering",
     OPT_WORD(OPT_SWEPT, relaxed, "off", off_on),
     .scope = &rdma_rates,
     .help = "register both ends' buffers for relaxed ordering on PCIe, where the device knows it"},
    {.name = "connect",
     OPT_WORD(OPT_SWEPT, connect, "exchange", wire_connects),
     .scope = &by_rdma,
     .help = "exchange: over the control connection; cm: by the RDMA connection manager (iWARP "
             "needs it)"},
    {.name = "qp-timeout",
     OPT_NUMBER(OPT_U64, 0, timeout, "0", 0, 31),
     .scope = &by_rdma,
     .help = "time-out of a queue pair, 4.096 us * 2^N; 0: default"},
    {.name = "qp-retry",
     OPT_NUMBER(OPT_U64, 0, retry, "0", 0, 7),
     .scope = &by_rdma,
     .help = "number of retries of a queue pair; 0: default"},
    {.name = "no-cpu",
     OPT_OF(OPT_FLAG, 0, no_cpu, NULL),
     .help = "do not measure CPU time, nor the idle load before"},
    {.name = "iterations",
     .letter = 'n',
     OPT_OF(OPT_U64, 0, iterations, "0"),
     .help = "number of messages to measure; 0: until converged. Only --budget, if it is given, "
             "ends the measurement earlier"},
    {.name = "duration",
     .letter = 'D',
     OPT_OF(OPT_DURATION, 0, duration_ns, NULL),
     .arg = "TIME",
     .help = "time to measure, even if converged earlier. As with -n, at most 20 million samples "
             "are kept, unless --max-samples is larger; a ping is one sample"},
    {.name = "inject",
     OPT_WORD(OPT_HIDDEN, inject, "none", injects),
     .help = "for tests: spoil the data, or claim another path; both must be found"},
    {.name = "sizes-chosen", OPT_OF(OPT_FLAG, OPT_HIDDEN, sizes_chosen, NULL), .help = ""},
    {.name = "samples-chosen", OPT_OF(OPT_FLAG, OPT_HIDDEN, samples_chosen, NULL), .help = ""},
    {.name = NULL},
};

const struct bench bench = {
    .name = "net",
    .help = "messages to another process or machine: bandwidth, latency, rate, CPU cost",
    .about = "Without HOST, a second process on this machine is the peer. Between machines,\n"
             "start `plumb-net --listen 0.0.0.0 --secret-file F` on one and `plumb-net HOST\n"
             "--secret-file F` on the other, or use `mpirun -np 2 plumb-net`. Only clients\n"
             "with the secret can connect (docs/security.md).\n"
             "\n"
             "Bandwidth is goodput: the payload that arrived, over the time between the first\n"
             "and the last arrival of a sample. Latency is half of a round trip (of a read:\n"
             "the whole one), over at most 100,000 messages, unless -D, -n or --max-samples is\n"
             "given. CPU seconds per GB are those of the threads, and of the whole machine\n"
             "minus its idle load. The system's counters of every NIC prove which path the\n"
             "bytes took. If it is another path than requested, the row is wrong.",
    .needs = "peer",
    .arguments = "[HOST]",
    .options = options,
    .params_size = sizeof(struct net_params),
    .rows = &bench_rows,
    .defaults = choose_defaults,
    .instead = instead,
    .wanted = is_wanted,
    .bench_state_size = sizeof(struct net_session),
    .close = net_bench_close,
    .possible = net_bench_possible,
    .setup = net_bench_setup,
    .begin = net_bench_begin,
    .sample = net_bench_sample,
    .check = net_bench_check,
    .evidence = net_bench_evidence,
    .teardown = net_bench_teardown,
    .backends = list_backends,
};

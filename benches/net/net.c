/* SPDX-License-Identifier: Apache-2.0 */
/* net: the same messages over shared memory, TCP and RDMA, the CPU they cost, and which
 * way they went. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "benches/net/net_work.h"
#include "core/bench/bench.h"
#include "core/exit_code.h"
#include "core/hw/place.h"
#include "core/units.h"
#include "core/wire/options.h"

#define MOST_SAMPLES "20000000" /* that -D and -n keep: with what is made of them, 1 GB */

static const char *const patterns[] = {"bandwidth", "latency", "rate", "loaded-latency", NULL};
static const char *const ways[] = {"forward", "reverse", "both", NULL};
static const char *const waits[] = {"block", "spin", NULL};
static const char *const injects[] = {"none", "corrupt", "elsewhere", NULL};

#define AT(field)            .offset = offsetof(struct net_params, field)
#define SWEPT                .flags = OPT_LIST | OPT_COLUMN
#define CHOICE(field, names) .type = OPT_CHOICE, SWEPT, AT(field), .choices = (names)

static const struct opt_scope with_device = {"transport=tcp,rdma", "TCP and RDMA"};
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

/* *value is an int: near, far or a number. */
static int parse_node(const char *text, void *value, char *error, size_t len)
{
    uint64_t number;

    if (!strcmp(text, "near") || !strcmp(text, "far")) {
        *(int *)value = text[0] == 'n' ? NET_NODE_NEAR : NET_NODE_FAR;
        return 0;
    }
    if (units_parse_u64(text, &number) || number > 65535) {
        snprintf(error, len, "'%s' is not near, far or a node's number", text);
        return -EINVAL;
    }
    *(int *)value = (int)number;
    return 0;
}

static const struct opt options[] = {
    {.name = "host",
     .type = OPT_STRING,
     AT(host),
     .arg = "HOST",
     .help = "the peer, where `plumb-net --listen` runs; the word without an option is the same; "
             "none: a second process here"},
    {.name = "listen",
     .letter = 'l',
     .type = OPT_STRING,
     AT(listen),
     .arg = "ADDR",
     .help = "serve peers on this address (0.0.0.0: all) until stopped; 'loopback': this machine "
             "only"},
    {.name = "port",
     .letter = 'p',
     .type = OPT_U64,
     AT(port),
     .def = "18515",
     .max = 65535,
     .help = "of the listener"},
    {.name = "secret-file",
     .type = OPT_STRING,
     AT(secret_file),
     .arg = "FILE",
     .help =
         "both ends' secret, 16 characters or more in one line ('-': stdin); $PLUMB_SECRET_FILE"},
    {.name = "wait",
     .type = OPT_DURATION,
     AT(wait_ns),
     .def = "10s",
     .help = "try so long to reach a listener, or one that is busy"},
    {.name = "runs",
     .type = OPT_U64,
     AT(runs),
     .def = "0",
     .help = "a listener ends after so many peers; 0: never"},
    {.name = "transport",
     CHOICE(transport, net_names),
     .def = "shm",
     .help = "shm: both ends on one machine; with a HOST: tcp and rdma unless given"},
    {.name = "pattern",
     CHOICE(pattern, patterns),
     .def = "bandwidth,latency",
     .help = "bandwidth; latency: half of a round trip; rate: of messages; loaded-latency: while a "
             "bandwidth stream runs"},
    {.name = "direction",
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN | OPT_SPLITS,
     AT(way),
     .choices = ways,
     .def = "forward",
     .scope = &with_streams,
     .help = "of the stream: from this end, to it, both at once (rows both-forward, both-reverse, "
             "sum)"},
    {.name = "size",
     .letter = 's',
     .type = OPT_SIZE,
     SWEPT,
     AT(size),
     .def = "8,64,1K,64K,1M,16M",
     .min = 1,
     .max = NET_BYTES_MAX,
     .help = "of a message; unless given, each pattern takes the sizes that say something of it"},
    {.name = "load-size",
     .type = OPT_SIZE,
     SWEPT,
     AT(load_size),
     .def = "1M",
     .min = 1,
     .max = NET_BYTES_MAX,
     .scope = &with_load,
     .help = "of the load's messages"},
    {.name = "streams",
     .letter = 'q',
     .type = OPT_U64,
     SWEPT,
     AT(streams),
     .def = "1",
     .min = 1,
     .max = NET_CONNECTIONS_MAX,
     .scope = &with_streams,
     .help = "TCP connections or queue pairs"},
    {.name = "threads",
     .letter = 't',
     .type = OPT_U64,
     SWEPT,
     AT(threads),
     .def = "0",
     .max = NET_WORKERS_MAX / 2,
     .scope = &with_streams,
     .left_by = "0",
     .help = "at each end and for each direction; 0: one, or with --mode blocking one a stream"},
    {.name = "device",
     .letter = 'd',
     .type = OPT_CUSTOM,
     SWEPT,
     AT(device),
     .arg = "NIC[+NIC]",
     .parse = net_parse_devices,
     .scope = &with_device,
     .help = "interface, its address, or RDMA device (mlx5_0:1); several at once with '+': a row "
             "each and the sum; unless given, the one that leads to the peer"},
    {.name = "peer-device",
     .type = OPT_CUSTOM,
     SWEPT,
     AT(peer_device),
     .arg = "NIC[+NIC]",
     .parse = net_parse_devices,
     .scope = &with_device,
     .help = "the peer's, unless its own command line says one"},
    {.name = "node",
     .type = OPT_CUSTOM,
     SWEPT,
     AT(node),
     .def = "near",
     .arg = "near|far|N",
     .parse = parse_node,
     .left_by = "near",
     .help = "NUMA node of threads and buffers: the device's, another one, or N"},
    {.name = "peer-node",
     .type = OPT_CUSTOM,
     SWEPT,
     AT(peer_node),
     .def = "near",
     .arg = "near|far|N",
     .parse = parse_node,
     .left_by = "near",
     .help = "the same at the peer"},
    {.name = "memory",
     .type = OPT_CUSTOM,
     SWEPT,
     AT(memory),
     .parse = place_read_device,
     .expand = place_words,
     .def = "host",
     .arg = "host|cuda:N",
     .scope = &by_rdma,
     .help = "where this end's buffers are: the host's memory or a GPU's"},
    {.name = "peer-memory",
     .type = OPT_CUSTOM,
     SWEPT,
     AT(peer_memory),
     .parse = place_read_device,
     .expand = place_words,
     .def = "host",
     .arg = "host|cuda:N",
     .scope = &by_rdma,
     .help = "where the peer's are"},
    {.name = "mode",
     CHOICE(mode, net_tcp_modes),
     .def = "blocking",
     .scope = &tcp_streams,
     .help = "a thread for each stream, or several streams a thread by epoll"},
    {.name = "zerocopy",
     .type = OPT_FLAG,
     .flags = OPT_COLUMN,
     AT(zerocopy),
     .scope = &tcp_streams,
     .help = "send with MSG_ZEROCOPY"},
    {.name = "poll",
     CHOICE(wait, waits),
     .def = "block",
     .scope = &tcp_pings,
     .help = "for latency: block in the kernel, or spin"},
    WIRE_OPT_BUSY_POLL(SWEPT, AT(busy_poll_us), .scope = &by_tcp),
    WIRE_OPT_BUFFER(SWEPT, AT(buffer_bytes), .scope = &by_tcp),
    WIRE_OPT_CONGESTION(
        SWEPT, AT(congestion), .scope = &by_tcp,
        .help = "congestion control (cubic, bbr, ...); unless given, the system's: see the column "
                "`detail`"),
    WIRE_OPT_DATA_PORT(AT(data_port),
                       .help = "first port for TCP streams at the peer, for firewalls; 0: any"),
    {.name = "verb",
     CHOICE(verb, net_verbs),
     .def = "write",
     .scope = &by_rdma,
     .help = "write; write-imm: with immediate data; read; send"},
    {.name = "depth",
     .type = OPT_U64,
     SWEPT,
     AT(depth),
     .def = "128",
     .min = 1,
     .max = 8192,
     .scope = &rdma_streams,
     .help = "work requests in flight on each queue pair"},
    {.name = "inline",
     .type = OPT_CUSTOM,
     SWEPT,
     AT(inline_bytes),
     .def = "auto",
     .arg = "auto|BYTES",
     .parse = net_parse_auto,
     .scope = &by_rdma,
     .help = "messages up to this size go with the request"},
    {.name = "signal",
     .type = OPT_U64,
     SWEPT,
     AT(signal_every),
     .def = "0",
     .max = 8192,
     .scope = &rdma_streams,
     .help = "one of so many requests is signalled; 0: chosen by size and depth"},
    WIRE_OPT_COMPLETION(SWEPT, AT(completion), .scope = &by_rdma,
                        .help = "how a thread learns of it: it polls, or sleeps until an event"),
    WIRE_OPT_MTU(SWEPT, AT(mtu), .scope = &by_rdma),
    WIRE_OPT_GID_INDEX(SWEPT, AT(gid_index), .scope = &by_rdma),
    {.name = "connect",
     CHOICE(connect, net_connects),
     .def = "exchange",
     .scope = &by_rdma,
     .help = "exchange: over our own connection; cm: by the RDMA connection manager (iWARP needs "
             "it)"},
    {.name = "qp-timeout",
     .type = OPT_U64,
     AT(timeout),
     .def = "0",
     .max = 31,
     .scope = &by_rdma,
     .help = "4.096 us * 2^N; 0: chosen"},
    {.name = "qp-retry",
     .type = OPT_U64,
     AT(retry),
     .def = "0",
     .max = 7,
     .scope = &by_rdma,
     .help = "sends again so often; 0: chosen"},
    {.name = "tune",
     .type = OPT_FLAG,
     AT(tune),
     .help =
         "look first for the fewest streams, the least depth and the smallest message that reach "
         "95 % of the best bandwidth; then measure that"},
    {.name = "no-cpu",
     .type = OPT_FLAG,
     AT(no_cpu),
     .help =
         "leave out what the CPUs spend, and the second that the idle machine is watched for it"},
    {.name = "iterations",
     .letter = 'n',
     .type = OPT_U64,
     AT(iterations),
     .def = "0",
     .help =
         "ends when so many messages have arrived, neither sooner nor, unless --budget says so, "
         "later; 0: when it has converged"},
    {.name = "duration",
     .letter = 'D',
     .type = OPT_DURATION,
     AT(duration_ns),
     .arg = "TIME",
     .help = "measures for so long, however soon it converges; as with -n, at most 20 million "
             "samples are kept (pings: one each), unless --max-samples says more"},
    {.name = "inject",
     .type = OPT_CHOICE,
     .flags = OPT_HIDDEN,
     AT(inject),
     .def = "none",
     .choices = injects,
     .help = "for tests: spoil the data, or claim another path; both must be found"},
    {.name = "sizes-chosen", .type = OPT_FLAG, .flags = OPT_HIDDEN, AT(sizes_chosen), .help = ""},
    {.name = "samples-chosen",
     .type = OPT_FLAG,
     .flags = OPT_HIDDEN,
     AT(samples_chosen),
     .help = ""},
    {.name = NULL},
};

/* A latency of which nobody says how long or how often ends by our choice; else so many samples are
 * kept as are asked for. */
static int default_samples(struct opts *o, bool is_set)
{
    if (is_set)
        return opts_default(o, "max-samples", MOST_SAMPLES);
    return opts_values(o, "max-samples")->given ? 0 : opts_set(o, "samples-chosen", "true");
}

/* perftest's and iperf3's users write the host alone, and know -D and -n. */
static int choose_defaults(struct opts *o)
{
    bool is_set = opts_values(o, "duration")->given || opts_values(o, "iterations")->given;
    int err = 0;

    if (o->n_args == 1) {
        err = opts_set(o, "host", o->args[0]);
        if (!err)
            o->n_args = 0;
    }
    if (!err && opts_values(o, "duration")->given)
        err = opts_default(o, "budget", opts_values(o, "duration")->texts[0]);
    else if (!err && opts_values(o, "iterations")->given)
        err = opts_default(o, "budget", "1h");
    if (!err && is_set)
        err = opts_default(o, "min-samples", "1000000000"); /* it never converges */
    if (!err)
        err = default_samples(o, is_set);
    if (!err && (opts_values(o, "host")->n || opts_values(o, "listen")->n))
        err = opts_default(o, "transport", "tcp,rdma");
    if (!err && !opts_values(o, "size")->given)
        err = opts_set(o, "sizes-chosen", "true");
    return err;
}

/* -1: what was found is to be measured. */
static int tune(struct opts *o, const struct net_params *p, const volatile int *cancel)
{
    char error[2 * NET_ERROR_BYTES] = "";
    int err = net_tune(o, p, cancel, error, sizeof(error));

    if (!err)
        return -1;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, error[0] ? error : strerror(-err));
    return err == -EINVAL ? EXIT_USAGE : EXIT_INCOMPLETE;
}

static int instead(struct opts *o, const struct bench_common *common, const volatile int *cancel)
{
    struct net_params params = {0};

    (void)common;
    if (opts_apply(o, o->tables[0], NULL, &params))
        return EXIT_USAGE;
    int status = net_peer_serve(&params, cancel);
    return status < 0 && params.tune ? tune(o, &params, cancel) : status;
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

static void say_backends(backend_say_fn *say, void *arg)
{
    for (size_t i = 0; net_names[i]; i++) {
        const struct net_ops *ops = net_find(net_names[i]);
        if (ops->backends)
            ops->backends(say, arg);
        else
            say(arg, &(struct backend){.name = ops->name, .state = BACKEND_PRESENT});
    }
}

const struct bench bench = {
    .name = "net",
    .help = "messages to another process or machine: bandwidth, latency, rate, CPU cost",
    .about =
        "With no HOST a second process on this machine is the peer. Between machines: on one\n"
        "`plumb-net --listen 0.0.0.0 --secret-file F`, on the other `plumb-net HOST --secret-file "
        "F`;\n"
        "or `mpirun -np 2 plumb-net`. The secret keeps strangers out: docs/security.md.\n"
        "Bandwidth is goodput: payload that has arrived, over the time between the first and the "
        "last\n"
        "arrival of a sample. Latency is half of a round trip (of a read: all of it), of at most\n"
        "100,000 messages unless -D, -n or --max-samples says how long or how many. CPU seconds a "
        "GB\n"
        "are those of the threads, and of the whole machine less what it spends when idle. The "
        "system's\n"
        "counters of every NIC prove which way the bytes went: another one than asked is wrong.",
    .needs = "peer",
    .arguments = "[HOST]",
    .options = options,
    .params_size = sizeof(struct net_params),
    .rows = &bench_rows,
    .defaults = choose_defaults,
    .instead = instead,
    .wanted = is_wanted,
    .open = net_bench_open,
    .close = net_bench_close,
    .setup = net_bench_setup,
    .begin = net_bench_begin,
    .sample = net_bench_sample,
    .check = net_bench_check,
    .evidence = net_bench_evidence,
    .teardown = net_bench_teardown,
    .backends = say_backends,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What benchmarks of groups have in common: who takes part, and how their bytes go, as options say
 * it.
 *
 * Ranks are children of this process (--np), or find each other by sockets (--rank with --listen
 * and --leader), or a launcher of MPI started them. Rank 0 measures; the others serve it.
 */
#ifndef PLUMB_CORE_SESSION_RANKS_H
#define PLUMB_CORE_SESSION_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bench/bench.h"
#include "core/session/session.h"
#include "core/wire/wires.h"

struct ranks_params {
    const char *leader, *listen, *secret_file;
    uint64_t np, rank, port, wait_ns;
    bool who;
};

struct way_params {
    int backend, transport, gid_index, completion;
    const char *device, *algorithm, *congestion;
    uint64_t segment, buffer_bytes, busy_poll_us, data_port, mtu;
};

/* Where our own algorithms' options say something, and a library's. */
extern const struct opt_scope way_by_own, way_by_tcp, way_by_rdma, way_by_library;

/* Entries of a benchmark's table of options. at(field): `.offset` of that member of its struct
 * ranks_params, or of its struct way_params. */

/* clang-format off */
#define RANKS_OPTIONS(at)                                                                          \
    {.name = "np", .type = OPT_U64, at(np), .min = 1, .max = WORLD_RANKS_MAX, .arg = "N",          \
     .help = "number of processes; default: as many as mpirun or srun started, or as --ranks "     \
             "needs, else a few on this machine"},                                                 \
    {.name = "rank", .type = OPT_U64, at(rank), .def = "0", .max = WORLD_RANKS_MAX - 1,            \
     .help = "rank of this process, if each rank is started by hand: see --listen and --leader"},  \
    {.name = "listen", .letter = 'l', .type = OPT_STRING, at(listen), .arg = "ADDR",               \
     .help = "rank 0: wait for the others on this address (0.0.0.0: all; 'loopback': this "        \
             "machine)"},                                                                          \
    {.name = "leader", .type = OPT_STRING, at(leader), .arg = "HOST",                              \
     .help = "other ranks: the host on which rank 0 listens"},                                     \
    {.name = "port", .letter = 'p', .type = OPT_U64, at(port), .def = "18515", .max = 65535,       \
     .help = "port on which rank 0 listens"},                                                      \
    {.name = "secret-file", .type = OPT_STRING, at(secret_file), .arg = "FILE",                    \
     .help = "all ranks' secret, 16 characters or more in one line ('-': stdin); "                 \
             "$PLUMB_SECRET_FILE"},                                                                \
    {.name = "wait", .type = OPT_DURATION, at(wait_ns), .def = "60s",                              \
     .help = "longest time to wait for all ranks"},                                                \
    {.name = "who", .type = OPT_FLAG, at(who),                                                     \
     .help = "list the ranks and their hosts as CSV, and measure nothing"}

#define WAY_SWEPT   .flags = OPT_LIST | OPT_COLUMN
#define WAY_FITTING .flags = OPT_LIST | OPT_COLUMN | OPT_SWEEP

#define WAY_OPTIONS(at)                                                                            \
    {.name = "backend", .type = OPT_CHOICE, WAY_SWEPT, at(backend), .choices = collective_names,   \
     .def = "ring",                                                                                \
     .help = "ring, halving, doubling: our own algorithms; auto: that of them which the size suits; "   \
             "mpi, nccl: the library; mpi-cuda: MPI in a GPU's memory"},                           \
    {.name = "transport", .type = OPT_CHOICE, WAY_FITTING, at(transport), .choices = wire_names,   \
     .def = "shm", .scope = &way_by_own,                                                           \
     .help = "transport of our own algorithms; default between machines: tcp and rdma"},           \
    {.name = "device", .type = OPT_STRING, WAY_SWEPT, at(device), .arg = "NIC",                    \
     .help = "interface or RDMA device (mlx5_0:1) of every rank, unless a rank's own command "     \
             "line names another. 'a+b': ranks of a machine use them in turn. For a library: "     \
             "devices expected to carry the traffic; else the row is `wrong`"}

#define WAY_OPTIONS_CUT(at)                                                                        \
    {.name = "segment", .type = OPT_SIZE, WAY_FITTING, at(segment), .def = "0",                    \
     .max = 1ull << 30, .scope = &way_by_own,                                                      \
     .help = "segment size: a rank forwards each segment as it arrives; 0: chosen"},               \
    {.name = "algorithm", .type = OPT_STRING, WAY_FITTING, at(algorithm), .arg = "NAME",           \
     .scope = &way_by_library,                                                                     \
     .help = "algorithm to force in the library; default: its own choice, see the column "         \
             "`chosen`"}

#define WAY_OPTIONS_WIRE(at)                                                                       \
    WIRE_OPT_BUFFER(WAY_FITTING, at(buffer_bytes), .scope = &way_by_tcp),                          \
    WIRE_OPT_CONGESTION(WAY_FITTING, at(congestion), .scope = &way_by_tcp,                         \
                        .help = "congestion control; default: the system's"),                      \
    WIRE_OPT_BUSY_POLL(WAY_FITTING, at(busy_poll_us), .scope = &way_by_tcp),                       \
    WIRE_OPT_DATA_PORT(at(data_port), .help = "first port for the ranks' TCP connections, for "    \
                                              "firewalls; 0: any"),                                \
    WIRE_OPT_MTU(WAY_FITTING, at(mtu), .scope = &way_by_rdma),                                     \
    WIRE_OPT_GID_INDEX(WAY_FITTING, at(gid_index), .scope = &way_by_rdma),                         \
    WIRE_OPT_COMPLETION(WAY_FITTING, at(completion), .scope = &way_by_rdma,                        \
                        .help = "how a rank waits for completions: it polls, or sleeps until an "  \
                                "event")
/* clang-format on */

/* What these options mean for a point: backend, device, algorithm, segments and the transport. */
void way_fill(const struct way_params *w, struct collective_point *c);
/* The backends and the transports, for struct bench. */
void way_backends(backend_say_fn *say, void *arg);

/* For a bench's `defaults`, which has an option --ranks: how many processes there are; in --ranks, 0
 * stands for 1, 2, 4, ... and all; between machines shared memory is no transport. 0 or -errno. */
int ranks_defaults(struct opts *o);

/* For a bench's `instead`: where this process is another rank than 0, serves it; or prints who
 * takes part. The exit status, or -1: it is rank 0, and measures. */
int ranks_instead(const struct opts *o, const struct ranks_params *p,
                  const struct session_service *service, const volatile int *cancel);

/* For a bench's `possible`: there are so many ranks. */
int ranks_possible(struct point *pt, const struct ranks_params *p, uint64_t ranks);

/* Rank 0's: the world and its session, which outlive the points. */
struct ranks {
    struct world *world;
    struct session *session;
    struct session_service service; /* of children of this process */
    struct meet_secret secret;
    int unreachable; /* no world could be had: not tried again for each point */
    char why_unreachable[512];
};

/* There is a session, made at the first call, and again where a rank was lost and can be had anew.
 * `watch`: idle machines are watched before. 0, or -errno with the point's reason. */
int ranks_need(struct point *pt, struct ranks *r, const struct ranks_params *p, bool watch);
void ranks_leave(struct ranks *r);

/* Hooks of struct bench, where a bench_state begins with its struct ranks: after session_end(), which
 * devices carried the bytes, of each node, the worst first; and the end of a point. */
int ranks_evidence(struct point *pt);
void ranks_teardown(struct point *pt);

#endif

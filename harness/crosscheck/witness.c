/* SPDX-License-Identifier: Apache-2.0 */
/* The table of outside witnesses. What is said of each was read in its sources or found by trying.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"
#include "harness/crosscheck/crosscheck.h"

/* The size is the asked one, where the output tells it. */
static bool is_asked_for(const struct witness *w, const struct foreign_line *line)
{
    const char *told = foreign_value(line, "size");
    uint64_t size;

    return foreign_holds(line, w->line) &&
           (!*told || (!units_parse_u64(told, &size) && size == w->size));
}

static int take(const struct witness *w, const struct foreign_output *out,
                struct foreign_figure *figure, char *error, size_t len)
{
    const struct foreign_line *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < out->n; i++)
        if (is_asked_for(w, &out->lines[i])) {
            found = &out->lines[i];
            n++;
        }
    const struct foreign_figure *f = n == 1 ? foreign_find(found, w->quantity, w->statistic) : NULL;
    if (f && !strcmp(found->status, "ok") && !strcmp(f->unit, w->unit)) {
        *figure = *f;
        return 0;
    }
    if (n == 1 && strcmp(found->status, "ok") != 0)
        snprintf(error, len, "its result is %s: %s", found->status, found->reason);
    else if (n == 1)
        snprintf(error, len, "its output has no %s %s in %s", w->statistic, w->quantity, w->unit);
    else
        snprintf(error, len, "its output has %zu results that were asked for, not 1", n);
    return n == 1 && !strcmp(found->status, "skipped") ? -EOPNOTSUPP : -EBADMSG;
}

int witness_read(const struct witness *w, const char *text, size_t size,
                 struct foreign_figure *figure, char *error, size_t len)
{
    struct foreign_output out;
    int err = foreign_read_as(w->suite, text, size, &out, error, len);

    if (!err)
        err = take(w, &out, figure, error, len);
    foreign_release(&out);
    return !err || err == -EOPNOTSUPP || err == -ENOMEM ? err : -EBADMSG;
}

bool witness_fits(const struct witness *w, unsigned version)
{
    if (!version)
        return true;
    return version >= w->from && (!w->below || version < w->below);
}

#define RATE    0.02
#define AVERAGE "it gives bytes over time: so does our row, not the median of windows"
#define CPU     0.15 /* CPU time is charged by the kernel's own rules and ticks */

#define IPERF3_BANDWIDTH                                                                           \
    .program = "iperf3", .package = "iperf3", .version = "--version", .size = 131072,              \
    .bench = "net", .metric = "average_bandwidth", .column = "value", .unit = "GB/s",              \
    .server = "iperf3 -s -1 -p {port}", .suite = "iperf3", .quantity = "average_bandwidth",        \
    .statistic = "", .margin = RATE,                                                               \
    .converted = "bits to bytes; the receiver's rate, not the sender's; without its first second " \
                 "(-O 1), as ours is without its warm-up; " AVERAGE

#define PERFTEST(PROGRAM)                                                                          \
    .name = PROGRAM, .program = PROGRAM, .package = "perftest", .version = "--version",            \
    .rdma = true, .streams = 1, .bench = "net", .margin = RATE, .suite = "perftest"

#define PERFTEST_COMMON " -d {device} [-i {device_port}] [-x {gid}] -F -p {port} -s {size}"

#define PERFTEST_BW(PROGRAM)                                                                       \
    PERFTEST(PROGRAM),                                                                             \
        .size = 65536, .metric = "average_bandwidth", .column = "value", .unit = "GB/s",           \
        .server = PROGRAM PERFTEST_COMMON " -q {streams} -D {longer} -f 1",                        \
        .client = PROGRAM PERFTEST_COMMON " -q {streams} -D {longer} -f 1 {host}",                 \
        .quantity = "average_bandwidth", .statistic = "",                                          \
        .converted = "its MB is 2^20 bytes (unless --report_gbits); its average, "                 \
                     "not its peak, without its first and last second (-f 1); " AVERAGE

#define PERFTEST_LAT(PROGRAM)                                                                      \
    PERFTEST(PROGRAM), .size = 8, .metric = "latency", .column = "value", .unit = "us",            \
                       .server = PROGRAM PERFTEST_COMMON " -n {messages}",                         \
                       .client = PROGRAM PERFTEST_COMMON " -n {messages} {host}",                  \
                       .quantity = "latency", .statistic = "p50"

#define LAT_NOTES                                                                                  \
    "it measures for a number of messages, not for a time (a median comes only so), and leaves "   \
    "out its two slowest"

#define MPI_ALLREDUCE                                                                              \
    .size = 65536, .streams = 2, .launcher = "mpirun -np {streams}", .bench = "allreduce",         \
    .metric = "time", .column = "mean", .unit = "us", .quantity = "slowest", .statistic = "mean",  \
    .margin = RATE

/* One process has all GPUs, of ours as of theirs: both by the same library. */
#define NCCL_TESTS(NAME, PROGRAM, OP)                                                              \
    {                                                                                              \
        .name = NAME, .program = PROGRAM, .source = "github.com/NVIDIA/nccl-tests",                \
        .size = 67108864, .gpus = true, .bench = "allreduce",                                      \
        .ours = "--backend nccl --op " OP " --np 1 --ranks {streams} --per-process {streams} "     \
                "--size {size} --no-cpu",                                                          \
        .metric = "time", .column = "mean", .unit = "us",                                          \
        .client = PROGRAM " -b {size} -e {size} -d float -o sum -g {streams} -z 2 -a 3 -w 20"      \
                          " -n {messages}",                                                        \
        .suite = "nccl-tests", .line = "in_place= type=float", .quantity = "time",                 \
        .statistic = "mean", .margin = RATE,                                                       \
        .converted = "its time out of place, of the slowest rank (-a 3); each operation waited "   \
                     "for (-z 2), as ours; it gives a mean: so ours is the mean, too",             \
        .notes = "of one GPU NCCL copies at most"                                                  \
    }

#define FROM_HOST   " --source host --destination cuda:0 --memory pinned"
#define TO_HOST     " --source cuda:0 --destination host --memory pinned"
#define HOST_TO_GPU "--engine ce" FROM_HOST
#define GPU_TO_HOST "--engine ce" TO_HOST
#define PEERS       "--engine ce --source cuda:1 --destination cuda:0"

#define TO_FIRST        "source=host destination=cuda:0"
#define FROM_FIRST      "source=cuda:0 destination=host"
#define SECOND_TO_FIRST "source=cuda:1 destination=cuda:0"

#define NVBANDWIDTH(NAME, TEST, LINE, OURS, ROWS)                                                  \
    {                                                                                              \
        .name = NAME, .program = "nvbandwidth", .source = "github.com/NVIDIA/nvbandwidth",         \
        .version = "--help", .size = 536870912, .streams = 1, .bench = "copy",                     \
        .ours = OURS " --size {size}", .metric = "bandwidth", .rows = ROWS, .column = "value",     \
        .unit = "GB/s", .client = "nvbandwidth -t " TEST " -b {mib} -i 10 -j",                     \
        .suite = "nvbandwidth", .line = "test=" TEST " " LINE, .quantity = "bandwidth",            \
        .statistic = "p50", .margin = RATE,                                                        \
        .converted = "nothing: both are the median of copies of this size, timed by the GPU "      \
                     "behind a kernel that holds the stream; GB are 1e9 bytes",                    \
        .notes = "of both directions it gives the first copy alone, while one of twice the size "  \
                 "goes the other way"                                                              \
    }

#define MPI_OURS "--backend mpi --ranks {streams} --size {size} --no-cpu"

const struct witness witness_table[] = {
    {IPERF3_BANDWIDTH, .name = "iperf3-1", .streams = 1,
     .ours = "--transport tcp --pattern bandwidth --size {size} --streams 1 --no-cpu",
     .client = "iperf3 -c {host} -p {port} -P 1 -l {size} -O 1 -t {seconds} -J",
     .notes = "a read returns what is there, up to the length: ours waits for whole messages"},
    {IPERF3_BANDWIDTH, .name = "iperf3-4", .streams = 4, .below = 3016,
     .ours = "--transport tcp --pattern bandwidth --size {size} --streams {streams} --mode epoll "
             "--threads 1 --no-cpu",
     .client = "iperf3 -c {host} -p {port} -P {streams} -l {size} -O 1 -t {seconds} -J",
     .notes = "before 3.16 one thread of it serves all streams, by select: so does one of ours, by "
              "epoll"},
    {IPERF3_BANDWIDTH, .name = "iperf3-4", .streams = 4, .from = 3016,
     .ours = "--transport tcp --pattern bandwidth --size {size} --streams {streams} --no-cpu",
     .client = "iperf3 -c {host} -p {port} -P {streams} -l {size} -O 1 -t {seconds} -J",
     .notes = "since 3.16 it has a thread for each stream, and so have we"},
    {.name = "iperf3-cpu",
     .program = "iperf3",
     .package = "iperf3",
     .version = "--version",
     .size = 131072,
     .streams = 1,
     .bench = "net",
     .ours = "--transport tcp --pattern bandwidth --size {size} --streams 1",
     .metric = "cpu_per_gb",
     .scope = "threads",
     .column = "mean",
     .unit = "s/GB",
     .server = "iperf3 -s -1 -p {port}",
     .client = "iperf3 -c {host} -p {port} -P 1 -l {size} -t {seconds} -J",
     .suite = "iperf3",
     .quantity = "cpu_per_gb",
     .statistic = "mean",
     .margin = CPU,
     .converted = "its percent of a CPU, of both ends, over its rate; ours: threads of both ends, "
                  "added; the whole time counts in both, since its percent cannot leave out a part",
     .notes =
         "its percent is of the whole process from the connection on, ours of the threads that "
         "move the data"},
    {PERFTEST_BW("ib_write_bw"),
     .ours = "--transport rdma --verb write --pattern bandwidth --size {size} --streams {streams} "
             "--device {device}[:{device_port}] --no-cpu"},
    {PERFTEST_BW("ib_read_bw"),
     .ours = "--transport rdma --verb read --direction reverse --pattern bandwidth --size {size} "
             "--streams {streams} --device {device}[:{device_port}] --no-cpu"},
    {PERFTEST_BW("ib_send_bw"),
     .ours = "--transport rdma --verb send --pattern bandwidth --size {size} --streams {streams} "
             "--device {device}[:{device_port}] --no-cpu"},
    {PERFTEST_LAT("ib_write_lat"),
     .ours = "--transport rdma --verb write --pattern latency --size {size} --device "
             "{device}[:{device_port}] --no-cpu",
     .converted = "nothing: t_typical is the median, and of half round trips", .notes = LAT_NOTES},
    {PERFTEST_LAT("ib_read_lat"),
     .ours = "--transport rdma --verb read --pattern latency --size {size} --device "
             "{device}[:{device_port}] --no-cpu",
     .converted = "nothing: t_typical is the median, and a read is a whole round trip in both",
     .notes = LAT_NOTES},
    {PERFTEST_LAT("ib_send_lat"),
     .ours = "--transport rdma --verb send --pattern latency --size {size} --device "
             "{device}[:{device_port}] --no-cpu",
     .converted = "nothing: t_typical is the median, and of half round trips", .notes = LAT_NOTES},
    {MPI_ALLREDUCE, .name = "osu-allreduce", .program = "osu_allreduce",
     .source = "mvapich.cse.ohio-state.edu/benchmarks", .ours = MPI_OURS " --gap 1us",
     .client = "mpirun -np {streams} osu_allreduce -f -m {size}:{size} -i {messages}",
     .suite = "osu-micro-benchmarks",
     .converted = "its max latency (-f), not its average: of the slowest rank; each operation "
                  "behind a barrier of its own, which does not count: so is ours (--gap); it gives "
                  "a mean: so ours is the mean, too",
     .notes =
         "the largest of the ranks' means: ours, the mean of each operation's slowest rank, is "
         "more where the ranks take turns at being late; its ranks never sleep, ours do in the "
         "gap: it is to be compared on an idle machine"},
    NCCL_TESTS("nccl-allreduce", "all_reduce_perf", "allreduce"),
    NCCL_TESTS("nccl-reduce-scatter", "reduce_scatter_perf", "reduce-scatter"),
    NCCL_TESTS("nccl-all-gather", "all_gather_perf", "all-gather"),
    NCCL_TESTS("nccl-broadcast", "broadcast_perf", "broadcast"),
    NCCL_TESTS("nccl-all-to-all", "alltoall_perf", "all-to-all"),
    NCCL_TESTS("nccl-send-receive", "sendrecv_perf", "send-receive"),
    NCCL_TESTS("nccl-reduce", "reduce_perf", "reduce"),
    NCCL_TESTS("nccl-gather", "gather_perf", "gather"),
    NCCL_TESTS("nccl-scatter", "scatter_perf", "scatter"),
    NVBANDWIDTH("nvbandwidth-to-gpu", "host_to_device_memcpy_ce", TO_FIRST, HOST_TO_GPU, NULL),
    NVBANDWIDTH("nvbandwidth-from-gpu", "device_to_host_memcpy_ce", FROM_FIRST, GPU_TO_HOST, NULL),
    NVBANDWIDTH("nvbandwidth-to-gpu-both", "host_to_device_bidirectional_memcpy_ce", TO_FIRST,
                HOST_TO_GPU " --direction both", "direction=forward"),
    NVBANDWIDTH("nvbandwidth-from-gpu-both", "device_to_host_bidirectional_memcpy_ce", TO_FIRST,
                HOST_TO_GPU " --direction both", "direction=reverse"),
    NVBANDWIDTH("nvbandwidth-to-gpu-sm", "host_to_device_memcpy_sm", TO_FIRST,
                "--engine sm" FROM_HOST, NULL),
    NVBANDWIDTH("nvbandwidth-from-gpu-sm", "device_to_host_memcpy_sm", FROM_FIRST,
                "--engine sm" TO_HOST, NULL),
    NVBANDWIDTH("nvbandwidth-peer-read", "device_to_device_memcpy_read_ce", SECOND_TO_FIRST,
                PEERS " --op read", NULL),
    NVBANDWIDTH("nvbandwidth-peer-write", "device_to_device_memcpy_write_ce", SECOND_TO_FIRST,
                PEERS " --op write", NULL),
    {.name = NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of outside witnesses. What is said of each was read in its sources or found by trying. */
#include "harness/crosscheck/witness.h"

#define MIB_IN_GB 1.048576e-3 /* 2^20 bytes in 1e9 */
#define RATE      0.02
#define AVERAGE   "it gives bytes over time: so does our row, not the median of windows"
#define CPU       0.15 /* CPU time is charged by the kernel's own rules and ticks */

#define IPERF3_BANDWIDTH                                                                           \
    .program = "iperf3", .package = "iperf3", .version = "--version", .size = 131072,              \
    .bench = "net", .metric = "average_bandwidth", .column = "value", .unit = "GB/s",              \
    .server = "iperf3 -s -1 -p {port}", .read = witness_read_json,                                 \
    .where = "end.sum_received.bits_per_second", .printed_unit = "bit/s", .as_printed = 1.25e-10,  \
    .factor = 1.25e-10, .margin = RATE,                                                            \
    .converted = "bits to bytes; the receiver's rate, not the sender's; without its first second " \
                 "(-O 1), as ours is without its warm-up; " AVERAGE

#define PERFTEST(PROGRAM)                                                                          \
    .name = PROGRAM, .program = PROGRAM, .package = "perftest", .version = "--version",            \
    .rdma = true, .streams = 1, .bench = "net", .margin = RATE, .read = witness_read_fields

#define PERFTEST_COMMON " -d {device} [-i {device_port}] [-x {gid}] -F -p {port} -s {size}"

#define PERFTEST_BW(PROGRAM)                                                                       \
    PERFTEST(PROGRAM),                                                                             \
        .size = 65536, .metric = "average_bandwidth", .column = "value", .unit = "GB/s",           \
        .server = PROGRAM PERFTEST_COMMON " -q {streams} -D {longer} -f 1",                        \
        .client = PROGRAM PERFTEST_COMMON " -q {streams} -D {longer} -f 1 {host}",                 \
        .where = "#bytes #iterations BW peak[MB/sec] BW average[MB/sec]", .field = 4,              \
        .printed_unit = "MB/s", .as_printed = 1e-3, .factor = MIB_IN_GB,                           \
        .converted = "its MB is 2^20 bytes (unless --report_gbits); its average, "                 \
                     "not its peak, without its first and last second (-f 1); " AVERAGE

#define PERFTEST_LAT(PROGRAM)                                                                      \
    PERFTEST(PROGRAM), .size = 8, .metric = "latency", .column = "value", .unit = "us",            \
                       .server = PROGRAM PERFTEST_COMMON " -n {messages}",                         \
                       .client = PROGRAM PERFTEST_COMMON " -n {messages} {host}",                  \
                       .where = "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec]",      \
                       .field = 5, .printed_unit = "usec", .as_printed = 1, .factor = 1

#define LAT_NOTES                                                                                  \
    "it measures for a number of messages, not for a time (a median comes only so), and leaves "   \
    "out its two slowest"

#define QPERF                                                                                      \
    .program = "qperf", .package = "qperf", .version = "--version", .streams = 1, .bench = "net",  \
    .server = "qperf -lp {port}", .read = witness_read_match, .margin = RATE

#define UCX                                                                                        \
    .program = "ucx_perftest", .package = "ucx-utils", .streams = 1, .bench = "net",               \
    .read = witness_read_csv, .margin = RATE

#define UCX_NOTES                                                                                  \
    "it measures its own protocol (tags, headers, flow control) on top of the transport, and "     \
    "warms up for 10000 messages"

#define UCX_TCP "UCX_TLS=tcp UCX_NET_DEVICES=lo ucx_perftest -p {port}"
#define UCX_RC  "UCX_TLS=rc [UCX_NET_DEVICES={device}:{device_port}] ucx_perftest -p {port}"

#define MPI_ALLREDUCE                                                                              \
    .size = 65536, .streams = 2, .launcher = "mpirun -np {streams}", .bench = "allreduce",         \
    .metric = "time", .column = "mean", .unit = "us", .printed_unit = "usec", .as_printed = 1,     \
    .factor = 1, .margin = RATE, .read = witness_read_match

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
     .read = witness_read_iperf3_cpu,
     .where = "end.sum_received.bits_per_second",
     .printed_unit = "s/GB",
     .as_printed = 1,
     .factor = 1,
     .margin = CPU,
     .converted = "its percent of a CPU, of both ends, over its rate; ours: threads of both ends, "
                  "added; the whole time counts in both, since its percent cannot leave out a part",
     .notes =
         "its percent is of the whole process from the connection on, ours of the threads that "
         "move the data"},
    {.name = "sockperf",
     .program = "sockperf",
     .package = "sockperf",
     .version = "--version",
     .size = 64,
     .streams = 1,
     .bench = "net",
     .ours = "--transport tcp --pattern latency --size {size} --poll block --no-cpu",
     .metric = "latency",
     .column = "value",
     .unit = "us",
     .server = "sockperf server --tcp -i {host} -p {port}",
     .client = "sockperf ping-pong --tcp -i {host} -p {port} -m {size} -t {seconds}",
     .read = witness_read_match,
     .where = "percentile 50\\.000 = *([0-9.]+)",
     .printed_unit = "usec",
     .as_printed = 1,
     .factor = 1,
     .margin = RATE,
     .converted = "nothing: both are the median of half round trips (it doubles with --full-rtt)",
     .notes = "it leaves out its first 400 ms and last 50 ms, and messages without an answer"},
    {QPERF, .name = "qperf-latency", .size = 64,
     .ours = "--transport tcp --pattern latency --size {size} --poll block --no-cpu",
     .metric = "latency", .column = "mean", .unit = "us",
     .client = "qperf -lp {port} -m {size} -t {seconds} -uu -e 9 {host} tcp_lat",
     .where = "latency += +([0-9.]+) ns", .printed_unit = "ns", .as_printed = 1e-3, .factor = 1e-3,
     .converted = "ns to us; it gives time over messages of both ways, which is the mean of half "
                  "round trips: so ours is the mean, too",
     .notes = "it has no warm-up"},
    {QPERF, .name = "qperf-bandwidth", .size = 131072,
     .ours = "--transport tcp --pattern bandwidth --size {size} --streams 1 --no-cpu",
     .metric = "average_bandwidth", .column = "value", .unit = "GB/s",
     .client = "qperf -lp {port} -m {size} -t {seconds} -uu -e 9 {host} tcp_bw",
     .where = "bw += +([0-9.]+) bytes/sec", .printed_unit = "byte/s", .as_printed = 1e-9,
     .factor = 1e-9, .converted = "bytes, 1e9 to a GB; the receiver's rate; " AVERAGE,
     .notes = "it has no warm-up: slow start is in it"},
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
    {UCX, .name = "ucx-tcp-latency", .size = 64,
     .ours = "--transport tcp --pattern latency --size {size} --poll spin --no-cpu",
     .metric = "latency", .column = "value", .unit = "us", .server = UCX_TCP,
     .client = UCX_TCP " {host} -t tag_lat -s {size} -n {messages} -v -f",
     .where = "50.0_percentile_lat", .printed_unit = "usec", .as_printed = 1, .factor = 1,
     .converted = "nothing: its 50th percentile is of half round trips",
     .notes = UCX_NOTES "; it polls, and so do we"},
    {UCX, .name = "ucx-tcp-bandwidth", .size = 131072,
     .ours = "--transport tcp --pattern bandwidth --size {size} --streams 1 --no-cpu",
     .metric = "average_bandwidth", .column = "value", .unit = "GB/s", .server = UCX_TCP,
     .client = UCX_TCP " {host} -t tag_bw -s {size} -n {messages} -v -f", .where = "overall_bw",
     .printed_unit = "MB/s", .as_printed = 1e-3, .factor = MIB_IN_GB,
     .converted = "its MB is 2^20 bytes; its overall rate; " AVERAGE, .notes = UCX_NOTES},
    {UCX, .name = "ucx-rc-latency", .rdma = true, .size = 8,
     .ours = "--transport rdma --verb send --pattern latency --size {size} --device "
             "{device}[:{device_port}] --no-cpu",
     .metric = "latency", .column = "value", .unit = "us", .server = UCX_RC,
     .client = UCX_RC " {host} -t tag_lat -s {size} -n {messages} -v -f",
     .where = "50.0_percentile_lat", .printed_unit = "usec", .as_printed = 1, .factor = 1,
     .converted = "nothing: its 50th percentile is of half round trips", .notes = UCX_NOTES},
    {UCX, .name = "ucx-rc-bandwidth", .rdma = true, .size = 65536,
     .ours = "--transport rdma --verb send --pattern bandwidth --size {size} --streams 1 --device "
             "{device}[:{device_port}] --no-cpu",
     .metric = "average_bandwidth", .column = "value", .unit = "GB/s", .server = UCX_RC,
     .client = UCX_RC " {host} -t tag_bw -s {size} -n {messages} -v -f", .where = "overall_bw",
     .printed_unit = "MB/s", .as_printed = 1e-3, .factor = MIB_IN_GB,
     .converted = "its MB is 2^20 bytes; its overall rate; " AVERAGE, .notes = UCX_NOTES},
    {MPI_ALLREDUCE, .name = "imb-allreduce", .program = "IMB-MPI1",
     .source = "github.com/intel/mpi-benchmarks", .ours = MPI_OURS,
     .client = "mpirun -np {streams} IMB-MPI1 Allreduce -npmin {streams} -msglog 16:16 -zero_size "
               "off -sync off -iter {messages} -iter_policy off -time 1000",
     .where = "65536 +[0-9]+ +[0-9.]+ +([0-9.]+)",
     .converted = "its t_max, not its t_avg: of the slowest rank, as ours; back to back (-sync "
                  "off), as ours; it gives a mean: so ours is the mean, too",
     .notes =
         "it runs all operations behind one barrier, without a pause, ours have one every 2 ms: "
         "where other programs want the CPUs, it is put aside more often than ours, and its "
         "mean holds that; only on an idle machine the ratio tells of the measuring"},
    {MPI_ALLREDUCE, .name = "osu-allreduce", .program = "osu_allreduce",
     .source = "mvapich.cse.ohio-state.edu/benchmarks", .ours = MPI_OURS " --gap 1us",
     .client = "mpirun -np {streams} osu_allreduce -f -m {size}:{size} -i {messages}",
     .where = "\n65536 +[0-9.]+ +[0-9.]+ +([0-9.]+)",
     .converted = "its max latency (-f), not its average: of the slowest rank; each operation "
                  "behind a barrier of its own, which does not count: so is ours (--gap); it gives "
                  "a mean: so ours is the mean, too",
     .notes =
         "the largest of the ranks' means: ours, the mean of each operation's slowest rank, is "
         "more where the ranks take turns at being late; its ranks never sleep, ours do in the "
         "gap: it is to be compared on an idle machine"},
    {.name = "nccl-tests-1",
     .program = "all_reduce_perf",
     .source = "github.com/NVIDIA/nccl-tests",
     .size = 67108864,
     .streams = 1,
     .bench = "allreduce",
     .ours = "--backend nccl --np 1 --ranks 1 --size {size} --no-cpu",
     .metric = "time",
     .column = "mean",
     .unit = "us",
     .client = "all_reduce_perf -b {size} -e {size} -d float -o sum -g 1 -z 1 -w 20 -n {messages}",
     .read = witness_read_match,
     .where = " 67108864 +[0-9]+ +float +sum +-?[0-9]* +([0-9.]+) ",
     .printed_unit = "us",
     .as_printed = 1,
     .factor = 1,
     .margin = RATE,
     .converted = "its time out of place; each operation waited for (-z 1), as ours; it gives a "
                  "mean: so ours is the mean, too",
     .notes = "one GPU: NCCL copies; two and more are not compared here"},
    {.name = NULL},
};

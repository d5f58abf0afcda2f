/* SPDX-License-Identifier: Apache-2.0 */
/* The table of outside witnesses. What is said of each was read in its sources or found by trying.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/crosscheck/crosscheck.h"

/* ---- Reading what witnesses print ---- */

/* A text that is not as expected is an error, never a guess: a figure from the wrong column is the
 * worst that can happen here. */

static int bad(char *error, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(char *error, size_t len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, len, format, args);
    va_end(args);
    return -EBADMSG;
}

/* A rate or a time of 0 means that nothing was measured. */
static int take(const char *text, double *value, char *error, size_t len)
{
    char *end;

    *value = strtod(text, &end);
    if (end == text || (*end && !isspace((unsigned char)*end) && *end != ','))
        return bad(error, len, "'%.24s' is no number", text);
    if (!isfinite(*value) || *value <= 0)
        return bad(error, len, "its figure is %g", *value);
    return 0;
}

static const json_t *at_path(const json_t *root, const char *path)
{
    while (root && *path) {
        char name[64];
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        root = json_object_get(root, name);
        path += n + (path[n] == '.');
    }
    return root;
}

static int number_at(const json_t *root, const char *path, double *value, char *error, size_t len)
{
    const json_t *at = at_path(root, path);

    if (!json_is_number(at))
        return bad(error, len, "no number '%s' in its JSON", path);
    *value = json_number_value(at);
    if (!isfinite(*value) || *value <= 0)
        return bad(error, len, "'%s' is %g", path, *value);
    return 0;
}

/* iperf3 puts its own errors into its JSON. */
static json_t *load(const char *text, char *error, size_t len)
{
    json_error_t why;
    json_t *root = json_loads(text, 0, &why);

    if (!root) {
        bad(error, len, "its output is no JSON: %s", why.text);
    } else if (json_is_string(json_object_get(root, "error"))) {
        bad(error, len, "it says: %s", json_string_value(json_object_get(root, "error")));
        json_decref(root);
        root = NULL;
    }
    return root;
}

/* `where` is a path in JSON, "end.sum_received.bits_per_second". */
static int witness_read_json(const struct witness *w, const char *text, double *value, char *error,
                             size_t len)
{
    json_t *root = load(text, error, len);
    int err = root ? number_at(root, w->where, value, error, len) : -EBADMSG;

    json_decref(root);
    return err;
}

/* iperf3: CPU seconds of both ends for 1e9 bytes. `where` is the path of the rate. */
static int witness_read_iperf3_cpu(const struct witness *w, const char *text, double *value,
                                   char *error, size_t len)
{
    double own = 0, peer = 0, bits_per_second = 0;
    json_t *root = load(text, error, len);
    int err = root ? 0 : -EBADMSG;

    if (!err)
        err = number_at(root, "end.cpu_utilization_percent.host_total", &own, error, len);
    if (!err)
        err = number_at(root, "end.cpu_utilization_percent.remote_total", &peer, error, len);
    if (!err)
        err = number_at(root, w->where, &bits_per_second, error, len);
    if (!err)
        *value = (own + peer) / 100 * 8e9 / bits_per_second;
    json_decref(root);
    return err;
}

/* `where` is a regular expression (POSIX, extended) whose first group is the number. */
static int witness_read_match(const struct witness *w, const char *text, double *value, char *error,
                              size_t len)
{
    regmatch_t found[2];
    regex_t pattern;

    if (regcomp(&pattern, w->where, REG_EXTENDED))
        return bad(error, len, "the pattern '%s' is wrong", w->where);
    int missing = regexec(&pattern, text, 2, found, 0) || found[1].rm_so < 0;
    regfree(&pattern);
    if (missing)
        return bad(error, len, "no '%s' in its output", w->where);
    char number[64];
    snprintf(number, sizeof(number), "%.*s", (int)(found[1].rm_eo - found[1].rm_so),
             text + found[1].rm_so);
    return take(number, value, error, len);
}

/* Does a line begin with these words, however many blanks are between them? */
static bool begins_with(const char *line, const char *words)
{
    while (isblank((unsigned char)*line))
        line++;
    while (*words) {
        if (*words == ' ') {
            if (!isblank((unsigned char)*line))
                return false;
            while (isblank((unsigned char)*line))
                line++;
        } else if (*line++ != *words) {
            return false;
        }
        words++;
    }
    return !*line || isspace((unsigned char)*line);
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end && end[1] ? end + 1 : NULL;
}

static const char *field_of(const char *line, unsigned field)
{
    for (unsigned i = 1;; i++) {
        line += strspn(line, " \t");
        if (!*line || *line == '\n' || i == field)
            return !*line || *line == '\n' ? NULL : line;
        line += strcspn(line, " \t\n");
    }
}

/* `where` is the beginning of a header line, blanks squeezed; the figure is field number `field` of
 * the line of numbers behind it. */
static int witness_read_fields(const struct witness *w, const char *text, double *value,
                               char *error, size_t len)
{
    const char *line = text;

    while (line && !begins_with(line, w->where))
        line = next_line(line);
    if (!line)
        return bad(error, len, "its output has no line '%s ...'", w->where);
    line = next_line(line);
    const char *field = line ? field_of(line, w->field) : NULL;
    if (!field)
        return bad(error, len, "no figures stand under '%s ...'", w->where);
    return take(field, value, error, len);
}

/* The number of a column in a header line, from 1; 0: not there. */
static unsigned column_of(const char *line, const char *name)
{
    size_t n = strlen(name);

    for (unsigned i = 1;; i++) {
        size_t cell = strcspn(line, ",\n");
        if (cell == n && !strncmp(line, name, n))
            return i;
        if (line[cell] != ',')
            return 0;
        line += cell + 1;
    }
}

/* `where` is a column of CSV whose header line has it; the last line counts. */
static int witness_read_csv(const struct witness *w, const char *text, double *value, char *error,
                            size_t len)
{
    const char *line = text, *last = NULL;
    unsigned column = 0;

    for (; line; line = next_line(line)) {
        if (!column)
            column = column_of(line, w->where);
        else if (*line && *line != '\n')
            last = line;
    }
    if (!column || !last)
        return bad(error, len, "no column '%s' with a figure in its output", w->where);
    for (; column > 1; column--) {
        size_t cell = strcspn(last, ",\n");
        if (last[cell] != ',')
            return bad(error, len, "its last line ends before column '%s'", w->where);
        last += cell + 1;
    }
    return take(last, value, error, len);
}

bool witness_fits(const struct witness *w, unsigned version)
{
    if (!version)
        return true;
    return version >= w->from && (!w->below || version < w->below);
}

unsigned witness_version(const char *output, char *text, size_t len)
{
    regmatch_t found[4];
    regex_t pattern;
    unsigned version = 0;

    snprintf(text, len, "%s", "");
    if (regcomp(&pattern, "([0-9]+)\\.([0-9]+)((\\.[0-9]+)*)", REG_EXTENDED))
        return 0;
    if (!regexec(&pattern, output, 4, found, 0)) {
        unsigned major = (unsigned)strtoul(output + found[1].rm_so, NULL, 10);
        unsigned minor = (unsigned)strtoul(output + found[2].rm_so, NULL, 10);
        version = major < 1000 && minor < 1000 ? major * 1000 + minor : 0;
        snprintf(text, len, "%.*s", (int)(found[0].rm_eo - found[0].rm_so),
                 output + found[0].rm_so);
    }
    regfree(&pattern);
    return version;
}

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

/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of what other programs print: what their figures mean, by hand, and texts that must be refused. The outputs are in tests/witness/. */
#include "harness/foreign/foreign.h"
#include "harness/text.h"
#include "tests/unit/unit.h"

#define N(array) (sizeof(array) / sizeof(*(array)))
#define NCCL     "nccl-allreduce-2.19.6.txt"
#define NCCLJ    "nccl-allreduce-2.19.6.json"
#define NVB      "nvbandwidth-0.8.txt"
#define NVBJ     "nvbandwidth-0.8.json"
#define GPUS     "\"-g\",\"4\""
#define PAIRS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* A recorded output with texts in place of others, each a pair, up to NULL; what is not there is an error of the test. */
static int read_as(const char *file, const char *const *pairs, struct foreign_output *out)
{
    struct buffer b = {0};
    char path[256], error[512] = "", *text;

    snprintf(path, sizeof(path), "tests/witness/%s", file);
    if (file_read(path, 1u << 20, &b))
        fail_msg("cannot read '%s'", path);
    text = strdup(b.text);
    for (; pairs && *pairs; pairs += 2) {
        char *at = strstr(text, pairs[0]), *grown = NULL;

        if (!at || asprintf(&grown, "%.*s%s%s", (int)(at - text), text, pairs[1],
                            at + strlen(pairs[0])) < 0)
            fail_msg("no '%s' in '%s'", pairs[0], file);
        free(text);
        text = grown;
    }
    int err = foreign_read(file, text, strlen(text), false, out, error, sizeof(error));
    assert_int_equal(!err, !*error);
    free(text);
    buffer_release(&b);
    return err;
}

static struct foreign_output read_changed(const char *file, const char *const *pairs)
{
    struct foreign_output out;

    if (read_as(file, pairs, &out))
        fail_msg("'%s' is refused", file);
    return out;
}

static struct foreign_output read_text(const char *text)
{
    struct foreign_output out;
    char error[512];

    if (foreign_read("it", text, strlen(text), false, &out, error, sizeof(error)))
        fail_msg("%s", error);
    return out;
}

/* The figure of the one line for which `where` holds. */
static void figure(const struct foreign_output *out, const char *where, const char *quantity,
                   const char *statistic, const char *unit, double wanted)
{
    const struct foreign_line *found = NULL;

    for (size_t i = 0; i < out->n; i++)
        if (foreign_holds(&out->lines[i], where)) {
            if (found)
                fail_msg("two lines are '%s'", where);
            found = &out->lines[i];
        }
    const struct foreign_figure *f = found ? foreign_find(found, quantity, statistic) : NULL;
    if (!f)
        fail_msg("no %s %s of '%s'", statistic, quantity, where);
    assert_string_equal(f->unit, unit);
    if (!(fabs(f->value / wanted - 1) < 1e-9))
        fail_msg("%s: %.12g, not %.12g", where, f->value, wanted);
}

#define RATE     "bandwidth", "p50", "GB/s"
#define LATENCY  "latency", "mean", "ns"
#define TIME     "time", "mean", "us"
#define SLOWEST  "slowest", "mean", "us"
#define AVERAGE  "average_bandwidth", "", "Gb/s"
#define MIB_S(x) ((x)*8 * 1048576 / 1e9)
#define HERE     "collective=all_reduce dtype=f32 redop=sum ranks=4 groups=1 size=67108864 in_place="

/* What each program prints, by hand. A row of nvbandwidth's read test reads from its column, against the arrow of its text; of both directions each copy has
 * its own rate, and the third matrix is their sum. perftest's t_max is the second slowest; MB of osu-bw are 1e6 bytes. */
TEST(test_figures)
{
    static const struct {
        const char *file, *where, *quantity, *statistic, *unit;
        double value;
    } cases[] = {
#define BOTH(where, how, value) {NVB, where, how, value}, {NVBJ, where, how, value}
        BOTH("test=device_to_host_memcpy_ce source=cuda:1 destination=host", RATE, 53.98),
        BOTH("test!=device_to_device_latency_sm op=read direction=one-way source=cuda:1 "
             "destination=cuda:0",
             RATE, 391.25),
        BOTH("op=write direction=one-way source=cuda:1 destination=cuda:0", RATE, 388.5),
        BOTH("op=read direction=forward source=cuda:1 destination=cuda:0", RATE, 371.5),
        BOTH("op=read direction=reverse source=cuda:1 destination=cuda:0", RATE, 361.5),
        BOTH("test=device_to_host_bidirectional_memcpy_ce destination=cuda:0", RATE, 41.75),
        BOTH("test=host_device_latency_sm source=host destination=cuda:1", LATENCY, 742.25),
        BOTH("test=device_to_device_latency_sm source=cuda:1 destination=cuda:0 chain=", LATENCY,
             612.5),
        BOTH("source=cuda:1 destination=host beside=all", RATE, 27.2),
        {NCCL, HERE, TIME, 341.5},
        {NCCLJ, HERE, TIME, 341.5},
        {NCCL, HERE, "busbw", "", "GB/s", 294.77},
        {NCCLJ, "size=67108864 in_place=1", TIME, 338.25},
        {"iperf3-3.12.json", "protocol=TCP size=131072 streams=1", AVERAGE,
         19394252218.366222 / 1e9},
        {"ib_write_bw-6.06.txt", "size=65536", AVERAGE, MIB_S(53.21)},
        {"ib_read_bw-6.06.txt", "size=65536", AVERAGE, MIB_S(126.46)},
        {"ib_send_bw-6.06.txt", "size=65536", AVERAGE, MIB_S(108.95)},
        {"ib_write_bw-gbits-6.06.txt", "size=65536", AVERAGE, 0.26},
        {"ib_write_lat-6.06.txt", "size=8", "latency", "p50", "us", 9.27},
        {"ib_send_lat-6.06.txt", "size=8", "latency", "p50", "us", 12.02},
        {"ib_read_lat-6.06.txt", "size=8", "latency", "p50", "us", 35.62},
        {"ib_read_lat-6.06.txt", "size=8", "latency", "p999", "us", 7724.44},
        {"osu-allreduce-7.4.txt", "size=65536 dtype=f32 full=1", SLOWEST, 54.90},
        {"osu-allreduce-7.4.txt", "size=65536", "latency", "mean", "us", 51.20},
        {"osu-bw-5.9.txt", "size=1048576 memory=CUDA", AVERAGE, 8 * 24.38007},
    };
    struct foreign_output out;
    for (size_t i = 0; i < N(cases); i++) {
        out = read_changed(cases[i].file, NULL);
        figure(&out, cases[i].where, cases[i].quantity, cases[i].statistic, cases[i].unit,
               cases[i].value);
        foreign_release(&out);
    }
    out = read_changed("ib_read_lat-6.06.txt", NULL);
    assert_null(foreign_find(&out.lines[0], "latency", "max"));
    assert_null(foreign_find(&out.lines[0], "latency", "stddev")); /* it is cut to whole us */
    foreign_release(&out);
    out = read_changed(NVBJ, NULL);
    assert_string_equal(out.format->program, "nvbandwidth");
    assert_string_equal(out.version, "0.8");
    foreign_release(&out);
}

/* The first copy of a write test went from the row's GPU to the column's, and since 0.6 the other way. 0.5 counts both directions of kernels together; since
 * then the source's GPU runs those of one and all, which are no other case then than the write tests. */
TEST(test_nvbandwidth_versions)
{
    static const char write_ce[] = "device_to_device_bidirectional_memcpy_write_ce",
                      read_sm[] = "device_to_device_bidirectional_memcpy_read_sm";
    static const struct {
        const char *version, *test, *where;
        double value;
    } cases[] = {{"0.5", write_ce, "direction=forward source=cuda:0 destination=cuda:1", 371.5},
                 {"0.8", write_ce, "direction=forward source=cuda:1 destination=cuda:0", 371.5},
                 {"0.5", read_sm, "direction=sum source=cuda:1 destination=cuda:0", 371.5},
                 {"0.4", read_sm, "direction=forward source=cuda:1 destination=cuda:0", 371.5},
                 {"0.4", "all_to_one_read_sm", "op=read source=cuda:0 destination=cuda:all", 372.5},
                 {"0.5", "all_to_one_read_sm", "op= source=cuda:0 destination=cuda:all", 372.5},
                 {"0.8", "one_to_all_read_ce", "op=read source=cuda:all destination=cuda:0", 372.5},
                 {"0.8", "device_local_copy", "engine=ce source=cuda:0 destination=cuda:0", 372.5}};
    struct foreign_output out;
    char text[1024];
    for (size_t i = 0; i < N(cases); i++) {
        snprintf(text, sizeof(text),
                 "nvbandwidth Version: v%s\n\nRunning %s.\nmemcpy GPU(row) GPU(column) bandwidth "
                 "(GB/s)\n           0         1\n"
                 " 0       N/A    371.50\n 1    372.50       N/A\n\nSUM %s 744.00\n",
                 cases[i].version, cases[i].test, cases[i].test);
        out = read_text(text);
        figure(&out, cases[i].where, RATE, cases[i].value);
        foreign_release(&out);
    }
    /* before 0.8 the chain between GPUs had addresses of the host's memory */
    for (int now = 0; now < 2; now++) {
        snprintf(text, sizeof(text),
                 "nvbandwidth Version: v0.%d\n\nRunning device_to_device_latency_sm.\nDevice to "
                 "Device Latency SM GPU(row) <-> GPU(column) (ns)\n"
                 "           0         1\n 0       N/A    612.50\n 1    613.75       N/A\n\nSUM "
                 "device_to_device_latency_sm 1226.25\n",
                 7 + now);
        out = read_text(text);
        assert_int_equal(out.n, 2);
        assert_string_equal(foreign_value(&out.lines[1], "chain"), now ? "" : "host");
        foreign_release(&out);
    }
}

#define EACH "# Blocking Enabled: wait after each inner iteration (-m), no barrier \n#\n# Using"
#define GROUP                                                                                      \
    "# Blocking Enabled: wait and barrier after each outer iteration (-n); barrier excluded from " \
    "reported time \n#\n# Using"
#define BARRIER "# Blocking Enabled: wait and barrier after each inner iteration (-m) \n#\n# Using"

/* How operations were queued, by which kernels, over how many nodes; "-" is not told. With 20 in a queue a small one takes a fraction of the time of one
 * which is waited for. */
TEST(test_nccl_settings)
{
    static const char *const names[] = {"queued",  "agg",   "graph",   "registered",
                                        "barrier", "nodes", "kernels", "unaligned"};
    static const struct {
        const char *file, *pairs[5], *wanted;
    } cases[] = {
        {NCCL, {NULL}, "20 1 0 - - 1 - - "},
        {NCCL, {"agg iters: 1", "agg iters: 8", "graph: 0", "graph: 20"}, "20 8 20 - - 1 - - "},
        {NCCL, {"#\n# Using", EACH}, "1 1 0 - - 1 - - "},
        {NCCL, {"#\n# Using", EACH, "agg iters: 1", "agg iters: 8"}, "20 8 0 - - 1 - - "},
        {NCCL, {"#\n# Using", GROUP, "agg iters: 1", "agg iters: 8"}, "1 8 0 - - 1 - - "},
        {NCCL, {"#\n# Using", BARRIER}, "1 1 0 - 1 1 - - "},
        {NCCL, {" agg iters: 1", "", " graph: 0", ""}, "20 - - - - 1 - - "},
        {NCCL, {"unalign: 0", "unalign: 12"}, "20 1 0 - - 1 - 1 "},
        {NCCLJ, {NULL}, "20 1 0 none - 1 - - "},
        {NCCLJ,
         {"aggregated_iterations\":1", "aggregated_iterations\":8", "\"graph\":0", "\"graph\":20"},
         "20 8 20 none - 1 - - "},
        {NCCLJ, {GPUS, GPUS ",\"-R\",\"2\""}, "20 1 0 symmetric - 1 - - "},
        {NCCLJ, {GPUS, GPUS ",\"-R2\"", "22703", "22606"}, "20 1 0 local - 1 - - "},
        {NCCLJ, {GPUS, GPUS ",\"-D\",\"1\""}, "20 1 0 none - 1 own - "},
        {NCCLJ, {GPUS, GPUS ",\"-D0\""}, "20 1 0 none - 1 - - "},
        {NCCLJ, {GPUS, GPUS ",\"--unalign=3\""}, "20 1 0 none - 1 - 1 "},
        {NCCLJ,
         {"collectives\":\"false", "collectives\":\"true", GPUS, GPUS ",\"--blocking=2\""},
         "1 1 0 none - 1 - - "},
        {NCCLJ, {"collectives\":\"false", "collectives\":\"true"}, "1 1 0 none ? 1 - - "},
        {NCCL,
         {"node7 device  1", "node8 device  1", "node7 device  3", "node8 device  3"},
         "20 1 0 - - 2 - - "},
        {NCCL, {"node7 device  1", "node71 device  1"}, "20 1 0 - - 2 - - "},
        {NCCL, {"0000:1a:00", "0000:19:00"}, "20 1 0 - - - - - "},
        {NCCL,
         {"#  Rank  1 Group  0 Pid   4711 on      node7 device  1 [0000:1a:00] NVIDIA H200\n", ""},
         "20 1 0 - - - - - "},
        {NCCLJ,
         {"{\"rank\":0", "{\"rank\":1,\"group\":0,\"pid\":1,\"hostname\":\"node8\",\"device\":0,"
                         "\"device_hex\":\"0000:19:00\","
                         "\"device_info\":\"NVIDIA H200\"},{\"rank\":0"},
         "20 1 0 none - 2 - - "}};
    for (size_t i = 0; i < N(cases); i++) {
        struct foreign_output out = read_changed(cases[i].file, cases[i].pairs);
        char text[256] = "";

        for (size_t k = 0; k < N(names); k++) {
            const char *value = foreign_value(&out.lines[0], names[k]);
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ", *value ? value : "-");
        }
        if (strcmp(text, cases[i].wanted))
            fail_msg("case %zu: '%s'", i, text);
        foreign_release(&out);
    }
}

/* hypercube_perf prints nothing where others have the reduction: what follows is not of another column. */
TEST(test_nccl_blank_column)
{
    struct foreign_output out =
        read_changed("nccl-alltoall-2.17.1.txt",
                     PAIRS("alltoall_perf", "hypercube_perf", "float    none      -1    18.64",
                           "float              -1    18.64"));
    const char *here = "collective=hypercube size=65536 dtype=f32 root= redop= in_place=";
    figure(&out, here, TIME, 18.64);
    figure(&out, here, "busbw", "", "GB/s", 2.64);
    figure(&out, "size=65536 in_place=1", TIME, 18.21);
    foreign_release(&out);
}

/* Waits for completions, memory of GPUs, a rate that was asked for: facts of a case. */
TEST(test_settings)
{
    static const char perf[] = "ib_send_lat-6.06.txt", iperf[] = "iperf3-3.12.json";
    static const struct {
        const char *file, *pairs[5], *name, *wanted;
    } cases[] = {
        {NCCL, {NULL}, "library", "NCCL 2.27.3"},
        {perf, {NULL}, "completion", "poll"},
        {perf,
         {"Send Latency Test\n", "Send Latency Test\n Test with events. Using rxe0_comp0\n"},
         "completion",
         "event"},
        {iperf, {NULL}, "paced", ""},
        {iperf,
         {"\n\t\t\"target_bitrate\":\t0", "\n\t\t\"target_bitrate\":\t1000000000"},
         "paced",
         "1"},
        {iperf,
         {"\t\t\t\"target_bitrate\":\t0", "\t\t\t\"target_bitrate\":\t1000000000"},
         "paced",
         "1"},
        {iperf, {"\t\t\t\"target_bitrate\":\t0", "\t\t\t\"fqrate\":\t1000000000"}, "paced", "1"},
    };
    for (size_t i = 0; i < N(cases); i++) {
        struct foreign_output out = read_changed(cases[i].file, cases[i].pairs);

        if (strcmp(foreign_value(&out.lines[0], cases[i].name), cases[i].wanted))
            fail_msg("case %zu: '%s'", i, foreign_value(&out.lines[0], cases[i].name));
        foreign_release(&out);
    }
}

/* Units that disagree, what is cut off, other programs and versions. */
TEST(test_refusals)
{
    static const struct {
        const char *file, *from, *to;
        int err;
    } cases[] = {{NCCL, "196.51", "183.02", -EBADMSG},
                 {NCCLJ, "\"time\":341.5", "\"time\":0.3415", -EBADMSG},
                 {"ib_write_bw-6.06.txt", "0.000851", "0.000812", -EBADMSG},
                 {"ib_write_bw-6.06.txt", "[MB/sec]    BW average[MB/sec]",
                  "[Gb/sec]    BW average[Gb/sec]", -EBADMSG},
                 {NVBJ, "\"391.25\"", "\"391250\"", -EBADMSG},
                 {NVB, "    391.25", " 391250.00", -EBADMSG},
                 {NVBJ, "\"version\": \"v0.8\"", "\"version\": \"v0.99\"", -EPROTO},
                 {NCCLJ, "\"version\":3", "\"version\":9", -EPROTO}};
    static const char *const files[] = {NVBJ,
                                        NVB,
                                        NCCLJ,
                                        NCCL,
                                        "ib_write_bw-6.06.txt",
                                        "ib_write_lat-6.06.txt",
                                        "iperf3-3.12.json"};
    static const struct {
        const char *text;
        int err;
    } texts[] = {{"hello\n", -ENOENT},
                 {"{\"a\": 1}\n", -ENOENT},
                 {"", -EBADMSG},
                 {"{\"end\": {\"sum_received\": 1}, \"error\": \"it is down\"}", -EIO}};
    struct foreign_output out;
    char error[512], path[256];
    for (size_t i = 0; i < N(cases); i++)
        if (read_as(cases[i].file, PAIRS(cases[i].from, cases[i].to), &out) != cases[i].err)
            fail_msg("case %zu", i);
    for (size_t i = 0; i < N(texts); i++)
        assert_int_equal(foreign_read("it", texts[i].text, strlen(texts[i].text), false, &out,
                                      error, sizeof(error)),
                         texts[i].err);
    for (size_t i = 0; i < N(files) * 2; i++) {
        struct buffer b = {0};

        snprintf(path, sizeof(path), "tests/witness/%s", files[i / 2]);
        assert_int_equal(file_read(path, 1u << 20, &b), 0);
        size_t size = b.size * (i % 2 ? 8 : 5) / 10;
        b.text[size] = 0;
        if (!foreign_read("it", b.text, size, false, &out, error, sizeof(error)))
            fail_msg("'%s' was read though it is cut off", files[i / 2]);
        buffer_release(&b);
    }
    out = read_changed(
        NCCLJ, PAIRS("\"nwrong\":0", "\"nwrong\":7")); /* wrong data is a result, and no figure */
    assert_string_equal(out.lines[0].status, "wrong");
    assert_string_equal(out.lines[1].status, "ok");
    foreign_release(&out);
}

#define PERF  "ib_write_bw-6.06.txt"
#define IPERF "iperf3-3.12.json"
#define OSU   "osu-latency-7.4.txt"

static struct buffer witness(const char *file)
{
    struct buffer b = {0};
    char path[256];

    snprintf(path, sizeof(path), "tests/witness/%s", file);
    assert_int_equal(file_read(path, 1u << 20, &b), 0);
    return b;
}

/* Each line of a text with one of `n` prefixes in turn. */
static struct buffer prefixed(const char *text, const char *const *prefixes, size_t n)
{
    struct buffer b = {0};

    for (size_t i = 0, len; *text; text += len, i++) {
        len = strcspn(text, "\n") + 1;
        buffer_add(&b, prefixes[i % n], strlen(prefixes[i % n]));
        buffer_add(&b, text, len);
    }
    return b;
}

static void same_as(const char *file, const char *text, size_t size, const char *how)
{
    struct foreign_output out, wanted = read_changed(file, NULL);
    char error[512];

    if (foreign_read("it", text, size, false, &out, error, sizeof(error)))
        fail_msg("%s, %s: %s", file, how, error);
    assert_int_equal(out.n, wanted.n);
    for (size_t i = 0; i < out.n; i++) {
        assert_string_equal(out.lines[i].status, wanted.lines[i].status);
        for (size_t k = 0; k < wanted.lines[i].n_facts; k++)
            assert_string_equal(foreign_value(&out.lines[i], wanted.lines[i].facts[k].name),
                                wanted.lines[i].facts[k].value);
        for (size_t k = 0; k < wanted.lines[i].n_figures; k++)
            assert_true(out.lines[i].figures[k].value == wanted.lines[i].figures[k].value);
    }
    foreign_release(&out);
    foreign_release(&wanted);
}

/* What editors, launchers and logs do to a file: the results are the same. */
TEST(test_surroundings)
{
    static const char *const files[] = {NCCL, NVB, NVBJ, PERF, IPERF, OSU};
    static const char *const prefixes[][2] = {
        {"[1,0]<stdout>:", "[1,0]<stdout>:"},
        {"[prterun-red-7@1,0]<stdout>: ", "[prterun-red-7@1,0]<stderr>: "},
        {"[0] ", "[0] "},
        {"00: ", "00: "},
        {"[pod/bench-0/nccl] ", "[pod/bench-0/nccl] "},
        {"bench-0  | ", "bench-0  | "},
        {"2026-05-06T07:08:09.120000Z ", "2026-05-06T07:08:09.130000+02:00 "},
        {"Oct  1 08:00:00 red bench[12]: ", "Oct  1 08:00:01 red bench[12]: "},
        {"2026-05-06T07:08:09Z 0: ", "2026-05-06T07:08:10Z 0: "}};
    for (size_t i = 0; i < N(files); i++) {
        struct buffer b = witness(files[i]), changed = {0};

        for (int big = 0; big < 2; big++) { /* and byte order marks */
            const char *mark = big ? "\xfe\xff" : "\xff\xfe";
            buffer_add(&changed, mark, 2);
            for (size_t k = 0; k < b.size; k++)
                buffer_add(&changed, (char[]){big ? 0 : b.text[k], big ? b.text[k] : 0}, 2);
            same_as(files[i], changed.text, changed.size, "UTF-16");
            buffer_release(&changed);
        }
        buffer_add(&changed, "\xef\xbb\xbf", 3);
        for (const char *at = b.text; *at; at++)
            buffer_add(&changed, *at == '\n' ? "\r\n" : at, *at == '\n' ? 2 : 1);
        same_as(files[i], changed.text, changed.size, "CR LF");
        buffer_release(&changed);
        for (size_t k = 0; k < N(prefixes); k++) {
            struct buffer with = prefixed(b.text, prefixes[k], 2);

            same_as(files[i], with.text, with.size, prefixes[k][0]);
            buffer_add(&changed, "srun: job 7 has been allocated resources\n", 41);
            buffer_add(&changed, with.text, with.size);
            same_as(files[i], changed.text, changed.size, "a launcher's line");
            buffer_release(&changed);
            buffer_release(&with);
        }
        buffer_release(&b);
    }
}

/* Lines of processes side by side are those of the one that printed results, or of none. */
TEST(test_processes)
{
    struct buffer b = witness(NCCL), with, doubled = {0};
    struct foreign_output out;
    char error[512];
    for (const char *at = b.text; *at; at += strcspn(at, "\n") + 1)
        for (int i = 0; i < 2; i++)
            buffer_add(&doubled, at, strcspn(at, "\n") + 1);
    with = prefixed(doubled.text, (const char *const[]){"0: ", "1: "}, 2);
    assert_int_equal(foreign_read("it", with.text, with.size, false, &out, error, sizeof(error)),
                     -EBADMSG);
    assert_non_null(strstr(error, "2 processes"));
    foreign_release(&out);
    buffer_release(&with);
    with = prefixed(b.text, (const char *const[]){"1: NCCL INFO of another\n0: "}, 1);
    same_as(NCCL, with.text, with.size, "NCCL INFO of another");
    buffer_release(&with);
    buffer_release(&doubled);
    buffer_release(&b);
}

/* Outputs behind one another: every result of them, or none; 0: refused. */
TEST(test_several_outputs)
{
    static const struct {
        const char *first, *second;
        size_t n;
    } cases[] = {{NCCL, "nccl-allreduce-2.19.6.txt", 2},
                 {NVB, NVB, 2},
                 {NVBJ, NVBJ, 2},
                 {IPERF, IPERF, 2},
                 {NCCLJ, NCCLJ, 2},
                 {PERF, PERF, 2},
                 {OSU, OSU, 2},
                 {NCCL, OSU, 0},
                 {NVBJ, IPERF, 0},
                 {NVB, NVBJ, 0},
                 {OSU, "osu-bw-5.9.txt", 0}};
    struct foreign_output out;
    char error[512];
    for (size_t i = 0; i < N(cases); i++) {
        struct foreign_output one = read_changed(cases[i].first, NULL);
        struct buffer a = witness(cases[i].first), b = witness(cases[i].second);

        buffer_add(&a, b.text, b.size);
        int err = foreign_read("it", a.text, a.size, false, &out, error, sizeof(error));
        if (err != (cases[i].n ? 0 : -EBADMSG) || (!err && out.n != cases[i].n * one.n))
            fail_msg("%s and %s: %zu, %s", cases[i].first, cases[i].second, out.n, error);
        foreign_release(&out);
        /* the first one is cut off in its head, or its results */
        for (int tenth = 1; cases[i].n && tenth < 10; tenth++) {
            struct buffer cut = {0};
            buffer_add(&cut, a.text, (a.size - b.size) * (size_t)tenth / 10);
            buffer_add(&cut, "\n", 1);
            buffer_add(&cut, b.text, b.size);
            if (!foreign_read("it", cut.text, cut.size, false, &out, error, sizeof(error)) &&
                out.n != one.n && strcmp(cases[i].first, OSU) != 0)
                fail_msg("%s, cut at %d/10: %zu", cases[i].first, tenth, out.n);
            foreign_release(&out);
            buffer_release(&cut);
        }
        foreign_release(&one);
        buffer_release(&a);
        buffer_release(&b);
    }
    /* several types under one title */
    out = read_text("# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_CHAR.\n"
                    "# Size       Avg Latency(us)\n4      2.31\n# Datatype: MPI_FLOAT.\n"
                    "# Size       Avg Latency(us)\n4      3.5\n");
    figure(&out, "dtype=i8 size=4", "latency", "mean", "us", 2.31);
    figure(&out, "dtype=f32 size=4", "latency", "mean", "us", 3.5);
    foreign_release(&out);
}

/* What names the collective and its library; who says that data was wrong. */
TEST(test_nccl_names)
{
    static const struct {
        const char *file, *pairs[7], *fact, *wanted, *status;
    } cases[] = {
        {NCCL, {"all_reduce_perf", "all_reduce_perf_mpi"}, "collective", "all_reduce", "ok"},
        {NCCLJ, {"all_reduce_perf", "all_reduce_perf_mpi"}, "collective", "all_reduce", "ok"},
        {NCCL, {NULL}, "maker", "", "ok"},
        {NCCL, {"NVIDIA H200", "AMD Instinct MI300X"}, "maker", "AMD", "ok"},
        {NCCL,
         {"# Using devices", "rccl-tests: Version develop:1\n# Using devices"},
         "maker",
         "AMD",
         "ok"},
        {NCCLJ, {"NVIDIA H200", "AMD Instinct MI300X"}, "maker", "AMD", "ok"},
        {NCCL, {"values : 0 OK", "values : 3 FAILED"}, "maker", "", "wrong"},
        {NCCLJ,
         {"\"count\":0,\"okay\":\"true\"", "\"count\":3,\"okay\":\"false\""},
         "maker",
         "",
         "wrong"}};
    static const char *const names[][2] = {{"dir_broadcast/all_reduce-8.txt", "all_reduce"},
                                           {"AllReduce.log", "all_reduce"},
                                           {"reduce_scatter_perf.out", "reduce_scatter"},
                                           {"reduce-then-broadcast.txt", ""},
                                           {"gathered.txt", ""},
                                           {"nccl.txt", ""}};
    struct foreign_output out;
    for (size_t i = 0; i < N(cases); i++) {
        out = read_changed(cases[i].file, cases[i].pairs);
        if (strcmp(foreign_value(&out.lines[0], cases[i].fact), cases[i].wanted) ||
            strcmp(out.lines[0].status, cases[i].status))
            fail_msg("case %zu: '%s', %s", i, foreign_value(&out.lines[0], cases[i].fact),
                     out.lines[0].status);
        foreign_release(&out);
    }
    struct buffer b = witness(NCCL);
    char *start = strstr(b.text, "# Collective test starting"), error[512];
    memmove(start, strchr(start, '\n') + 1, strlen(strchr(start, '\n')));
    for (size_t i = 0; i < N(names); i++) {
        assert_int_equal(
            foreign_read(names[i][0], b.text, strlen(b.text), false, &out, error, sizeof(error)),
            0);
        assert_string_equal(foreign_value(&out.lines[0], "collective"), names[i][1]);
        foreign_release(&out);
    }
    buffer_release(&b);
}

static const char before_213[] =
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 \n"
    "#   Rank  0 Pid     90 on  localhost device  0 [0x00] A100-SXM4-40GB\n"
    "#   Rank  1 Pid     91 on  localhost device  %c [0x00] A100-SXM4-40GB\n"
    "#       size         count      type   redop     time   algbw   busbw   error     time   "
    "algbw   busbw   error\n"
    "     2097152        524288     float     sum     80.4   26.07   26.07   2e-07     80.4   "
    "26.07   26.07   2e-07\n"
    "# Out of bounds values : %s\n# Avg bus bandwidth    : 26.07 \n";

/* Its last column is an error, of good data, too. A device that a host has twice is of two hosts. */
TEST(test_nccl_before_213)
{
    char text[2048];
    for (int bad = 0; bad < 2; bad++) {
        snprintf(text, sizeof(text), before_213, bad ? '0' : '1', bad ? "3 FAILED" : "0 OK");
        struct foreign_output out = read_text(text);
        assert_string_equal(out.lines[0].status, bad ? "wrong" : "ok");
        assert_string_equal(foreign_value(&out.lines[0], "nodes"), bad ? "" : "1");
        foreign_release(&out);
    }
}

/* Facts that decide whether a result is of a case of ours, and what a program says of its end. */
TEST(test_stated)
{
    static const char title[] = "RDMA_Write BW Test";
    static const struct {
        const char *file, *pairs[5], *fact, *wanted;
    } cases[] = {{PERF, {title, "RDMA_Write Bidirectional BW Test"}, "direction", "both"},
                 {PERF, {title, "RDMA_Write Post List BW Test"}, "post_list", "1"},
                 {PERF, {" Mtu", " Recv Post List  : 16\n Mtu"}, "received", "16"},
                 {PERF, {"Dual-port       : OFF", "Dual-port       : ON"}, "dual", "ON"},
                 {PERF, {title, "Atomic FETCH_AND_ADD BW Test"}, "verb", "atomic"},
                 {PERF, {title, "RDMA_Write_imm BW Test"}, "verb", "write-imm"},
                 {PERF, {title, "Send_imm BW Test"}, "verb", "send-imm"},
                 {PERF,
                  {"                    RDMA_Write", "RDMA_Write", " #bytes", "#bytes"},
                  "verb",
                  "write"},
                 {PERF, {" Data ex.", " Use ROCm memory : ON\n Data ex."}, "memory", "other"},
                 {PERF, {" Data ex.", " Use MUSA memory : OFF\n Data ex."}, "memory", ""},
                 {PERF, {" Data ex.", "Picking GPU number 0\n Data ex."}, "memory", "cuda:*"},
                 {IPERF, {NULL}, "direction", "forward"},
                 {IPERF, {"\"reverse\":\t0", "\"reverse\":\t0, \"bidir\": 1"}, "direction", "both"},
                 {IPERF,
                  {"\"sum_received\":", "\"sum_received_bidir_reverse\": {}, \"sum_received\":"},
                  "direction",
                  "both"},
                 {IPERF,
                  {"\"sum_received\":", "\"sum_received\": {}, \"sum_received\":"},
                  "direction",
                  "both"}};
    for (size_t i = 0; i < N(cases); i++) {
        struct foreign_output out = read_changed(cases[i].file, cases[i].pairs);
        if (strcmp(foreign_value(&out.lines[0], cases[i].fact), cases[i].wanted))
            fail_msg("case %zu: '%s'", i, foreign_value(&out.lines[0], cases[i].fact));
        foreign_release(&out);
    }
    static const struct {
        const char *line, *status;
    } ends[] = {{" Invalid value when checking the pattern at 0x71", "wrong"},
                {"[CUDA_ERROR_OUT_OF_MEMORY] out of memory in expression cuMemAlloc(&x)", "failed"},
                {"Waived: too few GPUs", "skipped"}};
    for (size_t i = 0; i < N(ends); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "nvbandwidth Version: v0.10.0\nRunning device_to_device_memcpy_read_ce.\n%s\n",
                 ends[i].line);
        struct foreign_output out = read_text(text);
        assert_string_equal(out.lines[0].status, ends[i].status);
        assert_string_equal(foreign_value(&out.lines[0], "destination"), "cuda:*");
        foreign_release(&out);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of what other programs print: what their figures mean, by hand, and texts that must be
 * refused. The outputs are in tests/witness/. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/foreign/foreign.h"
#include "harness/text.h"

static struct buffer recorded(const char *file)
{
    struct buffer b = {0};
    char path[256];

    snprintf(path, sizeof(path), "tests/witness/%s", file);
    if (file_read(path, 1u << 20, &b))
        fail_msg("cannot read '%s'", path);
    return b;
}

static struct foreign_output read_file(const char *file)
{
    struct buffer b = recorded(file);
    struct foreign_output out;
    char error[512];

    if (foreign_read(file, b.text, b.size, false, &out, error, sizeof(error)))
        fail_msg("%s", error);
    buffer_release(&b);
    return out;
}

static int read_text(const char *text, char error[512])
{
    struct foreign_output out;
    int err = foreign_read("it", text, strlen(text), false, &out, error, 512);

    foreign_release(&out);
    return err;
}

/* The one line for which `where` holds, and the figure of it. */
static double figure_of(const struct foreign_output *out, const char *where, const char *quantity,
                        const char *statistic, const char *unit)
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
    return f->value;
}

static void near(double value, double wanted)
{
    if (!(fabs(value / wanted - 1) < 1e-9))
        fail_msg("%.12g, not %.12g", value, wanted);
}

/* Row 0 of a read test reads from column 1: the data goes from GPU 1 to GPU 0, against the arrow of
 * its text. Row 1 of a write test writes to column 0. */
static void test_nvbandwidth(void **state)
{
    static const char *const files[] = {"nvbandwidth-0.8.json", "nvbandwidth-0.8.txt"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct foreign_output out = read_file(files[i]);

        assert_string_equal(out.format->program, "nvbandwidth");
        assert_string_equal(out.version, "0.8");
        near(figure_of(&out, "test=device_to_host_memcpy_ce source=cuda:1 destination=host",
                       "bandwidth", "p50", "GB/s"),
             53.98);
        near(figure_of(&out,
                       "test!=device_to_device_latency_sm op=read direction=one-way source=cuda:1 "
                       "destination=cuda:0",
                       "bandwidth", "p50", "GB/s"),
             391.25);
        near(figure_of(&out, "op=write direction=one-way source=cuda:1 destination=cuda:0",
                       "bandwidth", "p50", "GB/s"),
             388.5);
        /* Of both directions each copy has its own rate, and the third matrix is their sum. */
        near(figure_of(&out, "op=read direction=forward source=cuda:1 destination=cuda:0",
                       "bandwidth", "p50", "GB/s"),
             371.5);
        near(figure_of(&out, "op=read direction=reverse source=cuda:1 destination=cuda:0",
                       "bandwidth", "p50", "GB/s"),
             361.5);
        near(figure_of(&out, "test=device_to_host_bidirectional_memcpy_ce destination=cuda:0",
                       "bandwidth", "p50", "GB/s"),
             41.75);
        near(figure_of(&out, "test=host_device_latency_sm source=host destination=cuda:1",
                       "latency", "mean", "ns"),
             742.25);
        /* GPU 0, the row, loads from GPU 1. */
        near(figure_of(&out,
                       "test=device_to_device_latency_sm source=cuda:1 destination=cuda:0 chain=",
                       "latency", "mean", "ns"),
             612.5);
        near(figure_of(&out, "source=cuda:1 destination=host beside=all", "bandwidth", "p50",
                       "GB/s"),
             27.2);
        foreign_release(&out);
    }
}

/* A test of GPUs with kernels or copy engines ("sm", "ce") by a version, one matrix: its figure. */
static double by_version(const char *version, const char *test, const char *where)
{
    struct foreign_output out;
    char text[1024], error[512];

    snprintf(text, sizeof(text),
             "nvbandwidth Version: v%s\n\nRunning %s.\nmemcpy GPU(row) GPU(column) bandwidth "
             "(GB/s)\n           0         1\n 0       N/A    371.50\n 1    372.50       N/A\n\n"
             "SUM %s 744.00\n",
             version, test, test);
    if (foreign_read("it", text, strlen(text), false, &out, error, sizeof(error)))
        fail_msg("%s", error);
    double value = figure_of(&out, where, "bandwidth", "p50", "GB/s");
    foreign_release(&out);
    return value;
}

/* The first copy of a write test went from the row's GPU to the column's, and since 0.6 the other way. 0.5 counts both directions of kernels
 * together; since then the source's GPU runs those of one and all, which are no other case then than the write tests. */
static void test_nvbandwidth_versions(void **state)
{
    static const char write_ce[] = "device_to_device_bidirectional_memcpy_write_ce";
    static const char read_sm[] = "device_to_device_bidirectional_memcpy_read_sm";

    (void)state;
    near(by_version("0.5", write_ce, "direction=forward source=cuda:0 destination=cuda:1"), 371.5);
    near(by_version("0.4", write_ce, "direction=forward source=cuda:0 destination=cuda:1"), 371.5);
    near(by_version("0.8", write_ce, "direction=forward source=cuda:1 destination=cuda:0"), 371.5);
    near(by_version("0.5", read_sm, "direction=sum source=cuda:1 destination=cuda:0"), 371.5);
    near(by_version("0.4", read_sm, "direction=forward source=cuda:1 destination=cuda:0"), 371.5);
    near(by_version("0.4", "all_to_one_read_sm", "op=read source=cuda:0 destination=cuda:all"),
         372.5);
    near(by_version("0.5", "all_to_one_read_sm", "op= source=cuda:0 destination=cuda:all"), 372.5);
    near(by_version("0.8", "one_to_all_read_ce", "op=read source=cuda:all destination=cuda:0"),
         372.5);
    near(by_version("0.8", "device_local_copy", "engine=ce source=cuda:0 destination=cuda:0"),
         372.5);
}

/* Before 0.8 the chain between GPUs had addresses of the host's memory, from which it was copied. */
static void test_nvbandwidth_chain(void **state)
{
    static const char *const versions[][2] = {
        {"v0.5", "host"}, {"v0.6", "host"}, {"v0.7", "host"}, {"v0.8", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        struct foreign_output out;
        char text[1024], error[512];

        snprintf(
            text, sizeof(text),
            "nvbandwidth Version: %s\n\nRunning host_device_latency_sm.\nmemory latency SM "
            "CPU(row) <-> GPU(column) (ns)\n           0\n 0    742.25\n\nSUM "
            "host_device_latency_sm 742.25\n\nRunning device_to_device_latency_sm.\nDevice to "
            "Device Latency SM GPU(row) <-> GPU(column) (ns)\n           0         1\n 0       "
            "N/A    612.50\n 1    613.75       N/A\n\nSUM device_to_device_latency_sm "
            "1226.25\n",
            versions[i][0]);
        if (foreign_read("it", text, strlen(text), false, &out, error, sizeof(error)))
            fail_msg("%s", error);
        near(figure_of(&out, "source=host", "latency", "mean", "ns"), 742.25);
        assert_int_equal(out.n, 3);
        assert_string_equal(foreign_value(&out.lines[0], "chain"), "");
        assert_string_equal(foreign_value(&out.lines[1], "chain"), versions[i][1]);
        assert_string_equal(foreign_value(&out.lines[2], "chain"), versions[i][1]);
        foreign_release(&out);
    }
}

static void test_nccl(void **state)
{
    static const char *const files[] = {"nccl-allreduce-2.19.6.json", "nccl-allreduce-2.19.6.txt"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct foreign_output out = read_file(files[i]);
        const char *here = "collective=all_reduce dtype=f32 redop=sum ranks=4 groups=1 "
                           "size=67108864 in_place=";

        near(figure_of(&out, here, "time", "mean", "us"), 341.5);
        near(figure_of(&out, "size=67108864 in_place=1", "time", "mean", "us"), 338.25);
        /* 64 MiB in 341.5 us, of four ranks times 2 * 3 / 4 */
        assert_true(fabs(figure_of(&out, here, "busbw", "", "GB/s") -
                         67108864 / 341.5e-6 / 1e9 * 1.5) < 0.006);
        assert_string_equal(foreign_value(&out.lines[0], "library"), "NCCL 2.27.3");
        foreign_release(&out);
    }
}

/* A recorded output with texts in place of others, each a pair, up to NULL. */
static struct foreign_output read_changed(const char *file, const char *const *pairs)
{
    struct buffer b = recorded(file);
    struct foreign_output out;
    char error[512], *text = strdup(b.text);

    for (; *pairs; pairs += 2) {
        char *at = strstr(text, pairs[0]), *grown = NULL;

        if (!at || asprintf(&grown, "%.*s%s%s", (int)(at - text), text, pairs[1],
                            at + strlen(pairs[0])) < 0)
            fail_msg("no '%s' in '%s'", pairs[0], file);
        free(text);
        text = grown;
    }
    if (foreign_read(file, text, strlen(text), false, &out, error, sizeof(error)))
        fail_msg("%s", error);
    free(text);
    buffer_release(&b);
    return out;
}

/* The first line's facts "queued agg graph registered barrier nodes", "-" of what is not told. */
static void nccl_facts(const char *file, const char *const *pairs, const char *wanted)
{
    static const char *const names[] = {"queued", "agg", "graph", "registered", "barrier", "nodes"};
    struct foreign_output out = read_changed(file, pairs);
    char text[256] = "";

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = foreign_value(&out.lines[0], names[i]);

        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
                 *value ? value : "-");
    }
    assert_string_equal(text, wanted);
    foreign_release(&out);
}

#define PAIRS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* Kernels of nccl-tests itself in place of NCCL's, by its command; and buffers that are not aligned. */
static void test_nccl_not_as_nccl(void **state)
{
    static const struct {
        const char *file, *from, *to, *kernels, *unaligned;
    } cases[] = {
        {"nccl-allreduce-2.19.6.json", "\"-g\",\"4\"", "\"-g\",\"4\"", "", ""},
        {"nccl-allreduce-2.19.6.json", "\"-g\",\"4\"", "\"-g\",\"4\",\"-R\",\"2\",\"-D\",\"1\"",
         "own", ""},
        {"nccl-allreduce-2.19.6.json", "\"-g\",\"4\"", "\"-g\",\"4\",\"-D0\"", "", ""},
        {"nccl-allreduce-2.19.6.json", "\"-g\",\"4\"", "\"-g\",\"4\",\"--unalign=3\"", "", "1"},
        {"nccl-allreduce-2.19.6.txt", "validation: 1", "validation: 1", "", ""},
        {"nccl-allreduce-2.19.6.txt", "unalign: 0", "unalign: 12", "", "1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct foreign_output out = read_changed(cases[i].file, PAIRS(cases[i].from, cases[i].to));

        assert_string_equal(foreign_value(&out.lines[0], "kernels"), cases[i].kernels);
        assert_string_equal(foreign_value(&out.lines[0], "unaligned"), cases[i].unaligned);
        foreign_release(&out);
    }
}

/* How operations were queued is of the case: with 20 in a queue a small one takes a fraction of the
 * time that one takes which is waited for. */
static void test_nccl_queues(void **state)
{
    const char *text = "nccl-allreduce-2.19.6.txt", *json = "nccl-allreduce-2.19.6.json";
    const char *each = "# Blocking Enabled: wait after each inner iteration (-m), no barrier \n#\n#"
                       " Using";
    const char *group = "# Blocking Enabled: wait and barrier after each outer iteration (-n); "
                        "barrier excluded from reported time \n#\n# Using";
    const char *barrier = "# Blocking Enabled: wait and barrier after each inner iteration (-m) \n"
                          "#\n# Using";

    (void)state;
    nccl_facts(text, PAIRS(NULL), "20 1 0 - - 1");
    nccl_facts(text, PAIRS("agg iters: 1", "agg iters: 8", "graph: 0", "graph: 20"),
               "20 8 20 - - 1");
    nccl_facts(text, PAIRS("#\n# Using", each), "1 1 0 - - 1");
    nccl_facts(text, PAIRS("#\n# Using", each, "agg iters: 1", "agg iters: 8"), "20 8 0 - - 1");
    nccl_facts(text, PAIRS("#\n# Using", group, "agg iters: 1", "agg iters: 8"), "1 8 0 - - 1");
    nccl_facts(text, PAIRS("#\n# Using", barrier), "1 1 0 - 1 1");
    /* the header before 2.13 */
    nccl_facts(text, PAIRS(" agg iters: 1", "", " graph: 0", ""), "20 - - - - 1");
    nccl_facts(json, PAIRS(NULL), "20 1 0 none - 1");
    nccl_facts(json,
               PAIRS("\"-g\",\"4\"", "\"-g\",\"4\",\"-R\",\"2\"", "aggregated_iterations\":1",
                     "aggregated_iterations\":8", "\"graph\":0", "\"graph\":20"),
               "20 8 20 symmetric - 1");
    nccl_facts(json, PAIRS("22703", "22606", "\"-g\",\"4\"", "\"-g\",\"4\",\"-R2\""),
               "20 1 0 local - 1");
    nccl_facts(json,
               PAIRS("collectives\":\"false", "collectives\":\"true", "\"-g\",\"4\"",
                     "\"-g\",\"4\",\"--blocking=2\""),
               "1 1 0 none - 1");
    nccl_facts(json, PAIRS("collectives\":\"false", "collectives\":\"true"), "1 1 0 none ? 1");
}

/* hypercube_perf prints nothing where others have the reduction: what follows is not of another column. */
static void test_nccl_blank_column(void **state)
{
    struct foreign_output out =
        read_changed("nccl-alltoall-2.17.1.txt",
                     PAIRS("alltoall_perf", "hypercube_perf", "float    none      -1    18.64",
                           "float              -1    18.64"));
    const char *here = "collective=hypercube size=65536 dtype=f32 root= redop= in_place=";

    (void)state;
    near(figure_of(&out, here, "time", "mean", "us"), 18.64);
    near(figure_of(&out, here, "busbw", "", "GB/s"), 2.64);
    near(figure_of(&out, "size=65536 in_place=1", "time", "mean", "us"), 18.21);
    foreign_release(&out);
}

static void test_nccl_nodes(void **state)
{
    const char *text = "nccl-allreduce-2.19.6.txt";

    (void)state;
    nccl_facts(text,
               PAIRS("node7 device  1", "node8 device  1", "node7 device  3", "node8 device  3"),
               "20 1 0 - - 2");
    /* A name that begins like another */
    nccl_facts(text, PAIRS("node7 device  1", "node71 device  1"), "20 1 0 - - 2");
    /* Two hosts of one name: no GPU has two ranks. */
    nccl_facts(text, PAIRS("0000:1a:00", "0000:19:00"), "20 1 0 - - -");
    /* A rank's line is missing: another host may be in it. */
    nccl_facts(text,
               PAIRS("#  Rank  1 Group  0 Pid   4711 on      node7 device  1 [0000:1a:00] NVIDIA "
                     "H200\n",
                     ""),
               "20 1 0 - - -");
    nccl_facts("nccl-allreduce-2.19.6.json",
               PAIRS("{\"rank\":0",
                     "{\"rank\":1,\"group\":0,\"pid\":1,\"hostname\":\"node8\",\"device\":0,"
                     "\"device_hex\":\"0000:19:00\",\"device_info\":\"NVIDIA H200\"},{\"rank\":0"),
               "20 1 0 none - 2");
}

/* perftest says which way it waits for completions; else it polls. IMB's command has -sync off. */
static void test_settings(void **state)
{
    struct foreign_output out = read_file("ib_send_lat-6.06.txt");

    (void)state;
    assert_string_equal(foreign_value(&out.lines[0], "completion"), "poll");
    foreign_release(&out);
    out = read_changed(
        "ib_send_lat-6.06.txt",
        PAIRS("Send Latency Test\n", "Send Latency Test\n Test with events. Using rxe0_comp0\n"));
    assert_string_equal(foreign_value(&out.lines[0], "completion"), "event");
    foreign_release(&out);
    out = read_file("imb-allreduce-2021.11.txt");
    assert_string_equal(foreign_value(&out.lines[0], "sync"), "off");
    foreign_release(&out);
    out = read_changed("imb-allreduce-2021.11.txt", PAIRS(" -sync off", ""));
    assert_string_equal(foreign_value(&out.lines[0], "sync"), "");
    foreign_release(&out);
    out = read_changed("imb-allreduce-2021.11.txt",
                       PAIRS(" -zero_size", " \n#            -zero_size"));
    assert_string_equal(foreign_value(&out.lines[0], "sync"), "off");
    assert_non_null(strstr(out.command, "16:16 -zero_size off -sync off"));
    foreign_release(&out);
}

/* The first line's fact of an output, with one text in place of another. */
static void fact_is(const char *file, const char *from, const char *to, const char *name,
                    const char *wanted)
{
    struct foreign_output out = read_changed(file, PAIRS(from, to));

    assert_string_equal(foreign_value(&out.lines[0], name), wanted);
    foreign_release(&out);
}

/* The same figures of another thing: memory of GPUs, a rate that was asked for, messages that do not
 * wait for answers. */
static void test_what_is_not_alike(void **state)
{
    static const char imb[] = "imb-allreduce-2021.11.txt", iperf[] = "iperf3-3.12.json",
                      sockperf[] = "sockperf-3.7.txt";

    (void)state;
    fact_is(imb, "MPI-1 part", "MPI-1 part", "memory", "");
    fact_is(imb, "MPI-1 part", "MPI-1 part (GPU)", "memory", "gpu");
    fact_is(imb, "2021.11, MPI-1 part", "2021.4 Technical Preview, MPI-1 part (GPU)", "memory",
            "gpu");
    struct foreign_output out =
        read_changed(imb, PAIRS("MPI-1 part", "MPI-1 part (GPU)", " -sync off",
                                " -sync off -mem_alloc_type cpu"));
    assert_string_equal(foreign_value(&out.lines[0], "memory"), "");
    foreign_release(&out);
    fact_is(iperf, "\"tos\"", "\"tos\"", "paced", "");
    fact_is(iperf, "\n\t\t\"target_bitrate\":\t0", "\n\t\t\"target_bitrate\":\t1000000000", "paced",
            "1");
    fact_is(iperf, "\t\t\t\"target_bitrate\":\t0", "\t\t\t\"target_bitrate\":\t1000000000", "paced",
            "1");
    fact_is(iperf, "\t\t\t\"target_bitrate\":\t0", "\t\t\t\"fqrate\":\t1000000000", "paced", "1");
    fact_is(sockperf, "PORT", "PORT", "load", "");
    fact_is(sockperf, "SentMessages=113150; ReceivedMessages=113150",
            "SentMessages=113150; ReceivedMessages=1131", "load", "1");
    fact_is(sockperf, "Summary: Latency is", "Summary: Latency of burst of 8 messages is", "load",
            "1");
}

/* perftest's t_max is the second slowest, and its deviation is cut to whole us. */
static void test_perftest_tail(void **state)
{
    struct foreign_output out = read_file("ib_read_lat-6.06.txt");

    (void)state;
    near(figure_of(&out, "size=8", "latency", "p50", "us"), 35.62);
    near(figure_of(&out, "size=8", "latency", "p999", "us"), 7724.44);
    assert_null(foreign_find(&out.lines[0], "latency", "max"));
    assert_null(foreign_find(&out.lines[0], "latency", "stddev"));
    foreign_release(&out);
}

static void test_mpi(void **state)
{
    struct foreign_output out = read_file("osu-allreduce-7.4.txt");

    (void)state;
    near(figure_of(&out, "size=65536 dtype=f32 full=1", "slowest", "mean", "us"), 54.90);
    near(figure_of(&out, "size=65536", "latency", "mean", "us"), 51.20);
    foreign_release(&out);
    out = read_file("osu-bw-5.9.txt"); /* its MB are 1e6 bytes */
    near(figure_of(&out, "size=1048576 memory=CUDA", "average_bandwidth", "", "GB/s"), 24.38007);
    foreign_release(&out);
    out = read_file("imb-allreduce-2021.11.txt");
    near(figure_of(&out, "test=Allreduce ranks=2 size=65536 dtype=f32", "slowest", "mean", "us"),
         178.75);
    foreign_release(&out);
}

#define IMB       "imb-allreduce-2021.11.txt"
#define IMB_TITLE "# Benchmarking Allreduce \n# #processes = 2 \n"
#define IMB_HEAD  "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
#define IMB_LINE  "        65536        20000       178.75       178.75       178.75\n"
#define IMB_GROUPS                                                                                 \
    "# Benchmarking Multi-Allreduce \n# ( 2 groups of 3 processes each running simultaneous ) \n"  \
    "# Group  0:     0    1    2\n# \n# Group  1:     3    4    5\n# \n"
/* The head that follows, as the program has it with -multi 1: a column more, and a blank line before each size. */
#define IMB_ALL                                                                                    \
    "\n#---\n# Benchmarking Allreduce \n# #processes = 6 \n#---\n        Group" IMB_HEAD           \
    "\n            0        65536        20000       300.00       320.00       310.00\n"

/* Groups of ranks at once, by IMB's -multi: each line is of its own group, or of all. */
static void test_imb_groups(void **state)
{
    struct foreign_output out = read_changed(
        IMB,
        PAIRS(IMB_TITLE, IMB_GROUPS, IMB_HEAD, "        Group" IMB_HEAD, IMB_LINE,
              "\n            0        65536        20000       100.00       120.00       110.00\n"
              "            1        65536        20000       200.00       220.00       "
              "210.00\n" IMB_ALL));

    (void)state;
    assert_int_equal(out.n, 3);
    near(figure_of(&out, "test=Multi-Allreduce groups=2 group=0 ranks=3 size=65536 total=196608",
                   "slowest", "mean", "us"),
         120);
    near(figure_of(&out, "test=Multi-Allreduce group=1 ranks=3", "slowest", "mean", "us"), 220);
    near(figure_of(&out, "test=Allreduce groups= group= ranks=6", "slowest", "mean", "us"), 320);
    assert_int_equal(out.lines[1].samples, 20000);
    foreign_release(&out);
    out = read_changed(IMB, PAIRS(IMB_TITLE, IMB_GROUPS)); /* -multi 0: the slowest of all groups */
    near(figure_of(&out, "test=Multi-Allreduce groups=2 group= ranks=3", "slowest", "mean", "us"),
         178.75);
    foreign_release(&out);
}

/* Of a program built to check data, and of a benchmark that gave a size up. */
static void test_imb_failures(void **state)
{
    struct foreign_output out = read_changed(
        IMB,
        PAIRS("t_avg[usec]\n", "t_avg[usec]      defects\n", IMB_LINE,
              "        65536        20000       178.75       178.75       178.75         0.01\n"
              "       131072        20000       178.75       178.75       178.75         0.02\n"));

    (void)state;
    assert_string_equal(out.lines[0].status, "ok");
    assert_string_equal(out.lines[1].status, "wrong");
    foreign_release(&out);
    out = read_changed(IMB, PAIRS(IMB_LINE,
                                  IMB_LINE "       131072 time-out.; Time limit (secs_per_sample * "
                                           "msg_sizes_list_len) is over; use \"-time X\"\n"));
    near(figure_of(&out, "size=65536", "slowest", "mean", "us"), 178.75);
    assert_string_equal(out.lines[1].status, "failed");
    assert_string_equal(foreign_value(&out.lines[1], "size"), "131072");
    foreign_release(&out);
}

/* Reads a file with one text in place of another; what is not there is an error of the test. */
static int changed(const char *file, const char *from, const char *to, char error[512])
{
    struct buffer b = recorded(file);
    char *at = strstr(b.text, from), *text = NULL;

    if (!at || asprintf(&text, "%.*s%s%s", (int)(at - b.text), b.text, to, at + strlen(from)) < 0)
        fail_msg("no '%s' in '%s'", from, file);
    int err = read_text(text, error);
    free(text);
    buffer_release(&b);
    return err;
}

static void test_wrong_units(void **state)
{
    char error[512];

    (void)state;
    /* 196.51 GB/s of 1e9 bytes are 183.02 of 2^30 */
    assert_int_equal(changed("nccl-allreduce-2.19.6.txt", "196.51", "183.02", error), -EBADMSG);
    assert_non_null(strstr(error, "67108864 bytes in 341.5 us are 196.5 GB/s, and it says 183.02"));
    assert_int_equal(
        changed("nccl-allreduce-2.19.6.json", "\"time\":341.5", "\"time\":0.3415", error),
        -EBADMSG);
    /* 53.21 of 2^20 bytes are 851 messages of 64 KiB; of 1e6 they would be 812 */
    assert_int_equal(changed("ib_write_bw-6.06.txt", "0.000851", "0.000812", error), -EBADMSG);
    assert_int_equal(changed("ib_write_bw-6.06.txt", "[MB/sec]    BW average[MB/sec]",
                             "[Gb/sec]    BW average[Gb/sec]", error),
                     -EBADMSG);
    /* a cell in MiB/s among GB/s: the sum does not agree */
    assert_int_equal(changed("nvbandwidth-0.8.json", "\"391.25\"", "\"391250\"", error), -EBADMSG);
    assert_int_equal(changed("nvbandwidth-0.8.txt", "    391.25", " 391250.00", error), -EBADMSG);
    assert_int_equal(changed("qperf-tcp_bw-0.4.11.txt", "bytes/sec", "us", error), -EBADMSG);
}

static void test_broken(void **state)
{
    static const char *const files[] = {
        "nvbandwidth-0.8.json",      "nvbandwidth-0.8.txt",       "nccl-allreduce-2.19.6.json",
        "nccl-allreduce-2.19.6.txt", "ib_write_bw-6.06.txt",      "ib_write_lat-6.06.txt",
        "iperf3-3.12.json",          "imb-allreduce-2021.11.txt", "sockperf-3.7.txt"};
    char error[512];

    (void)state;
    /* Cut at half and at nine tenths: never a whole output. */
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        for (size_t tenths = 5; tenths <= 8; tenths += 3) {
            struct buffer b = recorded(files[i]);

            b.text[b.size * tenths / 10] = 0;
            if (!read_text(b.text, error))
                fail_msg("'%s' was read though it is cut off at %zu/10", files[i], tenths);
            assert_true(*error != 0);
            buffer_release(&b);
        }
    assert_int_equal(read_text("hello\n", error), -ENOENT);
    assert_non_null(strstr(error, "nvbandwidth, nccl-tests, perftest"));
    assert_int_equal(read_text("{\"a\": 1}\n", error), -ENOENT);
    assert_int_equal(read_text("", error), -EBADMSG);
    assert_int_equal(
        read_text("{\"end\": {\"sum_received\": 1}, \"error\": \"it is down\"}", error), -EIO);
    assert_int_equal(
        changed("nvbandwidth-0.8.json", "\"version\": \"v0.8\"", "\"version\": \"v0.99\"", error),
        -EPROTO);
    assert_non_null(strstr(error, "nvbandwidth 0.99, and its format is known of versions 0.4 to"));
    assert_int_equal(changed("nccl-allreduce-2.19.6.json", "\"version\":3", "\"version\":9", error),
                     -EPROTO);
    /* wrong data is a result, and no figure */
    struct foreign_output out;
    struct buffer b = recorded("nccl-allreduce-2.19.6.json");
    char *at = strstr(b.text, "\"nwrong\":0");
    at[9] = '7';
    assert_int_equal(foreign_read("it", b.text, b.size, false, &out, error, sizeof(error)), 0);
    assert_string_equal(out.lines[0].status, "wrong");
    assert_string_equal(out.lines[1].status, "ok");
    foreign_release(&out);
    buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nvbandwidth),
        cmocka_unit_test(test_nvbandwidth_versions),
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_nccl_blank_column),
        cmocka_unit_test(test_nccl_queues),
        cmocka_unit_test(test_nccl_nodes),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_mpi),
        cmocka_unit_test(test_imb_groups),
        cmocka_unit_test(test_imb_failures),
        cmocka_unit_test(test_nvbandwidth_chain),
        cmocka_unit_test(test_nccl_not_as_nccl),
        cmocka_unit_test(test_what_is_not_alike),
        cmocka_unit_test(test_perftest_tail),
        cmocka_unit_test(test_wrong_units),
        cmocka_unit_test(test_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: what witnesses print, what they are told, and our own rows. The recorded outputs are
 * in tests/witness/. */
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

#include "core/units.h"
#include "harness/crosscheck/crosscheck.h"
#include "harness/text.h"

static const struct witness *find(const char *name)
{
    for (const struct witness *w = witness_table; w->name; w++)
        if (!strcmp(w->name, name))
            return w;
    fail_msg("no witness '%s'", name);
    return NULL;
}

static struct buffer recorded(const char *file)
{
    struct buffer b = {0};
    char path[256];

    snprintf(path, sizeof(path), "tests/witness/%s", file);
    if (file_read(path, 1u << 20, &b))
        fail_msg("cannot read '%s'", path);
    return b;
}

/* What a text of the witness says, in our unit; NAN where it was refused. */
static double said_by(const char *name, const char *text)
{
    struct foreign_figure figure;
    char error[256] = "";

    if (!witness_read(find(name), text, strlen(text), &figure, error, sizeof(error)))
        return figure.value;
    assert_true(*error != 0);
    return NAN;
}

static double said(const char *name, const char *file)
{
    struct buffer b = recorded(file);
    double value = said_by(name, b.text);

    buffer_release(&b);
    return value;
}

static void near(double value, double wanted)
{
    if (!(fabs(value / wanted - 1) < 1e-9))
        fail_msg("%.12g, not %.12g", value, wanted);
}

/* The figures were worked out by hand from the files, with each program's own definition. */
static void test_recorded_outputs(void **state)
{
    (void)state;
    near(said("iperf3-1", "iperf3-3.12.json"), 19394252218.366222 / 8e9);
    near(said("iperf3-4", "iperf3-3.12.json"), 19394252218.366222 / 8e9);
    near(said("iperf3-cpu", "iperf3-3.12.json"),
         (0.25676445656433184 + 0.70294457197857426) / (19394252218.366222 / 8e9));
    near(said("sockperf", "sockperf-3.7.txt"), 2.575);
    near(said("qperf-latency", "qperf-tcp_lat-0.4.11.txt"), 27.7970813);
    near(said("qperf-bandwidth", "qperf-tcp_bw-0.4.11.txt"), 1.520959488);
    near(said("ucx-tcp-latency", "ucx_perftest-tag_lat-1.13.1.txt"), 3.544);
    near(said("ucx-tcp-bandwidth", "ucx_perftest-tag_bw-1.13.1.txt"), 116.60 * 1048576 / 1e9);
}

/* Of the slowest rank, not the first, nor the average; of the wanted size. The two others as their sources print them. */
static void test_collectives(void **state)
{
    (void)state;
    near(said("imb-allreduce", "imb-allreduce-2021.11.txt"), 178.75);
    const char *imb = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
                      "        65536         1000        11.25        14.75        12.50\n";
    near(said_by("imb-allreduce", imb), 14.75);
    assert_true(isnan(said_by("imb-allreduce", "        65536 time-out.; Time limit is over\n")));
    const char *osu =
        "\n# OSU MPI Allreduce Latency Test v5.9\n"
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
        "65536                  12.50             11.25             14.75        1000\n";
    near(said_by("osu-allreduce", osu), 14.75);
    assert_true(isnan(said_by("osu-allreduce", "# Size       Avg Latency(us)\n65536  12.50\n")));
}

#define NCCL_HEAD                                                                                  \
    "# nThread 1 nGpus 1 minBytes 67108864 maxBytes 67108864 step: 2(factor)\n"                    \
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong "       \
    "    time   algbw   busbw  #wrong\n"
#define NCCL_END "# Avg bus bandwidth    : 0\n"

/* Out of place, of the size, type and operation that were asked for, to the end. */
static void test_nccl(void **state)
{
    (void)state;
    near(said_by("nccl-allreduce", NCCL_HEAD
                 "    67108864      16777216     float     sum      -1    94.11  713.07    "
                 "0.00       0    12.34  5438.32   0.00       0\n" NCCL_END),
         94.11);
    assert_true(
        isnan(said_by("nccl-allreduce", NCCL_HEAD "    67108864      16777216     float     sum    "
                                                  "  -1    94.11  713.07    0.00\n" NCCL_END)));
    assert_true(
        isnan(said_by("nccl-allreduce", NCCL_HEAD
                      "    67108864      16777216      half     sum      -1    94.11  713.07    "
                      "0.00       0    12.34  5438.32   0.00       0\n" NCCL_END)));
    assert_true(isnan(said_by("nccl-allreduce", "Test NCCL failure common.cu:958\n")));
    near(said("nccl-all-to-all", "nccl-alltoall-2.17.1.txt"), 341.5);
    near(said("nvbandwidth-to-gpu", "nvbandwidth-0.8.json"), 55.4321);
    near(said("nvbandwidth-from-gpu-both", "nvbandwidth-0.8.json"), 41.75);
    near(said("nvbandwidth-peer-read", "nvbandwidth-0.8.json"), 391.25);
    near(said("nvbandwidth-peer-write", "nvbandwidth-0.8.json"), 388.5);
    near(said("nvbandwidth-from-gpu", "nvbandwidth-0.8.txt"), 54.12);
    near(said("nvbandwidth-peer-read", "nvbandwidth-0.8.txt"), 391.25);
}

/* perftest's MB are 2^20 bytes, and its average stands behind its peak. */
static void test_recorded_perftest(void **state)
{
    (void)state;
    near(said("ib_write_bw", "ib_write_bw-6.06.txt"), 53.21 * 1048576 / 1e9);
    near(said("ib_read_bw", "ib_read_bw-6.06.txt"), 126.46 * 1048576 / 1e9);
    near(said("ib_send_bw", "ib_send_bw-6.06.txt"), 108.95 * 1048576 / 1e9);
    near(said("ib_write_lat", "ib_write_lat-6.06.txt"), 9.27);
    near(said("ib_read_lat", "ib_read_lat-6.06.txt"), 35.62);
    near(said("ib_send_lat", "ib_send_lat-6.06.txt"), 12.02);
}

/* Another unit or other columns under the same program's name are refused, not read. */
static void test_other_formats(void **state)
{
    (void)state;
    near(said("ib_write_bw", "ib_write_bw-gbits-6.06.txt"), 0.26 / 8);
    assert_true(isnan(said("ib_write_lat", "ib_write_lat-duration-6.06.txt")));
    assert_true(isnan(said("qperf-latency", "qperf-tcp_bw-0.4.11.txt")));
    near(said_by("qperf-latency", "tcp_lat:\n    latency  =  4.04 us\n"), 4.04);
    assert_true(isnan(said_by("qperf-latency", "tcp_lat:\n    latency  =  4.04 yards\n")));
    assert_true(isnan(said_by("sockperf", "sockperf: No messages were received\n")));
    assert_true(isnan(said_by("ucx-tcp-latency", "iterations,avg_lat\n10,3\n")));
    assert_true(
        isnan(said_by("ucx-tcp-latency", "iterations,50.0_percentile_lat,avg_lat,overall_lat\n")));
    assert_true(isnan(said_by("ucx-tcp-bandwidth", "50.0_percentile_lat,overall_bw\n3\n")));
}

static void test_json_that_is_wrong(void **state)
{
    const struct witness *w = find("iperf3-1");
    const char *failed = "{\"start\":{\"version\":\"iperf 3.12\"},\"end\":{},"
                         "\"error\":\"unable to connect\"}";
    struct foreign_figure figure;
    char error[256];

    (void)state;
    assert_true(isnan(said_by("iperf3-1", "")));
    assert_true(isnan(said_by("iperf3-1", "{\"end\":{}}")));
    assert_true(
        isnan(said_by("iperf3-1", "{\"end\":{\"sum_received\":{\"bits_per_second\":\"9\"}}}")));
    assert_true(isnan(said_by("iperf3-1", "{\"end\":{\"sum_received\":{\"bits_per_second\":0}}}")));
    assert_int_equal(witness_read(w, failed, strlen(failed), &figure, error, sizeof(error)),
                     -EBADMSG);
    assert_non_null(strstr(error, "unable to connect"));
}

static void test_fields_cut_short(void **state)
{
    (void)state;
    const char *head =
        " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
    char text[256];

    /* 1000 MB of 2^20 bytes are 16000 messages of 64 KiB, 1000 of 1e6 would be 15259. */
    snprintf(text, sizeof(text), "%s 65536 10 1500 1000.0 0.016000\n----\n", head);
    near(said_by("ib_write_bw", text), 1.048576);
    snprintf(text, sizeof(text), "%s 65536 10 1500 1000.0 0.015259\n----\n", head);
    assert_true(isnan(said_by("ib_write_bw", text)));
    assert_true(isnan(said_by("ib_write_bw", head)));
    snprintf(text, sizeof(text), "%s 65536 10 1500 1000.0 0.016000\n", head);
    assert_true(isnan(said_by("ib_write_bw", text)));
    snprintf(text, sizeof(text), "%s 65536 10 1.5\n----\n", head);
    assert_true(isnan(said_by("ib_write_bw", text)));
    snprintf(text, sizeof(text), "%s 65536 10 1.5 -nan 0.016000\n----\n", head);
    assert_true(isnan(said_by("ib_write_bw", text)));
    snprintf(text, sizeof(text), "%s 65536 10 1.5 0.00 0.016000\n----\n", head);
    assert_true(isnan(said_by("ib_write_bw", text)));
    snprintf(text, sizeof(text), "%s -------\n", head);
    assert_true(isnan(said_by("ib_write_bw", text)));
}

static void test_versions(void **state)
{
    char text[32];

    (void)state;
    assert_int_equal(foreign_version("iperf 3.12 (cJSON 1.7.15)\n", text, sizeof(text)), 3012);
    assert_string_equal(text, "3.12");
    assert_int_equal(foreign_version("qperf 0.4.11\n", text, sizeof(text)), 4);
    assert_string_equal(text, "0.4.11");
    assert_int_equal(foreign_version("none\n", text, sizeof(text)), 0);
    struct witness w = {.from = 3016};
    assert_false(witness_fits(&w, 3015));
    assert_true(witness_fits(&w, 3016));
    w = (struct witness){.below = 3016};
    assert_true(witness_fits(&w, 3015));
    assert_false(witness_fits(&w, 3016));
    assert_true(witness_fits(&w, 0));
}

/* Of each program and version there is at most one row of a name, and each row is whole. */
static void test_table_is_whole(void **state)
{
    (void)state;
    for (const struct witness *w = witness_table; w->name; w++) {
        assert_non_null(w->program);
        assert_true(!w->package != !w->source);
        assert_non_null(w->bench);
        assert_non_null(w->ours);
        assert_non_null(w->client);
        assert_non_null(w->suite);
        assert_non_null(w->quantity);
        assert_non_null(w->statistic);
        assert_non_null(w->converted);
        assert_non_null(units_find(w->unit));
        assert_true(w->size && !w->streams == w->gpus && w->margin > 0);
        for (const struct witness *o = w + 1; o->name; o++)
            assert_true(strcmp(w->name, o->name) != 0 || w->below == o->from);
    }
}

static const struct template_value values[] = {
    {"port", "4000"}, {"host", "127.0.0.1"}, {"gid", ""}, {"device", NULL}, {NULL, NULL}};

static void fills(const char *program, const char *text, const char *wanted)
{
    char error[128] = "", joined[512] = "";
    char **words = template_fill(program, text, values, error, sizeof(error));

    for (size_t i = 0; words && words[i]; i++)
        snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i ? "|" : "",
                 words[i]);
    texts_free(words);
    assert_string_equal(words ? joined : error, wanted);
}

static void test_templates(void **state)
{
    (void)state;
    fills("/x y", "-c {host}  -p {port}", "/x y|-c|127.0.0.1|-p|4000");
    fills("/x", "[-x {gid}] -p{port}[:{port}]", "/x|-p4000:4000");
    fills("/x", "-d {device}", "'device' is not known here");
    fills("/x", "-d {devise}", "'devise' is not known here");
    fills(NULL, "no-such-program-anywhere -p {port}", "'no-such-program-anywhere' is not on PATH");
    fills(NULL, "/bin/sh -c", "/bin/sh|-c");
    char *env = path_program("env"), wanted[256];
    snprintf(wanted, sizeof(wanted), "%s|A=4000|sh|-c", env);
    fills(NULL, "A={port} sh -c", wanted);
    free(env);
}

#define HEAD   "cpus,carrier_gid,side,scope,metric,unit,value,mean,status,reason\n"
#define COST   "0>1,,own,threads,cpu_per_gb,s/GB,0.9,0.25,ok,\n"
#define COST_2 "0>1,,peer,threads,cpu_per_gb,s/GB,0.9,0.5,noisy,loud\n"

static int read_ours(const char *name, const char *csv, struct ours *out, char error[256])
{
    error[0] = 0;
    return ours_read(find(name), csv, strlen(csv), out, error, 256);
}

static void test_our_rows(void **state)
{
    char error[256];
    struct ours o;

    (void)state;
    assert_int_equal(read_ours("iperf3-1",
                               HEAD "0>1,,,,bandwidth,GB/s,9,8,noisy,wide\n"
                                    "\"0 2>1 3\",12,,,average_bandwidth,GB/s,7,6,"
                                    "ok,\n",
                               &o, error),
                     0);
    near(o.value, 7);
    assert_string_equal(o.cpus, "0 2>1 3");
    assert_string_equal(o.gid, "12");
    assert_int_equal(read_ours("iperf3-cpu", HEAD COST COST_2, &o, error), 0);
    near(o.value, 0.75);
    assert_string_equal(o.gid, "");
    assert_int_equal(read_ours("qperf-latency", HEAD "0>1,,,,latency,us,5,6,ok,\n", &o, error), 0);
    near(o.value, 6);
    assert_int_equal(read_ours("sockperf", HEAD "0>1,,,,latency,us,5,6,ok,\n", &o, error), 0);
    near(o.value, 5);
}

static void test_our_rows_that_are_wrong(void **state)
{
    char error[256];
    struct ours o;

    (void)state;
    assert_int_equal(read_ours("iperf3-cpu", HEAD COST, &o, error), -EBADMSG);
    assert_non_null(strstr(error, "1 rows of cpu_per_gb, not 2"));
    assert_int_equal(read_ours("sockperf", HEAD "0>1,,,,latency,ns,5,6,ok,\n", &o, error),
                     -EBADMSG);
    assert_int_equal(read_ours("sockperf", HEAD "0>1,,,,latency,us,,,ok,\n", &o, error), -EBADMSG);
    assert_int_equal(read_ours("sockperf", HEAD "0>1,,,,latency,us,5,6,wrong,byte 3\n", &o, error),
                     -EIO);
    assert_non_null(strstr(error, "byte 3"));
    assert_int_equal(
        read_ours("sockperf", HEAD "0>1,,,,latency,us,5,6,skipped,no device\n", &o, error),
        -EOPNOTSUPP);
    assert_int_equal(read_ours("sockperf", "", &o, error), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_outputs), cmocka_unit_test(test_recorded_perftest),
        cmocka_unit_test(test_collectives),      cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_other_formats),    cmocka_unit_test(test_json_that_is_wrong),
        cmocka_unit_test(test_fields_cut_short), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_table_is_whole),   cmocka_unit_test(test_templates),
        cmocka_unit_test(test_our_rows),         cmocka_unit_test(test_our_rows_that_are_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: what witnesses print, our own rows, and ratios of pairs and their verdict. The recorded
 * outputs are in tests/witness/. */
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

static void near(double value, double wanted)
{
    if (!(fabs(value / wanted - 1) < 1e-9))
        fail_msg("%.12g, not %.12g", value, wanted);
}

#define MIB_S(x) ((x)*1048576 / 1e9)

/* The figures were worked out by hand from the files, with each program's own definition; of perftest MB are 2^20
 * bytes, and the average stands behind the peak. 0: another unit or other columns under the same program's name
 * are refused. */
static void test_recorded_outputs(void **state)
{
    static const struct {
        const char *name, *file;
        double value;
    } cases[] = {{"iperf3-1", "iperf3-3.12.json", 19394252218.366222 / 8e9},
                 {"iperf3-4", "iperf3-3.12.json", 19394252218.366222 / 8e9},
                 {"iperf3-cpu", "iperf3-3.12.json",
                  (0.25676445656433184 + 0.70294457197857426) / (19394252218.366222 / 8e9)},
                 {"nccl-all-to-all", "nccl-alltoall-2.17.1.txt", 341.5},
                 {"nvbandwidth-to-gpu", "nvbandwidth-0.8.json", 55.4321},
                 {"nvbandwidth-from-gpu-both", "nvbandwidth-0.8.json", 41.75},
                 {"nvbandwidth-peer-read", "nvbandwidth-0.8.json", 391.25},
                 {"nvbandwidth-peer-write", "nvbandwidth-0.8.json", 388.5},
                 {"nvbandwidth-from-gpu", "nvbandwidth-0.8.txt", 54.12},
                 {"nvbandwidth-peer-read", "nvbandwidth-0.8.txt", 391.25},
                 {"ib_write_bw", "ib_write_bw-6.06.txt", MIB_S(53.21)},
                 {"ib_read_bw", "ib_read_bw-6.06.txt", MIB_S(126.46)},
                 {"ib_send_bw", "ib_send_bw-6.06.txt", MIB_S(108.95)},
                 {"ib_write_lat", "ib_write_lat-6.06.txt", 9.27},
                 {"ib_read_lat", "ib_read_lat-6.06.txt", 35.62},
                 {"ib_send_lat", "ib_send_lat-6.06.txt", 12.02},
                 {"ib_write_bw", "ib_write_bw-gbits-6.06.txt", 0.26 / 8},
                 {"ib_write_lat", "ib_write_lat-duration-6.06.txt", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buffer b = {0};
        char path[256];

        snprintf(path, sizeof(path), "tests/witness/%s", cases[i].file);
        assert_int_equal(file_read(path, 1u << 20, &b), 0);
        double value = said_by(cases[i].name, b.text);
        if (cases[i].value > 0)
            near(value, cases[i].value);
        else
            assert_true(isnan(value));
        buffer_release(&b);
    }
}

#define OSU     "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
#define PERF    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
#define PERF_Y  "----\n"
#define RECV(x) "{\"end\":{\"sum_received\":{\"bits_per_second\":" x "}}}"
#define NCCL(x)                                                                                    \
    "# nThread 1 nGpus 1 minBytes 67108864 maxBytes 67108864 step: 2(factor)\n"                    \
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong "       \
    "    time   algbw   busbw  #wrong\n    67108864      16777216 " x
#define NCCL_END "# Avg bus bandwidth    : 0\n"

/* Of the slowest rank, out of place, of the size, type and operation that were asked for, to the end; else it is
 * refused (0). */
static void test_other_outputs(void **state)
{
    static const struct {
        const char *name, *text;
        double value;
    } cases[] = {
        {"osu-allreduce", OSU "65536   12.50   11.25   14.75   1000\n", 14.75},
        {"osu-allreduce", "# Size       Avg Latency(us)\n65536  12.50\n", 0},
        {"nccl-allreduce", NCCL("float sum -1 94.11 713.07 0.00 0 12.34 5438.32 0.00 0\n" NCCL_END),
         94.11},
        {"nccl-allreduce", NCCL("float sum -1 94.11 713.07 0.00\n" NCCL_END), 0},
        {"nccl-allreduce", NCCL("half sum -1 94.11 713.07 0.00 0 12.34 5438.32 0.00 0\n" NCCL_END),
         0},
        {"nccl-allreduce", "Test NCCL failure common.cu:958\n", 0},
        {"iperf3-1", "", 0},
        {"iperf3-1", "{\"end\":{}}", 0},
        {"iperf3-1", RECV("\"9\""), 0},
        {"iperf3-1", RECV("0"), 0},
        /* 1000 MB of 2^20 bytes are 16000 messages of 64 KiB, 1000 of 1e6 would be 15259 */
        {"ib_write_bw", PERF " 65536 10 1500 1000.0 0.016000\n" PERF_Y, 1.048576},
        {"ib_write_bw", PERF " 65536 10 1500 1000.0 0.015259\n" PERF_Y, 0},
        {"ib_write_bw", PERF, 0},
        {"ib_write_bw", PERF " 65536 10 1500 1000.0 0.016000\n", 0},
        {"ib_write_bw", PERF " 65536 10 1.5\n" PERF_Y, 0},
        {"ib_write_bw", PERF " 65536 10 1.5 -nan 0.016000\n" PERF_Y, 0},
        {"ib_write_bw", PERF " 65536 10 1.5 0.00 0.016000\n" PERF_Y, 0},
        {"ib_write_bw", PERF " -------\n", 0}};
    const char *failed = "{\"start\":{\"version\":\"iperf 3.12\"},\"end\":{},"
                         "\"error\":\"unable to connect\"}";
    struct foreign_figure figure;
    char error[256];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double value = said_by(cases[i].name, cases[i].text);

        if (cases[i].value > 0)
            near(value, cases[i].value);
        else if (!isnan(value))
            fail_msg("row %zu: %g", i, value);
    }
    assert_int_equal(
        witness_read(find("iperf3-1"), failed, strlen(failed), &figure, error, sizeof(error)),
        -EBADMSG);
    assert_non_null(strstr(error, "unable to connect")); /* its own word */
}

static void test_versions(void **state)
{
    const struct witness from = {.from = 3016}, below = {.below = 3016};
    char text[32];

    (void)state;
    assert_int_equal(foreign_version("iperf 3.12 (cJSON 1.7.15)\n", text, sizeof(text)), 3012);
    assert_string_equal(text, "3.12");
    assert_int_equal(foreign_version("perf 0.4.11\n", text, sizeof(text)), 4);
    assert_string_equal(text, "0.4.11");
    assert_int_equal(foreign_version("none\n", text, sizeof(text)), 0);
    assert_true(!witness_fits(&from, 3015) && witness_fits(&from, 3016));
    assert_true(witness_fits(&below, 3015) && !witness_fits(&below, 3016));
    assert_true(witness_fits(&below, 0));
}

#define HEAD   "cpus,carrier_gid,side,scope,metric,unit,value,mean,status,reason\n"
#define COST   "0>1,,own,threads,cpu_per_gb,s/GB,0.9,0.25,ok,\n"
#define COST_2 "0>1,,peer,threads,cpu_per_gb,s/GB,0.9,0.5,noisy,loud\n"
#define RATES                                                                                      \
    "0>1,,,,bandwidth,GB/s,9,8,noisy,wide\n\"0 2>1 3\",12,,,average_bandwidth,GB/s,7,6,ok,\n"

/* Our own figure is the one that the witness' is of: a median, a mean, or the sum of both ends. */
static void test_our_rows(void **state)
{
    static const struct {
        const char *name, *csv;
        int err;
        double value;
        const char *cpus, *gid;
    } cases[] = {
        {"iperf3-1", HEAD RATES, 0, 7, "0 2>1 3", "12"},
        {"iperf3-cpu", HEAD COST COST_2, 0, 0.75, "0>1", ""},
        {"osu-allreduce", HEAD "0>1,,,,time,us,5,6,ok,\n", 0, 6, "0>1", ""},
        {"ib_send_lat", HEAD "0>1,,,,latency,us,5,6,ok,\n", 0, 5, "0>1", ""},
        {"iperf3-cpu", HEAD COST, -EBADMSG, 0, NULL, NULL},
        {"ib_send_lat", HEAD "0>1,,,,latency,ns,5,6,ok,\n", -EBADMSG, 0, NULL, NULL},
        {"ib_send_lat", HEAD "0>1,,,,latency,us,,,ok,\n", -EBADMSG, 0, NULL, NULL},
        {"ib_send_lat", HEAD "0>1,,,,latency,us,5,6,wrong,byte 3\n", -EIO, 0, NULL, NULL},
        {"ib_send_lat", HEAD "0>1,,,,latency,us,5,6,skipped,none\n", -EOPNOTSUPP, 0, NULL, NULL},
        {"ib_send_lat", "", -EBADMSG, 0, NULL, NULL}};
    char error[256];
    struct ours o;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(ours_read(find(cases[i].name), cases[i].csv, strlen(cases[i].csv), &o,
                                   error, sizeof(error)),
                         cases[i].err);
        if (cases[i].err)
            continue;
        near(o.value, cases[i].value);
        assert_string_equal(o.cpus, cases[i].cpus);
        assert_string_equal(o.gid, cases[i].gid);
    }
}

/* --- ratios of pairs --- */

#define PAIRS 10

/* Theirs drifts by a factor of two over the pairs; ours is `ratio` times theirs, each pair off by up to
 * +/- spread. */
static struct judgement judged(double ratio, double spread, size_t pairs, bool higher)
{
    static const double off[PAIRS] = {-1, 0.6, -0.3, 0.9, 0.1, -0.7, 0.4, -0.1, 1, -0.5};
    double ours[PAIRS], theirs[PAIRS];
    struct judgement j;

    for (size_t i = 0; i < pairs; i++) {
        theirs[i] = 5 + 5.0 * (double)i / PAIRS;
        ours[i] = theirs[i] * ratio * (1 + spread * off[i]);
    }
    assert_int_equal(judge(ours, theirs, pairs, 0.02, higher, &j), 0);
    return j;
}

static void test_ratio_of_pairs(void **state)
{
    /* By pairs 2, 2, 0.5: the median is 2, although the ratio of the medians is 1. */
    const double ours[] = {2, 20, 5}, theirs[] = {1, 10, 10};
    const double good[] = {1, 2}, bad[] = {1, 0}, none[] = {1, NAN};
    struct judgement j;

    (void)state;
    assert_int_equal(judge(ours, theirs, 3, 0.02, true, &j), 0);
    assert_true(fabs(j.ratio - 2) < 1e-12);
    assert_true(fabs(j.ours - 5) < 1e-12 && fabs(j.theirs - 10) < 1e-12);
    assert_int_equal(j.verdict, VERDICT_UNDECIDED);
    assert_true(isnan(j.low) && isnan(j.high));
    assert_int_equal(j.pairs_wanted, JUDGE_PAIRS_MIN);
    assert_int_equal(judge(good, good, 0, 0.02, true, &j), -EINVAL);
    assert_int_equal(judge(bad, good, 2, 0.02, true, &j), -EINVAL);
    assert_int_equal(judge(good, bad, 2, 0.02, true, &j), -EINVAL);
    assert_int_equal(judge(good, none, 2, 0.02, true, &j), -EINVAL);
}

/* A ratio that is just that of a mistaken definition is told apart from one that is only different. */
static void test_verdicts(void **state)
{
    static const struct {
        double ratio, spread;
        size_t pairs;
        bool higher;
        enum verdict verdict;
        const char *suspect;
    } cases[] = {{1, 0.005, PAIRS, true, VERDICT_AGREE, NULL},
                 {1, 0.001, PAIRS, true, VERDICT_AGREE, NULL},
                 {1.01, 0.001, PAIRS, true, VERDICT_AGREE, NULL},
                 {1.1, 0.01, PAIRS, true, VERDICT_BETTER, NULL},
                 {0.9, 0.01, PAIRS, true, VERDICT_WORSE, NULL},
                 {1.1, 0.01, PAIRS, false, VERDICT_WORSE, NULL},
                 {0.9, 0.01, PAIRS, false, VERDICT_BETTER, NULL},
                 {1.1, 0.01, 5, true, VERDICT_UNDECIDED, NULL},
                 {1.015, 0.05, PAIRS, true, VERDICT_UNDECIDED, NULL},
                 {2, 0.005, PAIRS, false, VERDICT_WORSE, "round trips"},
                 {0.5, 0.005, PAIRS, false, VERDICT_BETTER, "round trips"},
                 {1.048576, 0.002, PAIRS, true, VERDICT_BETTER, "2^20"},
                 {1 / 1.048576, 0.002, PAIRS, true, VERDICT_WORSE, "2^20"},
                 {8, 0.005, PAIRS, true, VERDICT_BETTER, "bits"},
                 {1.6, 0.01, PAIRS, true, VERDICT_BETTER, NULL},
                 {2, 0.2, PAIRS, true, VERDICT_BETTER, NULL},
                 {1.048576, 0.05, PAIRS, true, VERDICT_BETTER, NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct judgement j =
            judged(cases[i].ratio, cases[i].spread, cases[i].pairs, cases[i].higher);

        if (j.verdict != cases[i].verdict)
            fail_msg("row %zu: verdict %d", i, (int)j.verdict);
        assert_int_equal(!j.suspect, !cases[i].suspect);
        assert_true(!j.suspect || strstr(j.suspect, cases[i].suspect));
    }
}

static void test_listeners_and_cpus(void **state)
{
    static const char table[] =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
        "   0: 0100007F:175C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
        "   1: 0100007F:175D 0100007F:175C 01 00000000:00000000 00:00000000 00000000     0\n"
        "   2: 00000000000000000000000000000000:175E 00000000000000000000000000000000:0000 0A "
        "0:0\n";
    const char *end;
    struct tandem_cpus c = tandem_cpus_parse("0 12>3", &end);

    (void)state;
    assert_true(tandem_listens(table, 0x175c) && tandem_listens(table, 0x175e));
    assert_false(tandem_listens(table, 0x175d) || tandem_listens(table, 0x175f));
    assert_false(tandem_listens("", 0x175c));
    assert_int_equal(c.n, 2);
    assert_int_equal(c.cpus[1], 12);
    assert_string_equal(end, ">3");
    assert_int_equal(tandem_cpus_parse("", &end).n, 0);
    assert_int_equal(tandem_cpus_parse("?", NULL).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_outputs),  cmocka_unit_test(test_other_outputs),
        cmocka_unit_test(test_versions),          cmocka_unit_test(test_our_rows),
        cmocka_unit_test(test_ratio_of_pairs),    cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_listeners_and_cpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

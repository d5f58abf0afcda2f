/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: ratios of pairs, their interval and verdict; and two programs run together. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"
#include "harness/crosscheck/crosscheck.h"

#define PAIRS     10
#define SECOND_NS 1000000000ull

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
    struct judgement j;

    (void)state;
    assert_int_equal(judge(ours, theirs, 3, 0.02, true, &j), 0);
    assert_true(fabs(j.ratio - 2) < 1e-12);
    assert_true(fabs(j.ours - 5) < 1e-12 && fabs(j.theirs - 10) < 1e-12);
    assert_int_equal(j.verdict, VERDICT_UNDECIDED);
    assert_true(isnan(j.low) && isnan(j.high));
    assert_int_equal(j.pairs_wanted, JUDGE_PAIRS_MIN);
}

/* Ten independent pairs: the ends of the 95 % interval lie between ranks 2 and 3, 8 and 9
 * (97.9 % and 89.1 %), and nearer to the outer ones. */
static void test_interval(void **state)
{
    struct judgement j = judged(1, 0.1, PAIRS, true);

    (void)state;
    assert_true(j.low >= 1 - 0.07 && j.low <= 1 - 0.05);
    assert_true(j.high >= 1 + 0.06 && j.high <= 1 + 0.09);
    assert_int_equal(j.verdict, VERDICT_UNDECIDED);
    assert_true(j.pairs_wanted > PAIRS);
}

static void test_verdicts(void **state)
{
    (void)state;
    assert_int_equal(judged(1, 0.005, PAIRS, true).verdict, VERDICT_AGREE);
    assert_int_equal(judged(1.01, 0.001, PAIRS, true).verdict, VERDICT_AGREE);
    assert_int_equal(judged(1.1, 0.01, PAIRS, true).verdict, VERDICT_BETTER);
    assert_int_equal(judged(0.9, 0.01, PAIRS, true).verdict, VERDICT_WORSE);
    assert_int_equal(judged(1.1, 0.01, PAIRS, false).verdict, VERDICT_WORSE);
    assert_int_equal(judged(0.9, 0.01, PAIRS, false).verdict, VERDICT_BETTER);
    assert_int_equal(judged(1.1, 0.01, 5, true).verdict, VERDICT_UNDECIDED);
    assert_int_equal(judged(1.015, 0.05, PAIRS, true).verdict, VERDICT_UNDECIDED);
}

/* A ratio that is just a definition's is told apart from one that is only different. */
static void test_mistaken_definitions(void **state)
{
    (void)state;
    assert_non_null(strstr(judged(2, 0.005, PAIRS, false).suspect, "round trips"));
    assert_non_null(strstr(judged(0.5, 0.005, PAIRS, false).suspect, "round trips"));
    assert_non_null(strstr(judged(1.048576, 0.002, PAIRS, true).suspect, "2^20"));
    assert_non_null(strstr(judged(1 / 1.048576, 0.002, PAIRS, true).suspect, "2^20"));
    assert_non_null(strstr(judged(8, 0.005, PAIRS, true).suspect, "bits"));
    assert_null(judged(1.6, 0.01, PAIRS, true).suspect);
    assert_null(judged(2, 0.2, PAIRS, true).suspect);
    assert_null(judged(1.048576, 0.05, PAIRS, true).suspect);
    assert_null(judged(1, 0.001, PAIRS, true).suspect);
}

static void test_no_figures(void **state)
{
    const double good[] = {1, 2}, bad[] = {1, 0}, none[] = {1, NAN};
    struct judgement j;

    (void)state;
    assert_int_equal(judge(good, good, 0, 0.02, true, &j), -EINVAL);
    assert_int_equal(judge(bad, good, 2, 0.02, true, &j), -EINVAL);
    assert_int_equal(judge(good, bad, 2, 0.02, true, &j), -EINVAL);
    assert_int_equal(judge(good, none, 2, 0.02, true, &j), -EINVAL);
}

static void test_listeners(void **state)
{
    static const char table[] =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
        "   0: 0100007F:175C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
        "   1: 0100007F:175D 0100007F:175C 01 00000000:00000000 00:00000000 00000000     0\n"
        "   2: 00000000000000000000000000000000:175E 00000000000000000000000000000000:0000 0A "
        "0:0\n";

    (void)state;
    assert_true(tandem_listens(table, 0x175c));
    assert_true(tandem_listens(table, 0x175e));
    assert_false(tandem_listens(table, 0x175d));
    assert_false(tandem_listens(table, 0x175f));
    assert_false(tandem_listens("", 0x175c));
}

static void test_cpus(void **state)
{
    const char *end;
    struct tandem_cpus c = tandem_cpus_parse("0 12>3", &end);

    (void)state;
    assert_int_equal(c.n, 2);
    assert_int_equal(c.cpus[1], 12);
    assert_string_equal(end, ">3");
    assert_int_equal(tandem_cpus_parse("", &end).n, 0);
    assert_int_equal(tandem_cpus_parse("?", NULL).n, 0);
}

static int together(char *server, char *client, uint64_t timeout_ns, const volatile int *cancel,
                    struct tandem_result *r, char error[256])
{
    char *server_argv[] = {"/bin/sh", "-c", server, NULL};
    char *client_argv[] = {"/bin/sh", "-c", client, NULL};
    struct tandem_spec spec = {.server = server ? server_argv : NULL,
                               .client = client_argv,
                               .port = tandem_free_port(),
                               .timeout_ns = timeout_ns,
                               .cancel = cancel};

    assert_true(spec.port > 0);
    return tandem_run(&spec, r, error, 256);
}

static void test_client_alone(void **state)
{
    struct tandem_result r;
    char error[256];

    (void)state;
    assert_int_equal(together(NULL, "echo 7", 20 * SECOND_NS, NULL, &r, error), 0);
    assert_string_equal(r.client.out.text, "7\n");
    tandem_result_release(&r);
    assert_int_equal(together(NULL, "echo so >&2; exit 3", 20 * SECOND_NS, NULL, &r, error), -EIO);
    assert_string_equal(error, "it ended with status 3: so");
    tandem_result_release(&r);
    assert_int_equal(together(NULL, "sleep 60", SECOND_NS / 5, NULL, &r, error), -ETIME);
    assert_string_equal(error, "it did not end in 0.2 s");
    tandem_result_release(&r);
}

static void test_server_that_ends(void **state)
{
    struct tandem_result r;
    char error[256];

    (void)state;
    assert_int_equal(together("echo why >&2; exit 1", "echo 7", 20 * SECOND_NS, NULL, &r, error),
                     -EIO);
    assert_string_equal(error, "its server ended before it listened: why");
    assert_false(r.ran);
    tandem_result_release(&r);
}

static void test_cancelled(void **state)
{
    uint64_t begin_ns = clock_now_ns();
    volatile int cancel = 1;
    struct tandem_result r;
    char error[256];

    (void)state;
    assert_int_equal(together("sleep 60", "echo 7", 60 * SECOND_NS, &cancel, &r, error),
                     -ECANCELED);
    tandem_result_release(&r);
    assert_true(clock_now_ns() - begin_ns < 20 * SECOND_NS);
}

/* The child has the CPU that it was told, and this thread its own again. */
static void test_placement(void **state)
{
    char *argv[] = {"/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status", NULL};
    struct tandem_spec spec = {.client = argv, .timeout_ns = 20 * SECOND_NS};
    struct tandem_result r;
    cpu_set_t before, after;
    char error[256], wanted[64];
    unsigned cpu = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    for (unsigned i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before))
            cpu = i; /* the last one: not where it would be anyway */
    spec.client_cpus = (struct tandem_cpus){.n = 1, .cpus = {cpu}};
    assert_int_equal(tandem_run(&spec, &r, error, sizeof(error)), 0);
    snprintf(wanted, sizeof(wanted), "Cpus_allowed_list:\t%u\n", cpu);
    assert_string_equal(r.client.out.text, wanted);
    tandem_result_release(&r);
    sched_getaffinity(0, sizeof(after), &after);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ratio_of_pairs),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_mistaken_definitions),
        cmocka_unit_test(test_no_figures),
        cmocka_unit_test(test_listeners),
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_client_alone),
        cmocka_unit_test(test_server_that_ends),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_placement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Limits joined to rows: the right rows, the right limit, and no other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "harness/limits/limits_row.h"
#include "tests/unit/built_benches.h"

static const char rows[] = "op,threads,node,memory_node,level,metric,unit,value\n"
                           "triad,64,any,local,DRAM,bandwidth,GB/s,150\n"
                           "triad,64,any,local,L3,bandwidth,GB/s,900\n"
                           "triad,64,0,local,DRAM,bandwidth,GB/s,75\n"
                           "triad,64,any,remote,DRAM,bandwidth,GB/s,40\n"
                           "latency,64,any,local,DRAM,latency,ns,100\n"
                           "triad,64,any,local,DRAM,bandwidth,GB/s,\n"
                           "triad,32,any,local,DRAM,bandwidth,GB/s,75\n";

static double cores = 64;
static struct bench_list benches;

static int load_benches(void **state)
{
    (void)state;
    benches = built_benches();
    return 0;
}

static int release_benches(void **state)
{
    (void)state;
    bench_list_release(&benches);
    return 0;
}

static int joined(json_t *limits, const char *bench, size_t row, struct joined_limit *out)
{
    struct table t;
    char error[256];

    assert_int_equal(table_parse("t", rows, strlen(rows), &t, error, sizeof(error)), 0);
    int found = limits_row(limits, cores, rows_of(&benches, bench)->limits, &t, row, out);
    table_release(&t);
    return found;
}

static void test_join(void **state)
{
    struct joined_limit l;
    json_t *limits =
        json_pack("[{s:s,s:f,s:s,s:s,s:s}]", "key", "dram.gbytes_per_s", "value", 307.2, "unit",
                  "GB/s", "source", "sysfs", "detail", "8 channels at 4800 MT/s");

    (void)state;
    assert_int_equal(joined(limits, "memory", 0, &l), 1);
    assert_true(fabs(l.value - 307.2) < 1e-9);
    assert_true(fabs(l.percent - 100 * 150 / 307.2) < 1e-9);
    assert_string_equal(l.source, "sysfs: 8 channels at 4800 MT/s");
    for (size_t row = 1; row < 5; row++)
        assert_int_equal(joined(limits, "memory", row, &l),
                         0); /* caches, one node, remote, latency: not this limit */
    assert_int_equal(joined(limits, "copy", 0, &l), 0);
    assert_int_equal(joined(limits, "memory", 5, &l), 1);
    assert_true(isnan(l.percent)); /* nothing was measured */
    assert_int_equal(joined(limits, "memory", 6, &l),
                     0); /* half of the cores: not all channels need serve them */
    cores = 0;
    assert_int_equal(joined(limits, "memory", 0, &l),
                     0); /* how many cores there are is not known */
    cores = 64;
    json_decref(limits);
    assert_int_equal(joined(NULL, "memory", 0, &l), 0);
}

static void expect(json_t *limits, const char *op, const char *fills, double value, double limit,
                   double raised_from)
{
    static const char header[] = "op,write_allocate,threads,node,memory_node,level,unit,value";
    struct joined_limit l;
    struct table t;
    char text[256], error[256];

    snprintf(text, sizeof(text), "%s\n%s,%s,64,any,local,DRAM,GB/s,%.17g\n", header, op, fills,
             value);
    assert_int_equal(table_parse("t", text, strlen(text), &t, error, sizeof(error)), 0);
    assert_int_equal(limits_row(limits, cores, rows_of(&benches, "memory")->limits, &t, 0, &l), 1);
    table_release(&t);
    bool is_raised = !isnan(raised_from);

    if (fabs(l.value - limit) > 1e-9 || fabs(l.percent - 100 * value / limit) > 1e-9 ||
        isnan(l.raised_from) == is_raised ||
        (is_raised && fabs(l.raised_from - raised_from) > 1e-9))
        fail_msg("%s, write_allocate=%s, %g: limit %.17g, %g %%, raised from %g", op, fills, value,
                 l.value, l.percent, l.raised_from);
    if (!strstr(l.source, "the CPU omits reads") != !is_raised ||
        !strstr(l.source, "lines are read before") == (limit < 300 && !is_raised))
        fail_msg("%s, write_allocate=%s, %g: %s", op, fills, value, l.source);
}

/* By hand: write moves 2 bytes for each that counts, copy and scale 3 for 2, add and triad 4 for 3. */
static void test_lines_that_stores_fill(void **state)
{
    json_t *limits = json_pack("[{s:s,s:f,s:s,s:s,s:s}]", "key", "dram.gbytes_per_s", "value",
                               307.2, "unit", "GB/s", "source", "sysfs", "detail", "8 channels");

    (void)state;
    expect(limits, "write", "yes", 140, 153.6, NAN);
    expect(limits, "copy", "yes", 190, 204.8, NAN);
    expect(limits, "scale", "yes", 190, 204.8, NAN);
    expect(limits, "add", "yes", 200, 230.4, NAN);
    expect(limits, "triad", "yes", 200, 230.4, NAN);
    expect(limits, "read", "no", 290, 307.2, NAN);
    expect(limits, "triad", "no", 290, 307.2, NAN); /* stores past the caches */
    json_decref(limits);
}

/* A CPU that notices whole lines fills fewer of them, or none. More than all channels carry is still
 * above the limit. */
static void test_lines_that_stores_do_not_fill(void **state)
{
    json_t *limits = json_pack("[{s:s,s:f,s:s,s:s,s:s}]", "key", "dram.gbytes_per_s", "value",
                               307.2, "unit", "GB/s", "source", "sysfs", "detail", "8 channels");

    (void)state;
    expect(limits, "write", "yes", 260, 307.2, 153.6);
    expect(limits, "copy", "yes", 206, 307.2, 204.8);
    expect(limits, "triad", "yes", 270, 307.2, 230.4);
    expect(limits, "triad", "yes", 302, 307.2, 230.4);
    expect(limits, "triad", "yes", 231, 231, NAN); /* by 0.3 %: the clock, or rounding */
    expect(limits, "triad", "yes", 320, 307.2, 230.4);
    expect(limits, "triad", "no", 320, 307.2, NAN);
    json_decref(limits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_join),
                                       cmocka_unit_test(test_lines_that_stores_fill),
                                       cmocka_unit_test(test_lines_that_stores_do_not_fill)};

    return cmocka_run_group_tests(tests, load_benches, release_benches);
}

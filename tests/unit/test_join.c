/* SPDX-License-Identifier: Apache-2.0 */
/* Limits joined to rows: the right rows, the right limit, and no other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_join)};

    return cmocka_run_group_tests(tests, load_benches, release_benches);
}

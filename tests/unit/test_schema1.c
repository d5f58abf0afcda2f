/* SPDX-License-Identifier: Apache-2.0 */
/* What runs of schema 1 said in sentences becomes columns when they are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/store/run_folder.h"

#define ABOVE "103 % of the limit: the limit is too low, or the data did not take that path"

/* A row of these columns alone, as schema 1 had them; texts of several columns are parted by '|'. */
static struct table derived(const char *columns, const char *cells)
{
    char *text = NULL, error[128] = "";
    struct table t;

    assert_true(asprintf(&text, "%s\n\"%s\"\n", columns, cells) > 0);
    for (char *at = text; (at = strchr(at, '|'));)
        *at = ',';
    if (table_parse("row", text, strlen(text), &t, error, sizeof(error)))
        fail_msg("%s: %s", error, text);
    assert_int_equal(schema1_derive(&t), 0);
    free(text);
    return t;
}

/* One column of such a row; the columns of a row are empty but for `column`. */
static void becomes(const char *column, const char *sentence, const char *to, const char *value)
{
    char *columns = NULL, *quoted = NULL;

    assert_true(asprintf(&columns, "metric,%s", column) > 0);
    assert_true(asprintf(&quoted, "m\"|\"%s", sentence) > 0);
    struct table t = derived(columns, quoted);
    if (strcmp(table_text(&t, 0, to), value) != 0)
        fail_msg("%s '%s': %s is '%s', not '%s'", column, sentence, to, table_text(&t, 0, to),
                 value);
    table_release(&t);
    free(columns);
    free(quoted);
}

static void carriers_of_evidence(void **state)
{
    static const char *const known[][2] = {
        {"own: lo sent 41.6 MB, 100 % of the bytes, peer: lo received 41.6 MB", "loopback"},
        {"own: mlx5_0:1 sent 1 GB; mlx5_1:1 sent 1 GB, peer: mlx5_0:1 received 2 GB", "rdma"},
        {"node1: rxe0:1 over eth0 sent 3 GB, node2: rxe0:1 over eth0 sent 3 GB", "rdma"},
        {"2 of 2 nodes proved, n1: eth0 sent 1 GB, received 1 GB", "sockets"},
        {"vm: shared memory: of 134 MB all devices together moved 0 %", "shm"},
        {"own: shared memory; eth0 moved 9 GB meanwhile", "shm"},
        {"n1: eth0 sent 1 GB, n2: mlx5_0:1 sent 1 GB", "rdma+sockets"},
        {"vm: lo 0 B; ifb0 0 B", ""},
        {"cuda:0 NVIDIA H200, called from cpu3, host memory: node0 64/64 pages looked at", ""},
        {"CPU time on 0-1: 0.76 to 0.77 s each in 0.77 s", ""},
        {"", ""},
        {": : sent", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        becomes("evidence", known[i][0], "carrier", known[i][1]);
}

static void carriers_of_a_library(void **state)
{
    (void)state;
    becomes("detail", "2.21.5, via NET/IB and P2P/CUMEM, network mlx5_0:1", "carrier", "rdma+peer");
    becomes("detail", "2.21.5, via NET/Socket, network eth0", "carrier", "sockets");
    becomes("detail", "2.21.5, via SHM", "carrier", "shm");
    becomes("detail", "lo bbr, MSS 65483", "carrier", "");
}

static void devices(void **state)
{
    (void)state;
    becomes("peer_detail", "x", "carrier_device", "");
    struct table t =
        derived("peer_detail,detail,metric", "eth1 cubic\"|\"eth0 bbr, MSS 1448\"|\"m");
    assert_string_equal(table_text(&t, 0, "carrier_device"), "eth0");
    table_release(&t);
    becomes("detail", "2.21.5, via SHM", "carrier_device", "");
}

/* What else is remarked stays, in its order. */
static void reasons(void **state)
{
    static const char *const all[] = {
        "a; interval is +/- 4 %, wanted 1 %, when sampling stopped (time); b",
        "interval is -3 % to +4 %, wanted 0.5 %, when sampling stopped (samples)",
        "a; " ABOVE "; the measured ceiling, 97.75 GB/s, was exceeded and is raised; b",
        "too few samples for an interval",
        "b; too few samples for an interval: each is like the one before",
        "x 103 % of the limit: the limit is too low",
        "the measured ceiling is unsteady: 67.51 GB/s before, 59.34 after",
        "",
    };
    static const char *const left[] = {
        "a; b",
        "",
        "a; b",
        "",
        "b",
        "x 103 % of the limit: the limit is too low",
        "the measured ceiling is unsteady: 67.51 GB/s before, 59.34 after",
        ""};
    static const char *const noises[] = {"wide", "wide", "", "few", "alike", "", "", ""};
    static const char *const widths[] = {"0.01", "0.005", "", "", "", "", "", ""};
    static const char *const raised[] = {"", "", "97.75", "", "", "", "", ""};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        becomes("reason", all[i], "reason", left[i]);
        becomes("reason", all[i], "noise_kind", noises[i]);
        becomes("reason", all[i], "width_wanted", widths[i]);
        becomes("reason", all[i], "limit_raised_from", raised[i]);
    }
}

static void limits(void **state)
{
    static const struct {
        const char *source, *kind, *link, *scope;
    } all[] = {
        {"measured: best loads", "outdated", "", ""},
        {"reference: best loads", "reference", "", ""},
        {"measured", "outdated", "", ""},
        {"measured by hand: reference", "told", "", ""},
        {"sysfs: reference: 100 Gb/s", "sysfs", "", ""},
        {"eth0 says 10 Gb/s", "told", "", ""},
        {"", "told", "", ""},
        {"nvml: 18 NVLinks between the two, one direction", "nvml", "nvlink", ""},
        {"sysfs: 100 Gb/s less RoCE v2 framing at MTU 4096 (98.0 %)", "sysfs", "roce", ""},
        {"PCIe 3.0 x16: 126 Gb/s, narrower than the line (sysfs: 200 Gb/s)", "told", "pcie", ""},
        {"n1's ib0: sysfs: 100 Gb/s less InfiniBand framing, the most that any algorithm gets "
         "through "
         "each node's link",
         "told", "infiniband", "node"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        char *cells = NULL;
        assert_true(asprintf(&cells, "m\"|\"12\"|\"%s", all[i].source) > 0);
        struct table t = derived("metric,limit,limit_source", cells);
        assert_string_equal(table_text(&t, 0, "limit_kind"), all[i].kind);
        assert_string_equal(table_text(&t, 0, "limit_link"), all[i].link);
        assert_string_equal(table_text(&t, 0, "limit_scope"), all[i].scope);
        table_release(&t);
        free(cells);
    }
    becomes("limit_source", "one node: no link between nodes", "limit_kind",
            ""); /* no limit, no kind */
}

static void throttling(void **state)
{
    static const char *const all[][3] = {
        {"power cap, thermal slowdown", "power cap, thermal slowdown", ""},
        {"power cap; set: sync boost", "power cap", "sync boost"},
        {"set: display clocks", "", "display clocks"},
        {"", "", ""}};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        becomes("gpu_throttle", all[i][0], "gpu_throttle", all[i][1]);
        becomes("gpu_throttle", all[i][0], "gpu_clocks_set", all[i][2]);
    }
}

/* A parameter stands before the metric, so that what is split off it does too. */
static void ways_of_copies(void **state)
{
    (void)state;
    struct table t = derived("path,metric", "peer access, rank 0, atomics\"|\"m");
    assert_string_equal(table_text(&t, 0, "path"), "peer access, rank 0");
    assert_string_equal(table_text(&t, 0, "atomics"), "native");
    assert_true(table_column(&t, "atomics") < table_column(&t, "metric"));
    table_release(&t);
    t = derived("size,metric", "1\"|\"m");
    assert_true(table_column(&t, "atomics") == TABLE_NO_COLUMN);
    table_release(&t);
}

/* A column that is there says more than a sentence. */
static void columns_stay(void **state)
{
    (void)state;
    struct table t = derived("metric,carrier,evidence", "m\"|\"rdma\"|\"own: eth0 sent 1 GB");
    assert_string_equal(table_text(&t, 0, "carrier"), "rdma");
    table_release(&t);
    t = derived("metric,carrier,evidence", "m\"|\"\"|\"own: eth0 sent 1 GB");
    assert_string_equal(table_text(&t, 0, "carrier"), "sockets");
    table_release(&t);
}

static void no_rows(void **state)
{
    struct table t = {0};

    (void)state;
    assert_int_equal(schema1_derive(&t), 0);
    assert_int_equal(t.n_columns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carriers_of_evidence),
        cmocka_unit_test(carriers_of_a_library),
        cmocka_unit_test(devices),
        cmocka_unit_test(reasons),
        cmocka_unit_test(limits),
        cmocka_unit_test(throttling),
        cmocka_unit_test(ways_of_copies),
        cmocka_unit_test(columns_stay),
        cmocka_unit_test(no_rows),
    };

    return cmocka_run_group_tests_name("schema1", tests, NULL, NULL);
}

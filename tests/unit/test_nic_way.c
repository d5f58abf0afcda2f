/* SPDX-License-Identifier: Apache-2.0 */
/* How far an RDMA device is from a GPU, on trees of /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/hw/nic.h"
#include "scratch_tree.h"

static const char nic[] = "0000:03:00.0", gpu[] = "0000:04:00.0";

/* A PCI device below these bridges; "" for the node: not told. */
static void add(const struct scratch *s, const char *address, const char *below, const char *node)
{
    char path[256], target[256];

    snprintf(path, sizeof(path), "sys/devices/%s/%s/numa_node", below, address);
    scratch_put(s, path, node);
    snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", address);
    snprintf(target, sizeof(target), "../../../devices/%s/%s", below, address);
    scratch_link(s, path, target);
}

static const char *way(const char *nic_below, const char *gpu_below, const char *gpu_node)
{
    struct scratch s;
    char target[256];

    scratch_open(&s);
    add(&s, nic, nic_below, "0\n");
    add(&s, gpu, gpu_below, gpu_node);
    snprintf(target, sizeof(target), "sys/devices/%s/%s/infiniband/mlx5_0/ports/1/state", nic_below,
             nic);
    scratch_put(&s, target, "4: ACTIVE\n");
    snprintf(target, sizeof(target), "../../devices/%s/%s/infiniband/mlx5_0", nic_below, nic);
    scratch_link(&s, "sys/class/infiniband/mlx5_0", target);
    const char *found = nic_way(s.root, "mlx5_0:1", gpu);
    scratch_close(&s);
    return found;
}

static void test_words(void **state)
{
    static const char port[] = "pci0000:00/0000:00:01.0",
                      left[] = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0",
                      right[] = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0",
                      deep[] = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:05:00.0/"
                               "0000:06:00.0",
                      other_port[] = "pci0000:00/0000:00:02.0", elsewhere[] = "pci0000:80";

    (void)state;
    assert_string_equal(way(port, port, "0\n"), "PIX");
    assert_string_equal(way(left, right, "0\n"), "PIX");
    assert_string_equal(way(left, deep, "0\n"), "PXB");
    assert_string_equal(way(left, other_port, "0\n"), "PHB");
    assert_string_equal(way(left, elsewhere, "0\n"), "NODE");
    assert_string_equal(way(left, elsewhere, "1\n"), "SYS");
    assert_string_equal(way(left, elsewhere, "-1\n"), "");
}

static void test_not_told(void **state)
{
    struct scratch s;

    (void)state;
    scratch_open(&s);
    scratch_put(&s, "sys/class/infiniband/rxe0/parent", "eth0\n");
    scratch_put(&s, "sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
    assert_string_equal(nic_way(s.root, "rxe0:1", gpu), "");
    assert_string_equal(nic_way(s.root, "mlx5_7:1", gpu), "");
    assert_string_equal(nic_way(s.root, "rxe0:1", ""), "");
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

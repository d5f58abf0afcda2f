/* SPDX-License-Identifier: Apache-2.0 */
/* Did sockets carry what an RDMA port could have? By the counters of made-up machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/path_tree.h"

static const char *sockets(struct path *p, double out, double in, bool fell_back)
{
    static struct path_wires w;

    path_wires(p, out, in, &w);
    assert_int_equal(w.fell_back, fell_back);
    return w.sockets;
}
#define SOCKETS(p, least, fell_back, text)                                                         \
    assert_string_equal(sockets(p, least, least, fell_back), text)

static void put_state(const struct scratch *s, const char *device, const char *state)
{
    char path[256];

    snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/1/state", device);
    scratch_put(s, path, state);
}

/* eth0 of another card, and a port that is up and does nothing. */
static struct path *start_idle(const struct scratch *s, const char *driver, const char *layer,
                               const char *interface)
{
    put_adapter(s, "mlx5_0", driver, layer, interface);
    put_port(s, "mlx5_0", 0, 0);
    put_state(s, "mlx5_0", "4: ACTIVE\n");
    INTERFACES(s, {"lo", 0, 0}, {"eth0", 0, 0}, {"eth1", 0, 0}, {"ib0", 0, 0});
    return begin(s);
}

/* Interfaces carried what a port could have. */
static void test_fell_back(void **state)
{
    SCRATCH(s);
    struct path *p = start_idle(&s, "mlx5_core", "InfiniBand", NULL);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 9 * GB, 9 * GB});
    SOCKETS(p, 8 * GB, true,
            "sockets of eth0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    SOCKETS(p, 1e5, false, ""); /* too few to tell */
    put_port(&s, "mlx5_0", 7e7, 7e7);
    SOCKETS(p, 8 * GB, true,
            "sockets of eth0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    put_port(&s, "mlx5_0", 9e7, 9e7); /* 1 % of the least: it had a part in it */
    SOCKETS(p, 8 * GB, false, "");
    put_port(&s, "mlx5_0", 0, 0);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 7 * GB, 9 * GB}); /* the rest went elsewhere */
    SOCKETS(p, 8 * GB, false, "");
    /* Whose shares tell no link, it was interfaces all the same. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 7 * GB, 7 * GB}, {"eth1", 2 * GB, 2 * GB});
    SOCKETS(p, 8 * GB, true,
            "sockets of eth0+eth1 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    put_state(&s, "mlx5_0", "1: DOWN\n");
    SOCKETS(p, 8 * GB, false, "");
    path_close(p);
    scratch_close(&s);
}

/* A card's own interface; and a driver of which nobody knows where its data are counted. */
static void test_fell_back_on_card(void **state)
{
    SCRATCH(s);
    struct path *p = start_idle(&s, "mlx5_core", "Ethernet", "eth0");
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 9 * GB, 9 * GB});
    SOCKETS(p, 8 * GB, true,
            "sockets of eth0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    path_close(p);
    scratch_close(&s);
    scratch_open(&s);
    p = start_idle(&s, "bnxt_re", "Ethernet", "eth0");
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 9 * GB, 9 * GB});
    SOCKETS(p, 8 * GB, false, "");
    INTERFACES(&s, {"lo", 0, 0}, {"eth1", 9 * GB, 9 * GB}); /* which is not its interface */
    SOCKETS(p, 8 * GB, true,
            "sockets of eth1 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    path_close(p);
    scratch_close(&s);
}

/* IPoIB: the port counts its bytes and their headers. */
static void test_fell_back_to_ipoib(void **state)
{
    SCRATCH(s);
    struct path *p = start_idle(&s, "mlx5_core", "InfiniBand", "ib0");
    INTERFACES(&s, {"lo", 0, 0}, {"ib0", 9 * GB, 9 * GB});
    put_port(&s, "mlx5_0", 9.5 * GB, 9.5 * GB);
    SOCKETS(p, 8 * GB, true,
            "sockets of ib0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    INTERFACES(&s, {"lo", 0, 0}, {"ib0", 7.2 * GB, 7.2 * GB}); /* less than what must have gone */
    put_port(&s, "mlx5_0", 7.9 * GB, 7.9 * GB);
    SOCKETS(p, 8 * GB, false, "");
    INTERFACES(&s, {"lo", 0, 0}, {"ib0", 9 * GB, 9 * GB});
    put_port(&s, "mlx5_0", 17 * GB, 17 * GB); /* as many by RDMA beside it */
    SOCKETS(p, 8 * GB, false, "");
    path_close(p);
    scratch_close(&s);
}

/* Devices in software are no ports that one falls back from; nor is it sockets where one sent packets. */
static void test_software_ports(void **state)
{
    SCRATCH(s);
    put_rxe(&s, 0, 0);
    put_state(&s, "rxe0", "4: ACTIVE\n");
    struct path *p = start_idle(&s, "mlx5_core", "InfiniBand", NULL);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 9 * GB, 9 * GB});
    put_rxe(&s, 2.2e6, 2.2e6);
    SOCKETS(p, 8 * GB, false, "");
    put_rxe(&s, 10, 10);
    SOCKETS(p, 8 * GB, true,
            "sockets of eth0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    put_state(&s, "mlx5_0", "1: DOWN\n");
    SOCKETS(p, 8 * GB, false, "");
    path_close(p);
    scratch_close(&s);
}

/* RDMA over a slower line is nothing to fall back from; that it was not taken is said all the same. */
static void test_slower_port(void **state)
{
    SCRATCH(s);
    struct path *p = start_idle(&s, "mlx5_core", "InfiniBand", NULL);
    scratch_put(&s, "sys/devices/pci0000:00/0000:3b:00.0/infiniband/mlx5_0/ports/1/rate",
                "40 Gb/sec (4X QDR)\n");
    put_speed(&s, "eth0", "01:00.0", "mlx5_core", "100000\n");
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 9 * GB, 9 * GB});
    SOCKETS(p, 8 * GB, false,
            "sockets of eth0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up, which is "
            "slower");
    scratch_put(&s, "sys/devices/pci0000:00/0000:01:00.0/net/eth0/speed", "25000\n");
    SOCKETS(p, 8 * GB, true,
            "sockets of eth0 carried the bytes (18 GB), not RDMA, though mlx5_0:1 is up");
    path_close(p);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fell_back),          cmocka_unit_test(test_fell_back_on_card),
        cmocka_unit_test(test_fell_back_to_ipoib), cmocka_unit_test(test_software_ports),
        cmocka_unit_test(test_slower_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

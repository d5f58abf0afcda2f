/* SPDX-License-Identifier: Apache-2.0 */
/* Proof of the path on a busy machine, and by packets: what proves nothing, and what accuses nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/path_tree.h"

/* What a busy machine moves beside hides where the claim went: nothing is proved, nobody accused. */
static void test_busy(void **state)
{
    struct path_claim claim = {.device = "eth0", .out_bytes = 100e6};
    SCRATCH(s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0}, {"eth1", 0, 0}, {"eth2", 0, 0});
    struct path *p = begin(&s);
    /* Others' 2 GB on the claimed device, ours on another one. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 2e9}, {"eth1", 0, 105e6}, {"eth2", 0, 0});
    END(p, PATH_UNKNOWN,
        "eth0 moved 2 GB, but eth1 105 MB the same way: either may have carried 100 MB; "
        "eth1 4.99 %",
        claim);
    /* The very amount, and much more on another one. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 105e6}, {"eth1", 0, 500e6}, {"eth2", 0, 0});
    END(p, PATH_UNKNOWN,
        "eth0 moved 105 MB, but eth1 500 MB the same way: either may have carried 100 MB; "
        "eth1 82.6 %",
        claim);
    /* Two others, half of it each. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 105e6}, {"eth1", 0, 50e6}, {"eth2", 0, 51e6});
    END(p, PATH_UNKNOWN,
        "eth0 moved 105 MB, but eth2 51 MB the same way: either may have carried 100 MB; "
        "eth1 24.3 %; eth2 24.8 %",
        claim);
    /* Nothing is seen on another one; but the claim would not be missed. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 215e6}, {"eth1", 0, 0}, {"eth2", 0, 0});
    END(p, PATH_UNKNOWN, "eth0 moved 215 MB, in which 100 MB do not stand out", claim);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 195e6}, {"eth1", 0, 85e6}, {"eth2", 0, 0});
    END(p, PATH_PROVED, "eth0 sent 195 MB, 69.6 % of the bytes; eth1 30.4 %", claim);
    /* One way of two: there the kernel may have taken the other device. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 105e6, 105e6}, {"eth1", 0, 105e6}, {"eth2", 0, 0});
    claim.in_bytes = 100e6;
    END(p, PATH_UNKNOWN,
        "eth0 moved 105 MB, but eth1 105 MB the same way: either may have carried 100 MB; "
        "eth1 33.3 %",
        claim);
    /* But not a way that is next to nothing of it. */
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 1e6, 105e6}, {"eth1", 5e6, 0}, {"eth2", 0, 0});
    claim.in_bytes = 80e3;
    END(p, PATH_PROVED, "eth0 sent 105 MB, received 1 MB, 95.5 % of the bytes; eth1 4.5 %", claim);
    path_close(p);
    scratch_close(&s);
}

/* A counter that lags, or lacks what hardware moved, is no accusation where others move more than what is missing. */
static void test_missing_among_others(void **state)
{
    struct path_claim claim = {.device = "eth0", .out_bytes = 100e6};
    SCRATCH(s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 85e6}, {"eth1", 0, 2e9});
    END(p, PATH_UNKNOWN,
        "eth0 moved 85 MB of 100 MB; what is missing may be among the 2 GB of others; eth1 95.9 %",
        claim);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0}, {"eth1", 0, 135e6});
    END(p, PATH_UNKNOWN,
        "eth0 moved 0 B of 100 MB; what is missing may be among the 135 MB of others; eth1 100 %",
        claim);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 85e6}, {"eth1", 0, 16e6});
    END(p, PATH_ELSEWHERE, "eth0 moved 85 MB of 100 MB, eth1 moved 16 MB; eth1 15.8 %", claim);
    /* lo has every byte of both ends as sent and as received. */
    INTERFACES(&s, {"lo", 210e6, 210e6}, {"eth0", 0, 0}, {"eth1", 0, 0});
    claim.in_bytes = 100e6;
    END(p, PATH_ELSEWHERE, "eth0 moved 0 B of 200 MB, lo moved 420 MB; lo 100 %", claim);
    claim.device[0] = 0;
    strcpy(claim.device, "lo");
    END(p, PATH_PROVED, "lo sent 210 MB, received 210 MB, 100 % of the bytes", claim);
    path_close(p);
    scratch_close(&s);
}

/* Small messages are few bytes, but a packet each. */
static void test_packets(void **state)
{
    struct path_claim claim = {.device = "eth0",
                               .out_bytes = 80e3,
                               .in_bytes = 80e3,
                               .message_bytes = 8,
                               .mtu_bytes = 1500,
                               .out_messages = 10000,
                               .in_messages = 10000};
    SCRATCH(s);
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 0, 0, 0});
    struct path *p = begin(&s);
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 74e4, 74e4, 10000, 10100}, {"eth1", 0, 0, 0, 0});
    END(p, PATH_PROVED, "eth0 sent 10100 packets, received 10000 packets, 100 % of the packets",
        claim);
    /* Each acknowledged by a packet of its own. */
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 14e5, 14e5, 20000, 20000}, {"eth1", 0, 0, 0, 0});
    END(p, PATH_PROVED, "eth0 sent 20000 packets, received 20000 packets, 100 % of the packets",
        claim);
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 0, 0, 0, 0}, {"eth1", 74e4, 74e4, 10000, 10000});
    END(p, PATH_ELSEWHERE,
        "eth0 moved 0 packets of 20000 packets, eth1 moved 20000 packets; eth1 100 %", claim);
    /* Both ends on one machine: lo has each of them twice. */
    TRAFFIC(&s, {"lo", 14e5, 14e5, 20000, 20000}, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 0, 0, 0});
    END(p, PATH_ELSEWHERE,
        "eth0 moved 0 packets of 20000 packets, lo moved 40000 packets; lo 100 %", claim);
    strcpy(claim.device, "lo");
    END(p, PATH_PROVED, "lo sent 20000 packets, received 20000 packets, 100 % of the packets",
        claim);
    strcpy(claim.device, "eth0");
    /* A busy machine: nothing proved, nobody accused. */
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 0, 0, 0, 0}, {"eth1", 1e8, 1e8, 90000, 90000});
    END(p, PATH_UNKNOWN,
        "eth0 moved 0 packets of 20000 packets; what is missing may be among the 180000 packets of "
        "others; eth1 100 %",
        claim);
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 1e8, 1e8, 40000, 40000}, {"eth1", 0, 0, 0, 0});
    END(p, PATH_UNKNOWN, "eth0 moved 80000 packets, in which 20000 packets do not stand out",
        claim);
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 74e4, 74e4, 10000, 10000}, {"eth1", 0, 1e6, 0, 12000});
    END(p, PATH_UNKNOWN,
        "eth0 moved 10000 packets, but eth1 12000 packets the same way: either may have carried "
        "10000 packets; eth1 40.3 %",
        claim);
    /* A device without counters is not accused for so little. */
    strcpy(claim.device, "gone0");
    TRAFFIC(&s, {"lo", 0, 0, 0, 0}, {"eth0", 0, 0, 0, 0}, {"eth1", 74e4, 74e4, 10000, 10000});
    END(p, PATH_UNKNOWN, "gone0 has no counters here; eth1 100 %", claim);
    path_close(p);
    scratch_close(&s);
}

/* Where packets say nothing: none told, too few of them, or messages of many packets. */
static void test_packets_not_told(void **state)
{
    struct path_claim claim = {
        .device = "eth0", .out_bytes = 80e3, .message_bytes = 8, .mtu_bytes = 1500};
    SCRATCH(s);
    TRAFFIC(&s, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 0, 0, 0});
    struct path *p = begin(&s);
    TRAFFIC(&s, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 74e4, 0, 10000});
    END(p, PATH_UNKNOWN, "80 kB are too few to tell; eth1 100 %", claim);
    claim.out_messages = 900;
    END(p, PATH_UNKNOWN, "80 kB are too few to tell; eth1 100 %", claim);
    /* 20,000 messages of 64 KiB: their packets are many more. */
    claim = (struct path_claim){.device = "eth0",
                                .out_bytes = 20000 * 65536.0,
                                .message_bytes = 65536,
                                .mtu_bytes = 1500,
                                .out_messages = 20000};
    TRAFFIC(&s, {"eth0", 0, 3 * GB, 0, 30000}, {"eth1", 0, 1.4 * GB, 0, 1000});
    END(p, PATH_UNKNOWN,
        "eth0 moved 3 GB, but eth1 1.4 GB the same way: either may have carried 1.31 GB; eth1 31.8 "
        "%",
        claim);
    path_close(p);
    scratch_close(&s);
}

/* Bytes that leave it open, packets that tell: small RDMA messages, of 64 bytes. */
static void test_packets_of_rdma(void **state)
{
    struct path_claim claim = {.device = "mlx5_0:1",
                               .out_bytes = 64e6,
                               .message_bytes = 64,
                               .mtu_bytes = 4096,
                               .out_messages = 1e6};
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "Ethernet", "eth0");
    put_port(&s, "mlx5_0", 0, 0);
    TRAFFIC(&s, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 0, 0, 0});
    struct path *p = begin(&s);
    /* Somebody's bulk data beside: many bytes, few packets. */
    put_port(&s, "mlx5_0", 0, 120e6);
    put_count(&s, "mlx5_0", "counters/port_xmit_packets", 1e6);
    TRAFFIC(&s, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 90e6, 0, floor(90e6 / 1500)});
    END(p, PATH_PROVED, "mlx5_0:1 sent 1000000 packets, 94.3 % of the packets; eth1 42.9 %", claim);
    put_port(&s, "mlx5_0", 0, 0);
    TRAFFIC(&s, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 130e6, 0, 1e6});
    END(p, PATH_ELSEWHERE,
        "mlx5_0:1 moved 0 packets of 1000000 packets, eth1 moved 1000000 packets; eth1 100 %",
        claim);
    /* Packets do not stand for bytes that are missing. */
    put_port(&s, "mlx5_0", 0, 30e6);
    put_count(&s, "mlx5_0", "counters/port_xmit_packets", 1e6);
    TRAFFIC(&s, {"eth0", 0, 0, 0, 0}, {"eth1", 0, 0, 0, 0});
    END(p, PATH_UNKNOWN, "mlx5_0:1 moved 30 MB of 64 MB, and no other device the rest", claim);
    path_close(p);
    scratch_close(&s);
}

/* An InfiniBand port's packets are less IPoIB's. */
static void test_packets_of_infiniband(void **state)
{
    struct path_claim claim = {.device = "mlx5_0:1",
                               .out_bytes = 64e3,
                               .message_bytes = 64,
                               .mtu_bytes = 4096,
                               .out_messages = 1000};
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "InfiniBand", "ib0");
    put_port(&s, "mlx5_0", 0, 0);
    TRAFFIC(&s, {"ib0", 0, 0, 0, 0});
    struct path *p = begin(&s);
    put_count(&s, "mlx5_0", "counters/port_xmit_packets", 2000);
    TRAFFIC(&s, {"ib0", 0, 140e3, 0, 900});
    END(p, PATH_UNKNOWN,
        "mlx5_0:1 moved 1100 packets, but ib0 900 packets the same way: either may have carried "
        "1000 packets; ib0 100 %",
        claim);
    TRAFFIC(&s, {"ib0", 0, 140e3, 0, 1500});
    END(p, PATH_UNKNOWN,
        "mlx5_0:1 moved 500 packets of 1000 packets; what is missing may be among the 1500 packets "
        "of others; ib0 100 %",
        claim);
    path_close(p);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_missing_among_others),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_packets_not_told),
        cmocka_unit_test(test_packets_of_rdma),
        cmocka_unit_test(test_packets_of_infiniband),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

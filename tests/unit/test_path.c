/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof of the path, on made-up machines: what their counters say before and after, what is claimed, and the verdict. Also once on
 * the machine that the test runs on.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/hw/path.h"
#include "tests/unit/path_tree.h"

static void test_proved(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"lo", 5 * GB, 5 * GB}, {"eth0", 7 * GB, 9 * GB}, {"eth1", 1, 2});
    struct path *p = begin(&s);
    INTERFACES(&s, {"lo", 5 * GB, 5 * GB}, {"eth0", 7.2 * GB, 21.9 * GB}, {"eth1", 1, 2});
    END(p, PATH_PROVED, "eth0 sent 12.9 GB, 100 % of the bytes",
        {.device = "eth0", .out_bytes = 12.4 * GB});
    /* Others are named, and not held against it: less than the claim, or the other way. */
    INTERFACES(&s, {"lo", 6 * GB, 6 * GB}, {"eth0", 7.2 * GB, 21.9 * GB},
               {"eth1", 50 * GB, 10 * GB});
    END(p, PATH_PROVED, "eth0 sent 12.9 GB, 54 % of the bytes; lo 4.18 %; eth1 41.8 %",
        {.device = "eth0", .out_bytes = 12.4 * GB});
    /* Both ways. */
    INTERFACES(&s, {"lo", 6 * GB, 6 * GB}, {"eth0", 20 * GB, 21.9 * GB}, {"eth1", 1, 8 * GB});
    END(p, PATH_PROVED,
        "eth0 sent 12.9 GB, received 13 GB, 72.1 % of the bytes; lo 5.57 %; eth1 22.3 %",
        {.device = "eth0", .out_bytes = 12.4 * GB, .in_bytes = 12.4 * GB});
    path_close(p);
    scratch_close(&s);
}

static void test_elsewhere(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 2e6}, {"eth1", 0, 12.9 * GB});
    END(p, PATH_ELSEWHERE, "eth0 moved 2 MB of 12.4 GB, eth1 moved 12.9 GB; eth1 100 %",
        {.device = "eth0", .out_bytes = 12.4 * GB});
    /* The other way round nothing was moved: what another device sent does not stand for what was to come in. */
    END(p, PATH_UNKNOWN, "eth0 moved 0 B of 12.4 GB, and no other device the rest",
        {.device = "eth0", .in_bytes = 12.4 * GB});
    /* An address of this machine itself: the kernel takes lo. */
    INTERFACES(&s, {"lo", 13 * GB, 13 * GB}, {"eth0", 0, 2e6}, {"eth1", 0, 0});
    END(p, PATH_ELSEWHERE, "eth0 moved 2 MB of 12.4 GB, lo moved 13 GB; lo 100 %",
        {.device = "eth0", .out_bytes = 12.4 * GB});
    path_close(p);
    scratch_close(&s);
}

/* What a library sends at the least: others may have moved any more, where the claimed device moved next to nothing. */
static void test_elsewhere_at_least(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 0, 2e6}, {"eth1", 0, 40 * GB});
    END(p, PATH_UNKNOWN,
        "eth0 moved 2 MB of 10 GB; what is missing may be among the 40 GB of others; eth1 100 %",
        {.device = "eth0", .out_bytes = 10 * GB});
    END(p, PATH_ELSEWHERE, "eth0 moved 2 MB of 10 GB, eth1 moved 40 GB; eth1 100 %",
        {.device = "eth0", .out_bytes = 10 * GB, .at_least = true});
    INTERFACES(&s, {"eth0", 0, 2 * GB}, {"eth1", 0, 40 * GB});
    END(p, PATH_UNKNOWN,
        "eth0 moved 2 GB of 10 GB; what is missing may be among the 40 GB of others; eth1 95.2 %",
        {.device = "eth0", .out_bytes = 10 * GB, .at_least = true});
    path_close(p);
    scratch_close(&s);
}

static void test_partly_missing(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    /* A counter that is 1 % short proves; 5 % short beside other traffic is not proof, and no accusation. */
    INTERFACES(&s, {"eth0", 0, 9.9 * GB}, {"eth1", 0, 0});
    END(p, PATH_PROVED, "eth0 sent 9.9 GB, 100 % of the bytes",
        {.device = "eth0", .out_bytes = 10 * GB});
    INTERFACES(&s, {"eth0", 0, 9.5 * GB}, {"eth1", 0, 1 * GB});
    END(p, PATH_UNKNOWN, "eth0 moved 9.5 GB of 10 GB, and no other device the rest; eth1 9.52 %",
        {.device = "eth0", .out_bytes = 10 * GB});
    /* Half of it on the other one. */
    INTERFACES(&s, {"eth0", 0, 5 * GB}, {"eth1", 0, 5 * GB});
    END(p, PATH_ELSEWHERE, "eth0 moved 5 GB of 10 GB, eth1 moved 5 GB; eth1 50 %",
        {.device = "eth0", .out_bytes = 10 * GB});
    INTERFACES(&s, {"eth0", 0, 5 * GB}, {"eth1", 0, 1 * GB});
    END(p, PATH_UNKNOWN, "eth0 moved 5 GB of 10 GB, and no other device the rest; eth1 16.7 %",
        {.device = "eth0", .out_bytes = 10 * GB});
    path_close(p);
    scratch_close(&s);
}

/* Two addresses in one network: the kernel sends all by one of them. */
static void test_rails(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 0, 5.1 * GB}, {"eth1", 0, 5.1 * GB});
    END(p, PATH_PROVED, "eth0 sent 5.1 GB, 50 % of the bytes; eth1 sent 5.1 GB, 50 % of the bytes",
        {.device = "eth0", .out_bytes = 5 * GB}, {.device = "eth1", .out_bytes = 5 * GB});
    /* Claims on one device are added up. */
    END(p, PATH_ELSEWHERE, "eth0 moved 5.1 GB of 10 GB, eth1 moved 5.1 GB; eth1 50 %",
        {.device = "eth0", .out_bytes = 5 * GB}, {.device = "eth0", .out_bytes = 5 * GB});
    /* What was to go by one rail went by the other one, beside that one's own. */
    INTERFACES(&s, {"eth0", 0, 10.46 * GB}, {"eth1", 0, 2e3});
    END(p, PATH_ELSEWHERE,
        "eth0 moved 10.5 GB, in which 5 GB do not stand out; eth1 moved 2 kB of 5 GB, eth0 moved "
        "10.5 GB",
        {.device = "eth0", .out_bytes = 5 * GB}, {.device = "eth1", .out_bytes = 5 * GB});
    /* A third of it did. */
    INTERFACES(&s, {"eth0", 0, 15.6 * GB}, {"eth1", 0, 5.2 * GB});
    END(p, PATH_ELSEWHERE,
        "eth0 sent 15.6 GB, 75 % of the bytes; eth1 moved 5.2 GB of 10 GB, eth0 moved 15.6 GB",
        {.device = "eth0", .out_bytes = 10 * GB}, {.device = "eth1", .out_bytes = 10 * GB});
    /* What is missing is no more than the other one's headers may be. */
    INTERFACES(&s, {"eth0", 0, 10.46 * GB}, {"eth1", 0, 3.5 * GB});
    END(p, PATH_UNKNOWN,
        "eth0 sent 10.5 GB, 74.9 % of the bytes; eth1 moved 3.5 GB of 4 GB, and no other device "
        "the rest",
        {.device = "eth0", .out_bytes = 10 * GB}, {.device = "eth1", .out_bytes = 4 * GB});
    path_close(p);
    scratch_close(&s);
}

static void test_too_little(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 1e9});
    END(p, PATH_UNKNOWN, "800 kB are too few to tell; eth1 100 %",
        {.device = "eth0", .out_bytes = 8e5, .message_bytes = 8});
    /* A busy interface: 10 MB more or less are not seen. */
    INTERFACES(&s, {"eth0", 0, 90e9}, {"eth1", 0, 0});
    END(p, PATH_UNKNOWN, "eth0 moved 90 GB, in which 10 MB do not stand out",
        {.device = "eth0", .out_bytes = 1e7, .message_bytes = 65536});
    /* But messages of a byte take ninety times their bytes. */
    INTERFACES(&s, {"eth0", 0, 0.9e9}, {"eth1", 0, 0});
    END(p, PATH_PROVED, "eth0 sent 900 MB, 100 % of the bytes",
        {.device = "eth0", .out_bytes = 1e7, .message_bytes = 1});
    end(p, NULL, 0, PATH_UNKNOWN, "nothing is claimed");
    path_close(p);
    scratch_close(&s);
}

static void test_shared_memory(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"lo", 0, 0}, {"eth0", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"lo", 4e6, 4e6}, {"eth0", 0, 0});
    END(p, PATH_PROVED, "shared memory: of 10 GB all devices together moved 0.04 %; lo 100 %",
        {.device = "shm", .out_bytes = 10 * GB});
    INTERFACES(&s, {"lo", 11 * GB, 11 * GB}, {"eth0", 0, 0});
    END(p, PATH_UNKNOWN, "shared memory; lo moved 11 GB meanwhile; lo 100 %",
        {.device = "", .out_bytes = 10 * GB});
    path_close(p);
    scratch_close(&s);
}

/* What is below and above an interface moves the same bytes. */
static void test_stacked(void **state)
{
    SCRATCH(s);
    put_lower(&s, "bond0", "eth0");
    put_lower(&s, "bond0", "eth1");
    put_lower(&s, "vlan7", "bond0");
    put_lower(&s, "br9", "eth9");
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0}, {"bond0", 0, 0}, {"vlan7", 0, 0}, {"eth9", 0, 0},
               {"br9", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 0, 5 * GB}, {"eth1", 0, 5 * GB}, {"bond0", 0, 10 * GB},
               {"vlan7", 0, 10 * GB}, {"eth9", 0, 5 * GB}, {"br9", 0, 5 * GB});
    END(p, PATH_PROVED, "vlan7 sent 10 GB, 66.7 % of the bytes; eth9 33.3 %",
        {.device = "vlan7", .out_bytes = 10 * GB});
    END(p, PATH_UNKNOWN,
        "eth1 moved 5 GB, but eth0 5 GB the same way: either may have carried 5 GB; eth0 33.3 %; "
        "eth9 33.3 %",
        {.device = "eth1", .out_bytes = 5 * GB});
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0}, {"bond0", 0, 0}, {"vlan7", 0, 0},
               {"eth9", 0, 10 * GB}, {"br9", 0, 10 * GB});
    END(p, PATH_ELSEWHERE, "vlan7 moved 0 B of 10 GB, eth9 moved 10 GB; eth9 100 %",
        {.device = "vlan7", .out_bytes = 10 * GB});
    path_close(p);
    scratch_close(&s);
}

/* RoCE on hardware is counted by the port, in units of four bytes, and not by the interface. */
static void test_roce(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "Ethernet", "eth0");
    put_port(&s, "mlx5_0", 100 * GB, 400 * GB);
    INTERFACES(&s, {"eth0", 0, 0});
    struct path *p = begin(&s);
    put_port(&s, "mlx5_0", 101 * GB, 412.9 * GB);
    END(p, PATH_PROVED, "mlx5_0:1 sent 12.9 GB, 100 % of the bytes",
        {.device = "mlx5_0:1", .out_bytes = 12.4 * GB});
    END(p, PATH_PROVED, "mlx5_0:1 sent 12.9 GB, 100 % of the bytes",
        {.device = "mlx5_0", .out_bytes = 12.4 * GB});
    /* Asked for RDMA; it went by sockets over the same card. */
    put_port(&s, "mlx5_0", 100 * GB, 400 * GB);
    INTERFACES(&s, {"eth0", 0, 12.9 * GB});
    END(p, PATH_ELSEWHERE, "mlx5_0:1 moved 0 B of 12.4 GB, eth0 moved 12.9 GB; eth0 100 %",
        {.device = "mlx5_0:1", .out_bytes = 12.4 * GB});
    /* Asked for sockets; it went by RDMA. */
    put_port(&s, "mlx5_0", 100 * GB, 412.9 * GB);
    INTERFACES(&s, {"eth0", 0, 0});
    END(p, PATH_ELSEWHERE, "eth0 moved 0 B of 12.4 GB, mlx5_0:1 moved 12.9 GB; mlx5_0:1 100 %",
        {.device = "eth0", .out_bytes = 12.4 * GB});
    path_close(p);
    scratch_close(&s);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int signal)
{
    (void)signal;
    alarms++;
}

/* hw_counters of 12 ms are old for two jiffies of 10 ms and what is left of the one they were read in, whatever
 * signals come meanwhile. */
static void test_old_counters_are_waited_for(void **state)
{
    const struct itimerval often = {.it_interval = {.tv_usec = 3000},
                                    .it_value = {.tv_usec = 3000}};
    const struct sigaction act = {.sa_handler = count_alarm};
    struct sigaction before;
    struct counters c;

    (void)state;
    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0});
    put_rxe(&s, 5, 7);
    put_count(&s, "rxe0", "hw_counters/lifespan", 12);
    sigaction(SIGALRM, &act, &before);
    for (int signals = 0; signals < 2; signals++) {
        if (signals)
            setitimer(ITIMER_REAL, &often, NULL);
        uint64_t begin_ns = clock_now_ns();
        assert_int_equal(counters_read(&c, s.root), 0);
        uint64_t took_ns = clock_now_ns() - begin_ns;
        counters_free(&c);
        if (took_ns < 29500000) /* the two clocks differ a little */
            fail_msg("%g ms, %d signals", (double)took_ns / 1e6, (int)alarms);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_true(alarms > 0);
    scratch_close(&s);
}

/* Of a driver of which nobody knows whether its interface counts RDMA, its interface is no witness. */
static void test_roce_of_unknown_counters(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "irdma0", "irdma", "Ethernet", "eth0");
    put_count(&s, "irdma0", "hw_counters/ip4InOctets", 5);
    put_count(&s, "irdma0", "hw_counters/ip4OutOctets", 7);
    put_count(&s, "irdma0", "hw_counters/ip6InOctets", 5);
    put_count(&s, "irdma0", "hw_counters/ip6OutOctets", 7);
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 0, 12.9 * GB}, {"eth1", 0, 0});
    END(p, PATH_UNKNOWN,
        "irdma0:1 moved 0 B of 12.4 GB: nobody knows what irdma counts; eth0 100 %",
        {.device = "irdma0:1", .out_bytes = 12.4 * GB});
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 12.9 * GB});
    END(p, PATH_ELSEWHERE, "irdma0:1 moved 0 B of 12.4 GB, eth1 moved 12.9 GB; eth1 100 %",
        {.device = "irdma0:1", .out_bytes = 12.4 * GB});
    /* Both of its counters are one sum. */
    put_count(&s, "irdma0", "hw_counters/ip4OutOctets", 6.5e9);
    put_count(&s, "irdma0", "hw_counters/ip6OutOctets", 6.5e9);
    INTERFACES(&s, {"eth0", 0, 12.9 * GB}, {"eth1", 0, 0});
    END(p, PATH_PROVED, "irdma0:1 sent 13 GB, 50.2 % of the bytes; eth0 49.8 %",
        {.device = "irdma0:1", .out_bytes = 12.4 * GB});
    /* Nor is the port one against its interface. */
    END(p, PATH_PROVED, "eth0 sent 12.9 GB, 49.8 % of the bytes; irdma0:1 50.2 %",
        {.device = "eth0", .out_bytes = 12.4 * GB});
    path_close(p);
    scratch_close(&s);
}

/* An InfiniBand port counts IPoIB, too. */
static void test_infiniband(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "mlx5_0", "mlx5_core", "InfiniBand", "ib0");
    put_port(&s, "mlx5_0", 0, 0);
    INTERFACES(&s, {"ib0", 0, 0});
    struct path *p = begin(&s);
    put_port(&s, "mlx5_0", 0, 12.9 * GB);
    END(p, PATH_PROVED, "mlx5_0:1 sent 12.9 GB, 100 % of the bytes",
        {.device = "mlx5_0:1", .out_bytes = 12.4 * GB});
    INTERFACES(&s, {"ib0", 0, 12.8 * GB});
    END(p, PATH_ELSEWHERE, "mlx5_0:1 moved 100 MB of 12.4 GB, ib0 moved 12.8 GB; ib0 99.2 %",
        {.device = "mlx5_0:1", .out_bytes = 12.4 * GB});
    END(p, PATH_PROVED, "ib0 sent 12.8 GB, 100 % of the bytes",
        {.device = "ib0", .out_bytes = 12.4 * GB});
    path_close(p);
    scratch_close(&s);
}

/* Soft-RoCE counts packets; its interface carries them. */
static void test_rxe(void **state)
{
    struct path_claim claim = {
        .device = "rxe0:1", .out_bytes = 4.096 * GB, .message_bytes = 8192, .mtu_bytes = 4096};
    SCRATCH(s);
    put_rxe(&s, 10, 20);
    INTERFACES(&s, {"eth0", 0, 0}, {"lo", 0, 0});
    struct path *p = begin(&s);
    put_rxe(&s, 100000, 1000020);
    INTERFACES(&s, {"eth0", 0, 4.18 * GB}, {"lo", 0, 0});
    END(p, PATH_PROVED, "rxe0:1 over eth0 sent 4.18 GB, 100 % of the bytes", claim);
    /* Between two queue pairs of one device nothing is on the interface. */
    INTERFACES(&s, {"eth0", 0, 0}, {"lo", 0, 0});
    END(p, PATH_PROVED, "rxe0:1 over eth0 sent 4.1 GB, 100 % of the bytes", claim);
    /* The same bytes without its packets went by sockets. */
    put_rxe(&s, 10, 1000);
    INTERFACES(&s, {"eth0", 0, 4.18 * GB}, {"lo", 0, 0});
    END(p, PATH_ELSEWHERE, "rxe0:1 moved 4.01 MB of 4.1 GB, eth0 moved 4.18 GB", claim);
    INTERFACES(&s, {"eth0", 0, 0}, {"lo", 4.18 * GB, 4.18 * GB});
    END(p, PATH_ELSEWHERE, "rxe0:1 moved 4.01 MB of 4.1 GB, lo moved 4.18 GB; lo 99.9 %", claim);
    /* Packets of messages shorter than the MTU carry less. */
    put_rxe(&s, 10, 1000020);
    INTERFACES(&s, {"eth0", 0, 0}, {"lo", 0, 0});
    claim.message_bytes = 1024;
    END(p, PATH_UNKNOWN, "rxe0:1 moved 1.02 GB of 4.1 GB, and no other device the rest", claim);
    path_close(p);
    scratch_close(&s);
}

/* A guest's siw may not say over which interface it sends: then lo's bytes are no proof against it. */
static void test_siw_of_no_interface(void **state)
{
    SCRATCH(s);
    scratch_put(&s, "sys/class/infiniband/siw0/node_type", "4: RNIC\n");
    scratch_put(&s, "sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n");
    scratch_put(&s, "sys/class/infiniband/siw0/ports/1/state", "4: ACTIVE\n");
    INTERFACES(&s, {"eth0", 0, 0}, {"lo", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 0, 0}, {"lo", 4.2 * GB, 4.2 * GB});
    END(p, PATH_UNKNOWN, "siw0:1 has no counters here, its interface is not known; lo 100 %",
        {.device = "siw0:1", .out_bytes = 4 * GB});
    path_close(p);
    scratch_close(&s);
}

/* siw counts nothing; what it sends is TCP over its interface. */
static void test_siw(void **state)
{
    SCRATCH(s);
    scratch_put(&s, "sys/class/infiniband/siw0/node_type", "4: RNIC\n");
    scratch_put(&s, "sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n");
    scratch_put(&s, "sys/class/infiniband/siw0/ports/1/gid_attrs/ndevs/0", "eth0\n");
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0}, {"lo", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"eth0", 0, 4.2 * GB}, {"eth1", 0, 0}, {"lo", 0, 0});
    END(p, PATH_PROVED, "siw0:1 over eth0 sent 4.2 GB, 100 % of the bytes",
        {.device = "siw0:1", .out_bytes = 4 * GB});
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 4.2 * GB}, {"lo", 0, 0});
    END(p, PATH_ELSEWHERE, "siw0:1 moved 0 B of 4 GB, eth1 moved 4.2 GB; eth1 100 %",
        {.device = "siw0:1", .out_bytes = 4 * GB});
    /* Both ends on one machine: TCP goes over lo. */
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0}, {"lo", 4.2 * GB, 4.2 * GB});
    END(p, PATH_PROVED, "siw0:1 over lo sent 4.2 GB, 100 % of the bytes",
        {.device = "siw0:1", .out_bytes = 4 * GB});
    /* What else is on lo does not count for it. */
    INTERFACES(&s, {"eth0", 0, 5 * GB}, {"eth1", 0, 0}, {"lo", 3 * GB, 3 * GB});
    END(p, PATH_PROVED, "siw0:1 over eth0 sent 5 GB, 62.5 % of the bytes; lo 37.5 %",
        {.device = "siw0:1", .out_bytes = 4 * GB});
    INTERFACES(&s, {"eth0", 0, 5 * GB}, {"eth1", 0, 0}, {"lo", 5 * GB, 5 * GB});
    END(p, PATH_UNKNOWN,
        "siw0:1 moved 5 GB, but lo 5 GB the same way: either may have carried 4 GB; lo 50 %",
        {.device = "siw0:1", .out_bytes = 4 * GB});
    INTERFACES(&s, {"eth0", 0, 0}, {"eth1", 0, 0}, {"lo", 2 * GB, 2 * GB});
    END(p, PATH_UNKNOWN, "siw0:1 moved 0 B of 4 GB, and no other device the rest; lo 100 %",
        {.device = "siw0:1", .out_bytes = 4 * GB});
    path_close(p);
    scratch_close(&s);
}

/* A guest's PVRDMA counts nothing, and its files say so instead of numbers. */
static void test_hidden(void **state)
{
    SCRATCH(s);
    put_adapter(&s, "vmw_pvrdma0", "vmw_pvrdma", "Ethernet", "ens192");
    scratch_put(&s, "sys/class/infiniband/vmw_pvrdma0/ports/1/counters/port_xmit_data",
                "N/A (no PMA)\n");
    scratch_put(&s, "sys/class/infiniband/vmw_pvrdma0/ports/1/counters/port_rcv_data",
                "N/A (no PMA)\n");
    INTERFACES(&s, {"ens192", 0, 0});
    struct path *p = begin(&s);
    END(p, PATH_UNKNOWN, "vmw_pvrdma0:1 has no counters here",
        {.device = "vmw_pvrdma0:1", .out_bytes = 4 * GB});
    /* The very amount over the interface: it was sockets. Far more: somebody else's. */
    INTERFACES(&s, {"ens192", 0, 4.2 * GB});
    END(p, PATH_ELSEWHERE, "vmw_pvrdma0:1 has no counters here, ens192 moved 4.2 GB; ens192 100 %",
        {.device = "vmw_pvrdma0:1", .out_bytes = 4 * GB});
    INTERFACES(&s, {"ens192", 0, 40 * GB});
    END(p, PATH_UNKNOWN, "vmw_pvrdma0:1 has no counters here; ens192 100 %",
        {.device = "vmw_pvrdma0:1", .out_bytes = 4 * GB});
    END(p, PATH_UNKNOWN, "gone0 has no counters here; ens192 100 %",
        {.device = "gone0", .out_bytes = 4 * GB});
    path_close(p);
    scratch_close(&s);
}

static struct counter port_at(uint64_t out)
{
    return (struct counter){.port = true, .has_data = true, .unit = 4, .data = {out, 0}};
}

static void test_wraps(void **state)
{
    struct counter a = port_at(4294967290u), b = port_at(10);
    struct moved m = counters_moved(&a, &b);

    (void)state;
    assert_true(m.known && m.at_least && m.bytes[COUNTER_OUT] == 16 * 4);
    a = port_at(100); /* one that stops at its end */
    b = port_at(4294967295u);
    m = counters_moved(&a, &b);
    assert_true(m.known && m.at_least && m.bytes[COUNTER_OUT] == 4294967195.0 * 4);
    a = port_at(1ull << 40);
    b = port_at((1ull << 40) + 5);
    m = counters_moved(&a, &b);
    assert_true(m.known && !m.at_least && !m.narrow && m.bytes[COUNTER_OUT] == 20);
    m = counters_moved(&b, &a); /* 64 bits do not go round: set back */
    assert_false(m.known);
    assert_false(counters_moved(NULL, &a).known);
}

/* A port of 32 bits goes round every 17 GB: packets tell, or nothing does. */
static void test_narrow_port(void **state)
{
    struct path_claim claim = {
        .device = "mthca0:1", .out_bytes = 100 * GB, .message_bytes = 65536, .mtu_bytes = 2048};
    SCRATCH(s);
    put_adapter(&s, "mthca0", "ib_mthca", "InfiniBand", NULL);
    put_port(&s, "mthca0", 0, 5 * GB);
    put_count(&s, "mthca0", "counters/port_xmit_packets", 0);
    INTERFACES(&s, {"eth0", 0, 0});
    struct path *p = begin(&s);
    put_port(&s, "mthca0", 0, 9 * GB);
    put_count(&s, "mthca0", "counters/port_xmit_packets", ceil(100 * GB / 2048));
    END(p, PATH_PROVED, "mthca0:1 sent 100 GB, 100 % of the bytes", claim);
    put_port(&s, "mthca0", 0, 1 * GB);
    put_count(&s, "mthca0", "counters/port_xmit_packets", 0);
    INTERFACES(&s, {"eth0", 0, 100 * GB});
    END(p, PATH_UNKNOWN,
        "mthca0:1 moved 13.2 GB of 100 GB: its counter of 32 bits came to its end; eth0 88.4 %",
        claim);
    path_close(p);
    scratch_close(&s);
}

/* All at once, as a kernel does: nobody reads half of a file. */
static void *count_late(void *arg)
{
    const struct scratch *s = arg;
    struct scratch later;
    char from[128], to[128];

    scratch_open(&later);
    INTERFACES(&later, {"eth0", 0, 13 * GB});
    snprintf(from, sizeof(from), "%s/proc/net/dev", later.root);
    snprintf(to, sizeof(to), "%s/proc/net/dev", s->root);
    usleep(300000);
    if (rename(from, to))
        abort();
    scratch_close(&later);
    return NULL;
}

/* A driver that brings its counters up to date a moment late is waited for. */
static void test_late_counters(void **state)
{
    struct path_proof proof;
    struct path_claim claim = {.device = "eth0", .out_bytes = 12 * GB};
    struct path *p;
    pthread_t thread;

    SCRATCH(s);
    INTERFACES(&s, {"eth0", 0, 0});
    assert_int_equal(path_begin_at(&p, s.root, 20000000000u), 0);
    uint64_t begin_ns = clock_now_ns();
    assert_int_equal(pthread_create(&thread, NULL, count_late, &s), 0);
    path_end(p, &claim, 1, &proof);
    pthread_join(thread, NULL);
    assert_int_equal(proof.verdict, PATH_PROVED);
    assert_true(clock_now_ns() - begin_ns < 19000000000u);
    path_close(p);
    scratch_close(&s);
}

static void test_nothing_readable(void **state)
{
    SCRATCH(s);
    struct path *p = begin(&s);
    END(p, PATH_UNKNOWN, "eth0 has no counters here", {.device = "eth0", .out_bytes = GB});
    path_close(p);
    path_close(NULL);
    scratch_close(&s);
}

enum { MESSAGE = 32768, MESSAGES = 2048 };

static struct path_proof send_over_lo(int fd, const struct sockaddr_in *to)
{
    static char buffer[MESSAGE];
    struct path_claim claim = {.device = "lo", .out_bytes = (double)MESSAGE * MESSAGES};
    struct path_proof proof;
    struct path *p;

    assert_int_equal(path_begin(&p), 0);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(sendto(fd, buffer, MESSAGE, 0, (const struct sockaddr *)to, sizeof(*to)),
                         MESSAGE);
    path_end(p, &claim, 1, &proof);
    path_close(p);
    return proof;
}

/* 64 MiB over lo, by UDP to nobody in particular, with the kernel's own counters. Beside other traffic nothing is
 * proved: then once more. */
static void test_this_machine(void **state)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(to);
    struct path_proof proof;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), tries = 50;

    (void)state;
    if (access("/proc/net/dev", R_OK) || fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) ||
        getsockname(fd, (struct sockaddr *)&to, &len))
        skip();
    do {
        proof = send_over_lo(fd, &to);
        assert_int_not_equal(proof.verdict, PATH_ELSEWHERE);
    } while (proof.verdict != PATH_PROVED && --tries);
    close(fd);
    assert_int_equal(proof.verdict, PATH_PROVED);
    assert_ptr_equal(strstr(proof.text, "lo sent "), proof.text);
}

static void tell(struct path *p, const char *text)
{
    struct path_proof proof;

    path_tell(p, &proof);
    assert_string_equal(proof.text, text);
    assert_int_equal(proof.verdict, PATH_UNKNOWN);
}

/* Nobody can say which device should have carried anything: what moved most is told, and no more. */
static void test_tell(void **state)
{
    SCRATCH(s);
    INTERFACES(&s, {"lo", 1, 1}, {"eth0", 1 * GB, 2 * GB}, {"eth1", 0, 0}, {"eth2", 0, 0},
               {"eth3", 0, 0});
    struct path *p = begin(&s);
    tell(p, "lo 0 B; eth0 0 B; eth1 0 B");
    INTERFACES(&s, {"lo", 1, 1}, {"eth0", 2 * GB, 3.2 * GB}, {"eth1", 1e6, 0}, {"eth2", 0, 0},
               {"eth3", 0, 0});
    tell(p, "eth0 sent 1.2 GB, received 1 GB; lo 0 B");
    INTERFACES(&s, {"lo", 7 * GB, 7 * GB}, {"eth0", 2 * GB, 3.2 * GB}, {"eth1", 1 * GB, 0},
               {"eth2", 0, 0.5 * GB}, {"eth3", 0, 0});
    tell(p, "lo sent 7 GB, received 7 GB; eth0 sent 1.2 GB, received 1 GB; "
            "eth1 sent 0 B, received 1 GB");
    path_close(p);
    scratch_close(&s);
}

/* A bridge moves what the interface below it does: one of them is told. */
static void test_tell_stacked(void **state)
{
    SCRATCH(s);
    put_lower(&s, "br0", "eth0");
    INTERFACES(&s, {"br0", 0, 0}, {"eth0", 0, 0});
    struct path *p = begin(&s);
    INTERFACES(&s, {"br0", 1 * GB, 1 * GB}, {"eth0", 1 * GB, 1 * GB});
    tell(p, "eth0 sent 1 GB, received 1 GB");
    path_close(p);
    scratch_close(&s);
}

static void test_tell_nothing(void **state)
{
    SCRATCH(s);
    struct path *p = begin(&s);
    tell(p, "no device's counters can be read");
    path_close(p);
    scratch_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proved),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_elsewhere_at_least),
        cmocka_unit_test(test_partly_missing),
        cmocka_unit_test(test_rails),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_stacked),
        cmocka_unit_test(test_roce),
        cmocka_unit_test(test_old_counters_are_waited_for),
        cmocka_unit_test(test_roce_of_unknown_counters),
        cmocka_unit_test(test_infiniband),
        cmocka_unit_test(test_rxe),
        cmocka_unit_test(test_siw),
        cmocka_unit_test(test_siw_of_no_interface),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_wraps),
        cmocka_unit_test(test_narrow_port),
        cmocka_unit_test(test_late_counters),
        cmocka_unit_test(test_nothing_readable),
        cmocka_unit_test(test_tell),
        cmocka_unit_test(test_tell_stacked),
        cmocka_unit_test(test_tell_nothing),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Proof of the path, on made-up machines: what their counters say before and after, what is claimed, and the verdict;
 * and which links carried a library's bytes. Also once on the machine that the test runs on. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "core/clock.h"
#include "core/hw/path.h"
#include "tests/unit/path_tree.h"
#include "tests/unit/unit.h"

#define N(list) (sizeof(list) / sizeof(*(list)))

/* "eth0 IN OUT, mlx5_0:1 IN OUT, rxe0 PACKETS PACKETS": what they count. */
static void count(const struct scratch *s, const char *text)
{
    struct interface list[16] = {0};
    char names[16][64];
    size_t n = 0;

    for (; text && *text; text += strcspn(text, ","), text += strspn(text, ", ")) {
        double in, out;
        assert_int_equal(sscanf(text, "%63s %lf %lf", names[n], &in, &out), 3);
        char *colon = strchr(names[n], ':');
        if (!strcmp(names[n], "rxe0")) {
            put_rxe(s, in, out);
        } else if (colon) {
            *colon = 0;
            put_port(s, names[n], in, out);
        } else {
            list[n] = (struct interface){names[n], in, out};
            n++;
        }
    }
    put_interfaces(s, list);
}

/* ---- machines */

static void put_stack(const struct scratch *s)
{
    put_lower(s, "bond0", "eth0");
    put_lower(s, "bond0", "eth1");
    put_lower(s, "vlan7", "bond0");
    put_lower(s, "br9", "eth9");
}

static void put_state(const struct scratch *s, const char *state)
{
    scratch_put(s, "sys/class/infiniband/mlx5_0/ports/1/state", state);
}

static void put_mlx5(const struct scratch *s)
{
    put_adapter(s, "mlx5_0", "mlx5_core", "Ethernet", "eth0");
    put_state(s, "4: ACTIVE\n");
}

static void put_bnxt(const struct scratch *s)
{
    put_adapter(s, "mlx5_0", "bnxt_re", "Ethernet", "eth0");
    put_state(s, "4: ACTIVE\n");
}

static void put_infiniband(const struct scratch *s)
{
    put_adapter(s, "mlx5_0", "mlx5_core", "InfiniBand", "ib0");
    put_state(s, "4: ACTIVE\n");
}

/* Both of its counters are one sum. */
static void put_irdma(const struct scratch *s)
{
    static const char *const files[] = {"ip4InOctets", "ip4OutOctets", "ip6InOctets",
                                        "ip6OutOctets"};
    char path[64];

    put_adapter(s, "irdma0", "irdma", "Ethernet", "eth0");
    for (size_t i = 0; i < N(files); i++) {
        snprintf(path, sizeof(path), "hw_counters/%s", files[i]);
        put_count(s, "irdma0", path, 5);
    }
}

static void grow_irdma(const struct scratch *s)
{
    put_count(s, "irdma0", "hw_counters/ip4OutOctets", 6.5e9);
    put_count(s, "irdma0", "hw_counters/ip6OutOctets", 6.5e9);
}

static void put_siw(const struct scratch *s)
{
    scratch_put(s, "sys/class/infiniband/siw0/node_type", "4: RNIC\n");
    scratch_put(s, "sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n");
    scratch_put(s, "sys/class/infiniband/siw0/ports/1/state", "4: ACTIVE\n");
    scratch_put(s, "sys/class/infiniband/siw0/ports/1/gid_attrs/ndevs/0", "eth0\n");
}

/* A guest's PVRDMA counts nothing, and its files say so instead of numbers. */
static void put_pvrdma(const struct scratch *s)
{
    put_adapter(s, "vmw_pvrdma0", "vmw_pvrdma", "Ethernet", "ens192");
    scratch_put(s, "sys/class/infiniband/vmw_pvrdma0/ports/1/counters/port_xmit_data",
                "N/A (no PMA)\n");
}

static void put_mthca(const struct scratch *s)
{
    put_adapter(s, "mthca0", "ib_mthca", "InfiniBand", NULL);
}

/* ---- claims, and the verdict */

enum { S = CARRIER_SOCKETS, R = CARRIER_RDMA, L = CARRIER_LOOPBACK, M = CARRIER_SHARED_MEMORY };

static const struct step {
    void (*put)(const struct scratch *s);
    const char *before; /* another machine, with these counters */
    const char *now;    /* NULL: as they were */
    struct path_claim claims[2];
    enum path_verdict verdict;
    unsigned carriers; /* of the first claim that is proved */
    const char *says;  /* a number or name in it */
} steps[] = {
#define SCENE(machine, counters)                                                                   \
    {                                                                                              \
        .put = machine, .before = counters                                                         \
    }
#define STEP(counters, the_verdict, carrier, words, ...)                                           \
    {                                                                                              \
        .now = counters, .verdict = PATH_##the_verdict, .carriers = carrier, .says = words,        \
        .claims = {                                                                                \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define OUT(name, bytes)                                                                           \
    {                                                                                              \
        .device = name, .out_bytes = bytes                                                         \
    }
#define WAYS(name, out, in)                                                                        \
    {                                                                                              \
        .device = name, .out_bytes = out, .in_bytes = in                                           \
    }
    SCENE(NULL, "lo 5e9 5e9, eth0 7e9 9e9, eth1 1 2"),
    STEP("lo 5e9 5e9, eth0 7.2e9 21.9e9, eth1 1 2", PROVED, S, "100 %", OUT("eth0", 12.4e9)),
    /* Others are named, and not held against it: less than half of it, or the other way. */
    STEP("lo 6e9 6e9, eth0 7.2e9 21.9e9, eth1 50e9 5e9", PROVED, S, "lo 5.29 %; eth1 26.5 %",
         OUT("eth0", 12.4e9)),
    STEP("lo 6e9 6e9, eth0 20e9 21.9e9, eth1 1 5e9", PROVED, S, "12.9 GB, received 13 GB",
         WAYS("eth0", 12.4e9, 12.4e9)),
    /* Elsewhere; what another device sent does not stand for what was to come in. */
    SCENE(NULL, "lo 0 0, eth0 0 0, eth1 0 0"),
    STEP("lo 0 0, eth0 0 2e6, eth1 0 12.9e9", ELSEWHERE, 0, "eth1 moved 12.9 GB",
         OUT("eth0", 12.4e9)),
    STEP(NULL, UNKNOWN, 0, "12.4 GB", WAYS("eth0", 0, 12.4e9)),
    STEP("lo 13e9 13e9, eth0 0 2e6, eth1 0 0", ELSEWHERE, 0, "lo moved 13 GB", OUT("eth0", 12.4e9)),
    /* One way of two is enough, but not one that is next to nothing of it, or less than a megabyte. */
    STEP("lo 0 0, eth0 0 105e6, eth1 105e6 0", ELSEWHERE, 0, "eth1 moved 105 MB",
         WAYS("eth0", 100e6, 100e6)),
    STEP("lo 0 0, eth0 105e6 105e6, eth1 0 105e6", UNKNOWN, 0, "33.3 %",
         WAYS("eth0", 100e6, 100e6)),
    STEP("lo 0 0, eth0 0 1050e6, eth1 50e6 0", PROVED, S, "95.5 %", WAYS("eth0", 1000e6, 50e6)),
    STEP("lo 0 0, eth0 0 5e6, eth1 1e6 0", PROVED, S, "83.3 %", WAYS("eth0", 4e6, 900e3)),
    /* The limits: 98 % of it, 2.1 times as much, half of it by others. */
    STEP("lo 0 0, eth0 0 9.801e9, eth1 0 4.99e9", PROVED, S, "9.8 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 9.79e9, eth1 0 0", UNKNOWN, 0, "9.79 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 20.9e9, eth1 0 4.99e9", PROVED, S, "20.9 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 21.1e9, eth1 0 0", UNKNOWN, 0, "21.1 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 10e9, eth1 0 5.01e9", UNKNOWN, 0, "5.01 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 4.99e9, eth1 0 9.801e9", ELSEWHERE, 0, "9.8 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 4.99e9, eth1 0 20.9e9", ELSEWHERE, 0, "20.9 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 4.99e9, eth1 0 9.79e9", UNKNOWN, 0, "9.79 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 4.99e9, eth1 0 21.1e9", UNKNOWN, 0, "21.1 GB", OUT("eth0", 10e9)),
    STEP("lo 0 0, eth0 0 5.01e9, eth1 0 10e9", UNKNOWN, 0, "5.01 GB", OUT("eth0", 10e9)),
    /* Of others it is the sum. */
    STEP("lo 3e9 3e9, eth0 0 10e9, eth1 0 3e9", UNKNOWN, 0, "6 GB", OUT("eth0", 10e9)),
    STEP("lo 4e9 4e9, eth0 0 0, eth1 0 6e9", ELSEWHERE, 0, "eth1 moved 6 GB", OUT("eth0", 10e9)),
    /* Two rails; claims on one device are added up. */
    STEP("lo 0 0, eth0 0 5.1e9, eth1 0 5.1e9", PROVED, S, "50 %", OUT("eth0", 5e9),
         OUT("eth1", 5e9)),
    STEP(NULL, UNKNOWN, 0, "eth1", OUT("eth0", 5e9), OUT("eth0", 5e9)),
    STEP("lo 0 0, eth0 0 10.2e9, eth1 0 1e9", PROVED, S, "91.1 %", OUT("eth0", 5e9),
         OUT("eth0", 5e9)),
    /* What was to go by one rail went by the other one, beside that one's own; a third of it did. */
    STEP("lo 0 0, eth0 0 10.46e9, eth1 0 2e3", ELSEWHERE, S, "eth0 moved 5.46 GB", OUT("eth0", 5e9),
         OUT("eth1", 5e9)),
    STEP("lo 0 0, eth0 0 15.6e9, eth1 0 5.2e9", UNKNOWN, S, "eth1 moved 5.2 GB", OUT("eth0", 10e9),
         OUT("eth1", 10e9)),
    STEP("lo 0 0, eth0 0 14.6e9, eth1 0 2e3", ELSEWHERE, S, "eth0 moved 4.6 GB", OUT("eth0", 10e9),
         OUT("eth1", 4e9)),
    /* Not what is no more than the other one's headers. */
    STEP("lo 0 0, eth0 0 10.46e9, eth1 0 0", UNKNOWN, S, "eth1 moved 0 B", OUT("eth0", 10e9),
         OUT("eth1", 0.4e9)),
    /* Too little to tell. */
    STEP("lo 0 0, eth0 0 0, eth1 0 1e9", UNKNOWN, 0, "999 kB", OUT("eth0", 999e3)),
    STEP(NULL, ELSEWHERE, 0, NULL, OUT("eth0", 1e9)),
    STEP("lo 9e6 9e6, eth0 740e3 740e3, eth1 0 1e9", UNKNOWN, 0, "740 kB",
         WAYS("eth0", 80e3, 80e3)),
    STEP(NULL, UNKNOWN, 0, NULL, OUT("eth0", 0)),
    /* Shared memory goes through none. */
    STEP("lo 4e6 4e6, eth0 0 0, eth1 0 0", PROVED, M, "0.04 %", OUT("shm", 10e9)),
    STEP("lo 11e9 11e9, eth0 0 0, eth1 0 0", UNKNOWN, 0, "11 GB", OUT("", 10e9)),
    /* lo has every byte of both ends as sent and as received. */
    STEP("lo 210e6 210e6, eth0 0 0, eth1 0 0", ELSEWHERE, 0, "lo moved 105 MB",
         WAYS("eth0", 100e6, 100e6)),
    STEP(NULL, PROVED, L, "100 %", WAYS("lo", 100e6, 100e6)),
    STEP(NULL, PROVED, L, "210 MB", OUT("lo", 200e6)),
    STEP(NULL, UNKNOWN, 0, "210 MB", OUT("lo", 90e6)),
    /* What is below and above an interface moves the same bytes. */
    SCENE(put_stack, "eth0 0 0, eth1 0 0, bond0 0 0, vlan7 0 0, eth9 0 0, br9 0 0"),
    STEP("eth0 0 5e9, eth1 0 5e9, bond0 0 10e9, vlan7 0 10e9, eth9 0 4e9, br9 0 4e9", PROVED, S,
         "71.4 %", OUT("vlan7", 10e9)),
    STEP(NULL, UNKNOWN, 0, "eth0 35.7 %", OUT("eth1", 5e9)),
    STEP("eth0 0 0, eth1 0 0, bond0 0 0, vlan7 0 0, eth9 0 10e9, br9 0 10e9", ELSEWHERE, 0,
         "eth9 moved 10 GB", OUT("vlan7", 10e9)),
    /* RoCE on hardware is counted by the port, in units of four bytes, and not by the interface. */
    SCENE(put_mlx5, "eth0 0 0, mlx5_0:1 100e9 400e9"),
    STEP("eth0 0 0, mlx5_0:1 101e9 412.9e9", PROVED, R, "12.9 GB", OUT("mlx5_0:1", 12.4e9)),
    STEP(NULL, PROVED, R, "12.9 GB", OUT("mlx5_0", 12.4e9)),
    STEP(NULL, ELSEWHERE, 0, "mlx5_0:1 moved 12.9 GB", OUT("eth0", 12.4e9)),
    STEP("eth0 0 12.9e9, mlx5_0:1 100e9 400e9", ELSEWHERE, 0, "eth0 moved 12.9 GB",
         OUT("mlx5_0:1", 12.4e9)),
    /* Of a driver of which nobody knows whether its interface counts RDMA, its interface is no witness, nor is the
     * port one against its interface. */
    SCENE(put_irdma, "eth0 0 0, eth1 0 0"),
    STEP("eth0 0 12.9e9, eth1 0 0", UNKNOWN, 0, "irdma", OUT("irdma0:1", 12.4e9)),
    STEP("eth0 0 0, eth1 0 12.9e9", ELSEWHERE, 0, "eth1 moved 12.9 GB", OUT("irdma0:1", 12.4e9)),
    {.put = grow_irdma,
     .now = "eth0 0 12.9e9, eth1 0 0",
     .verdict = PATH_PROVED,
     .carriers = R,
     .says = "100 %",
     .claims = {OUT("irdma0:1", 12.4e9)}},
    STEP(NULL, PROVED, S, "100 %", OUT("eth0", 12.4e9)),
    /* An InfiniBand port counts IPoIB, too. */
    SCENE(put_infiniband, "ib0 0 0, mlx5_0:1 0 0"),
    STEP("ib0 0 0, mlx5_0:1 0 12.9e9", PROVED, R, "100 %", OUT("mlx5_0:1", 12.4e9)),
    STEP("ib0 0 12.8e9, mlx5_0:1 0 12.9e9", ELSEWHERE, 0, "99.2 %", OUT("mlx5_0:1", 12.4e9)),
    STEP(NULL, PROVED, S, "100 %", OUT("ib0", 12.4e9)),
    STEP("ib0 0 4e9, mlx5_0:1 0 16.9e9", PROVED, R, "76.3 %", OUT("mlx5_0:1", 12.4e9)),
    /* Software and a guest's PVRDMA count no bytes, whatever others moved; nor does what is not there. */
    SCENE(NULL, "eth0 0 0, lo 0 0, rxe0 10 20"),
    STEP("eth0 0 4.18e9, lo 0 0, rxe0 100000 1000020", UNKNOWN, 0, "rxe0:1", OUT("rxe0:1", 4e9)),
    STEP("eth0 0 0, lo 4.18e9 4.18e9, rxe0 10 20", UNKNOWN, 0, "rxe0:1", OUT("rxe0:1", 4e9)),
    SCENE(put_siw, "eth0 0 0, lo 0 0"),
    STEP("eth0 0 4.2e9, lo 0 0", UNKNOWN, 0, "siw0:1", OUT("siw0:1", 4e9)),
    SCENE(put_pvrdma, "ens192 0 0"),
    STEP("ens192 0 4.2e9", UNKNOWN, 0, "vmw_pvrdma0:1", OUT("vmw_pvrdma0:1", 4e9)),
    STEP(NULL, UNKNOWN, 0, "gone0", OUT("gone0", 4e9)),
    STEP(NULL, ELSEWHERE, 0, "ens192 moved 4.2 GB", OUT(PATH_NOWHERE, 4e9)),
    /* Claimed together: however they share it, and nothing of it elsewhere. */
    SCENE(NULL, "eth0 0 0, eth1 0 0, eth2 0 0"),
    STEP("eth0 9e9 6e9, eth1 1e9 4e9, eth2 0 0", PROVED, S, "10 GB", WAYS("eth0+eth1", 9e9, 9e9)),
    STEP("eth0 10e9 10e9, eth1 0 0, eth2 0 0", PROVED, S, "10 GB", WAYS("eth0+eth1", 9e9, 9e9)),
    STEP("eth0 2e8 2e8, eth1 2e8 2e8, eth2 12e9 12e9", ELSEWHERE, 0, "12 GB",
         WAYS("eth0+eth1", 9e9, 9e9)),
    STEP("eth0 4e9 4e9, eth1 4e9 4e9, eth2 0 0", UNKNOWN, 0, "8 GB", WAYS("eth0+eth1", 9e9, 9e9)),
};

static void check_step(struct path *p, const struct step *step)
{
    struct path_proof proof;
    size_t n = 0;

    while (n < 2 &&
           path_sum((const double[]){step->claims[n].out_bytes, step->claims[n].in_bytes}) > 0)
        n++;
    path_end(p, step->claims, n, &proof);
    if (proof.verdict != step->verdict || proof.carriers != step->carriers ||
        (step->says && !strstr(proof.text, step->says)))
        fail_msg("step %td: verdict %d, carriers %u: \"%s\"", step - steps, (int)proof.verdict,
                 proof.carriers, proof.text);
}

TEST(test_verdicts)
{
    struct scratch s;
    struct path *p = NULL;

    for (const struct step *step = steps; step < steps + N(steps); step++) {
        if (step->before && p) {
            path_close(p);
            scratch_close(&s);
        }
        if (step->before)
            scratch_open(&s);
        if (step->put)
            step->put(&s);
        if (step->before) {
            count(&s, step->before);
            p = begin(&s);
            continue;
        }
        if (step->now)
            count(&s, step->now);
        check_step(p, step);
    }
    path_close(p);
    scratch_close(&s);
}

/* ---- the links that carried the bytes, and whether they were sockets beside an RDMA port that is up */

static void put_bond(const struct scratch *s)
{
    put_lower(s, "bond0", "eth0");
    put_lower(s, "bond0", "eth1");
}

static void put_down(const struct scratch *s)
{
    put_state(s, "1: DOWN\n");
}

static void put_slow(const struct scratch *s)
{
    put_state(s, "4: ACTIVE\n");
    scratch_put(s, "sys/class/infiniband/mlx5_0/ports/1/rate", "40 Gb/sec (4X QDR)\n");
    put_speed(s, "eth0", "01:00.0", "mlx5_core", "100000\n");
}

static void put_fast(const struct scratch *s)
{
    scratch_put(s, "sys/devices/pci0000:00/0000:01:00.0/net/eth0/speed", "25000\n");
}

static const struct link {
    void (*put)(const struct scratch *s);
    const char *before, *now;
    double out, in;
    const char *devices;  /* "eth0+eth1"; "": not sure */
    const char *why;      /* a number in the reason of that */
    const char *carriers; /* the interfaces, where they were sockets though a port is up */
    bool fell_back;       /* and no such port is slower */
} links[] = {
#define BEFORE(machine, counters)                                                                  \
    {                                                                                              \
        .put = machine, .before = counters                                                         \
    }
#define LINKS(counters, out_least, in_least, names)                                                \
    {                                                                                              \
        .now = counters, .out = out_least, .in = in_least, .devices = names, .carriers = ""        \
    }
#define UNSURE(counters, out_least, in_least, number)                                              \
    {                                                                                              \
        .now = counters, .out = out_least, .in = in_least, .devices = "", .why = number,           \
        .carriers = ""                                                                             \
    }
#define SOCKETS(machine, counters, least, names, fell)                                             \
    {                                                                                              \
        .put = machine, .now = counters, .out = least, .in = least, .carriers = names,             \
        .fell_back = fell                                                                          \
    }
    /* lo is within the machine, and little beside it is nothing: 0.5 % of a way that counts. */
    BEFORE(NULL, "lo 0 0, eth0 5e9 1e9, eth1 0 0"),
    LINKS("lo 90e9 90e9, eth0 17.4e9 13.5e9, eth1 5e7 5e7", 12e9, 12e9, "eth0"),
    UNSURE("lo 0 0, eth0 17e9 13e9, eth1 7e7 0", 11e9, 11e9, "0.58 %"),
    LINKS(NULL, 11e9, 0, "eth0"),
    UNSURE(NULL, 4e5, 5e5, "900 kB"),
    /* What counters do not show went where nobody sees it, or stayed within the machine. */
    BEFORE(NULL, "lo 0 0, eth0 0 0"),
    UNSURE("lo 0 0, eth0 1e8 1e8", 2e9, 2e9, "200 MB"),
    UNSURE("lo 3e9 3e9, eth0 1e8 1e8", 2e9, 2e9, "lo 6 GB"),
    UNSURE("lo 0 0, eth0 1e8 9e9", 2e9, 2e9, "9.1 GB"),
    /* Several have at least half of an equal share each, the same ones both ways. */
    BEFORE(NULL, "eth0 0 0, eth1 0 0, eth2 0 0, eth3 0 0"),
    LINKS("eth0 6e9 6e9, eth1 4e9 4e9, eth2 1e6 1e6", 9e9, 9e9, "eth0+eth1"),
    UNSURE("eth0 8e9 8e9, eth1 2e9 2e9, eth2 1e6 1e6", 9e9, 9e9, "80 %"),
    UNSURE("eth0 0 9e9, eth1 9e9 0, eth2 0 0", 9e9, 9e9, "100 %"),
    /* Three links that are each nothing, but not together. */
    UNSURE("eth0 10e9 10e9, eth1 4e7 4e7, eth2 4e7 4e7, eth3 4e7 4e7", 9e9, 9e9, "98.8 %"),
    /* An interface and its RDMA port are one link, called by what carried more. */
    BEFORE(put_mlx5, "lo 0 0, eth0 0 0, mlx5_0:1 0 0"),
    LINKS("lo 0 0, eth0 2e9 2e9, mlx5_0:1 9e9 9e9", 10e9, 10e9, "mlx5_0:1"),
    LINKS("lo 0 0, eth0 9e9 9e9, mlx5_0:1 2e9 2e9", 10e9, 10e9, "eth0"),
    /* Of a driver that may count the same bytes twice they are not added. */
    BEFORE(put_bnxt, "lo 0 0, eth0 0 0, mlx5_0:1 0 0"),
    LINKS("lo 0 0, eth0 6e9 6e9, mlx5_0:1 6e9 6e9", 5e9, 5e9, "mlx5_0:1"),
    UNSURE(NULL, 10e9, 10e9, "12 GB"),
    /* IPoIB's bytes are among its port's, which is called by the one that moved more of them; soft-RoCE's are among
     * its interface's. */
    BEFORE(put_infiniband, "ib0 0 0, eth0 0 0, mlx5_0:1 0 0, rxe0 0 0"),
    LINKS("ib0 8e9 8e9, eth0 0 0, mlx5_0:1 9e9 9e9", 8e9, 8e9, "ib0"),
    UNSURE(NULL, 10e9, 10e9, "18 GB"),
    LINKS("ib0 4e9 4e9, eth0 0 0, mlx5_0:1 9e9 9e9", 8e9, 8e9, "mlx5_0:1"),
    LINKS("ib0 0 0, eth0 9e9 9e9, mlx5_0:1 0 0, rxe0 9e6 9e6", 8e9, 8e9, "eth0"),
    /* A bond's bytes are those of the links below it. */
    BEFORE(put_bond, "bond0 0 0, eth0 0 0, eth1 0 0"),
    LINKS("bond0 8e9 8e9, eth0 8e9 8e9, eth1 0 0", 8e9, 8e9, "eth0"),
    LINKS("bond0 8e9 8e9, eth0 4e9 4e9, eth1 4e9 4e9", 8e9, 8e9, "eth0+eth1"),
    /* An adapter of 32 bits whose counter came to its end may have moved any more. */
    BEFORE(put_mthca, "lo 0 0, mthca0:1 0 0"),
    UNSURE("lo 0 0, mthca0:1 17179869180 17179869180", 8e9, 8e9, "0 B"),
    /* Sockets carried what a port could have, unless it had 1 % in it, or the rest went elsewhere. */
    BEFORE(put_infiniband, "lo 0 0, eth0 0 0, eth1 0 0, mlx5_0:1 0 0"),
    SOCKETS(NULL, "lo 0 0, eth0 9e9 9e9, mlx5_0:1 0 0", 8e9, "eth0", true),
    SOCKETS(NULL, NULL, 1e5, "", false), /* too few to tell */
    SOCKETS(NULL, "lo 0 0, eth0 9e9 9e9, mlx5_0:1 7e7 7e7", 8e9, "eth0", true),
    SOCKETS(NULL, "lo 0 0, eth0 9e9 9e9, mlx5_0:1 9e7 9e7", 8e9, "", false),
    SOCKETS(NULL, "lo 0 0, eth0 7e9 9e9, mlx5_0:1 0 0", 8e9, "", false),
    SOCKETS(NULL, "lo 0 0, eth0 7e9 7e9, eth1 2e9 2e9", 8e9, "eth0+eth1", true),
    SOCKETS(put_down, NULL, 8e9, "", false),
    /* RDMA over a slower line is nothing to fall back from; that it was not taken is said all the same. */
    SOCKETS(put_slow, "lo 0 0, eth0 9e9 9e9", 8e9, "eth0", false),
    SOCKETS(put_fast, NULL, 8e9, "eth0", true),
    /* A driver of which nobody knows where its data are counted may have its own in the interface. */
    BEFORE(put_bnxt, "lo 0 0, eth0 0 0, eth1 0 0, mlx5_0:1 0 0"),
    SOCKETS(NULL, "lo 0 0, eth0 9e9 9e9", 8e9, "", false),
    SOCKETS(NULL, "lo 0 0, eth1 9e9 9e9", 8e9, "eth1", true),
    /* IPoIB: the port counts its bytes and their headers; but less than what must have gone, or as many by RDMA. */
    BEFORE(put_infiniband, "lo 0 0, ib0 0 0, eth0 0 0, mlx5_0:1 0 0, rxe0 0 0"),
    SOCKETS(NULL, "lo 0 0, ib0 9e9 9e9, mlx5_0:1 9.5e9 9.5e9", 8e9, "ib0", true),
    SOCKETS(NULL, "lo 0 0, ib0 7.2e9 7.2e9, mlx5_0:1 7.9e9 7.9e9", 8e9, "", false),
    SOCKETS(NULL, "lo 0 0, ib0 9e9 9e9, mlx5_0:1 17e9 17e9", 8e9, "", false),
    /* It may have been a device in software on that interface. */
    SOCKETS(NULL, "lo 0 0, eth0 9e9 9e9, mlx5_0:1 0 0, rxe0 10 10", 8e9, "", false),
};

static void check_link(struct path *p, const struct link *l)
{
    struct path_wires w;
    char devices[256] = "";

    path_wires(p, l->out, l->in, &w);
    for (unsigned i = 0; i < w.n; i++)
        snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices), "%s%s", i ? "+" : "",
                 w.devices[i]);
    if ((l->devices && strcmp(devices, l->devices) != 0) || (l->why && !strstr(w.why, l->why)) ||
        (l->carriers[0] || !l->devices
             ? strcmp(w.carriers, l->carriers) != 0 || w.fell_back != l->fell_back
             : false))
        fail_msg("link %td: \"%s\" %s; sockets \"%s\"", l - links, devices, w.why, w.carriers);
}

TEST(test_links)
{
    struct scratch s;
    struct path *p = NULL;

    for (const struct link *l = links; l < links + N(links); l++) {
        if (l->before && p) {
            path_close(p);
            scratch_close(&s);
        }
        if (l->before)
            scratch_open(&s);
        if (l->put)
            l->put(&s);
        if (l->before || l->now)
            count(&s, l->before ? l->before : l->now);
        if (l->before)
            p = begin(&s);
        else
            check_link(p, l);
    }
    path_close(p);
    scratch_close(&s);
}

/* ---- counters */

static volatile sig_atomic_t alarms;

static void count_alarm(int signal)
{
    (void)signal;
    alarms++;
}

/* hw_counters of 12 ms are old for two jiffies of 10 ms and what is left of the one they were read in, whatever
 * signals come meanwhile. */
TEST(test_old_counters_are_waited_for)
{
    const struct itimerval often = {.it_interval = {.tv_usec = 3000},
                                    .it_value = {.tv_usec = 3000}};
    const struct sigaction act = {.sa_handler = count_alarm};
    struct sigaction before;
    SCRATCH(s);
    put_irdma(&s);
    put_count(&s, "irdma0", "hw_counters/lifespan", 12);
    sigaction(SIGALRM, &act, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    uint64_t begin_ns = clock_now_ns();
    struct counters c = counters_read(s.root);
    assert_true(clock_now_ns() - begin_ns >= 29500000); /* the two clocks differ a little */
    counters_free(&c);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_true(alarms > 0);
    scratch_close(&s);
}

static struct counter port_at(uint64_t out)
{
    return (struct counter){.known = true, .unit = 4, .data = {out, 0}};
}

TEST(test_wraps)
{
    struct counter a = port_at(4294967290u), b = port_at(10);

    assert_false(counters_moved(&a, &b).known);
    a = port_at(100); /* one that stops at its end */
    b = port_at(4294967295u);
    assert_false(counters_moved(&a, &b).known);
    a = port_at(1ull << 40);
    b = port_at((1ull << 40) + 5);
    assert_true(counters_moved(&a, &b).known && counters_moved(&a, &b).bytes[COUNTER_OUT] == 20);
    assert_false(counters_moved(&b, &a).known);
    assert_false(counters_moved(NULL, &a).known);
}

/* All at once, as a kernel does: nobody reads half of a file. */
static void *count_late(void *arg)
{
    const struct scratch *s = arg;
    struct scratch later;
    char from[128], to[128];

    scratch_open(&later);
    count(&later, "eth0 0 13e9");
    snprintf(from, sizeof(from), "%s/proc/net/dev", later.root);
    snprintf(to, sizeof(to), "%s/proc/net/dev", s->root);
    usleep(200000);
    if (rename(from, to))
        abort();
    scratch_close(&later);
    return NULL;
}

/* A driver that brings its counters up to date a moment late is waited for, and no longer than that; one that does
 * not is, once. */
TEST(test_late_counters)
{
    struct path_claim claim = OUT("eth0", 12e9);
    struct path_proof proof;
    struct path_wires w;
    struct path *p;
    pthread_t thread;

    SCRATCH(s);
    count(&s, "eth0 0 0");
    p = path_begin_at(s.root, 50000000);
    uint64_t begin_ns = clock_now_ns();
    path_wires(p, GB, GB, &w);
    assert_int_equal(w.n, 0);
    assert_true(clock_now_ns() - begin_ns >= 50000000);
    path_close(p);
    p = path_begin_at(s.root, 200000000000u);
    begin_ns = clock_now_ns();
    assert_int_equal(pthread_create(&thread, NULL, count_late, &s), 0);
    path_end(p, &claim, 1, &proof);
    pthread_join(thread, NULL);
    assert_int_equal(proof.verdict, PATH_PROVED);
    assert_true(clock_now_ns() - begin_ns < 190000000000u);
    path_close(p);
    scratch_close(&s);
}

static struct path_proof send_over_lo(int fd, const struct sockaddr_in *to)
{
    enum { MESSAGE = 32768, COUNT = 512 };
    static char buffer[MESSAGE];
    struct path_claim claim = OUT("lo", (double)MESSAGE * COUNT);
    struct path_proof proof;
    struct path *p;

    p = path_begin();
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(sendto(fd, buffer, MESSAGE, 0, (const struct sockaddr *)to, sizeof(*to)),
                         MESSAGE);
    path_end(p, &claim, 1, &proof);
    path_close(p);
    return proof;
}

/* Over lo, by UDP to nobody in particular, with the kernel's own counters. Beside other traffic nothing is proved:
 * then once more. */
TEST(test_this_machine)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(to);
    struct path_proof proof;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), tries = 50;

    if (access("/proc/net/dev", R_OK) || fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) ||
        getsockname(fd, (struct sockaddr *)&to, &len))
        skip();
    do {
        proof = send_over_lo(fd, &to);
        assert_int_not_equal(proof.verdict, PATH_ELSEWHERE);
    } while (proof.verdict != PATH_PROVED && --tries);
    close(fd);
    assert_int_equal(proof.verdict, PATH_PROVED);
    assert_int_equal(proof.carriers, CARRIER_LOOPBACK);
}

/* Nobody can say which device should have carried anything: what moved most is told, of a bridge and what is below it
 * one, and no more. */
TEST(test_tell)
{
    static const struct {
        const char *now;
        const char *first, *not ;
        unsigned carriers;
    } cases[] = {
        {"lo 1 1, br0 1e9 2e9, eth0 1e9 2e9, eth1 0 0", "lo 0 B", "sent", 0},
        {"lo 1 1, br0 2e9 3.2e9, eth0 2e9 3.2e9, eth1 1e6 0", "eth0 sent 1.2 GB", "br0", S},
        {"lo 7e9 7e9, br0 2e9 3.2e9, eth0 2e9 3.2e9, eth1 1e9 0", "lo sent 7 GB", "br0", L},
    };
    struct path_proof proof;

    SCRATCH(s);
    struct path *p = begin(&s);
    path_tell(p, &proof);
    assert_int_equal(proof.verdict, PATH_UNKNOWN);
    assert_int_equal(proof.carriers, 0);
    path_close(p);
    put_lower(&s, "br0", "eth0");
    count(&s, cases[0].now);
    p = begin(&s);
    for (size_t i = 0; i < N(cases); i++) {
        count(&s, cases[i].now);
        path_tell(p, &proof);
        assert_ptr_equal(strstr(proof.text, cases[i].first), proof.text);
        assert_null(strstr(proof.text, cases[i].not ));
        assert_int_equal(proof.verdict, PATH_UNKNOWN);
        assert_int_equal(proof.carriers, cases[i].carriers);
    }
    path_close(p);
    path_close(NULL);
    scratch_close(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of busbw: the links of each node, by counters or as our own ranks tell them, and what they leave to the operation. */
#include "benches/allreduce/work.h"
#include "tests/unit/unit.h"
#include "tests/unit/wires.h"

/* A point that is over, of ranks on nodes "a", "b" and so on. */
struct over {
    struct session s;
    struct session_node nodes[4];
    struct collective_account accounts[8];
    struct collective_work w;
    struct point pt;
};

static struct over *over(const char *ranks, const char *backend)
{
    struct over *o = calloc(1, sizeof(*o));
    unsigned n = (unsigned)strlen(ranks);

    assert_non_null(o);
    o->w.ranks.world = world_of(ranks);
    o->s.n = o->w.n = o->w.size = n;
    o->s.n_nodes = o->w.ranks.world->nodes;
    for (unsigned i = 0; i < n; i++) {
        struct session_node *node = &o->nodes[o->w.ranks.world->members[i].node];
        o->w.members[i] = i;
        node->member = node->host[0] ? node->member : i;
        snprintf(node->host, WORLD_NAME_MAX, "%c", ranks[i]);
    }
    o->s.told = true;
    o->s.nodes = o->nodes;
    o->s.accounts = o->accounts;
    o->w.ranks.session = &o->s;
    snprintf(o->w.point.backend, sizeof(o->w.point.backend), "%s", backend);
    o->pt.n_series = 2;
    o->pt.series[0].metric = "algbw";
    o->pt.series[1].metric = "busbw";
    return o;
}

/* GB/s, 0: none; says: parts of its source, which '|' parts; those behind '!' are not in it. */
static void limit_is(struct over *o, double limit, const char *says)
{
    o->pt.series[1].limit = 0;
    rows_limit(&o->pt, &o->w);
    const char *source = o->pt.series[1].limit_source;
    assert_says(source, says);
    if (fabs(o->pt.series[1].limit - limit) > 1e-9)
        fail_msg("limit %.9g, not %.9g: %s", o->pt.series[1].limit, limit, source);
    assert_null(o->pt.series[0].limit_source);
}

static void done(struct over *o)
{
    world_free(o->w.ranks.world);
    free(o);
}

#define TCP    (1460.0 / 1538 / 8)
#define PARTLY "1 of 2 nodes"

TEST(test_limit)
{
    struct over *o = over("aabb", "mpi");
    limit_is(o, 0, "a: |ended before");
    o->nodes[0].wire = wire("eth0", 100);
    o->nodes[1].wire = wire("eth3", 25);
    limit_is(o, 1.5 * 25 * TCP, "b's eth3|counters|sysfs: 25 Gb/s|(94.9 %)|!not known");
    o->nodes[0].wire = wire("eth0", 10);
    limit_is(o, 1.5 * 10 * TCP, "a's eth0|10 Gb/s");
    /* Of one it is not known: the other's bounds it all the same. */
    o->nodes[0].wire = wire("eth0", 0);
    limit_is(o, 1.5 * 25 * TCP, "b's eth3|25 Gb/s|" PARTLY);
    o->nodes[1].wire = (struct collective_wire){.why = "unsure"};
    limit_is(o, 0, "a's eth0|not known");
    o->nodes[0].wire = o->nodes[1].wire;
    limit_is(o, 0, "a: unsure");
    o->accounts[1].told.simulated = 1;
    o->nodes[0].wire = wire("eth0", 100);
    limit_is(o, 0, "simulated");
    done(o);
    o = over("aa", "nccl");
    o->nodes[0].wire = wire("eth0", 100);
    limit_is(o, 0, "one node");
    done(o);
}

TEST(test_limit_of_several)
{
    struct over *o = over("ab", "nccl");
    o->nodes[0].wire = wire("eth0", 100);
    o->nodes[0].wire.rails[1] = rail("eth1", 50);
    o->nodes[0].wire.n = 2;
    limit_is(o, 150 * TCP, "a's eth0 + eth1|counters|of eth0: |100 Gb/s|" PARTLY);
    o->nodes[1].wire = wire("eth0", 140);
    limit_is(o, 140 * TCP, "b's eth0|140 Gb/s|!not known");
    o->nodes[0].wire.rails[1] = rail("eth1", 0);
    o->nodes[1].wire = (struct collective_wire){0};
    limit_is(o, 0, "of eth1: |not known");
    /* The most names that there may be are cut, not written beyond. */
    o->nodes[0].wire.n = NIC_RAILS_MAX;
    for (unsigned i = 0; i < NIC_RAILS_MAX; i++) {
        o->nodes[0].wire.rails[i] = rail("", 1e6);
        memset(o->nodes[0].wire.rails[i].name, 'n', NIC_RAILS_MAX * 7);
        memset(o->nodes[0].wire.rails[i].line_source, 's', 159);
    }
    memset(o->nodes[0].host, 'h', WORLD_NAME_MAX - 1);
    rows_limit(&o->pt, &o->w);
    assert_true(strlen(o->w.limit_source) < sizeof(o->w.limit_source));
    done(o);
}

/* Our own: what the ranks tell, whatever counters do. */
static struct collective_report *tells(struct over *o, unsigned rank, const char *name, double gbps)
{
    struct collective_report *told = &o->accounts[rank].told;

    told->has_rail = 1;
    told->rail = rail(name, gbps);
    return told;
}

static void sends(struct collective_report *told, const char *device, bool other_node)
{
    struct collective_flow *flow = &told->flows[told->n_flows++];

    snprintf(flow->device, sizeof(flow->device), "%s", device);
    flow->other_node = other_node;
}

TEST(test_own)
{
    struct over *o = over("ab", "ring");
    limit_is(o, 0, "a: |do not tell");
    o->nodes[0].wire = wire("eth0", 1);
    tells(o, 0, "eth0", 40);
    tells(o, 1, "eth0", 10)->rail.segment_bytes = 1448;
    limit_is(o, 10.0 / 8 * 1448 / 1538, "b's eth0: |1448 bytes|(94.1 %)|!not known");
    /* Of a node whose links nobody knows that is said, and not hidden behind the other's. */
    tells(o, 0, "eth0", 0);
    limit_is(o, 10 * TCP * 1448 / 1460, "b's eth0: |" PARTLY);
    tells(o, 1, "eth7", 0);
    limit_is(o, 0, "a's eth0|not known");
    done(o);
}

/* Each rank has an adapter of its own: a node has all of them, and one that two ranks share once. */
TEST(test_own_addresses)
{
    struct over *o = over("aaaabbbb", "ring");
    for (unsigned i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof(name), "eth%u", i % 4);
        sends(tells(o, i, name, i < 4 ? 25 : 100), name, i % 4 == 0 || i % 4 == 3);
    }
    limit_is(o, 1.75 * 100 * TCP, "a's eth0 + eth1 + eth2 + eth3 |25 Gb/s");
    for (unsigned i = 0; i < 4; i++)
        memset(&o->accounts[i].told, 0, sizeof(o->accounts[i].told));
    for (unsigned i = 0; i < 4; i++)
        tells(o, i, i % 2 ? "eth1" : "eth0", 25);
    limit_is(o, 1.75 * 50 * TCP, "a's eth0 + eth1 |25 Gb/s");
    /* One adapter twice, with other segments: what it carries at the most. */
    for (unsigned i = 0; i < 4; i++)
        tells(o, i, "eth0", 25)->rail.segment_bytes = i == 1 ? 1460 : 1400;
    limit_is(o, 1.75 * 25 * TCP, "a's eth0: |25 Gb/s");
    done(o);
}

/* Ranks within a node have a link to each other, which is none of the node's; unless it did lead to another. */
TEST(test_own_within)
{
    struct over *o = over("aaabbb", "ring");
    for (unsigned i = 0; i < 6; i++) {
        bool within = i % 3 == 1;
        struct collective_report *told = tells(o, i, within ? "lo" : "eth0", within ? 0 : 10);
        sends(told, "lo", false);
        if (!within)
            sends(told, "eth0", true);
    }
    limit_is(o, 10 * TCP * 5 / 3, "a's eth0: |10 Gb/s|!not known");
    sends(&o->accounts[4].told, "lo", true); /* to another node, as namespaces of one machine do */
    limit_is(o, 10 * TCP * 5 / 3, "a's eth0: |" PARTLY);
    sends(&o->accounts[0].told, "eth9", true);
    limit_is(o, 0, "of eth9|unknown");
    done(o);
}

/* Rates that do not add up are no limit: of one adapter's ports, of functions that may be of one port. */
TEST(test_own_not_added)
{
    struct over *o = over("aabb", "ring");
    for (unsigned i = 0; i < 4; i++) {
        struct nic_rail *r = &tells(o, i, i % 2 ? "eth1" : "eth0", 100)->rail;
        snprintf(r->address, sizeof(r->address), "0000:3b:00.%u", i % 2);
        r->pcie = (struct nic_pcie){.gt_s = 32, .width = 8}; /* 252 Gb/s */
    }
    limit_is(o, 1.5 * 200 * TCP, "a's eth0 + eth1 |100 Gb/s");
    for (unsigned i = 0; i < 2; i++)
        o->accounts[i].told.rail.pcie.gt_s = 16;
    limit_is(o, 1.5 * 200 * TCP, "b's eth0 + eth1 |" PARTLY);
    o->accounts[3].told.rail.vf = 1;
    limit_is(o, 0, "a: eth0 and 1 more|PCIe link");
    snprintf(o->accounts[1].told.rail.address, sizeof(o->accounts[1].told.rail.address), "5e:00.0");
    o->accounts[0].told.rail.vf = 1;
    limit_is(o, 0, "a: eth0 and 1 more|virtual function");
    done(o);
}

/* More links than are kept: as if none were known. */
TEST(test_own_many)
{
    struct over *o = over("ab", "ring");
    for (unsigned i = 0; i < 2; i++)
        sends(tells(o, i, "eth0", 100), "eth0", true);
    for (unsigned i = 1; i < COLLECTIVE_FLOWS_MAX; i++) {
        char name[8];
        snprintf(name, sizeof(name), "p%u", i);
        sends(&o->accounts[0].told, name, true);
    }
    o->accounts[0].told.rail = rail("eth8", 100);
    limit_is(o, 100 * TCP, "b's eth0: |" PARTLY);
    memset(&o->accounts[1].told, 0, sizeof(o->accounts[1].told));
    limit_is(o, 0, "a: |8 links");
    done(o);
}

/* The node whose link is the first to be full is named: of a broadcast the slower, of an all-gather the one with more to get. */
TEST(test_named)
{
    struct over *o = over("aaabbc", "mpi");
    o->nodes[0].wire = wire("eth0", 20);
    o->nodes[1].wire = wire("eth0", 100);
    o->nodes[2].wire = wire("eth0", 30);
    o->w.point.op = COLLECTIVE_BROADCAST;
    limit_is(o, 20 * TCP, "a's eth0|20 Gb/s");
    o->w.point.op = COLLECTIVE_ALL_GATHER; /* 5 of 6 blocks into c, 3 into a */
    limit_is(o, 30 * TCP, "c's eth0|30 Gb/s");
    o->nodes[2].wire = wire("eth0", 0);
    limit_is(o, 20 * TCP * 2 * 5 / 6, "a's eth0|20 Gb/s|1 of 3 nodes");
    done(o);
}

/* Four nodes of equal lines, so that a switch that sums would double what is possible but for a third: those of Ethernet do not, of InfiniBand
 * nobody knows it of MPI, also where the adapter's PCIe link is what bounds, and where the library says who added it is known. */
TEST(test_switches)
{
    struct over *o = over("abcd", "mpi");
    for (unsigned i = 0; i < 4; i++)
        o->nodes[i].wire = wire("eth0", 100);
    limit_is(o, 100 * TCP, "a's eth0|100 Gb/s");
    for (unsigned i = 0; i < 4; i++) {
        o->nodes[i].wire.rails[0].protocol = NIC_INFINIBAND;
        o->nodes[i].wire.rails[0].mtu_bytes = 4096;
    }
    for (int narrow = 0; narrow < 2; narrow++) {
        for (unsigned i = 0; i < 4 && narrow; i++)
            o->nodes[i].wire.rails[0].pcie = (struct nic_pcie){.gt_s = 8, .width = 4};
        o->pt.series[1].limit = 0;
        rows_limit(&o->pt, &o->w);
        if (o->pt.series[1].limit > 0 || !strstr(o->pt.series[1].limit_source, "SHARP"))
            fail_msg("%g: %s", o->pt.series[1].limit, o->pt.series[1].limit_source);
    }
    o->accounts[0].told.members_add = 1;
    rows_limit(&o->pt, &o->w);
    assert_true(o->pt.series[1].limit > 3.8 && o->pt.series[1].limit < 4); /* 31.5 Gb/s of PCIe */
    done(o);
}

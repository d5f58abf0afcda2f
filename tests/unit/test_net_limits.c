/* SPDX-License-Identifier: Apache-2.0 */
/* What the rates of a point of net are called, what limits them, and what its options ask for. */
#include "benches/net/lead.h"
#include "benches/net/net_work.h"
#include "tests/unit/unit.h"

#define GB_EACH                                                                                    \
    (12.5 * 1428 / 1538) /* iWARP of 100 Gb/s at MTU 1500, in messages that fill its segments */

/* A point that streams over n ports of 100 Gb/s at both ends. */
static void scene(struct net_lead *l, struct net_point *p, unsigned n, bool forward, bool reverse)
{
    *p = (struct net_point){.connections = n,
                            .threads = 1,
                            .message_bytes = 1428,
                            .stream = {forward, reverse},
                            .rdma = {.verb = RDMA_WRITE}};
    memset(l, 0, sizeof(*l));
    l->end.point = p;
    l->end.n_rails = n;
    for (int side = 0; side < NET_SIDES; side++) {
        struct net_rails *rails = &l->reports[side].rails;
        rails->n = n;
        l->end.rails = rails->rails;
        for (unsigned i = 0; i < n; i++) {
            struct nic_rail *r = &rails->rails[i];
            *r = (struct nic_rail){.protocol = NIC_IWARP, .mtu_bytes = 1500, .line_gbps = 100};
            snprintf(r->name, sizeof(r->name), "card%u:1", i);
            snprintf(r->address, sizeof(r->address), "0000:0%u:00.0", i + 1);
            snprintf(r->line_source, sizeof(r->line_source), "sysfs: 100 Gb/s of card%u:1", i);
        }
    }
}

static struct net_lead lead;
static struct net_point point;
static struct net_rate_name names[NET_RATES_MAX];

/* "forward card0:1 11.6, forward all 23.2": names and limits, in the order of the samples. */
static const char *rates(void)
{
    static char text[512];
    unsigned n = net_lead_rates(&lead, names);
    size_t at = 0;

    text[0] = 0;
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%s%s %.1f", i ? ", " : "",
                               names[i].direction, names[i].rail[0] ? " " : "", names[i].rail,
                               names[i].limit_gbps);
    return text;
}

TEST(a_part_of_both_ways_is_another_rate_than_one_way)
{
    scene(&lead, &point, 1, true, false);
    assert_string_equal(rates(), "forward 11.6");
    scene(&lead, &point, 1, false, true);
    assert_string_equal(rates(), "reverse 11.6");
    scene(&lead, &point, 1, true, true);
    assert_string_equal(rates(), "both-forward 11.6, both-reverse 11.6, sum 23.2");
    scene(&lead, &point, 2, true, true);
    assert_string_equal(rates(),
                        "both-forward card0:1 11.6, both-forward card1:1 11.6, both-forward all "
                        "23.2, both-reverse card0:1 11.6, both-reverse card1:1 11.6, both-reverse "
                        "all 23.2, sum all 46.4");
    assert_true(fabs(names[6].limit_gbps - 4 * GB_EACH) < 1e-9);
}

TEST(limits_are_in_the_unit_of_their_row)
{
    static struct net_session s;
    static struct point pt = {.n_series = 2};

    scene(&lead, &point, 1, true, true);
    s.n_rates = net_lead_rates(&lead, s.rates);
    net_rows_limits(&pt, &s);
    assert_true(fabs(pt.series[1].limit - 8 * GB_EACH) < 1e-9); /* Gb/s */
    s.point = point;
    s.point.count_messages = true;
    net_rows_limits(&pt, &s);
    assert_true(fabs(pt.series[1].limit - 1000 * GB_EACH / 1428) < 1e-9); /* Mop/s */
}

/* Of either end: the rails keep their limits, the sums have none and say of which end and whose. */
TEST(no_sum_of_what_is_shared)
{
    for (int side = 0; side < NET_SIDES; side++) {
        struct nic_rail *r = lead.reports[side].rails.rails;
        scene(&lead, &point, 2, true, true);
        r[1].vf = 1;
        rates();
        for (unsigned i = 0; i < 7; i++) {
            bool sum = i == 2 || i > 4;
            assert_int_equal(isnan(names[i].limit_gbps) != 0, sum);
            assert_true(!sum || strstr(names[i].limit_source, "card1:1"));
            assert_true(!sum || strstr(names[i].limit_source, side ? "peer" : "this end"));
        }
        /* Two ports of an adapter whose PCIe link carries 126 Gb/s. */
        scene(&lead, &point, 2, true, false);
        for (unsigned i = 0; i < 2; i++) {
            snprintf(r[i].address, sizeof(r[i].address), "0000:05:00.%u", i);
            r[i].pcie = (struct nic_pcie){.gt_s = 8, .width = 16};
        }
        assert_string_equal(rates(), "forward card0:1 11.6, forward card1:1 11.6, forward all nan");
        assert_non_null(strstr(names[2].limit_source, "PCIe"));
        /* Two interfaces with a tag may stand on one port; two ports whose packets have a tag are two. */
        scene(&lead, &point, 2, true, false);
        r[0].vlan = r[1].vlan = 1;
        for (unsigned i = 0; i < 2; i++)
            r[i].protocol = NIC_ROCE_V2;
        rates();
        assert_true(names[2].limit_gbps > 1);
        r[1].protocol = NIC_TCP;
        rates();
        assert_true(isnan(names[2].limit_gbps));
        assert_non_null(strstr(names[2].limit_source, "VLAN"));
    }
}

TEST(a_sum_with_a_part_that_is_not_known_says_which)
{
    scene(&lead, &point, 2, true, true);
    for (int side = 0; side < NET_SIDES; side++) {
        struct nic_rail *r = &lead.reports[side].rails.rails[1];
        r->line_gbps = 0;
        snprintf(r->line_source, sizeof(r->line_source), "card1 hides it");
    }
    rates();
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(isnan(names[i].limit_gbps) != 0, i != 0 && i != 3);
    assert_string_equal(names[2].limit_source, "card1 hides it");
    assert_string_equal(names[6].limit_source, "card1 hides it");
}

TEST(threads_without_a_stream_carry_nothing)
{
    scene(&lead, &point, 1, true, false);
    for (int side = 0; side < NET_SIDES; side++) {
        lead.reports[side].rails.rails[0].protocol = NIC_MEMORY;
        lead.reports[side].rails.rails[0].line_gbps = 80;
    }
    point.threads = 8;
    assert_string_equal(rates(), "forward 10.0");
    point.connections = 3;
    assert_string_equal(rates(), "forward 30.0");
    point.connections = 12;
    assert_string_equal(rates(), "forward 80.0");
}

TEST(each_device_is_named_once)
{
    static const struct {
        const char *list, *twice;
    } lists[] = {{"", NULL},
                 {"eth0+eth1+eth10", NULL},
                 {"mlx5_0:1+mlx5_0:2", NULL},
                 {"fe80::1+fe80::1:1", NULL},
                 {"eth0+eth0", "'eth0'"},
                 {"a+eth1+b+eth1", "'eth1'"},
                 {"mlx5_0+mlx5_0:1", "'mlx5_0'"}};
    const char *value;
    char error[256], last[14 * 11] = "";

    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        error[0] = 0;
        int err = net_parse_devices(lists[i].list, &value, error, sizeof(error));
        if (err != (lists[i].twice ? -EINVAL : 0) || (err && !strstr(error, lists[i].twice)))
            fail_msg("'%s': %d, '%s'", lists[i].list, err, error);
        assert_ptr_equal(value, lists[i].list);
    }
    for (unsigned i = 11; i < 25; i++)
        snprintf(last + strlen(last), 12, "mlx5_%u:1%s", i, i < 24 ? "+" : "");
    assert_int_equal(net_parse_devices(last, &value, error, sizeof(error)), -EINVAL);
}

/* How many samples a point may have, of which nobody knows the peer: it goes no further than that. */
static uint64_t most_samples(enum net_pattern pattern, bool chosen, uint64_t asked)
{
    struct net_session session = {.unreachable = -ENODEV};
    struct net_params p = {.transport = 1, /* TCP */
                           .pattern = pattern,
                           .size = 8,
                           .load_size = 65536,
                           .streams = 1,
                           .samples_chosen = chosen};
    struct bench_common common = {.seed = 1};
    struct point pt = {
        .common = &common, .params = &p, .bench_state = &session, .max_samples = asked};

    assert_int_equal(net_bench_setup(&pt), -ENODEV);
    topo_close(pt.topo_loaded);
    return pt.max_samples;
}

TEST(a_latency_has_as_many_samples_as_were_asked_for)
{
    assert_int_equal(most_samples(NET_LATENCY, true, 1000000), 100000);
    assert_int_equal(most_samples(NET_LATENCY, false, 20000000), 20000000);
    assert_int_equal(most_samples(NET_LATENCY, false, 7), 7);
    assert_int_equal(most_samples(NET_LOADED_LATENCY, true, 1000000), 1000000);
    assert_int_equal(most_samples(NET_BANDWIDTH, true, 1000000), 1000000);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which RDMA port is near which GPU, on trees of /sys. */
#include "core/hw/rail.h"
#include "scratch_tree.h"
#include "tests/unit/machines.h"
#include "tests/unit/unit.h"

/* A device below these bridges of a NUMA node. */
static void add(const struct scratch *s, const char *below, const char *address, int node)
{
    char path[256], text[256];

    snprintf(path, sizeof(path), "sys/devices/%s/%s/numa_node", below, address);
    snprintf(text, sizeof(text), "%d\n", node);
    scratch_put(s, path, text);
    snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", address);
    snprintf(text, sizeof(text), "../../../devices/%s/%s", below, address);
    scratch_link(s, path, text);
}

static void add_port(const struct scratch *s, const char *below, const char *address, int node,
                     const char *name, bool up)
{
    char path[256], text[256];

    add(s, below, address, node);
    snprintf(path, sizeof(path), "sys/devices/%s/%s/infiniband/%s/ports/1/state", below, address,
             name);
    scratch_put(s, path, up ? "4: ACTIVE\n" : "1: DOWN\n");
    snprintf(path, sizeof(path), "sys/class/infiniband/%s", name);
    snprintf(text, sizeof(text), "../../devices/%s/%s/infiniband/%s", below, address, name);
    scratch_link(s, path, text);
}

/* Below switch number i, which is of socket i / 2. */
static const char *slot(char path[128], unsigned i, unsigned at)
{
    unsigned bus = 0x10 + 0x20 * i;

    snprintf(path, 128, "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0", bus, bus,
             bus + 1, bus + 2, at);
    return path;
}

static void address_of(char text[24], unsigned i, unsigned at)
{
    snprintf(text, 24, "0000:%02x:00.0", 0x10 + 0x20 * i + 3 + at);
}

static void expect(const struct rail *r, int gpu, const char *port, const char *way, bool up)
{
    assert_int_equal(r->gpu, gpu);
    assert_string_equal(r->port, port);
    assert_string_equal(r->way, way);
    assert_int_equal(r->up, up);
}

/* Four switches with two GPUs and two adapters each. The adapters' names run against the bus from
 * switch to switch, and 10 is behind 9 by number and before it by letters; a ninth
 * adapter stands apart. */
TEST(test_eight_by_eight)
{
    static const char *const names[] = {"mlx5_9", "mlx5_10", "mlx5_6", "mlx5_7",
                                        "mlx5_4", "mlx5_5",  "mlx5_1", "mlx5_2"};
    char below[128], address[24], addresses[8][24];
    struct rail rails[RAILS_MAX];
    struct scratch s;

    scratch_open(&s);
    for (unsigned i = 0; i < 8; i++) {
        address_of(addresses[i], i / 2, i % 2);
        add(&s, slot(below, i / 2, i % 2), addresses[i], i < 4 ? 0 : 1);
        address_of(address, i / 2, 2 + i % 2);
        add_port(&s, slot(below, i / 2, 2 + i % 2), address, i < 4 ? 0 : 1, names[i], i != 5);
    }
    add_port(&s, "pci0000:00/0000:00:01.0", "0000:01:00.0", 0, "mlx5_0", true);
    assert_int_equal(rails_find(s.root, (const char(*)[24])addresses, 8, rails), 8);
    for (unsigned i = 0; i < 8; i++) {
        char port[32];
        snprintf(port, sizeof(port), "%s:1", names[i]);
        expect(&rails[i], (int)i, port, "PIX", i != 5); /* one that is down is a rail */
    }
    scratch_close(&s);
}

/* Of two functions of one adapter the one that is down is not in use: both GPUs have the other. */
TEST(test_unused_port)
{
    char below[128], addresses[2][24];
    struct rail rails[RAILS_MAX];
    struct scratch s;

    scratch_open(&s);
    for (unsigned i = 0; i < 2; i++) {
        address_of(addresses[i], 0, i);
        add(&s, slot(below, 0, i), addresses[i], 0);
    }
    add_port(&s, slot(below, 0, 2), "0000:15:00.0", 0, "mlx5_0", false);
    add_port(&s, slot(below, 0, 2), "0000:15:00.1", 0, "mlx5_1", true);
    assert_int_equal(rails_find(s.root, (const char(*)[24])addresses, 2, rails), 2);
    expect(&rails[0], 0, "mlx5_1:1", "PIX", true);
    expect(&rails[1], 1, "mlx5_1:1", "PIX", true);
    scratch_close(&s);
}

/* GPU 0 is as near to both, GPU 1 has one that is nearer: it chooses first. */
TEST(test_nearer_chooses_first)
{
    char below[128], addresses[2][24] = {"0000:01:00.0", ""};
    struct rail rails[RAILS_MAX];
    struct scratch s;

    scratch_open(&s);
    add(&s, "pci0000:00/0000:00:01.0", addresses[0], 0);
    address_of(addresses[1], 0, 1);
    add(&s, slot(below, 0, 1), addresses[1], 0);
    add_port(&s, slot(below, 0, 2), "0000:15:00.0", 0, "mlx5_0", true);
    add_port(&s, slot(below, 1, 2), "0000:35:00.0", 0, "mlx5_1", true);
    assert_int_equal(rails_find(s.root, (const char(*)[24])addresses, 2, rails), 2);
    expect(&rails[0], 0, "mlx5_1:1", "NODE", true);
    expect(&rails[1], 1, "mlx5_0:1", "PIX", true);
    scratch_close(&s);
}

/* A guest that hides the bus, or devices in software: in their order, and nothing is said of how
 * near they are. */
TEST(test_hidden)
{
    char addresses[3][24] = {"", "", ""}, path[96];
    struct rail rails[RAILS_MAX];
    struct scratch s;

    scratch_open(&s);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "sys/class/infiniband/rxe%u/ports/1/state", i);
        scratch_put(&s, path, "4: ACTIVE\n");
    }
    assert_int_equal(rails_find(s.root, (const char(*)[24])addresses, 3, rails), 3);
    expect(&rails[0], 0, "rxe0:1", "", true);
    expect(&rails[1], 1, "rxe1:1", "", true);
    expect(&rails[2], 2, "rxe0:1", "", true);
    assert_int_equal(rails_find(s.root, NULL, 0, rails), 2); /* no GPU: a rail for each port */
    expect(&rails[1], -1, "rxe1:1", "", true);
    scratch_close(&s);
    scratch_open(&s);
    assert_int_equal(rails_find(s.root, (const char(*)[24])addresses, 2, rails), 2);
    expect(&rails[1], 1, "", "", false);
    assert_int_equal(rails_find(s.root, NULL, 0, rails), 0);
    scratch_close(&s);
}

static void put_port(const struct scratch *s, const char *name, const char *layer, const char *rate,
                     bool up)
{
    const char *const files[][2] = {
        {"state", up ? "4: ACTIVE\n" : "1: DOWN\n"}, {"link_layer", layer}, {"rate", rate}};
    char path[128];

    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "sys/class/infiniband/%s/ports/1/%s", name, files[i][0]);
        scratch_put(s, path, files[i][1]);
    }
}

/* A guest that hides the bus has eight ports of InfiniBand, one of them down, and one of Ethernet, whose name is the first. With
 * more GPUs than ports, two take one of the eight and none that of Ethernet. */
TEST(test_an_adapter_for_management_has_no_rail)
{
    static const char addresses[9][24] = {"", "", "", "", "", "", "", "", ""};
    struct rail rails[RAILS_MAX];
    char text[512], name[16];
    struct scratch s;

    scratch_open(&s);
    put_port(&s, "mlx5_an0", "Ethernet\n", "100 Gb/sec (4X EDR)\n", true);
    for (unsigned i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "mlx5_ib%u", i);
        put_port(&s, name, "InfiniBand\n",
                 i == 5 ? "10 Gb/sec (4X SDR)\n" : "400 Gb/sec (4X NDR)\n", i != 5);
    }
    assert_int_equal(rails_find(s.root, addresses, 9, rails), 9);
    for (unsigned i = 0; i < 9; i++) { /* the one that is down after those that are up */
        snprintf(name, sizeof(name), "mlx5_ib%u:1", i == 7 ? 5 : i < 5 ? i : (i + 1) % 9);
        expect(&rails[i], (int)i, name, "", i != 7);
        assert_int_equal(rails[i].of, 9);
    }
    rails_unused(s.root, rails, 9, text, sizeof(text));
    assert_non_null(strstr(text, "mlx5_an0:1"));
    assert_int_equal(rails_find(s.root, NULL, 0, rails), 9); /* without GPUs each port is a rail */
    expect(&rails[0], -1, "mlx5_an0:1", "", true);
    rails_unused(s.root, rails, 9, text, sizeof(text));
    assert_string_equal(text, "");
    scratch_close(&s);
}

/* The same link layer, a lower rate; and two of two kinds, of which neither is the usual one. */
TEST(test_a_slower_port_comes_last)
{
    static const char addresses[2][24] = {"", ""};
    struct rail rails[RAILS_MAX];
    char text[512];
    struct scratch s;

    scratch_open(&s);
    put_port(&s, "mlx5_0", "InfiniBand\n", "100 Gb/sec (4X EDR)\n", true);
    put_port(&s, "mlx5_1", "InfiniBand\n", "400 Gb/sec (4X NDR)\n", true);
    assert_int_equal(rails_find(s.root, addresses, 2, rails), 2);
    expect(&rails[0], 0, "mlx5_0:1", "", true);
    expect(&rails[1], 1, "mlx5_1:1", "", true);
    put_port(&s, "mlx5_2", "InfiniBand\n", "400 Gb/sec (4X NDR)\n", true);
    assert_int_equal(rails_find(s.root, addresses, 2, rails), 2);
    expect(&rails[0], 0, "mlx5_1:1", "", true);
    expect(&rails[1], 1, "mlx5_2:1", "", true);
    rails_unused(s.root, rails, 2, text, sizeof(text));
    assert_non_null(strstr(text, "mlx5_0:1"));
    scratch_close(&s);
}

/* Two adapters for eight GPUs: below the first switch of each socket. */
TEST(test_shared)
{
    static const char addresses[8][24] = {"0000:18:00.0", "0000:1a:00.0", "0000:3a:00.0",
                                          "0000:3c:00.0", "0000:98:00.0", "0000:9a:00.0",
                                          "0000:ba:00.0", "0000:bc:00.0"};
    struct rail rails[RAILS_MAX];

    assert_int_equal(rails_find(MACHINE("nvlink-8gpu"), addresses, 8, rails), 8);
    for (unsigned i = 0; i < 8; i++)
        expect(&rails[i], (int)i, i < 4 ? "mlx5_0:1" : "mlx5_1:1", i % 4 < 2 ? "PIX" : "NODE",
               true);
}

/* Programs that see some of the eight only: each has its seat among all, by which the two ends of a
 * pair are held against each other. Of a GPU that /sys does not show, none. */
TEST(test_seats)
{
    static const char addresses[5][24] = {"0000:bc:00.0", "0000:18:00.0", "0000:3A:00.0",
                                          "0000:19:00.0", ""};
    static const unsigned seats[5] = {8, 1, 3, 0, 0};
    struct rail rails[RAILS_MAX];

    assert_int_equal(rails_find(MACHINE("nvlink-8gpu"), addresses, 5, rails), 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(rails[i].seat, seats[i]);
        assert_int_equal(rails[i].seats, seats[i] ? 8 : 0);
    }
    assert_int_equal(rails_find(MACHINE("nvlink-8gpu"), NULL, 0, rails), 2);
    assert_int_equal(rails[0].seat, 0);
}

TEST(test_option)
{
    static const char *const none[] = {"64", "-1", "03", "", "mlx5_0"};
    char error[256];
    const char *value;

    assert_int_equal(rail_read("0", &value, error, sizeof(error)), 0);
    assert_int_equal(rail_read("63", &value, error, sizeof(error)), 0);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        assert_int_not_equal(rail_read(none[i], &value, error, sizeof(error)), 0);
}

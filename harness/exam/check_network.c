/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of network interfaces and of TCP. See exam.h. */
#include <math.h>
#include <string.h>

#include "core/hw/nic.h"
#include "harness/exam/exam.h"

static const char *name_of(const json_t *nic)
{
    const char *name = exam_name(nic, "name");

    return *name ? name : "?";
}

static bool is_up(const json_t *nic)
{
    return exam_is(nic, "state", "up") && !exam_is(nic, "kind", "loopback");
}

typedef void nic_fn(struct exam *x, const json_t *nic, const char *name);

static void each_nic(struct exam *x, bool wanted(const json_t *), nic_fn *look)
{
    const json_t *nics = exam_list(x, "network"), *nic;
    size_t i;

    json_array_foreach (nics, i, nic)
        if (wanted(nic))
            look(x, nic, name_of(nic));
}

/* ---- MTU */

enum { STANDARD = 1500, JUMBO = 9000, JUMBO_LEAST = 8000 };

/* From here on, an interface is there for data. 10 Gb/s serves management, too. */
#define JUMBO_GBITS_PER_S 25

static double payload_share(const struct exam *x, double mtu)
{
    const json_t *tcp = json_object_get(exam_machine(x), "tcp");
    const struct framing_tcp f = {
        .mtu = (unsigned)mtu,
        .options = exam_value(tcp, "timestamps", 1) > 0 ? FRAMING_TCP_TIMESTAMPS : 0};

    return framing_tcp_fraction(&f);
}

/* The MTU that the interface should have at least. */
static double wanted_mtu(struct exam *x, const json_t *nic)
{
    double most = exam_value(nic, "max_mtu", JUMBO);

    exam_get(x, nic, "max_mtu");
    exam_get(x, nic, "speed_gbits_per_s");
    if (most < STANDARD)
        return most;
    return most >= JUMBO && exam_nic_gbits(nic) >= JUMBO_GBITS_PER_S ? JUMBO : STANDARD;
}

/* Interfaces whose line is the machine's own. Tunnels, and pairs to containers, leave room for
 * headers of others; what a hypervisor's network leaves to its guests is not theirs to raise. False,
 * too, where what the interface is was not recorded, with an unknown. */
static bool has_frames(struct exam *x, const json_t *nic, const char *name)
{
    static const char *const natures[] = {"physical", "passthrough", "sriov-vf"};
    const char *kind = exam_text(x, name, nic, "kind");

    if (!kind)
        return false;
    if (!strcmp(kind, "bond"))
        return true;
    for (size_t i = 0; !strcmp(kind, "ethernet") && i < sizeof(natures) / sizeof(*natures); i++)
        if (exam_is(nic, "nature", natures[i]))
            return true;
    return false;
}

/* A pair that leads out of this container by the default route: an overlay, whose headers each packet
 * gets on its way, leaves less than the standard. */
static bool is_overlay(struct exam *x, const json_t *nic, const char *name)
{
    const json_t *names = exam_get(x, NULL, "tcp.default_interfaces"), *one;
    size_t i;

    json_array_foreach (names, i, one)
        if (json_is_string(one) && !strcmp(json_string_value(one), name))
            return exam_is(nic, "kind", "veth") && exam_value(nic, "mtu", STANDARD) < STANDARD;
    return false;
}

static void mtu_of(struct exam *x, const json_t *nic, const char *name)
{
    struct exam_result *r;
    double mtu, now, best, wanted;

    if (is_overlay(x, nic, name)) {
        r = exam_found(x, name,
                       "it leads out of this container with an MTU of %.0f bytes: an overlay wraps "
                       "each packet",
                       exam_value(nic, "mtu", 0));
        exam_remedy(x, r,
                    "give the container the host's network (hostNetwork: true, --network "
                    "host), or an adapter of its own");
        return;
    }
    if (!has_frames(x, nic, name) || !exam_number(x, name, nic, "mtu", &mtu))
        return;
    wanted = wanted_mtu(x, nic);
    if (mtu >= wanted || mtu >= JUMBO_LEAST) {
        exam_fine(x, name);
        return;
    }
    if (exam_is(nic, "nature", "sriov-vf")) {
        exam_unknown(x, name,
                     "its MTU is %.0f bytes; whether the hypervisor's network carries more is not "
                     "visible here",
                     mtu);
        return;
    }
    now = payload_share(x, mtu);
    best = payload_share(x, wanted);
    r = exam_found(x, name, "its MTU is %.0f bytes: headers take %.1f %% of the line", mtu,
                   100 * (1 - now));
    if (isfinite(now) && now < best)
        exam_price(x, r, 1 - now / best, "TCP bandwidth",
                   "1 - %.4f/%.4f: payload of full frames at MTU %.0f and %.0f", now, best, mtu,
                   wanted);
    exam_remedy(x, r, "sudo ip link set %s mtu %.0f, as on all hosts and switches of the network",
                name, wanted);
}

static void look_mtu(struct exam *x)
{
    each_nic(x, is_up, mtu_of);
}

/* ---- Queue disciplines */

static const json_t *discipline(const json_t *list, const char *kind)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (exam_is(one, "kind", kind))
            return one;
    return NULL;
}

/* The first that may hold packets back, by rates or rules that are not read: htb, hfsc, cake. */
static const char *unread_discipline(const json_t *list)
{
    static const char *const free_ones[] = {"mq",      "mqprio", "fq_codel", "fq",   "pfifo_fast",
                                            "noqueue", "pfifo",  "bfifo",    "codel"};
    const json_t *one;
    size_t i, k;

    json_array_foreach (list, i, one) {
        for (k = 0; k < sizeof(free_ones) / sizeof(*free_ones); k++)
            if (exam_is(one, "kind", free_ones[k]))
                break;
        if (k == sizeof(free_ones) / sizeof(*free_ones))
            return exam_name(one, "kind");
    }
    return NULL;
}

static void price_rate(struct exam *x, struct exam_result *r, double rate, double line)
{
    if (rate > 0 && line > rate)
        exam_price(x, r, 1 - rate / line, "network bandwidth", "1 - %.4g/%.4g Gb/s", rate, line);
}

static void shaping_of(struct exam *x, const json_t *nic, const char *name)
{
    const json_t *list = exam_fact(x, name, nic, "qdiscs");
    const json_t *netem = discipline(list, "netem"), *tbf = discipline(list, "tbf");
    double rate = exam_value(tbf ? tbf : netem, "rate_gbits_per_s", 0);
    struct exam_result *r;

    if (!list)
        return;
    if (!netem && !tbf) {
        if (unread_discipline(list))
            exam_unknown(x, name, "its queue discipline %s may hold packets back: see tc -s qdisc",
                         unread_discipline(list));
        else
            exam_fine(x, name);
        return;
    }
    exam_get(x, nic, "speed_gbits_per_s");
    if (netem)
        r = exam_found(x, name, "netem delays its packets by %.4g ms and drops %.3g %% of them",
                       exam_value(netem, "delay_us", 0) / 1e3,
                       exam_value(netem, "loss_percent", 0));
    else
        r = exam_found(x, name, "a token bucket (tbf) holds it to %.4g Gb/s", rate);
    price_rate(x, r, rate, exam_nic_gbits(nic));
    exam_remedy(x, r, "sudo tc qdisc del dev %s root", name);
}

static void look_shaping(struct exam *x)
{
    each_nic(x, is_up, shaping_of);
}

/* ---- TCP */

/* Others take what is left over, or pace by a model of the path; --measure prices them. */
static void look_congestion(struct exam *x)
{
    static const char *const usual[] = {"cubic", "reno", "dctcp", "bic", "htcp", "illinois"};
    const char *now = exam_text(x, "tcp", NULL, "tcp.congestion_control");

    if (!now)
        return;
    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        if (!strcmp(now, usual[i])) {
            exam_fine(x, "tcp");
            return;
        }
    exam_remedy(
        x,
        exam_found(x, "tcp",
                   "congestion control is \"%s\", which sends by its own estimate of the path",
                   now),
        "sudo sysctl net.ipv4.tcp_congestion_control=cubic");
}

/* Below these, a window is used up within a round trip of a local network. */
#define BUFFER_LEAST (1024. * 1024)

static void look_buffers(struct exam *x)
{
    double receive, send, scaling;

    if (!exam_number(x, "tcp", NULL, "tcp.receive_auto_bytes", &receive) ||
        !exam_number(x, "tcp", NULL, "tcp.send_auto_bytes", &send) ||
        !exam_number(x, "tcp", NULL, "tcp.window_scaling", &scaling))
        return;
    if (scaling < 1)
        exam_remedy(x,
                    exam_found(x, "tcp", "window scaling is off: 64 KiB at most are on their way"),
                    "sudo sysctl net.ipv4.tcp_window_scaling=1");
    else if (receive < BUFFER_LEAST || send < BUFFER_LEAST)
        exam_remedy(x,
                    exam_found(x, "tcp",
                               "buffers grow to %.4g KiB for receiving and %.4g KiB for sending",
                               receive / 1024, send / 1024),
                    "sudo sysctl net.ipv4.tcp_rmem='4096 131072 6291456' "
                    "net.ipv4.tcp_wmem='4096 16384 4194304'");
    else
        exam_fine(x, "tcp");
}

/* ---- What interfaces lost */

/* Of all packets; and so many that chance does not make them. */
#define LOST_SHARE    1e-5
#define LOST_LEAST    100
#define DROPPED_SHARE 1e-3

/* Drivers that count a full ring in rx_dropped, where the kernel counts packets of no use, too. */
static bool drops_are_losses(const json_t *nic)
{
    return exam_is(nic, "driver", "ena") || exam_is(nic, "driver", "virtio_net") ||
           exam_is(nic, "driver", "hv_netvsc");
}

static bool may_have_lost(struct exam *x, const json_t *nic, const char *name, double all)
{
    double dropped;

    if (!drops_are_losses(nic))
        return false;
    exam_get(x, nic, "driver");
    dropped = exam_value(json_object_get(nic, "counters"), "rx_dropped", 0);
    exam_get(x, nic, "counters.rx_dropped");
    if (dropped <= LOST_LEAST || dropped <= DROPPED_SHARE * all)
        return false;
    exam_unknown(x, name,
                 "%.0f packets were dropped: its ring was full, or nothing here wanted them",
                 dropped);
    return true;
}

static const char *const packets[] = {"rx_packets", "tx_packets", NULL};
static const char *const full[] = {"rx_missed_errors", "rx_fifo_errors", NULL};
static const char *const broken[] = {"rx_crc_errors", "tx_carrier_errors", "collisions", NULL};
static const struct exam_share damaged = {"counters", broken,     "counters",
                                          packets,    LOST_SHARE, LOST_LEAST};
static const struct exam_share missed = {"counters", full,       "counters",
                                         packets,    LOST_SHARE, LOST_LEAST};

static void losses_of(struct exam *x, const json_t *nic, const char *name)
{
    double most = exam_value(json_object_get(nic, "rings"), "rx_max", 0);
    struct exam_span bad, lost;
    enum exam_when line = exam_share_when(x, name, nic, &damaged, &bad), ring;

    if (line == EXAM_NOT_READ)
        return;
    ring = exam_share_when(x, name, nic, &missed, &lost);
    if (ring == EXAM_NOT_READ)
        return;
    if (line == EXAM_NOW)
        exam_remedy(x,
                    exam_found(x, name, "%.0f of %.0f packets were damaged on the line, %s",
                               bad.bad, bad.all, bad.text),
                    "replace cable and transceiver of %s", name);
    else if (ring == EXAM_NOW)
        exam_remedy(x,
                    exam_found(x, name, "%.0f of %.0f packets came while its ring was full, %s",
                               lost.bad, lost.all, lost.text),
                    "sudo ethtool -G %s rx %.0f", name, most > 0 ? most : 4096);
    else if (line == EXAM_UNDATED)
        exam_share_undated(x, name, &bad, "packets were damaged on the line in");
    else if (ring == EXAM_UNDATED)
        exam_share_undated(x, name, &lost, "packets came while its ring was full, in");
    else if (!may_have_lost(x, nic, name, lost.all))
        exam_fine(x, name);
}

static void look_losses(struct exam *x)
{
    each_nic(x, exam_nic_is_real, losses_of);
}

/* A boot, and who sets a machine up, change a line's state a few times. A sound line goes down when
 * its switch restarts: less than once a week. Within an hour a switch does so once or twice. */
#define CHANGES_MOST    20
#define CHANGES_AT_ONCE 4

static void flaps_of(struct exam *x, const json_t *nic, const char *name)
{
    static const char *const changes[] = {"carrier_changes", NULL};
    static const struct exam_rate flaps = {"counters", changes, 2. / 7, CHANGES_MOST,
                                           CHANGES_AT_ONCE};
    struct exam_span span;
    enum exam_when when = exam_rate_when(x, name, nic, &flaps, &span);

    if (when == EXAM_FEW)
        exam_fine(x, name);
    else if (when == EXAM_UNDATED)
        exam_share_undated(x, name, &span, "changes of its line in");
    else if (when == EXAM_NOW)
        exam_remedy(
            x, exam_found(x, name, "its line went up or down %.0f times %s", span.bad, span.text),
            "sudo dmesg | grep %s; replace cable or transceiver", name);
}

/* A wireless line goes down whenever the machine sleeps or moves. */
static bool has_cable(const json_t *nic)
{
    return exam_nic_is_real(nic) && !exam_is(nic, "kind", "wifi");
}

static void look_flaps(struct exam *x)
{
    each_nic(x, has_cable, flaps_of);
}

/* ---- Interrupts */

/* One core takes in what a slower line brings. */
#define ONE_CPU_GBITS_PER_S 10

static bool is_slow(struct exam *x, const json_t *nic)
{
    double gbits = exam_nic_gbits(nic);

    exam_get(x, nic, "speed_gbits_per_s");
    return gbits > 0 && gbits < ONE_CPU_GBITS_PER_S;
}

/* Is one of the nodes the interface's own, or another of its socket? */
static bool has_near(const struct exam *x, const json_t *nodes, double own)
{
    const json_t *one;
    size_t i;

    json_array_foreach (nodes, i, one)
        if (exam_near(x, own, json_number_value(one)))
            return true;
    return false;
}

static void interrupts_of(struct exam *x, const json_t *nic, const char *name)
{
    double queues = exam_value(json_object_get(nic, "queues"), "receive", 0),
           node = exam_value(nic, "numa_node", -1),
           threads = exam_value(json_object_get(exam_machine(x), "cpu"), "threads", 2);
    const char *cpus;
    const json_t *nodes;

    if (is_slow(x, nic)) {
        exam_not_applicable(x, name, "one CPU is enough for %.4g Gb/s", exam_nic_gbits(nic));
        return;
    }
    cpus = exam_text(x, name, nic, "interrupts.cpus");
    if (!cpus)
        return;
    exam_get(x, nic, "queues");
    exam_get(x, nic, "numa_node");
    nodes = exam_get(x, nic, "interrupts.numa_nodes");
    exam_get(x, NULL, "cpu.threads");
    if (queues > 1 && threads > 1 && *cpus && !strpbrk(cpus, ",-"))
        exam_remedy(
            x,
            exam_found(x, name, "the interrupts of all its %.0f queues go to CPU %s", queues, cpus),
            "sudo systemctl restart irqbalance");
    else if (node >= 0 && json_array_size(nodes) && !has_near(x, nodes, node))
        exam_remedy(x,
                    exam_found(x, name,
                               "its interrupts go to CPUs %s, and none is near its NUMA node %.0f",
                               cpus, node),
                    "sudo systemctl restart irqbalance");
    else
        exam_fine(x, name);
}

static void look_interrupts(struct exam *x)
{
    each_nic(x, exam_nic_is_real, interrupts_of);
}

/* ---- Bonds */

static bool is_bond(const json_t *nic)
{
    return is_up(nic) && exam_is(nic, "kind", "bond");
}

static size_t count_down(const struct exam *x, const json_t *members)
{
    const json_t *member, *nic;
    size_t i, down = 0;

    json_array_foreach (members, i, member) {
        nic = exam_nic(x, json_string_value(member) ? json_string_value(member) : "");
        /* the second is of one that stands on another interface: a VLAN, an end of a pair */
        down += nic && (exam_is(nic, "state", "down") || exam_is(nic, "state", "lowerlayerdown"));
    }
    return down;
}

/* Modes in which all members send at once. */
static bool is_shared(const char *mode)
{
    return !strcmp(mode, "802.3ad") || !strncmp(mode, "balance-", 8);
}

static bool has_policy(const char *mode)
{
    return !strcmp(mode, "802.3ad") || !strcmp(mode, "balance-xor");
}

static void price_down(struct exam *x, const json_t *nic, const char *name, const char *mode)
{
    const json_t *members = json_object_get(json_object_get(nic, "bond"), "members");
    size_t all = json_array_size(members), down = count_down(x, members);
    struct exam_result *r = exam_found(x, name, "%zu of its %zu members are down", down, all);

    if (is_shared(mode))
        exam_price(x, r, (double)down / (double)all, "network bandwidth",
                   "%zu/%zu members, if they are alike", down, all);
    exam_remedy(x, r, "ip link show master %s", name);
}

/* Between two hosts all but the ports of TCP and UDP is the same in each packet. */
static void hash_of(struct exam *x, const json_t *nic, const char *name, size_t all)
{
    const char *policy = exam_text(x, name, nic, "bond.hash_policy");
    struct exam_result *r;

    if (!policy)
        return;
    if (all < 2 || strstr(policy, "3+4")) {
        exam_fine(x, name);
        return;
    }
    r = exam_found(x, name, "all connections to one host take one of its %zu members (%s)", all,
                   policy);
    exam_price(x, r, 1 - 1 / (double)all, "bandwidth between two hosts",
               "1 - 1/%zu members, if they are alike", all);
    exam_remedy(x, r, "sudo ip link set %s type bond xmit_hash_policy layer3+4", name);
}

/* A bond that so much faster interfaces or ports stand beside is there for management. */
#define ASIDE 4

static bool is_aside(struct exam *x, const json_t *nic)
{
    double own = exam_nic_gbits(nic);

    exam_get(x, nic, "speed_gbits_per_s");
    return own > 0 && ASIDE * own <= exam_fastest(x);
}

static void bond_of(struct exam *x, const json_t *nic, const char *name)
{
    const char *mode = exam_text(x, name, nic, "bond.mode");
    const json_t *members = mode ? exam_fact(x, name, nic, "bond.members") : NULL;
    size_t all = json_array_size(members);

    if (!members)
        return;
    if (is_aside(x, nic)) {
        exam_not_applicable(x, name, "it has %.4g Gb/s beside %.4g of others", exam_nic_gbits(nic),
                            exam_fastest(x));
        return;
    }
    if (count_down(x, members))
        price_down(x, nic, name, mode);
    else if (all > 1 && !strcmp(mode, "balance-rr"))
        exam_remedy(
            x,
            exam_found(x, name, "packets of one connection overtake each other (mode balance-rr)"),
            "sudo ip link set %s type bond mode 802.3ad", name);
    else if (has_policy(mode))
        hash_of(x, nic, name, all);
    else
        exam_fine(x, name);
}

static void look_bonds(struct exam *x)
{
    each_nic(x, is_bond, bond_of);
}

const struct exam_check exam_network[] = {
    {.id = "mtu",
     .question = "Do fast interfaces use jumbo frames, and none less than 1500 bytes?",
     .seen = "/sys/class/net/*/mtu; the largest that the driver allows by rtnetlink",
     .pipes = "Network|" EXAM_GROUP,
     .look = look_mtu},
    {.id = "shaping",
     .question = "Do interfaces send without a limit of software, emulated delay or loss?",
     .seen = "rtnetlink: queue disciplines; of netem and tbf the rates",
     .pipes = "Network*|" EXAM_GROUP,
     .look = look_shaping},
    {.id = "congestion",
     .question = "Is TCP's congestion control made for fast local networks?",
     .seen = "/proc/sys/net/ipv4/tcp_congestion_control",
     .pipes = "Network|" EXAM_GROUP,
     .measured = "*",
     .look = look_congestion},
    {.id = "tcp-buffers",
     .question = "May TCP keep enough data on its way?",
     .seen = "/proc/sys/net/ipv4/tcp_rmem, tcp_wmem, tcp_window_scaling",
     .pipes = "Network|" EXAM_GROUP,
     .look = look_buffers},
    {.id = "packet-loss",
     .question = "Does each interface receive packets whole and in time?",
     .seen = "/sys/class/net/*/statistics, twice",
     .pipes = "Network*|" EXAM_GROUP,
     .counts = true,
     .look = look_losses},
    {.id = "link-flaps",
     .question = "Do the lines stay up?",
     .seen = "/sys/class/net/*/carrier_changes, twice; /proc/uptime",
     .pipes = "Network*|" EXAM_GROUP,
     .counts = true,
     .look = look_flaps},
    {.id = "interrupts",
     .question = "Do the interrupts of each fast interface go to several CPUs near it?",
     .seen = "/proc/interrupts, /proc/irq/*/effective_affinity_list",
     .pipes = "Network*|" EXAM_GROUP,
     .look = look_interrupts},
    {.id = "bond",
     .question = "Does each bond for data use all its members, and keep the order of packets?",
     .seen = "/sys/class/net/*/bonding",
     .pipes = "Network*|" EXAM_GROUP,
     .look = look_bonds},
    {.id = NULL},
};

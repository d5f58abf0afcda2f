/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of network interfaces and of TCP. See exam.h. */
#include <math.h>
#include <string.h>

#include "core/hw/nic.h"
#include "harness/exam/exam.h"

static bool is_up(const json_t *nic)
{
    return fact_is(nic, "state", "up") && !fact_is(nic, "kind", "loopback");
}

/* ---- MTU */

enum { STANDARD = 1500, JUMBO = 9000, JUMBO_LEAST = 8000 };

/* From here on, an interface is there for data. 10 Gb/s serves management, too. */
#define JUMBO_GBITS_PER_S 25

static double payload_share(const struct exam *x, double mtu)
{
    const json_t *tcp = exam_peek(x, "tcp");
    const struct framing_tcp f = {
        .mtu = fact_whole(mtu),
        .options = fact_number(tcp, "timestamps", 1) > 0 ? FRAMING_TCP_TIMESTAMPS : 0};

    return framing_tcp_fraction(&f);
}

/* Interfaces whose line is the machine's own. Tunnels, and pairs to containers, leave room for
 * headers of others; what a hypervisor's network leaves to its guests is not theirs to raise. False,
 * too, where what the interface is was not recorded, with an unknown. */
static bool has_frames(struct exam *x, const json_t *nic)
{
    const char *kind = exam_text(x, nic, "kind");

    return kind && (!strcmp(kind, "bond") || (!strcmp(kind, "ethernet") && exam_is_hardware(nic)));
}

/* A pair that leads out of this container by the default route: an overlay, whose headers each packet
 * gets on its way, leaves less than the standard. */
static bool is_overlay(struct exam *x, const json_t *nic)
{
    return fact_has_word(exam_get(x, NULL, "tcp.default_interfaces"), exam_judged(x)) &&
           fact_is(nic, "kind", "veth") && fact_number(nic, "mtu", STANDARD) < STANDARD;
}

static bool mtu_of(struct exam *x, const json_t *nic)
{
    double mtu, now, best, wanted, most, gbits;

    if (is_overlay(x, nic)) {
        exam_found(x,
                   "it leads out of this container with an MTU of %.0f bytes: an overlay wraps "
                   "each packet",
                   fact_number(nic, "mtu", 0));
        return exam_remedy(x, "give the container the host's network (hostNetwork: true, --network "
                              "host), or an adapter of its own");
    }
    if (!has_frames(x, nic) || !exam_number(x, nic, "mtu", &mtu))
        return false;
    most = exam_value(x, nic, "max_mtu", JUMBO);
    gbits = exam_nic_speed(x, nic);
    wanted = most < STANDARD                               ? most
             : most >= JUMBO && gbits >= JUMBO_GBITS_PER_S ? JUMBO
                                                           : STANDARD;
    if (mtu >= wanted || mtu >= JUMBO_LEAST)
        return true;
    if (fact_is(nic, "nature", "sriov-vf"))
        return exam_unknown(x,
                            "its MTU is %.0f bytes; whether the hypervisor's network carries "
                            "more is not visible here",
                            mtu);
    now = payload_share(x, mtu);
    best = payload_share(x, wanted);
    exam_found(x, "its MTU is %.0f bytes: headers take %.1f %% of the line", mtu, 100 * (1 - now));
    if (isfinite(now) && now < best)
        exam_price(x, 1 - now / best, "TCP bandwidth",
                   "1 - %.4f/%.4f: payload of full frames at MTU %.0f and %.0f", now, best, mtu,
                   wanted);
    return exam_remedy(
        x, "sudo ip link set {} mtu %.0f, as on all hosts and switches of the network", wanted);
}

/* ---- Queue disciplines */

/* Others may hold packets back, by rates or rules that are not read: htb, hfsc, cake. */
#define FREE_DISCIPLINES "mq|mqprio|fq_codel|fq|pfifo_fast|noqueue|pfifo|bfifo|codel"

static bool shaping_of(struct exam *x, const json_t *nic)
{
    const json_t *list = exam_fact(x, nic, "qdiscs");
    const json_t *netem = fact_one_of(list, "kind", "netem"),
                 *tbf = fact_one_of(list, "kind", "tbf");
    double rate = fact_number(tbf ? tbf : netem, "rate_gbits_per_s", 0), line;

    if (!netem && !tbf) {
        FACT_EACH (list, one)
            if (!fact_fits(FREE_DISCIPLINES, fact_name(one, "kind")))
                return exam_unknown(
                    x, "its queue discipline %s may hold packets back: see tc -s qdisc",
                    fact_name(one, "kind"));
        return list;
    }
    line = exam_nic_speed(x, nic);
    if (netem)
        exam_found(x, "netem delays its packets by %.4g ms and drops %.3g %% of them",
                   fact_number(netem, "delay_us", 0) / 1e3, fact_number(netem, "loss_percent", 0));
    else
        exam_found(x, "a token bucket (tbf) holds it to %.4g Gb/s", rate);
    if (rate > 0 && line > rate)
        exam_price_rest(x, rate, line, "network bandwidth", "Gb/s");
    return true;
}

/* ---- TCP */

/* Below these, a window is used up within a round trip of a local network. */
#define BUFFER_LEAST (1024. * 1024)

static bool judge_buffers(struct exam *x)
{
    double receive, send, scaling;

    if (!exam_number(x, NULL, "tcp.receive_auto_bytes", &receive) ||
        !exam_number(x, NULL, "tcp.send_auto_bytes", &send) ||
        !exam_number(x, NULL, "tcp.window_scaling", &scaling))
        return false;
    if (scaling < 1) {
        exam_found(x, "window scaling is off: 64 KiB at most are on their way");
        exam_remedy(x, "sudo sysctl net.ipv4.tcp_window_scaling=1");
    } else if (receive < BUFFER_LEAST || send < BUFFER_LEAST) {
        exam_found(x, "buffers grow to %.4g KiB for receiving and %.4g KiB for sending",
                   receive / 1024, send / 1024);
    }
    return true;
}

/* ---- What interfaces lost */

/* Of all packets; and so many that chance does not make them. */
#define LOST_SHARE    1e-5
#define LOST_LEAST    100
#define DROPPED_SHARE 1e-3

static const char *const packets[] = {"rx_packets", "tx_packets", NULL};
static const char *const full[] = {"rx_missed_errors", "rx_fifo_errors", NULL};
static const char *const broken[] = {"rx_crc_errors", "tx_carrier_errors", "collisions", NULL};
static const struct exam_share damaged = {"counters", broken,     "counters",
                                          packets,    LOST_SHARE, LOST_LEAST};
static const struct exam_share missed = {"counters", full,       "counters",
                                         packets,    LOST_SHARE, LOST_LEAST};

/* Of drivers that count a full ring in rx_dropped, where the kernel counts packets of no use, too. */
static void judge_drops(struct exam *x, const json_t *nic)
{
    struct exam_span span;
    double dropped;

    if (!fact_fits("ena|virtio_net|hv_netvsc", fact_name(nic, "driver")))
        return;
    exam_share_when(x, nic, &missed, &span);
    exam_get(x, nic, "driver");
    dropped = exam_value(x, nic, "counters.rx_dropped", 0);
    if (dropped > LOST_LEAST && dropped > DROPPED_SHARE * span.all)
        exam_unknown(x, "%.0f packets were dropped: its ring was full, or nothing here wanted them",
                     dropped);
}

static bool losses_of(struct exam *x, const json_t *nic)
{
    static const struct exam_event losses[] = {
        {.share = &damaged,
         .found = "{bad} of {all} packets were damaged on the line, {when}",
         .undated = "packets were damaged on the line in"},
        {.share = &missed,
         .found = "{bad} of {all} packets came while its ring was full, {when}",
         .undated = "packets came while its ring was full, in",
         .remedy = "sudo ethtool -G {} rx {rings.rx_max|4096}"},
        {.found = NULL}};
    enum exam_when when = exam_events(x, nic, losses);

    if (when == EXAM_FEW)
        judge_drops(x, nic);
    return when != EXAM_NOT_READ;
}

/* A boot, and who sets a machine up, change a line's state a few times. A sound line goes down when
 * its switch restarts: less than once a week. Within an hour a switch does so once or twice. */
#define CHANGES_MOST    20
#define CHANGES_AT_ONCE 4

static const char *const changes[] = {"carrier_changes", NULL};
static const struct exam_event flaps[] = {
    {.rate = &(const struct exam_rate){"counters", changes, 2. / 7, CHANGES_MOST, CHANGES_AT_ONCE},
     .found = "its line went up or down {bad} times {when}",
     .undated = "changes of its line in"},
    {.found = NULL}};

/* A wireless line goes down whenever the machine sleeps or moves. */
static bool has_cable(const json_t *nic)
{
    return exam_nic_is_real(nic) && !fact_is(nic, "kind", "wifi");
}

/* ---- Interrupts */

/* One core takes in what a slower line brings. */
#define ONE_CPU_GBITS_PER_S 10

static bool interrupts_of(struct exam *x, const json_t *nic)
{
    double gbits = exam_nic_speed(x, nic), queues, node, threads;
    const json_t *nodes;
    const char *cpus;
    bool near = false;

    if (gbits > 0 && gbits < ONE_CPU_GBITS_PER_S)
        return exam_not_applicable(x, "one CPU is enough for %.4g Gb/s", gbits);
    cpus = exam_text(x, nic, "interrupts.cpus");
    if (!cpus)
        return false;
    queues = fact_number(exam_get(x, nic, "queues"), "receive", 0);
    node = exam_value(x, nic, "numa_node", -1);
    nodes = exam_get(x, nic, "interrupts.numa_nodes");
    threads = exam_value(x, NULL, "cpu.threads", 2);
    FACT_EACH (nodes, one) /* the interface's own, or another of its socket */
        near |= exam_near(x, node, json_number_value(one));
    if (queues > 1 && threads > 1 && *cpus && !strpbrk(cpus, ",-"))
        exam_found(x, "the interrupts of all its %.0f queues go to CPU %s", queues, cpus);
    else if (node >= 0 && json_array_size(nodes) && !near)
        exam_found(x, "its interrupts go to CPUs %s, and none is near its NUMA node %.0f", cpus,
                   node);
    return true;
}

/* ---- Bonds */

static bool is_bond(const json_t *nic)
{
    return is_up(nic) && fact_is(nic, "kind", "bond");
}

static size_t count_down(const struct exam *x, const json_t *members)
{
    const json_t *nic;
    size_t down = 0;

    FACT_EACH (members, member) {
        nic = exam_nic(x, fact_word(member));
        /* the second is of one that stands on another interface: a VLAN, an end of a pair */
        down += nic && (fact_is(nic, "state", "down") || fact_is(nic, "state", "lowerlayerdown"));
    }
    return down;
}

/* Between two hosts all but the ports of TCP and UDP is the same in each packet. */
static bool judge_hash(struct exam *x, const json_t *nic, size_t all)
{
    const char *policy = exam_text(x, nic, "bond.hash_policy");

    if (!policy)
        return false;
    if (all < 2 || strstr(policy, "3+4"))
        return true;
    exam_found(x, "all connections to one host take one of its %zu members (%s)", all, policy);
    exam_price(x, 1 - 1 / (double)all, "bandwidth between two hosts",
               "1 - 1/%zu members, if they are alike", all);
    return exam_remedy(x, "sudo ip link set {} type bond xmit_hash_policy layer3+4");
}

/* A bond that so much faster interfaces or ports stand beside is there for management. */
#define ASIDE 4

static bool bond_of(struct exam *x, const json_t *nic)
{
    const char *mode = exam_text(x, nic, "bond.mode");
    const json_t *members = mode ? exam_fact(x, nic, "bond.members") : NULL;
    size_t all = json_array_size(members), down = count_down(x, members);
    double own;

    if (!members)
        return false;
    own = exam_nic_speed(x, nic);
    if (own > 0 && ASIDE * own <= exam_fastest(x))
        return exam_not_applicable(x, "it has %.4g Gb/s beside %.4g of others", own,
                                   exam_fastest(x));
    if (down) {
        exam_found(x, "%zu of its %zu members are down", down, all);
        if (fact_fits("802.3ad|balance-*", mode)) /* all members send at once */
            exam_price(x, (double)down / (double)all, "network bandwidth",
                       "%zu/%zu members, if they are alike", down, all);
    } else if (all > 1 && !strcmp(mode, "balance-rr")) {
        exam_found(x, "packets of one connection overtake each other (mode balance-rr)");
        exam_remedy(x, "sudo ip link set {} type bond mode 802.3ad");
    } else if (fact_fits("802.3ad|balance-xor", mode)) {
        return judge_hash(x, nic, all);
    }
    return true;
}

const struct exam_check exam_network[] = {
    {.id = "mtu",
     .question = "Do fast interfaces use jumbo frames, and none less than 1500 bytes?",
     .seen = "/sys/class/net/*/mtu; the largest that the driver allows by rtnetlink",
     .pipes = "Network|" EXAM_GROUP,
     .which = is_up,
     .each = EXAM_NICS,
     .judge_one = mtu_of},
    {.id = "shaping",
     .question = "Do interfaces send without a limit of software, emulated delay or loss?",
     .seen = "rtnetlink: queue disciplines; of netem and tbf the rates",
     .pipes = "Network*|" EXAM_GROUP,
     .remedy = "sudo tc qdisc del dev {} root",
     .which = is_up,
     .each = EXAM_NICS,
     .judge_one = shaping_of},
    {.id = "congestion",
     .question = "Is TCP's congestion control made for fast local networks?",
     .seen = "/proc/sys/net/ipv4/tcp_congestion_control",
     .pipes = "Network|" EXAM_GROUP,
     .measured = "*",
     .remedy = "sudo sysctl net.ipv4.tcp_congestion_control=cubic",
     .subject = "tcp",
     .fact = "tcp.congestion_control",
     /* Others take what is left over, or pace by a model of the path; --measure prices them. */
     .good = "cubic|reno|dctcp|bic|htcp|illinois",
     .found = "congestion control is \"{tcp.congestion_control}\", which sends by its own estimate "
              "of the path"},
    {.id = "tcp-buffers",
     .question = "May TCP keep enough data on its way?",
     .seen = "/proc/sys/net/ipv4/tcp_rmem, tcp_wmem, tcp_window_scaling",
     .pipes = "Network|" EXAM_GROUP,
     .remedy = "sudo sysctl net.ipv4.tcp_rmem='4096 131072 6291456' "
               "net.ipv4.tcp_wmem='4096 16384 4194304'",
     .subject = "tcp",
     .judge = judge_buffers},
    {.id = "packet-loss",
     .question = "Does each interface receive packets whole and in time?",
     .seen = "/sys/class/net/*/statistics, twice",
     .pipes = "Network*|" EXAM_GROUP,
     .counts = true,
     .remedy = "replace cable and transceiver of {}",
     .which = exam_nic_is_real,
     .each = EXAM_NICS,
     .judge_one = losses_of},
    {.id = "link-flaps",
     .question = "Do the lines stay up?",
     .seen = "/sys/class/net/*/carrier_changes, twice; /proc/uptime",
     .pipes = "Network*|" EXAM_GROUP,
     .counts = true,
     .remedy = "sudo dmesg | grep {}; replace cable or transceiver",
     .which = has_cable,
     .each = EXAM_NICS,
     .events = flaps},
    {.id = "interrupts",
     .question = "Do the interrupts of each fast interface go to several CPUs near it?",
     .seen = "/proc/interrupts, /proc/irq/*/effective_affinity_list",
     .pipes = "Network*|" EXAM_GROUP,
     .remedy = "sudo systemctl restart irqbalance",
     .which = exam_nic_is_real,
     .each = EXAM_NICS,
     .judge_one = interrupts_of},
    {.id = "bond",
     .question = "Does each bond for data use all its members, and keep the order of packets?",
     .seen = "/sys/class/net/*/bonding",
     .pipes = "Network*|" EXAM_GROUP,
     .remedy = "ip link show master {}",
     .which = is_bond,
     .each = EXAM_NICS,
     .judge_one = bond_of},
    {.id = NULL},
};

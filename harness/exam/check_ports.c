/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of RDMA ports: rate, packets and counters. See exam.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/nic.h"
#include "harness/exam/exam.h"

typedef void port_fn(struct exam *x, const json_t *device, const json_t *port, const char *name);

static void each_port(struct exam *x, port_fn *look)
{
    const json_t *devices = exam_list(x, "rdma"), *device, *port;
    size_t i, k;

    json_array_foreach (devices, i, device) {
        const char *name = exam_name(device, "name");

        if (!exam_fact(x, name, device, "ports"))
            continue;
        json_array_foreach (json_object_get(device, "ports"), k, port)
            look(x, device, port, exam_format(x, "%s:%.0f", name, exam_value(port, "port", 0)));
    }
}

static bool is_hardware(const json_t *device)
{
    return exam_is(device, "nature", "physical") || exam_is(device, "nature", "passthrough") ||
           exam_is(device, "nature", "sriov-vf");
}

static bool is_active(const json_t *port)
{
    return exam_is(port, "state", "ACTIVE");
}

/* It has no packets of RoCE. */
static bool is_iwarp(const json_t *device)
{
    return exam_is(device, "driver", "siw") || exam_is(device, "node_type", "RNIC");
}

/* ---- Rate */

/* One device id is sold as boards of several rates: the board's ids count, too. */
static bool is_same_board(const json_t *a, const json_t *b)
{
    static const char *const ids[] = {"vendor_id", "device_id", "subsystem_vendor_id",
                                      "subsystem_device_id"};

    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
        if (!*exam_name(a, ids[i]) || !exam_is(b, ids[i], exam_name(a, ids[i])))
            return false;
    return true;
}

/* The fastest port with the same link layer, of the same board. */
static double best_of_its_kind(const struct exam *x, const json_t *device, const char *layer)
{
    const json_t *own = exam_device(x, exam_name(device, "pci")), *other, *port;
    double best = 0;
    size_t i, k;

    json_array_foreach (json_object_get(exam_machine(x), "rdma"), i, other) {
        const json_t *function = exam_device(x, exam_name(other, "pci"));

        if (!own || !function || !is_hardware(other) || !is_same_board(own, function))
            continue;
        json_array_foreach (json_object_get(other, "ports"), k, port)
            if (is_active(port) && exam_is(port, "link_layer", layer) &&
                exam_value(port, "rate_gbits_per_s", 0) > best)
                best = exam_value(port, "rate_gbits_per_s", 0);
    }
    return best;
}

static void rate_of(struct exam *x, const json_t *device, const json_t *port, const char *name)
{
    const char *lanes = exam_name(port, "lanes");
    double rate, best;
    struct exam_result *r;

    if (!is_hardware(device) || !is_active(port) ||
        !exam_number(x, name, port, "rate_gbits_per_s", &rate))
        return;
    exam_get(x, port, "lanes");
    best = best_of_its_kind(x, device, exam_name(port, "link_layer"));
    exam_get(x, port, "link_layer");
    /* InfiniBand has four lanes. Of Ethernet, 10, 25, 50 and 100 Gb/s may be one lane as built. */
    if (exam_is(port, "link_layer", "InfiniBand") && !strncmp(lanes, "1X", 2) && best < 4 * rate)
        best = 4 * rate;
    if (rate >= best) {
        exam_fine(x, name);
        return;
    }
    r = exam_found(x, name, "its port runs at %.4g Gb/s (%s), of %.4g that its kind can do", rate,
                   *lanes ? lanes : "lanes not known", best);
    exam_price(x, r, 1 - rate / best, "RDMA bandwidth", "1 - %.4g/%.4g Gb/s", rate, best);
    exam_remedy(x, r, "replace the cable of %s, and look at the rate of the switch's port", name);
}

static void look_rate(struct exam *x)
{
    each_port(x, rate_of);
}

/* ---- MTU of RoCE */

enum { MTU_MOST = 4096, MESSAGE = 1 << 20 };

static double payload_share(double mtu)
{
    return framing_rdma_fraction(FRAMING_ROCE_V2_IPV4, RDMA_WRITE, MESSAGE, (unsigned)mtu, false);
}

static const char *netdev_of(const json_t *port)
{
    const json_t *gid;
    size_t i;

    json_array_foreach (json_object_get(port, "gids"), i, gid)
        if (*exam_name(gid, "netdev"))
            return exam_name(gid, "netdev");
    return "ITS-INTERFACE";
}

static void mtu_of(struct exam *x, const json_t *device, const json_t *port, const char *name)
{
    struct exam_result *r;
    double mtu, now, best = payload_share(MTU_MOST);

    if (!exam_is(port, "link_layer", "Ethernet") || is_iwarp(device) || !is_active(port) ||
        !((is_hardware(device) && exam_does_rdma(x, device)) ||
          exam_is(device, "nature", "software")))
        return;
    if (!exam_number(x, name, port, "roce_mtu_bytes", &mtu))
        return;
    now = payload_share(mtu);
    if (mtu >= MTU_MOST || !isfinite(now)) {
        exam_fine(x, name);
        return;
    }
    r = exam_found(x, name, "RoCE packets carry at most %.0f bytes of %d, by the interface's MTU",
                   mtu, MTU_MOST);
    exam_price(x, r, 1 - now / best, "RDMA bandwidth",
               "1 - %.4f/%.4f: payload of a message of 1 MiB in packets of %.0f and %d bytes", now,
               best, mtu, MTU_MOST);
    exam_remedy(x, r, "sudo ip link set %s mtu 9000, as on all hosts and switches",
                netdev_of(port));
}

static void look_mtu(struct exam *x)
{
    each_port(x, mtu_of);
}

/* ---- Counters */

static const char *const received[] = {"port_rcv_packets", NULL};

/* Of all packets; and so many that chance does not make them. */
#define LOST_SHARE   1e-6
#define LOST_LEAST   100
#define MARKED_SHARE 0.01

static const char *const resent[] = {"packet_seq_err", "local_ack_timeout_err", NULL};
static const char *const disordered[] = {"out_of_sequence", NULL};
/* Who sends counts what it sent again, and for a large message gets one packet: the answer. */
static const char *const both_ways[] = {"port_rcv_packets", "port_xmit_packets", NULL};
static const struct exam_share lost = {"hw_counters", resent,     "counters",
                                       both_ways,     LOST_SHARE, LOST_LEAST};
static const struct exam_share late = {"hw_counters", disordered, "counters",
                                       received,      LOST_SHARE, LOST_LEAST};

static void say_lost(struct exam *x, const char *name, const struct exam_span *span, bool ethernet)
{
    exam_remedy(x,
                exam_found(x, name, "%.0f times packets were lost and sent again, of %.0f, %s",
                           span->bad, span->all, span->text),
                ethernet
                    ? "switch flow control (PFC) or congestion control on for %s and its switch"
                    : "sudo ibqueryerrors; replace the cables that it names on the way to %s",
                name);
}

/* Out of order is no loss where routing is adaptive, as it often is on InfiniBand. */
static void losses_of(struct exam *x, const json_t *device, const json_t *port, const char *name)
{
    bool ethernet = exam_is(port, "link_layer", "Ethernet");
    struct exam_span gone, order;
    enum exam_when when, mixed = EXAM_FEW;

    if (!is_hardware(device) || !is_active(port))
        return;
    exam_get(x, port, "link_layer");
    when = exam_share_when(x, name, port, &lost, &gone);
    if (when != EXAM_NOT_READ && ethernet)
        mixed = exam_share_when(x, name, port, &late, &order);
    if (when == EXAM_NOT_READ || mixed == EXAM_NOT_READ)
        return;
    if (when == EXAM_NOW)
        say_lost(x, name, &gone, ethernet);
    else if (mixed == EXAM_NOW)
        exam_remedy(x,
                    exam_found(x, name, "%.0f of %.0f packets came out of order, %s", order.bad,
                               order.all, order.text),
                    "look for full switches (PFC, congestion control), and for adaptive routing, "
                    "on the way to %s",
                    name);
    else if (when == EXAM_UNDATED)
        exam_share_undated(x, name, &gone, "times packets were lost in");
    else if (mixed == EXAM_UNDATED)
        exam_share_undated(x, name, &order, "packets came out of order in");
    else
        exam_fine(x, name);
}

static void look_losses(struct exam *x)
{
    each_port(x, losses_of);
}

static const json_t *interface_of(const struct exam *x, const json_t *device)
{
    const json_t *first = json_array_get(json_object_get(device, "netdevs"), 0), *nic;
    size_t i;

    json_array_foreach (json_object_get(exam_machine(x), "network"), i, nic)
        if (json_is_string(first) && exam_is(nic, "name", json_string_value(first)))
            return nic;
    return NULL;
}

/* Without pause frames, switches may use those of a priority (PFC), which no file shows: a port that
 * loses nothing has what it needs. */
static void pauses_of(struct exam *x, const json_t *device, const json_t *port, const char *name)
{
    const json_t *nic = interface_of(x, device), *pause;
    struct exam_span gone;
    enum exam_when when;

    if (!is_hardware(device) || !is_active(port) || !exam_is(port, "link_layer", "Ethernet") ||
        !nic)
        return;
    when = exam_share_when(x, name, port, &lost, &gone);
    if (when == EXAM_NOT_READ)
        return;
    pause = when == EXAM_FEW ? NULL : exam_fact(x, name, nic, "pause");
    if (when != EXAM_FEW && !pause)
        return;
    if (when == EXAM_FEW || exam_value(pause, "rx", 1) > 0 || exam_value(pause, "tx", 1) > 0)
        exam_fine(x, name);
    else if (when == EXAM_UNDATED)
        exam_share_undated(x, name, &gone, "times packets were lost, without pause frames, in");
    else
        exam_remedy(x,
                    exam_found(x, name,
                               "packets are lost, and pause frames are off: nothing slows its "
                               "senders down"),
                    "use PFC on adapters and switches, or sudo ethtool -A %s rx on tx on",
                    exam_name(nic, "name"));
}

static void look_pauses(struct exam *x)
{
    each_port(x, pauses_of);
}

static void marks_of(struct exam *x, const json_t *device, const json_t *port, const char *name)
{
    static const char *const marked[] = {"np_ecn_marked_roce_packets", NULL};
    static const struct exam_share share = {"hw_counters", marked,       "counters",
                                            received,      MARKED_SHARE, LOST_LEAST};
    struct exam_span span;
    enum exam_when when;

    if (!is_hardware(device) || !is_active(port) || !exam_is(port, "link_layer", "Ethernet"))
        return;
    when = exam_share_when(x, name, port, &share, &span);
    if (when == EXAM_NOW)
        exam_remedy(x,
                    exam_found(x, name,
                               "switches marked %.1f %% of its packets %s: their queues were above "
                               "the marking threshold",
                               100 * span.bad / span.all, span.text),
                    "look at the load of the switches, and at flows that share an uplink");
    else if (when == EXAM_UNDATED)
        exam_share_undated(x, name, &span, "packets were marked by switches in");
    else if (when == EXAM_FEW)
        exam_fine(x, name);
}

static void look_marks(struct exam *x)
{
    each_port(x, marks_of);
}

/* The wrong bits that InfiniBand allows. */
#define BIT_ERRORS 1e-12

static const char *const damages[] = {"port_rcv_errors", NULL};
static const char *const downs[] = {"link_downed", "link_error_recovery", NULL};
static const char *const symbols[] = {"symbol_error", NULL};

/* A boot takes a link down once or twice, and a switch that restarts: less than once a week. */
static const struct exam_rate going_down = {"counters", downs, 1. / 7, 10, 4};
static const struct exam_share damaged = {"counters", damages,    "counters",
                                          received,   LOST_SHARE, 100};

/* Symbols are a few bits each: one of them wrong is one error of so many bits, or of fewer. False:
 * an unknown was added. */
static bool symbols_when(struct exam *x, const json_t *port, const char *name, enum exam_when *when,
                         struct exam_span *span)
{
    struct exam_rate rate = {"counters", symbols, 0, 100, 100};
    double gbits, count, grown;

    if (!exam_sum(x, name, port, "counters", symbols, &count))
        return false;
    *when = EXAM_FEW;
    if (count <= rate.most &&
        !(exam_grown(x, port, "counters", symbols, &grown) && grown > rate.at_once))
        return true;
    if (!exam_number(x, name, port, "rate_gbits_per_s", &gbits))
        return false;
    rate.per_day = BIT_ERRORS * gbits * 1e9 * 86400;
    rate.most = fmax(rate.most, rate.per_day / 24);
    *when = exam_rate_when(x, name, port, &rate, span);
    return *when != EXAM_NOT_READ;
}

enum trouble { DOWNS, DAMAGES, SYMBOLS, TROUBLES };

static void find_trouble(struct exam *x, const char *name, enum trouble trouble,
                         const struct exam_span *span)
{
    struct exam_result *r;

    if (trouble == DOWNS) {
        r = exam_found(x, name, "its link went down or recovered %.0f times %s", span->bad,
                       span->text);
        exam_remedy(x, r, "replace cable or transceiver of %s", name);
        return;
    }
    if (trouble == DAMAGES)
        r = exam_found(x, name, "%.0f of %.0f packets were damaged on its line, %s", span->bad,
                       span->all, span->text);
    else
        r = exam_found(x, name, "%.0f symbol errors %s: more than InfiniBand allows", span->bad,
                       span->text);
    exam_remedy(x, r, "clean or replace cable and transceiver of %s", name);
}

/* The first that is found, else the first of which the time is not known. */
static void line_of(struct exam *x, const json_t *device, const json_t *port, const char *name)
{
    static const char *const undated[TROUBLES] = {
        "times down or recovered, in", "packets were damaged on its line in", "symbol errors in"};
    struct exam_span spans[TROUBLES];
    enum exam_when when[TROUBLES];

    if (!is_hardware(device))
        return;
    when[DOWNS] = exam_rate_when(x, name, port, &going_down, &spans[DOWNS]);
    if (when[DOWNS] == EXAM_NOT_READ)
        return;
    when[DAMAGES] = exam_share_when(x, name, port, &damaged, &spans[DAMAGES]);
    if (when[DAMAGES] == EXAM_NOT_READ ||
        !symbols_when(x, port, name, &when[SYMBOLS], &spans[SYMBOLS]))
        return;
    for (int state = EXAM_NOW; state <= EXAM_UNDATED; state++)
        for (int trouble = 0; trouble < TROUBLES; trouble++) {
            if (when[trouble] != (enum exam_when)state)
                continue;
            if (state == EXAM_NOW)
                find_trouble(x, name, trouble, &spans[trouble]);
            else
                exam_share_undated(x, name, &spans[trouble], undated[trouble]);
            return;
        }
    exam_fine(x, name);
}

static void look_line(struct exam *x)
{
    each_port(x, line_of);
}

const struct exam_check exam_ports[] = {
    {.id = "rdma-rate",
     .question = "Does each port run at the rate and width of its kind?",
     .seen = "rate of each port, and of the machine's other adapters with the same ids",
     .more = "the switch: what its port allows",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_rate},
    {.id = "rdma-mtu",
     .question = "May RoCE use its largest packets?",
     .seen = "MTU of the interface, from which the kernel takes that of RoCE",
     .pipes = "Network|GPU memory by RDMA|" EXAM_GROUP,
     .look = look_mtu},
    {.id = "rdma-loss",
     .question = "Do RDMA packets arrive, and in order?",
     .seen =
         "hw_counters, twice: packet_seq_err, local_ack_timeout_err; on Ethernet out_of_sequence",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .counts = true,
     .look = look_losses},
    {.id = "rdma-pause",
     .question = "Are the senders of a RoCE port that loses packets slowed down?",
     .seen = "hw_counters of each port, twice; ethtool's pause parameters of its interface",
     .more = "the switch: priority flow control (PFC)",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .counts = true,
     .look = look_pauses},
    {.id = "rdma-congestion",
     .question = "Do the switches on the way of RoCE packets rarely mark congestion?",
     .seen = "hw_counters of each port, twice: np_ecn_marked_roce_packets",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .counts = true,
     .look = look_marks},
    {.id = "rdma-line",
     .question = "Do the ports stay up and receive without errors?",
     .seen = "counters of each port, twice: link_downed, symbol_error and others; /proc/uptime",
     .pipes = "Network*|GPU memory by RDMA|" EXAM_GROUP,
     .counts = true,
     .look = look_line},
    {.id = NULL},
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of RDMA ports: rate, packets and counters. See exam.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/nic.h"
#include "harness/exam/exam.h"

static bool is_ethernet(const json_t *port)
{
    return fact_is(port, "link_layer", "Ethernet");
}

/* An active port of an adapter in hardware. */
static bool is_in_use(const struct exam *x, const json_t *port)
{
    return exam_is_hardware(exam_adapter(x)) && exam_is_active(port);
}

/* ---- Rate */

/* The fastest port with the same link layer, of the same board. */
static double best_of_its_kind(const struct exam *x, const char *layer)
{
    const json_t *own = exam_device(x, fact_name(exam_adapter(x), "pci"));
    double best = 0;

    FACT_EACH (exam_peek(x, "rdma"), other) {
        const json_t *function = exam_device(x, fact_name(other, "pci"));

        if (!own || !function || !exam_is_hardware(other) || !exam_same_board(own, function))
            continue;
        FACT_EACH (json_object_get(other, "ports"), port)
            if (exam_is_active(port) && fact_is(port, "link_layer", layer))
                best = fmax(best, fact_number(port, "rate_gbits_per_s", 0));
    }
    return best;
}

static bool rate_of(struct exam *x, const json_t *port)
{
    const char *lanes, *layer;
    double rate, best;

    if (!is_in_use(x, port) || !exam_number(x, port, "rate_gbits_per_s", &rate))
        return false;
    lanes = fact_word(exam_get(x, port, "lanes"));
    layer = fact_word(exam_get(x, port, "link_layer"));
    best = best_of_its_kind(x, layer);
    /* InfiniBand has four lanes. Of Ethernet, 10, 25, 50 and 100 Gb/s may be one lane as built. */
    if (!strcmp(layer, "InfiniBand") && !strncmp(lanes, "1X", 2))
        best = fmax(best, 4 * rate);
    if (rate < best) {
        exam_found(x, "its port runs at %.4g Gb/s (%s), of %.4g that its kind can do", rate,
                   *lanes ? lanes : "lanes not known", best);
        exam_price_rest(x, rate, best, "RDMA bandwidth", "Gb/s");
    }
    return true;
}

/* ---- MTU of RoCE */

enum { MTU_MOST = 4096, MESSAGE = 1 << 20 };

static double payload_share(double mtu)
{
    return framing_rdma_fraction(FRAMING_ROCE_V2_IPV4, RDMA_WRITE, MESSAGE, fact_whole(mtu), false);
}

static bool mtu_of(struct exam *x, const json_t *port)
{
    const json_t *device = exam_adapter(x);
    double mtu, now, best = payload_share(MTU_MOST);
    const char *name = "";

    /* iWARP has no packets of RoCE */
    if (!is_ethernet(port) || !exam_is_active(port) || fact_is(device, "driver", "siw") ||
        fact_is(device, "node_type", "RNIC") ||
        !((exam_is_hardware(device) && exam_does_rdma(x, device)) ||
          fact_is(device, "nature", "software")) ||
        !exam_number(x, port, "roce_mtu_bytes", &mtu))
        return false;
    now = payload_share(mtu);
    if (mtu >= MTU_MOST || !isfinite(now))
        return true;
    exam_found(x, "RoCE packets carry at most %.0f bytes of %d, by the interface's MTU", mtu,
               MTU_MOST);
    exam_price(x, 1 - now / best, "RDMA bandwidth",
               "1 - %.4f/%.4f: payload of a message of 1 MiB in packets of %.0f and %d bytes", now,
               best, mtu, MTU_MOST);
    FACT_EACH (json_object_get(port, "gids"), gid)
        name = *name ? name : fact_name(gid, "netdev");
    return exam_remedy(x, "sudo ip link set %s mtu 9000, as on all hosts and switches",
                       *name ? name : "ITS-INTERFACE");
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

#define LOST(what_to_do)                                                                           \
    {                                                                                              \
        .share = &lost, .found = "{bad} times packets were lost and sent again, of {all}, {when}", \
        .undated = "times packets were lost in", .remedy = (what_to_do)                            \
    }

/* Out of order is no loss where routing is adaptive, as it often is on InfiniBand. */
static bool losses_of(struct exam *x, const json_t *port)
{
    static const struct exam_event
        infiniband[] = {LOST("sudo ibqueryerrors; replace the cables that it names on the way to "
                             "{}"),
                        {.found = NULL}},
        ethernet[] = {LOST(NULL),
                      {.share = &late,
                       .found = "{bad} of {all} packets came out of order, {when}",
                       .undated = "packets came out of order in",
                       .remedy = "look for full switches (PFC, congestion control), and for "
                                 "adaptive routing, on the way to {}"},
                      {.found = NULL}};

    if (!is_in_use(x, port))
        return false;
    return exam_events(x, port,
                       !strcmp(fact_word(exam_get(x, port, "link_layer")), "Ethernet")
                           ? ethernet
                           : infiniband) != EXAM_NOT_READ;
}

/* Without pause frames, switches may use those of a priority (PFC), which no file shows: a port that
 * loses nothing has what it needs. */
static bool pauses_of(struct exam *x, const json_t *port)
{
    const json_t *first = json_array_get(json_object_get(exam_adapter(x), "netdevs"), 0),
                 *nic = exam_nic(x, fact_word(first)), *pause;
    struct exam_span gone;
    enum exam_when when;

    if (!is_in_use(x, port) || !is_ethernet(port) || !nic)
        return false;
    when = exam_share_when(x, port, &lost, &gone);
    if (when == EXAM_NOT_READ || when == EXAM_FEW)
        return when == EXAM_FEW;
    pause = exam_fact(x, nic, "pause");
    if (!pause || fact_number(pause, "rx", 1) > 0 || fact_number(pause, "tx", 1) > 0)
        return pause;
    if (when == EXAM_UNDATED) {
        exam_share_undated(x, &gone, "times packets were lost, without pause frames, in");
        return true;
    }
    exam_found(x, "packets are lost, and pause frames are off: nothing slows its senders down");
    return exam_remedy(x, "use PFC on adapters and switches, or sudo ethtool -A %s rx on tx on",
                       fact_name(nic, "name"));
}

static bool marks_of(struct exam *x, const json_t *port)
{
    static const char *const marked[] = {"np_ecn_marked_roce_packets", NULL};
    static const struct exam_share share = {"hw_counters", marked,       "counters",
                                            received,      MARKED_SHARE, LOST_LEAST};
    static const struct exam_event marks[] = {
        {.share = &share,
         .found = "switches marked {percent} % of its packets {when}: their queues were above the "
                  "marking threshold",
         .undated = "packets were marked by switches in"},
        {.found = NULL}};

    return is_in_use(x, port) && is_ethernet(port) && exam_events(x, port, marks) != EXAM_NOT_READ;
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

/* Symbols are a few bits each: one of them wrong is one error of so many bits, or of fewer. */
static enum exam_when symbols_when(struct exam *x, const json_t *port, struct exam_span *span)
{
    struct exam_rate rate = {"counters", symbols, 0, 100, 100};
    double gbits, count, grown;

    if (!exam_sum(x, port, "counters", symbols, &count))
        return EXAM_NOT_READ;
    if (count <= rate.most &&
        !(exam_grown(x, port, "counters", symbols, &grown) && grown > rate.at_once))
        return EXAM_FEW;
    if (!exam_number(x, port, "rate_gbits_per_s", &gbits))
        return EXAM_NOT_READ;
    rate.per_day = BIT_ERRORS * gbits * 1e9 * 86400;
    rate.most = fmax(rate.most, rate.per_day / 24);
    return exam_rate_when(x, port, &rate, span);
}

static bool line_of(struct exam *x, const json_t *port)
{
    static const struct exam_event troubles[] = {
        {.rate = &going_down,
         .found = "its link went down or recovered {bad} times {when}",
         .undated = "times down or recovered, in",
         .remedy = "replace cable or transceiver of {}"},
        {.share = &damaged,
         .found = "{bad} of {all} packets were damaged on its line, {when}",
         .undated = "packets were damaged on its line in"},
        {.when = symbols_when,
         .found = "{bad} symbol errors {when}: more than InfiniBand allows",
         .undated = "symbol errors in"},
        {.found = NULL}};

    return exam_is_hardware(exam_adapter(x)) && exam_events(x, port, troubles) != EXAM_NOT_READ;
}

const struct exam_check exam_ports[] = {
    {.id = "rdma-rate",
     .question = "Does each port run at the rate and width of its kind?",
     .seen = "rate of each port, and of the machine's other adapters with the same ids",
     .more = "the switch: what its port allows",
     .pipes = EXAM_LINES,
     .remedy = "replace the cable of {}, and look at the rate of the switch's port",
     .each = EXAM_KNOWN_PORTS,
     .judge_one = rate_of},
    {.id = "rdma-mtu",
     .question = "May RoCE use its largest packets?",
     .seen = "MTU of the interface, from which the kernel takes that of RoCE",
     .pipes = "Network|GPU memory by RDMA|" EXAM_GROUP,
     .each = EXAM_KNOWN_PORTS,
     .judge_one = mtu_of},
    {.id = "rdma-loss",
     .question = "Do RDMA packets arrive, and in order?",
     .seen =
         "hw_counters, twice: packet_seq_err, local_ack_timeout_err; on Ethernet out_of_sequence",
     .pipes = EXAM_LINES,
     .counts = true,
     .remedy = "switch flow control (PFC) or congestion control on for {} and its switch",
     .each = EXAM_KNOWN_PORTS,
     .judge_one = losses_of},
    {.id = "rdma-pause",
     .question = "Are the senders of a RoCE port that loses packets slowed down?",
     .seen = "hw_counters of each port, twice; ethtool's pause parameters of its interface",
     .more = "the switch: priority flow control (PFC)",
     .pipes = EXAM_LINES,
     .counts = true,
     .each = EXAM_KNOWN_PORTS,
     .judge_one = pauses_of},
    {.id = "rdma-congestion",
     .question = "Do the switches on the way of RoCE packets rarely mark congestion?",
     .seen = "hw_counters of each port, twice: np_ecn_marked_roce_packets",
     .pipes = EXAM_LINES,
     .counts = true,
     .remedy = "look at the load of the switches, and at flows that share an uplink",
     .each = EXAM_KNOWN_PORTS,
     .judge_one = marks_of},
    {.id = "rdma-line",
     .question = "Do the ports stay up and receive without errors?",
     .seen = "counters of each port, twice: link_downed, symbol_error and others; /proc/uptime",
     .pipes = EXAM_LINES,
     .counts = true,
     .remedy = "clean or replace cable and transceiver of {}",
     .each = EXAM_KNOWN_PORTS,
     .judge_one = line_of},
    {.id = NULL},
};

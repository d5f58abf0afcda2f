/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of Ethernet lines: the rates of both ends, and pause frames. See exam.h. */
#include <math.h>
#include <string.h>

#include "harness/exam/exam.h"

/* Ports whose line is the machine's own, or was given to it whole. */
static bool has_line(const json_t *nic)
{
    return exam_nic_is_real(nic) && fact_is(nic, "kind", "ethernet") &&
           (fact_is(nic, "nature", "physical") || fact_is(nic, "nature", "passthrough"));
}

/* ---- Rate */

/* One that could do so much less than the fastest is there for management. */
#define ASIDE 4

/* What the other end can do; 0: not known. mlx5_core reads its word by a table that ends at 100 Gb/s,
 * and what is slower than the line runs is no such word. */
static double partner_of(struct exam *x, const json_t *nic, double speed)
{
    const char *driver = fact_word(exam_get(x, nic, "driver"));
    double partner = fact_number(nic, "line.partner_gbits_per_s", 0);

    if (!strcmp(driver, "mlx5_core") && fact_number(nic, "line.own_gbits_per_s", 0) >= 200)
        return 0;
    return partner < speed ? 0 : partner;
}

static bool judge_rate(struct exam *x, const json_t *nic, double speed)
{
    double own = fact_number(nic, "line.own_gbits_per_s", 0),
           offered = fact_number(nic, "line.offered_gbits_per_s", 0),
           partner = partner_of(x, nic, speed), can = fmin(own, partner);
    bool less = offered > 0 && offered < can;

    if (speed >= own)
        return true;
    if (partner <= 0)
        return exam_unknown(x,
                            "its line runs at %.4g Gb/s, and it could do %.4g; what the other "
                            "end can do is not known",
                            speed, own);
    if (speed < can) {
        exam_found(x, "its line runs at %.4g Gb/s; both ends could do %.4g%s", speed, can,
                   less ? ", and it offers less" : "");
        exam_price_rest(x, speed, can, "network bandwidth", "Gb/s");
        if (less)
            exam_remedy(x, "sudo ethtool -s {} autoneg on");
    }
    return true;
}

static bool rate_of(struct exam *x, const json_t *nic)
{
    const json_t *line = exam_fact(x, nic, "line");
    double speed, own = fact_number(line, "own_gbits_per_s", 0);

    if (!line || !exam_number(x, nic, "speed_gbits_per_s", &speed))
        return false;
    if (own > 0 && ASIDE * own <= exam_fastest(x))
        return exam_not_applicable(x, "it could do %.4g Gb/s beside %.4g of others", own,
                                   exam_fastest(x));
    if (fact_number(line, "full_duplex", 1) >= 1)
        return judge_rate(x, nic, speed);
    exam_found(x, "half duplex: it sends or receives, and never does both");
    return exam_remedy(x, "sudo ethtool -s {} autoneg on, and the same on the switch's port");
}

/* ---- Pause frames */

/* Of the time; of a short one more, since one burst fills it; and frames in a second. */
#define PAUSED_SHARE   0.01
#define PAUSED_AT_ONCE 0.05
#define LONG_SECONDS   10
#define PAUSES_PER_S   100
#define PAUSES_LEAST   100
#define HOUR           3600

/* That driver's counters are a copy in memory, which the adapter renews once a second. */
#define COPIED_SECONDS 5

/* One direction of a port, or of a priority of it. */
struct pauses {
    enum exam_when when;
    bool timed;        /* the driver counts the time */
    bool brief;        /* too much for a longer time, and this one says too little */
    double count, per; /* frames or seconds; of that many seconds */
    const char *way;   /* "rx_", "tx_priority3_" */
};

/* So many frames, or seconds, are too much for a time. */
static bool is_much(const struct pauses *p, double count, double seconds)
{
    return p->timed ? count > PAUSED_SHARE * seconds
                    : count >= PAUSES_LEAST && count >= PAUSES_PER_S * seconds;
}

/* Between the readings; or since a boot of today; else few in an hour, or not known when. */
static void date_pauses(struct exam *x, const json_t *nic, const char *key, struct pauses *p)
{
    const char *const keys[] = {key, NULL};
    double unit = p->timed ? 1e-6 : 1, grown, watched = exam_watched(x), uptime, total;
    bool known = exam_grown(x, nic, "pause_counters", keys, &grown);

    uptime = fact_number(exam_peek(x, "load"), "uptime_seconds", 0);
    total = unit * fact_number(json_object_get(nic, "pause_counters"), key, 0);
    p->count = total;
    p->per = uptime;
    p->when = EXAM_UNDATED;
    if (known && is_much(p, unit * grown, watched)) {
        /* Too much, and for so short a time, or of such a driver, not yet a finding. */
        p->brief =
            p->timed && ((watched < LONG_SECONDS && unit * grown <= PAUSED_AT_ONCE * watched) ||
                         (watched < COPIED_SECONDS && fact_is(nic, "driver", "bnxt_en")));
        p->when = p->brief ? EXAM_UNDATED : EXAM_NOW;
        p->count = unit * grown;
        p->per = watched;
    } else if (!is_much(p, total, HOUR) || (known && watched >= HOUR)) {
        p->when = EXAM_FEW;
    } else if (uptime >= 600 && uptime <= 24 * HOUR && is_much(p, total, uptime)) {
        p->when = EXAM_NOW;
    }
}

/* Does the driver count any time of that direction? */
static bool counts_time(const json_t *counters, char direction)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)counters, key, value)
        if (key[0] == direction && strstr(key, "microseconds"))
            return true;
    return false;
}

/* The time counts. Frames tell something only where no time of their direction is counted. False: it
 * has no such. */
static bool read_pauses(struct exam *x, const json_t *nic, const char *way, struct pauses *p)
{
    const json_t *counters = json_object_get(nic, "pause_counters");
    const char *time = exam_format(x, "%smicroseconds", way),
               *frames = exam_format(x, "%sframes", way);

    *p = (struct pauses){.timed = json_object_get(counters, time), .way = way};
    if (!p->timed && (!json_object_get(counters, frames) || counts_time(counters, way[0])))
        return false;
    date_pauses(x, nic, p->timed ? time : frames, p);
    return true;
}

/* Is a worse than b? */
static bool is_worse(const struct pauses *a, const struct pauses *b)
{
    static const int rank[] = {[EXAM_FEW] = 0, [EXAM_UNDATED] = 1, [EXAM_NOW] = 2};

    if (rank[a->when] != rank[b->when])
        return rank[a->when] > rank[b->when];
    if (a->timed != b->timed)
        return a->timed;
    return a->brief != b->brief ? a->brief : a->count > b->count;
}

/* All traffic, and each priority, in both directions; the worst. False: the driver counts none. */
static bool worst_pauses(struct exam *x, const json_t *nic, struct pauses *worst)
{
    struct pauses one;
    bool any = false;

    for (int way = 0; way < 2; way++)
        for (int priority = -1; priority < 8; priority++) {
            const char *start = way ? "tx_" : "rx_";

            if (priority >= 0)
                start = exam_format(x, "%spriority%d_", start, priority);
            if (!read_pauses(x, nic, start, &one))
                continue;
            if (!any || is_worse(&one, worst))
                *worst = one;
            any = true;
        }
    return any;
}

/* "its switch paused priority 3". */
static const char *who_paused(struct exam *x, const struct pauses *p)
{
    const char *number = strstr(p->way, "priority");

    return exam_format(x, "%s paused %s", p->way[0] == 'r' ? "its switch" : "it",
                       number ? exam_format(x, "priority %c", number[8]) : "all traffic");
}

/* The time is that in which it might not send, and it may have had nothing to send. */
static void find_pauses(struct exam *x, const struct pauses *p)
{
#define OF(what)                                                                                   \
    {                                                                                              \
        "bandwidth " what "that it sends", "bandwidth " what "that it receives"                    \
    }
    static const char *const of[][2] = {
        OF("of priority 0 "), OF("of priority 1 "), OF("of priority 2 "),
        OF("of priority 3 "), OF("of priority 4 "), OF("of priority 5 "),
        OF("of priority 6 "), OF("of priority 7 "), OF("")};
    const char *number = strstr(p->way, "priority");
    bool received = p->way[0] == 'r';
    double share = fmin(p->count / p->per, 1);

    exam_found(x, "%s for %.3g %% of %.*f s", who_paused(x, p), 100 * share, p->per < 100, p->per);
    exam_price(x, share, of[number ? number[8] - '0' : 8][!received],
               "at most %.4g of %.*f s, were there always something to send", p->count,
               p->per < 100, p->per)
        ->cost.low = 0;
    if (received)
        exam_remedy(x, "look for the full port or slow receiver behind the switch of {}");
}

static bool pauses_of(struct exam *x, const json_t *nic)
{
    const json_t *counters = exam_fact(x, nic, "pause_counters");
    struct pauses worst = {.way = ""};
    double days;

    if (!counters)
        return false;
    if (!worst_pauses(x, nic, &worst))
        return exam_unknown(x, "pause_counters: no number");
    if (worst.when == EXAM_FEW)
        return true;
    if (!worst.timed)
        return exam_unknown(x, "%s %.0f times within %.*f s; its driver does not count how long",
                            who_paused(x, &worst), worst.count, worst.per < 100, worst.per);
    if (worst.when == EXAM_NOW)
        find_pauses(x, &worst);
    else if (worst.brief)
        exam_unknown(x, "%s for %.3g %% of %.1f s, which may be one burst: --watch 1m tells",
                     who_paused(x, &worst), 100 * fmin(worst.count / worst.per, 1), worst.per);
    else if (exam_days(x, &days))
        exam_undated(x, worst.count, "seconds of pauses in", days);
    return true;
}

const struct exam_check exam_lines[] = {
    {.id = "line-rate",
     .question = "Does each Ethernet port run as fast as both its ends can?",
     .seen = "ethtool's ioctl: what both ends offer, duplex; /sys/class/net/*/speed",
     .more = "the switch: what its port allows",
     .pipes = EXAM_LINES,
     .remedy = "replace the cable of {}, and look at the switch's port",
     .which = has_line,
     .each = EXAM_NICS,
     .judge_one = rate_of},
    {.id = "pause-frames",
     .question = "Do Ethernet ports and their switches rarely stop each other?",
     .seen = "ethtool's ioctl, twice: the driver's counters of pause frames, also by priority",
     .more = "the switch: its port's counters of pause frames (PFC)",
     .pipes = EXAM_LINES,
     .counts = true,
     .remedy = "look at what slows this host's receiving by {}: PCIe link, IOMMU, memory, CPUs",
     .each = EXAM_NICS,
     .which = has_line,
     .judge_one = pauses_of},
    {.id = NULL},
};

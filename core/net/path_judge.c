/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a path, and its words: the rules stand in path.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/net/path_parts.h"

#define TOO_FEW_BYTES   1e6
#define MET             0.98
#define MISSING_SHARE   0.1
#define FOUND_SHARE     0.9
#define DROWNED_FACTOR  10.0
#define NAMED_SHARE     0.01
#define HEADERS_BYTES   128.0 /* more than any transport puts before a packet's payload */
#define DEFAULT_SEGMENT 1400.0
#define NARROW_BYTES    (4 * 4294967296.0)

struct words {
    char *text;
    size_t len, used;
};

static void __attribute__((format(printf, 2, 3))) say(struct words *w, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(w->text + w->used, w->len - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used += (size_t)n < w->len - w->used ? (size_t)n : w->len - w->used - 1;
}

struct amount {
    char text[24];
};

static struct amount amount_of(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    struct amount a;
    size_t i = 0;

    for (; bytes >= 999.5 && i < 4; i++)
        bytes /= 1e3;
    snprintf(a.text, sizeof(a.text), bytes >= 100 ? "%.0f %s" : "%.3g %s", bytes, units[i]);
    return a;
}

static double sum(const double ways[COUNTER_WAYS])
{
    return ways[COUNTER_OUT] + ways[COUNTER_IN];
}

/* No device is named: shared memory. */
static bool is_none(const struct path_device *d)
{
    return !d->name[0] || !strcmp(d->name, "shm");
}

static double segment_bytes(const struct path_device *d)
{
    double segment = d->mtu_bytes > 0 ? d->mtu_bytes : DEFAULT_SEGMENT;

    return d->message_bytes > 0 && d->message_bytes < segment ? d->message_bytes : segment;
}

/* Payload of packets that are full but for the last of each message: the most that so many can have carried. */
static double of_packets(const struct path_device *d, double packets)
{
    double message = d->message_bytes > 0 ? d->message_bytes : segment_bytes(d);

    return packets * message / ceil(message / segment_bytes(d));
}

static const struct moved *own_interface(const struct path_view *v, const struct path_device *d)
{
    const struct path_device *i = d->facts.interface[0] ? path_find(v, d->facts.interface) : NULL;

    return i && i->moved.known ? &i->moved : NULL;
}

/* What a way of a claimed device is held to have carried; NaN where nothing tells. */
static double carried(const struct path_view *v, const struct path_device *d, int way)
{
    const struct moved *m = &d->moved, *interface = d->port ? own_interface(v, d) : NULL;
    double packets = m->packets_known ? of_packets(d, m->packets[way]) : NAN;

    if (m->known && d->port && !strcmp(d->facts.link_layer, "InfiniBand") && interface)
        return fmax(0, m->bytes[way] - interface->bytes[way]); /* less IPoIB */
    if (m->known && m->narrow && d->claim[way] >= NARROW_BYTES && packets >= m->bytes[way])
        return packets;
    if (m->known)
        return m->bytes[way];
    /* rxe: packets say that it was rxe, the interface how many bytes. Between two of its own queue pairs there is none. */
    if (m->packets_known && interface && packets >= MET * d->claim[way] &&
        interface->bytes[way] >= MET * d->claim[way])
        return interface->bytes[way];
    if (m->packets_known)
        return packets;
    return d->facts.software && interface ? interface->bytes[way] : NAN;
}

static bool is_other(const struct path_device *d)
{
    return !d->claimed && !d->same_bytes && d->moved.known;
}

/* The ways that any claim is made of. */
static double in_ways(const struct path_view *v, const double ways[COUNTER_WAYS])
{
    bool asked[COUNTER_WAYS] = {false};
    double bytes = 0;

    for (size_t i = 0; i < v->n; i++)
        for (int way = 0; way < COUNTER_WAYS; way++)
            asked[way] |= v->list[i].claim[way] > 0;
    for (int way = 0; way < COUNTER_WAYS; way++)
        bytes += asked[way] && !isnan(ways[way]) ? ways[way] : 0;
    return bytes;
}

static double all_bytes(const struct path_view *v)
{
    double bytes = 0;

    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].claimed)
            bytes += in_ways(v, v->list[i].got);
        else if (is_other(&v->list[i]))
            bytes += in_ways(v, v->list[i].moved.bytes);
    return bytes;
}

/* What is missing, by way; nothing where the claim is met. */
static double missing(const struct path_device *d, double lack[COUNTER_WAYS])
{
    for (int way = 0; way < COUNTER_WAYS; way++) {
        double got = isnan(d->got[way]) ? 0 : d->got[way];
        lack[way] = got >= MET * d->claim[way] ? 0 : d->claim[way] - got;
    }
    return sum(lack);
}

/* Bytes that other devices moved the ways in which some are missing; the one that moved most. */
static double found_elsewhere(const struct path_view *v, const struct path_device *d,
                              const double lack[COUNTER_WAYS], const struct path_device **most)
{
    double all = 0, best = 0;

    *most = NULL;
    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *o = &v->list[i];
        double bytes = 0;
        bool vague = d->port && !strcmp(o->name, d->facts.interface) &&
                     !nic_counts_apart(d->facts.driver) && !d->facts.software;
        /* rxe's own interface: its packets say that it was not rxe. */
        bool own_software = d->facts.software && d->moved.packets_known && o->moved.known &&
                            !o->claimed && !strcmp(o->name, d->facts.interface);
        if ((!is_other(o) && !own_software) || vague)
            continue;
        for (int way = 0; way < COUNTER_WAYS; way++)
            bytes += lack[way] > 0 ? o->moved.bytes[way] : 0;
        all += bytes;
        if (bytes > best) {
            best = bytes;
            *most = o;
        }
    }
    return all;
}

/* So much more than the claim went through that it would not be seen if the claim had not. */
static bool is_drowned(const struct path_device *d)
{
    double overhead = 2 * (1 + HEADERS_BYTES / segment_bytes(d));
    double claim = sum(d->claim);
    /* lo counts both ways in both. */
    double got = (d->claim[COUNTER_OUT] > 0 ? d->got[COUNTER_OUT] : 0) +
                 (d->claim[COUNTER_IN] > 0 ? d->got[COUNTER_IN] : 0);

    return got > DROWNED_FACTOR * overhead * claim;
}

static enum path_verdict judge_none(const struct path_view *v, const struct path_device *d,
                                    struct words *w)
{
    const struct path_device *most;
    double others = found_elsewhere(v, d, d->claim, &most), claim = sum(d->claim);

    /* What copies into memory that both ends map cannot go another way: these are others' bytes. */
    if (others >= FOUND_SHARE * claim && most) {
        say(w, "shared memory; %s moved %s meanwhile", most->name,
            amount_of(in_ways(v, most->moved.bytes)).text);
        return PATH_UNKNOWN;
    }
    say(w, "shared memory: of %s all devices together moved %.3g %%", amount_of(claim).text,
        100 * others / claim);
    return PATH_PROVED;
}

static enum path_verdict judge_missing(const struct path_view *v, const struct path_device *d,
                                       const double lack[COUNTER_WAYS], struct words *w)
{
    const struct path_device *most;
    double claim = sum(d->claim), others = found_elsewhere(v, d, lack, &most);
    bool hidden = isnan(sum(d->got)), enough = others >= FOUND_SHARE * sum(lack) && most;

    /* What is hidden may have been there, beside other traffic: only the very amount is taken for it. */
    if (hidden && others > 1.3 * claim)
        enough = false;
    if (hidden)
        say(w, "%s has no counters here", d->name);
    else
        say(w, "%s moved %s of %s", d->name, amount_of(claim - sum(lack)).text,
            amount_of(claim).text);
    if (enough && sum(lack) >= MISSING_SHARE * claim && !d->moved.at_least) {
        say(w, ", %s moved %s", most->name, amount_of(in_ways(v, most->moved.bytes)).text);
        return PATH_ELSEWHERE;
    }
    if (hidden)
        return PATH_UNKNOWN;
    if (d->moved.at_least)
        say(w, ": its counter of 32 bits came to its end");
    else if (d->port && !d->facts.software && !nic_counts_apart(d->facts.driver))
        say(w, ": nobody knows what %s counts",
            d->facts.driver[0] ? d->facts.driver : "its driver");
    else
        say(w, ", and no other device the rest");
    return PATH_UNKNOWN;
}

static enum path_verdict judge_one(const struct path_view *v, const struct path_device *d,
                                   struct words *w, bool *lacking)
{
    double lack[COUNTER_WAYS];

    if (!(sum(d->claim) >= TOO_FEW_BYTES)) {
        say(w, "%s are too few to tell", amount_of(sum(d->claim)).text);
        return PATH_UNKNOWN;
    }
    if (is_none(d))
        return judge_none(v, d, w);
    if (missing(d, lack) > 0) {
        *lacking |= !isnan(sum(d->got));
        return judge_missing(v, d, lack, w);
    }
    if (is_drowned(d)) {
        say(w, "%s moved %s, in which %s do not stand out", d->name, amount_of(sum(d->got)).text,
            amount_of(sum(d->claim)).text);
        return PATH_UNKNOWN;
    }
    return PATH_PROVED;
}

static void say_claimed(const struct path_view *v, const struct path_device *d, double all,
                        struct words *w)
{
    bool out = d->claim[COUNTER_OUT] > 0, in = d->claim[COUNTER_IN] > 0;

    say(w, "%s", d->name);
    if (!d->moved.known && d->facts.interface[0])
        say(w, " over %s", d->facts.interface);
    if (out)
        say(w, " sent %s", amount_of(d->got[COUNTER_OUT]).text);
    if (in)
        say(w, "%s received %s", out ? "," : "", amount_of(d->got[COUNTER_IN]).text);
    if (all > 0)
        say(w, ", %.3g %% of the bytes", 100 * in_ways(v, d->got) / all);
}

static void say_others(const struct path_view *v, double all, struct words *w)
{
    for (size_t i = 0; i < v->n; i++) {
        double bytes = is_other(&v->list[i]) ? in_ways(v, v->list[i].moved.bytes) : 0;
        if (all > 0 && bytes > NAMED_SHARE * all)
            say(w, "%s%s %.3g %%", w->used ? "; " : "", v->list[i].name, 100 * bytes / all);
    }
}

/* The worst of two: elsewhere, unknown, proved. */
static enum path_verdict worse(enum path_verdict a, enum path_verdict b)
{
    if (a == PATH_ELSEWHERE || b == PATH_ELSEWHERE)
        return PATH_ELSEWHERE;
    return a == PATH_UNKNOWN || b == PATH_UNKNOWN ? PATH_UNKNOWN : PATH_PROVED;
}

/* One claimed device: what is wrong with it, or what it moved. */
static enum path_verdict say_one(const struct path_view *v, const struct path_device *d, double all,
                                 struct words *w, bool *lacking)
{
    char text[PATH_TEXT_BYTES] = "";
    struct words one = {text, sizeof(text), 0};
    enum path_verdict verdict = judge_one(v, d, &one, lacking);

    if (!one.used)
        say_claimed(v, d, all, &one);
    say(w, "%s%s", w->used ? "; " : "", text);
    return verdict;
}

/* Soft-iWARP is TCP: between two ends on one machine the kernel takes lo, whatever interface the device is on. */
static void take_lo(struct path_view *v, struct path_device *d)
{
    const struct moved *own = own_interface(v, d);
    struct path_device *lo = path_find(v, "lo");
    bool met = true, by_lo = true;

    if (strcmp(d->facts.driver, "siw") != 0 || !lo || !lo->moved.known || !own)
        return;
    for (int way = 0; way < COUNTER_WAYS; way++) {
        met &= own->bytes[way] >= MET * d->claim[way];
        by_lo &= lo->moved.bytes[way] >= MET * d->claim[way];
    }
    if (met || !by_lo)
        return;
    strcpy(d->facts.interface, "lo");
    lo->same_bytes = true;
}

void path_judge(struct path_view *v, struct path_proof *proof, bool *lacking)
{
    struct words w = {proof->text, sizeof(proof->text), 0};
    double all;

    *lacking = false;
    proof->verdict = PATH_PROVED;
    proof->text[0] = '\0';
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].claimed)
            take_lo(v, &v->list[i]);
    for (size_t i = 0; i < v->n; i++)
        for (int way = 0; way < COUNTER_WAYS && v->list[i].claimed; way++)
            v->list[i].got[way] = is_none(&v->list[i]) ? 0 : carried(v, &v->list[i], way);
    all = all_bytes(v);
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].claimed)
            proof->verdict = worse(proof->verdict, say_one(v, &v->list[i], all, &w, lacking));
    if (!w.used) {
        proof->verdict = PATH_UNKNOWN;
        say(&w, "nothing is claimed");
    }
    say_others(v, all, &w);
}

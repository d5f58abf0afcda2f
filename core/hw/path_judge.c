/* SPDX-License-Identifier: Apache-2.0 */
/* Is it proven that the bytes took the path that was claimed? See path.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/path.h"
#include "core/row.h"

/* What a device moved by the view's measure; NULL: not known. */
static inline const double *path_moved(const struct path_view *v, const struct path_device *d)
{
    if (v->by == PATH_PACKETS)
        return d->moved.packets_known ? d->moved.packets : NULL;
    return d->moved.known ? d->moved.bytes : NULL;
}

#define TOO_FEW_MESSAGES 1000
#define MISSING_SHARE    0.1
#define FOUND_SHARE      0.9
#define FOUND_MOST       1.3 /* times what is missing: more is not what is missing */
#define NAMED_SHARE      0.01
#define HEADERS_BYTES    128.0 /* more than any transport puts before a packet's payload */
#define PACKETS_EACH     2.0   /* at most: a message and an acknowledgement of another one */

static bool is_other(const struct path_view *v, const struct path_device *d)
{
    return !d->claimed && !d->same_bytes && path_moved(v, d);
}

static bool is_lo(const struct path_device *d)
{
    return !strcmp(d->name, "lo") ||
           (!strcmp(d->facts.driver, "siw") && !strcmp(d->facts.interface, "lo"));
}

/* A port and its interface, of a driver of which nobody knows whether one counts what goes through
 * the other. */
static bool is_vague(const struct path_device *port, const struct path_device *interface)
{
    return port->port && !strcmp(interface->name, port->facts.interface) &&
           !nic_counts_apart(port->facts.driver) && !port->facts.software;
}

/* Is `o` the port or the interface of such a driver, and `d`, or one of those claimed together, the
 * other one? `in`: either way round. */
static bool is_vague_with(const struct path_view *v, const struct path_device *d,
                          const struct path_device *o, bool in)
{
    bool vague = is_vague(d, o) || (in && is_vague(o, d));

    for (size_t i = 0; i < v->n && d == &v->set && !vague; i++)
        vague = v->list[i].in_set && (is_vague(&v->list[i], o) || (in && is_vague(o, &v->list[i])));
    return vague;
}

/* The ways that any claim is made of. */
static double in_ways(const struct path_view *v, const double ways[COUNTER_WAYS])
{
    bool asked[COUNTER_WAYS] = {v->set.claim[v->by][0] > 0, v->set.claim[v->by][1] > 0};
    double amount = 0;

    for (size_t i = 0; i < v->n; i++)
        for (int way = 0; way < COUNTER_WAYS; way++)
            asked[way] |= v->list[i].claim[v->by][way] > 0;
    for (int way = 0; way < COUNTER_WAYS; way++)
        amount += asked[way] && !isnan(ways[way]) ? ways[way] : 0;
    return amount;
}

static double moved_by_all(const struct path_view *v)
{
    double amount = 0;

    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].claimed)
            amount += in_ways(v, v->list[i].got[v->by]);
        else if (is_other(v, &v->list[i]))
            amount += in_ways(v, path_moved(v, &v->list[i]));
    return amount;
}

/* What is missing, by way; nothing where the claim is met. */
static double missing(const struct path_view *v, const struct path_device *d,
                      double lack[COUNTER_WAYS])
{
    for (int way = 0; way < COUNTER_WAYS; way++) {
        double claim = d->claim[v->by][way], got = d->got[v->by][way];
        if (isnan(got))
            got = 0;
        lack[way] = got >= PATH_MET * claim ? 0 : claim - got;
    }
    return path_sum(lack);
}

/* What a device moved the ways in which some is missing. lo counts both ways in both. */
static double moved_instead(const struct path_view *v, const struct path_device *o,
                            const double lack[COUNTER_WAYS])
{
    const double *moved = path_moved(v, o);
    double amount = 0;

    for (int way = 0; way < COUNTER_WAYS; way++)
        if (lack[way] > 0)
            amount = is_lo(o) ? fmax(amount, moved[way]) : amount + moved[way];
    return amount;
}

/* What a device that is claimed, too, moved beyond its own claim, the ways in which some is missing:
 * of two rails, one may have carried what was to go by the other. Not where half of that or more
 * may be headers. */
static double moved_beyond(const struct path_view *v, const struct path_device *o,
                           const double lack[COUNTER_WAYS])
{
    double most = v->by == PATH_PACKETS ? PACKETS_EACH - 1 : HEADERS_BYTES / path_segment_bytes(o);
    double amount = 0;

    for (int way = 0; way < COUNTER_WAYS; way++) {
        double beyond = o->got[v->by][way] - o->claim[v->by][way];
        if (lack[way] > 0 && beyond >= 2 * most * o->claim[v->by][way])
            amount += beyond;
    }
    return amount;
}

/* What other devices moved instead; the one that moved most. */
static double found_elsewhere(const struct path_view *v, const struct path_device *d,
                              const double lack[COUNTER_WAYS], const struct path_device **most)
{
    double all = 0, best = 0;

    *most = NULL;
    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *o = &v->list[i];
        /* rxe's own interface: its packets say that it was not rxe. */
        bool own_software = d->facts.software && d->moved.packets_known && path_moved(v, o) &&
                            !o->claimed && !strcmp(o->name, d->facts.interface);
        bool rail = o != d && o->claimed && !o->in_set && !o->at_least && !path_is_none(o);
        double amount;
        if ((!is_other(v, o) && !own_software && !rail) || is_vague_with(v, d, o, false))
            continue;
        amount = rail ? moved_beyond(v, o, lack) : moved_instead(v, o, lack);
        all += amount;
        if (amount > best) {
            best = amount;
            *most = o;
        }
    }
    return all;
}

/* What other devices moved of a way; the one that moved most. */
static double moved_beside(const struct path_view *v, const struct path_device *d, int way,
                           const struct path_device **most)
{
    double all = 0, best = 0;

    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *o = &v->list[i];
        const double *moved = path_moved(v, o);
        if (!is_other(v, o) || !moved || is_vague_with(v, d, o, true))
            continue;
        all += moved[way];
        if (moved[way] > best) {
            best = moved[way];
            *most = o;
        }
    }
    return all;
}

/* A claim that is met, but other devices moved as much the same way: either may have carried it. */
static bool is_rivalled(const struct path_view *v, const struct path_device *d,
                        struct path_words *w)
{
    const double *claim = d->claim[v->by];
    const struct path_device *most = NULL;

    for (int way = 0; way < COUNTER_WAYS; way++) {
        double beside = moved_beside(v, d, way, &most);
        if (!most || claim[way] < MISSING_SHARE * path_sum(claim) || !(claim[way] > 0) ||
            beside < FOUND_SHARE * claim[way])
            continue;
        path_carried_by(w, d);
        path_say(w, "%s moved %s, but %s %s the same way: either may have carried %s", d->name,
                 path_amount(v, d->got[v->by][way]).text, most->name,
                 path_amount(v, path_moved(v, most)[way]).text, path_amount(v, claim[way]).text);
        return true;
    }
    return false;
}

/* So much more than the claim went through that it would be met without it. */
static bool is_drowned(const struct path_view *v, const struct path_device *d, struct path_words *w)
{
    const double *claim = d->claim[v->by];
    double each = v->by == PATH_PACKETS ? PACKETS_EACH : 1 + HEADERS_BYTES / path_segment_bytes(d);
    double got = 0, due = 0;

    for (int way = 0; way < COUNTER_WAYS; way++)
        if (claim[way] > 0) {
            got += d->got[v->by][way];
            due += is_lo(d) ? path_sum(claim) : claim[way];
        }
    if (got < each * due + path_sum(claim))
        return false;
    path_carried_by(w, d);
    path_say(w, "%s moved %s, in which %s do not stand out", d->name, path_amount(v, got).text,
             path_amount(v, path_sum(claim)).text);
    return true;
}

static enum path_verdict judge_none(const struct path_view *v, const struct path_device *d,
                                    struct path_words *w)
{
    const struct path_device *most;
    const double *ways = d->claim[v->by];
    double others = found_elsewhere(v, d, ways, &most), claim = path_sum(ways);

    w->carriers = CARRIER_SHARED_MEMORY;
    /* What copies into memory that both ends map cannot go another way: these are others' bytes. */
    if (others >= FOUND_SHARE * claim && most) {
        path_say(w, "shared memory; %s moved %s meanwhile", most->name,
                 path_amount(v, in_ways(v, path_moved(v, most))).text);
        return PATH_UNKNOWN;
    }
    path_say(w, "shared memory: of %s all devices together moved %.3g %%",
             path_amount(v, claim).text, 100 * others / claim);
    return PATH_PROVED;
}

/* Did other devices move what is missing: enough of it, and not so much that it was something else?
 * A message may take a packet more than it has to. */
static bool is_elsewhere(const struct path_view *v, const struct path_device *d, double lacking,
                         double others)
{
    double most = v->by == PATH_PACKETS ? FOUND_MOST * PACKETS_EACH : FOUND_MOST;
    double claim = path_sum(d->claim[v->by]);
    bool hidden = isnan(path_sum(d->got[v->by]));

    if (hidden && v->by == PATH_PACKETS)
        return false; /* a few thousand packets are of anybody */
    if (d->at_least && !hidden && lacking >= FOUND_SHARE * claim)
        most = INFINITY; /* a library sends more than the least, nobody knows how much */
    return lacking >= MISSING_SHARE * claim && !d->moved.at_least &&
           others >= FOUND_SHARE * lacking && others <= most * lacking;
}

static void say_unknown(const struct path_view *v, const struct path_device *d, double lacking,
                        double others, struct path_words *w)
{
    if (d->moved.at_least)
        path_say(w, ": its counter of 32 bits came to its end");
    else if (d->port && !d->facts.software && !nic_counts_apart(d->facts.driver))
        path_say(w, ": nobody knows what %s counts",
                 d->facts.driver[0] ? d->facts.driver : "its driver");
    else if (others >= FOUND_SHARE * lacking &&
             lacking >= MISSING_SHARE * path_sum(d->claim[v->by]))
        path_say(w, "; what is missing may be among the %s of others", path_amount(v, others).text);
    else
        path_say(w, ", and no other device the rest");
}

static enum path_verdict judge_missing(const struct path_view *v, const struct path_device *d,
                                       const double lack[COUNTER_WAYS], struct path_words *w)
{
    const struct path_device *most;
    double lacking = path_sum(lack), claim = path_sum(d->claim[v->by]);
    double others = found_elsewhere(v, d, lack, &most);
    bool hidden = isnan(path_sum(d->got[v->by]));

    if (hidden) {
        path_say(w, "%s has no counters here", d->name);
    } else {
        path_carried_by(w, d);
        path_say(w, "%s moved %s of %s", d->name, path_amount(v, claim - lacking).text,
                 path_amount(v, claim).text);
    }
    /* A software device sends over some interface: where nobody says over which, those bytes may be
     * its own. */
    bool over_any = hidden && d->facts.software;
    if (over_any && most)
        path_say(w, ", its interface is not known");
    if (most && !over_any && is_elsewhere(v, d, lacking, others)) {
        path_carried_by(w, most);
        path_say(w, ", %s moved %s", most->name,
                 path_amount(v, in_ways(v, path_moved(v, most))).text);
        return PATH_ELSEWHERE;
    }
    if (!hidden)
        say_unknown(v, d, lacking, others, w);
    return PATH_UNKNOWN;
}

static void say_claimed(const struct path_view *v, const struct path_device *d,
                        struct path_words *w)
{
    const double *claim = d->claim[v->by], *got = d->got[v->by];
    double all = moved_by_all(v);
    bool out = claim[COUNTER_OUT] > 0, in = claim[COUNTER_IN] > 0;

    path_carried_by(w, d);
    path_say(w, "%s", d->name);
    if (!d->moved.known && d->facts.interface[0])
        path_say(w, " over %s", d->facts.interface);
    if (out)
        path_say(w, " sent %s", path_amount(v, got[COUNTER_OUT]).text);
    if (in)
        path_say(w, "%s received %s", out ? "," : "", path_amount(v, got[COUNTER_IN]).text);
    if (all > 0)
        path_say(w, ", %.3g %% of the %s", 100 * in_ways(v, got) / all,
                 v->by == PATH_PACKETS ? "packets" : "bytes");
}

/* By the view's measure. */
static enum path_verdict judge_by(const struct path_view *v, const struct path_device *d,
                                  struct path_words *w, bool *lacking)
{
    double lack[COUNTER_WAYS];

    *lacking = false;
    if (path_is_none(d))
        return judge_none(v, d, w);
    if (missing(v, d, lack) > 0) {
        *lacking = !isnan(path_sum(d->got[v->by]));
        return judge_missing(v, d, lack, w);
    }
    if (is_rivalled(v, d, w) || is_drowned(v, d, w))
        return PATH_UNKNOWN;
    say_claimed(v, d, w);
    return PATH_PROVED;
}

/* Enough messages, each of which fits a packet, so that packets are to messages what bytes are to
 * payload. */
static bool has_messages(const struct path_device *d)
{
    double messages = path_sum(d->claim[PATH_PACKETS]);
    struct path_device whole = *d;

    whole.message_bytes = 0;
    return messages >= TOO_FEW_MESSAGES && !path_is_none(d) &&
           path_sum(d->claim[PATH_BYTES]) <= messages * path_segment_bytes(&whole);
}

/* By bytes, and where these leave it open, by packets: the words of the one that tells. */
static enum path_verdict judge_one(struct path_view *v, const struct path_device *d,
                                   struct path_words *w, bool *lacking)
{
    bool enough = path_sum(d->claim[PATH_BYTES]) >= PATH_TOO_FEW_BYTES, packets_lack;
    enum path_verdict verdict = PATH_UNKNOWN, by_packets;
    char text[PATH_TEXT_BYTES] = "";
    struct path_words other = {text, sizeof(text), 0, 0};

    v->by = PATH_BYTES;
    if (enough)
        verdict = judge_by(v, d, w, lacking);
    else
        *lacking = false;
    if (verdict == PATH_UNKNOWN && has_messages(d)) {
        v->by = PATH_PACKETS;
        by_packets = judge_by(v, d, &other, &packets_lack);
        v->by = PATH_BYTES;
        /* Packets do not make up for bytes that are missing. */
        if (!enough || by_packets == PATH_ELSEWHERE || (by_packets == PATH_PROVED && !*lacking)) {
            *lacking = packets_lack;
            w->used = 0;
            w->carriers = other.carriers;
            path_say(w, "%s", text);
            return by_packets;
        }
    }
    if (!enough)
        path_say(w, "%s are too few to tell", path_amount(v, path_sum(d->claim[PATH_BYTES])).text);
    return verdict;
}

static void say_others(const struct path_view *v, struct path_words *w)
{
    double all = moved_by_all(v);

    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *d = &v->list[i];
        double bytes = is_other(v, d) ? in_ways(v, path_moved(v, d)) : 0;
        if (all > 0 && bytes > NAMED_SHARE * all)
            path_say(w, "%s%s %.3g %%", w->used ? "; " : "", d->name, 100 * bytes / all);
    }
}

/* The worst of two: elsewhere, unknown, proved. */
static enum path_verdict worse(enum path_verdict a, enum path_verdict b)
{
    if (a == PATH_ELSEWHERE || b == PATH_ELSEWHERE)
        return PATH_ELSEWHERE;
    return a == PATH_UNKNOWN || b == PATH_UNKNOWN ? PATH_UNKNOWN : PATH_PROVED;
}

void path_judge(struct path_view *v, struct path_proof *proof, bool *lacking)
{
    struct path_words w = {proof->text, sizeof(proof->text), 0, 0};

    *lacking = false;
    proof->verdict = PATH_PROVED;
    proof->text[0] = '\0';
    path_carry(v);
    for (size_t i = 0; i <= v->n; i++) {
        const struct path_device *d = i < v->n ? &v->list[i] : &v->set;
        char text[PATH_TEXT_BYTES] = "";
        struct path_words one = {text, sizeof(text), 0, 0};
        bool lacks;
        if (!d->claimed || d->in_set)
            continue;
        proof->verdict = worse(proof->verdict, judge_one(v, d, &one, &lacks));
        *lacking |= lacks;
        path_say(&w, "%s%s", w.used ? "; " : "", text);
        w.carriers = w.carriers ? w.carriers : one.carriers;
    }
    if (!w.used) {
        proof->verdict = PATH_UNKNOWN;
        path_say(&w, "nothing is claimed");
    }
    say_others(v, &w);
    proof->carriers = w.carriers;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Is it proved that the bytes took the path that was claimed? See path.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/hw/path.h"
#include "core/row.h"

#define WITH_HEADERS 2.1 /* of a payload: itself and headers, and less than as much again */
#define HALF         0.5 /* of a payload */
#define HEADERS_SHARE                                                                              \
    0.15                 /* of a payload: headers and acknowledgements of messages over 600 bytes */
#define WAY_SHARE   0.1  /* of a claim: a way with less is not judged */
#define NAMED_SHARE 0.01 /* of all bytes */

/*
 * The rule. Of one claim in one way, out or in:
 *
 *   P   its payload
 *   C   what the claimed device counted
 *   O   what all others counted together: a device without a claim all of it, one with another claim
 *       what is beyond that claim's payload, where that is more than 15 % of it
 *
 *   P went by a device, or by the others, that counted x, if   0.98 P <= x < 2.1 P
 *
 *   proved      P went by the claimed device,  and O < P / 2
 *   elsewhere   P went by the others,          and C < P / 2
 *   unknown     anything else; and a device that counts no bytes
 *
 * Counters have headers in them: hence at least 0.98, and more than 2, which is as much again by
 * somebody else. With so much other traffic, or a counter that stands still or is late, it is
 * unknown: that could hide that the payload is missing, or be taken for it. Messages of less than
 * about 150 bytes are unknown, too, as their headers are more than they are. Shared memory, which
 * nothing counts, has C = P: only others can speak against it.
 *
 * Ways with less than 1 MB, or a tenth of the claim, are not judged; the worst of the others holds.
 * lo counts both ways in both: of its count each way has its part of the claim.
 */
static enum path_verdict path_rule(double payload, double claimed, double others)
{
    double least = PATH_MET * payload, most = WITH_HEADERS * payload, half = HALF * payload;

    if (claimed >= least && claimed < most && others < half)
        return PATH_PROVED;
    if (others >= least && others < most && claimed < half)
        return PATH_ELSEWHERE;
    return PATH_UNKNOWN;
}

static double payload_of(const struct path_claim *claim, int way)
{
    return way == COUNTER_OUT ? claim->out_bytes : claim->in_bytes;
}

static double whole_of(const struct path_claim *claim)
{
    return claim->out_bytes + claim->in_bytes;
}

/* What a device counted, as a claim is held against it. */
static double counted_for(const struct path_view *v, const struct path_device *d,
                          const struct path_claim *claim, int way)
{
    double part = payload_of(claim, way) / whole_of(claim);

    return path_counted(v, d, way) * (strcmp(d->name, "lo") ? 1 : part);
}

/* What the devices of a claim counted. */
static double claimed_bytes(const struct path_view *v, size_t k, int way)
{
    double sum = path_is_none(&v->claims[k]) ? payload_of(&v->claims[k], way) : 0;

    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].claim == (int)k)
            sum += counted_for(v, &v->list[i], &v->claims[k], way);
    return sum;
}

static bool is_other(const struct path_device *d)
{
    return d->claim < 0 && !d->same_bytes && d->moved.known;
}

/* The sum of what others counted; the name of those that counted most, and how much. */
struct others {
    double all, most;
    const char *name;
};

static void add_other(struct others *o, double bytes, const char *name)
{
    o->all += bytes;
    if (bytes > o->most) {
        o->most = bytes;
        o->name = name;
    }
}

static struct others others_bytes(const struct path_view *v, size_t k, int way)
{
    struct others o = {0};

    for (size_t i = 0; i < v->n; i++)
        if (is_other(&v->list[i]))
            add_other(&o, counted_for(v, &v->list[i], &v->claims[k], way), v->list[i].name);
    for (size_t i = 0; i < v->n_claims; i++) {
        double beyond = claimed_bytes(v, i, way) - payload_of(&v->claims[i], way);
        if (i != k && beyond > HEADERS_SHARE * payload_of(&v->claims[i], way))
            add_other(&o, beyond, v->claims[i].device);
    }
    return o;
}

/* Of the ways that any claim is made of. */
static double in_ways(const struct path_view *v, const struct path_device *d)
{
    double bytes = 0;

    for (int way = 0; way < COUNTER_WAYS; way++)
        bytes += v->asked[way] ? path_counted(v, d, way) : 0;
    return bytes;
}

/* Of the ways that it is made of; 0: not known. */
static double claim_bytes(const struct path_view *v, size_t k)
{
    double bytes = 0;

    for (int way = 0; way < COUNTER_WAYS; way++)
        bytes += payload_of(&v->claims[k], way) > 0 ? claimed_bytes(v, k, way) : 0;
    return bytes >= 0 && !path_is_none(&v->claims[k]) ? bytes : 0;
}

static double all_bytes(const struct path_view *v)
{
    double bytes = 0;

    for (size_t k = 0; k < v->n_claims; k++)
        bytes += claim_bytes(v, k);
    for (size_t i = 0; i < v->n; i++)
        bytes += is_other(&v->list[i]) ? in_ways(v, &v->list[i]) : 0;
    return bytes;
}

static void say_proved(const struct path_view *v, size_t k, struct path_words *w)
{
    static const char *const verbs[] = {" sent", " received"};
    const struct path_claim *claim = &v->claims[k];
    const char *comma = "";

    if (path_is_none(claim)) {
        path_say(w, "shared memory: of %s all devices together moved %.3g %%",
                 path_amount(whole_of(claim)).text, 100 * all_bytes(v) / whole_of(claim));
        return;
    }
    path_say(w, "%s", claim->device);
    for (int way = 0; way < COUNTER_WAYS; way++)
        if (payload_of(claim, way) > 0) {
            path_say(w, "%s%s %s", comma, verbs[way], path_amount(claimed_bytes(v, k, way)).text);
            comma = ",";
        }
    path_say(w, ", %.3g %% of the bytes", 100 * claim_bytes(v, k) / all_bytes(v));
}

static void say_counts(const struct path_view *v, size_t k, int way, bool elsewhere,
                       struct path_words *w)
{
    const struct path_claim *claim = &v->claims[k];
    struct others o = others_bytes(v, k, way);
    double bytes = claimed_bytes(v, k, way);

    if (isnan(bytes)) {
        path_say(w, "not proved: the bytes of %s are not counted here", claim->device);
        return;
    }
    path_say(w, "%s%s moved %s, ",
             elsewhere ? "" : "not proved: ", path_is_none(claim) ? "shared memory" : claim->device,
             path_amount(bytes).text);
    path_say(w, "%s moved %s, ", elsewhere ? o.name : "others",
             path_amount(elsewhere ? o.most : o.all).text);
    path_say(w, "for a payload of %s", path_amount(payload_of(claim, way)).text);
}

static bool is_worse(enum path_verdict a, enum path_verdict b)
{
    static const int badness[] = {[PATH_PROVED] = 0, [PATH_UNKNOWN] = 1, [PATH_ELSEWHERE] = 2};

    return badness[a] > badness[b];
}

static enum path_verdict judge_claim(const struct path_view *v, size_t k, struct path_words *w,
                                     bool *lacking)
{
    const struct path_claim *claim = &v->claims[k];
    enum path_verdict verdict = PATH_PROVED;
    int worst = -1;

    for (int way = 0; way < COUNTER_WAYS; way++) {
        double payload = payload_of(claim, way), bytes = claimed_bytes(v, k, way);
        if (payload < fmax(PATH_TOO_FEW_BYTES, WAY_SHARE * whole_of(claim)))
            continue;
        enum path_verdict one = path_rule(payload, bytes, others_bytes(v, k, way).all);
        *lacking |= bytes < PATH_MET * payload;
        if (worst < 0 || is_worse(one, verdict)) {
            verdict = one;
            worst = way;
        }
    }
    if (worst < 0) {
        path_say(w, "under 1 MB, ");
        say_counts(v, k, claim->out_bytes < claim->in_bytes ? COUNTER_IN : COUNTER_OUT, false, w);
        return PATH_UNKNOWN;
    }
    if (verdict == PATH_PROVED)
        say_proved(v, k, w);
    else
        say_counts(v, k, worst, verdict == PATH_ELSEWHERE, w);
    return verdict;
}

void path_judge(const struct path_view *v, struct path_proof *proof, bool *lacking)
{
    struct path_words w = {proof->text, sizeof(proof->text), 0};

    *lacking = false;
    proof->verdict = v->n_claims ? PATH_PROVED : PATH_UNKNOWN;
    proof->carriers = 0;
    proof->text[0] = '\0';
    for (size_t k = 0; k < v->n_claims; k++) {
        path_say(&w, "%s", k ? "; " : "");
        enum path_verdict one = judge_claim(v, k, &w, lacking);
        if (is_worse(one, proof->verdict))
            proof->verdict = one;
        if (one == PATH_PROVED && !proof->carriers)
            proof->carriers = path_is_none(&v->claims[k]) ? CARRIER_SHARED_MEMORY : 0;
        for (size_t i = 0; i < v->n && one == PATH_PROVED && !proof->carriers; i++)
            if (v->list[i].claim == (int)k)
                proof->carriers = path_carrier(&v->list[i]);
    }
    if (!v->n_claims)
        path_say(&w, "nothing is claimed");
    double all = all_bytes(v);

    for (size_t i = 0; i < v->n; i++) {
        double bytes = is_other(&v->list[i]) ? in_ways(v, &v->list[i]) : 0;
        if (bytes > NAMED_SHARE * all)
            path_say(&w, "; %s %.3g %%", v->list[i].name, 100 * bytes / all);
    }
}

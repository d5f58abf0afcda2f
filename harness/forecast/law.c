/* SPDX-License-Identifier: Apache-2.0 */
/* The time of operations between ranks beyond what was measured: see law.h. */
#include "harness/forecast/law.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Which points a fit is of: sizes from `low` to `high`, and ranks below `ranks`. */
struct window {
    double low, high, ranks;
    const struct fit_point *without; /* and not this one; NULL: all of them */
};

static bool is_in(const struct fit_point *p, const void *arg)
{
    const struct window *w = arg;

    return p->bytes >= w->low && p->bytes <= w->high && p->ranks < w->ranks && p != w->without;
}

static double next_size(const struct law *law, double bytes, bool up)
{
    double best = NAN;

    for (size_t i = 0; i < law->n; i++) {
        double b = law->points[i].bytes;

        if (up ? b > bytes && !(b >= best) : b < bytes && !(b <= best))
            best = b;
    }
    return best;
}

/* The LAW_SIZES sizes whose logarithms are nearest to that of `bytes`. */
static struct window sizes_near(const struct law *law, double bytes)
{
    double low = nextafter(bytes, 0), high = low;
    struct window w = {HUGE_VAL, 0, HUGE_VAL, NULL};

    for (int i = 0; i < LAW_SIZES; i++) {
        double down = next_size(law, nextafter(low, HUGE_VAL), false);
        double up = next_size(law, high, true);
        bool takes_up = !isnan(up) && (isnan(down) || up / bytes < bytes / down);

        if (isnan(takes_up ? up : down))
            break;
        if (takes_up)
            high = up;
        else
            low = nextafter(down, 0);
        w.low = fmin(w.low, takes_up ? up : down);
        w.high = fmax(w.high, takes_up ? up : down);
    }
    return w;
}

static double most_ranks(const struct law *law, double below)
{
    double most = 0;

    for (size_t i = 0; i < law->n; i++)
        if (law->points[i].ranks < below)
            most = fmax(most, law->points[i].ranks);
    return most;
}

/* The logarithms of measured / predicted at the ranks that the fit lacks: their mean, and how far
 * the mean may lie off by the spread of both. */
struct held {
    double off, half;
    bool known;
};

static struct held hold_out(const struct law *law, struct window w, double most)
{
    struct held h = {0};
    struct fit fit;
    double n = 0;

    w.ranks = most;
    if (fit_make(law->terms, law->points, law->n, is_in, &w, &fit))
        return h;
    w.ranks = HUGE_VAL;
    for (size_t i = 0; i < law->n; i++) {
        const struct fit_point *p = &law->points[i];

        if (p->ranks != most || !is_in(p, &w))
            continue;
        struct fit_prediction at = fit_predict(&fit, most, p->bytes);
        h.off += log(p->time_us / at.time_us);
        /* points off by more than chance have no interval: their distance is one */
        h.half += isnan(at.high_us) ? fabs(log(fit.group.ratio)) + 2 * fit.spread
                                    : log(at.high_us / at.time_us);
        n++;
    }
    h.known = n > 0;
    h.off /= h.known ? n : 1;
    h.half /= h.known ? n : 1;
    return h;
}

static struct law_value refuse(struct law_value v, enum law_refusal why, double at)
{
    v.refused = why;
    v.at_ranks = at;
    v.us = v.low_us = v.high_us = NAN;
    return v;
}

/* The points have no line. Would all but one of them? Of few points any one is such. */
static struct law_value refuse_shape(const struct law *law, struct window w, const struct fit *fit,
                                     struct law_value v)
{
    double least = HUGE_VAL;

    for (size_t i = 0; i < law->n && fit->n > FIT_POINTS_MIN + 1; i++) {
        const struct fit_point *p = &law->points[i];
        struct fit rest;

        w.without = p;
        if (!(p->bytes >= w.low && p->bytes <= w.high) ||
            fit_make(law->terms, law->points, law->n, is_in, &w, &rest) || !fit_describes(&rest) ||
            rest.spread >= least)
            continue;
        double ratio = p->time_us / fit_predict(&rest, p->ranks, p->bytes).time_us;
        if (fabs(log(ratio)) <= log(FIT_POINT_MOST))
            continue;
        least = rest.spread;
        v.at_ranks = p->ranks;
        v.at_bytes = p->bytes;
        v.at_ratio = ratio;
    }
    return isinf(least) ? refuse(v, LAW_SHAPE, fit->farthest.ranks)
                        : refuse(v, LAW_POINT, v.at_ranks);
}

static void take_interval(const struct law *law, const struct fit *fit, double ranks, double bytes,
                          const struct held *held, struct law_value *v)
{
    struct fit_prediction p = fit_predict(fit, ranks, bytes);
    double half = isnan(p.high_us) ? fabs(log(fit->group.ratio)) + 2 * fit->spread
                                   : log(p.high_us / p.time_us);
    double off = fmax(fabs(held->off), held->half);
    double each = v->doublings > 0 ? off / fmax(1, log2(v->most_ranks / v->held_from)) : 0;

    double crowd = fmax(ranks, law->crowd);
    bool beyond = crowd > v->most_ranks || (law->core_other && crowd > 2);
    double core = beyond && !law->core_known ? LAW_CORE : 0;

    /* By how much a way whose messages grow with log2 n would be faster, beyond what was measured. */
    struct fit_terms far, near;
    double saved_us = 0;

    if (v->doublings > 0 && fit_terms(fit->terms, ranks, &far) &&
        fit_terms(fit->terms, v->most_ranks, &near))
        saved_us = fmax(0, far.messages - near.messages - 2 * v->doublings) * fit->a_us;
    each = fmax(LAW_UNSEEN, each);
    v->us = p.time_us;
    v->low_us = (p.time_us - saved_us) * exp(-half - v->doublings * each);
    v->high_us = p.time_us * exp(half + core + v->doublings * each);
}

struct law_value law_at(const struct law *law, double ranks, double bytes)
{
    struct window w = sizes_near(law, bytes);
    struct law_value v = {.ranks = ranks,
                          .most_ranks = most_ranks(law, HUGE_VAL),
                          .held_out = NAN,
                          .us = NAN,
                          .messages_us = NAN,
                          .messages_low_us = NAN,
                          .messages_high_us = NAN};
    struct fit fit;

    if (!law->n || !law->terms)
        return refuse(v, LAW_NOTHING, 0);
    v.held_from = most_ranks(law, v.most_ranks);
    double fewest = HUGE_VAL, smallest = HUGE_VAL, largest = 0;

    for (size_t i = 0; i < law->n; i++) {
        fewest = fmin(fewest, law->points[i].ranks);
        smallest = fmin(smallest, law->points[i].bytes);
        largest = fmax(largest, law->points[i].bytes);
    }
    v.doublings = fmax(0, fmax(log2(ranks / v.most_ranks), log2(fewest / ranks)));
    if (v.doublings > 0 && !v.held_from)
        return refuse(v, LAW_ONE, v.most_ranks);
    int err = fit_make(law->terms, law->points, law->n, is_in, &w, &fit);
    if (err)
        return refuse(v, err == -EOPNOTSUPP ? LAW_NOTHING : LAW_FEW, 0);
    if (v.doublings > LAW_DOUBLINGS + 1e-9)
        return refuse(v, LAW_FAR, v.most_ranks);
    if (bytes > LAW_BEYOND * largest)
        return refuse(v, LAW_BYTES, 0);
    struct held held = hold_out(law, w, v.most_ranks);
    if (held.known)
        v.held_out = exp(-held.off);
    if (!fit_describes(&fit))
        return refuse_shape(law, w, &fit, v);
    /* a regime matters to what lies beyond, and to what lies between */
    if (fit.group.n && fit.group.ranks && (fabs(log(fit.group.ratio)) > LAW_REGIME))
        return refuse(v, LAW_BREAK, fit.group.ranks);
    if (v.doublings > 0 && held.known && fabs(held.off) > LAW_REGIME + held.half)
        return refuse(v, LAW_BREAK, v.most_ranks);
    if (v.doublings > 0 && !held.known)
        return refuse(v, LAW_ONE, v.most_ranks);
    take_interval(law, &fit, ranks, bytes, &held, &v);
    struct fit_terms terms;

    if (fit_terms(fit.terms, ranks, &terms)) {
        v.messages_us = terms.messages * fit.a_us;
        v.messages_low_us = terms.messages * fit.low_us;
        v.messages_high_us = terms.messages * fit.high_us;
    }
    if (bytes < smallest) {
        /* What a vector takes that is smaller than all measured ones is messages, whose time large
         * ones do not show. It takes no longer than the smallest that was measured, and its bytes
         * alone at least. */
        struct law_value least = v;
        double all = fit_predict(&fit, ranks, bytes).time_us;

        take_interval(law, &fit, ranks, smallest, &held, &least);
        v.low_us *= fmin(1, fmax(0, all - v.messages_us) / all);
        v.high_us = least.high_us;
    }
    return v;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* From measures of all cases to decisions over the suite: see decide.h for the method. */
#include "harness/decide/decide.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/stats.h"
#include "harness/decide/spread.h"

#define DECIDE_ALARM_LEVEL 0.005 /* of a suite; kept below the 1 % that is promised */
#define DECIDE_CONFIDENCE  0.95
#define SUSTAINED_SHOWN                                                                            \
    0.98 /* of the medians' ratio: below it, that of what was sustained is told */

/* ---- What the data could have shown, and what more of it would ---- */

/* Student's t quantile, remembering the last few asked: cases of a suite have mostly the same df.
 */
#define QUANTILES 16
struct quantiles {
    double p[QUANTILES], df[QUANTILES], t[QUANTILES];
    size_t next;
};

static double quantile(struct quantiles *q, double p, double df)
{
    for (size_t i = 0; i < QUANTILES; i++) {
        if (q->p[i] == p && q->df[i] == df)
            return q->t[i];
    }
    size_t i = q->next++ % QUANTILES;

    q->p[i] = p;
    q->df[i] = df;
    return q->t[i] = dist_t_quantile(p, df);
}

static bool grows_a(const struct judge *j, const struct measure *m)
{
    return j->b_stays && m->by_runs && !m->paired;
}

/* The best of A's runs is one run, however many it is picked from. */
static double share(const struct judge *j, const struct measure *m, size_t more)
{
    size_t more_a = m->best ? 0 : more, more_b = grows_a(j, m) ? 0 : more;

    return m->unbalance * (1 / (double)(m->units_a + more_a) + 1 / (double)(m->units_b + more_b));
}

/*
 * What runs differ by beyond their launches has a shape that few runs cannot tell: of one that is
 * far off two say nothing, though the suite says how wide they scatter. Until runs are known such a
 * part has the tails of Student's t with these degrees of freedom (a suite of few cases knows its
 * width less, too); with each further run they grow. Calibrated by simulation
 * (tests/selftest/nights: nights of t3, skewed nights).
 */
#define SHAPE_FREEDOM 4
#define SHAPE_CASES   6 /* for one of these degrees */
#define SHAPE_POWER   1.5

static double runs_known(const struct judge *j, const struct measure *m, size_t more)
{
    return m->between_df + (grows_a(j, m) ? 1 : 2) * (double)more;
}

static double shape_freedom(const struct judge *j, const struct measure *m, size_t more)
{
    double cases = fmax(1, (double)j->n_judged / SHAPE_CASES);

    return fmin(SHAPE_FREEDOM, cases) + pow(m->by_runs ? runs_known(j, m, more) : 0, SHAPE_POWER);
}

/* Of the variance, what is between runs and not their launches'; unrest counts as far as it is
 * beyond twice its own error. */
static double share_of_runs(const struct judge *j, const struct measure *m, const struct known *k)
{
    double unrest = fmax(1, j->unrest / (1 + 2 / sqrt(2 * j->most_df)));

    return 1 - (m->by_runs ? fmin(1, k->floor / k->variance) : 1 / (unrest * unrest));
}

/* Its own runs are a case's own; what the others lend it takes their shape for granted. */
static double with_shape(const struct judge *j, const struct measure *m, const struct known *now,
                         double freedom, size_t more)
{
    double own = m->by_runs ? fmin(freedom, runs_known(j, m, more)) : 0, lent = freedom - own;
    double part = share_of_runs(j, m, now);

    return lent > 0 ? own + 1 / (1 / lent + part * part / shape_freedom(j, m, more)) : freedom;
}

/* More launches in the same two runs tell launches better, not what differs between the two runs:
 * what unrest added stays. */
void known_with(const struct judge *j, const struct measure *m, const struct known *now,
                size_t more, struct known *out)
{
    double unrest = m->by_runs ? j->sway : j->unrest;
    double stays = (unrest * unrest - 1) * share(j, m, 0);

    *out = *now;
    out->df = now->df + (m->paired || grows_a(j, m) ? 1 : 2) * (double)more;
    out->error = sqrt(now->variance * (share(j, m, more) + stays));
    out->freedom = m->by_runs || m->paired ? out->df : fmin(out->df, j->most_df);
    out->normal_freedom = out->freedom;
    if (j->unchanged && !m->paired)
        out->freedom = with_shape(j, m, now, out->freedom, more);
}

/* With one more run a side there is no side of one run, unless B stays. */
static bool is_few(const struct judge *j, const struct measure *m, size_t more)
{
    if (m->fewest >= DECIDE_FEW_LAUNCHES)
        return false;
    if (grows_a(j, m))
        return true;
    return m->by_runs && !m->paired ? more == 0 : m->fewest + more < DECIDE_FEW_LAUNCHES;
}

static bool is_equivalent(const struct judge *j, double d, double margin, const struct known *k)
{
    double outside = (1 - j->confidence) / 2, room = -log1p(-margin) - fabs(d);

    return room > 0 && dist_t_cdf(-room / k->error, k->freedom) < outside;
}

static double level(const struct judge *j, const struct measure *m, const struct decide_case *c,
                    size_t more)
{
    double of = (double)c->best_of + (m->best && grows_a(j, m) ? (double)more : 0);
    double candidates = c->best_of > 1 && c->p_worse < c->p_better ? of : 1;

    return j->alarm_level / ((double)j->n_judged * candidates);
}

static bool decides(const struct judge *j, const struct measure *m, const struct known *now,
                    const struct decide_case *c, size_t more)
{
    struct known k;

    known_with(j, m, now, more, &k);
    if (is_equivalent(j, m->d, c->margin, &k))
        return true;
    if (is_few(j, m, more) && !(fabs(m->d) > j->widest))
        return false;
    const struct tail *tail = m->d < 0 ? j->losses : j->gains;

    return dist_t_cdf(-fabs(m->d) / k.error, k.freedom) <= tail_nominal(tail, level(j, m, c, more));
}

/* Of one more baseline there is one more to pick the best from, too: at some number that weighs
 * more. */
static size_t more_to_pick_from(const struct judge *j, const struct measure *m,
                                const struct known *now, const struct decide_case *c)
{
    for (size_t more = 1; more <= DECIDE_MORE_MAX; more++)
        if (decides(j, m, now, c, more))
            return more;
    return 0;
}

/* The smallest number that decides; more never decides less, so it is halved towards. */
static size_t more_needed(const struct judge *j, const struct measure *m, const struct known *now,
                          const struct decide_case *c)
{
    size_t no = 0, yes = DECIDE_MORE_MAX;

    if (m->best && grows_a(j, m))
        return more_to_pick_from(j, m, now, c);
    if (!decides(j, m, now, c, yes))
        return 0;
    while (yes - no > 1) {
        size_t middle = no + (yes - no) / 2;

        if (decides(j, m, now, c, middle))
            yes = middle;
        else
            no = middle;
    }
    return yes;
}

/* What a loss has to pass to be proven. */
static double proof_at(const struct judge *j, const struct measure *m, const struct known *k,
                       const struct decide_case *c, struct quantiles *q, size_t more)
{
    double candidates = c->best_of > 1 ? c->best_of : 1;
    double p = tail_nominal(j->losses, j->alarm_level / ((double)j->n_judged * candidates));
    double pass = -quantile(q, p, k->freedom) * k->error;

    return is_few(j, m, more) ? fmax(pass, j->widest) : pass;
}

/* A loss is proven with this power where it is above what has to be passed by the power's quantile.
 */
static double smallest_loss(const struct judge *j, const struct measure *m, const struct known *k,
                            const struct decide_case *c, struct quantiles *q)
{
    double pass = proof_at(j, m, k, c, q, 0);

    return -expm1(-(pass + quantile(q, DECIDE_POWER, k->freedom) * k->error));
}

/* What would be known with options.later. More launches narrow what launches alone make of the
 * variance between runs. Returns how many more units that is. */
static size_t known_later(const struct judge *j, const struct measure *m, const struct known *now,
                          struct known *out)
{
    const struct decide_later *later = &j->later;
    double times = fmax(1, later->launches);
    size_t more = later->runs, room = SIZE_MAX;
    struct known then = *now, bounded;

    if (m->by_runs) {
        then.floor = now->floor / times;
        then.variance = fmax(now->variance - (now->floor - then.floor), then.floor);
    } else {
        more = (size_t)((times - 1) * (double)(m->units_a < m->units_b ? m->units_a : m->units_b));
    }
    if (later->runs_most && grows_a(j, m))
        room = later->runs_most > m->units_a ? later->runs_most - m->units_a : 0;
    known_with(j, m, &then, more, out);
    known_with(j, m, &then, more < room ? more : room, &bounded);
    out->error = bounded.error;
    return more;
}

/* Found is what is proven and not equivalent. */
static double detectable_loss(const struct judge *j, const struct measure *m,
                              const struct known *now, const struct decide_case *c,
                              struct quantiles *q)
{
    struct known k;
    size_t more = known_later(j, m, now, &k);
    double pass = proof_at(j, m, &k, c, q, more);
    double half = quantile(q, 0.5 + j->confidence / 2, k.freedom) * k.error;

    pass = fmax(pass, -log1p(-c->margin) - half);
    return -expm1(-(pass + quantile(q, DECIDE_SURE, k.freedom) * k.error));
}

/* Fills in smallest, detectable and more_launches of a decided case. */
static void power_fill(const struct judge *j, const struct measure *m, const struct known *k,
                       struct quantiles *q, struct decide_case *c)
{
    if (c->obstacle == OBSTACLE_RUNS)
        return;
    c->smallest = smallest_loss(j, m, k, c, q);
    c->detectable = detectable_loss(j, m, k, c, q);
    c->more_of_a = grows_a(j, m);
    c->more_launches = c->decision == DECISION_INCONCLUSIVE ? more_needed(j, m, k, c) : 0;
}

static size_t most_runs(const struct decide_case *cases, size_t n, bool of_b)
{
    size_t most = 1;

    for (size_t i = 0; i < n; i++) {
        size_t runs = of_b && cases[i].b.n > cases[i].a.n ? cases[i].b.n : cases[i].a.n;

        most = runs > most ? runs : most;
    }
    return most;
}

static int work_init(struct work *w, const struct decide_case *cases, size_t n)
{
    size_t runs_a = most_runs(cases, n, false), runs = most_runs(cases, n, true);

    w->n = n;
    w->n_runs = runs_a;
    n = n ? n : 1;
    w->m = calloc(n, sizeof(*w->m));
    w->known = calloc(n, sizeof(*w->known));
    w->judged = calloc(n, sizeof(*w->judged));
    w->x = calloc(n, sizeof(*w->x));
    w->y = calloc(n, sizeof(*w->y));
    w->proven = calloc(n, sizeof(*w->proven));
    w->changes = calloc(n, sizeof(*w->changes));
    w->most_runs = runs;
    w->means = calloc(n, runs * sizeof(*w->means));
    w->off = calloc(n, w->n_runs * sizeof(*w->off));
    w->chance = calloc(n, 4 * (w->n_runs + 1) * sizeof(*w->chance));
    return w->m && w->known && w->judged && w->x && w->y && w->proven && w->changes && w->means &&
                   w->off && w->chance
               ? 0
               : -ENOMEM;
}

static void work_release(struct work *w)
{
    free(w->m);
    free(w->known);
    free(w->judged);
    free(w->x);
    free(w->y);
    free(w->proven);
    free(w->changes);
    free(w->means);
    free(w->off);
    free(w->chance);
}

static int options_read(const struct decide_options *options, struct judge *j)
{
    j->alarm_level = options->alarm_level == 0 ? DECIDE_ALARM_LEVEL : options->alarm_level;
    j->confidence = options->confidence == 0 ? DECIDE_CONFIDENCE : options->confidence;
    j->unrest = j->sway = j->anchor_sway = 1;
    j->most_df = INFINITY;
    for (int i = 0; i < 2; i++)
        j->losses[i] = j->gains[i] = (struct tail){.factor = 1};
    j->b_stays = options->b_stays;
    j->later = options->later;
    j->unchanged = options->unchanged;
    if (!(j->alarm_level > 0 && j->alarm_level < 0.5 && j->confidence > 0 && j->confidence < 1))
        return -EINVAL;
    return 0;
}

static void case_clear(struct decide_case *c)
{
    c->decision = DECISION_INCONCLUSIVE;
    c->obstacle = OBSTACLE_NONE;
    c->proven = c->beyond = c->by_runs = c->by_pairs = c->more_of_a = c->slipped = false;
    c->anchor_ratio = c->anchor_low = c->anchor_high = NAN;
    c->a_value = c->b_value = c->ratio = c->low = c->high = NAN;
    c->p_worse = c->p_better = c->p_likely = c->error = c->freedom = c->smallest = NAN;
    c->detectable = NAN;
    c->more_launches = 0;
    c->judged_by = c->shown_by = DECIDE_BY_MEDIAN;
    c->median_ratio = c->median_low = c->median_high = NAN;
    c->sustained_a = c->sustained_b = NAN;
}

/* Every case's own figures; which cases can be judged. */
static int measure_all(struct work *w, struct decide_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct decide_case *c = &cases[i];

        if (!(c->margin >= 0 && c->margin < 1))
            return -EINVAL;
        case_clear(c);
        c->obstacle = spread_measure(c, w->in_order, &w->means[i * w->most_runs], &w->m[i]);
        c->a_value = exp(w->m[i].a);
        c->b_value = exp(w->m[i].b);
        c->ratio = exp(w->m[i].d);
        c->by_runs = w->m[i].by_runs;
        if (c->obstacle != OBSTACLE_NONE)
            continue;
        w->judged[w->judge.n_judged++] = i;
        w->judge.widest = fmax(w->judge.widest, w->m[i].widest);
    }
    return 0;
}

/* The prior over launches' spreads, or over runs'. */
static int fit(struct work *w, bool of_runs, struct prior *prior)
{
    size_t n = w->judge.n_judged;

    for (size_t k = 0; k < n; k++) {
        const struct measure *m = &w->m[w->judged[k]];

        w->x[k] = of_runs ? m->between : m->within;
        w->y[k] = of_runs ? m->between_df : m->within_df;
    }
    return prior_fit(w->x, w->y, n, prior);
}

static void know(const struct judge *j, const struct measure *m, const struct prior *launches,
                 const struct prior *runs, struct known *k)
{
    double df = m->within_df, of_launches = df > 0 ? prior_moderate(launches, m->within, &df) : 0;

    k->variance = of_launches;
    k->df = df;
    k->floor = 0;
    if (m->by_runs) {
        k->df = m->between_df;
        k->floor = of_launches * m->inverse_launches;
        k->variance = fmax(prior_moderate(runs, m->between, &k->df), k->floor);
    }
    known_with(j, m, k, 0, k);
}

/* In a suite of several runs, cases that one run a side alone has (they are new, or were lost in
 * the others): runs vary for them, too. By how much is the other cases' word: the fit's, or without
 * one the largest. */
static void lend_runs(struct work *w, const struct prior *runs)
{
    const struct measure *most = NULL;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        const struct measure *m = &w->m[w->judged[k]];

        if (m->between_df > 0 && (!most || m->between > most->between))
            most = m;
    }
    for (size_t k = 0; most && k < w->judge.n_judged; k++) {
        struct measure *m = &w->m[w->judged[k]];

        if (m->between_df > 0)
            continue;
        m->units_a = m->by_runs ? m->units_a : 1;
        m->units_b = m->by_runs ? m->units_b : 1;
        m->by_runs = true;
        m->fewest = m->paired ? 1 : m->fewest;
        m->between = runs->freedom > 0 ? 0 : most->between;
        m->between_df = runs->freedom > 0 ? 0 : most->between_df;
    }
}

static int know_all(struct work *w, struct decide_overall *overall)
{
    int err = fit(w, false, &w->launches);

    err = err ? err : fit(w, true, &w->runs);
    if (err)
        return err;
    struct prior launches = w->launches, runs = w->runs;
    if (!(runs.freedom > 0))
        few_share(w->m, w->judged, w->judge.n_judged, &launches, w->x);
    lend_runs(w, &runs);
    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        know(&w->judge, &w->m[i], &launches, &runs, &w->known[i]);
        overall->by_runs |= w->m[i].by_runs;
    }
    const struct prior *told = runs.freedom > 0 ? &runs : &launches;

    overall->prior_freedom = told->freedom > 0 ? told->freedom : NAN;
    return 0;
}

static void case_fill(const struct work *w, struct quantiles *q, size_t i, struct decide_case *c)
{
    const struct known *k = &w->known[i];
    double d = w->m[i].d, half = k->error * quantile(q, 0.5 + w->judge.confidence / 2, k->freedom);

    c->by_runs = w->m[i].by_runs;
    c->by_pairs = w->m[i].paired;
    c->error = k->error;
    c->freedom = k->freedom;
    c->low = exp(d - half);
    c->high = exp(d + half);
    c->p_worse = tail_read(w->judge.losses, dist_t_cdf(d / k->error, k->freedom));
    c->p_likely = tail_read(w->judge.losses, dist_t_cdf(d / k->error, k->normal_freedom));
    c->p_better = tail_read(w->judge.gains, dist_t_cdf(-d / k->error, k->freedom));
}

/* What a p rests on, from the boldest to what counts. */
enum basis { BASIS_NORMAL, BASIS_SHAPE, BASIS_CHANCE, BASES };

static double p_of(const struct work *w, size_t i, const struct decide_case *c, bool loss,
                   enum basis basis)
{
    const struct known *k = &w->known[i];
    double t = w->m[i].d / k->error;
    double p = dist_t_cdf(loss ? t : -t, basis == BASIS_NORMAL ? k->normal_freedom : k->freedom);

    p = basis != BASIS_CHANCE ? p : loss ? c->p_worse : c->p_better;
    /* Held against the best of several by chance, everything looks like a loss. */
    return loss && c->best_of > 1 ? p * c->best_of : p;
}

/* Proof over the suite, on one side; first by less, to know what took it away. */
static int prove(struct work *w, struct decide_case *cases, bool loss)
{
    size_t n = w->judge.n_judged;
    int err = 0;

    for (int basis = BASIS_NORMAL; !err && basis < BASES; basis++) {
        for (size_t k = 0; k < n; k++)
            w->x[k] = p_of(w, w->judged[k], &cases[w->judged[k]], loss, (enum basis)basis);
        err = holm(w->x, n, w->judge.alarm_level, w->proven);
        for (size_t k = 0; !err && k < n; k++) {
            struct decide_case *c = &cases[w->judged[k]];

            if (!w->proven[k])
                continue;
            c->obstacle = basis == BASIS_NORMAL ? OBSTACLE_SHAPE : OBSTACLE_JUMPS;
            c->proven = basis == BASIS_CHANCE;
        }
    }
    return err;
}

/* One run a side, in a suite that does not know how runs differ. */
static bool is_unknown(const struct work *w, size_t i)
{
    return w->judge.runs_unknown && !w->m[i].by_runs && !w->m[i].paired;
}

static void case_decide(const struct work *w, const struct decide_overall *overall, size_t i,
                        struct decide_case *c)
{
    const struct known *k = &w->known[i];
    double d = w->m[i].d, edge = -log1p(-c->margin);
    bool few = c->proven && is_few(&w->judge, &w->m[i], 0) && !(fabs(d) > w->judge.widest);
    enum decide_obstacle likely = c->proven ? OBSTACLE_NONE : c->obstacle;

    c->obstacle = OBSTACLE_NONE;
    c->proven = c->proven && !few && !is_unknown(w, i);
    c->beyond = log(c->high) < -edge || log(c->low) > edge;
    if (is_unknown(w, i)) {
        c->obstacle = OBSTACLE_RUNS;
        c->p_worse = c->p_better = c->p_likely = NAN;
    } else if (is_equivalent(&w->judge, d, c->margin, k))
        c->decision = DECISION_EQUIVALENT;
    else if (c->proven)
        c->decision = d < 0 ? DECISION_WORSE : DECISION_BETTER;
    else if (few)
        c->obstacle = OBSTACLE_FEW;
    else if (likely != OBSTACLE_NONE)
        c->obstacle = likely;
    else if (overall->together && k->down)
        c->obstacle = OBSTACLE_TOGETHER;
}

void decide_count(const struct decide_case *cases, size_t n, struct decide_overall *overall)
{
    size_t counts[4] = {0};

    for (size_t i = 0; i < n; i++)
        counts[cases[i].decision]++;
    overall->n_equivalent = counts[DECISION_EQUIVALENT];
    overall->n_better = counts[DECISION_BETTER];
    overall->n_worse = counts[DECISION_WORSE];
    overall->n_inconclusive = counts[DECISION_INCONCLUSIVE];
    overall->decision = overall->n_worse                    ? DECISION_WORSE
                        : overall->n_inconclusive || n == 0 ? DECISION_INCONCLUSIVE
                        : overall->n_better                 ? DECISION_BETTER
                                                            : DECISION_EQUIVALENT;
}

/* B against the anchors. The loss has to lie beyond the margin as a whole: what wanders does not
 * slip. */
static void anchor_fill(struct work *w, struct quantiles *q, size_t i, struct decide_case *c)
{
    const struct measure *m = &w->m[i];
    const struct known *k = &w->known[i];
    double error = anchor_error(m, k) * w->judge.anchor_sway;
    double half = error * quantile(q, 0.5 + w->judge.confidence / 2, k->freedom);

    c->anchor_ratio = exp(m->anchor_d);
    c->anchor_low = exp(m->anchor_d - half);
    c->anchor_high = exp(m->anchor_d + half);
}

static int judge_anchors(struct work *w, struct quantiles *q, struct decide_case *cases)
{
    size_t n = 0;

    for (size_t k = 0; k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];
        const struct known *known = &w->known[i];

        if (!w->m[i].anchors || !w->m[i].by_runs)
            continue;
        anchor_fill(w, q, i, &cases[i]);
        w->x[n++] =
            tail_read(w->judge.losses, dist_t_cdf(w->m[i].anchor_d / anchor_error(&w->m[i], known) /
                                                      w->judge.anchor_sway,
                                                  known->freedom));
    }
    int err = holm(w->x, n, w->judge.alarm_level / 2, w->proven);

    n = 0;
    for (size_t k = 0; !err && k < w->judge.n_judged; k++) {
        struct decide_case *c = &cases[w->judged[k]];

        if (isnan(c->anchor_ratio) || !w->proven[n++] || !(c->anchor_high < 1 - c->margin))
            continue;
        c->slipped = c->decision != DECISION_WORSE;
        c->decision = DECISION_WORSE;
    }
    return err;
}

static int judge_all(struct work *w, struct decide_case *cases,
                     const struct decide_overall *overall)
{
    struct quantiles q = {.next = 0};
    int err;

    for (size_t k = 0; k < w->judge.n_judged; k++)
        case_fill(w, &q, w->judged[k], &cases[w->judged[k]]);
    err = prove(w, cases, true);
    err = err ? err : prove(w, cases, false);
    for (size_t k = 0; !err && k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        case_decide(w, overall, i, &cases[i]);
    }
    err = err ? err : judge_anchors(w, &q, cases);
    for (size_t k = 0; !err && k < w->judge.n_judged; k++) {
        size_t i = w->judged[k];

        power_fill(&w->judge, &w->m[i], &w->known[i], &q, &cases[i]);
    }
    return err;
}

/* Decides by one figure. */
static int decide_by_one(struct decide_case *cases, size_t n, const struct decide_options *options,
                         struct decide_overall *overall)
{
    struct work w = {0};
    int err;

    *overall = (struct decide_overall){.unrest = NAN, .prior_freedom = NAN};
    err = options_read(options, &w.judge);
    w.in_order = options->unchanged;
    err = err ? err : work_init(&w, cases, n);
    err = err ? err : measure_all(&w, cases, n);
    err = err ? err : know_all(&w, overall);
    if (!err && options->unchanged)
        ask_suite(&w, cases, overall);
    err = err ? err : judge_all(&w, cases, overall);
    overall->n_judged = w.judge.n_judged;
    decide_count(cases, err ? 0 : n, overall);
    work_release(&w);
    return err;
}

/* ---- Several figures ---- */

static const double *values_of(const struct decide_run *run, enum decide_figure figure)
{
    return figure == DECIDE_BY_FAST ? run->fast : run->sustained;
}

/* The side's runs with that figure. *lacking: another one has values, and not that. */
static size_t runs_with(const struct decide_side *side, enum decide_figure figure, bool *lacking)
{
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++) {
        bool has = side->runs[r].n && values_of(&side->runs[r], figure);

        *lacking |= side->runs[r].n && !has;
        n += has;
    }
    return n;
}

static bool has_figure(const struct decide_case *c, enum decide_figure figure)
{
    bool lacking = false;
    size_t a = runs_with(&c->a, figure, &lacking), b = runs_with(&c->b, figure, &lacking);

    if (figure == DECIDE_BY_FAST)
        return !lacking && !c->paired && a >= DECIDE_FAST_RUNS && b;
    return a && b && !(lacking && c->paired); /* earlier baselines may be without it */
}

/* The side by that figure; `to` has room for its runs. Returns what follows them. */
static struct decide_run *side_by(struct decide_side *side, enum decide_figure figure, int best,
                                  struct decide_run *to)
{
    for (size_t r = 0; r < side->n; r++) {
        to[r] = side->runs[r];
        to[r].values = values_of(&to[r], figure);
        to[r].n = to[r].values ? to[r].n : 0;
        to[r].best = best;
    }
    side->runs = to;
    return to + side->n;
}

/* What is told of the case is what the other figure says of it, but for the medians. */
static void take_figure(struct decide_case *c, const struct decide_case *by,
                        enum decide_figure figure)
{
    struct decide_case before = *c;

    *c = *by;
    c->slipped |= before.slipped;
    c->more_launches = c->more_launches && before.more_launches > c->more_launches
                           ? before.more_launches
                           : c->more_launches;
    c->a = before.a;
    c->b = before.b;
    c->a_value = before.a_value;
    c->b_value = before.b_value;
    c->smallest = before.smallest;
    c->detectable = before.detectable;
    c->shown_by = before.shown_by;
    c->judged_by = figure;
    c->median_ratio = before.judged_by == DECIDE_BY_MEDIAN ? before.ratio : before.median_ratio;
    c->median_low = before.judged_by == DECIDE_BY_MEDIAN ? before.low : before.median_low;
    c->median_high = before.judged_by == DECIDE_BY_MEDIAN ? before.high : before.median_high;
}

/* What the median leaves open, the fast figure may decide. `fast`: the case as decided by that. */
static void join_fast(struct decide_case *c, const struct decide_case *fast)
{
    bool decides = fast->decision == DECISION_WORSE || fast->decision == DECISION_BETTER;
    bool doubts = fast->obstacle == OBSTACLE_JUMPS || fast->obstacle == OBSTACLE_SHAPE ||
                  fast->obstacle == OBSTACLE_TOGETHER;

    if (c->decision == DECISION_INCONCLUSIVE &&
        (decides || (doubts && c->obstacle == OBSTACLE_NONE)))
        take_figure(c, fast, DECIDE_BY_FAST);
    c->shown_by = fast->smallest < c->smallest ? DECIDE_BY_FAST : DECIDE_BY_MEDIAN;
    c->smallest = fmin(c->smallest, fast->smallest);
    c->detectable = fmin(c->detectable, fast->detectable);
}

/* The worse one of the two figures counts; of equal decisions that which shows a greater loss. */
static void join_sustained(struct decide_case *c, const struct decide_case *sustained)
{
    static const int rank[] = {[DECISION_EQUIVALENT] = 0,
                               [DECISION_BETTER] = 1,
                               [DECISION_INCONCLUSIVE] = 2,
                               [DECISION_WORSE] = 3};
    double a = sustained->a_value, b = sustained->b_value;

    if (rank[sustained->decision] > rank[c->decision] ||
        (sustained->decision == c->decision && sustained->ratio < SUSTAINED_SHOWN * c->ratio))
        take_figure(c, sustained, DECIDE_BY_SUSTAINED);
    c->sustained_a = a;
    c->sustained_b = b;
}

static int decide_by(enum decide_figure figure, struct decide_case *cases, size_t n,
                     const struct decide_options *options)
{
    size_t n_with = 0, n_runs = 0, k = 0;

    for (size_t i = 0; i < n; i++) {
        n_with += has_figure(&cases[i], figure);
        n_runs += cases[i].a.n + cases[i].b.n;
    }
    if (!n_with)
        return 0;
    struct decide_case *with = calloc(n_with, sizeof(*with));
    struct decide_run *runs = calloc(n_runs, sizeof(*runs)), *to = runs;
    struct decide_overall overall;
    int err = with && runs ? 0 : -ENOMEM;

    for (size_t i = 0; !err && i < n; i++) {
        int best = figure != DECIDE_BY_FAST ? 0 : cases[i].higher_is_better ? 1 : -1;

        if (!has_figure(&cases[i], figure))
            continue;
        with[k] = cases[i];
        to = side_by(&with[k].a, figure, best, to);
        to = side_by(&with[k++].b, figure, best, to);
    }
    err = err ? err : decide_by_one(with, n_with, options, &overall);
    k = 0;
    for (size_t i = 0; !err && i < n; i++) {
        if (!has_figure(&cases[i], figure))
            continue;
        const struct decide_case *by = &with[k++];
        if (isnan(cases[i].error) || isnan(by->error))
            continue;
        if (figure == DECIDE_BY_FAST)
            join_fast(&cases[i], by);
        else
            join_sustained(&cases[i], by);
    }
    free(with);
    free(runs);
    return err;
}

static bool any_has(const struct decide_case *cases, size_t n, enum decide_figure figure)
{
    size_t i = 0;

    while (i < n && !has_figure(&cases[i], figure))
        i++;
    return i < n;
}

int decide_suite(struct decide_case *cases, size_t n, const struct decide_options *options,
                 struct decide_overall *overall)
{
    struct decide_options sustained = *options, rest;

    sustained.alarm_level = options->alarm_level == 0 ? DECIDE_ALARM_LEVEL : options->alarm_level;
    if (any_has(cases, n, DECIDE_BY_SUSTAINED))
        sustained.alarm_level /= 2;
    rest = sustained; /* shared by the medians and the best launches */
    if (any_has(cases, n, DECIDE_BY_FAST))
        rest.alarm_level /= 2;
    int err = decide_by_one(cases, n, &rest, overall);

    err = err ? err : decide_by(DECIDE_BY_FAST, cases, n, &rest);
    err = err ? err : decide_by(DECIDE_BY_SUSTAINED, cases, n, &sustained);
    decide_count(cases, err ? 0 : n, overall);
    return err;
}

double decide_value_a(const struct decide_case *c)
{
    return c->judged_by == DECIDE_BY_SUSTAINED ? c->sustained_a : c->a_value;
}

double decide_value_b(const struct decide_case *c)
{
    return c->judged_by == DECIDE_BY_SUSTAINED ? c->sustained_b : c->b_value;
}

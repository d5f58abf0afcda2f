/* SPDX-License-Identifier: Apache-2.0 */
/* From the variance components of all cases to decisions over the suite: see decide.h. */
#include "harness/decide/decide.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/decide/model.h"

#define ALARM_LEVEL     0.005 /* of a suite; kept below the 1 % that is promised */
#define CONFIDENCE      0.95
#define LIKELY_LEVEL    0.01 /* over all cases (Bonferroni) */
#define LIKELY_UNKNOWN  0.2  /* a loss, where nobody knows how runs differ */
#define SUSTAINED_SHOWN 0.98 /* of the medians' ratio: below it, that of the sustained is shown */

/* How a p is read where the baselines' own runs have heavier tails than a normal: a normal score is
 * that of scale times Student's t with so many degrees of freedom. */
struct tail {
    double scale, freedom; /* INFINITY: a p is what it is */
};

/* What is the same for all cases of a suite. */
struct judge {
    double alarm_level, confidence;
    bool unchanged, b_stays;
    struct decide_later later;
    size_t n;        /* judged cases: Holm's first step is alarm_level / n */
    double widest;   /* of all cases */
    double null_one; /* the empirical null's scale, 1 or more: where how runs differ is unknown */
    double null_one_df; /* degrees of freedom that this is known with */
    double null_runs;   /* the same where runs are known to vary */
    struct tail tail;   /* of these */
    /* What squared changes scatter by where nobody knows how runs differ, told by those that moved
     * the other way: losses [0] are held against gains, gains [1] against losses. */
    struct prior others[2];
    bool unknown; /* how runs differ cannot be told at all */
};

/* More data than there is. */
struct more {
    double runs, repetitions;
};

/* What is known of a change. */
struct known {
    double error, freedom;
    double plain; /* degrees of freedom, if runs had no heavier tails than repetitions */
    struct {
        double error, freedom;
    } others[2]; /* by judge.others; freedom 0: it is not asked */
};

/* One run a side, or a boot that A has none of. */
static bool is_one(const struct measure *m)
{
    return !m->paired && (!m->by_runs || m->level.new_boot);
}

static bool grows_a(const struct judge *j, const struct measure *m)
{
    return j->b_stays && m->by_runs && !m->paired;
}

/*
 * What runs differ by beyond their repetitions has a shape that few runs cannot tell: of one that is
 * far off two say nothing, though the suite says how wide they scatter. Until runs are known such a
 * part has the tails of Student's t with these degrees of freedom; with each further run they grow.
 * Chosen by simulation (tests/selftest: nights of t3, skewed nights).
 */
#define SHAPE_FREEDOM 4
#define SHAPE_CASES   6 /* a suite of fewer than 4 times that knows the width less, too */
#define SHAPE_POWER   1.5

/* Of the variance between two runs, what is not of repetitions; the null's scale counts beyond twice
 * its own error. */
static double part_of_runs(const struct judge *j)
{
    double scale = fmax(1, j->null_one / (1 + 2 / sqrt(2 * j->null_one_df)));

    return 1 - 1 / (scale * scale);
}

static double with_shape(const struct judge *j, const struct measure *m, double freedom,
                         double more_runs)
{
    bool known = m->by_runs && !m->level.new_boot;
    double runs = known ? m->own_runs + (grows_a(j, m) ? 1 : 2) * more_runs : 0;
    double boots = known ? m->level.by_boots * m->boots.value : 0;

    if (boots > 0) /* of how boots differ the boots alone tell */
        runs = fmin(runs, (double)m->level.boots - 1);
    double own = fmin(freedom, runs), lent = freedom - own;
    double shape = fmin(SHAPE_FREEDOM, fmax(1, (double)j->n / SHAPE_CASES));
    double part = known ? 1 - fmin(1, m->w_a / (m->v.value + boots)) : part_of_runs(j);

    return lent > 0 ? own + 1 / (1 / lent + part * part / (shape + pow(runs, SHAPE_POWER)))
                    : freedom;
}

/* Of a change against that level of A, with so much more data. extra_a, extra_b: variance of a
 * repetition on top. */
static double variance_of(const struct judge *j, const struct measure *m, const struct level *l,
                          struct more more, double extra_a, double extra_b, double *freedom)
{
    double n_a = 1 / m->inverse_a, n_b = 1 / m->inverse_b;
    double w_a = m->w_a * n_a / (n_a + more.repetitions);
    double w_b = m->w_b * n_b / (n_b + more.repetitions);
    double v = fmax(m->v.value - m->w_a + w_a, w_a), runs = (double)l->runs;
    double by_v = l->by_v * runs / (runs + more.runs);
    double runs_b = (double)m->n_b + (grows_a(j, m) ? 0 : more.runs);
    const struct variance *of_boots = l == &m->anchor ? &m->others_boots : &m->boots;
    double boots = l->by_boots * of_boots->value;
    double all = v * (1 / runs_b + by_v) + boots + (w_b - w_a) / runs_b;

    if (freedom) {
        /* Satterthwaite 1946, doi:10.2307/3002019 */
        double of_v = m->paired    ? all
                      : m->by_runs ? fmin(all, v * (1 / runs_b + by_v))
                                   : w_a * by_v;
        double df_v = m->by_runs ? m->v.df + (grows_a(j, m) ? 1 : 2) * more.runs
                                 : m->s_a.df + more.repetitions;
        double of_b = m->paired ? 0 : w_b / runs_b;
        double sum = of_v * of_v / df_v;

        sum += of_b > 0 && m->s_b.df > 0 ? of_b * of_b / (m->s_b.df + more.repetitions) : 0;
        sum += boots > 0 ? boots * boots / of_boots->df : 0;
        *freedom = all * all / sum;
        if (!m->by_runs) /* both sides' are moderated by this */
            *freedom = fmin(*freedom, m->s.df + more.repetitions * (double)(m->paired ? 1 : 2));
    }
    return all + extra_a * m->inverse_a * by_v + extra_b * m->inverse_b / runs_b;
}

/* More repetitions in the same two runs do not tell what differs between the two: what the empirical
 * null added stays. */
static struct known known_with(const struct judge *j, const struct measure *m,
                               const struct level *l, struct more more)
{
    struct known k = {.error = 0};
    double now = variance_of(j, m, l, (struct more){0, 0}, 0, 0, NULL);
    double then = variance_of(j, m, l, more, 0, 0, &k.freedom);

    if (is_one(m)) {
        k.error = sqrt(then + now * (j->null_one * j->null_one - 1));
        k.freedom = fmin(k.freedom, j->null_one_df);
        for (int gain = 0; gain < 2; gain++) {
            const struct prior *p = &j->others[gain];

            k.others[gain].error = sqrt(p->add + p->times * then);
            k.others[gain].freedom = p->freedom;
        }
    } else {
        k.error = sqrt(then) * (m->paired ? 1 : j->null_runs);
    }
    k.plain = k.freedom;
    if (j->unchanged && !m->paired)
        k.freedom = with_shape(j, m, k.freedom, more.runs);
    return k;
}

static double change_of(const struct measure *m, const struct level *l)
{
    return m->sign * (m->b - l->mean);
}

/* What lies beyond the rounding of values. */
static double beyond_rounding(const struct measure *m, double d)
{
    return copysign(fmax(0, fabs(d) - m->resolution), d);
}

/* ---- The empirical null: what changes of unchanged cases scatter by, in units of their errors ---- */

#define NULL_FREEDOM  0.65   /* degrees of freedom a case that a robust scale is known with */
#define NULL_LEVEL    0.0025 /* for a night that scatters wider than any baseline could */
#define STRANGE_SHARE 4 /* a run that is beyond it in one of so many cases says nothing of tails */
#define SCORE_MOST    4 /* a score beyond this counts as this: one strange run is no tail */
#define NULL_RUNS     3 /* runs of A from which on they say how wide they scatter themselves */
#define BEYOND        6
#define OF_NORMAL     1.046 /* what the formula gives for normal values of spread 1, by simulation */
#define ENOUGH        1.01  /* of the scale that is left */
#define ROUNDS        60
#define P_LEAST       1e-300
#define NORMAL        1e9  /* degrees of freedom */
#define CONSTANT      1e-9 /* a score below this is of a case that does not vary */

/* The biweight scale around 0 (Lax 1985, doi:10.1080/01621459.1985.10478164), one step from the
 * median of absolute values z. Beyond BEYOND of those a change is a true one and has no say. */
static double biweight(const double *z, size_t n)
{
    double median = stats_median(z, n), above = 0, below = 0;

    if (!(median > 0))
        return 0;
    for (size_t i = 0; i < n; i++) {
        double u = z[i] / (BEYOND * median), v = 1 - u * u;

        if (u >= 1)
            continue;
        above += z[i] * z[i] * v * v * v * v;
        below += v * (1 - 5 * u * u);
    }
    return sqrt((double)n * above) / fabs(below) / OF_NORMAL;
}

static double normal_score(double t, double df)
{
    return copysign(dist_normal_quantile(fmax(dist_t_cdf(-fabs(t), df), P_LEAST)), t);
}

/* The scale of t[0..n), each with its df, as that of normal scores. A score of a large t grows far
 * slower than t: divided once by what scores scatter by, they would scatter still. */
static double scale_of(const double *t, const double *df, size_t n, double *scratch)
{
    double k = 1;

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++)
            scratch[i] = fabs(normal_score(t[i] / k, df[i]));
        double left = biweight(scratch, n);

        if (!(left > ENOUGH) && !(round == 0 && left > 0))
            break;
        k *= left;
    }
    return k;
}

#define TAIL_LEAST 60 /* of fewer scores no tail is fitted */
#define TAIL_SEEN  2  /* log likelihood that heavier tails have to gain */

static double read_tail(const struct tail *tail, double p)
{
    return isinf(tail->freedom)
               ? p
               : fmax(p, dist_t_cdf(dist_normal_quantile(fmax(p, P_LEAST)) / tail->scale,
                                    tail->freedom));
}

/* What is read as p. */
static double nominal(const struct tail *tail, double p)
{
    return isinf(tail->freedom)
               ? p
               : fmin(p, erfc(-(tail->scale * dist_t_quantile(p, tail->freedom)) / M_SQRT2) / 2);
}

/* The likeliest scale of Student's t around 0 (EM), and its log likelihood. */
static double scale_of_t(const double *z, size_t n, double freedom, double *likelihood)
{
    int sign;
    double scale = 1;

    for (int round = 0; round < ROUNDS; round++) {
        double sum = 0, before = scale;

        for (size_t i = 0; i < n; i++)
            sum += z[i] * z[i] * (freedom + 1) / (freedom + z[i] * z[i] / scale / scale);
        scale = fmax(sqrt(sum / (double)n), 1e-6);
        if (fabs(scale - before) < 1e-3 * scale)
            break;
    }
    *likelihood = (double)n * (lgamma_r((freedom + 1) / 2, &sign) - lgamma_r(freedom / 2, &sign) -
                               log(freedom) / 2 - log(scale));
    for (size_t i = 0; i < n; i++)
        *likelihood -= (freedom + 1) / 2 * log1p(z[i] * z[i] / scale / scale / freedom);
    return scale;
}

/* The likeliest of these tails for the scores of changes where nothing changed. */
static struct tail tail_of(const double *z, size_t n)
{
    static const double freedoms[] = {1, 1.5, 2, 3, 4, 6, 10};
    struct tail tail = {1, INFINITY};
    double best;

    if (n < TAIL_LEAST)
        return tail;
    scale_of_t(z, n, 1e6, &best);
    best += TAIL_SEEN;
    for (size_t i = 0; i < sizeof(freedoms) / sizeof(*freedoms); i++) {
        double likelihood, scale = scale_of_t(z, n, freedoms[i], &likelihood);

        if (!(likelihood > best))
            continue;
        best = likelihood;
        tail = (struct tail){scale, freedoms[i]};
    }
    return tail;
}

/* The changes of the cases of one kind, as t with its df. */
static size_t changes_of(const struct judge *j, struct model *m, bool one, double *t)
{
    size_t n = 0;

    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];

        if (c->paired || is_one(c) != one)
            continue;
        struct known known = known_with(j, c, &c->level, (struct more){0, 0});
        m->df[n] = known.plain;
        t[n] = beyond_rounding(c, change_of(c, &c->level)) / known.error;
        n += t[n] !=
             0; /* what is constant, or within a step, tells nothing of what runs differ by */
    }
    return n;
}

/* A run of A against the others of its boot that are not strange, as a normal score; NaN: there are
 * none. */
static double deviation(const struct model *m, const struct measure *c, size_t at)
{
    const struct run_mean *self = NULL;
    double mean = 0;
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->runs[i].at == at && c->runs[i].role == DECIDE_LEVEL)
            self = &c->runs[i];
    for (size_t i = 0; self && i < c->n; i++) {
        const struct run_mean *r = &c->runs[i];

        if (r == self || r->strange || r->role != DECIDE_LEVEL ||
            (c->boot && r->boot != self->boot))
            continue;
        mean += (r->mean - mean) / (double)++n;
    }
    if (!n)
        return NAN;
    double off = self->mean - mean, others = (double)n;
    /* From the mean with itself among them it is nearer. */
    struct variance v =
        self->strange ? c->v : suite_model_v_without(m, c, off * others / (others + 1), n + 1);

    return v.df > 0 ? normal_score(off / sqrt(v.value * (1 + 1 / others)), v.df) : NAN;
}

/*
 * Tonight's scale, unless tonight scatters as no baseline does: then most cases may have changed in
 * truth, and the baselines' own scale is taken. Each baseline's is that of its cases' distance from
 * the others.
 */
static double null_of_runs(struct judge *j, struct model *m, double tonight, size_t n_runs,
                           double *t, double *scratch, double *scores)
{
    double mean = 0, squares = 0, sum = 0;
    size_t runs = 0, cases = 0, n_scores = 0;

    for (size_t at = 0; at < n_runs; at++) {
        size_t n = 0, strange = 0;

        for (size_t k = 0; k < m->n_judged; k++) {
            const struct measure *c = &m->all[m->judged[k]];
            double x = c->paired || is_one(c) ? NAN : deviation(m, c, at);

            if (isnan(x) || fabs(x) < CONSTANT)
                continue;
            strange += fabs(x) > SCORE_MOST;
            scores[n_scores + n] = fmax(-SCORE_MOST, fmin(SCORE_MOST, x));
            m->df[n] = NORMAL;
            t[n++] = x;
        }
        n_scores += STRANGE_SHARE * strange < n ? n : 0;
        if (n < DECIDE_NULL_CASES)
            continue;
        double own = fmax(scale_of(t, m->df, n, scratch), 1e-3), off = log(own) - mean;
        mean += off / (double)++runs;
        squares += off * (log(own) - mean);
        sum += own * own;
        cases = n;
    }
    if (runs < NULL_RUNS)
        return tonight;
    j->tail = tail_of(scores, n_scores);
    double least = 1 / (2 * NULL_FREEDOM * (double)cases);
    double error = sqrt(fmax(squares / (double)(runs - 1), least) * (1 + 1 / (double)runs));
    bool far = dist_t_cdf(-(log(tonight) - mean) / error, (double)(runs - 1)) < NULL_LEVEL;

    return far ? sqrt(sum / (double)runs) : tonight;
}

/* ---- Far more cases moved one way than the other, and none of them says why ---- */

#define MOVED          2.5 /* scores beyond this are a move */
#define MOVED_AMID     1.5 /* the same by errors that are widened, also by such a move */
#define TOGETHER_LEAST 5
#define TOGETHER_LEVEL 0.02

static void ask_together(const struct judge *j, struct model *m, double far, bool *down,
                         struct decide_overall *overall)
{
    size_t n = 0;

    overall->n_down = overall->n_up = 0;
    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];
        struct known known = known_with(j, c, &c->level, (struct more){0, 0});
        double d = change_of(c, &c->level);
        double z = normal_score(beyond_rounding(c, d) / known.error, known.plain);

        down[k] = z < -far;
        overall->n_down += z < -far;
        overall->n_up += z > far;
        if (down[k])
            m->z[n++] = d;
    }
    overall->together =
        overall->n_down >= TOGETHER_LEAST && overall->n_down > overall->n_up &&
        dist_fair_binomial_cdf(overall->n_up, overall->n_down + overall->n_up) < TOGETHER_LEVEL;
    overall->moved = n ? exp(stats_median(m->z, n)) : NAN;
}

#define OTHERS_LEAST 8 /* of fewer nothing is told */
#define OTHERS_ALIKE 1 /* log likelihood that heavier tails have to gain */

/* Of two runs that are alike either may be the slower one: what moved the other way says what
 * unchanged cases scatter by, whatever their repetitions say. */
static void fit_others(struct judge *j, struct model *m, bool losses)
{
    size_t n = 0, of = 0;

    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];
        double d = change_of(c, &c->level);

        m->x[n] = (struct variance){d * d, d != 0 && (d > 0) == losses ? 1 : 0};
        m->base[n] = variance_of(j, c, &c->level, (struct more){0, 0}, 0, 0, NULL);
        if (c->paired || !is_one(c))
            continue;
        of += m->x[n++].df > 0;
    }
    if (of >= OTHERS_LEAST)
        j->others[!losses] =
            prior_fit(m->x, m->base, n, OTHERS_ALIKE * (1 - 2 * part_of_runs(j)), 0);
}

/* Of a gate: what the suite as a whole says of tonight. down: room for all cases. */
static void ask_suite(struct judge *j, struct model *m, size_t n_runs, bool *down,
                      struct decide_overall *overall)
{
    double *t = xcalloc((m->n_judged + 1) * (n_runs + 2), sizeof(*t));
    double *scratch = t + m->n_judged + 1, *scores = scratch + m->n_judged + 1;
    size_t n = changes_of(j, m, true, t), all = 0;

    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];

        overall->new_boot |= c->level.new_boot;
        all += is_one(c) && change_of(c, &c->level) != 0;
    }
    if (all)
        j->null_one_df = NULL_FREEDOM * (double)all;
    ask_together(j, m, MOVED, down, overall);
    if (all && all < DECIDE_NULL_CASES)
        overall->runs_unknown = j->unknown = true;
    else if (n >= DECIDE_NULL_CASES)
        overall->unrest = j->null_one = fmax(1, scale_of(t, m->df, n, scratch));
    fit_others(j, m, true);
    fit_others(j, m, false);
    n = changes_of(j, m, false, t);
    if (n >= DECIDE_NULL_CASES) {
        double tonight = scale_of(t, m->df, n, scratch);

        j->null_runs = fmax(1, null_of_runs(j, m, tonight, n_runs, t, scratch, scores));
        overall->unrest = fmax(j->null_runs, j->null_one);
    }
    if (!overall->together)
        ask_together(j, m, MOVED_AMID, down, overall);
    free(t);
}

/* ---- What the data could have shown, and what more of it would ---- */

/* Student's t quantile, remembering the last few asked: cases of a suite have mostly the same df. */
#define QUANTILES 16
struct quantiles {
    double p[QUANTILES], df[QUANTILES], t[QUANTILES];
    size_t next;
};

static double quantile(struct quantiles *q, double p, double df)
{
    if (!(p > 0))
        return -INFINITY; /* nothing is proof of that */
    for (size_t i = 0; i < QUANTILES; i++)
        if (q->p[i] == p && q->df[i] == df)
            return q->t[i];
    size_t i = q->next++ % QUANTILES;

    q->p[i] = p;
    q->df[i] = df;
    return q->t[i] = dist_t_quantile(p, df);
}

/* Few repetitions of one run a side may all have fallen on one of two levels. */
static bool is_few(const struct measure *m, struct more more)
{
    if (m->by_runs && !m->paired)
        return false;
    if (m->by_runs)
        return (double)m->n_b + more.runs < DECIDE_FEW_LAUNCHES;
    return (double)m->fewest + more.repetitions < DECIDE_FEW_LAUNCHES;
}

/* A repetition on a mode of its own counts by itself here, however quiet the other cases are. */
static double half_width(const struct judge *j, const struct measure *m, struct more more,
                         struct quantiles *q)
{
    struct known k = known_with(j, m, &m->level, more);
    double modes = variance_of(j, m, &m->level, more, m->modes_a, m->modes_b, NULL) /
                   variance_of(j, m, &m->level, more, 0, 0, NULL);

    return quantile(q, 0.5 + j->confidence / 2, k.freedom) * k.error * sqrt(modes) + m->resolution;
}

static bool is_equivalent(double d, double margin, double half)
{
    return fabs(d) + half < -log1p(-margin);
}

/* How far from none a change has to be to have that p. */
static double width(const struct known *k, bool loss, double p, struct quantiles *q)
{
    double width = -quantile(q, p, k->freedom) * k->error;

    return k->others[!loss].freedom > 0
               ? fmax(width, -quantile(q, p, k->others[!loss].freedom) * k->others[!loss].error)
               : width;
}

/* What a loss has to pass to be proven. */
static double proof_at(const struct judge *j, const struct measure *m, const struct known *k,
                       struct more more, struct quantiles *q)
{
    double p = j->alarm_level / (double)j->n;
    double pass = width(k, true, is_one(m) || m->paired ? p : nominal(&j->tail, p), q);

    return is_few(m, more) ? fmax(pass, j->widest) : pass + m->resolution;
}

static bool decides(const struct judge *j, const struct measure *m, const struct decide_case *c,
                    double units, struct quantiles *q)
{
    struct more more = {.runs = m->by_runs ? units : 0, .repetitions = m->by_runs ? 0 : units};
    struct known k = known_with(j, m, &m->level, more);
    double d = change_of(m, &m->level);

    return is_equivalent(d, c->margin, half_width(j, m, more, q)) ||
           fabs(d) >= proof_at(j, m, &k, more, q);
}

/* The smallest number that decides; more never decides less, so it is halved towards. */
static size_t more_needed(const struct judge *j, const struct measure *m,
                          const struct decide_case *c, struct quantiles *q)
{
    size_t no = 0, yes = DECIDE_MORE_MAX;

    if (j->later.runs_most && grows_a(j, m))
        yes = j->later.runs_most > m->level.runs ? j->later.runs_most - m->level.runs : 0;
    if (!yes || !decides(j, m, c, (double)yes, q))
        return 0;
    while (yes - no > 1) {
        size_t middle = no + (yes - no) / 2;

        if (decides(j, m, c, (double)middle, q))
            yes = middle;
        else
            no = middle;
    }
    return yes;
}

/* Found is what is proven and not equivalent. */
static double detectable_loss(const struct judge *j, const struct measure *m,
                              const struct decide_case *c, struct quantiles *q)
{
    const struct decide_later *later = &j->later;
    double repetitions = fmin(1 / m->inverse_a, 1 / m->inverse_b);
    struct more more = {.repetitions = (fmax(1, later->launches) - 1) * repetitions};

    if (m->by_runs)
        more.runs = (double)later->runs;
    if (later->runs_most && grows_a(j, m))
        more.runs = fmin(more.runs, fmax(0, (double)later->runs_most - (double)m->level.runs));
    struct known k = known_with(j, m, &m->level, more);
    double pass = fmax(proof_at(j, m, &k, more, q), -log1p(-c->margin) - half_width(j, m, more, q));

    /* What is rounded may fall a step short. */
    return -expm1(-(pass + m->resolution + quantile(q, DECIDE_POWER, k.freedom) * k.error));
}

/* ---- Proof, and the decision of a case ---- */

struct candidate {
    double p;
    size_t i;
};

static int by_p(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return (x->p > y->p) - (x->p < y->p);
}

/* Holm 1979, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 65. */
static void holm(const double *p, size_t n, double level, bool *proven)
{
    struct candidate *order = xcalloc(n, sizeof(*order));

    for (size_t i = 0; i < n; i++) {
        order[i] = (struct candidate){p[i], i};
        proven[i] = false;
    }
    qsort(order, n, sizeof(*order), by_p);
    for (size_t k = 0; k < n && order[k].p <= level / (double)(n - k); k++)
        proven[order[k].i] = true;
    free(order);
}

/* Proof over the suite, on one side: first as if the shape of what runs differ by were known, to
 * tell what took it away. */
static void prove(const struct judge *j, struct model *m, struct decide_case *cases, bool loss)
{
    for (int shaped = 0; shaped < 2; shaped++) {
        for (size_t k = 0; k < m->n_judged; k++) {
            const struct measure *c = &m->all[m->judged[k]];
            struct known known = known_with(j, c, &c->level, (struct more){0, 0});
            double t = beyond_rounding(c, change_of(c, &c->level)) / known.error;

            m->z[k] = dist_t_cdf(loss ? t : -t, shaped ? known.freedom : known.plain);
            if (!is_one(c) && !c->paired)
                m->z[k] = read_tail(&j->tail, m->z[k]);
            if (known.others[!loss].freedom > 0)
                m->z[k] = fmax(m->z[k],
                               dist_t_cdf((loss ? t : -t) * known.error / known.others[!loss].error,
                                          known.others[!loss].freedom));
            if (loss && !shaped) /* of fewer cases more is asked */
                cases[m->judged[k]].likely = m->z[k] * (double)j->n <= LIKELY_LEVEL;
            if (shaped)
                *(loss ? &cases[m->judged[k]].p_worse : &cases[m->judged[k]].p_better) = m->z[k];
        }
        holm(m->z, m->n_judged, j->alarm_level, m->proven);
        for (size_t k = 0; k < m->n_judged; k++)
            if (m->proven[k]) {
                cases[m->judged[k]].obstacle = OBSTACLE_SHAPE;
                cases[m->judged[k]].proven = shaped;
            }
    }
}

/* Does B lie where one of the slower runs of A lay that were left out? */
static bool is_as_strange(const struct measure *m, const struct known *k, double confidence)
{
    double room = -dist_t_quantile((1 - confidence) / 2, k->freedom) * k->error;

    for (size_t i = 0; i < m->n; i++)
        if (m->runs[i].strange && m->sign * (m->runs[i].mean - m->level.mean) < 0 &&
            fabs(m->b - m->runs[i].mean) < room)
            return true;
    return false;
}

static void case_fill(const struct judge *j, const struct measure *m, const struct known *k,
                      struct quantiles *q, struct decide_case *c)
{
    double d = change_of(m, &m->level), half = half_width(j, m, (struct more){0, 0}, q);
    double edge = -log1p(-c->margin);

    c->by_runs = m->by_runs;
    c->by_pairs = m->paired;
    c->new_boot = m->level.new_boot;
    c->ratio = exp(d);
    c->error = k->error;
    c->freedom = k->freedom;
    c->low = exp(d - half);
    c->high = exp(d + half);
    c->beyond = d + half < -edge || d - half > edge;
    double farthest = 0;

    c->strange = SIZE_MAX;
    for (size_t i = 0; i < m->n; i++) {
        double off = m->sign * (m->runs[i].mean - m->level.mean);

        if (!m->runs[i].strange)
            continue;
        c->n_strange++;
        if (fabs(off) < fabs(farthest))
            continue;
        farthest = off;
        c->strange = m->runs[i].at;
    }
    c->strange_ratio = c->n_strange ? exp(farthest) : NAN;
}

static void case_decide(const struct judge *j, const struct decide_overall *overall,
                        const struct measure *m, bool down, struct quantiles *q,
                        struct decide_case *c)
{
    struct known k = known_with(j, m, &m->level, (struct more){0, 0});
    double d = change_of(m, &m->level);
    enum decide_obstacle doubt = c->proven ? OBSTACLE_NONE : c->obstacle;
    bool few = c->proven && is_few(m, (struct more){0, 0}) && !(fabs(d) > j->widest);

    case_fill(j, m, &k, q, c);
    if (few)
        doubt = OBSTACLE_FEW;
    else if (c->proven && d < 0 && c->n_strange && is_as_strange(m, &k, j->confidence))
        doubt = OBSTACLE_STRANGE;
    else if (!c->proven && overall->together && down)
        doubt = doubt ? doubt : OBSTACLE_TOGETHER;
    c->proven = c->proven && !doubt;
    c->obstacle = OBSTACLE_NONE;
    if (j->unknown && is_one(m)) {
        c->obstacle = OBSTACLE_RUNS;
        c->p_worse = c->p_better = NAN;
        c->proven = false;
    } else if (is_equivalent(d, c->margin, half_width(j, m, (struct more){0, 0}, q)))
        c->decision = DECISION_EQUIVALENT;
    else if (c->proven)
        c->decision = d < 0 ? DECISION_WORSE : DECISION_BETTER;
    else
        c->obstacle = doubt;
    bool open = c->decision == DECISION_INCONCLUSIVE && c->ratio < 1 - c->margin;

    if (c->obstacle == OBSTACLE_RUNS)
        c->likely = c->ratio < 1 - LIKELY_UNKNOWN; /* else there would never be a second baseline */
    else
        c->likely = open && (c->likely || (doubt && doubt != OBSTACLE_FEW));
}

#define ANCHORS_LEAST 3 /* fewer may be one odd run */

/* B against the anchors, at half of the alarm level: the loss has to lie beyond the margin as a
 * whole. */
static void judge_anchors(const struct judge *j, struct model *m, struct quantiles *q,
                          struct decide_case *cases)
{
    size_t n = 0;

    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];
        struct decide_case *to = &cases[m->judged[k]];

        if (c->anchor.runs < ANCHORS_LEAST || !c->by_runs || c->anchor.new_boot)
            continue;
        struct known known = known_with(j, c, &c->anchor, (struct more){0, 0});
        double d = change_of(c, &c->anchor);
        double half = known.error * quantile(q, 0.5 + j->confidence / 2, known.freedom);

        to->anchor_ratio = exp(d);
        to->anchor_low = exp(d - half);
        to->anchor_high = exp(d + half);
        m->z[n++] =
            read_tail(&j->tail, dist_t_cdf(beyond_rounding(c, d) / known.error, known.freedom));
    }
    holm(m->z, n, j->alarm_level / 2, m->proven);
    n = 0;
    for (size_t k = 0; k < m->n_judged; k++) {
        struct decide_case *c = &cases[m->judged[k]];

        if (isnan(c->anchor_ratio) || !m->proven[n++] || !(c->anchor_high < 1 - c->margin))
            continue;
        c->slipped = c->decision != DECISION_WORSE;
        c->decision = DECISION_WORSE;
        c->likely = false;
    }
}

static void judge_all(const struct judge *j, struct model *m, const bool *down,
                      struct decide_case *cases, const struct decide_overall *overall)
{
    struct quantiles q = {.next = 0};

    prove(j, m, cases, true);
    prove(j, m, cases, false);
    for (size_t k = 0; k < m->n_judged; k++)
        case_decide(j, overall, &m->all[m->judged[k]], down[k], &q, &cases[m->judged[k]]);
    judge_anchors(j, m, &q, cases);
    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *of = &m->all[m->judged[k]];
        struct decide_case *c = &cases[m->judged[k]];

        if (c->obstacle == OBSTACLE_RUNS)
            continue;
        c->detectable = detectable_loss(j, of, c, &q);
        c->more_of_a = grows_a(j, of);
        if (c->decision == DECISION_INCONCLUSIVE && c->obstacle != OBSTACLE_STRANGE &&
            c->obstacle != OBSTACLE_TOGETHER)
            c->more_launches = more_needed(j, of, c, &q);
    }
}

/* ---- By one figure ---- */

static void case_clear(struct decide_case *c)
{
    struct decide_case clear = {.a = c->a,
                                .b = c->b,
                                .margin = c->margin,
                                .higher_is_better = c->higher_is_better,
                                .paired = c->paired,
                                .alone_is_open = c->alone_is_open,
                                .decision = DECISION_INCONCLUSIVE,
                                .strange = SIZE_MAX};

    clear.anchor_ratio = clear.anchor_low = clear.anchor_high = clear.strange_ratio = NAN;
    clear.a_value = clear.b_value = clear.ratio = clear.low = clear.high = NAN;
    clear.p_worse = clear.p_better = clear.error = clear.freedom = clear.detectable = NAN;
    clear.sustained_a = clear.sustained_b = NAN;
    clear.median_ratio = clear.median_low = clear.median_high = NAN;
    *c = clear;
}

static double geometric_mean(const struct decide_side *side)
{
    double mean = 0;
    size_t n = 0;

    for (size_t r = 0; r < side->n; r++)
        if (side->runs[r].n && side->runs[r].role == DECIDE_LEVEL)
            mean += (stats_log_mean(side->runs[r].values, side->runs[r].n) - mean) / (double)++n;
    return exp(mean);
}

/* Cases with a value have one to show, whether they can be judged or not. */
static size_t fill_values(struct model *m, struct decide_case *cases, struct judge *j,
                          struct decide_overall *overall)
{
    size_t n_runs = 0;

    for (size_t i = 0; i < m->n; i++) {
        if (cases[i].obstacle != OBSTACLE_NONE && cases[i].obstacle != OBSTACLE_ONE_LAUNCH)
            continue;
        cases[i].a_value = geometric_mean(&cases[i].a);
        cases[i].b_value = geometric_mean(&cases[i].b);
        cases[i].ratio = cases[i].higher_is_better ? cases[i].b_value / cases[i].a_value
                                                   : cases[i].a_value / cases[i].b_value;
    }
    j->n = overall->n_judged = m->n_judged;
    for (size_t k = 0; k < m->n_judged; k++) {
        const struct measure *c = &m->all[m->judged[k]];
        struct decide_case *to = &cases[m->judged[k]];

        overall->by_runs |= c->by_runs;
        j->widest = fmax(j->widest, c->widest);
        n_runs = to->a.n > n_runs ? to->a.n : n_runs;
        if (!c->paired)
            to->a_value = exp(c->level.mean);
    }
    return n_runs;
}

static int decide_by_one(struct decide_case *cases, size_t n, const struct decide_options *options,
                         struct decide_overall *overall)
{
    struct model m = {.n = 0};
    struct judge j;
    j = (struct judge){.alarm_level =
                           options->alarm_level == 0 ? ALARM_LEVEL : options->alarm_level,
                       .confidence = options->confidence == 0 ? CONFIDENCE : options->confidence,
                       .unchanged = options->unchanged,
                       .b_stays = options->b_stays,
                       .later = options->later,
                       .null_one = 1,
                       .null_runs = 1,
                       .null_one_df = INFINITY,
                       .tail = {1, INFINITY}};
    int err = j.alarm_level > 0 && j.alarm_level < 0.5 && j.confidence > 0 && j.confidence < 1
                  ? 0
                  : -EINVAL;

    *overall = (struct decide_overall){.unrest = NAN, .moved = NAN};
    for (size_t i = 0; i < n; i++) {
        case_clear(&cases[i]);
        if (!(cases[i].margin > 0 && cases[i].margin < 1))
            err = -EINVAL;
    }
    decide_count(cases, 0, overall);
    if (err)
        return err;
    suite_model_make(&m, cases, n, options->unchanged && options->b_stays);
    bool *down = xcalloc(n, sizeof(*down));
    size_t n_runs = fill_values(&m, cases, &j, overall);
    if (options->unchanged)
        ask_suite(&j, &m, n_runs, down, overall);
    judge_all(&j, &m, down, cases, overall);
    suite_model_release(&m);
    free(down);
    return 0;
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

/* ---- What was sustained, beside the medians ---- */

/* Has each side a run with it? Of pairs, all; earlier baselines may be without it. */
static bool has_sustained(const struct decide_case *c)
{
    size_t with[2] = {0, 0};
    bool lacking = false;

    for (int s = 0; s < 2; s++) {
        const struct decide_side *side = s ? &c->b : &c->a;

        for (size_t r = 0; r < side->n; r++) {
            with[s] += side->runs[r].n && side->runs[r].sustained;
            lacking |= side->runs[r].n && !side->runs[r].sustained;
        }
    }
    return with[0] && with[1] && !(lacking && c->paired);
}

/* The side by that figure; `to` has room for its runs. Returns what follows them. */
static struct decide_run *side_sustained(struct decide_side *side, struct decide_run *to)
{
    for (size_t r = 0; r < side->n; r++) {
        to[r] = side->runs[r];
        to[r].values = to[r].sustained;
        to[r].n = to[r].values ? to[r].n : 0;
    }
    side->runs = to;
    return to + side->n;
}

/* The worse one of the two figures counts; of equal decisions that which shows a greater loss. */
static void join(struct decide_case *c, const struct decide_case *sustained)
{
    static const int rank[] = {[DECISION_EQUIVALENT] = 0,
                               [DECISION_BETTER] = 1,
                               [DECISION_INCONCLUSIVE] = 2,
                               [DECISION_WORSE] = 3};
    struct decide_case median = *c;
    int worse = rank[sustained->decision] - rank[c->decision];
    bool open = !worse && c->decision == DECISION_INCONCLUSIVE;
    bool doubt = (sustained->likely && !c->likely) || (sustained->obstacle && !c->obstacle);
    size_t x = median.more_launches, y = sustained->more_launches;

    if (worse > 0 || (!worse && sustained->ratio < SUSTAINED_SHOWN * c->ratio) || (open && doubt)) {
        *c = *sustained;
        c->a = median.a;
        c->b = median.b;
        c->a_value = median.a_value;
        c->b_value = median.b_value;
        c->judged_by = DECIDE_BY_SUSTAINED;
        c->median_ratio = median.ratio;
        c->median_low = median.low;
        c->median_high = median.high;
    }
    if (open) {
        c->likely = median.likely || sustained->likely;
        c->more_launches = x && y ? (x > y ? x : y) : 0;
    }
    c->detectable = median.detectable;
    c->sustained_a = sustained->a_value;
    c->sustained_b = sustained->b_value;
}

/* The options are those by which the medians were decided. */
static void decide_sustained(struct decide_case *cases, size_t n, size_t n_with,
                             const struct decide_options *options)
{
    size_t n_runs = 1, k = 0;

    for (size_t i = 0; i < n; i++)
        n_runs += cases[i].a.n + cases[i].b.n;
    struct decide_case *with = xcalloc(n_with, sizeof(*with));
    struct decide_run *runs = xcalloc(n_runs, sizeof(*runs)), *to = runs;
    struct decide_overall overall;

    for (size_t i = 0; i < n; i++) {
        if (!has_sustained(&cases[i]))
            continue;
        with[k] = cases[i];
        to = side_sustained(&with[k].a, to);
        to = side_sustained(&with[k++].b, to);
    }
    decide_by_one(with, n_with, options, &overall);
    k = 0;
    for (size_t i = 0; i < n; i++) {
        const struct decide_case *by = has_sustained(&cases[i]) ? &with[k++] : NULL;

        if (by && !isnan(cases[i].error) && !isnan(by->error))
            join(&cases[i], by);
    }
    free(with);
    free(runs);
}

int decide_suite(struct decide_case *cases, size_t n, const struct decide_options *options,
                 struct decide_overall *overall)
{
    struct decide_options each = *options;
    size_t n_with = 0;

    for (size_t i = 0; i < n; i++)
        n_with += has_sustained(&cases[i]);
    each.alarm_level = options->alarm_level == 0 ? ALARM_LEVEL : options->alarm_level;
    if (n_with)
        each.alarm_level /= 2;
    if (decide_by_one(cases, n, &each, overall))
        return -EINVAL;
    if (n_with)
        decide_sustained(cases, n, n_with, &each);
    decide_count(cases, n, overall);
    return 0;
}

double decide_value_a(const struct decide_case *c)
{
    return c->judged_by == DECIDE_BY_SUSTAINED ? c->sustained_a : c->a_value;
}

double decide_value_b(const struct decide_case *c)
{
    return c->judged_by == DECIDE_BY_SUSTAINED ? c->sustained_b : c->b_value;
}

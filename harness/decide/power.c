/* SPDX-License-Identifier: Apache-2.0 */
/* What the data could have shown, and what more of it would. */
#include "harness/decide/parts.h"

#include <math.h>

#include "core/dist.h"

double quantile(struct quantiles *q, double p, double df)
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

bool grows_a(const struct judge *j, const struct measure *m)
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
 * What runs differ by beyond their launches has a shape that few runs cannot tell: of one that is far off two say nothing,
 * though the suite says how wide they scatter. Until runs are known such a part has the tails of Student's t with
 * these degrees of freedom (a suite of few cases knows its width less, too); with each further run they grow. Calibrated by
 * simulation (tests/selftest/nights: nights of t3, skewed nights).
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

/* Of the variance, what is between runs and not their launches'; unrest counts as far as it is beyond twice its own error. */
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
bool is_few(const struct judge *j, const struct measure *m, size_t more)
{
    if (m->fewest >= DECIDE_FEW_LAUNCHES)
        return false;
    if (grows_a(j, m))
        return true;
    return m->by_runs && !m->paired ? more == 0 : m->fewest + more < DECIDE_FEW_LAUNCHES;
}

bool is_equivalent(const struct judge *j, double d, double margin, const struct known *k)
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

/* Of one more baseline there is one more to pick the best from, too: at some number that weighs more. */
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

/* A loss is proven with this power where it is above what has to be passed by the power's quantile. */
static double smallest_loss(const struct judge *j, const struct measure *m, const struct known *k,
                            const struct decide_case *c, struct quantiles *q)
{
    double candidates = c->best_of > 1 ? c->best_of : 1;
    double p = tail_nominal(j->losses, j->alarm_level / ((double)j->n_judged * candidates));
    double pass = -quantile(q, p, k->freedom) * k->error;

    if (is_few(j, m, 0))
        pass = fmax(pass, j->widest);
    return -expm1(-(pass + quantile(q, DECIDE_POWER, k->freedom) * k->error));
}

void power_fill(const struct judge *j, const struct measure *m, const struct known *k,
                struct quantiles *q, struct decide_case *c)
{
    if (c->obstacle == OBSTACLE_RUNS)
        return;
    c->smallest = smallest_loss(j, m, k, c, q);
    c->more_of_a = grows_a(j, m);
    c->more_launches = c->decision == DECISION_INCONCLUSIVE ? more_needed(j, m, k, c) : 0;
}

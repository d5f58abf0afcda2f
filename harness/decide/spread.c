/* SPDX-License-Identifier: Apache-2.0 */
/* From the launches of a case to its change and to what is seen to vary. */
#include "harness/decide/parts.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>

/* One side as it is read. */
struct half {
    double mean;            /* of its runs' means */
    double low, high;       /* the outermost of these */
    size_t runs, launches;  /* runs that have a value; launches of the last of them */
    double squares, df;     /* of launches around their run's mean */
    double between;         /* squares of runs' means around the side's */
    double inverse, widest; /* sum of 1 / launches; see struct measure */
};

static bool has_logarithm(double x)
{
    return isfinite(x) && x > 0;
}

/* Two passes, so that a spread of 1e-9 is still told. */
static double run_read(const struct decide_run *run, struct half *h)
{
    double first = log(run->values[0]), low = first, high = first, mean = 0;

    for (size_t i = 0; i < run->n; i++) {
        double x = log(run->values[i]);

        mean += (x - first) / (double)run->n;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    mean += first;
    for (size_t i = 0; i < run->n; i++) {
        double off = log(run->values[i]) - mean;

        h->squares += off * off;
    }
    h->df += (double)run->n - 1;
    h->runs++;
    h->launches = run->n;
    h->inverse += 1 / (double)run->n;
    h->widest = fmax(h->widest, high - low);
    return mean;
}

static enum decide_obstacle side_check(const struct decide_side *side)
{
    size_t launches = 0;

    for (size_t r = 0; r < side->n; r++) {
        for (size_t i = 0; i < side->runs[r].n; i++) {
            if (!has_logarithm(side->runs[r].values[i]))
                return OBSTACLE_BAD_VALUE;
        }
        launches += side->runs[r].n;
    }
    return launches ? OBSTACLE_NONE : OBSTACLE_NO_VALUE;
}

/* Runs' means by Welford's update: there is no array of them. */
static void side_read(const struct decide_side *side, struct half *h)
{
    *h = (struct half){0};
    for (size_t r = 0; r < side->n; r++) {
        if (side->runs[r].n == 0)
            continue;
        double mean = run_read(&side->runs[r], h);
        double off = mean - h->mean;

        h->low = h->runs == 1 ? mean : fmin(h->low, mean);
        h->high = h->runs == 1 ? mean : fmax(h->high, mean);
        h->mean += off / (double)h->runs;
        h->between += off * (mean - h->mean);
    }
}

static size_t launches_of_one_run(const struct half *h)
{
    return h->runs == 1 ? h->launches : SIZE_MAX;
}

static double ratio_or_0(double above, double below)
{
    return below > 0 ? fmax(above / below, VARIANCE_LEAST) : 0;
}

static void combine(const struct half *a, const struct half *b, bool higher_is_better,
                    struct measure *m)
{
    size_t runs = a->runs + b->runs;

    m->a = a->mean;
    m->b = b->mean;
    m->d = higher_is_better ? m->b - m->a : m->a - m->b;
    m->by_runs = runs > 2;
    m->units_a = m->by_runs ? a->runs : a->launches;
    m->units_b = m->by_runs ? b->runs : b->launches;
    m->within_df = a->df + b->df;
    m->within = ratio_or_0(a->squares + b->squares, m->within_df);
    m->between_df = (double)(runs - 2);
    m->between = ratio_or_0(a->between + b->between, m->between_df);
    m->inverse_launches = (a->inverse + b->inverse) / (double)runs;
    m->widest = fmax(a->widest, b->widest);
    size_t few_a = launches_of_one_run(a), few_b = launches_of_one_run(b);

    m->fewest = few_a < few_b ? few_a : few_b;
}

/* Every run of A has its partner, and as many launches as that. */
static bool are_pairs(const struct decide_case *c)
{
    if (!c->paired || c->best_of > 1 || c->a.n != c->b.n)
        return false;
    for (size_t r = 0; r < c->a.n; r++)
        if (c->a.runs[r].n != c->b.runs[r].n)
            return false;
    return true;
}

/* What differences, or means of them, came to. */
struct changes {
    size_t n;
    double mean, squares, low, high; /* squares around the mean */
};

static void add_change(struct changes *all, double x)
{
    double off = x - all->mean;

    all->low = all->n ? fmin(all->low, x) : x;
    all->high = all->n ? fmax(all->high, x) : x;
    all->mean += off / (double)++all->n;
    all->squares += off * (x - all->mean);
}

static struct changes launches_read(const struct decide_run *a, const struct decide_run *b)
{
    struct changes all = {.n = 0};

    for (size_t i = 0; i < a->n; i++)
        add_change(&all, log(b->values[i] / a->values[i]));
    return all;
}

/* Launches that stood next to each other share what drifts, and so do the runs that they are of: only their differences
 * vary, from launch to launch and, of several pairs of runs, from pair to pair. Half of these' variance is a launch's or
 * a run's, so that the error of a mean is as it is without pairs. */
static void pair_up(const struct decide_case *c, struct measure *m)
{
    struct changes of_runs = {.n = 0}, last = {.n = 0};
    double squares = 0, df = 0;

    if (!are_pairs(c))
        return;
    for (size_t r = 0; r < c->a.n; r++) {
        if (c->a.runs[r].n == 0)
            continue;
        last = launches_read(&c->a.runs[r], &c->b.runs[r]);
        squares += last.squares;
        df += (double)last.n - 1;
        add_change(&of_runs, last.mean);
    }
    m->paired = true;
    m->within_df = df;
    m->within = ratio_or_0(squares / 2, df);
    m->between_df = (double)of_runs.n - 1;
    m->between = ratio_or_0(of_runs.squares / 2, m->between_df);
    m->widest = m->by_runs ? of_runs.high - of_runs.low : last.high - last.low;
    m->fewest = m->by_runs ? of_runs.n : last.n;
}

enum decide_obstacle spread_measure(const struct decide_case *c, struct measure *m)
{
    enum decide_obstacle a = side_check(&c->a), b = side_check(&c->b);
    struct half half_a, half_b;

    *m = (struct measure){.a = NAN, .b = NAN, .d = NAN};
    if (a == OBSTACLE_BAD_VALUE || b == OBSTACLE_BAD_VALUE)
        return OBSTACLE_BAD_VALUE;
    if (a == OBSTACLE_NO_VALUE || b == OBSTACLE_NO_VALUE)
        return OBSTACLE_NO_VALUE;
    side_read(&c->a, &half_a);
    side_read(&c->b, &half_b);
    if (c->best_of > 1)
        half_a.mean = c->higher_is_better ? half_a.high : half_a.low;
    combine(&half_a, &half_b, c->higher_is_better, m);
    m->best = c->best_of > 1 && m->by_runs;
    if (m->best)
        m->units_a = 1; /* the others say what varies, and are not in the mean */
    pair_up(c, m);
    return m->within_df > 0 || m->between_df > 0 ? OBSTACLE_NONE : OBSTACLE_ONE_LAUNCH;
}

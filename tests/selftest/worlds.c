/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring made-up worlds: see worlds.h. */
#include "tests/selftest/worlds.h"

#include <math.h>

#define PERCENT      0.01
#define RUN_LEVELS   10 /* in turn: how far apart */
#define REP_LEVELS   4
#define REP_ON_LOWER 0.3

static uint64_t next(struct dice *d)
{
    uint64_t z = d->state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static double uniform(struct dice *d)
{
    return (double)(next(d) >> 11) * 0x1p-53;
}

void dice_seed(struct dice *d, uint64_t seed)
{
    *d = (struct dice){.state = seed * 0xd1342543de82ef95, .spare = NAN};
    d->state = next(d);
}

size_t dice_below(struct dice *d, size_t n)
{
    return (size_t)(uniform(d) * (double)n);
}

static double normal(struct dice *d)
{
    double x = d->spare, y, square;

    d->spare = NAN;
    if (!isnan(x))
        return x;
    do {
        x = 2 * uniform(d) - 1;
        y = 2 * uniform(d) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double scale = sqrt(-2 * log(square) / square);

    d->spare = y * scale;
    return x * scale;
}

/* Of standard deviation 1, each of the three. */
static double shaped(struct dice *d, bool t3, bool skewed)
{
    double x = normal(d);

    if (skewed)
        return (exp(0.5) - exp(x)) / sqrt((M_E - 1) * M_E);
    if (!t3)
        return x;
    double y = normal(d), z = normal(d);

    return normal(d) / sqrt(x * x + y * y + z * z);
}

/* A chain of standard deviation 1, each of which keeps `ar` of the one before. */
static void chain(struct dice *d, double ar, bool t3, bool skewed, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        double now = shaped(d, t3, skewed);

        x[i] = i ? ar * x[i - 1] + sqrt(1 - ar * ar) * now : now;
    }
}

static void chain_runs(const struct measured *m, struct dice *d, double *x)
{
    chain(d, m->w->run_ar, m->w->run_t3 > 0, m->w->run_skewed > 0, m->n, x);
}

static double factor(const struct cell *w, struct dice *d)
{
    return w->mixed > 0 ? pow(w->mixed, 2 * uniform(d) - 1) : 1;
}

static bool lower(struct dice *d, double share)
{
    return uniform(d) < share;
}

static double rep_spread(const struct measured *m, size_t c, size_t t, double mixed)
{
    const struct cell *w = m->w;
    bool judged = t + m->n_b >= m->n, wide = w->in_every < 1 || c % (size_t)w->in_every == 0;
    double spread = w->rep * mixed;

    if (w->tonight > 0 && judged && wide)
        spread *= w->tonight;
    if (w->weekend > 0 && t % 7 >= 5)
        spread *= w->weekend;
    return spread;
}

/* The repetitions of one run around `level`, all in percent until here. */
static void repeat(struct measured *m, struct dice *d, size_t c, size_t t, double level,
                   double mixed)
{
    const struct cell *w = m->w;
    double spread = rep_spread(m, c, t, mixed), noise[WORLD_REPS], phase = 0, period = 1, slope = 0;

    if (w->wave > 0) {
        phase = 2 * M_PI * uniform(d);
        period = 1 + 2 * uniform(d);
    }
    if (w->ramp > 0)
        slope = w->ramp * fabs(normal(d));
    chain(d, w->rep_ar, w->rep_t3 > 0, w->rep_skewed > 0, m->reps, noise);
    for (size_t i = 0; i < m->reps; i++) {
        double at = ((double)i + 0.5) / (double)m->reps,
               x = level + spread * noise[i] - slope * at +
                   w->wave * sin(phase + 2 * M_PI * at / period);

        if ((double)c < w->rep_levels[1] && lower(d, 0.5))
            x -= w->rep_levels[0];
        m->log[c][t][i] = PERCENT * x;
        m->off[c][t][i] = w->sustained > 0 ? PERCENT * w->sustained * normal(d) : 0;
    }
}

/* What a baseline that went wrong adds to all its repetitions. */
static double strange(const struct measured *m, size_t c, size_t t, size_t which)
{
    bool here = t == which && (m->w->strange_all > 0 || c == m->first);

    return here ? log1p(PERCENT * m->w->strange) / PERCENT : 0;
}

static void measure_case(struct measured *m, struct dice *d, size_t c, const double *common,
                         size_t which)
{
    const struct cell *w = m->w;
    double own[WORLD_RUNS] = {0}, common_share = PERCENT * w->common, mixed = factor(w, d),
           boot = 0;

    if (w->lost_rep > 0 && c == m->first)
        mixed = w->lost_rep / w->rep;
    double runs = w->run * (w->runs_so > 0      ? mixed
                            : w->runs_apart > 0 ? factor(w, d)
                                                : 1),
           boots = w->boot[0] + (w->boot[1] - w->boot[0]) * uniform(d);

    chain_runs(m, d, own);
    for (size_t t = 0; t < m->n; t++) {
        if (boots > 0 && (t == 0 || m->boot[t] != m->boot[t - 1]))
            boot = boots * normal(d);
        double level = boot + strange(m, c, t, which) +
                       runs * (sqrt(common_share) * common[t] + sqrt(1 - common_share) * own[t]);

        if ((double)c < w->run_levels[1] && lower(d, 0.5))
            level -= w->run_levels[0];
        repeat(m, d, c, t, level, mixed);
    }
}

/* Run r of both sides was measured in turn: which side went first changes from one repetition to
 * the next, and from case to case. */
static void measure_turns(struct measured *m, struct dice *d, size_t c)
{
    for (size_t r = 0; r < m->n_b; r++) {
        double run = lower(d, 0.5) ? RUN_LEVELS : 0;

        for (size_t i = 0; i < m->reps; i++) {
            double level = run + (lower(d, REP_ON_LOWER) ? REP_LEVELS : 0);

            for (size_t side = 0; side < 2; side++) {
                size_t t = r + side * m->n_b;

                m->went_first[c][t][i] = (c + i + side) % 2 == 0;
                m->log[c][t][i] -= PERCENT * level;
                if (!m->went_first[c][t][i])
                    m->log[c][t][i] += log1p(-PERCENT * m->w->second);
            }
        }
    }
}

bool world_higher(size_t c)
{
    return c % 2 == 0;
}

/* In a case's own unit: 0.01 to 10,000 of it. */
static double value_of(const struct measured *m, size_t c, double x)
{
    double step = log1p(PERCENT * m->w->step);

    if (step > 0)
        x = step * round(x / step + m->phase[c]);
    return pow(10, (double)(c % 7) - 2) * exp(world_higher(c) ? x : -x);
}

void world_lose(struct measured *m, size_t c, size_t t, double loss, enum planted planted)
{
    double down = loss > 0 ? log1p(-PERCENT * loss) : 0;

    for (size_t i = 0; i < m->reps; i++) {
        double x = m->log[c][t][i], off = m->off[c][t][i];

        if (planted == IN_SUSTAINED)
            off += down;
        else if (planted == IN_ALL || i == c % m->reps)
            x += down;
        m->values[c][t][i] = value_of(m, c, x);
        m->all[c][t][i] = value_of(m, c, x + off);
    }
}

static void set_boots(struct measured *m)
{
    size_t n_a = m->n - m->n_b, boots = (size_t)fmin(m->w->boots, (double)n_a);

    for (size_t t = 0; t < m->n; t++)
        m->boot[t] = !boots    ? 0
                     : t < n_a ? (unsigned)(1 + t * boots / n_a)
                               : (unsigned)(boots + (m->w->same_boot <= 0));
}

void world_measure(const struct cell *w, struct dice *d, size_t n_a, size_t n_b, struct measured *m)
{
    double common[WORLD_RUNS] = {0};

    m->w = w;
    m->cases = w->cases > 0 ? (size_t)w->cases : 40;
    m->reps = w->reps > 0 ? (size_t)w->reps : 5;
    m->n = n_a + n_b;
    m->n_b = n_b;
    m->first = dice_below(d, m->cases);
    size_t which = dice_below(d, n_a);

    set_boots(m);
    for (size_t c = 0; c < m->cases; c++) {
        m->phase[c] = uniform(d);
        if (w->common > 0 && (c == 0 || (w->group > 0 && c % (size_t)w->group == 0)))
            chain_runs(m, d, common);
        measure_case(m, d, c, common, which);
        if (w->in_turn > 0)
            measure_turns(m, d, c);
        for (size_t t = 0; t < m->n; t++)
            world_lose(m, c, t, 0, IN_ALL);
    }
}

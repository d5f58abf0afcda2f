/* SPDX-License-Identifier: Apache-2.0 */
/* What disturbed both sides of a comparison, by the typed columns of their rows: see pairs.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/compare/pairs.h"
#include "harness/report/show.h"

/* As in the ledger of noise (docs/measuring.md): less disturbs nothing that is measured. */
#define STEAL_SEEN 1.0 /* % */
#define QUOTA_SEEN 0.1 /* % */
#define GPU_SEEN   0.1 /* % */

/* While it is added up. */
struct sums {
    size_t steal, quota, gpu; /* rows that know it */
    double *taken;            /* one a row */
    bool keeps_quota; /* it is in the figures that were judged, and belongs to the machine */
};

static double percent_of(double ms, double elapsed_s)
{
    return elapsed_s > 0 && ms >= 0 ? fmin(100, 0.1 * ms / elapsed_s) : NAN;
}

/* A running mean of what is known; NaN before. */
static void mean(double *of, size_t *n, double value)
{
    if (isfinite(value))
        *of = ++*n == 1 ? value : *of + (value - *of) / (double)*n;
}

/* What others had of the CPU is not taken from work of a GPU. */
static double taken_percent(const struct report_rows *rows, size_t row, double steal, double quota)
{
    double taken = fmax(isfinite(steal) ? steal : 0, isfinite(quota) ? quota : 0);

    return isfinite(row_number(rows, row, FIELD_GPU_MHZ_HIGH)) ? 0 : fmin(taken, 99);
}

static struct disturbance disturbance_of(const struct pairs *p, const struct pair *pair,
                                         size_t first, size_t end)
{
    struct disturbance d = {.steal_percent = NAN, .quota_percent = NAN, .gpu_percent = NAN};
    struct sums s = {.keeps_quota = isfinite(pair->decide.sustained_b)};
    size_t most = 1;

    for (size_t run = first; run < end; run++)
        most += pair->c->points[run].n_rows;
    s.taken = xcalloc(most, sizeof(*s.taken));
    for (size_t run = first; run < end; run++) {
        const struct report_point *point = &pair->c->points[run];
        /* Of rows that do not tell the share of the CPU time that was wanted. The system adds up
         * over the CPUs how long a quota held them, which is less than all for what works on a part
         * of them: then this is too little. An unknown number is taken as 1, which is the most that
         * it can have taken. */
        const json_t *machine = json_object_get(p->report.runs[run].meta, "machine");
        double n = json_number_value(json_object_get(json_object_get(machine, "cpu"), "threads"));
        double cpus = n > 1 ? n : 1;

        for (size_t i = 0; i < point->n_rows; i++)
            if (row_counts(&pair->bench->rows[run], point->rows[i], p->steal_limit)) {
                const struct report_rows *rows = &pair->bench->rows[run];
                double elapsed = row_number(rows, point->rows[i], FIELD_ELAPSED);
                double steal = row_number(rows, point->rows[i], FIELD_STEAL);
                double quota = row_number(rows, point->rows[i], FIELD_QUOTA_PERCENT);
                double gpu =
                    percent_of(row_number(rows, point->rows[i], FIELD_GPU_THROTTLED), elapsed);

                if (isnan(quota))
                    quota =
                        percent_of(row_number(rows, point->rows[i], FIELD_QUOTA) / cpus, elapsed);
                s.taken[d.rows++] =
                    taken_percent(rows, point->rows[i], steal, s.keeps_quota ? NAN : quota) / 100;
                d.noisy += !strcmp(row_text(rows, point->rows[i], FIELD_STATUS), "noisy");
                d.throttled += row_number(rows, point->rows[i], FIELD_THROTTLE) > 0;
                mean(&d.steal_percent, &s.steal, steal);
                mean(&d.quota_percent, &s.quota, quota);
                mean(&d.gpu_percent, &s.gpu, gpu);
            }
    }
    d.taken = d.rows ? stats_median(s.taken, d.rows) : 0;
    free(s.taken);
    d.seen = d.steal_percent > STEAL_SEEN || d.quota_percent > QUOTA_SEEN ||
             d.gpu_percent > GPU_SEEN || d.throttled;
    return d;
}

/* With the time that was taken given back to both sides: would the interval still say the same?
 * Exclude 1, or lie within the margin. */
static bool explains(const struct decide_case *c, const struct disturbance *a,
                     const struct disturbance *b)
{
    double given_back = (1 - a->taken) / (1 - b->taken);

    switch (c->decision) {
    case DECISION_WORSE:
        return given_back > 1 && c->high * given_back >= 1;
    case DECISION_BETTER:
        return given_back < 1 && c->low * given_back <= 1;
    case DECISION_EQUIVALENT:
        return given_back > 1 ? c->high * given_back > 1 / (1 - c->margin)
                              : given_back < 1 && c->low * given_back < 1 - c->margin;
    default:
        return false;
    }
}

void pairs_disturb(struct pairs *p)
{
    struct decide_case *cases = xcalloc(p->n, sizeof(*cases));
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        struct pair *pair = &p->all[i];

        if (pair->state == PAIR_TAKEN) /* measured, and never decided */
            cases[n++] = (struct decide_case){.decision = DECISION_INCONCLUSIVE};
        if (pair->state != PAIR_READY)
            continue;
        if (pair->c->points) {
            pair->noise_a = disturbance_of(p, pair, 0, p->n_a);
            pair->noise_b = disturbance_of(p, pair, p->n_a, p->report.n_runs);
            pair->explained =
                !p->as_measured && explains(&pair->decide, &pair->noise_a, &pair->noise_b);
        }
        if (pair->explained)
            pair->decide.decision = DECISION_INCONCLUSIVE;
        cases[n++] = pair->decide;
    }
    decide_count(cases, n, &p->overall);
    free(cases);
}

static const char *add(struct pool *pool, const char *text, bool seen, const char *what,
                       double percent)
{
    return seen
               ? show_joined(pool, text, pool_text(pool, "%s %.*f %%", what, percent < 10, percent))
               : text;
}

const char *disturbance_text(struct pool *pool, const struct disturbance *d)
{
    const char *text = add(pool, "", d->steal_percent > STEAL_SEEN, "steal", d->steal_percent);

    text =
        add(pool, text, d->quota_percent > QUOTA_SEEN, "held by the CPU quota", d->quota_percent);
    text = add(pool, text, d->gpu_percent > GPU_SEEN, "GPU throttled", d->gpu_percent);
    if (d->throttled)
        text = show_joined(pool, text,
                           pool_text(pool, "CPU throttled in %zu of %zu", d->throttled, d->rows));
    if (d->noisy)
        text = show_joined(pool, text, pool_text(pool, "noisy in %zu of %zu", d->noisy, d->rows));
    return text;
}

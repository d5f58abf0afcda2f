/* SPDX-License-Identifier: Apache-2.0 */
/* Combining launches: see combine.h. */
#include "harness/report/combine.h"

#include <math.h>
#include <string.h>

#include "core/limit_remark.h"
#include "core/stats.h"

#define TAIL_SAMPLES 1000 /* with fewer, a 99.9 % quantile is not told from the largest sample */

static const char *const statuses_by_weight[] = {"", "ok", "skipped", "noisy", "failed", "wrong"};

static size_t status_weight(const char *status)
{
    size_t n = sizeof(statuses_by_weight) / sizeof(*statuses_by_weight);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(status, statuses_by_weight[i]))
            return i;
    return n; /* of another version: never taken for good */
}

static bool is_usable(const struct report_rows *rows, size_t row)
{
    const char *status = row_text(rows, row, FIELD_STATUS);

    return (!strcmp(status, "ok") || !strcmp(status, "noisy")) &&
           isfinite(row_number(rows, row, FIELD_VALUE));
}

/* The values of one field of the usable launches that have it; returns how many. */
static size_t collect(const struct report_rows *rows, const struct report_point *p,
                      enum row_field field, double *values)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_rows; i++) {
        double value = row_number(rows, p->rows[i], field);

        if (is_usable(rows, p->rows[i]) && !isnan(value))
            values[n++] = value;
    }
    return n;
}

static double median_of(const struct report_rows *rows, const struct report_point *p,
                        enum row_field field, double *scratch)
{
    return stats_median(scratch, collect(rows, p, field, scratch));
}

/* A limit errs upwards, and a launch that found the machine in a bad state found a low ceiling: the best of all counts. */
static void take_limit(const struct report_rows *rows, struct report_point *p)
{
    for (size_t i = 0; i < p->n_rows; i++) {
        double limit = row_number(rows, p->rows[i], FIELD_LIMIT);

        if (!is_usable(rows, p->rows[i]) || isnan(limit))
            continue;
        p->limit = fmax(p->limit, limit); /* NaN: the first */
        if (limit_kind(row_text(rows, p->rows[i], FIELD_LIMIT_SOURCE)) == LIMIT_REFERENCE)
            p->reference = true;
    }
    p->percent = p->limit > 0 ? 100 * p->value / p->limit : NAN;
}

static void take_interval(struct report_point *p, const double *values)
{
    struct median_ci ci;

    if (stats_ci_launches(values, p->n_values, 0.95, &ci))
        return;
    p->low = ci.low;
    p->high = ci.high;
}

static void take_levels(const struct report_rows *rows, struct report_point *p, double *scratch)
{
    size_t n = collect(rows, p, FIELD_VALUE, scratch);

    if (n > 1 && !levels_of_launches(scratch, n, &p->levels) && p->levels.two) {
        p->two = TWO_LAUNCHES;
        return;
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        size_t row = p->rows[i];
        struct levels l = {.two = true,
                           .low = row_number(rows, row, FIELD_LEVEL_LOW),
                           .high = row_number(rows, row, FIELD_LEVEL_HIGH),
                           .share_low = row_number(rows, row, FIELD_LEVEL_LOW_SHARE),
                           .share_high = row_number(rows, row, FIELD_LEVEL_HIGH_SHARE)};

        if (isnan(l.low) || isnan(l.high))
            continue;
        if (!p->n_two++)
            p->levels = l; /* of the first of them: levels of two launches are not one mixture */
        p->two = TWO_SAMPLES;
    }
}

#define JOINED_MAX 300
#define BETWEEN    "; " /* remarks, in the cells too */

static bool has_remark(const char *list, const char *remark, size_t len)
{
    while (*list) {
        const char *end = strstr(list, BETWEEN);
        size_t n = end ? (size_t)(end - list) : strlen(list);

        if (n == len && !memcmp(list, remark, len))
            return true;
        list += n + (end ? strlen(BETWEEN) : 0);
    }
    return false;
}

static const char *add_remarks(struct pool *pool, const char *list, const char *text)
{
    while (*text) {
        const char *end = strstr(text, BETWEEN);
        size_t n = end ? (size_t)(end - text) : strlen(text);

        if (n && !has_remark(list, text, n))
            list = pool_text(pool, "%s%s%.*s", list, *list ? BETWEEN : "", (int)n, text);
        text += n + (end ? strlen(BETWEEN) : 0);
    }
    return list;
}

/* The different remarks of the launches, each once: "a; b". Where they are many, the first. */
static const char *join_texts(struct pool *pool, const struct report_rows *rows,
                              const struct report_point *p, enum row_field field)
{
    const char *joined = "";

    for (size_t i = 0; i < p->n_rows; i++) {
        const char *text = row_text(rows, p->rows[i], field);

        if (strlen(joined) > JOINED_MAX && *text)
            return pool_text(pool, "%s; ...", joined);
        joined = add_remarks(pool, joined, text);
    }
    return joined;
}

/* A GPU's clocks that are set low on purpose are told in the same cell, behind "set:", and hold nothing
 * back. */
static void take_throttling(struct pool *pool, const struct report_rows *rows,
                            struct report_point *p)
{
    for (size_t i = 0; i < p->n_rows; i++) {
        const char *text = row_text(rows, p->rows[i], FIELD_GPU_THROTTLE);

        if (!*text || !strncmp(text, "set:", 4))
            continue;
        p->n_throttled++;
        if (!*p->throttle)
            p->throttle = pool_text(pool, "%.*s", (int)strcspn(text, ";"), text);
    }
}

static void take_texts(struct pool *pool, const struct report_rows *rows, struct report_point *p)
{
    p->status = p->origin = "";
    for (size_t i = 0; i < p->n_rows; i++) {
        const char *status = row_text(rows, p->rows[i], FIELD_STATUS);
        const char *origin = row_text(rows, p->rows[i], FIELD_ORIGIN);

        p->n_noisy += !strcmp(status, "noisy");
        p->n_disturbed += *row_text(rows, p->rows[i], FIELD_DISTURBED) != 0;
        if (status_weight(status) >= status_weight(p->status))
            p->status = status;
        if (!*p->origin || strcmp(origin, "measured"))
            p->origin = origin;
    }
    p->reason = join_texts(pool, rows, p, FIELD_REASON);
    p->disturbed = join_texts(pool, rows, p, FIELD_DISTURBED);
    p->limit_source = join_texts(pool, rows, p, FIELD_LIMIT_SOURCE);
}

/* Of the launches that have a value. */
static double least_samples(const struct report_rows *rows, const struct report_point *p)
{
    double least = INFINITY;

    for (size_t i = 0; i < p->n_rows; i++)
        least = fmin(least, row_number(rows, p->rows[i], FIELD_SAMPLES)); /* NaN: none there */
    return least;
}

void combine_launches(struct pool *pool, const struct report_rows *rows, struct report_point *p)
{
    double *scratch = pool_alloc(pool, p->n_rows, sizeof(*scratch));

    p->value = p->low = p->high = p->limit = p->percent = p->p999 = NAN;
    p->limit_source = p->status = p->reason = p->disturbed = p->origin = p->throttle = "";
    if (!scratch || !p->n_rows)
        return;
    p->n_values = collect(rows, p, FIELD_VALUE, scratch);
    p->value = stats_centre(scratch, p->n_values);
    take_interval(p, scratch);
    take_limit(rows, p);
    if (least_samples(rows, p) >= TAIL_SAMPLES)
        p->p999 = median_of(rows, p, FIELD_P999, scratch);
    take_levels(rows, p, scratch);
    take_texts(pool, rows, p);
    take_throttling(pool, rows, p);
}

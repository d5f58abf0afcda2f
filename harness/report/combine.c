/* SPDX-License-Identifier: Apache-2.0 */
/* Combining launches: see cases.h. */
#include "harness/report/cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bench/bench.h"
#include "core/row.h"
#include "core/stats.h"
#include "harness/report/show.h"

#define MACHINE_CHANGED 1.2  /* the largest of the launches' own ceilings over the smallest */
#define TAIL_SAMPLES    1000 /* with fewer, a 99.9 % quantile is not told from the largest sample */

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

static enum limit_kind kind_of(const struct report_rows *rows, size_t row)
{
    return limit_kind_of(row_text(rows, row, FIELD_LIMIT_KIND));
}

/* ---- the best ceiling of each place of a run */

/* What one row found at a place. Limits of rows that are made of the same things in the same way
 * are one, too. */
struct place_ceiling {
    const char *host, *place;
    double rate, middle; /* middle: the median of those at its place */
    const struct report_bench *bench;
    size_t row;
};

struct places {
    struct place_ceiling *all;
    size_t n;
};

static int by_place(const void *x, const void *y)
{
    const struct place_ceiling *a = x, *b = y;
    int d = strcmp(a->host, b->host);

    return d ? d : strcmp(a->place, b->place);
}

static int best_first(const void *x, const void *y)
{
    const struct place_ceiling *a = x, *b = y;
    int d = by_place(x, y);

    return d ? d : (a->rate < b->rate) - (a->rate > b->rate);
}

/* All that the limit is made of, as one text; "" where it is not told. */
static const char *made_of(struct pool *pool, const struct report_rows *rows, size_t row)
{
    if (!limit_is_ours(kind_of(rows, row)) || isnan(row_number(rows, row, FIELD_CEILING_SHARE)))
        return "";
    return pool_text(pool, "%s + %s, %s, %s, %s", row_text(rows, row, FIELD_CEILING_PLACE),
                     row_text(rows, row, FIELD_CEILING2_PLACE),
                     row_text(rows, row, FIELD_CEILING_SHARE),
                     row_text(rows, row, FIELD_CEILING_FILL), row_text(rows, row, FIELD_UNIT));
}

static void note(struct places *p, const struct report_bench *b, size_t run, size_t row,
                 const char *place, enum row_field field)
{
    const struct report_rows *rows = &b->rows[run];
    double rate = row_number(rows, row, field);

    if (*place && rate > 0 && isfinite(rate))
        *ARRAY_ADD(p->all, p->n) =
            (struct place_ceiling){row_text(rows, row, FIELD_HOST), place, rate, NAN, b, row};
}

/* A value that raised its own row's limit counts for other rows where it is sure: one that is
 * noisy may be a slip of the clock. */
static bool is_slip(const struct report_rows *rows, size_t row)
{
    return !isnan(row_number(rows, row, FIELD_LIMIT_RAISED_FROM)) &&
           strcmp(row_text(rows, row, FIELD_STATUS), "ok") != 0;
}

static void note_rows(struct pool *pool, const struct report_bench *b, size_t run, struct places *p)
{
    const struct report_rows *rows = &b->rows[run];

    for (size_t row = 0; row < rows->table->n_rows; row++) {
        if (!is_usable(rows, row) || is_slip(rows, row))
            continue;
        note(p, b, run, row, row_text(rows, row, FIELD_CEILING_PLACE), FIELD_CEILING);
        note(p, b, run, row, row_text(rows, row, FIELD_CEILING2_PLACE), FIELD_CEILING2);
        note(p, b, run, row, made_of(pool, rows, row), FIELD_LIMIT);
    }
}

/* Sorted, the best of each place alone. */
static void keep_best(struct places *p)
{
    size_t n = 0;

    if (p->n)
        qsort(p->all, p->n, sizeof(*p->all), best_first);
    for (size_t i = 0, next; i < p->n; i = next) {
        for (next = i; next < p->n && !by_place(&p->all[i], &p->all[next]);)
            next++;
        p->all[n] = p->all[i];
        p->all[n++].middle = p->all[i + (next - i - 1) / 2].rate; /* of two the best */
    }
    p->n = n;
}

static const struct place_ceiling *find_place(const struct places *p, const char *host,
                                              const char *place)
{
    const struct place_ceiling key = {.host = host, .place = place};

    return p->n ? bsearch(&key, p->all, p->n, sizeof(*p->all), by_place) : NULL;
}

static double best_at(const struct places *p, const char *host, const char *place)
{
    const struct place_ceiling *at = find_place(p, host, place);

    return at ? at->rate : NAN;
}

static double middle_limit(struct pool *pool, const struct places *p,
                           const struct report_rows *rows, size_t row)
{
    const struct place_ceiling *at =
        find_place(p, row_text(rows, row, FIELD_HOST), made_of(pool, rows, row));

    return at ? at->middle : NAN;
}

static double best_limit(struct pool *pool, const struct places *p, const struct report_rows *rows,
                         size_t row)
{
    const char *host = row_text(rows, row, FIELD_HOST), *made = made_of(pool, rows, row);
    double limit = row_number(rows, row, FIELD_LIMIT);
    struct limit_parts parts = {
        .rate = {best_at(p, host, row_text(rows, row, FIELD_CEILING_PLACE)),
                 best_at(p, host, row_text(rows, row, FIELD_CEILING2_PLACE))},
        .share = row_number(rows, row, FIELD_CEILING_SHARE),
        .fill = row_number(rows, row, FIELD_CEILING_FILL)};

    if (!*made || isnan(limit))
        return limit;
    double shared = limit_of_parts(&parts);
    limit = fmax(limit, best_at(p, host, made));
    return isfinite(shared) ? fmax(limit, shared) : limit;
}

/* "op read": the parameters by which the case of another row differs; "" where none does. */
static const char *other_case(struct pool *pool, const struct report_bench *b, size_t run,
                              size_t row, const struct place_ceiling *at)
{
    const struct report_rows *rows = &b->rows[run];
    const char *text = at->bench == b ? "" : at->bench->name;

    for (size_t i = 0; i < at->bench->n_params; i++) {
        const char *name = at->bench->params[i];
        const char *other = table_param(at->bench->rows[run].table, at->row, name);

        if (*other && !at->bench->follows[i] &&
            (at->bench != b || strcmp(other, table_param(rows->table, row, name)) != 0))
            text = pool_text(pool, "%s%s%s", text, *text ? ", " : "",
                             show_full_param(pool, at->bench, i, other));
    }
    return text;
}

/* Which other cases measured a ceiling that the limit of a row is made of; "" where none did. */
static const char *limit_from(struct pool *pool, const struct places *p,
                              const struct report_bench *b, size_t run, size_t row)
{
    static const enum row_field fields[] = {FIELD_CEILING_PLACE, FIELD_CEILING2_PLACE};
    const struct report_rows *rows = &b->rows[run];
    const char *text = "";

    for (size_t i = 0; *made_of(pool, rows, row) && i < sizeof(fields) / sizeof(*fields); i++) {
        const struct place_ceiling *at =
            find_place(p, row_text(rows, row, FIELD_HOST), row_text(rows, row, fields[i]));
        const char *other = at ? other_case(pool, b, run, row, at) : "";

        if (*other && strcmp(other, text) != 0)
            text = pool_text(pool, "%s%s%s", text, *text ? " and of " : "", other);
    }
    return text;
}

void combine_ceilings(struct report *r, size_t run)
{
    struct places places = {0};

    for (size_t i = 0; i < r->n_benches; i++)
        if (r->benches[i].rows[run].table)
            note_rows(&r->pool, &r->benches[i], run, &places);
    keep_best(&places);
    for (size_t i = 0; i < r->n_benches; i++) {
        struct report_rows *rows = &r->benches[i].rows[run];
        size_t n = rows->table ? rows->table->n_rows : 0;

        rows->limits = pool_alloc(&r->pool, n, sizeof(*rows->limits));
        rows->middle_limits = pool_alloc(&r->pool, n, sizeof(*rows->middle_limits));
        rows->limits_from = pool_alloc(&r->pool, n, sizeof(*rows->limits_from));
        for (size_t row = 0; row < n; row++) {
            rows->limits[row] = best_limit(&r->pool, &places, rows, row);
            rows->middle_limits[row] = middle_limit(&r->pool, &places, rows, row);
            rows->limits_from[row] = limit_from(&r->pool, &places, &r->benches[i], run, row);
        }
    }
    free(places.all);
}

/* A limit errs upwards, and a launch that found the machine in a bad state found a low ceiling:
 * the best of all counts. */
static void take_limit(const struct report_rows *rows, struct report_point *p)
{
    for (size_t i = 0; i < p->n_rows; i++) {
        double limit = rows->limits[p->rows[i]];

        if (!is_usable(rows, p->rows[i]) || isnan(limit))
            continue;
        if (!(limit <= p->limit)) { /* NaN: the first */
            p->limit = limit;
            p->limit_from = rows->limits_from[p->rows[i]];
        }
        p->middle_limit = fmax(p->middle_limit, rows->middle_limits[p->rows[i]]);
        if (kind_of(rows, p->rows[i]) == LIMIT_REFERENCE)
            p->reference = true;
    }
    p->percent = p->limit > 0 ? 100 * p->value / p->limit : NAN;
}

/* What a launch measured itself, before its own value raised it; NaN: nothing. */
static double own_ceiling(const struct report_rows *rows, size_t row)
{
    double raised_from = row_number(rows, row, FIELD_LIMIT_RAISED_FROM);

    if (!limit_is_ours(kind_of(rows, row)))
        return NAN;
    return isnan(raised_from) ? row_number(rows, row, FIELD_LIMIT) : raised_from;
}

static struct report_range range_with(struct report_range range, double x)
{
    return (struct report_range){fmin(range.low, x), fmax(range.high, x)};
}

/* Values of other launches differ: does the machine, which their own ceilings saw too? */
static void take_own_ceilings(const struct report_rows *rows, struct report_point *p)
{
    struct report_range values = {NAN, NAN};
    size_t n = 0;

    p->own = p->own_percent = values;
    for (size_t i = 0; i < p->n_rows; i++) {
        double value = row_number(rows, p->rows[i], FIELD_VALUE);
        double ceiling = own_ceiling(rows, p->rows[i]);

        if (!is_usable(rows, p->rows[i]) || !(ceiling > 0) || !(value > 0))
            continue;
        n++;
        values = range_with(values, value);
        p->own = range_with(p->own, ceiling);
        p->own_percent = range_with(p->own_percent, 100 * value / ceiling);
    }
    p->machine_changed =
        n > 1 && n == p->n_values && p->own.high > MACHINE_CHANGED * p->own.low &&
        log(p->own_percent.high / p->own_percent.low) < log(values.high / values.low) / 2;
}

static int by_share(const void *x, const void *y)
{
    const struct levels *a = x, *b = y;

    return (a->share_low > b->share_low) - (a->share_low < b->share_low);
}

/* Levels of several launches are not one mixture: those of the launch are shown whose share on the
 * lower level is the middle one, and how far the shares go. */
static void take_levels(const struct report_rows *rows, struct report_point *p, struct pool *pool,
                        double *scratch)
{
    size_t n = collect(rows, p, FIELD_VALUE, scratch);

    if (n > 1 && !levels_of_launches(scratch, n, &p->levels) && p->levels.two) {
        p->two = TWO_LAUNCHES;
        return;
    }
    struct levels *all = pool_alloc(pool, p->n_rows, sizeof(*all));

    for (size_t i = 0; i < p->n_rows; i++) {
        size_t row = p->rows[i];
        struct levels l = {.two = true,
                           .low = row_number(rows, row, FIELD_LEVEL_LOW),
                           .high = row_number(rows, row, FIELD_LEVEL_HIGH),
                           .share_low = row_number(rows, row, FIELD_LEVEL_LOW_SHARE),
                           .share_high = row_number(rows, row, FIELD_LEVEL_HIGH_SHARE)};

        if (is_usable(rows, row) && !isnan(l.low + l.high + l.share_low))
            all[p->n_two++] = l;
    }
    if (!p->n_two)
        return;
    qsort(all, p->n_two, sizeof(*all), by_share);
    p->two = TWO_SAMPLES;
    p->levels = all[(p->n_two - 1) / 2];
    p->share_low =
        (struct report_range){.low = all[0].share_low, .high = all[p->n_two - 1].share_low};
}

#define JOINED_MAX 300 /* bytes; further texts are left out */

/* What the launches of a case say, each text once. */
struct texts {
    const char **all;
    size_t n, bytes;
    bool cut;
};

static void add_text(struct texts *t, const char *text)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->all[i], text))
            return;
    if (!*text || t->cut)
        return;
    t->cut = t->bytes > JOINED_MAX;
    t->all[t->n++] = t->cut ? "..." : text;
    t->bytes += strlen(text);
}

/* What a row's reason leaves to its columns. How wide its interval is and how far it is above its
 * limit, the verdict says of all launches. That a launch has no interval of its own does not count
 * where the launches together have one. */
static void add_says(struct pool *pool, const struct report_rows *rows, size_t row, struct texts *t)
{
    char text[ROW_SAYS_BYTES];
    struct row r = {.noise = row_text(rows, row, FIELD_NOISE), .limit_raised_from = NAN};

    add_text(t, pool_text(pool, "%s", row_says(&r, ROW_SAYS_NONE, text)));
}

/* Each launch measures its own ceiling: one remark on all that were exceeded. */
static void add_raised(struct pool *pool, const struct report_rows *rows,
                       const struct report_point *p, struct texts *t)
{
    const char *unit = p->n_rows ? row_text(rows, p->rows[0], FIELD_UNIT) : "";
    const char *noun = p->reference ? "reference" : "limit";
    struct report_range from = {NAN, NAN};

    for (size_t i = 0; i < p->n_rows; i++)
        from = range_with(from, row_number(rows, p->rows[i], FIELD_LIMIT_RAISED_FROM));
    if (isnan(from.low))
        return;
    add_text(t, from.high > from.low
                    ? pool_text(pool,
                                "launches exceeded the %ss that they measured, %.4g to %.4g %s: "
                                "the %s is raised to %.4g %s",
                                noun, from.low, from.high, unit, noun, p->limit, unit)
                    : pool_text(pool,
                                "a launch exceeded the %s that it measured, %.4g %s: the %s is "
                                "raised to %.4g %s",
                                noun, from.low, unit, noun, p->limit, unit));
}

/* The different texts of the launches, each once: "a; b". Where they are long, the first. The reason
 * of a launch that failed, or gave wrong data, is before what the others say. */
static const char *join_texts(struct pool *pool, const struct report_rows *rows,
                              const struct report_point *p, enum row_field field)
{
    struct texts t = {.all = pool_alloc(pool, 2 * p->n_rows + 2, sizeof(*t.all))};
    const char *joined = "";

    for (size_t i = 0; field == FIELD_REASON && i < p->n_rows; i++)
        if (status_weight(row_text(rows, p->rows[i], FIELD_STATUS)) >= status_weight("failed"))
            add_text(&t, row_text(rows, p->rows[i], field));
    for (size_t i = 0; i < p->n_rows; i++) {
        add_text(&t, row_text(rows, p->rows[i], field));
        if (field == FIELD_REASON && isnan(p->low))
            add_says(pool, rows, p->rows[i], &t);
    }
    if (field == FIELD_REASON)
        add_raised(pool, rows, p, &t);
    for (size_t i = 0; i < t.n; i++)
        joined = pool_text(pool, "%s%s%s", joined, *joined ? "; " : "", t.all[i]);
    return joined;
}

/* The first of the launches' that is not empty. */
static const char *first_text(const struct report_rows *rows, const struct report_point *p,
                              enum row_field field)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (*row_text(rows, p->rows[i], field))
            return row_text(rows, p->rows[i], field);
    return "";
}

static void take_texts(struct pool *pool, const struct report_rows *rows, struct report_point *p)
{
    p->status = p->origin = "";
    for (size_t i = 0; i < p->n_rows; i++) {
        const char *status = row_text(rows, p->rows[i], FIELD_STATUS);
        const char *origin = row_text(rows, p->rows[i], FIELD_ORIGIN);

        p->n_noisy += !strcmp(status, "noisy");
        p->n_disturbed += *row_text(rows, p->rows[i], FIELD_DISTURBED) != 0;
        p->n_throttled += *row_text(rows, p->rows[i], FIELD_GPU_THROTTLE) != 0;
        if (status_weight(status) >= status_weight(p->status))
            p->status = status;
        if (!*p->origin || strcmp(origin, "measured"))
            p->origin = origin;
    }
    p->reason = join_texts(pool, rows, p, FIELD_REASON);
    p->disturbed = first_text(rows, p, FIELD_DISTURBED);
    p->throttle = first_text(rows, p, FIELD_GPU_THROTTLE);
    p->limit_link = first_text(rows, p, FIELD_LIMIT_LINK);
    p->limit_scope = first_text(rows, p, FIELD_LIMIT_SCOPE);
    p->carrier_device = first_text(rows, p, FIELD_CARRIER_DEVICE);
    p->limit_source = join_texts(pool, rows, p, FIELD_LIMIT_SOURCE);
}

#define CAUSE_SEEN 1.0 /* % */

/* What took the time, by the ledgers of the launches. */
static const char *cause_of(struct pool *pool, const struct report_rows *rows,
                            const struct report_point *p, double *scratch)
{
    static const struct {
        enum row_field field;
        const char *says;
    } causes[] = {{FIELD_QUOTA_PERCENT, "the CPU quota held it"},
                  {FIELD_STEAL, "other guests took the CPU for (steal)"}};
    const char *text = "";

    for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++) {
        double percent = median_of(rows, p, causes[i].field, scratch);

        if (percent >= CAUSE_SEEN)
            text = pool_text(pool, "%s%s%s %.2g %% of the time", text, *text ? ", " : "",
                             causes[i].says, percent);
    }
    if (*first_text(rows, p, FIELD_GPU_THROTTLE))
        text = pool_text(pool, "%s%sa GPU was held back", text, *text ? ", " : "");
    return *text ? text : "in single slow samples or between samples: no quota or steal was seen";
}

static void take_sustained(struct pool *pool, const struct report_rows *rows,
                           struct report_point *p, double *scratch)
{
    size_t n = collect(rows, p, FIELD_SUSTAINED, scratch);
    double value = stats_centre(scratch, n);
    const char *unit = "";

    for (size_t i = 0; i < p->n_rows && !*unit; i++)
        unit = is_usable(rows, p->rows[i]) ? row_text(rows, p->rows[i], FIELD_UNIT) : "";
    double share = row_sustained_share(value, p->value, unit);
    struct median_ci ci;

    p->sustained.value = p->sustained.low = p->sustained.high = NAN;
    p->sustained.cause = "";
    if (!n || n != p->n_values || !(share < 1 - ROW_SUSTAINED_WORSE))
        return;
    p->sustained.value = value;
    if (!stats_ci_launches(scratch, n, 0.95, &ci)) {
        p->sustained.low = ci.low;
        p->sustained.high = ci.high;
    }
    p->sustained.cause = cause_of(pool, rows, p, scratch);
}

/* Of the launches that have a value. */
static double least_samples(const struct report_rows *rows, const struct report_point *p)
{
    double least = INFINITY;

    for (size_t i = 0; i < p->n_rows; i++)
        if (is_usable(rows, p->rows[i]))
            least = fmin(least, row_number(rows, p->rows[i], FIELD_SAMPLES)); /* NaN: none there */
    return least;
}

void combine_launches(struct pool *pool, const struct report_rows *rows, struct report_point *p)
{
    double *scratch = pool_alloc(pool, p->n_rows, sizeof(*scratch));
    struct median_ci ci;

    p->value = p->low = p->high = p->limit = p->middle_limit = p->percent = p->p999 = NAN;
    p->limit_source = p->status = p->reason = p->disturbed = p->origin = p->throttle = "";
    p->limit_link = p->limit_scope = p->carrier_device = p->limit_from = "";
    if (!p->n_rows)
        return;
    p->n_values = collect(rows, p, FIELD_VALUE, scratch);
    p->value = stats_centre(scratch, p->n_values);
    if (!stats_ci_launches(scratch, p->n_values, 0.95, &ci)) {
        p->low = ci.low;
        p->high = ci.high;
    }
    take_sustained(pool, rows, p, scratch);
    take_limit(rows, p);
    take_own_ceilings(rows, p);
    if (least_samples(rows, p) >= TAIL_SAMPLES)
        p->p999 = median_of(rows, p, FIELD_P999, scratch);
    take_levels(rows, p, pool, scratch);
    take_texts(pool, rows, p);
}

size_t combine_values(const struct report_rows *rows, const struct report_point *p, double *values)
{
    return collect(rows, p, FIELD_VALUE, values);
}

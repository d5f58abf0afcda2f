/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of series over numbers of ranks: see scaling.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/row_facts.h"
#include "core/units.h"
#include "harness/report/scaling.h"
#include "harness/report/show.h"

/* GB/s of a time in us for a byte. */
static double rate_of(double b_us)
{
    return b_us > 0 ? 1e-3 / b_us : NAN;
}

static const char *range_text(struct report *r, double low, double high)
{
    if (isnan(high))
        return pool_text(&r->pool, "at least %s", show_short(&r->pool, low));
    return pool_text(&r->pool, "%s to %s", show_short(&r->pool, low), show_short(&r->pool, high));
}

static const char *why_not_fitted(int err)
{
    if (err == -ENODATA)
        return "not fitted: fewer than three points with one level";
    if (err == -EDOM)
        return "not fitted: these sizes do not tell latency from bandwidth";
    return "not fitted: no model of this operation is known";
}

/* "at 32 ranks, 64M", "at 8 ranks". */
static const char *place_text(struct report *r, const struct fit_off *off)
{
    char size[24] = "";

    if (off->bytes > 0)
        units_format_size((uint64_t)off->bytes, size, sizeof(size));
    if (!(off->ranks > 0))
        return pool_text(&r->pool, "at %s", size);
    return pool_text(&r->pool, "at %.0f ranks%s%s", off->ranks, *size ? ", " : "", size);
}

/* "at 32 ranks, 64M the measured time is 5.1 times the model's" */
static const char *point_text(struct report *r, const struct fit_off *off)
{
    return pool_text(&r->pool, "%s the measured time is %#.3g times the model's",
                     place_text(r, off), off->ratio);
}

static const char *a_text(struct report *r, const struct fit *f)
{
    const char *text = pool_text(&r->pool, "%s us a message", show_short(&r->pool, f->a_us));

    if (f->without_a)
        return "latency not to be seen";
    return f->group.n ? text
                      : pool_text(&r->pool, "%s (%s)", text, range_text(r, f->low_us, f->high_us));
}

static const char *b_text(struct report *r, const struct fit *f)
{
    const char *text = pool_text(&r->pool, "%s GB/s", show_short(&r->pool, rate_of(f->b_us)));

    if (f->without_b)
        return "bandwidth not to be seen";
    return f->group.n ? text
                      : pool_text(&r->pool, "%s (%s)", text,
                                  range_text(r, rate_of(f->b_high_us), rate_of(f->b_low_us)));
}

const char *scaling_fit_text(struct report *r, const struct scaling_series *s)
{
    const struct fit *f = &s->fit;
    const char *spread = document_percent(&r->pool, 100 * f->spread), *text;

    if (s->fit_error)
        return why_not_fitted(s->fit_error);
    if (!fit_describes(f))
        return pool_text(&r->pool,
                         "does not describe these points: %s; they lie %s off the best of its kind "
                         "(standard deviation of %zu). It is not drawn",
                         point_text(r, &f->farthest), spread, f->n);
    text = pool_text(&r->pool, "%s, %s; points lie %s off it (standard deviation of %zu)",
                     a_text(r, f), b_text(r, f), spread, f->n);
    if (!f->group.n)
        return pool_text(&r->pool, "%s, the farthest: %s", text, point_text(r, &f->farthest));
    return pool_text(&r->pool,
                     "%s. No intervals, as that is not by chance: %s measured times are up to "
                     "%#.3g times the model's",
                     text, place_text(r, &f->group), f->group.ratio);
}

static const char *interval_text(struct report *r, const struct scaling_forecast *f)
{
    if (isnan(f->at.low))
        return "no interval: the model is off by more than chance";
    return pool_text(&r->pool, "95 %% interval %.2f to %.2f", f->at.low, f->at.high);
}

const char *scaling_forecast_text(struct report *r, const struct scaling_series *s)
{
    const struct scaling_forecast *f = &s->forecast;
    const char *text;

    if (!f->n)
        return "";
    text = pool_text(&r->pool, "%.0f ranks predicted from %s: %.2f of measured at %s (%s)",
                     s->ranks[s->n_ranks - 1], f->from, f->at.value, f->size, interval_text(r, f));
    if (f->n > 1)
        text = pool_text(&r->pool, "%s; of %zu sizes the smallest is %.2f, the largest %.2f", text,
                         f->n, f->smallest, f->greatest);
    if (isnan(f->at.low))
        return text;
    return pool_text(&r->pool, "%s; what was measured lies in the interval at %zu of %s", text,
                     f->inside, show_count(&r->pool, f->n, "size"));
}

/* What carries bytes past the wire that the limit is of. A limit that is the most of any algorithm has counted what ranks of one node exchange in its
 * memory. Where switches may sum, the row has no limit. */
static const char *explain(const struct report_bench *b, const struct report_case *c,
                           const struct report_point *p)
{
    double nodes, ranks;

    if (units_parse_double(report_param(b, c, "nodes"), &nodes) ||
        units_parse_double(report_param(b, c, "ranks"), &ranks))
        nodes = ranks = NAN;
    if (!strcmp(report_param(b, c, "transport"), "shm") || nodes == 1)
        return "all ranks are on one node: memory carried it, not the link";
    if (nodes < ranks && strcmp(p->limit_scope, LIMIT_SCOPE_NODE) != 0)
        return "ranks of one node meet in its memory: the link carries less than bus bandwidth "
               "counts";
    return "";
}

const char *scaling_above_text(struct report *r, const struct report_bench *b,
                               const struct report_case *c, size_t run, bool *explained)
{
    const struct report_point *p = &c->points[run];
    const char *why;

    *explained = true;
    if (!(p->percent > LIMIT_EXCEEDED_PERCENT))
        return "";
    why = explain(b, c, p);
    *explained = *why != 0;
    return pool_text(&r->pool, "%s of the limit (%s %s): %s",
                     document_percent(&r->pool, p->percent), document_number(&r->pool, p->limit),
                     c->unit,
                     *why ? why
                          : "nothing in the row explains it: the limit is too low, or the bytes "
                            "did not take that link");
}

static bool find_cell(const struct scaling_series *s, const struct report_case *c, size_t *at)
{
    for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++)
        if (s->cells[i].time == c || s->cells[i].bus == c) {
            *at = i;
            return true;
        }
    return false;
}

const char *scaling_remark(struct report *r, const struct scalings *all,
                           const struct report_case *c, size_t run)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct scaling_series *s = &all->all[i];
        struct scaling_ratio e;
        double base;
        size_t at;

        if (s->run != run || !find_cell(s, c, &at))
            continue;
        e = scaling_efficiency(s, at / s->n_ranks, at % s->n_ranks, &base);
        if (isnan(e.value))
            return "";
        return pool_text(&r->pool, "efficiency from %.0f to %.0f ranks: %#.3g%s", base,
                         s->ranks[at % s->n_ranks], e.value,
                         isnan(e.low) ? ""
                                      : pool_text(&r->pool, " (%#.3g to %#.3g)", e.low, e.high));
    }
    return "";
}

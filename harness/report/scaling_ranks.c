/* SPDX-License-Identifier: Apache-2.0 */
/* Stragglers: see scaling.h. */
#include "harness/report/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "core/units.h"
#include "harness/report/cases.h"
#include "harness/report/described.h"
#include "harness/report/show.h"

#define STRAGGLERS_MAX   4096 /* ranks */
#define STRAGGLER_CHANCE 0.05 /* times all ranks that were looked at: beyond, none is named */

#define NAMED_MAX 3 /* in a sentence */

bool straggler_is_late(double late_percent, double ranks)
{
    return ranks >= 2 && late_percent > fmax(50, 150 / ranks);
}

/* The distribution of how many of n events come true, event by event. */
double straggler_chance(const double *ranks, size_t n, size_t late, double *odds)
{
    double tail = 0;

    odds[0] = 1;
    for (size_t i = 0; i < n; i++) {
        double p = 1 / ranks[i];

        odds[i + 1] = odds[i] * p;
        for (size_t k = i; k > 0; k--)
            odds[k] = odds[k] * (1 - p) + odds[k - 1] * p;
        odds[0] *= 1 - p;
    }
    for (size_t k = late; k <= n; k++)
        tail += odds[k];
    return tail;
}

static bool is_share(const struct report_bench *b, const struct report_case *c, size_t run,
                     const char *metric)
{
    return !strcmp(c->metric, metric) && *report_param(b, c, "rank") && c->points[run].n_values > 0;
}

static bool is_of(const struct report_bench *b, const struct report_case *c,
                  const struct straggler *s, const char *metric)
{
    return is_share(b, c, s->run, metric) && !strcmp(report_param(b, c, "rank"), s->rank) &&
           !strcmp(report_param(b, c, "rank_host"), s->host) &&
           !strcmp(report_param(b, c, "per_process"), s->each);
}

/* Ranks in each process; 1 where the rows do not tell. NaN: it is no number. */
static double each_of(const struct report_bench *b, const struct report_case *c)
{
    const char *text = report_param(b, c, "per_process");
    double each;

    if (!*text)
        return 1;
    return units_parse_double(text, &each) || each < 1 ? NAN : each;
}

/* A process is late or not, with all of its ranks: so many of them may be the late one. */
static double processes_of(const struct report_bench *b, const struct report_case *c)
{
    double ranks;

    return units_parse_double(report_param(b, c, "ranks"), &ranks) ? NAN : ranks / each_of(b, c);
}

static double median_of(const struct straggler *s, const char *metric, double *scratch)
{
    size_t n = 0;

    for (size_t i = 0; i < s->bench->n_cases; i++)
        if (is_of(s->bench, &s->bench->cases[i], s, metric))
            scratch[n++] = s->bench->cases[i].points[s->run].value;
    return stats_median(scratch, n);
}

/* scratch: two for each case, and two. */
static void fill(struct straggler *s, double *scratch)
{
    const struct report_bench *b = s->bench;
    double *ranks = scratch, *odds = scratch + b->n_cases + 1;

    s->most = NAN;
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct report_case *c = &b->cases[i];
        double share = c->points[s->run].value;

        if (!is_of(b, c, s, "late_share"))
            continue;
        ranks[s->cases++] = processes_of(b, c);
        s->late += straggler_is_late(share, processes_of(b, c));
        if (isnan(s->most) || share > s->most)
            s->worst = c;
        s->most = fmax(s->most, share);
    }
    s->chance = straggler_chance(ranks, s->cases, s->late, odds);
    s->median = median_of(s, "late_share", scratch);
    s->waited = median_of(s, "waited_share", scratch);
    s->seems_one = 2 * s->late > s->cases;
}

static bool is_known(const struct stragglers *all, const struct report_bench *b, size_t run,
                     const struct report_case *c)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->all[i].bench == b && all->all[i].run == run &&
            !strcmp(all->all[i].rank, report_param(b, c, "rank")) &&
            !strcmp(all->all[i].host, report_param(b, c, "rank_host")) &&
            !strcmp(all->all[i].each, report_param(b, c, "per_process")))
            return true;
    return false;
}

static int by_rank(const void *x, const void *y)
{
    const struct straggler *a = x, *b = y;

    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    if (strcmp(a->each, b->each) != 0)
        return strverscmp(a->each, b->each);
    return strverscmp(a->rank, b->rank) ? strverscmp(a->rank, b->rank)
                                        : strverscmp(a->host, b->host);
}

/* Of several ranks in a process: "1 (ranks 4 to 7)". */
static void name(struct report *r, struct straggler *s)
{
    uint64_t number, each;

    s->is_process = !units_parse_u64(s->each, &each) && each > 1;
    s->name = s->rank;
    if (s->is_process && !units_parse_u64(s->rank, &number)) {
        unsigned long long first = number * each, last = first + each - 1;

        s->name = pool_text(&r->pool, "%s (ranks %llu to %llu)", s->rank, first, last);
    }
}

static void add_of_bench(struct report *r, const struct report_bench *b, size_t run,
                         struct stragglers *out)
{
    double *scratch = xcalloc(2 * (b->n_cases + 1), sizeof(*scratch));
    size_t first = out->n;

    for (size_t i = 0; i < b->n_cases && out->n < STRAGGLERS_MAX; i++) {
        const struct report_case *c = &b->cases[i];

        if (!is_share(b, c, run, "late_share") || is_known(out, b, run, c))
            continue;
        struct straggler *s = &out->all[out->n++];
        *s = (struct straggler){.bench = b,
                                .run = run,
                                .rank = report_param(b, c, "rank"),
                                .host = report_param(b, c, "rank_host"),
                                .each = report_param(b, c, "per_process")};
        fill(s, scratch);
        name(r, s);
    }
    /* Any of them may be the one that chance makes late. Where a case has no number of ranks, the
     * chance is NaN, and none is. */
    for (struct straggler *s = out->all + first; s < out->all + out->n; s++)
        s->is_one = s->seems_one && s->chance * (double)(out->n - first) <= STRAGGLER_CHANCE;
    free(scratch);
}

void stragglers_make(struct report *r, struct stragglers *out)
{
    size_t most = 0;

    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t i = 0; i < r->benches[b].n_cases; i++)
            most += !strcmp(r->benches[b].cases[i].metric, "late_share") ? r->n_runs : 0;
    *out = (struct stragglers){.all = pool_alloc(&r->pool, most, sizeof(*out->all))};
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t b = 0; most && b < r->n_benches; b++)
            add_of_bench(r, &r->benches[b], run, out);
    if (out->n)
        qsort(out->all, out->n, sizeof(*out->all), by_rank);
}

/* Of a rank on a GPU: what held that one back in its worst case, where it held back less than half
 * of the others'. Power holds back most GPUs at full load, and makes none late. */
static const char *held_text(struct report *r, const struct straggler *s)
{
    const struct report_bench *b = s->bench;
    size_t others = 0, held = 0;

    if (!s->worst->points[s->run].n_throttled)
        return "";
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct report_case *c = &b->cases[i];

        if (!is_share(b, c, s->run, "late_share") ||
            !cases_differ_in(b, s->worst, c, "rank rank_host"))
            continue;
        others++;
        held += c->points[s->run].n_throttled > 0;
    }
    return 2 * held < others ? pool_text(&r->pool,
                                         "; %s was held back by %s, those of %zu of %zu other "
                                         "%s were not",
                                         s->is_process ? "one of its GPUs" : "its GPU",
                                         s->worst->points[s->run].throttle, others - held, others,
                                         s->is_process ? "processes" : "ranks")
                             : "";
}

static const char *host_text(struct report *r, const struct straggler *s)
{
    return !*s->host       ? ""
           : s->is_process ? pool_text(&r->pool, " on %s", s->host)
                           : pool_text(&r->pool, " (%s)", s->host);
}

const char *stragglers_text(struct report *r, const struct stragglers *all,
                            const struct report_bench *b, size_t run)
{
    const char *text = "";
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct straggler *s = &all->all[i];

        if (s->bench != b || s->run != run || !s->is_one || n++ >= NAMED_MAX)
            continue;
        text = pool_text(&r->pool,
                         "%s%s%s %s%s is late: the others waited for it in %s of the samples "
                         "(median of %s)%s",
                         text, *text ? "; " : "", s->is_process ? "process" : "rank", s->name,
                         host_text(r, s), document_percent(&r->pool, s->median),
                         show_count(&r->pool, s->cases, "case"), held_text(r, s));
    }
    return n > NAMED_MAX ? pool_text(&r->pool, "%s; so are %zu more", text, n - NAMED_MAX) : text;
}

/* ---- Buckets of gradients ---- */

size_t buckets_best(const struct bucket_point *points, size_t n, bool *tied, bool *decided)
{
    size_t best = n;

    *decided = true;
    for (size_t i = 0; i < n; i++) {
        tied[i] = false;
        if (!isnan(points[i].time_us) && (best == n || points[i].time_us < points[best].time_us))
            best = i;
    }
    for (size_t i = 0; i < n && best < n; i++) {
        if (isnan(points[i].time_us))
            continue;
        tied[i] = !(points[i].low_us > points[best].high_us);
        *decided = *decided && !isnan(points[i].low_us) && !isnan(points[i].high_us);
    }
    return best;
}

/* One rank alone has nothing to sum. */
static bool is_sweep(const struct report_bench *b, const struct report_case *c, size_t run)
{
    return !strcmp(c->metric, "time") && *report_param(b, c, "model") &&
           *report_param(b, c, "bucket") && strcmp(report_param(b, c, "ranks"), "1") != 0 &&
           c->points[run].n_values > 0;
}

static bool same_sweep(const struct report_bench *b, const struct report_case *x,
                       const struct report_case *y)
{
    for (size_t i = 0; i < b->n_params; i++)
        if (!b->follows[i] && !word_in("bucket size", b->params[i]) &&
            strcmp(x->params[i], y->params[i]) != 0)
            return false;
    return true;
}

static bool is_first(const struct report_bench *b, size_t run, size_t index)
{
    if (!is_sweep(b, &b->cases[index], run))
        return false;
    for (size_t i = 0; i < index; i++)
        if (is_sweep(b, &b->cases[i], run) && same_sweep(b, &b->cases[i], &b->cases[index]))
            return false;
    return true;
}

static int by_bytes(const void *x, const void *y)
{
    const struct bucket_point *a = x, *b = y;

    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Two levels have no median, so that they say nothing of which is best. */
static struct bucket_point point_of(const struct report_bench *b, const struct report_case *c,
                                    size_t run)
{
    const struct report_point *p = &c->points[run];
    double us = scaling_time_us(c, run), scale = us / p->value;
    struct bucket_point at = {NAN, us, p->low * scale, p->high * scale, c};
    uint64_t bytes;

    if (p->two != TWO_NOT) {
        at.low_us = p->levels.low * scale;
        at.high_us = p->levels.high * scale;
    }
    if (!units_parse_size(report_param(b, c, "bucket"), &bytes))
        at.bytes = (double)bytes;
    return at;
}

static const char *size_text(struct report *r, double bytes)
{
    char text[24];

    return pool_text(&r->pool, "%s", units_format_size((uint64_t)bytes, text, sizeof(text)));
}

static const char *best_text(struct report *r, const struct bucket_series *s)
{
    bool *tied = pool_alloc(&r->pool, s->n, sizeof(*tied)), decided;
    const char *names = "";
    size_t best, n = 0;

    if (s->n < 2)
        return "";
    best = buckets_best(s->points, s->n, tied, &decided);
    if (best == s->n)
        return "";
    for (size_t i = 0; i < s->n; i++)
        if (tied[i])
            names = pool_text(&r->pool, "%s%s%s", names, n++ ? " or " : "",
                              size_text(r, s->points[i].bytes));
    if (!decided)
        return pool_text(&r->pool, "lowest at %s, but not decided: an interval is not known",
                         size_text(r, s->points[best].bytes));
    return pool_text(&r->pool, "best bucket: %s, %s ms (%s to %s)%s", names,
                     document_number(&r->pool, s->points[best].time_us / 1000),
                     document_number(&r->pool, s->points[best].low_us / 1000),
                     document_number(&r->pool, s->points[best].high_us / 1000),
                     n > 1 ? pool_text(&r->pool, " at %s: their intervals overlap",
                                       size_text(r, s->points[best].bytes))
                           : "");
}

static void name_series(struct report *r, struct bucket_series *s)
{
    const struct report_bench *b = s->bench;
    const char *transport = report_param(b, s->first, "transport");

    s->model = report_param(b, s->first, "model");
    s->label = pool_text(&r->pool, "%s%s%s, %s ranks%s%s", report_param(b, s->first, "backend"),
                         *transport ? " over " : "", transport, report_param(b, s->first, "ranks"),
                         r->n_runs > 1 ? ", " : "", r->n_runs > 1 ? r->names[s->run] : "");
    s->title =
        scaling_title(r, b, s->first, "model bucket backend transport ranks size rank scope");
}

static void make_one(struct report *r, struct bucket_series *s)
{
    s->points = pool_alloc(&r->pool, s->bench->n_cases, sizeof(*s->points));
    for (size_t i = 0; i < s->bench->n_cases; i++) {
        const struct report_case *c = &s->bench->cases[i];

        if (!is_sweep(s->bench, c, s->run) || !same_sweep(s->bench, s->first, c))
            continue;
        s->points[s->n] = point_of(s->bench, c, s->run);
        s->n += !isnan(s->points[s->n].bytes);
    }
    qsort(s->points, s->n, sizeof(*s->points), by_bytes);
    name_series(r, s);
    s->best = best_text(r, s);
}

void bucket_sweeps_make(struct report *r, struct bucket_sweeps *out)
{
    size_t n;
    const struct case_in_run *firsts = cases_that(r, is_first, &n);

    *out = (struct bucket_sweeps){.all = pool_alloc(&r->pool, n, sizeof(*out->all))};
    for (size_t i = 0; i < n; i++) {
        struct bucket_series *s = &out->all[out->n++];

        *s = (struct bucket_series){
            .bench = firsts[i].bench, .run = firsts[i].run, .first = firsts[i].c};
        make_one(r, s);
    }
}

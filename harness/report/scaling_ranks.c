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
#include "harness/report/cases_group.h"
#include "harness/report/described.h"
#include "harness/report/show.h"

#define STRAGGLERS_MAX   4096 /* ranks */
#define STRAGGLER_CHANCE 0.01 /* times all ranks that were looked at: beyond, none is named */

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

static bool is_share(const struct report_bench *b, size_t run, const struct report_case *c,
                     const void *arg)
{
    (void)arg;
    return (!strcmp(c->metric, "late_share") || !strcmp(c->metric, "waited_share")) &&
           *report_param(b, c, "rank") && c->points[run].n_values > 0;
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

/* scratch: two for each case of the group, and two. */
static void fill(struct straggler *s, const struct case_group *group, double *scratch)
{
    double *ranks = scratch, *odds = scratch + group->n + 1;
    size_t n_waited = 0;

    s->most = NAN;
    for (size_t i = 0; i < group->n; i++) {
        const struct report_case *c = group->cases[i];
        double share = c->points[s->run].value;

        if (strcmp(c->metric, "late_share") != 0)
            continue;
        ranks[s->cases++] = processes_of(s->bench, c);
        s->late += straggler_is_late(share, processes_of(s->bench, c));
        if (isnan(s->most) || share > s->most)
            s->worst = c;
        s->most = fmax(s->most, share);
    }
    s->chance = straggler_chance(ranks, s->cases, s->late, odds);
    s->seems_one = 2 * s->late > s->cases;
    for (size_t i = 0, n = 0; i < group->n; i++) {
        bool late = !strcmp(group->cases[i]->metric, "late_share");

        *(late ? &ranks[n++] : &odds[n_waited++]) = group->cases[i]->points[s->run].value;
    }
    s->median = stats_median(ranks, s->cases);
    s->waited = stats_median(odds, n_waited);
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
    struct case_groups groups =
        cases_group(&r->pool, b, run, is_share, NULL, cases_by, "rank rank_host per_process");
    size_t first = out->n;

    for (size_t i = 0; i < groups.n && out->n < STRAGGLERS_MAX; i++) {
        const struct report_case *c = groups.all[i].cases[0];
        struct straggler s = {.bench = b,
                              .run = run,
                              .rank = report_param(b, c, "rank"),
                              .host = report_param(b, c, "rank_host"),
                              .each = report_param(b, c, "per_process")};

        fill(&s, &groups.all[i], scratch);
        name(r, &s);
        if (s.cases)
            *POOL_ADD(&r->pool, out->all, out->n) = s;
    }
    /* Any of them may be the one that chance makes late. Where a case has no number of ranks, the
     * chance is NaN, and none is. */
    for (size_t i = first; i < out->n; i++)
        out->all[i].is_one = out->all[i].seems_one &&
                             out->all[i].chance * (double)(out->n - first) <= STRAGGLER_CHANCE;
    free(scratch);
}

void stragglers_make(struct report *r, struct stragglers *out)
{
    *out = (struct stragglers){.n = 0};
    for (size_t run = 0; run < r->n_runs; run++)
        for (size_t b = 0; b < r->n_benches; b++)
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

        if (strcmp(c->metric, "late_share") != 0 || !is_share(b, s->run, c, NULL) ||
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
    struct show_list list = {.pool = &r->pool, .max = NAMED_MAX, .parts = "; "};

    for (size_t i = 0; i < all->n; i++) {
        const struct straggler *s = &all->all[i];

        if (s->bench == b && s->run == run && s->is_one)
            show_list_add(
                &list, pool_text(&r->pool,
                                 "%s %s%s is late: the others waited for it in %s of the samples "
                                 "(median of %s)%s",
                                 s->is_process ? "process" : "rank", s->name, host_text(r, s),
                                 document_percent(&r->pool, s->median),
                                 show_count(&r->pool, s->cases, "case"), held_text(r, s)));
    }
    return show_list_text(&list);
}

/* ---- Buckets of gradients ---- */

#define BUCKETS_MARGIN 0.05 /* as that of plumb compare */

/* One rank alone has nothing to sum. */
static bool is_sweep(const struct report_bench *b, size_t run, const struct report_case *c,
                     const void *arg)
{
    uint64_t bytes;

    (void)arg;
    return !strcmp(c->metric, "time") && *report_param(b, c, "model") &&
           !units_parse_size(report_param(b, c, "bucket"), &bytes) &&
           strcmp(report_param(b, c, "ranks"), "1") != 0 && c->points[run].n_values > 0;
}

static int by_bytes(const void *x, const void *y)
{
    const struct bucket_point *a = x, *b = y;

    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Of two levels, which have no median, both are the ends. */
static struct bucket_point point_of(const struct report_bench *b, const struct report_case *c,
                                    size_t run)
{
    const struct report_point *p = &c->points[run];
    double us = scaling_time_us(c, run), scale = us / p->value;
    bool two = p->two != TWO_NOT;
    uint64_t bytes = 0;

    units_parse_size(report_param(b, c, "bucket"), &bytes);
    return (struct bucket_point){(double)bytes,
                                 us,
                                 (two ? p->levels.low : p->low) * scale,
                                 (two ? p->levels.high : p->high) * scale,
                                 c,
                                 COMPARISON_NONE};
}

static const char *size_text(struct report *r, double bytes)
{
    char text[24];

    return pool_text(&r->pool, "%s", units_format_size((uint64_t)bytes, text, sizeof(text)));
}

static const char *best_text(struct report *r, const struct comparisons *q,
                             const struct bucket_series *s)
{
    const struct bucket_point *best = &s->points[s->lowest];
    const char *names = "";
    size_t n = 0;

    if (s->n < 2)
        return "";
    for (const struct bucket_point *p = s->points; p < s->points + s->n; p++) {
        const struct comparison *k = comparison_of(q, p->asked);

        if (k && isnan(k->low))
            return pool_text(&r->pool, "lowest at %s, but not decided: an interval is not known",
                             size_text(r, best->bytes));
        if (!k || !k->proven)
            names = pool_text(&r->pool, "%s%s%s", names, n++ ? " or " : "", size_text(r, p->bytes));
    }
    return pool_text(
        &r->pool, "best bucket: %s, %s ms (%s to %s)%s", names,
        document_number(&r->pool, best->time_us / 1000),
        document_number(&r->pool, best->low_us / 1000),
        document_number(&r->pool, best->high_us / 1000),
        n > 1 ? pool_text(&r->pool, " at %s: not proven to differ", size_text(r, best->bytes))
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

static void ask_one(struct report *r, struct comparisons *q, struct bucket_series *s,
                    const struct case_group *group)
{
    s->points = pool_alloc(&r->pool, group->n, sizeof(*s->points));
    for (; s->n < group->n; s->n++)
        s->points[s->n] = point_of(s->bench, group->cases[s->n], s->run);
    qsort(s->points, s->n, sizeof(*s->points), by_bytes);
    for (size_t i = 1; i < s->n; i++)
        if (s->points[i].time_us < s->points[s->lowest].time_us)
            s->lowest = i;
    for (size_t i = 0; i < s->n; i++)
        if (i != s->lowest)
            s->points[i].asked =
                comparisons_add(q, s->points[i].c, s->points[s->lowest].c, BUCKETS_MARGIN);
    name_series(r, s);
}

void bucket_sweeps_ask(struct report *r, struct comparisons *q, struct bucket_sweeps *out)
{
    *out = (struct bucket_sweeps){.n = 0};
    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++)
        for (size_t run = 0; run < r->n_runs; run++) {
            struct case_groups groups =
                cases_group(&r->pool, b, run, is_sweep, NULL, cases_but, "bucket size metric unit");

            comparisons_topic(q, NULL, b, run, false);
            for (size_t i = 0; i < groups.n; i++) {
                struct bucket_series *s = POOL_ADD(&r->pool, out->all, out->n);

                *s =
                    (struct bucket_series){.bench = b, .run = run, .first = groups.all[i].cases[0]};
                ask_one(r, q, s, &groups.all[i]);
            }
        }
}

void bucket_sweeps_judge(struct report *r, const struct comparisons *q, struct bucket_sweeps *all)
{
    for (size_t i = 0; i < all->n; i++)
        all->all[i].best = best_text(r, q, &all->all[i]);
}

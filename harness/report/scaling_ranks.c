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

/* SPDX-License-Identifier: Apache-2.0 */
/* Which place is behind its like: see siblings.h. */
#include "harness/report/siblings.h"

#include <math.h>
#include <string.h>

#include "harness/report/cases.h"
#include "harness/report/cases_group.h"
#include "harness/report/described.h"
#include "harness/report/headline.h"
#include "harness/report/show.h"

/* A rule in a run of a benchmark. */
struct look {
    struct report *r;
    const struct bench_sibling *rule;
    const struct report_bench *b;
    size_t run;
};

static bool is_measured(const struct look *l, const struct report_case *c)
{
    const struct report_point *p = &c->points[l->run];

    return p->n_values && p->value > 0 && !point_is_wrong(p);
}

/* The one case that the rule holds this one against; NULL: it was not measured. */
static const struct report_case *find_against(const struct look *l, const struct report_case *c,
                                              const char *but)
{
    for (size_t i = 0; i < l->b->n_cases; i++) {
        const struct report_case *other = &l->b->cases[i];

        if (is_measured(l, other) && cases_differ_in(l->b, c, other, but) &&
            described_matches(l->b, other, l->rule->against))
            return other;
    }
    return NULL;
}

/* ---- What is asked ---- */

static bool is_looked_at(const struct report_bench *b, size_t run, const struct report_case *c,
                         const void *arg)
{
    const struct look *l = arg;

    (void)run;
    return is_measured(l, c) && described_matches(b, c, l->rule->where);
}

static void ask_group(const struct look *l, struct comparisons *q, const struct case_group *g)
{
    double margin = 1 - l->rule->below / 100;
    size_t *place = pool_alloc(&l->r->pool, 2 * g->n, sizeof(*place)), *other = place + g->n;

    for (size_t i = 0; i < g->n; i++) {
        place[i] = i;
        other[i] = COMPARISON_NONE;
    }
    if (!l->rule->against)
        comparisons_add_group(
            q, &(struct comparison_group){g->cases, place, other, g->n, g->n, false}, margin, NULL);
    for (size_t i = 0; l->rule->against && i < g->n; i++) {
        const struct report_case *against =
            find_against(l, g->cases[i], l->rule->but ? l->rule->but : "");

        if (against)
            comparisons_add(q, g->cases[i], against, margin);
    }
}

void siblings_ask(struct report *r, struct comparisons *q)
{
    struct look l = {.r = r};

    for (l.run = 0; l.run < r->n_runs; l.run++)
        for (l.b = r->benches; l.b < r->benches + r->n_benches; l.b++)
            for (l.rule = l.b->described->siblings; l.rule->title; l.rule++) {
                struct case_groups groups =
                    cases_group(&r->pool, l.b, l.run, is_looked_at, &l, cases_but,
                                l.rule->against ? "" : l.rule->column);

                comparisons_topic(q, l.rule, l.b, l.run, true);
                for (size_t i = 0; i < groups.n; i++)
                    ask_group(&l, q, &groups.all[i]);
            }
}

/* ---- What is said */

/* "rail 3 (mlx5_3:1, cuda:3, peer mlx5_4:1)", in the order of the rule. */
static const char *name_of(const struct look *l, const struct report_case *c)
{
    const char *names = "", *at = l->rule->named ? l->rule->named : "";

    for (size_t n; *(at += strspn(at, " ")); at += n) {
        n = strcspn(at, " ");
        const char *word = pool_text(&l->r->pool, "%.*s", (int)n, at), *equal = strchr(word, '=');
        const char *value = report_param(l->b, c, equal ? equal + 1 : word);
        if (equal && *value)
            value = pool_text(&l->r->pool, "%.*s %s", (int)(equal - word), word, value);
        names = *value ? show_joined(&l->r->pool, names, value) : names;
    }
    return pool_text(&l->r->pool, *names ? "%s %s (%s)" : "%s %s%s", l->rule->title,
                     report_param(l->b, c, l->rule->column), names);
}

#define PAIRS_NAMED 3

/* Adds the hosts of a case, once: ";node0 and node1;node1 and node2;". */
static void add_hosts(const struct look *l, struct sibling *s, const struct report_case *c)
{
    const char *from = report_param(l->b, c, "from"), *to = report_param(l->b, c, "to");
    const char *pair = pool_text(&l->r->pool, ";%s and %s;", from, to);

    if (*from && *to && !strstr(s->hosts, pair))
        s->hosts = pool_text(&l->r->pool, "%s%s", s->hosts, pair + (*s->hosts != 0));
}

/* ", between node0 and node1; node1 and node2; and 4 more"; "" on one machine. */
static const char *hosts_text(struct pool *pool, const char *hosts)
{
    struct show_list list = {.pool = pool, .max = PAIRS_NAMED, .parts = "; "};

    for (const char *at = hosts + (*hosts != 0), *end; *at && (end = strchr(at, ';')); at = end + 1)
        show_list_add(&list, pool_text(pool, "%.*s", (int)(end - at), at));
    return list.n ? pool_text(pool, ", between %s", show_list_text(&list)) : "";
}

static const char *sentence_of(const struct look *l, const struct sibling *s)
{
    struct pool *pool = &l->r->pool;
    const char *origin = show_origin(pool, s->first->points[l->run].origin);
    const char *name = name_of(l, s->first), *hosts = s->hosts;

    if (s->absent)
        return pool_text(pool, "%s %s%s%s", name, l->rule->absent, hosts, origin);
    const char *ratio = pool_text(pool, "%.2f", s->ratio);
    if (!isnan(s->low) && s->proven)
        ratio = pool_text(pool, "%s (%.2f to %.2f)", ratio, s->low, s->high);
    return pool_text(pool, "%s %s%s%s%s", name, show_filled(pool, l->rule->says, ratio), hosts,
                     s->compared > 1
                         ? pool_text(pool, ", in %zu of %zu comparisons", s->found, s->compared)
                         : "",
                     origin);
}

/* The finding on this place; a new one where there is none. */
static struct sibling *finding(const struct look *l, struct siblings *out, size_t first,
                               const struct report_case *c, bool absent)
{
    const char *value = report_param(l->b, c, l->rule->column);

    for (size_t i = first; i < out->n; i++)
        if (!strcmp(out->all[i].value, value) && out->all[i].absent == absent)
            return &out->all[i];
    struct sibling *s = POOL_ADD(&l->r->pool, out->all, out->n);
    *s = (struct sibling){.rule = l->rule,
                          .bench = l->b,
                          .run = l->run,
                          .value = value,
                          .ratio = NAN,
                          .low = NAN,
                          .high = NAN,
                          .absent = absent,
                          .hosts = "",
                          .measured = true};
    return s;
}

/* What is proven replaces what only looks so. */
static void take(const struct look *l, struct sibling *s, const struct comparison *k)
{
    s->compared++;
    if ((!k->slow && !k->looks_slow) || (s->proven && !k->slow))
        return;
    if (!s->first || k->slow > s->proven) {
        s->first = k->c;
        s->found = 0;
        s->ratio = s->low = s->high = 1;
        s->hosts = "";
    }
    s->found++;
    s->ratio *= k->ratio;
    s->low *= k->low;
    s->high *= k->high;
    s->proven = k->slow;
    s->measured &= point_is_measured(&k->c->points[l->run]);
    add_hosts(l, s, k->c);
}

static void find_absent(const struct look *l, struct siblings *out, size_t first)
{
    const char *but = l->rule->but ? l->rule->but : "";

    for (size_t i = 0; i < l->b->n_cases && l->rule->refused && l->rule->absent; i++) {
        const struct report_case *c = &l->b->cases[i];

        if (!c->points[l->run].n_rows || c->points[l->run].n_values ||
            !described_matches(l->b, c, l->rule->where) ||
            !described_matches(l->b, c, l->rule->refused) || !find_against(l, c, but))
            continue;
        struct sibling *s = finding(l, out, first, c, true);
        s->first = s->first ? s->first : c;
        add_hosts(l, s, c);
        s->found++;
        s->proven = true;
        s->measured &= point_is_measured(&c->points[l->run]);
    }
}

/* Leaves out the places of which nothing is found. */
static void keep_found(const struct look *l, struct siblings *out, size_t first)
{
    size_t kept = first;

    for (size_t i = first; i < out->n; i++) {
        struct sibling s = out->all[i];

        if (!s.first)
            continue;
        if (!s.absent) {
            s.ratio = pow(s.ratio, 1 / (double)s.found);
            s.low = pow(s.low, 1 / (double)s.found);
            s.high = pow(s.high, 1 / (double)s.found);
        }
        s.hosts = hosts_text(&l->r->pool, s.hosts);
        s.sentence = sentence_of(l, &s);
        out->all[kept++] = s;
    }
    out->n = kept;
}

void siblings_judge(const struct comparisons *q, struct siblings *out)
{
    struct report *r = q->r;
    struct look l = {.r = r};

    *out = (struct siblings){.n = 0};
    for (l.run = 0; l.run < r->n_runs; l.run++)
        for (l.b = r->benches; l.b < r->benches + r->n_benches; l.b++)
            for (l.rule = l.b->described->siblings; l.rule->title; l.rule++) {
                size_t first = out->n, n;
                const struct comparison *k = comparisons_about(q, l.rule, l.b, l.run, &n);

                for (size_t i = 0; i < n; i++)
                    take(&l, finding(&l, out, first, k[i].c, false), &k[i]);
                find_absent(&l, out, first);
                keep_found(&l, out, first);
            }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Which place is behind its like: see siblings.h. */
#include "harness/report/siblings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/decide/decide.h"
#include "harness/report/cases.h"
#include "harness/report/described.h"
#include "harness/report/headline.h"
#include "harness/report/show.h"

#define GROUP_MAX   128 /* places */
#define CONFIDENCE  0.95
#define ALARM_LEVEL 0.01 /* of a run, over all rules of a benchmark */

struct comparison {
    const struct report_case *c;
    size_t decided; /* number of its case in `cases` */
};

/* Launches of cases, and those of them that fell behind the others of their own case. */
struct stalls {
    size_t launches, behind;
};

/* A rule in a run of a benchmark. */
struct look {
    struct report *r;
    const struct bench_sibling *rule;
    const struct report_bench *b;
    size_t run;
    struct comparison *all;
    struct decide_case *cases;
    size_t n, rules;          /* rules that have cases in this run */
    bool *has_this, *has_any; /* one a case of the benchmark: this rule, any rule */
    struct stalls stalls;     /* of cases with any rule */
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

/* Turned round where less is better: the more the better. */
static double level(const struct look *l, const struct report_case *c)
{
    double value = c->points[l->run].value;

    return c->more_is_better ? value : 1 / value;
}

/* Which measured cases the rule is of. Returns how many. */
static size_t find_cases(const struct look *l, const struct bench_sibling *rule, bool *has)
{
    size_t n = 0;

    for (size_t i = 0; i < l->b->n_cases; i++) {
        const struct report_case *c = &l->b->cases[i];
        has[i] = is_measured(l, c) && described_matches(l->b, c, rule->where);
        n += has[i];
    }
    return n;
}

/* Which cases have any rule, and how many rules have cases. */
static void count_rules(struct look *l)
{
    l->rules = 0;
    memset(l->has_any, 0, l->b->n_cases * sizeof(*l->has_any));
    for (const struct bench_sibling *rule = l->b->described->siblings; rule->title; rule++) {
        l->rules += find_cases(l, rule, l->has_this) > 0;
        for (size_t i = 0; i < l->b->n_cases; i++)
            l->has_any[i] |= l->has_this[i];
    }
}

/* Those that this one is held against, in others[GROUP_MAX]. */
static size_t find_others(const struct look *l, const struct report_case *c,
                          const struct report_case **others)
{
    double levels[GROUP_MAX + 1];
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < l->b->n_cases && n < GROUP_MAX; i++) {
        const struct report_case *other = &l->b->cases[i];

        if (!l->has_this[i] || !cases_differ_in(l->b, c, other, l->rule->column))
            continue;
        others[n] = other;
        levels[n++] = level(l, other);
    }
    levels[n] = level(l, c);
    qsort(levels, n + 1, sizeof(*levels), stats_ascending);
    for (size_t i = 0; i < n; i++)
        if (level(l, others[i]) >= l->rule->below / 100 * levels[(n + 1) / 2])
            others[kept++] = others[i];
    return kept;
}

/* Held against its own upper median, by which a place that is slow in each launch has none. */
static struct stalls stalls_of(const struct look *l, const struct report_case *c)
{
    const struct report_point *p = &c->points[l->run];
    double *levels = pool_alloc(&l->r->pool, p->n_rows, sizeof(*levels));
    struct stalls stalls = {0};

    stalls.launches = combine_values(&l->b->rows[l->run], p, levels);
    for (size_t i = 0; i < stalls.launches && !c->more_is_better; i++)
        levels[i] = 1 / levels[i];
    qsort(levels, stalls.launches, sizeof(*levels), stats_ascending);
    double edge = l->rule->below / 100 * levels[stalls.launches / 2];
    while (stalls.behind < stalls.launches && levels[stalls.behind] < edge)
        stalls.behind++;
    return stalls;
}

static void count_stalls(struct look *l)
{
    l->stalls = (struct stalls){0};
    for (size_t i = 0; i < l->b->n_cases; i++) {
        struct stalls own = l->has_any[i] ? stalls_of(l, &l->b->cases[i]) : (struct stalls){0};
        l->stalls.launches += own.launches;
        l->stalls.behind += own.behind;
    }
}

static void add_comparison(struct look *l, const struct report_case *c)
{
    const struct report_case *others[GROUP_MAX];
    size_t n = 0;

    if (l->rule->against)
        n = (others[0] = find_against(l, c, l->rule->but ? l->rule->but : "")) != NULL;
    else
        n = find_others(l, c, others);
    if (!n)
        return;
    struct decide_run *runs = pool_alloc(&l->r->pool, n + 1, sizeof(*runs));
    for (size_t i = 0; i <= n; i++) {
        const struct report_point *p = &(i < n ? others[i] : c)->points[l->run];
        double *values = pool_alloc(&l->r->pool, p->n_rows, sizeof(*values));

        runs[i] = (struct decide_run){.values = values,
                                      .n = combine_values(&l->b->rows[l->run], p, values)};
    }
    l->all[l->n] = (struct comparison){c, l->n};
    l->cases[l->n++] = (struct decide_case){.a = {runs, n},
                                            .b = {runs + n, 1},
                                            .margin = 1 - l->rule->below / 100,
                                            .higher_is_better = c->more_is_better};
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

/* ", between node0 and node1, node1 and node2, and 4 more pairs"; "" on one machine. */
static const char *hosts_text(struct pool *pool, const char *hosts)
{
    const char *text = "";
    size_t n = 0;

    for (const char *at = hosts + (*hosts != 0), *end; *at && (end = strchr(at, ';')); at = end + 1)
        if (n++ < PAIRS_NAMED)
            text =
                pool_text(pool, "%s, %s%.*s", text, n == 1 ? "between " : "", (int)(end - at), at);
    return n > PAIRS_NAMED ? pool_text(pool, "%s, and %zu more pairs", text, n - PAIRS_NAMED)
                           : text;
}

static const char *sentence_of(const struct look *l, const struct sibling *s)
{
    struct pool *pool = &l->r->pool;
    const char *form = l->rule->says, *at = strstr(form, "%s");
    const char *origin = show_origin(pool, s->first->points[l->run].origin);
    const char *name = name_of(l, s->first), *hosts = s->hosts;

    if (s->absent)
        return pool_text(pool, "%s %s%s%s", name, l->rule->absent, hosts, origin);
    const char *ratio = pool_text(pool, "%.2f", s->ratio);
    if (!isnan(s->low) && s->proven)
        ratio = pool_text(pool, "%s (%.2f to %.2f)", ratio, s->low, s->high);
    const char *says =
        at ? pool_text(pool, "%.*s%s%s", (int)(at - form), form, ratio, at + 2) : form;
    return pool_text(pool, "%s %s%s%s%s", name, says, hosts,
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
    out->all[out->n] = (struct sibling){.rule = l->rule,
                                        .bench = l->b,
                                        .run = l->run,
                                        .value = value,
                                        .ratio = NAN,
                                        .low = NAN,
                                        .high = NAN,
                                        .absent = absent,
                                        .hosts = "",
                                        .measured = true};
    return &out->all[out->n++];
}

/* How many launches are below it, each by itself? One of two that stalled is noise. */
static size_t launches_behind(const struct look *l, const struct decide_case *d)
{
    const struct decide_run *b = &d->b.runs[0];
    size_t behind = 0;

    for (size_t i = 0; i < b->n; i++) {
        double ratio = d->higher_is_better ? b->values[i] / d->a_value : d->a_value / b->values[i];
        behind += ratio < l->rule->below / 100;
    }
    return behind;
}

/*
 * The chance that at least so many of n launches stall, where so many of the others did: each with
 * the same chance, of which the others tell (beta-binomial, with Jeffreys' prior).
 */
static double chance_of_stalls(size_t behind, size_t n, const struct stalls *others)
{
    double a = 0.5 + (double)others->behind;
    double b = 0.5 + (double)(others->launches - others->behind), all = 1, sum = 0;

    for (size_t i = 0; i < n; i++)
        all *= (b + (double)i) / (a + b + (double)i);
    for (size_t k = 0; k <= n; k++) {
        double left = (double)(n - k);
        sum += k >= behind ? all : 0;
        all *= left * (a + (double)k) / ((double)(k + 1) * (b + left - 1));
    }
    return sum;
}

/* Are these more than stalls explain, over all comparisons? */
static bool is_no_stall(const struct look *l, const struct comparison *k, size_t behind)
{
    struct stalls own = stalls_of(l, k->c), others = l->stalls;

    others.launches -= own.launches;
    others.behind -= own.behind;
    double chance = chance_of_stalls(behind, own.launches, &others);
    return chance * (double)l->n <= ALARM_LEVEL / (double)l->rules;
}

struct ends {
    double low, high;
};

/* The comparisons of a rule share their values, and so know how places differ no better than the
 * siblings of one do. */
static struct ends interval_of(const struct decide_case *d)
{
    double freedom = d->a.n > 1 ? fmin(d->freedom, (double)d->a.n - 1) : d->freedom;
    double half = isnan(d->error) || isnan(freedom)
                      ? NAN
                      : d->error * dist_t_quantile(0.5 + CONFIDENCE / 2, freedom);

    return (struct ends){d->ratio * exp(-half), d->ratio * exp(half)};
}

/* What is proven replaces what only seems so. */
static void take(const struct look *l, struct sibling *s, const struct comparison *k)
{
    const struct decide_case *d = &l->cases[k->decided];
    struct ends ends = interval_of(d);
    double edge = l->rule->below / 100;
    bool below = d->ratio < edge; /* NaN: no */
    size_t behind = below ? launches_behind(l, d) : 0;
    /* Few launches may fall on two levels: is_no_stall() looks at that. */
    bool slower = d->decision == DECISION_WORSE || d->obstacle == OBSTACLE_FEW;
    bool proven = below && slower && ends.high < edge && is_no_stall(l, k, behind);
    bool seems = proven || (below && behind == d->b.runs[0].n);

    s->compared++;
    if (!seems || (s->proven && !proven))
        return;
    if (!s->first || proven > s->proven) {
        s->first = k->c;
        s->found = 0;
        s->ratio = s->low = s->high = 1;
        s->hosts = "";
    }
    s->found++;
    s->ratio *= d->ratio;
    s->low *= ends.low;
    s->high *= ends.high;
    s->proven = proven;
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

static void look_at(struct look *l, struct siblings *out)
{
    struct decide_options options = {.alarm_level = ALARM_LEVEL, .confidence = CONFIDENCE};
    struct decide_overall overall;
    size_t first = out->n;

    find_cases(l, l->rule, l->has_this);
    count_stalls(l);
    l->n = 0;
    options.alarm_level /= fmax(1, (double)l->rules);
    for (size_t i = 0; i < l->b->n_cases; i++)
        if (l->has_this[i])
            add_comparison(l, &l->b->cases[i]);
    if (l->n) /* where `below` is no share, as of a run.json that somebody changed, no ratio is known */
        decide_suite(l->cases, l->n, &options, &overall);
    for (size_t i = 0; i < l->n; i++)
        take(l, finding(l, out, first, l->all[i].c, false), &l->all[i]);
    find_absent(l, out, first);
    keep_found(l, out, first);
}

void siblings_make(struct report *r, struct siblings *out)
{
    size_t most = 0, most_cases = 0;

    for (size_t i = 0; i < r->n_benches; i++) {
        most_cases = r->benches[i].n_cases > most_cases ? r->benches[i].n_cases : most_cases;
        for (const struct bench_sibling *rule = r->benches[i].described->siblings; rule->title;
             rule++)
            most += r->benches[i].n_cases * r->n_runs;
    }
    *out = (struct siblings){.all = pool_alloc(&r->pool, most, sizeof(*out->all))};
    struct look l = {.r = r,
                     .all = pool_alloc(&r->pool, most_cases, sizeof(*l.all)),
                     .cases = pool_alloc(&r->pool, most_cases, sizeof(*l.cases)),
                     .has_this = pool_alloc(&r->pool, most_cases, sizeof(*l.has_this)),
                     .has_any = pool_alloc(&r->pool, most_cases, sizeof(*l.has_any))};
    for (l.run = 0; l.run < r->n_runs; l.run++)
        for (size_t i = 0; i < r->n_benches; i++) {
            l.b = &r->benches[i];
            count_rules(&l);
            for (l.rule = l.b->described->siblings; l.rule->title; l.rule++)
                look_at(&l, out);
        }
}

/* ---- The first lines */

#define NAMED_MAX 3 /* in a line */

/* Is the same place named by one before it? */
static bool was_before(const struct siblings *s, size_t n)
{
    const struct sibling *at = &s->all[n];

    for (size_t i = 0; i < n; i++)
        if (s->all[i].bench == at->bench && s->all[i].run == at->run && s->all[i].proven &&
            !strcmp(s->all[i].rule->title, at->rule->title) && !strcmp(s->all[i].value, at->value))
            return true;
    return false;
}

const char *siblings_health(struct report *r, const struct siblings *s, size_t run)
{
    const struct sibling *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct sibling *at = &s->all[i];

        if (at->run != run || !at->proven || !at->measured || was_before(s, i))
            continue;
        first = first ? first : at;
        n++;
    }
    return n ? pool_text(&r->pool, "%s %s to be looked into",
                         show_count(&r->pool, n, first->rule->title), n == 1 ? "is" : "are")
             : "";
}

/* "rail 3 carries 0.52 of the other rails; and 2 more"; "": none. */
static const char *list(struct report *r, const struct siblings *s, size_t run, bool proven,
                        bool absent)
{
    const char *text = "";
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct sibling *at = &s->all[i];

        if (at->run != run || at->proven != proven || at->absent != absent)
            continue;
        if (n++ < NAMED_MAX)
            text = pool_text(&r->pool, "%s%s%s", text, *text ? "; " : "", at->sentence);
    }
    return n > NAMED_MAX ? pool_text(&r->pool, "%s; and %zu more", text, n - NAMED_MAX) : text;
}

void siblings_answer(struct report *r, const struct siblings *s, size_t run, struct document *d)
{
    const char *slow = list(r, s, run, true, false), *missing = list(r, s, run, true, true);
    const char *seems = list(r, s, run, false, false);

    if (*slow)
        document_answer(d, "Behind", "slow", TONE_LOW, slow);
    if (*missing)
        document_answer(d, "Missing", "", TONE_LOW, missing);
    if (*seems)
        document_answer(d, "Behind", "not proven", TONE_NONE,
                        pool_text(&r->pool, "%s; measure again with a higher --repeat", seems));
}

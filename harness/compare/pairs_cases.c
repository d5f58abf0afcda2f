/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of a comparison: see pairs_parts.h. The report's are made by what stands in the rows' columns. Here a parameter
 * that was left to the benchmark (rule_left_by()) makes no case: launches that chose differently are launches of one case,
 * and a value that was asked for makes a case of its own, though the benchmark chose the same elsewhere.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "harness/compare/pairs_parts.h"
#include "harness/report/combine.h"
#include "harness/report/rules.h"

#define CHOICES_MAX 8

/* A case in the making. */
struct group {
    const char *key;
    struct report_case c;
    size_t number, n_sources;
    const struct report_case *source; /* the last of the report's cases that it is made of */
    bool in_a, in_b;                  /* sides that have rows of it */
    struct group *joined;             /* another, in which its rows are; NULL: none */
};

struct ref {
    size_t run, row;
    struct group *group;
};

struct making {
    struct pairing *g;
    struct report_bench *b;
    size_t choices[CHOICES_MAX], n_choices; /* parameters */
    struct group **groups;                  /* in the order of the suite */
    size_t n, n_refs;
    struct ref *refs;
    void *by_key;
};

/* The value of an option in "--op triad --memory-node 1"; its length; NULL: it is not there. */
static const char *argument_of(const char *arguments, const char *param, size_t *len)
{
    size_t n = strlen(param);

    for (const char *at = arguments; (at = strstr(at, "--")) != NULL;) {
        size_t same = 0;

        at += 2;
        while (same < n && (at[same] == '-' ? '_' : at[same]) == param[same])
            same++;
        if (same < n || (at[n] != ' ' && at[n] != '='))
            continue;
        *len = strcspn(at + n + 1, " ");
        return at + n + 1;
    }
    return NULL;
}

/* What the launch was asked for; "" where the choice was left to the benchmark. Of several values the row says which it
 * was, and of a launch that is in no plan nobody knows: it is taken as asked for. */
static const char *asked_of(struct making *m, const struct suite_entry *entry,
                            const struct report_case *c, size_t param)
{
    const char *name = m->b->params[param], *word = rule_left_by(m->b->name, name);
    size_t len = 0;
    const char *value = entry ? argument_of(entry->arguments, name, &len) : NULL;

    if (entry && (!value || (len == strlen(word) && !memcmp(value, word, len))))
        return "";
    if (!value || *c->params[param] || memchr(value, ',', len))
        return c->params[param];
    return pool_text(&m->g->p->report.pool, "%.*s", (int)len, value);
}

static int compare_keys(const void *x, const void *y)
{
    return strcmp(((const struct group *)x)->key, ((const struct group *)y)->key);
}

static void leave_group(void *group)
{
    (void)group; /* it lives in the pool */
}

static struct group *group_of(struct making *m, const struct report_case *c,
                              const char *const *params)
{
    struct pool *pool = &m->g->p->report.pool;
    const struct report_case as_asked = {.params = params, .metric = c->metric, .unit = c->unit};
    struct group like = {.key = pair_key(pool, m->b, &as_asked)};
    struct group *const *found = tfind(&like, &m->by_key, compare_keys);

    if (found)
        return *found;
    struct group *group = pool_alloc(pool, 1, sizeof(*group));
    if (!group)
        return NULL;
    *group = (struct group){.key = like.key, .c = as_asked, .number = m->n};
    m->groups[m->n++] = group;
    return tsearch(group, &m->by_key, compare_keys) ? group : NULL;
}

/* Of one row of the report's case. */
static struct group *group_of_row(struct making *m, const struct report_case *c, size_t run,
                                  size_t row)
{
    const struct report_rows *rows = &m->b->rows[run];
    const struct suite_entry *entry =
        suite_entry_of(&m->g->plans[run], m->b->name, row_text(rows, row, FIELD_CASE));
    const char **params = pool_alloc(&m->g->p->report.pool, m->b->n_params, sizeof(*params));

    if (!params)
        return NULL;
    memcpy(params, c->params, m->b->n_params * sizeof(*params));
    for (size_t i = 0; i < m->n_choices; i++)
        params[m->choices[i]] = asked_of(m, entry, c, m->choices[i]);
    return group_of(m, c, params);
}

static int add_row(struct making *m, const struct report_case *c, size_t run, size_t row,
                   struct group *group)
{
    if (!group)
        return -ENOMEM;
    group->n_sources += group->source != c;
    group->source = c;
    group->in_a |= run < m->g->a.end;
    group->in_b |= run >= m->g->b.first;
    m->refs[m->n_refs++] = (struct ref){run, row, group};
    return 0;
}

/* Rows of one launch, and mostly of one case of the suite, stand together. */
static int add_case(struct making *m, const struct report_case *c)
{
    int err = 0;

    for (size_t run = 0; run < m->g->p->report.n_runs; run++) {
        const struct report_point *p = &c->points[run];
        const char *number = NULL;
        struct group *group = NULL;

        for (size_t i = 0; !err && i < p->n_rows; i++) {
            const char *own = row_text(&m->b->rows[run], p->rows[i], FIELD_CASE);

            if (!number || strcmp(number, own) != 0)
                group = group_of_row(m, c, run, p->rows[i]);
            number = own;
            err = add_row(m, c, run, p->rows[i], group);
        }
    }
    return err;
}

/* Is whatever `less` was asked for the same in `more`? */
static bool covers(const struct making *m, const struct group *more, const struct group *less)
{
    for (size_t i = 0; i < m->n_choices; i++) {
        const char *asked = less->c.params[m->choices[i]];

        if (*asked && strcmp(asked, more->c.params[m->choices[i]]) != 0)
            return false;
    }
    return true;
}

/* What one side was asked for, and what the other side's launches all chose of themselves, is one case where it is that of
 * the report, and neither has another partner. */
static bool is_of_both(const struct making *m, const struct group *more, const struct group *less)
{
    return more != less && more->source == less->source && more->n_sources == 1 &&
           less->n_sources == 1 && more->in_a != more->in_b && less->in_a == more->in_b &&
           less->in_b == more->in_a && covers(m, more, less);
}

static void join_groups(struct making *m)
{
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->n && m->groups[i]->in_a != m->groups[i]->in_b; k++) {
            if (!is_of_both(m, m->groups[i], m->groups[k]))
                continue;
            m->groups[k]->joined = m->groups[i];
            m->groups[i]->in_a = m->groups[i]->in_b = true;
            m->groups[k]->in_a = m->groups[k]->in_b = true;
        }
}

static int compare_refs(const void *x, const void *y)
{
    const struct ref *a = x, *b = y;

    if (a->group != b->group)
        return a->group->number < b->group->number ? -1 : 1;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int fill_case(struct making *m, struct report_case *c, const struct ref *refs, size_t n)
{
    struct report *r = &m->g->p->report;
    size_t *rows = pool_alloc(&r->pool, n, sizeof(*rows));

    *c = refs->group->c;
    c->points = pool_alloc(&r->pool, r->n_runs, sizeof(*c->points));
    if (!rows || !c->points)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct report_point *p = &c->points[refs[i].run];

        p->rows = p->n_rows ? p->rows : rows + i;
        p->n_rows++;
        rows[i] = refs[i].row;
    }
    for (size_t i = 0; i < r->n_runs; i++)
        combine_launches(&r->pool, &m->b->rows[i], &c->points[i]);
    return 0;
}

static int fill_cases(struct making *m)
{
    struct report_case *cases = pool_alloc(&m->g->p->report.pool, m->n, sizeof(*cases));
    size_t n = 0;
    int err = cases ? 0 : -ENOMEM;

    for (size_t i = 0; i < m->n_refs; i++)
        if (m->refs[i].group->joined)
            m->refs[i].group = m->refs[i].group->joined;
    qsort(m->refs, m->n_refs, sizeof(*m->refs), compare_refs);
    for (size_t i = 0; !err && i < m->n_refs;) {
        size_t end = i;

        while (end < m->n_refs && m->refs[end].group == m->refs[i].group)
            end++;
        err = fill_case(m, &cases[n++], m->refs + i, end - i);
        i = end;
    }
    if (!err) {
        m->b->cases = cases;
        m->b->n_cases = n;
    }
    return err;
}

static void find_choices(struct making *m)
{
    for (size_t i = 0; i < m->b->n_params && m->n_choices < CHOICES_MAX; i++)
        if (rule_left_by(m->b->name, m->b->params[i]))
            m->choices[m->n_choices++] = i;
}

static size_t count_rows(const struct making *m)
{
    size_t n = 0;

    for (size_t k = 0; k < m->b->n_cases; k++)
        for (size_t run = 0; run < m->g->p->report.n_runs; run++)
            n += m->b->cases[k].points[run].n_rows;
    return n;
}

static int make(struct making *m)
{
    size_t n_rows = count_rows(m);
    int err = 0;

    m->refs = calloc(n_rows + 1, sizeof(*m->refs));
    m->groups = calloc(n_rows + 1, sizeof(*m->groups)); /* one a row at most */
    if (!m->refs || !m->groups)
        err = -ENOMEM;
    for (size_t i = 0; !err && i < m->b->n_cases; i++)
        err = add_case(m, &m->b->cases[i]);
    if (!err) {
        join_groups(m);
        err = fill_cases(m);
    }
    tdestroy(m->by_key, leave_group);
    free(m->groups);
    free(m->refs);
    return err;
}

int pairs_make_cases(struct pairing *g)
{
    int err = 0;

    for (size_t i = 0; !err && i < g->p->report.n_benches; i++) {
        struct making m = {.g = g, .b = &g->p->report.benches[i]};

        find_choices(&m);
        if (m.n_choices)
            err = make(&m);
    }
    return err;
}

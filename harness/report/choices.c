/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was left to a benchmark, and what was asked for: see choices.h. Rows are put into groups by what their launches were
 * asked for; in a comparison a group is a case.
 */
#include "harness/report/choices_parts.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/case_key.h"
#include "harness/report/combine.h"
#include "harness/report/shares.h"
#include "harness/report/show.h"
#include "harness/report/told.h"
#include "harness/text.h"

/* What the launch was asked for; "" where the choice was left to the benchmark. Of several values the row says which it
 * was, and of a launch that is in no plan nobody knows: it is taken as asked for. */
static const char *asked_of(struct making *m, const struct suite_entry *entry,
                            const struct report_case *c, size_t param)
{
    const char *name = m->b->params[param], *word = told_left_by(m->b, name);
    size_t len = 0;
    const char *value = entry ? argument_value(entry->arguments, name, &len) : NULL;

    if (entry && (!value || (len == strlen(word) && !memcmp(value, word, len))))
        return "";
    if (!value || *c->params[param] || memchr(value, ',', len))
        return c->params[param];
    return pool_text(&m->r->pool, "%.*s", (int)len, value);
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
    struct pool *pool = &m->r->pool;
    const struct report_case as_asked = {.params = params,
                                         .metric = c->metric,
                                         .unit = c->unit,
                                         .more_is_better = c->more_is_better};
    struct group like = {.key = case_key(pool, m->b, &as_asked)};
    struct group *const *found = tfind(&like, &m->by_key, compare_keys);

    if (found)
        return *found;
    struct group *group = pool_alloc(pool, 1, sizeof(*group));
    if (!group)
        return NULL;
    *group = (struct group){.key = like.key, .c = as_asked, .place = (size_t)(c - m->b->cases)};
    m->groups[m->n++] = group;
    group->number = m->n;
    return tsearch(group, &m->by_key, compare_keys) ? group : NULL;
}

/* Of one row of the report's case. */
static struct group *group_of_row(struct making *m, const struct report_case *c, size_t run,
                                  size_t row)
{
    const struct report_rows *rows = &m->b->rows[run];
    const struct suite_entry *entry =
        suite_entry_of(&m->plans[run], m->b->name, row_text(rows, row, FIELD_CASE));
    const char **params = pool_alloc(&m->r->pool, m->b->n_params, sizeof(*params));

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
    group->in_a |= run < m->n_a && !(m->apart && m->apart[run]);
    group->in_b |= run >= m->n_a;
    m->refs[m->n_refs++] = (struct ref){run, row, c, group};
    return 0;
}

/* Rows of one launch, and mostly of one case of the suite, stand together. */
static int add_case(struct making *m, const struct report_case *c)
{
    int err = 0;

    for (size_t run = 0; run < m->r->n_runs; run++) {
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

int choices_compare(const void *x, const void *y)
{
    const struct ref *a = x, *b = y;

    if (a->group->place != b->group->place)
        return a->group->place < b->group->place ? -1 : 1;
    if (a->group != b->group)
        return a->group->number < b->group->number ? -1 : 1;
    if (a->run != b->run)
        return a->run < b->run ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* "isa avx512 in 3 of 5 launches, avx2 in 2" */
static const char *chosen_text(struct making *m, const struct report_rows *rows,
                               const struct report_point *p)
{
    struct pool *pool = &m->r->pool;
    const char **texts = pool_alloc(pool, p->n_rows, sizeof(*texts)), *all = "";

    for (size_t k = 0; texts && k < m->n_choices; k++) {
        size_t n = 0, param = m->choices[k];
        bool mixed;

        for (size_t i = 0; i < p->n_rows; i++) {
            const char *text = table_cell(rows->table, p->rows[i], rows->params[param]);
            if (*text)
                texts[n++] = show_param(pool, m->b, param, text);
        }
        const char *shares = shares_text(pool, texts, n, "launches", &mixed);
        if (mixed)
            all = show_joined(pool, all, pool_text(pool, "%s %s", m->b->params[param], shares));
    }
    return all;
}

static int fill_case(struct making *m, struct report_case *c, const struct ref *refs, size_t n)
{
    struct report *r = m->r;
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
    for (size_t i = 0; i < r->n_runs; i++)
        if (c->points[i].n_rows)
            c->points[i].chose = chosen_text(m, &m->b->rows[i], &c->points[i]);
    return 0;
}

/* How many groups the sorted rows are in: fewer or more than there were, as groups were joined or parted since. */
static size_t count_groups(const struct making *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_refs; i++)
        n += !i || m->refs[i].group != m->refs[i - 1].group;
    return n;
}

int choices_fill(struct making *m)
{
    size_t n = 0;
    int err = 0;

    for (size_t i = 0; i < m->n_refs; i++)
        if (m->refs[i].group->joined)
            m->refs[i].group = m->refs[i].group->joined;
    qsort(m->refs, m->n_refs, sizeof(*m->refs), choices_compare);
    struct report_case *cases = pool_alloc(&m->r->pool, count_groups(m), sizeof(*cases));
    if (!cases)
        return -ENOMEM;
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
        if (told_left_by(m->b, m->b->params[i]))
            m->choices[m->n_choices++] = i;
}

static size_t count_rows(const struct making *m)
{
    size_t n = 0;

    for (size_t k = 0; k < m->b->n_cases; k++)
        for (size_t run = 0; run < m->r->n_runs; run++)
            n += m->b->cases[k].points[run].n_rows;
    return n;
}

int choices_begin(struct making *m, struct report *r, const struct suite_index *plans, size_t n_a,
                  const bool *apart, size_t bench)
{
    int err = 0;

    *m = (struct making){
        .r = r, .plans = plans, .n_a = n_a, .apart = apart, .b = &r->benches[bench]};
    find_choices(m);
    if (!m->n_choices)
        return 0;
    size_t n_rows = count_rows(m);
    m->refs = calloc(n_rows + 1, sizeof(*m->refs));
    m->groups = calloc(n_rows + 1, sizeof(*m->groups)); /* one a row at most */
    if (!m->refs || !m->groups)
        err = -ENOMEM;
    for (size_t i = 0; !err && i < m->b->n_cases; i++)
        err = add_case(m, &m->b->cases[i]);
    return err;
}

void choices_end(struct making *m)
{
    tdestroy(m->by_key, leave_group);
    free(m->groups);
    free(m->refs);
}

int choices_as_asked(struct report *r, const struct suite_index *plans, size_t n_a,
                     const bool *apart)
{
    int err = 0;

    for (size_t i = 0; !err && i < r->n_benches; i++) {
        struct making m;

        err = choices_begin(&m, r, plans, n_a, apart, i);
        if (!err && m.n_choices) {
            join_groups(&m);
            err = choices_fill(&m);
        }
        choices_end(&m);
    }
    return err;
}

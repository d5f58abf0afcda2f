/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was left to a benchmark, and what was asked for: see choices.h. Rows are put into groups by
 * what their launches were asked for; in a comparison a group is a case.
 */
#include "harness/report/choices.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/units.h"
#include "harness/report/cases.h"
#include "harness/report/described.h"
#include "harness/report/show.h"
#include "harness/text.h"

#define CHOICES_MAX 8

/* A case in the making. */
struct group {
    const char *key;
    struct report_case c;
    size_t place;  /* of the report's case that its first row is of */
    size_t number; /* from 1; 0: it is that case still */
    size_t n_sources;
    const struct report_case *source; /* the last of the report's cases that it is made of */
    bool in_a, in_b;                  /* sides that have rows of it */
    struct group *joined;             /* another, in which its rows are; NULL: none */
    bool differs;                     /* launches of one case of a suite chose differently */
};

struct ref {
    size_t run, row;
    const struct report_case *source;
    struct group *group;
};

struct making {
    struct report *r;
    const struct suite_index *plans; /* one a run */
    size_t n_a;                      /* runs of the one side, in a comparison */
    const bool *apart;               /* of each of them; NULL: none is of neither side */
    struct report_bench *b;
    size_t choices[CHOICES_MAX], n_choices; /* parameters */
    struct group **groups;                  /* in the order of the suite */
    size_t n, n_refs;
    struct ref *refs;
    void *by_key;
};

/* ---- The cases of a run's plan, to find a case of one run in another ---- */

static int compare_case(const void *x, const void *y)
{
    const struct suite_entry *a = x, *b = y;
    int d = strcmp(a->case_id, b->case_id);

    return d ? d : strcmp(a->bench, b->bench);
}

static int compare_arguments(const void *x, const void *y)
{
    const struct suite_entry *a = *(struct suite_entry *const *)x,
                             *b = *(struct suite_entry *const *)y;
    int d = strcmp(a->bench, b->bench);

    d = d ? d : strcmp(a->arguments, b->arguments);
    for (size_t i = 0; !d && i < 3; i++)
        d = strcmp(a->hosts[i], b->hosts[i]);
    return d;
}

static void read_launch(const struct table *plan, const size_t columns[8], size_t row,
                        struct suite_entry *e)
{
    const char *state = table_cell(plan, row, columns[0]);

    *e = (struct suite_entry){.n_done = !strcmp(state, "done"),
                              .n_skipped = !strcmp(state, "skip"),
                              .n_failed = !strcmp(state, "fail"),
                              .n_late = !strcmp(state, "late"),
                              .n_todo = !strcmp(state, "todo"),
                              .reason = "",
                              .bench = table_cell(plan, row, columns[1]),
                              .case_id = table_cell(plan, row, columns[2]),
                              .arguments = table_cell(plan, row, columns[3])};
    for (size_t i = 0; i < 3; i++)
        e->hosts[i] = table_cell(plan, row, columns[4 + i]);
    if (units_parse_double(table_cell(plan, row, columns[7]), &e->margin) ||
        !(e->margin > 0 && e->margin < 1))
        e->margin = NAN;
}

/* Launches of one case become one entry. */
static size_t merge_launches(struct suite_entry *all, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct suite_entry *e = kept ? &all[kept - 1] : NULL;

        if (!e || compare_case(e, &all[i])) {
            all[kept++] = all[i];
            continue;
        }
        e->n_done += all[i].n_done;
        e->n_skipped += all[i].n_skipped;
        e->n_failed += all[i].n_failed;
        e->n_late += all[i].n_late;
        e->n_todo += all[i].n_todo;
    }
    return kept;
}

/* Why a launch has no value is in its rows. */
static void take_reasons(const struct run_folder *run, struct suite_index *index)
{
    for (size_t k = 0; k < run->n_benches; k++) {
        const struct table *t = &run->benches[k].rows;
        size_t status = table_column(t, "status"), reason = table_column(t, "reason");
        size_t number = table_column(t, "case");

        for (size_t row = 0; row < t->n_rows; row++) {
            const char *text = table_cell(t, row, status);
            if (!strcmp(text, "ok") || !strcmp(text, "noisy"))
                continue;
            struct suite_entry *e = (struct suite_entry *)suite_entry_of(
                index, run->benches[k].name, table_cell(t, row, number));
            if (e && !*e->reason)
                e->reason = table_cell(t, row, reason);
        }
    }
}

void suite_index_make(const struct run_folder *run, struct suite_index *index)
{
    static const char *const names[8] = {"state", "bench", "case",  "arguments",
                                         "from",  "to",    "hosts", "margin"};
    const struct table *plan = &run->plan;
    size_t columns[8];

    *index =
        (struct suite_index){.by_case = xcalloc(plan->n_rows, sizeof(*index->by_case)),
                             .by_arguments = xcalloc(plan->n_rows, sizeof(*index->by_arguments))};
    for (size_t i = 0; i < 8; i++)
        columns[i] = table_column(plan, names[i]);
    for (size_t i = 0; i < plan->n_rows; i++)
        read_launch(plan, columns, i, &index->by_case[i]);
    qsort(index->by_case, plan->n_rows, sizeof(*index->by_case), compare_case);
    index->n = merge_launches(index->by_case, plan->n_rows);
    for (size_t i = 0; i < index->n; i++)
        index->by_arguments[i] = &index->by_case[i];
    take_reasons(run, index);
    qsort(index->by_arguments, index->n, sizeof(*index->by_arguments), compare_arguments);
}

void suite_index_release(struct suite_index *index)
{
    free(index->by_case);
    free(index->by_arguments);
    *index = (struct suite_index){0};
}

const struct suite_entry *suite_entry_of(const struct suite_index *index, const char *bench,
                                         const char *case_id)
{
    struct suite_entry key = {.bench = bench, .case_id = case_id};

    return bsearch(&key, index->by_case, index->n, sizeof(key), compare_case);
}

const struct suite_entry *suite_entry_like(const struct suite_index *index,
                                           const struct suite_entry *entry)
{
    struct suite_entry *const *found = bsearch(&entry, index->by_arguments, index->n,
                                               sizeof(*index->by_arguments), compare_arguments);

    return found ? *found : NULL;
}

/* What the launch was asked for; "" where the choice was left to the benchmark. Of several values
 * the row says which it was, and of a launch that is in no plan nobody knows: it is taken as asked
 * for. */
static const char *asked_of(struct making *m, const struct suite_entry *entry,
                            const struct report_case *c, size_t param)
{
    const char *name = m->b->params[param], *word = described_left_by(m->b, name);
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
    *group = (struct group){.key = like.key, .c = as_asked, .place = (size_t)(c - m->b->cases)};
    *ARRAY_ADD(m->groups, m->n) = group;
    group->number = m->n;
    if (!tsearch(group, &m->by_key, compare_keys))
        alloc_fail(sizeof(*group));
    return group;
}

/* Of one row of the report's case. */
static struct group *group_of_row(struct making *m, const struct report_case *c, size_t run,
                                  size_t row)
{
    const struct report_rows *rows = &m->b->rows[run];
    const struct suite_entry *entry =
        suite_entry_of(&m->plans[run], m->b->name, row_text(rows, row, FIELD_CASE));
    const char **params = pool_alloc(&m->r->pool, m->b->n_params, sizeof(*params));

    memcpy(params, c->params, m->b->n_params * sizeof(*params));
    for (size_t i = 0; i < m->n_choices; i++)
        params[m->choices[i]] = asked_of(m, entry, c, m->choices[i]);
    return group_of(m, c, params);
}

/* Rows of one launch, and mostly of one case of the suite, stand together. */
static void add_case(struct making *m, const struct report_case *c)
{
    for (size_t run = 0; run < m->r->n_runs; run++) {
        const struct report_point *p = &c->points[run];
        const char *number = NULL;
        struct group *group = NULL;

        for (size_t i = 0; i < p->n_rows; i++) {
            const char *own = row_text(&m->b->rows[run], p->rows[i], FIELD_CASE);

            if (!number || strcmp(number, own) != 0)
                group = group_of_row(m, c, run, p->rows[i]);
            number = own;
            group->n_sources += group->source != c;
            group->source = c;
            group->in_a |= run < m->n_a && !(m->apart && m->apart[run]);
            group->in_b |= run >= m->n_a;
            *ARRAY_ADD(m->refs, m->n_refs) = (struct ref){run, p->rows[i], c, group};
        }
    }
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

/* What one side was asked for, and what the other side's launches all chose of themselves, is one
 * case where it is that of the report, and neither has another partner. */
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

/* Rows by their groups, in the order of the suite, and by time. For qsort(). */
static int choices_compare(const void *x, const void *y)
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

    for (size_t k = 0; k < m->n_choices; k++) {
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

static void fill_case(struct making *m, struct report_case *c, const struct ref *refs, size_t n)
{
    struct report *r = m->r;
    size_t *rows = pool_alloc(&r->pool, n, sizeof(*rows));

    *c = refs->group->c;
    c->points = pool_alloc(&r->pool, r->n_runs, sizeof(*c->points));
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
}

/* The groups that rows are in become the benchmark's cases. */
static void choices_fill(struct making *m)
{
    size_t n = 0, n_groups = 0;

    for (size_t i = 0; i < m->n_refs; i++)
        if (m->refs[i].group->joined)
            m->refs[i].group = m->refs[i].group->joined;
    qsort(m->refs, m->n_refs, sizeof(*m->refs), choices_compare);
    for (size_t i = 0; i < m->n_refs; i++) /* groups were joined or parted since they were made */
        n_groups += !i || m->refs[i].group != m->refs[i - 1].group;
    struct report_case *cases = pool_alloc(&m->r->pool, n_groups, sizeof(*cases));
    for (size_t i = 0; i < m->n_refs;) {
        size_t end = i;

        while (end < m->n_refs && m->refs[end].group == m->refs[i].group)
            end++;
        fill_case(m, &cases[n++], m->refs + i, end - i);
        i = end;
    }
    m->b->cases = cases;
    m->b->n_cases = n;
}

/* Puts the rows of a benchmark's cases into groups; none where it chooses nothing. choices_end() in
 * any case. */
static void choices_begin(struct making *m, struct report *r, const struct suite_index *plans,
                          size_t n_a, const bool *apart, size_t bench)
{
    *m = (struct making){
        .r = r, .plans = plans, .n_a = n_a, .apart = apart, .b = &r->benches[bench]};
    for (size_t i = 0; i < m->b->n_params && m->n_choices < CHOICES_MAX; i++)
        if (described_left_by(m->b, m->b->params[i]))
            m->choices[m->n_choices++] = i;
    for (size_t i = 0; m->n_choices && i < m->b->n_cases; i++)
        add_case(m, &m->b->cases[i]);
}

static void choices_end(struct making *m)
{
    tdestroy(m->by_key, leave_group);
    free(m->groups);
    free(m->refs);
}

void choices_as_asked(struct report *r, const struct suite_index *plans, size_t n_a,
                      const bool *apart)
{
    for (size_t i = 0; i < r->n_benches; i++) {
        struct making m;

        choices_begin(&m, r, plans, n_a, apart, i);
        if (m.n_refs) {
            join_groups(&m);
            choices_fill(&m);
        }
        choices_end(&m);
    }
}

/* ---- Cases of a report that launches split by what they chose ---- */

static bool same_field(const struct making *m, const struct ref *x, const struct ref *y,
                       enum row_field field)
{
    const struct report_rows *rows = &m->b->rows[x->run];

    return !strcmp(row_text(rows, x->row, field), row_text(rows, y->row, field));
}

/* Of the rows of a group: did launches choose differently? One launch that has both chose
 * neither. */
static bool chose_differently(const struct making *m, const struct ref *refs, size_t n)
{
    bool differs = false;

    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n && refs[k].run == refs[i].run; k++) {
            if (refs[i].source == refs[k].source || !same_field(m, &refs[i], &refs[k], FIELD_CASE))
                continue;
            if (same_field(m, &refs[i], &refs[k], FIELD_REPEAT))
                return false;
            differs = true;
        }
    return differs;
}

/* Is there a group of which launches chose differently? */
static bool find_differing(struct making *m)
{
    bool any = false;

    qsort(m->refs, m->n_refs, sizeof(*m->refs), choices_compare);
    for (size_t i = 0, end; i < m->n_refs; i = end) {
        for (end = i; end < m->n_refs && m->refs[end].group == m->refs[i].group;)
            end++;
        m->refs[i].group->differs = chose_differently(m, m->refs + i, end - i);
        any |= m->refs[i].group->differs;
    }
    return any;
}

/* A report shows what was chosen where launches of a run agree: their cases are those of the rows'
 * columns. */
static void part_groups(struct making *m)
{
    struct group *own = pool_alloc(&m->r->pool, m->b->n_cases, sizeof(*own));

    for (size_t i = 0; i < m->n_refs; i++) {
        struct group *group = m->refs[i].group;
        size_t at = (size_t)(m->refs[i].source - m->b->cases);

        if (group->differs)
            continue;
        own[at].c = m->b->cases[at];
        own[at].place = at;
        m->refs[i].group = &own[at];
    }
}

static bool has_choice(const struct making *m, const struct ref *ref, size_t param,
                       const char *text)
{
    const char *own =
        table_cell(m->b->rows[ref->run].table, ref->row, m->b->rows[ref->run].params[param]);

    return !*own || !strcmp(own, text);
}

/* What all launches chose alike is shown as that. */
static void show_choices(struct making *m, struct group *group)
{
    const char **params = (const char **)group->c.params;

    for (size_t k = 0; k < m->n_choices; k++) {
        size_t param = m->choices[k];
        const char *text = group->source->params[param];
        bool same = true;

        for (size_t i = 0; same && i < m->n_refs; i++)
            same = m->refs[i].group != group || has_choice(m, &m->refs[i], param, text);
        if (same && !*params[param])
            params[param] = text;
    }
}

static void unite(struct making *m)
{
    if (!find_differing(m))
        return;
    for (size_t i = 0; i < m->n; i++)
        if (m->groups[i]->differs)
            show_choices(m, m->groups[i]);
    part_groups(m);
    choices_fill(m);
}

void choices_unite(struct report *r)
{
    struct suite_index *plans = xcalloc(r->n_runs, sizeof(*plans));

    for (size_t i = 0; i < r->n_runs; i++)
        suite_index_make(&r->runs[i], &plans[i]);
    for (size_t i = 0; i < r->n_benches; i++) {
        struct making m;

        choices_begin(&m, r, plans, r->n_runs, NULL, i);
        if (m.n_refs)
            unite(&m);
        choices_end(&m);
    }
    for (size_t i = 0; i < r->n_runs; i++)
        suite_index_release(&plans[i]);
    free(plans);
}

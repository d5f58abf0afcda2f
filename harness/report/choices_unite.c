/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of a report that launches split by what they chose: see choices.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/choices_parts.h"

static bool same_field(const struct making *m, const struct ref *x, const struct ref *y,
                       enum row_field field)
{
    const struct report_rows *rows = &m->b->rows[x->run];

    return !strcmp(row_text(rows, x->row, field), row_text(rows, y->row, field));
}

/* Of the rows of a group: did launches choose differently? One launch that has both chose neither. */
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

/* A report shows what was chosen where launches of a run agree: their cases are those of the rows' columns. */
static int part_groups(struct making *m)
{
    struct group *own = pool_alloc(&m->r->pool, m->b->n_cases, sizeof(*own));

    if (!own)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_refs; i++) {
        struct group *group = m->refs[i].group;
        size_t at = (size_t)(m->refs[i].source - m->b->cases);

        if (group->differs)
            continue;
        own[at].c = m->b->cases[at];
        own[at].place = at;
        m->refs[i].group = &own[at];
    }
    return 0;
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

static int unite(struct making *m)
{
    int err = 0;

    if (!find_differing(m))
        return 0;
    for (size_t i = 0; i < m->n; i++)
        if (m->groups[i]->differs)
            show_choices(m, m->groups[i]);
    err = part_groups(m);
    return err ? err : choices_fill(m);
}

int choices_unite(struct report *r)
{
    struct suite_index *plans = calloc(r->n_runs + 1, sizeof(*plans));
    int err = plans ? 0 : -ENOMEM;

    for (size_t i = 0; !err && i < r->n_runs; i++)
        err = suite_index_make(&r->runs[i], &plans[i]);
    for (size_t i = 0; !err && i < r->n_benches; i++) {
        struct making m;

        err = choices_begin(&m, r, plans, r->n_runs, NULL, i);
        if (!err && m.n_choices)
            err = unite(&m);
        choices_end(&m);
    }
    for (size_t i = 0; plans && i < r->n_runs; i++)
        suite_index_release(&plans[i]);
    free(plans);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Three runs and more side by side: each against the first. See compare.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"

/* As of two runs (decide.c), shared among all comparisons (Bonferroni). */
#define ALARM_LEVEL 0.005
#define CONFIDENCE  0.95

#define MANY_JSON_SCHEMA 3

static const char *const letters[MANY_MAX] = {"A", "B", "C", "D", "E", "F", "G", "H"};

/* The same run in two columns. */
static int refuse_same(const struct pairs *x, const struct pairs *y, char *error, size_t len)
{
    for (size_t i = x->n_a; i < x->report.n_runs; i++)
        for (size_t k = y->n_a; k < y->report.n_runs; k++)
            if (pairs_same_run(&x->report.runs[i], &y->report.runs[k])) {
                snprintf(error, len, "'%.300s' and '%.300s' are the same run: leave one out",
                         x->report.runs[i].path, y->report.runs[k].path);
                return -EEXIST;
            }
    return 0;
}

int many_load(struct many *m, const struct run_paths *sets, size_t n,
              const struct pairs_options *options, char *error, size_t len)
{
    struct pairs_options own = *options;
    int err = 0;

    *m = (struct many){.n = 0};
    own.decide.alarm_level = ALARM_LEVEL / (double)(n - 1);
    own.decide.confidence = 1 - (1 - CONFIDENCE) / (double)(n - 1);
    own.name_a = letters[0];
    for (size_t i = 1; !err && i < n; i++) {
        struct pairs *p = &m->pairs[m->n++];

        own.name_b = letters[i];
        err = pairs_load(p, (const char *const *)sets[0].all, sets[0].n,
                         (const char *const *)sets[i].all, sets[i].n, &own, error, len);
        if (!err)
            err = pairs_refuse_same(p, error, len);
        for (size_t k = 0; !err && k + 1 < m->n; k++)
            err = refuse_same(&m->pairs[k], p, error, len);
        if (!err)
            view_make(p, NULL, &m->views[m->n - 1]);
    }
    return err;
}

void many_release(struct many *m)
{
    for (size_t i = 0; i < m->n; i++)
        pairs_release(&m->pairs[i]);
    *m = (struct many){.n = 0};
}

/* No side is judged: a case that is worse hides nothing of what is missing. */
static int exit_of(const struct view *v)
{
    bool failed_a = false;

    for (size_t i = 0; i < v->p->n; i++)
        failed_a = failed_a || v->p->all[i].failed_a;
    if (failed_a || v->n_failed_b || v->n_lacking || v->n_thinned || v->n_unfinished)
        return EXIT_INCOMPLETE;
    return v->n_taken || v->p->overall.n_inconclusive || !v->n_ready ? EXIT_UNDECIDED : EXIT_GOOD;
}

int many_exit(const struct many *m)
{
    int exit = EXIT_GOOD;

    for (size_t i = 0; i < m->n && exit != EXIT_INCOMPLETE; i++) {
        int own = exit_of(&m->views[i]);

        exit = own == EXIT_GOOD ? exit : own;
    }
    return exit;
}

/* ---- the table */

/* The case of that key, which is as a rule at the same place in all comparisons. */
static const struct pair *find_case(const struct pairs *p, const char *key, size_t near)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct pair *pair = &p->all[(near + i) % p->n];

        if (!strcmp(pair->key, key))
            return pair;
    }
    return NULL;
}

static bool has_a(const struct pair *pair)
{
    return pair->state != PAIR_LOST_A && pair->state != PAIR_LOST_BOTH &&
           pair->state != PAIR_LEFT_OUT;
}

/* Of the runs before i none has the case. */
static bool is_first_of_it(const struct many *m, size_t i, const struct pair *pair, size_t at)
{
    for (size_t k = 0; k < i; k++) {
        const struct pair *before = find_case(&m->pairs[k], pair->key, at);

        if (before && has_a(before))
            return false;
    }
    return true;
}

static struct document_column *columns_of(struct pool *pool, const struct many *m,
                                          const char *second)
{
    struct document_column *columns = pool_alloc(pool, m->n + 3, sizeof(*columns));

    columns[0] = (struct document_column){"Component", COLUMN_STAYS, false};
    columns[1] = (struct document_column){second, COLUMN_STAYS, !strcmp(second, "Cases")};
    for (size_t i = 0; i <= m->n; i++)
        columns[2 + i] = (struct document_column){letters[i], COLUMN_STAYS, true};
    return columns;
}

static void add_case(struct document_table *t, struct pool *pool, const struct many *m,
                     const struct pair *pair, size_t at)
{
    struct cell *row = document_row(t);

    row[0] = cell_text(pair->pipe);
    row[1] = cell_text(pair->label);
    row[2] = cell_text("");
    for (size_t i = 0; i < m->n; i++) {
        const struct pair *own = find_case(&m->pairs[i], pair->key, at);

        row[3 + i] = cell_text(own ? "not compared" : "");
        if (!own || own->state != PAIR_READY)
            continue;
        struct view_figures f = view_figures(pool, own);
        row[2] = cell_text(pool_text(
            pool, "%s %s", document_number(pool, decide_value_a(&own->decide)), own->c->unit));
        row[3 + i] = cell_text(pool_text(pool, "%s %s", f.both, f.verdict));
    }
}

/* Equivalent in all runs: there is nothing to choose from. */
static bool is_even(const struct many *m, const struct pair *pair, size_t at)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct pair *own = find_case(&m->pairs[i], pair->key, at);

        if (!own || own->state != PAIR_READY || own->decide.decision != DECISION_EQUIVALENT)
            return false;
    }
    return true;
}

/* The cases that are even, or the others; how many were left. */
static size_t add_cases(struct document *d, struct pool *pool, const struct many *m, bool even)
{
    struct document_table *t = document_table(d, columns_of(pool, m, "Case"), m->n + 3);
    size_t left = 0;

    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->pairs[i].n; k++) {
            const struct pair *pair = &m->pairs[i].all[k];

            if (!has_a(pair) || !is_first_of_it(m, i, pair, k))
                continue;
            if (is_even(m, pair, k) == even)
                add_case(t, pool, m, pair, k);
            else
                left++;
        }
    return left;
}

static const struct view_pipe *pipe_of(const struct view *v, const char *name)
{
    for (size_t i = 0; i < v->n_pipes; i++)
        if (!strcmp(v->pipes[i].name, name))
            return &v->pipes[i];
    return NULL;
}

/* "0.896 to 0.903: 20 worse": the ratios in the component, and what they come to. */
static const char *pipe_text(struct pool *pool, const struct view_pipe *pipe)
{
    double low = INFINITY, high = 0;
    const char *text;

    for (size_t i = 0; pipe && i < pipe->n; i++) {
        low = fmin(low, pipe->pairs[i]->decide.ratio);
        high = fmax(high, pipe->pairs[i]->decide.ratio);
    }
    if (!pipe || low > high)
        return "";
    text = words_range(pool, low, high);
    for (int d = 0; d < VIEW_DECISIONS; d++)
        if (pipe->counts[d])
            text = pool_text(pool, "%s%s%zu %s", text, strchr(text, ':') ? ", " : ": ",
                             pipe->counts[d], decision_word((enum decision)d));
    return text;
}

static void add_components(struct document *d, struct pool *pool, const struct many *m)
{
    struct document_table *t = document_table(d, columns_of(pool, m, "Cases"), m->n + 3);

    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->views[i].n_pipes; k++) {
            const struct view_pipe *pipe = &m->views[i].pipes[k];
            bool known = false;

            for (size_t before = 0; before < i; before++)
                known = known || pipe_of(&m->views[before], pipe->name);
            struct cell *row = known ? NULL : document_row(t);
            if (!row)
                continue;
            row[0] = cell_text(pipe->name);
            row[1] = cell_text(pool_text(pool, "%zu", pipe->n_cases));
            row[2] = cell_text("1");
            for (size_t run = 0; run < m->n; run++)
                row[3 + run] = cell_text(pipe_text(pool, pipe_of(&m->views[run], pipe->name)));
        }
}

/* ---- what else there is to say */

static const struct machine_difference *difference_of(const struct view *v, const char *what)
{
    for (size_t i = 0; i < v->n_differences; i++)
        if (!strcmp(v->differences[i].what, what))
            return &v->differences[i];
    return NULL;
}

static const char *known(const char *text)
{
    return *text ? text : "not known";
}

static void add_differences(struct document *d, struct pool *pool, const struct many *m)
{
    struct document_column *columns = pool_alloc(pool, m->n + 2, sizeof(*columns));

    for (size_t i = 0; i < m->n + 2; i++)
        columns[i] =
            (struct document_column){i ? letters[i - 1] : "What differs", COLUMN_STAYS, false};
    struct document_table *t = document_table(d, columns, m->n + 2);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->views[i].n_differences; k++) {
            const struct machine_difference *one = &m->views[i].differences[k];
            bool listed = false;

            for (size_t before = 0; before < i; before++)
                listed = listed || difference_of(&m->views[before], one->what);
            struct cell *row = listed ? NULL : document_row(t);
            if (!row)
                continue;
            row[0] = cell_text(one->what);
            row[1] = cell_text(known(one->a));
            for (size_t run = 0; run < m->n; run++) {
                const struct machine_difference *own = difference_of(&m->views[run], one->what);

                row[2 + run] = cell_text(known(own ? own->b : one->a));
            }
        }
}

static struct document *many_document(struct many *m, enum view_for reader)
{
    struct pool *pool = m->views[0].pool;
    struct document *d = document_new(pool);

    document_answer(d, "A", "", TONE_NONE, m->views[0].a);
    for (size_t i = 0; i < m->n; i++) {
        const struct view *v = &m->views[i];
        const struct decide_overall *o = &v->p->overall;
        size_t left = v->n_failed_b + v->n_lacking;
        const char *text =
            pool_text(pool, "%s: %zu worse, %zu better, %zu equivalent, %zu undecided of %s", v->b,
                      o->n_worse, o->n_better, o->n_equivalent, o->n_inconclusive + v->n_taken,
                      show_count(pool, v->n_ready + v->n_taken, "case"));

        if (left)
            text = pool_text(pool, "%s; no value in %s", text, show_count(pool, left, "case"));
        if (v->n_thinned)
            text = pool_text(pool, "%s; some launches failed in %s", text,
                             show_count(pool, v->n_thinned, "case"));
        document_answer(
            d, letters[i + 1],
            exit_of(v) == EXIT_INCOMPLETE ? "incomplete" : decision_word(v->p->overall.decision),
            exit_of(v) == EXIT_INCOMPLETE ? TONE_LOW : TONE_NONE,
            v->n_unfinished ? pool_text(pool, "%s; not measured to its end", text) : text);
    }
    document_answer(d, "Rests on", "", TONE_NONE,
                    pool_text(pool,
                              "%zu comparisons with A; intervals and proof hold over all of them "
                              "(%.1f %% each)",
                              m->n, 100 - 5.0 / (double)m->n));
    add_components(d, pool, m);
    document_heading(d, 3, "Cases", "");
    size_t even = add_cases(d, pool, m, false);
    const char *count =
        pool_text(pool, "%s in which all runs are equivalent", show_count(pool, even, "case"));
    if (even && (reader == VIEW_PAGE || reader == VIEW_ALL))
        add_cases(document_fold(d, count), pool, m, true);
    else if (even)
        document_item(
            d, pool_text(pool, "%s%s", count, reader == VIEW_TERMINAL ? ": --all lists them" : ""));
    document_paragraph(d, "A has its value, each other run its ratio to A, with interval and "
                          "verdict; inverted where lower is better: below 1, A is better.");
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->views[i].n_left; k++) {
            const struct view_left *left = &m->views[i].left[k];

            document_item(d, pool_text(pool, "%s: %s not compared, such as '%s': %s",
                                       letters[i + 1], show_count(pool, left->n, "case"),
                                       left->pairs[0]->label, left->reason));
        }
    document_heading(d, 3, "What differs among the runs", "");
    add_differences(d, pool, m);
    return d;
}

int many_print_text(FILE *out, struct many *m, bool all)
{
    struct document_terminal terminal = document_terminal_of(out);

    terminal.folds = all;
    return document_write_terminal(many_document(m, all ? VIEW_ALL : VIEW_TERMINAL), &terminal,
                                   out);
}

static const char *title_of(const struct many *m)
{
    const char *names[MANY_MAX] = {m->views[0].name_a};

    for (size_t i = 0; i < m->n; i++)
        names[i + 1] = m->views[i].name_b;
    return words_list(m->views[0].pool, names, m->n + 1);
}

int many_print_markdown(FILE *out, struct many *m)
{
    struct document *head = document_new(m->views[0].pool);

    document_heading(head, 2, title_of(m), "");
    document_write_markdown(head, out);
    fputc('\n', out);
    return document_write_markdown(many_document(m, VIEW_COMMENT), out);
}

int many_print_html(FILE *out, struct many *m)
{
    return view_print_page(out, title_of(m), title_of(m), many_document(m, VIEW_PAGE));
}

int many_print_csv(FILE *out, struct many *m)
{
    int err = view_print_csv_head(out, "run,");

    for (size_t i = 0; !err && i < m->n; i++)
        err = view_print_csv_rows(out, &m->views[i], letters[i + 1]);
    return err;
}

int many_print_json(FILE *out, struct many *m)
{
    json_t *all = json_array();
    bool whole = true;

    for (size_t i = 0; i < m->n; i++)
        whole = !json_array_append_new(all, view_json(&m->views[i], letters[i + 1])) && whole;
    json_t *o = json_pack("{s:i, s:i, s:o}", "schema", MANY_JSON_SCHEMA, "exit", many_exit(m),
                          "comparisons", all);
    bool written = whole && !json_dumpf(o, out, JSON_INDENT(1)) && fputc('\n', out) != EOF;
    json_decref(o);
    return written ? 0 : -EIO;
}

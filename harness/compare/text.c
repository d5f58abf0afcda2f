/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for a terminal: the verdict, a table by pipe, the forest, what differs, what is left out. */
#include "harness/compare/text.h"

#include <string.h>

#include "core/wrap.h"
#include "harness/compare/forest.h"
#include "harness/report/show.h"

#define HANGING   2  /* columns that a line goes on at */
#define COUNTS    48 /* columns of the counts by verdict, with the blanks before them */
#define WORST     "  worst: B / A (95 %)"
#define NAMED_MAX 3 /* cases that are named of those left out for one reason */

static size_t columns_of(const char *text)
{
    return wrap_columns(text, strlen(text));
}

void text_wrapped(const struct text *t, size_t indent, const char *text)
{
    size_t next, n = wrap_take(text, t->width - indent, &next);

    fprintf(t->out, "%*s%.*s\n", (int)indent, "", (int)n, text);
    wrap_print(t->out, text + next, indent + HANGING, t->width);
}

static void print_head(const struct text *t)
{
    struct view *v = t->v;

    text_wrapped(t, 0, v->verdict);
    text_wrapped(t, 2, pool_text(v->pool, "rests on %s", v->basis));
    text_wrapped(t, 2, pool_text(v->pool, "A: %s", v->a));
    text_wrapped(t, 2, pool_text(v->pool, "B: %s", v->b));
    for (size_t i = 0; i < v->n_remarks; i++)
        text_wrapped(t, 2, pool_text(v->pool, "note: %s", v->remarks[i]));
}

static const char *worst_text(struct view *v, const struct pair *worst)
{
    struct view_figures f;

    if (!worst)
        return "no ratio";
    f = view_figures(v->pool, worst);
    return pool_text(v->pool, "%s %s: %s", f.both, f.verdict,
                     view_printable(v->pool, worst->label));
}

static void print_pipe(const struct text *t, const struct view_pipe *pipe, size_t widest)
{
    const char *worst = worst_text(t->v, pipe->worst);
    size_t pad = widest - columns_of(pipe->name) + 2;

    fprintf(t->out, "%s%*s%5zu  %5zu  %12zu  %6zu  %10zu", pipe->name, (int)pad, "", pipe->n,
            pipe->counts[DECISION_WORSE], pipe->counts[DECISION_INCONCLUSIVE],
            pipe->counts[DECISION_BETTER], pipe->counts[DECISION_EQUIVALENT]);
    if (widest + COUNTS + 2 + columns_of(worst) <= t->width) {
        fprintf(t->out, "  %s\n", worst);
        return;
    }
    fputc('\n', t->out);
    text_wrapped(t, 2, worst);
}

static void print_pipes(const struct text *t)
{
    const struct view *v = t->v;
    size_t widest = strlen("pipe");

    if (!v->n_pipes)
        return;
    for (size_t i = 0; i < v->n_pipes; i++)
        if (columns_of(v->pipes[i].name) > widest)
            widest = columns_of(v->pipes[i].name);
    fprintf(t->out, "\n%-*s  %5s  %5s  %12s  %6s  %10s%s\n", (int)widest, "pipe", "cases", "worse",
            "inconclusive", "better", "equivalent",
            widest + COUNTS + strlen(WORST) <= t->width ? WORST : "");
    for (size_t i = 0; i < v->n_pipes; i++)
        print_pipe(t, &v->pipes[i], widest);
}

static void print_differences(const struct text *t)
{
    struct view *v = t->v;

    if (!v->n_differences)
        return;
    fputs("\nwhat differs between the two sides\n", t->out);
    for (size_t i = 0; i < v->n_differences; i++) {
        const struct machine_difference *d = &v->differences[i];
        const char *line =
            pool_text(v->pool, "%s: A %s, B %s%s", d->what, *d->a ? d->a : "not known",
                      *d->b ? d->b : "not known",
                      *d->pipes ? pool_text(v->pool, " (may weigh on %s)", d->pipes) : "");
        text_wrapped(t, 2, view_printable(v->pool, line));
    }
}

static void print_left(const struct text *t)
{
    struct view *v = t->v;

    if (v->n_left)
        fputs("\nnot compared\n", t->out);
    for (size_t i = 0; i < v->n_left; i++) {
        const struct view_left *left = &v->left[i];
        const char *names = "";

        for (size_t k = 0; k < left->n && (t->all || k < NAMED_MAX); k++)
            names = pool_text(v->pool, "%s%s%s", names, k ? "; " : "", left->pairs[k]->label);
        if (!t->all && left->n > NAMED_MAX)
            names = pool_text(v->pool, "%s; and %zu more", names, left->n - NAMED_MAX);
        text_wrapped(t, 2,
                     view_printable(v->pool, pool_text(v->pool, "%s: %s",
                                                       show_count(v->pool, left->n, "case"),
                                                       view_left_text(v->pool, left))));
        text_wrapped(t, 6, view_printable(v->pool, names));
    }
}

static void print_foot(const struct text *t)
{
    struct view *v = t->v;

    fputc('\n', t->out);
    for (size_t i = 0; i < v->n_obstacles; i++)
        text_wrapped(t, 0, view_printable(v->pool, v->obstacles[i].text));
    if (v->n_ready)
        text_wrapped(t, 0, view_explain(v));
}

void view_print_text(FILE *out, struct view *v, bool all)
{
    const struct text t = {.out = out,
                           .v = v,
                           .width = wrap_width(out),
                           .utf8 = forest_locale_is_utf8(),
                           .all = all,
                           .causes = true};

    print_head(&t);
    print_pipes(&t);
    text_forest(&t);
    print_differences(&t);
    print_left(&t);
    print_foot(&t);
}

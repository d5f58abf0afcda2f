/* SPDX-License-Identifier: Apache-2.0 */
/* The forest in characters: a line a case, its interval drawn beside it. */
#include <string.h>

#include "core/wrap.h"
#include "harness/compare/forest.h"
#include "harness/compare/text.h"
#include "harness/report/show.h"

#define LABEL_MOST 40 /* columns; where there is less room for it the label has a line of its own */
#define BAR_BESIDE 24 /* beside a label */
#define BAR_LEAST  16
#define BAR_MOST   40
#define INDENT     2

enum { RATIO, VERDICT, MORE, SHOWS, CELLS };

static const char *const headings[CELLS] = {"B / A (95 %)", "verdict", "more", "would show"};

/* How wide the columns are; label 0: a line of its own. */
struct layout {
    size_t label, bar, cells[CELLS];
    bool split; /* what is behind the bar stands in the next line */
};

struct cells {
    const char *texts[CELLS];
};

static struct cells cells_of(struct view *v, const struct pair *pair)
{
    struct view_figures f = view_figures(v->pool, pair);

    return (struct cells){{f.both, f.verdict, f.more, f.smallest}};
}

static size_t columns_of(const char *text)
{
    return wrap_columns(text, strlen(text));
}

static void widen(size_t *width, const char *text)
{
    size_t n = columns_of(text);

    *width = n > *width ? n : *width;
}

static size_t shown(const struct text *t, const struct view_pipe *pipe)
{
    if (t->all)
        return pipe->n;
    return t->most && t->most < pipe->n_first ? t->most : pipe->n_first;
}

/* What is left of a line goes to the labels first, as far as they need it, then to the bars. */
static void share_line(const struct text *t, struct layout *l, size_t longest)
{
    size_t others = INDENT, room;

    for (size_t i = 0; i < CELLS; i++)
        others += l->cells[i] + 2;
    room = t->width > others ? t->width - others : 0;
    l->label = longest < LABEL_MOST ? longest : LABEL_MOST;
    if (room >= l->label + 2 + BAR_BESIDE) {
        l->bar = room - 2 - l->label;
    } else {
        l->label = 0;
        l->split = room < INDENT + BAR_LEAST;
        l->bar = l->split ? t->width - 2 * INDENT - l->cells[RATIO] - 2 : room - INDENT;
    }
    l->bar = l->bar > BAR_MOST ? BAR_MOST : l->bar;
}

static struct layout lay_out(const struct text *t)
{
    struct layout l = {0};
    size_t longest = 0;

    for (size_t i = 0; i < CELLS; i++)
        l.cells[i] = strlen(headings[i]);
    for (size_t i = 0; i < t->v->n_pipes; i++)
        for (size_t k = 0; k < shown(t, &t->v->pipes[i]); k++) {
            struct cells cells = cells_of(t->v, t->v->pipes[i].pairs[k]);

            widen(&longest, view_printable(t->v->pool, t->v->pipes[i].pairs[k]->label));
            for (size_t c = 0; c < CELLS; c++)
                widen(&l.cells[c], cells.texts[c]);
        }
    share_line(t, &l, longest);
    return l;
}

/* Blanks before a cell are printed with it, so that no line ends in blanks. */
static void print_cell(const struct text *t, const char *text, size_t width, size_t *pad)
{
    if (*text)
        fprintf(t->out, "%*s%s", (int)*pad, "", text);
    *pad = (*text ? 0 : *pad) + width + 2 - columns_of(text);
}

static void print_cells(const struct text *t, const struct layout *l, const char *label,
                        const char *bar, const char *const *texts)
{
    size_t pad = INDENT, next = 0, n = 0;
    char first[512] = "";

    if (l->label) {
        n = wrap_take(label, l->label, &next);
        snprintf(first, sizeof(first), "%.*s", (int)n, label);
        print_cell(t, first, l->label > columns_of(first) ? l->label : columns_of(first), &pad);
    } else if (*label) {
        text_wrapped(t, INDENT, label);
    }
    pad += l->label ? 0 : INDENT;
    print_cell(t, texts[RATIO], l->cells[RATIO], &pad);
    print_cell(t, bar, l->bar, &pad);
    if (l->split) {
        fputc('\n', t->out);
        pad = 2 * INDENT;
    }
    for (size_t c = VERDICT; c < CELLS; c++)
        print_cell(t, texts[c], l->cells[c], &pad);
    fputc('\n', t->out);
    if (l->label)
        for (label += next; *label; label += next) {
            n = wrap_take(label, l->label - INDENT, &next);
            fprintf(t->out, "%*s%.*s\n", INDENT * 2, "", (int)n, label);
        }
}

static void print_case(const struct text *t, const struct layout *l, const struct pair *pair)
{
    struct cells cells = cells_of(t->v, pair);
    char bar[FOREST_BYTES];

    forest_bar(&t->v->axis, &pair->decide, l->bar, t->utf8, bar);
    print_cells(t, l, view_printable(t->v->pool, pair->label), bar, cells.texts);
    if (*pair->differs)
        text_wrapped(
            t, INDENT * 3,
            view_printable(t->v->pool, pool_text(t->v->pool, "differs: %s", pair->differs)));
}

static void print_pipe(const struct text *t, const struct layout *l, const struct view_pipe *pipe)
{
    struct view *v = t->v;
    size_t n = shown(t, pipe), equivalent = pipe->n - pipe->n_shown;

    if (!n)
        return;
    fprintf(t->out, "%s\n", pipe->name);
    for (size_t i = 0; i < n; i++)
        print_case(t, l, pipe->pairs[i]);
    if (!t->all && pipe->n_shown > n)
        fprintf(t->out, "%*sand %zu more that are not equivalent\n", INDENT, "", pipe->n_shown - n);
    if (!t->all && equivalent)
        fprintf(t->out, "%*sand %s\n", INDENT, "",
                show_count(v->pool, equivalent, "equivalent case"));
    for (size_t i = 0; t->causes && i < pipe->n_causes; i++)
        text_wrapped(
            t, INDENT,
            view_printable(v->pool, pool_text(v->pool, "may weigh on it: %s", pipe->causes[i])));
}

void text_forest(const struct text *t)
{
    struct layout l = lay_out(t);
    char scale[FOREST_BYTES];
    size_t n = 0;

    for (size_t i = 0; i < t->v->n_pipes; i++)
        n += shown(t, &t->v->pipes[i]);
    if (!n) {
        if (t->v->n_ready)
            fprintf(t->out, "\nall %s: --all lists them\n",
                    show_count(t->v->pool, t->v->n_ready, "equivalent case"));
        return;
    }
    fputc('\n', t->out);
    print_cells(t, &l, l.label ? "case" : "", forest_scale(&t->v->axis, l.bar, scale), headings);
    for (size_t i = 0; i < t->v->n_pipes; i++)
        print_pipe(t, &l, &t->v->pipes[i]);
    text_wrapped(t, INDENT, forest_legend(t->utf8));
}

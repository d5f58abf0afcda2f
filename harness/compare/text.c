/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for a terminal: the verdict, a table by pipe, the forest, what differs, what is left
 * out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/text.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"

/* ---- Intervals in characters ---- */

#define BAND_SHARE 0.06 /* of the axis, that the margin has at least: else the band is not seen */
#define AIR        0.02 /* of the axis, at each end */

enum glyph { EMPTY, BAND, ONE, LINE, LINE_WITHIN, POINT, BELOW, ABOVE, GLYPHS };

static const char *const glyphs_utf8[GLYPHS] = {" ",
                                                "\xe2\x96\x91",
                                                "\xe2\x94\x82",
                                                "\xe2\x94\x80",
                                                "\xe2\x95\x90",
                                                "\xe2\x97\x8f",
                                                "\xe2\x97\x80",
                                                "\xe2\x96\xb6"};
static const char *const glyphs_ascii[GLYPHS] = {" ", ".", "|", "-", "=", "o", "<", ">"};

bool forest_locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static void reach(struct view_axis *axis, double ratio)
{
    if (!isfinite(ratio) || ratio <= 0)
        return;
    axis->low = ratio < axis->low ? ratio : axis->low;
    axis->high = ratio > axis->high ? ratio : axis->high;
}

/* The band would be a hair where one case lost nearly all: then that case's bar ends in an arrow.
 */
static void bound(struct view_axis *axis, double margin)
{
    double widest = -2 * log(1 - margin) / BAND_SHARE;
    double least = exp(-0.75 * widest), most = exp(0.75 * widest);

    axis->low = axis->low < least ? least : axis->low;
    axis->high = axis->high > most ? most : axis->high;
    if (log(axis->high / axis->low) > widest) /* both ways far: half the axis each */
        *axis = (struct view_axis){.low = fmax(axis->low, exp(-0.5 * widest)),
                                   .high = fmin(axis->high, exp(0.5 * widest))};
}

/* So that a point at the end of the axis is seen whole. */
static void add_air(struct view_axis *axis)
{
    double air = pow(axis->high / axis->low, AIR);

    axis->low /= air;
    axis->high *= air;
}

/* From the lowest end of any interval to the highest, and the margin with some air around it. */
struct view_axis forest_axis(const struct view *v)
{
    struct view_axis axis = {.low = 1, .high = 1};
    double widest = 0;

    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n; k++) {
            const struct decide_case *c = &v->pipes[i].pairs[k]->decide;

            widest = c->margin > widest ? c->margin : widest;
            reach(&axis, c->ratio);
            reach(&axis, c->low);
            reach(&axis, c->high);
        }
    if (!(widest > 0 && widest < 1))
        widest = 0.05;
    reach(&axis, pow(1 - widest, 1.6));
    reach(&axis, pow(1 - widest, -1.6));
    bound(&axis, widest);
    add_air(&axis);
    axis.margin_low = isnan(v->margin) ? NAN : 1 - v->margin;
    axis.margin_high = isnan(v->margin) ? NAN : 1 / (1 - v->margin);
    return axis;
}

/* The column of a ratio, clipped to the bar. */
static size_t column_of(const struct view_axis *axis, double ratio, size_t columns)
{
    double at = view_axis_at(axis, ratio) * (double)columns;

    return at <= 0 ? 0 : at >= (double)columns ? columns - 1 : (size_t)at;
}

static void fill(enum glyph *cells, const struct view_axis *axis, size_t columns, double low,
                 double high, enum glyph glyph)
{
    if (high < axis->low || low > axis->high)
        return;
    for (size_t i = column_of(axis, low, columns); i <= column_of(axis, high, columns); i++)
        cells[i] = glyph == LINE && cells[i] != EMPTY ? LINE_WITHIN : glyph;
}

static void draw(enum glyph *cells, const struct view_axis *axis, const struct decide_case *c,
                 size_t columns)
{
    fill(cells, axis, columns, 1 - c->margin, 1 / (1 - c->margin), BAND);
    cells[column_of(axis, 1, columns)] = ONE;
    if (!(c->ratio > 0))
        return;
    if (!isnan(c->low) && !isnan(c->high))
        fill(cells, axis, columns, c->low, c->high, LINE);
    if (c->ratio >= axis->low && c->ratio <= axis->high)
        cells[column_of(axis, c->ratio, columns)] = POINT;
    if (c->low < axis->low || c->ratio < axis->low)
        cells[0] = BELOW;
    if (c->high > axis->high || c->ratio > axis->high)
        cells[columns - 1] = ABOVE;
}

const char *forest_bar(const struct view_axis *axis, const struct decide_case *c, size_t columns,
                       bool utf8, char text[FOREST_BYTES])
{
    const char *const *glyphs = utf8 ? glyphs_utf8 : glyphs_ascii;
    enum glyph cells[FOREST_COLUMNS_MAX] = {EMPTY};
    size_t at = 0;

    columns = columns > FOREST_COLUMNS_MAX ? FOREST_COLUMNS_MAX : columns;
    draw(cells, axis, c, columns);
    for (size_t i = 0; i < columns; i++) {
        size_t n = strlen(glyphs[cells[i]]);

        memcpy(text + at, glyphs[cells[i]], n);
        at += n;
    }
    text[at] = 0;
    return text;
}

/* The line above the bars: the axis' ends, and 1 where it is. */
static const char *forest_scale(const struct view_axis *axis, size_t columns,
                                char text[FOREST_BYTES])
{
    char low[16], high[16];
    size_t one;

    columns = columns > FOREST_COLUMNS_MAX ? FOREST_COLUMNS_MAX : columns;
    one = column_of(axis, 1, columns);
    snprintf(low, sizeof(low), "%.2f", axis->low);
    snprintf(high, sizeof(high), "%.2f", axis->high);
    snprintf(text, columns + 1, "%s%*s", low, (int)(columns - strlen(low)), high);
    if (one > strlen(low) && one + strlen(high) + 1 < columns)
        text[one] = '1';
    return text;
}

/* "o the ratio, - its interval, . the margin" */
static const char *forest_legend(bool utf8)
{
    return utf8 ? "\xe2\x97\x8f the ratio, \xe2\x94\x80 its interval, \xe2\x94\x82 no change, "
                  "\xe2\x96\x91 \xe2\x95\x90 within the margin, \xe2\x97\x80\xe2\x96\xb6 goes on "
                  "outside"
                : "o the ratio, - its interval, | no change, . = within the margin, <> goes on "
                  "outside";
}

/* ---- The forest in characters: a line a case, its interval drawn beside it ---- */

#define LABEL_MOST 40 /* columns; where there is less room for it the label has a line of its own */
#define BAR_BESIDE 24 /* beside a label */
#define BAR_LEAST  16
#define BAR_MOST   40
#define INDENT     2

enum { RATIO, VERDICT, MORE, SHOWS, CELLS };

static const char *const headings[CELLS] = {"B / A (95 %)", "verdict", "more", "detectable"};

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

#define HANGING   2  /* columns that a line goes on at */
#define COUNTS    48 /* columns of the counts by verdict, with the blanks before them */
#define WORST     "  worst: B / A (95 %)"
#define NAMED_MAX 3 /* cases that are named of those left out for one reason */

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

static void print_pipe_text(const struct text *t, const struct view_pipe *pipe, size_t widest)
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
    size_t widest = strlen("component");

    if (!v->n_pipes)
        return;
    for (size_t i = 0; i < v->n_pipes; i++)
        if (columns_of(v->pipes[i].name) > widest)
            widest = columns_of(v->pipes[i].name);
    fprintf(t->out, "\n%-*s  %5s  %5s  %12s  %6s  %10s%s\n", (int)widest, "component", "cases",
            "worse", "inconclusive", "better", "equivalent",
            widest + COUNTS + strlen(WORST) <= t->width ? WORST : "");
    for (size_t i = 0; i < v->n_pipes; i++)
        print_pipe_text(t, &v->pipes[i], widest);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a document, for a terminal, a page and Markdown: see compare.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/program.h"
#include "harness/compare/compare.h"
#include "harness/document/html.h"
#include "harness/document/plot.h"
#include "harness/forecast/versus.h"
#include "harness/report/assets.h"
#include "harness/text.h"

#define NAMED_MAX 3 /* cases that are named of those left out for one reason */

enum view_for {
    VIEW_TERMINAL, /* the first cases of a component */
    VIEW_ALL,      /* all of them, and how to read it */
    VIEW_PAGE,     /* all of them, the others folded */
    VIEW_COMMENT   /* as a terminal: a comment on GitHub ends at 64 KiB */
};

/* A document in the making. */
struct composing {
    struct document *d;
    struct view *v; /* n of them, side by side; the first */
    size_t n;
    struct pool *pool;
    enum view_for reader;
    const char *common; /* what differs in every case that is shown, said once; "" */
};

static enum tone tone_of(enum decision decision)
{
    return decision == DECISION_WORSE ? TONE_LOW : TONE_NONE;
}

/* Two cases or more, and the same in all of them. */
static const char *common_of(const struct view *v)
{
    const char *common = NULL;

    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n; k++) {
            const char *differs = v->pipes[i].pairs[k]->differs;

            if (common && strcmp(common, differs) != 0)
                return "";
            common = differs;
        }
    return common && v->n_ready > 1 ? common : "";
}

/* ---- the answers */

/* "B alone in 3 of 14 cases (such as 'triad': steal 8.1 %)"; "" where that side is not. */
static const char *side_disturbed(const struct composing *m, bool of_b)
{
    const struct pair *first = NULL;
    size_t n = 0, alone = 0;

    for (size_t i = 0; i < m->v->p->n; i++) {
        const struct pair *pair = &m->v->p->all[i];
        const struct disturbance *own = of_b ? &pair->noise_b : &pair->noise_a;
        const struct disturbance *other = of_b ? &pair->noise_a : &pair->noise_b;

        if (pair->state != PAIR_READY || !own->seen)
            continue;
        first = first ? first : pair;
        n++;
        alone += !other->seen;
    }
    if (!n)
        return "";
    return pool_text(m->pool, "%s in %zu of %s%s, such as '%s' (%s)", of_b ? "B" : "A", n,
                     text_count(m->v->n_ready, "case").text,
                     alone == n ? " (the other side not)"
                     : alone    ? pool_text(m->pool, " (%zu times alone)", alone)
                                : "",
                     first->label,
                     disturbance_text(m->pool, of_b ? &first->noise_b : &first->noise_a));
}

/* "a loss is proven in 4 equivalent cases, at most 3.3 % in 'triad'": they are equivalent since the
 * margin is wider. */
static const char *within_text(const struct composing *m)
{
    const struct pair *most = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->v->p->n; i++) {
        const struct pair *pair = &m->v->p->all[i];
        const struct decide_case *c = &pair->decide;

        if (pair->state != PAIR_READY || c->decision != DECISION_EQUIVALENT || !c->proven ||
            !(c->ratio < 1))
            continue;
        most = !most || c->ratio < most->decide.ratio ? pair : most;
        n++;
    }
    return n ? pool_text(m->pool, "a loss is proven in %s, %s%s in '%s'",
                         text_count(n, "equivalent case").text, n > 1 ? "at most " : "",
                         document_percent(m->pool, 100 * (1 - most->decide.ratio)), most->label)
             : "";
}

static void add_answers(const struct composing *m)
{
    struct view *v = m->v;
    const char *a = side_disturbed(m, false), *b = side_disturbed(m, true);
    const char *within = within_text(m);
    bool act = view_exit(v, 1) == EXIT_BAD || view_exit(v, 1) == EXIT_INCOMPLETE;

    document_answer(m->d, "Verdict", v->name, act ? TONE_LOW : TONE_NONE, v->verdict);
    if (v->versus)
        document_answer(m->d, "Training", "", TONE_NONE,
                        versus_text(m->pool, v->versus, v->price_a, v->price_b));
    document_answer(m->d, "A", "", TONE_NONE, v->a);
    document_answer(m->d, "B", "", TONE_NONE, v->b);
    document_answer(m->d, "Rests on", "", TONE_NONE,
                    pool_text(m->pool, "%s; intervals of 95 %%", v->basis));
    if (v->reference)
        document_answer(m->d, "Reference", "", TONE_NONE, reference_text(m->pool, v->reference));
    if (*a || *b)
        document_answer(m->d, "Disturbed", "", TONE_NONE, pool_join(m->pool, a, "; ", b));
    if (*within)
        document_answer(m->d, "In margin", "", TONE_NONE, within);
    for (size_t i = 0; i < v->n_remarks; i++)
        document_answer(m->d, "Note", "", TONE_NONE, v->remarks[i]);
}

/* ---- the components */

static void add_components(const struct composing *m)
{
    static const struct document_column columns[] = {
        {"Component", COLUMN_STAYS, false},      {"Cases", COLUMN_STAYS, true},
        {"Worse", COLUMN_STAYS, true},           {"Undecided", COLUMN_STAYS, true},
        {"Better", COLUMN_STAYS, true},          {"Equivalent", COLUMN_STAYS, true},
        {"Lowest ratio", COLUMN_GOES_LAST, true}};
    static const enum decision order[] = {DECISION_WORSE, DECISION_INCONCLUSIVE, DECISION_BETTER,
                                          DECISION_EQUIVALENT};
    const struct view *v = m->v;

    if (!v->n_pipes)
        return;
    struct document_table *t = document_table(m->d, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < v->n_pipes; i++) {
        const struct view_pipe *pipe = &v->pipes[i];
        struct cell *row = document_row(t);

        row[0] = cell_text(pipe->name);
        row[1] = cell_text(pool_text(m->pool, "%zu", pipe->n_cases));
        for (size_t k = 0; k < 4; k++) {
            row[2 + k] = cell_text(pool_text(m->pool, "%zu", pipe->counts[order[k]]));
            row[2 + k].tone = pipe->counts[order[k]] ? tone_of(order[k]) : TONE_NONE;
        }
        row[6] = cell_text(pipe->worst ? view_figures(v->pool, pipe->worst).both : "no ratio");
    }
    document_paragraph(m->d, "Ratio: B / A, or A / B where lower is better, as for times. Below 1, "
                             "B lost.");
}

/* The first two go above the others where a terminal is narrow. */
enum {
    COMPONENT,
    LABEL,
    VALUE_A,
    VALUE_B,
    RATIO,
    VERDICT,
    MORE,
    DETECTABLE,
    DISTURBED,
    DIFFERS,
    CELLS
};

static const struct document_column by_launches[CELLS] = {
    [COMPONENT] = {"Component", COLUMN_STAYS, false},
    [LABEL] = {"Case", COLUMN_STAYS, false},
    [VALUE_A] = {"A", COLUMN_GOES_LAST, true},
    [VALUE_B] = {"B", COLUMN_GOES_LAST, true},
    [RATIO] = {"Ratio (interval)", COLUMN_STAYS, true},
    [VERDICT] = {"Verdict", COLUMN_STAYS, false},
    [MORE] = {"More launches", COLUMN_GOES_FIRST, true},
    [DETECTABLE] = {"Detectable loss", COLUMN_GOES_FIRST, true},
    [DISTURBED] = {"Disturbed", COLUMN_GOES_FIRST, false},
    [DIFFERS] = {"Differs", COLUMN_GOES_FIRST, false}};

static const struct document_column *columns_of(const struct composing *m)
{
    if (!m->v->p->overall.by_runs)
        return by_launches;
    struct document_column *columns = pool_alloc(m->pool, CELLS, sizeof(*columns));
    memcpy(columns, by_launches, sizeof(by_launches));
    columns[MORE].name = "More runs";
    return columns;
}

/* "A: nothing; B: steal 8.1 %"; "" where nothing was seen on either side. */
static const char *disturbed_text(const struct composing *m, const struct pair *pair)
{
    const char *a = disturbance_text(m->pool, &pair->noise_a);
    const char *b = disturbance_text(m->pool, &pair->noise_b);

    if (!*a && !*b)
        return "";
    return pool_text(m->pool, "A: %s; B: %s", *a ? a : "nothing", *b ? b : "nothing");
}

/* What a reader must know who sees the word alone. */
static const char *caution(const struct pair *pair)
{
    bool a = pair->noise_a.seen, b = pair->noise_b.seen;

    if (pair->decide.obstacle == OBSTACLE_FEW && pair->decide.beyond)
        return "The whole interval is past the margin. But so few launches cannot tell a change "
               "from two levels between launches: 5 a side can.";
    if (pair->explained)
        return "The time that others took of one side's CPU can explain a difference, or hide a "
               "real one.";
    if (pair->decide.decision == DECISION_WORSE && b && !a)
        return "B alone was disturbed. The disturbance explains a part of the loss at most.";
    if (pair->decide.decision == DECISION_BETTER && a && !b)
        return "A alone was disturbed. The disturbance explains a part of the gain at most.";
    if (pair->decide.decision == DECISION_EQUIVALENT && a != b)
        return "One side alone was disturbed. On a quiet machine, the two may differ more.";
    if (view_word(pair)->likely)
        return "The whole interval is past the margin. Among all cases, chance alone makes one "
               "such interval likely.";
    return "";
}

/* As a text, which a narrow page shows with the column's name. */
static struct cell value_cell(const struct composing *m, double value, const char *unit)
{
    return cell_text(
        isfinite(value) ? pool_text(m->pool, "%s %s", document_number(m->pool, value), unit) : "");
}

static void add_cases(const struct composing *m, struct document_table *t,
                      const struct view_pipe *pipe, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct view_figures f = view_figures(m->pool, pipe->pairs[i]);
        const struct decide_case *c = &pipe->pairs[i]->decide;
        struct cell *row = document_row(t);

        row[COMPONENT] = cell_text(pipe->pairs[i]->pipe);
        row[LABEL] = cell_text(c->judged_by == DECIDE_BY_SUSTAINED
                                   ? pool_text(m->pool, "%s, sustained", pipe->pairs[i]->label)
                                   : pipe->pairs[i]->label);
        row[VALUE_A] = value_cell(m, decide_value_a(c), pipe->pairs[i]->c->unit);
        row[VALUE_B] = value_cell(m, decide_value_b(c), pipe->pairs[i]->c->unit);
        row[RATIO] = cell_text(f.both);
        row[VERDICT] = cell_word(f.verdict, tone_of(c->decision));
        cell_note(&row[VERDICT], document_note(m->d, caution(pipe->pairs[i])));
        row[MORE] = cell_text(f.more);
        row[DETECTABLE] = cell_text(f.detectable);
        row[DISTURBED] = cell_text(disturbed_text(m, pipe->pairs[i]));
        row[DIFFERS] = cell_text(*m->common ? "" : pipe->pairs[i]->differs);
    }
}

static void add_fold(const struct composing *m, const struct view_pipe *pipe, size_t from,
                     size_t to, const char *what)
{
    if (from < to) {
        struct document *fold = document_fold(
            m->d, pool_text(m->pool, "%s: %s", pipe->name, text_count(to - from, what).text));

        add_cases(m, document_table(fold, columns_of(m), CELLS), pipe, from, to);
    }
}

static size_t first_of(const struct composing *m, const struct view_pipe *pipe)
{
    return m->reader == VIEW_ALL ? pipe->n : pipe->n_first;
}

static void add_all_cases(const struct composing *m)
{
    const struct view *v = m->v;
    size_t n = 0;

    for (size_t i = 0; i < v->n_pipes; i++)
        n += first_of(m, &v->pipes[i]);
    if (n) {
        document_heading(m->d, 3, "Cases", "");
        struct document_table *t = document_table(m->d, columns_of(m), CELLS);

        for (size_t i = 0; i < v->n_pipes; i++)
            add_cases(m, t, &v->pipes[i], 0, first_of(m, &v->pipes[i]));
        document_notes(m->d);
    }
    if ((n || m->reader == VIEW_PAGE) && *m->common)
        document_item(m->d, pool_text(m->pool, "all %s differ in this: %s",
                                      text_count(v->n_ready, "case").text, m->common));
    for (size_t i = 0; i < v->n_pipes && m->reader != VIEW_ALL; i++) {
        /* A terminal and a comment say how many there are; a page folds them. */
        const struct view_pipe *pipe = &v->pipes[i];
        const char *lists = m->reader == VIEW_TERMINAL ? ": --all lists them" : "";
        size_t more = pipe->n_shown - pipe->n_first;

        if (m->reader == VIEW_PAGE) {
            add_fold(m, pipe, pipe->n_first, pipe->n_shown, "more case");
            add_fold(m, pipe, pipe->n_shown, pipe->n, "equivalent case");
        } else if (more) {
            document_item(m->d, pool_text(m->pool, "%s: %zu more cases that are not equivalent%s",
                                          pipe->name, more, lists));
        }
    }
    if (m->reader == VIEW_TERMINAL && v->p->overall.n_equivalent)
        document_item(m->d,
                      pool_text(m->pool, "%s: --all lists them",
                                text_count(v->p->overall.n_equivalent, "equivalent case").text));
}

/* ---- the forest: the first cases of each component as ratios with their intervals */

#define FOREST_MOST 20
#define FOREST_FAR  4 /* an interval that goes on beyond this ratio, or below its inverse, is cut */

struct forest {
    struct plot plot;
    struct plot_point points[FOREST_MOST];
    struct plot_tick ticks[FOREST_MOST];
    struct plot_row rows[FOREST_MOST];
    struct plot_line line;
    struct plot_mark none;
};

static void add_row(const struct composing *m, struct forest *f, const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;
    size_t i = f->line.n;

    if (i == FOREST_MOST || !(c->ratio > 0) || !isfinite(c->ratio))
        return;
    f->points[i] = (struct plot_point){.x = (double)i, .y = c->ratio, .low = NAN, .high = NAN};
    if (c->low > 0 && isfinite(c->high)) {
        f->points[i].low = c->low;
        f->points[i].high = c->high;
    }
    /* The name of the component is the figure's. */
    size_t n = strlen(pair->bench ? pair->bench->name : "");

    f->ticks[i] = (struct plot_tick){(double)i, n && !strncmp(pair->label, pair->bench->name, n) &&
                                                        pair->label[n] == ' '
                                                    ? pair->label + n + 1
                                                    : pair->label};
    /* A ratio that the axis does not reach stands in the word. */
    const char *word = view_figures(m->pool, pair).verdict;
    double ratio = pair->decide.ratio;

    f->rows[i] =
        (struct plot_row){(ratio > FOREST_FAR || ratio < 1.0 / FOREST_FAR
                               ? pool_text(m->pool, "%s: %s", word, document_number(m->pool, ratio))
                               : word),
                          tone_of(c->decision), 0};
    if (c->high > FOREST_FAR || c->low < 1.0 / FOREST_FAR) {
        f->plot.shown_high = FOREST_FAR;
        f->plot.shown_low = 1.0 / FOREST_FAR;
    }
    f->line.n++;
}

static void add_forest(const struct composing *m, const struct view_pipe *pipe)
{
    struct forest *f = pool_alloc(m->pool, 1, sizeof(*f));
    double margin = pipe->n ? pipe->pairs[0]->decide.margin : NAN;

    for (size_t i = 0; i < pipe->n; i++)
        add_row(m, f, pipe->pairs[i]);
    if (!f->line.n)
        return;
    f->line.points = f->points;
    f->line.label = "ratio";
    f->none = (struct plot_mark){
        .at = 1, .horizontal = true, .from = NAN, .to = NAN, .label = "", .brief = ""};
    f->plot.name = "forest";
    f->plot.title = pipe->name;
    f->plot.x_label = "change of B against A";
    f->plot.y_label = "";
    f->plot.categories = f->plot.ratio = f->plot.y_log = true;
    f->plot.ticks = f->ticks;
    f->plot.n_ticks = f->line.n;
    f->plot.rows = f->rows;
    f->plot.lines = &f->line;
    f->plot.n_lines = 1;
    f->plot.marks = &f->none;
    f->plot.n_marks = 1;
    if (margin < 1) {
        f->plot.band_low = 1 - margin;
        f->plot.band_high = 1 / (1 - margin);
    }
    document_figure(
        m->d, &f->plot,
        pool_text(m->pool, "Ratio and its 95 %% interval, with the margin as a band%s",
                  f->line.n < pipe->n
                      ? pool_text(m->pool, "; %zu of %zu cases, worst first", f->line.n, pipe->n)
                      : ""));
}

/* Has an earlier component this cause, too? Then it is listed there. */
static bool is_listed(const struct view *v, size_t pipe, const char *cause)
{
    for (size_t i = 0; i < pipe; i++)
        for (size_t k = 0; k < v->pipes[i].n_causes; k++)
            if (!strcmp(v->pipes[i].causes[k], cause))
                return true;
    return false;
}

static const char *pipes_with(const struct composing *m, size_t first, const char *cause)
{
    const struct view *v = m->v;
    const char **names = pool_alloc(m->pool, v->n_pipes, sizeof(*names));
    size_t n = 0;

    for (size_t i = first; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n_causes; k++)
            if (!strcmp(v->pipes[i].causes[k], cause))
                names[n++] = v->pipes[i].name;
    return pool_list(m->pool, names, n, VIEW_NAMES, ", ");
}

static void add_causes(const struct composing *m)
{
    const struct view *v = m->v;

    for (size_t i = 0; i < v->n_pipes; i++)
        if (v->pipes[i].counts[DECISION_WORSE] || v->pipes[i].counts[DECISION_BETTER]) {
            /* What the rows of a case tell of both sides: another kernel of a library, another
             * instruction set. */
            const struct view_pipe *pipe = &v->pipes[i];
            for (size_t j = 0; j < pipe->n && !*m->common; j++) {
                const char *differs = pipe->pairs[j]->differs;
                size_t n = 0;
                bool listed = !*differs;

                for (size_t k = 0; k < pipe->n; k++) {
                    bool same = !strcmp(pipe->pairs[k]->differs, differs);

                    listed = listed || (same && k < j);
                    n += same;
                }
                if (!listed)
                    document_item(m->d, pool_text(m->pool, "%s differs in %zu of %zu cases: %s",
                                                  pipe->name, n, pipe->n, differs));
            }
        }
    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n_causes; k++)
            if (!is_listed(v, i, v->pipes[i].causes[k]))
                document_item(m->d, pool_text(m->pool, "possible cause in %s: %s",
                                              pipes_with(m, i, v->pipes[i].causes[k]),
                                              v->pipes[i].causes[k]));
}

/* ---- what differs, and what was not compared */

/* A row of each thing that one of the comparisons has. `key`: equal in all of them. */
struct rows {
    struct document_table *t;
    const char **keys;
    struct cell **cells;
    size_t n;
};

static struct rows rows_new(const struct composing *m, struct document *d,
                            const struct document_column *columns, size_t n_columns, size_t most)
{
    return (struct rows){.t = document_table(d, columns, n_columns),
                         .keys = pool_alloc(m->pool, most, sizeof(char *)),
                         .cells = pool_alloc(m->pool, most, sizeof(struct cell *))};
}

/* NULL: it has none, and is not to get one. */
static struct cell *row_of(struct rows *r, const char *key, bool add, bool *is_new)
{
    size_t i = 0;

    while (i < r->n && strcmp(r->keys[i], key) != 0)
        i++;
    *is_new = i == r->n && add;
    if (!*is_new)
        return i < r->n ? r->cells[i] : NULL;
    r->keys[r->n] = key;
    return r->cells[r->n++] = document_row(r->t);
}

/* Columns by these names, then one a side. */
static struct document_column *columns_beside(const struct composing *m,
                                              const struct document_column *first, size_t n,
                                              bool numbers)
{
    struct document_column *columns = pool_alloc(m->pool, n + m->n + 2, sizeof(*columns));

    memcpy(columns, first, n * sizeof(*columns));
    for (size_t i = 0; i <= m->n; i++)
        columns[n + i] = (struct document_column){view_letters[i], COLUMN_STAYS, numbers};
    return columns;
}

static const char *known(const char *text)
{
    return *text ? text : "not known";
}

static void add_differences(const struct composing *m)
{
    static const struct document_column what = {"What", COLUMN_STAYS, false};
    struct document_column *columns = columns_beside(m, &what, 1, false);
    size_t most = 0, affects = m->n + 2;
    bool is_new;

    columns[affects] = (struct document_column){"May affect", COLUMN_GOES_LAST, false};
    for (size_t i = 0; i < m->n; i++)
        most += m->v[i].n_differences;
    if (!most)
        return;
    document_heading(
        m->d, 3, m->n > 1 ? "What differs among the runs" : "What differs between the two sides",
        "");
    struct rows rows = rows_new(m, m->d, columns, affects + (m->n == 1), most);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].n_differences; k++) {
            const struct machine_difference *d = &m->v[i].differences[k];
            struct cell *row = row_of(&rows, d->what, true, &is_new);

            for (size_t side = 0; is_new && side <= m->n; side++) /* but where it differs, as A */
                row[1 + side] = cell_text(known(d->a));
            row[0] = cell_text(d->what);
            row[2 + i] = cell_text(known(d->b));
            if (m->n == 1)
                row[affects] = cell_text(*d->pipes ? d->pipes : "all");
        }
}

static void add_left(const struct composing *m)
{
    struct view *v = m->v;

    if (v->n_left)
        document_heading(m->d, 3, "Not compared", "");
    for (size_t i = 0; i < v->n_left; i++) {
        const struct view_left *left = &v->left[i];
        size_t most = m->reader == VIEW_ALL ? left->n : NAMED_MAX;
        const char **labels = pool_alloc(m->pool, left->n, sizeof(*labels));

        for (size_t k = 0; k < left->n; k++)
            labels[k] = left->pairs[k]->label;
        document_item(m->d, pool_text(m->pool, "%s: %s%s (%s)", text_count(left->n, "case").text,
                                      left->state->says ? left->state->says : "",
                                      pool_join(m->pool, left->reason, ". ", left->advice),
                                      pool_list(m->pool, labels, left->n, most, "; ")));
        if (m->reader != VIEW_PAGE || left->n <= NAMED_MAX + 1)
            continue;
        struct document *fold = document_fold(m->d, text_count(left->n, "case").text);
        for (size_t k = 0; k < left->n; k++)
            document_item(fold, labels[k]);
    }
}

static void add_explanation(const struct composing *m)
{
    static const struct document_term terms[] = {
        {"Ratio", "B / A, or A / B where lower is better, as for times: below 1, B lost. The "
                  "interval of 95 % is beside it."},
        {"equivalent", "the whole interval lies within the margin."},
        {"worse, better", "a difference is proven over the whole suite, and is not within the "
                          "margin."},
        {"likely worse, likely better", "the whole interval is past the margin. Over the whole "
                                        "suite, the difference is not proven yet."},
        {"undecided", "none of these. It does not mean alike."},
        {"undecided: disturbed", "the time that others took of the CPU can explain a difference "
                                 "that is proven otherwise."},
        {"More launches", "further launches a side that would decide, if nothing else changes."},
        {"Detectable loss", "the smallest loss that this data names worse, 19 times in 20."},
        {"Disturbed", "mean of steal, quota and throttling over the launches of a case."}};

    if (m->reader == VIEW_TERMINAL || !m->v->n_ready)
        return;
    struct document *fold = document_fold(m->d, "How to read it");
    document_terms(fold, terms, sizeof(terms) / sizeof(*terms));
}

/* ---- Three runs and more side by side: each against the first ---- */

/* "0.896 to 0.903: 20 worse": the ratios in the component, and what they come to. */
static const char *pipe_text(struct pool *pool, const struct view_pipe *pipe)
{
    double low = INFINITY, high = 0;
    const char *text, *counts = "";

    for (size_t i = 0; i < pipe->n; i++) {
        low = fmin(low, pipe->pairs[i]->decide.ratio);
        high = fmax(high, pipe->pairs[i]->decide.ratio);
    }
    if (low > high)
        return "";
    text = words_range(pool, low, high);
    for (int d = 0; d < VIEW_DECISIONS; d++)
        if (pipe->counts[d])
            counts = pool_join(
                pool, counts, ", ",
                pool_text(pool, "%zu %s", pipe->counts[d], decision_word((enum decision)d)));
    return pool_join(pool, text, ": ", counts);
}

static void add_components_beside(const struct composing *m)
{
    static const struct document_column first[] = {{"Component", COLUMN_STAYS, false},
                                                   {"Cases", COLUMN_STAYS, true}};
    size_t most = 0;
    bool is_new;

    for (size_t i = 0; i < m->n; i++)
        most += m->v[i].n_pipes;
    struct rows rows = rows_new(m, m->d, columns_beside(m, first, 2, true), m->n + 3, most);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].n_pipes; k++) {
            const struct view_pipe *pipe = &m->v[i].pipes[k];
            struct cell *row = row_of(&rows, pipe->name, true, &is_new);

            if (is_new) {
                row[0] = cell_text(pipe->name);
                row[1] = cell_text(pool_text(m->pool, "%zu", pipe->n_cases));
                row[2] = cell_text("1");
            }
            row[3 + i] = cell_text(pipe_text(m->pool, pipe));
        }
}

/* Equivalent in all runs: there is nothing to choose from. A case stands as a rule at the same place
 * of all comparisons. */
static bool is_even(const struct composing *m, const char *key, size_t near)
{
    size_t even = 0;

    for (size_t i = 0; i < m->n && even == i; i++) {
        const struct pairs *p = m->v[i].p;

        for (size_t k = 0; k < p->n && even == i; k++) {
            const struct pair *pair = &p->all[(near + k) % p->n];

            if (strcmp(pair->key, key) != 0)
                continue;
            even += pair->state == PAIR_READY && pair->decide.decision == DECISION_EQUIVALENT;
            break;
        }
    }
    return even == m->n;
}

/* The cases of A that are even, or the others. Returns how many there are. */
static size_t add_cases_beside(const struct composing *m, struct document *d, bool even)
{
    static const struct document_column first[] = {{"Component", COLUMN_STAYS, false},
                                                   {"Case", COLUMN_STAYS, false}};
    size_t most = 0;
    bool is_new;

    for (size_t i = 0; i < m->n; i++)
        most += m->v[i].p->n;
    struct rows rows = rows_new(m, d, columns_beside(m, first, 2, true), m->n + 3, most);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].p->n; k++) {
            const struct pair *pair = &m->v[i].p->all[k];
            bool shown = view_state(pair)->of_a && is_even(m, pair->key, k) == even;
            struct cell *row = row_of(&rows, pair->key, shown, &is_new);

            if (is_new) {
                row[0] = cell_text(pair->pipe);
                row[1] = cell_text(pair->label);
            }
            if (!row)
                continue;
            struct view_figures f = view_figures(m->pool, pair);
            row[3 + i] =
                cell_text(pair->state == PAIR_READY ? pool_text(m->pool, "%s %s", f.both, f.verdict)
                                                    : "not compared");
            if (pair->state == PAIR_READY)
                row[2] = value_cell(m, decide_value_a(&pair->decide), pair->c->unit);
        }
    return rows.n;
}

static void add_beside(const struct composing *m)
{
    struct document *hidden = document_new(m->pool);

    document_answer(m->d, "A", "", TONE_NONE, m->v->a);
    for (size_t i = 0; i < m->n; i++) {
        const struct view *v = &m->v[i];
        const struct decide_overall *o = &v->p->overall;
        size_t left = v->n_failed_b + v->n_lacking;
        const char *text = pool_text(
            m->pool, "%s: %zu worse, %zu better, %zu equivalent, %zu undecided of %s%s%s%s", v->b,
            o->n_worse, o->n_better, o->n_equivalent, o->n_inconclusive + v->n_taken,
            text_count(v->n_ready + v->n_taken, "case").text,
            left ? pool_text(m->pool, "; no value in %s", text_count(left, "case").text) : "",
            v->n_thinned ? pool_text(m->pool, "; some launches failed in %s",
                                     text_count(v->n_thinned, "case").text)
                         : "",
            v->n_unfinished ? "; not measured to its end" : "");

        document_answer(m->d, view_letters[i + 1],
                        v->incomplete ? "incomplete" : decision_word(o->decision),
                        v->incomplete ? TONE_LOW : TONE_NONE, text);
    }
    document_answer(m->d, "Rests on", "", TONE_NONE,
                    pool_text(m->pool,
                              "%zu comparisons with A; intervals and proof hold over all of them "
                              "(%.1f %% each)",
                              m->n, 100 - 5.0 / (double)m->n));
    add_components_beside(m);
    document_heading(m->d, 3, "Cases", "");
    add_cases_beside(m, m->d, false);
    size_t even = add_cases_beside(m, hidden, true);
    const char *count =
        pool_text(m->pool, "%s in which all runs are equivalent", text_count(even, "case").text);
    if (even && (m->reader == VIEW_PAGE || m->reader == VIEW_ALL))
        add_cases_beside(m, document_fold(m->d, count), true);
    else if (even)
        document_item(m->d, pool_text(m->pool, "%s%s", count,
                                      m->reader == VIEW_TERMINAL ? ": --all lists them" : ""));
    document_paragraph(m->d, "A has its value, each other run its ratio to A, with interval and "
                             "verdict; inverted where lower is better: below 1, A is better.");
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].n_left; k++) {
            const struct view_left *left = &m->v[i].left[k];

            document_item(m->d, pool_text(m->pool, "%s: %s not compared, such as '%s': %s",
                                          view_letters[i + 1], text_count(left->n, "case").text,
                                          left->pairs[0]->label, left->reason));
        }
    add_differences(m);
}

/* ---- all of it */

static struct document *document_of(struct view *views, size_t n, enum view_for reader)
{
    struct pool *pool = views->pool;
    const struct composing m = {document_new(pool), views, n, pool, reader, common_of(views)};

    if (n > 1) {
        add_beside(&m);
        return m.d;
    }
    add_answers(&m);
    add_components(&m);
    for (size_t i = 0; i < views->n_pipes && reader == VIEW_PAGE; i++)
        if (views->pipes[i].n_first)
            add_forest(&m, &views->pipes[i]);
    add_all_cases(&m);
    for (size_t i = 0; i < views->n_obstacles; i++)
        document_item(m.d, views->obstacles[i]);
    add_causes(&m);
    add_differences(&m);
    add_left(&m);
    add_explanation(&m);
    return m.d;
}

/* ---- writers */

int view_print_text(FILE *out, struct view *views, size_t n, bool all)
{
    struct document_terminal terminal = document_terminal_of(out);

    terminal.folds = all;
    return document_write_terminal(document_of(views, n, all ? VIEW_ALL : VIEW_TERMINAL), &terminal,
                                   out);
}

/* "guest against bare", "a, b and c"; with the verdict in a word before the first. */
static const char *title_of(struct view *views, size_t n, bool verdict)
{
    const char *names[VIEWS_MAX + 1] = {views->name_a};

    for (size_t i = 0; i < n; i++)
        names[i + 1] = views[i].name_b;
    return n > 1 ? pool_list(views->pool, names, n + 1, VIEW_NAMES, ", ")
                 : pool_text(views->pool, "%s%s%s against %s", verdict ? views->name : "",
                             verdict ? ": " : "", views->name_b, views->name_a);
}

int view_print_markdown(FILE *out, struct view *views, size_t n)
{
    struct document *head = document_new(views->pool);

    document_heading(head, 2, title_of(views, n, true), "");
    document_write_markdown(head, out);
    fputc('\n', out);
    return document_write_markdown(document_of(views, n, VIEW_COMMENT), out);
}

int view_print_html_section(FILE *out, struct view *v)
{
    fputs("<section id='verdicts'>\n<h2>Verdicts</h2>\n", out);
    int err = document_write_html(document_of(v, 1, VIEW_PAGE), out);
    fputs("</section>\n", out);
    return err;
}

int view_print_html(FILE *out, struct view *views, size_t n)
{
    html_page_begin(out, pool_text(views->pool, "%s - Plumbline", title_of(views, n, true)),
                    pool_text(views->pool, "Plumbline comparison: %s", title_of(views, n, false)),
                    asset_style);
    fputs("<section id='verdicts'>\n", out);
    int err = document_write_html(document_of(views, n, VIEW_PAGE), out);
    fputs("</section>\n</main>\n<footer>Made by plumb " PLUMB_VERSION
          ". This page holds all that it shows and asks for nothing else.</footer>\n</body>\n"
          "</html>\n",
          out);
    return err ? err : ferror(out) ? -EIO : 0;
}

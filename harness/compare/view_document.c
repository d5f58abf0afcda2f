/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a document, for a terminal, a page and Markdown: see compare.h. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/program.h"
#include "core/stats.h"
#include "harness/compare/compare.h"
#include "harness/document/html.h"
#include "harness/document/plot.h"
#include "harness/forecast/versus.h"
#include "harness/report/assets.h"
#include "harness/report/show.h"
#include "harness/text.h"

#define NAMED_MAX   3  /* cases that are named of those left out for one reason */
#define REASONS_MAX 4  /* for which cases were left out */
#define DIFFERS_MAX 4  /* that are told without being asked for */
#define VALUE_MAX   40 /* bytes of a side of such a difference */

enum view_for {
    VIEW_BRIEF, /* what is worse or inconclusive: a terminal, a comment */
    VIEW_ALL,
    VIEW_PAGE /* all, with charts */
};

/* A document in the making. */
struct composing {
    struct document *d;
    struct view *v; /* n of them, side by side; the first */
    size_t n;
    struct pool *pool;
    enum view_for reader;
};

static bool shows_all(const struct composing *m)
{
    return m->reader != VIEW_BRIEF;
}

static enum tone tone_of(enum decision decision)
{
    return decision == DECISION_WORSE ? TONE_LOW : TONE_NONE;
}

static void add_answer(const struct composing *m, const char *label, const char *text)
{
    if (*text)
        document_answer(m->d, label, "", TONE_NONE, text);
}

/* ---- the answers */

static void add_answers(const struct composing *m)
{
    struct view *v = m->v;

    document_paragraph(m->d, v->verdict);
    if (*v->slow_a)
        add_answer(m, "Slow in A", v->slow_a);
    if (*v->slow_b)
        add_answer(m, "Slow in B", v->slow_b);
    add_answer(m, "A", v->a);
    add_answer(m, "B", v->b);
    if (v->versus)
        add_answer(m, "Training", versus_text(m->pool, v->versus, v->price_a, v->price_b));
    if (v->reference)
        add_answer(m, "Reference", reference_text(m->pool, v->reference));
    if (shows_all(m))
        add_answer(m, "Rests on", v->basis);
    add_answer(m, "Detects", v->detects);
    for (size_t i = 0; i < v->n_remarks; i++)
        add_answer(m, "Note", v->remarks[i]);
}

/* ---- the components */

static void add_components(const struct composing *m)
{
    static const struct document_column columns[] = {{"component", COLUMN_STAYS, false},
                                                     {"cases", COLUMN_STAYS, true},
                                                     {"better", COLUMN_STAYS, true},
                                                     {"equivalent", COLUMN_STAYS, true},
                                                     {"worse", COLUMN_STAYS, true},
                                                     {"inconclusive", COLUMN_STAYS, true},
                                                     {"lowest ratio", COLUMN_GOES_LAST, true},
                                                     {"in case", COLUMN_GOES_LAST, false}};
    static const enum decision order[] = {DECISION_BETTER, DECISION_EQUIVALENT, DECISION_WORSE,
                                          DECISION_INCONCLUSIVE};
    const struct view *v = m->v;
    bool any[VIEW_DECISIONS] = {false};

    if (!v->n_pipes)
        return;
    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < VIEW_DECISIONS; k++)
            any[k] = any[k] || v->pipes[i].counts[k];
    struct document_table *t = document_table(m->d, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < v->n_pipes; i++) {
        const struct view_pipe *pipe = &v->pipes[i];
        struct cell *row = document_row(t);

        row[0] = cell_text(pipe->name);
        row[1] = cell_text(pool_text(m->pool, "%zu", pipe->n_cases));
        for (size_t k = 0; k < VIEW_DECISIONS; k++) {
            if (any[order[k]]) /* a column of nothing is left out */
                row[2 + k] = cell_text(pool_text(m->pool, "%zu", pipe->counts[order[k]]));
            row[2 + k].tone = pipe->counts[order[k]] ? tone_of(order[k]) : TONE_NONE;
        }
        row[6] = cell_text(pipe->worst ? view_figures(v->pool, pipe->worst).ratio : "no ratio");
        row[7] = cell_text(pipe->worst ? pipe->worst->name : "");
    }
}

/* ---- the cases */

enum { NAME, VALUE_A, VALUE_B, RATIO, INTERVAL, WORD, MORE, DETECTABLE, DISTURBED, DIFFERS, CELLS };

static const struct document_column case_columns[CELLS] = {
    [NAME] = {"case", COLUMN_STAYS, false},
    [VALUE_A] = {"A", COLUMN_GOES_LAST, true},
    [VALUE_B] = {"B", COLUMN_GOES_LAST, true},
    [RATIO] = {"ratio", COLUMN_STAYS, true},
    [INTERVAL] = {"95 % CI", COLUMN_STAYS, true},
    [WORD] = {"", COLUMN_STAYS, false},
    [MORE] = {"more repetitions", COLUMN_GOES_FIRST, true},
    [DETECTABLE] = {"detects", COLUMN_GOES_FIRST, true},
    [DISTURBED] = {"disturbed", COLUMN_GOES_FIRST, false},
    [DIFFERS] = {"differs", COLUMN_GOES_FIRST, false}};

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
        return "The whole CI is past the margin. But so few repetitions cannot tell a change from "
               "two modes: 5 a side can.";
    if (pair->explained)
        return "The time that others took of one side's CPU can explain a difference, or hide a "
               "real one.";
    if (pair->decide.decision == DECISION_WORSE && b && !a)
        return "Only B was disturbed, which explains a part of the slowdown at most.";
    if (pair->decide.decision == DECISION_BETTER && a && !b)
        return "Only A was disturbed, which explains a part of the improvement at most.";
    if (pair->decide.decision == DECISION_EQUIVALENT && a != b)
        return "Only one side was disturbed. On a quiet machine, the two may differ more.";
    if (view_word(pair)->likely)
        return "The whole CI is past the margin. Among all cases, chance makes one such CI likely.";
    return "";
}

/* In the unit that suits A's, which stands at B's. */
static struct cell value_cell(const struct composing *m, double value, double like,
                              const char *unit, bool with_unit)
{
    struct show_scale scale = show_scale(m->pool, like, unit);

    return cell_text(isfinite(value)
                         ? pool_text(m->pool, "%s%s%s", show_short(m->pool, value * scale.factor),
                                     with_unit ? " " : "", with_unit ? scale.unit : "")
                         : "");
}

static void add_case(const struct composing *m, struct document_table *t, const struct pair *pair)
{
    struct view_figures f = view_figures(m->pool, pair);
    const struct decide_case *c = &pair->decide;
    double a = decide_value_a(c), b = decide_value_b(c);
    struct cell *row = document_row(t);

    row[NAME] = cell_text(c->judged_by == DECIDE_BY_SUSTAINED
                              ? pool_text(m->pool, "%s, sustained", pair->name)
                              : pair->name);
    row[VALUE_A] = value_cell(m, a, a, pair->c->unit, false);
    row[VALUE_B] = value_cell(m, b, isfinite(a) ? a : b, pair->c->unit, true);
    row[RATIO] = cell_text(*f.ratio ? f.ratio : "no ratio");
    row[INTERVAL] = cell_text(f.interval);
    row[WORD] = cell_word(f.verdict, tone_of(c->decision));
    cell_note(&row[WORD], document_note(m->d, caution(pair)));
    if (!shows_all(m))
        return;
    row[MORE] = cell_text(f.more);
    row[DETECTABLE] = cell_text(f.detectable);
    row[DISTURBED] = cell_text(disturbed_text(m, pair));
    row[DIFFERS] = cell_text(pair->differs);
}

/* Of one component, those that are equivalent, or the others. */
static void add_some(const struct composing *m, struct document *d, const struct view_pipe *pipe,
                     bool equivalent)
{
    struct document_table *t = NULL;

    for (size_t i = 0; i < pipe->n; i++)
        if ((pipe->pairs[i]->decide.decision == DECISION_EQUIVALENT) == equivalent) {
            t = t ? t : document_table(d, case_columns, CELLS);
            add_case(m, t, pipe->pairs[i]);
        }
}

/* Component by component; a page folds what is equivalent. */
static void add_every_case(const struct composing *m)
{
    for (size_t i = 0; i < m->v->n_pipes; i++) {
        const struct view_pipe *pipe = &m->v->pipes[i];
        size_t n = pipe->counts[DECISION_EQUIVALENT];

        if (pipe->n)
            document_heading(m->d, 4, pipe->name, "");
        add_some(m, m->d, pipe, false);
        if (n)
            add_some(m, document_fold(m->d, show_count(m->pool, n, "equivalent case")), pipe, true);
    }
    document_notes(m->d);
}

/* What is worse or inconclusive. */
static void add_listed_cases(const struct composing *m)
{
    const struct view *v = m->v;
    size_t shown = v->n_listed < VIEW_FIRST ? v->n_listed : VIEW_FIRST;
    struct document_table *t = shown ? document_table(m->d, case_columns, CELLS) : NULL;

    for (size_t i = 0; i < shown; i++)
        add_case(m, t, v->listed[i]);
    document_notes(m->d);
    if (v->n_listed > shown)
        document_paragraph(m->d,
                           pool_text(m->pool, "... and %zu more: --all", v->n_listed - shown));
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
    f->points[i] =
        (struct plot_point){.x = (double)i, .y = c->ratio, .low = c->low, .high = c->high};
    /* The name of the component is the figure's. */
    size_t n = strlen(pair->bench ? pair->bench->name : "");

    f->ticks[i] = (struct plot_tick){(double)i, n && !strncmp(pair->name, pair->bench->name, n) &&
                                                        pair->name[n] == ' '
                                                    ? pair->name + n + 1
                                                    : pair->name};
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
        pool_text(m->pool, "Ratio and its 95 %% CI, with the margin as a band%s",
                  f->line.n < pipe->n
                      ? pool_text(m->pool, "; %zu of %zu cases, worst first", f->line.n, pipe->n)
                      : ""));
}

/* ---- what differs, and what it may explain */

/* "kernel 6.1 / 6.5"; of what is long the name. */
static const char *brief(struct pool *pool, const struct machine_difference *d)
{
    if (!*d->a || !*d->b || strlen(d->a) > VALUE_MAX || strlen(d->b) > VALUE_MAX)
        return d->what;
    return pool_text(pool, "%s %s / %s", d->what, d->a, d->b);
}

/* The components that moved, and on which it may weigh. */
static const char *explained_by(const struct composing *m, const struct machine_difference *d)
{
    struct show_list names = {.pool = m->pool, .max = VIEW_NAMES};

    for (size_t i = 0; i < m->v->n_pipes; i++)
        if (view_explains(m->v, d, &m->v->pipes[i]))
            show_list_add(&names, m->v->pipes[i].name);
    return show_list_text(&names);
}

/* What the rows of the cases that moved chose, then what the machines are: first what may explain something. */
static void add_differs(const struct composing *m)
{
    const struct view *v = m->v;
    size_t most = shows_all(m) ? v->n_pipes + v->n_differences : DIFFERS_MAX;
    struct show_list all = {.pool = m->pool, .max = most, .parts = "; "};

    for (size_t i = 0; i < v->n_pipes; i++) {
        const struct view_pipe *pipe = &v->pipes[i];
        const char *chosen = pipe->n && pipe->counts[DECISION_WORSE] + pipe->counts[DECISION_BETTER]
                                 ? pipe->pairs[0]->differs
                                 : "";

        if (*chosen && strlen(chosen) < 2 * VALUE_MAX)
            show_list_add(&all, pool_text(m->pool, "%s (%s)", chosen, pipe->name));
    }
    int least = shows_all(m) ? 1 : 0; /* the table has the others */
    for (int explains = 1; explains >= least; explains--)
        for (size_t i = 0; i < v->n_differences; i++) {
            const char *pipes = explained_by(m, &v->differences[i]);

            if ((*pipes != 0 ? 1 : 0) == explains)
                show_list_add(&all, *pipes ? pool_text(m->pool, "%s (may explain %s)",
                                                       brief(m->pool, &v->differences[i]), pipes)
                                           : brief(m->pool, &v->differences[i]));
        }
    add_answer(m, "Differs", show_list_text(&all));
}

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

/* Columns by these names, then one a side, from this one on. */
static struct document_column *columns_beside(const struct composing *m,
                                              const struct document_column *first, size_t n,
                                              size_t side)
{
    struct document_column *columns = pool_alloc(m->pool, n + m->n + 2, sizeof(*columns));

    memcpy(columns, first, n * sizeof(*columns));
    for (; side <= m->n; side++)
        columns[n++] = (struct document_column){view_letters[side], COLUMN_STAYS, false};
    return columns;
}

static const char *known(const char *text)
{
    return *text ? text : "not known";
}

static void add_differences(const struct composing *m)
{
    static const struct document_column what = {"What", COLUMN_STAYS, false};
    struct document_column *columns = columns_beside(m, &what, 1, 0);
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

/* ---- what was not compared */

static void add_left(const struct composing *m)
{
    struct view *v = m->v;
    size_t shown = 0, n = 0;

    for (size_t i = 0; i < v->n_left; i++) {
        const struct view_left *left = &v->left[i];
        const char **labels = pool_alloc(m->pool, left->n, sizeof(*labels));

        if (!shows_all(m) && !left->state->of_a && !left->state->of_b)
            continue; /* neither side has it */
        if (!shows_all(m) && shown == REASONS_MAX) {
            n += left->n;
            continue;
        }
        if (!shown++)
            document_heading(m->d, 3, "Not compared", "");
        for (size_t k = 0; k < left->n; k++)
            labels[k] = left->pairs[k]->label;
        document_item(m->d, pool_text(m->pool, "%s: %s%s (%s)", text_count(left->n, "case").text,
                                      left->state->says ? left->state->says : "",
                                      pool_join(m->pool, left->reason, ". ", left->advice),
                                      pool_list(m->pool, labels, left->n,
                                                shows_all(m) ? left->n : NAMED_MAX, "; ")));
    }
    if (n)
        document_item(m->d, pool_text(m->pool, "%s more, for other reasons: --all",
                                      text_count(n, "case").text));
}

/* ---- Three runs and more side by side: each against the first ---- */

/* "against n1: n7 slower; n2 and n3 equivalent" */
static const char *all_text(const struct composing *m)
{
    static const char *const kinds[] = {"%s slower in some cases and faster in others", "%s slower",
                                        "%s faster", "%s inconclusive", "%s equivalent"};
    struct show_list names[5];
    const char *text = "";

    for (size_t k = 0; k < 5; k++)
        names[k] = (struct show_list){.pool = m->pool, .max = VIEWS_MAX};
    for (size_t i = 0; i < m->n; i++) {
        const struct decide_overall *o = &m->v[i].p->overall;

        show_list_add(&names[o->n_worse && o->n_better               ? 0
                             : o->n_worse                            ? 1
                             : o->n_better                           ? 2
                             : o->n_inconclusive || !m->v[i].n_ready ? 3
                                                                     : 4],
                      m->v[i].incomplete ? pool_text(m->pool, "%s (incomplete)", m->v[i].name_b)
                                         : m->v[i].name_b);
    }
    for (size_t k = 0; k < 5; k++)
        if (names[k].n)
            text = pool_join(m->pool, text, "; ",
                             show_filled(m->pool, kinds[k], show_list_text(&names[k])));
    return pool_text(m->pool, "against %s: %s", m->v->name_a, text);
}

/* "0.849, 14 worse": the median of the component's ratios, and what they come to but equivalent. */
static const char *pipe_text(struct pool *pool, const struct view_pipe *pipe)
{
    static const enum decision told[] = {DECISION_WORSE, DECISION_BETTER, DECISION_INCONCLUSIVE};
    double *ratios = pool_alloc(pool, pipe->n, sizeof(*ratios));
    const char *text;
    size_t n = 0;

    for (size_t i = 0; i < pipe->n; i++)
        if (!isnan(pipe->pairs[i]->decide.ratio))
            ratios[n++] = pipe->pairs[i]->decide.ratio;
    text = n ? pool_text(pool, "%.3f", stats_median(ratios, n)) : "no ratio";
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
        if (pipe->counts[told[i]])
            text =
                pool_text(pool, "%s, %zu %s", text, pipe->counts[told[i]], decision_name(told[i]));
    return text;
}

static void add_components_beside(const struct composing *m)
{
    static const struct document_column first[] = {{"component", COLUMN_STAYS, false},
                                                   {"cases", COLUMN_STAYS, true}};
    size_t most = 0;
    bool is_new;

    for (size_t i = 0; i < m->n; i++)
        most += m->v[i].n_pipes;
    struct rows rows = rows_new(m, m->d, columns_beside(m, first, 2, 1), m->n + 2, most);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].n_pipes; k++) {
            const struct view_pipe *pipe = &m->v[i].pipes[k];
            struct cell *row = row_of(&rows, pipe->name, true, &is_new);

            if (is_new) {
                row[0] = cell_text(pipe->name);
                row[1] = cell_text(pool_text(m->pool, "%zu", pipe->n_cases));
            }
            row[2 + i] = cell_text(pipe_text(m->pool, pipe));
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

/* The cases of A that are even, or the others, of these the first; returns how many there are. */
static size_t add_cases_beside(const struct composing *m, struct document *d, bool even,
                               size_t first)
{
    static const struct document_column named = {"case", COLUMN_STAYS, false};
    size_t most = 0, n = 0;
    bool is_new;

    for (size_t i = 0; i < m->n; i++)
        most += m->v[i].p->n;
    struct rows rows = rows_new(m, d, columns_beside(m, &named, 1, 0), m->n + 2, most);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].p->n; k++) {
            const struct pair *pair = &m->v[i].p->all[k];
            bool is_shown = view_state(pair)->of_a && is_even(m, pair->key, k) == even;
            struct cell *row = row_of(&rows, pair->key, is_shown && rows.n < first, &is_new);

            n += is_shown && (is_new || !row) && !i;
            if (is_new)
                row[0] = cell_text(pair->name);
            if (!row)
                continue;
            struct view_figures f = view_figures(m->pool, pair);
            bool plain = pair->decide.decision == DECISION_EQUIVALENT;

            row[2 + i] = cell_text(pair->state != PAIR_READY ? "not compared"
                                   : plain                   ? f.ratio
                                           : pool_text(m->pool, "%s %s", f.ratio, f.verdict));
            if (pair->state == PAIR_READY)
                row[1] = value_cell(m, decide_value_a(&pair->decide), decide_value_a(&pair->decide),
                                    pair->c->unit, true);
        }
    return n;
}

static void add_beside(const struct composing *m)
{
    bool all = shows_all(m);

    document_paragraph(m->d, all_text(m));
    add_answer(m, "A", m->v->a);
    for (size_t i = 0; i < m->n; i++) {
        add_answer(m, view_letters[i + 1], m->v[i].b);
        document_answer_more(m->d, m->v[i].verdict, "");
    }
    add_components_beside(m);
    size_t n = add_cases_beside(m, m->d, false, all ? SIZE_MAX : VIEW_FIRST);
    if (!all && n > VIEW_FIRST)
        document_paragraph(m->d, pool_text(m->pool, "... and %zu more: --all", n - VIEW_FIRST));
    document_paragraph(m->d,
                       pool_text(m->pool,
                                 "Ratios to A, inverted where lower is better: below 1 is slower. "
                                 "%zu comparisons share the proof: CIs of %.1f %%.",
                                 m->n, 100 - 5.0 / (double)m->n));
    if (all)
        add_cases_beside(m, document_fold(m->d, "Cases in which all runs are equivalent"), true,
                         SIZE_MAX);
    add_differences(m);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->v[i].n_left; k++) {
            const struct view_left *left = &m->v[i].left[k];

            document_item(m->d, pool_text(m->pool, "%s: %s not compared, such as '%s': %s",
                                          view_letters[i + 1], text_count(left->n, "case").text,
                                          left->pairs[0]->label, left->reason));
        }
}

/* ---- all of it */

static struct document *document_of(struct view *views, size_t n, enum view_for reader)
{
    struct pool *pool = views->pool;
    const struct composing m = {document_new(pool), views, n, pool, reader};

    if (n > 1) {
        add_beside(&m);
        return m.d;
    }
    add_answers(&m);
    add_differs(&m);
    add_components(&m);
    for (size_t i = 0; i < views->n_pipes && reader == VIEW_PAGE; i++)
        if (views->pipes[i].counts[DECISION_EQUIVALENT] < views->pipes[i].n)
            add_forest(&m, &views->pipes[i]);
    if (shows_all(&m))
        add_every_case(&m);
    else
        add_listed_cases(&m);
    for (size_t i = 0; i < views->n_obstacles; i++)
        document_item(m.d, views->obstacles[i]);
    if (shows_all(&m))
        add_differences(&m);
    add_left(&m);
    add_answer(&m, "Next", views->next);
    return m.d;
}

/* ---- writers */

int view_print_text(FILE *out, struct view *views, size_t n, bool all)
{
    struct document_terminal terminal = document_terminal_of(out);

    terminal.folds = all;
    return document_write_terminal(document_of(views, n, all ? VIEW_ALL : VIEW_BRIEF), &terminal,
                                   out);
}

/* "guest against bare", "a, b and c" */
static const char *title_of(struct view *views, size_t n)
{
    const char *names[VIEWS_MAX + 1] = {views->name_a};

    for (size_t i = 0; i < n; i++)
        names[i + 1] = views[i].name_b;
    return n > 1 ? pool_list(views->pool, names, n + 1, VIEW_NAMES, ", ")
                 : pool_text(views->pool, "%s against %s", views->name_b, views->name_a);
}

int view_print_markdown(FILE *out, struct view *views, size_t n)
{
    struct document *head = document_new(views->pool);

    document_heading(head, 2, title_of(views, n), "");
    document_write_markdown(head, out);
    fputc('\n', out);
    return document_write_markdown(document_of(views, n, VIEW_BRIEF), out);
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
    html_page_begin(out, pool_text(views->pool, "%s - Plumbline", title_of(views, n)),
                    pool_text(views->pool, "Plumbline comparison: %s", title_of(views, n)),
                    asset_style);
    fputs("<section id='verdicts'>\n", out);
    int err = document_write_html(document_of(views, n, VIEW_PAGE), out);
    fputs("</section>\n</main>\n<footer>Made by plumb " PLUMB_VERSION
          ". This page holds all that it shows and asks for nothing else.</footer>\n</body>\n"
          "</html>\n",
          out);
    return err ? err : ferror(out) ? -EIO : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the first screen, and what has no line in it: see summary.h. */
#include <math.h>
#include <string.h>

#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/summary_scene.h"

struct shown {
    struct report *r;
    struct pool *pool;
    const struct headlines *h;
    size_t run;
    bool notes;
    struct document *d;
};

enum { PIPE, TEST, RUN, VALUE, SIDES, SHARE, WORD, COLUMNS };

/* Of one run: without RUN. */
static const struct document_column columns[COLUMNS] = {
    [PIPE] = {"component", COLUMN_ABOVE, false}, [TEST] = {"case", COLUMN_STAYS, false},
    [RUN] = {"run", COLUMN_STAYS, false},        [VALUE] = {"median", COLUMN_STAYS, true},
    [SIDES] = {"95 % CI", COLUMN_LEAVES, true},  [SHARE] = {"of limit", COLUMN_GOES_LAST, true},
    [WORD] = {"", COLUMN_STAYS, false}};

struct lines {
    struct document_table *table;
    struct document_column columns[COLUMNS];
    size_t at[COLUMNS]; /* of each of the above its place; COLUMNS: there is none */
};

static struct cell *cell_of(const struct lines *l, struct cell *row, size_t column)
{
    return &row[l->at[column]];
}

#define WIDE 0.05 /* an interval beyond this share of its value is noisy */

static bool is_noisy(const struct report_point *p)
{
    return p->n_noisy && !(fmax(p->high - p->value, p->value - p->low) <= WIDE * fabs(p->value));
}

#define NAME_MAX_COLUMNS 14 /* of a name in the column of words; the answers name the others */

/* "slow: cuda:5", "2 slow": that are behind the others, or only look so; "". */
static const char *slow_places(struct pool *pool, const struct headline_run *at, bool proven)
{
    const char *word = proven ? "slow" : "looks slow", *name = proven ? at->slow : "";
    size_t n = 0;

    for (size_t i = 0; i < at->n_likes; i++)
        if (at->likes[i].on && (proven ? at->likes[i].on->slow : at->likes[i].on->looks_slow)) {
            name = *name ? name : at->likes[i].place;
            n++;
        }
    if (n > 1 || strlen(name) > NAME_MAX_COLUMNS)
        return pool_text(pool, "%zu %s", n, n > 1 && !proven ? "look slow" : word);
    return *name ? pool_text(pool, "%s: %s", word, name) : "";
}

/* What asks for something, and that a value is none of this machine; of the rest nothing is to be
 * said. */
static const char *word_of(struct pool *pool, const struct headline_run *at)
{
    bool told = at->verdict.tone != TONE_NONE || at->verdict.kind == VERDICT_OTHER_ORIGIN ||
                at->verdict.kind == VERDICT_NOT_MEASURED;
    const char *slow = slow_places(pool, at, true), *looks = slow_places(pool, at, false);
    const char *word = told ? at->verdict.word : "", *places = "";

    if (*slow)
        places = slow;
    else if (*at->outside)
        places = "see above";
    else if (*looks)
        places = looks;
    if (at->verdict.kind == VERDICT_OTHER_ORIGIN) /* that is never left out */
        word = show_joined(pool, word, places);
    else if (at->verdict.tone != TONE_BAD && *places && (*slow || !*word))
        word = places;
    if (at->point && isfinite(at->point->sustained.value))
        word = show_joined(pool, word, "sustained");
    if (at->verdict.two_levels)
        return pool_text(pool, "%s%sbimodal", word, *word ? ", " : "");
    return *word ? word : is_noisy(at->point) ? "noisy" : "";
}

/* "1.5 %": how far the longer side of the interval reaches. */
static const char *side_text(struct pool *pool, double value, double low, double high)
{
    double percent = 100 * fmax(fabs(high - value), fabs(value - low)) / fabs(value);

    if (!isfinite(percent))
        return "";
    if (percent < 0.01)
        return "< 0.01 %";
    if (percent > 999)
        return "> 999 %";
    return pool_text(pool, percent < 9.95 ? "%.2g %%" : "%.0f %%", percent);
}

static void fill_row(const struct shown *s, const struct lines *l, size_t i)
{
    const struct headline_run *at = &s->h->all[i].runs[s->run];
    const struct report_point *p = at->point;
    struct cell *row, *word;
    struct show_scale scale;

    if (!s->notes && s->r->n_runs == 1 && at->verdict.kind == VERDICT_NOT_MEASURED)
        return; /* it stands among what was not tested */
    row = document_row(l->table);
    word = cell_of(l, row, WORD);

    *cell_of(l, row, PIPE) = cell_text(s->h->all[i].component);
    *cell_of(l, row, TEST) = cell_text(headline_name(s->pool, &s->h->all[i], s->run));
    if (s->r->n_runs > 1)
        *cell_of(l, row, RUN) = cell_text(s->r->names[s->run]);
    *word = cell_word(word_of(s->pool, at), at->verdict.tone);
    for (const struct verdict_remark *m = at->verdict.remarks; s->notes && m; m = m->next)
        cell_note(word, document_note(s->d, m->text));
    if (!p || !p->n_values)
        return;
    bool pauses = isfinite(p->sustained.value);
    double value = line_value(at);
    scale = show_scale(s->pool, value, at->best->unit);
    *cell_of(l, row, VALUE) = cell_text(
        pool_text(s->pool, "%s %s", show_short(s->pool, value * scale.factor), scale.unit));
    *cell_of(l, row, SIDES) =
        cell_text(pauses ? side_text(s->pool, value, p->sustained.low, p->sustained.high)
                         : side_text(s->pool, value, p->low, p->high));
    if (!p->reference || s->notes)
        *cell_of(l, row, SHARE) = cell_share(line_percent(at), p->reference);
    cell_of(l, row, SHARE)->bar = !isnan(p->percent) && !p->reference;
}

static struct lines *new_lines(struct report *r, struct document *d)
{
    struct lines *l = pool_alloc(&r->pool, 1, sizeof(*l));
    size_t n = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        if (i != RUN || r->n_runs > 1) {
            l->at[i] = n;
            l->columns[n++] = columns[i];
        }
    l->table = document_table(d, l->columns, n);
    return l;
}

void summary_table(struct report *r, const struct headlines *h, bool notes, struct document *d)
{
    struct shown s = {r, &r->pool, h, 0, notes, d};
    struct lines *l = h->n ? new_lines(r, d) : NULL;

    if (!h->n)
        document_paragraph(d, r->n_rows
                                  ? "No headline is taken from these rows: the report lists them."
                                  : "There is no row to take a headline from.");
    for (size_t i = 0; i < h->n; i++)
        for (s.run = 0; s.run < r->n_runs; s.run++)
            fill_row(&s, l, i);
    document_notes(d);
}

/* ---- GPU by GPU, and pair by pair */

enum {
    PAIRS_LEAST = 3, /* that make a matrix */
    PLACES_MAX = 8,
    MATRICES_MAX = 2
}; /* that a line of a terminal has room for; that are shown */

/* "cuda:5" is 5 in a head. */
static const char *short_name(const char *name)
{
    return strncmp(name, "cuda:", 5) ? name : name + 5;
}

/* One that is behind the others is marked. */
static struct cell value_cell(struct pool *pool, double value, bool marked)
{
    struct cell cell =
        cell_text(pool_text(pool, "%s%s", show_short(pool, value), marked ? "!" : ""));

    cell.tone = marked ? TONE_LOW : TONE_NONE;
    return cell;
}

static struct document_column *heads_of(struct pool *pool, const char *first,
                                        const char *const *names, size_t n)
{
    struct document_column *heads = pool_alloc(pool, n + 1, sizeof(*heads));

    heads[0] = (struct document_column){first, COLUMN_STAYS, false};
    for (size_t i = 0; i < n; i++)
        heads[i + 1] = (struct document_column){short_name(names[i]), COLUMN_STAYS, true};
    return heads;
}

/* The GPUs of all tests, each once; more than PLACES_MAX are too many. */
static size_t list_gpus(const struct shown *s, const char **names)
{
    size_t n = 0;

    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *at = &s->h->all[i].runs[s->run];

        for (size_t k = 0; !at->of_pairs && at->n_likes > 1 && k < at->n_likes; k++) {
            size_t same = 0;

            while (same < n && strcmp(names[same], at->likes[k].place) != 0)
                same++;
            if (same == PLACES_MAX)
                return PLACES_MAX + 1;
            names[same] = at->likes[k].place;
            n = same == n ? n + 1 : n;
        }
    }
    return n;
}

/* " (simulated)": of all its lines; else each has its own. */
static const char *gpus_origin(const struct shown *s)
{
    const char *origin = NULL;

    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *at = &s->h->all[i].runs[s->run];

        if (at->of_pairs || at->n_likes < 2 || !at->alike)
            continue;
        if (origin && strcmp(origin, at->point->origin) != 0)
            return "";
        origin = at->point->origin;
    }
    return origin ? show_origin(s->pool, origin) : "";
}

static void add_gpus(const struct shown *s, const struct headline *h, const char *const *names,
                     size_t n, struct document_table *table)
{
    const struct headline_run *at = &h->runs[s->run];
    struct show_scale scale = show_scale(s->pool, at->point->value, at->best->unit);
    struct cell *row = document_row(table);

    row[0] = cell_text(pool_text(s->pool, "%s %s, %s%s", h->label, at->what, scale.unit,
                                 *gpus_origin(s) ? "" : show_origin(s->pool, at->point->origin)));
    for (size_t k = 0; k < at->n_likes; k++)
        for (size_t column = 0; column < n; column++) {
            const struct like *one = &at->likes[k];
            bool marked = one->on && (one->on->slow || one->on->looks_slow);

            if (!strcmp(names[column], one->place))
                row[column + 1] =
                    case_has_value(one->c, s->run)
                        ? value_cell(s->pool, one->c->points[s->run].value * scale.factor, marked)
                        : cell_text("n/a");
        }
}

/* A line for each test of several GPUs. */
static void show_gpus(const struct shown *s)
{
    const char *names[PLACES_MAX];
    size_t n = list_gpus(s, names);
    struct document_table *table;

    if (n > PLACES_MAX)
        document_paragraph(s->d, "the table of all GPUs: see the report");
    if (n < 2 || n > PLACES_MAX)
        return;
    table = document_table(
        s->d, heads_of(s->pool, pool_text(s->pool, "GPU%s", gpus_origin(s)), names, n), n + 1);
    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *at = &s->h->all[i].runs[s->run];

        if (!at->of_pairs && at->n_likes > 1 && at->alike)
            add_gpus(s, &s->h->all[i], names, n, table);
    }
}

/* Of a host that is slow one way, the links of that way. */
static void show_matrix(const struct shown *s, const struct matrix *m)
{
    struct show_scale scale = show_scale(s->pool, m->high, m->unit);
    struct document_table *table;

    document_paragraph(s->d, pool_text(s->pool, "%s, %s%s", headline_matrix_name(s->pool, s->h, m),
                                       scale.unit, matrix_origin(s->r, m)));
    table = document_table(s->d, heads_of(s->pool, "", m->ends, m->n), m->n + 1);
    for (size_t from = 0; from < m->n; from++) {
        struct cell *row = document_row(table);

        row[0] = cell_text(pool_text(s->pool, "%s ->", short_name(m->ends[from])));
        for (size_t to = 0; to < m->n; to++) {
            const struct matrix_cell *cell = &m->cells[from * m->n + to];
            bool marked = matrix_is_marked(m, from * m->n + to);

            row[to + 1] = matrix_has_value(cell)
                              ? value_cell(s->pool, cell->point->value * scale.factor, marked)
                              : cell_text(cell->c ? "n/a" : "-");
        }
    }
}

/* Those with something slow first. */
static void show_matrices(const struct shown *s)
{
    size_t shown = 0, more = 0;

    for (int slow = 1; slow >= 0; slow--)
        for (size_t i = 0; i < s->h->matrices.n; i++) {
            const struct matrix *m = &s->h->matrices.all[i];
            bool has = m->slow || m->looks_slow || m->n_slow_hosts;

            if (m->run != s->run || has != slow || m->measured < PAIRS_LEAST)
                continue;
            if (m->n > PLACES_MAX || shown == MATRICES_MAX) {
                more++;
                continue;
            }
            show_matrix(s, m);
            shown++;
        }
    if (more)
        document_paragraph(s->d, pool_text(s->pool, "%s: see the report",
                                           show_count(s->pool, more, "more table")));
}

void summary_gpus(struct report *r, const struct headlines *h, struct document *d)
{
    struct shown s = {r, &r->pool, h, 0, false, d};

    if (r->n_runs == 1)
        show_gpus(&s);
}

void summary_places(struct report *r, const struct headlines *h, struct document *d)
{
    struct shown s = {r, &r->pool, h, 0, false, d};

    summary_gpus(r, h, d);
    if (r->n_runs == 1)
        show_matrices(&s);
}

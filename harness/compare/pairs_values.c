/* SPDX-License-Identifier: Apache-2.0 */
/* The launches' values of a side, and why there are none: see pairs.h. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/row.h"
#include "harness/compare/pairs.h"
#include "harness/machine/fact.h"
#include "harness/report/adopt.h"
#include "harness/report/described.h"
#include "harness/report/show.h"

/* ---- What other guests took of the CPU ---- */

bool steal_is_share(double asked)
{
    return asked > 0 && asked <= 1;
}

double steal_limit(double asked)
{
    return asked < 1 ? asked : 0;
}

bool steal_is_over(double percent, double limit)
{
    return limit > 0 && percent > 100 * limit;
}

static bool row_is_usable(const struct report_rows *rows, size_t row);
static bool rows_are_one_launch(const struct report_rows *rows, size_t x, size_t y);

double *steal_of_launches(struct pool *pool, const struct pair *pair, size_t run, size_t n)
{
    const struct report_rows *rows = &pair->bench->rows[run];
    const struct report_point *point = &pair->c->points[run];
    double *steal = pool_alloc(pool, n + 1, sizeof(*steal));
    size_t launches = 0, last = SIZE_MAX;

    for (size_t i = 0; i < n; i++)
        steal[i] = NAN;
    for (size_t i = 0; i < point->n_rows; i++) {
        size_t row = point->rows[i];

        if (!row_is_usable(rows, row))
            continue;
        if (last == SIZE_MAX || !rows_are_one_launch(rows, last, row))
            launches++;
        last = row;
        if (launches <= n) /* of NaN and a number, fmax takes the number */
            steal[launches - 1] = fmax(steal[launches - 1], row_number(rows, row, FIELD_STEAL));
    }
    return steal;
}

static bool is_measured(const struct report_rows *rows, size_t row)
{
    const char *status = row_text(rows, row, FIELD_STATUS);

    return !strcmp(status, "ok") || !strcmp(status, "noisy");
}

/* Has the row a value that may be held against another? */
static bool row_is_usable(const struct report_rows *rows, size_t row)
{
    return is_measured(rows, row) && isfinite(row_number(rows, row, FIELD_VALUE));
}

/* Did others take more of the CPU (steal) than this share while it was measured? 0: it is not
 * asked. */
static bool row_is_taken(const struct report_rows *rows, size_t row, double limit)
{
    return steal_is_over(row_number(rows, row, FIELD_STEAL), limit);
}

bool row_counts(const struct report_rows *rows, size_t row, double limit)
{
    return row_is_usable(rows, row) && !row_is_taken(rows, row, limit);
}

/* Did one launch print both rows? */
static bool rows_are_one_launch(const struct report_rows *rows, size_t x, size_t y)
{
    return !strcmp(row_text(rows, x, FIELD_CASE), row_text(rows, y, FIELD_CASE)) &&
           !strcmp(row_text(rows, x, FIELD_REPEAT), row_text(rows, y, FIELD_REPEAT));
}

static double mean_with(double mean, double x, size_t n)
{
    return mean + (x - mean) / (double)n;
}

/* A row of another program may have a mean alone: then the means of both sides are compared. */
static bool compares_means(const struct report_bench *b, const struct report_case *c, size_t n_runs)
{
    for (size_t run = 0; run < n_runs; run++)
        for (size_t i = 0; i < c->points[run].n_rows; i++)
            if (!strcmp(row_text(&b->rows[run], c->points[run].rows[i], FIELD_VALUE_IS), "mean"))
                return true;
    return false;
}

/* Rows are appended as launches end, so that their order is that of time. Rows of one launch that
 * are one case (a size asked for twice) are one launch's word, and not several: their mean. Both
 * figures have room for all rows. */
static size_t run_values(const struct report_rows *rows, const struct report_point *p,
                         double steal_limit, bool means, double *values, double *all_sustained)
{
    size_t n = 0, same = 0, last = 0;

    for (size_t i = 0; i < p->n_rows; i++) {
        size_t row = p->rows[i];
        bool beside = means && !*row_text(rows, row, FIELD_VALUE_IS); /* else it is the value */
        double value = row_number(rows, row, beside ? FIELD_MEAN : FIELD_VALUE);
        double sustained = row_number(rows, row, FIELD_SUSTAINED);

        if (!row_counts(rows, row, steal_limit) || !isfinite(value))
            continue;
        if (n && rows_are_one_launch(rows, last, row)) {
            same++;
            values[n - 1] = mean_with(values[n - 1], value, same);
            all_sustained[n - 1] = mean_with(all_sustained[n - 1], sustained, same);
        } else {
            values[n] = value;
            all_sustained[n++] = sustained;
            same = 1;
        }
        last = row;
    }
    return n;
}

static const char *boot_of(const struct pairs *p, size_t run)
{
    return fact_name(p->report.runs[run].meta, "machine.load.boot");
}

void boots_number(struct pairing *g)
{
    const struct pairs *p = g->p;
    unsigned *boots = pool_alloc(&g->p->report.pool, p->report.n_runs, sizeof(*boots)), n = 0;

    for (size_t run = 0; run < p->report.n_runs; run++) {
        for (size_t i = 0; *boot_of(p, run) && i < run && !boots[run]; i++)
            if (!strcmp(boot_of(p, i), boot_of(p, run)))
                boots[run] = boots[i];
        if (*boot_of(p, run) && !boots[run])
            boots[run] = ++n;
    }
    g->boots = boots;
}

bool are_known(const double *values, size_t n)
{
    size_t i = 0;

    while (i < n && isfinite(values[i]) && values[i] > 0)
        i++;
    return i == n;
}

size_t side_values(struct pairing *g, const struct side *side, const struct report_bench *b,
                   const struct report_case *c, struct decide_side *out)
{
    struct pool *pool = &g->p->report.pool;
    size_t n = side->end - side->first, all = 0;
    struct decide_run *runs = pool_alloc(pool, n, sizeof(*runs));

    for (size_t i = 0; i < n; i++) {
        const struct report_point *p = &c->points[side->first + i];
        enum pairs_role role = side->roles ? side->roles[i] : PAIRS_LEVEL;
        double *room = p->n_rows && role != PAIRS_NO_PART
                           ? pool_alloc(pool, 2 * p->n_rows, sizeof(*room))
                           : NULL;

        if (room) {
            double *sustained = room + p->n_rows;

            runs[i].n = run_values(&b->rows[side->first + i], p, g->options->steal_limit,
                                   compares_means(b, c, g->p->report.n_runs), room, sustained);
            runs[i].values = room;
            runs[i].sustained = are_known(sustained, runs[i].n) ? sustained : NULL;
        }
        runs[i].role = role == PAIRS_ANCHOR ? DECIDE_ANCHOR : DECIDE_LEVEL;
        runs[i].boot = g->boots[side->first + i];
        all += side_has(side, side->first + i) ? runs[i].n : 0;
    }
    *out = (struct decide_side){.runs = runs, .n = n};
    return all;
}

const char *side_taken(struct pairing *g, const struct pair *pair, const struct side *side)
{
    double low = INFINITY, high = 0;
    size_t n = 0, of = 0;

    for (size_t run = side->first; run < side->end; run++) {
        const struct report_rows *rows = &pair->bench->rows[run];
        const struct report_point *p = &pair->c->points[run];

        for (size_t i = 0; side_has(side, run) && i < p->n_rows; i++) {
            double steal = row_number(rows, p->rows[i], FIELD_STEAL);

            of += row_is_usable(rows, p->rows[i]);
            if (!row_is_usable(rows, p->rows[i]) ||
                !row_is_taken(rows, p->rows[i], g->options->steal_limit))
                continue;
            n++;
            low = fmin(low, steal);
            high = fmax(high, steal);
        }
    }
    if (!n)
        return "";
    const char *least = low < high ? pool_text(&g->p->report.pool, "%.3g to ", low) : "";
    return pool_text(&g->p->report.pool, "%zu of %zu launches of %s (%s%.3g %%)", n, of, side->name,
                     least, high);
}

/* What the launches of one side came to, by their rows, and by its plan where there are none. */
struct tally {
    size_t n, n_usable, n_wrong, n_failed, n_skipped, n_late, n_todo;
    size_t n_numberless; /* measured, they say, and the value is NaN or infinite */
    const char *reason;  /* of the worst */
    const char *code;    /* of the same */
    bool others;         /* the side ran the same command, which gave other cases */
};

static void tally_rows(const struct pair *pair, const struct side *side, struct tally *t)
{
    for (size_t run = side->first; run < side->end; run++) {
        const struct report_rows *rows = &pair->bench->rows[run];
        const struct report_point *p = &pair->c->points[run];

        for (size_t i = 0; side_has(side, run) && i < p->n_rows; i++) {
            const char *status = row_text(rows, p->rows[i], FIELD_STATUS);
            bool wrong = !strcmp(status, "wrong"), failed = !strcmp(status, "failed");

            t->n++;
            t->n_usable += row_is_usable(rows, p->rows[i]);
            t->n_wrong += wrong;
            t->n_failed += failed;
            t->n_skipped += !strcmp(status, "skipped");
            t->n_numberless += is_measured(rows, p->rows[i]) && !row_is_usable(rows, p->rows[i]);
            if ((wrong || (failed && !t->n_wrong) || !*t->reason) &&
                !row_is_usable(rows, p->rows[i])) {
                t->reason = row_text(rows, p->rows[i], FIELD_REASON);
                t->code = row_text(rows, p->rows[i], FIELD_CODE);
            }
        }
    }
}

/* The case of the suite that stands behind a case, in whatever run has it. */
static const struct suite_entry *entry_of(struct pairing *g, const struct report_bench *b,
                                          const struct report_case *c)
{
    for (size_t run = 0; run < g->p->report.n_runs; run++) {
        const struct report_point *p = &c->points[run];

        if (p->n_rows)
            return suite_entry_of(&g->plans[run], b->name,
                                  row_text(&b->rows[run], p->rows[0], FIELD_CASE));
    }
    return NULL;
}

static void tally_plans(struct pairing *g, const struct pair *pair, const struct side *side,
                        struct tally *t)
{
    const struct suite_entry *entry = entry_of(g, pair->bench, pair->c);

    for (size_t run = side->first; entry && run < side->end; run++) {
        const struct suite_entry *e = suite_entry_like(&g->plans[run], entry);

        if (!e || !side_has(side, run))
            continue;
        if (e->n_done)
            t->others = true;
        if (!*t->reason)
            t->reason = e->reason;
        t->n += e->n_done + e->n_skipped + e->n_failed + e->n_late + e->n_todo;
        t->n_failed += e->n_failed;
        t->n_skipped += e->n_skipped;
        t->n_late += e->n_late;
        t->n_todo += e->n_todo;
    }
}

/* "B skipped it: why"; where not all launches did, "2 of 3 launches of B skipped it: why". */
static struct lost tell(struct pool *pool, const struct side *side, const struct tally *t, size_t n,
                        const char *what)
{
    const char *rest = pool_text(pool, " %s%s%s", what, *t->reason ? ": " : "", t->reason);
    struct lost lost = {
        .text = pool_text(pool, "%s%s", side->name, rest), .code = t->code, .of_all = rest};

    if (t->n != n) {
        lost.text = pool_text(pool, "%zu of %zu launches of %s", n, t->n, lost.text);
        lost.of_all = NULL;
    }
    return lost;
}

static struct lost tell_none(struct pool *pool, const struct side *side, const char *rest)
{
    return (struct lost){
        .text = pool_text(pool, "%s%s", side->name, rest), .code = "", .of_all = rest};
}

static bool has_column(const struct report_bench *b, const struct side *side, size_t param)
{
    for (size_t run = side->first; run < side->end; run++)
        if (side_has(side, run) && b->rows[run].table &&
            b->rows[run].params[param] != TABLE_NO_COLUMN)
            return true;
    return false;
}

struct lost lost_reason(struct pairing *g, const struct pair *pair, const struct side *side,
                        bool *failed)
{
    struct pool *pool = &g->p->report.pool;
    struct tally t = {.reason = "", .code = ""};

    tally_rows(pair, side, &t);
    if (!t.n)
        tally_plans(g, pair, side, &t);
    *failed = t.n_wrong || t.n_failed || t.n_late || t.n_numberless;
    if (t.n_wrong)
        return tell(pool, side, &t, t.n_wrong, "gave wrong data");
    if (t.n_failed)
        return tell(pool, side, &t, t.n_failed, "failed");
    if (t.n_late)
        return tell(pool, side, &t, t.n_late, "did not end in time");
    if (t.n_numberless)
        return tell(pool, side, &t, t.n_numberless, "has no number");
    if (t.n_usable)
        return (struct lost){.text = "", .code = ""};
    if (t.n_skipped)
        return tell(pool, side, &t, t.n_skipped, "skipped it");
    if (t.n_todo)
        return tell(pool, side, &t, t.n_todo, "did not get to run it");
    if (t.others) {
        /* The same command gave other cases: the benchmark's other version may have other
         * parameters. */
        const char *names = "";

        for (size_t i = 0; i < pair->bench->n_params; i++)
            if (!pair->bench->follows[i] &&
                has_column(pair->bench, &g->a, i) != has_column(pair->bench, &g->b, i))
                names = show_joined(pool, names, pair->bench->params[i]);
        if (*names)
            names = pool_text(
                pool, " has no such case: only one of the two versions has the parameters %s",
                names);
        else
            names = " has no such case: the same command gave others";
        return tell_none(pool, side, names);
    }
    const char *maybe =
        t.n ? "" : adopt_candidates(&g->p->report, pair->bench, pair->c, side->first, side->end);
    if (*maybe)
        return tell_none(pool, side, pool_text(pool, " has %s", maybe));
    return t.n ? tell(pool, side, &t, t.n, "has no number")
               : tell_none(pool, side, " has no such case");
}

bool is_left_out(struct pairing *g, const struct pair *pair, const struct side *side)
{
    struct tally t = {.reason = "", .code = ""};

    tally_rows(pair, side, &t);
    if (!t.n)
        tally_plans(g, pair, side, &t);
    return t.others && !t.n_failed && !t.n_skipped && !t.n_late && !t.n_todo &&
           described_is_figure(&g->p->report, pair->bench, pair->c);
}

/* What the plan of a side's newest run says; the options' where it says nothing. */
static double side_margin(struct pairing *g, const struct side *side,
                          const struct suite_entry *entry)
{
    for (size_t run = side->end; run-- > side->first;) {
        const struct suite_entry *e = suite_entry_like(&g->plans[run], entry);

        if (e && side_has(side, run))
            return isnan(e->margin) ? g->options->margin : e->margin;
    }
    return g->options->margin;
}

double pair_margin(struct pairing *g, const struct pair *pair)
{
    const struct suite_entry *entry = g->options->forced ? NULL : entry_of(g, pair->bench, pair->c);

    return entry ? fmin(side_margin(g, &g->a, entry), side_margin(g, &g->b, entry))
                 : g->options->margin;
}

/* Launches that died before they knew what they measure have a case without a metric. */
bool is_told_elsewhere(struct pairing *g, const struct report_bench *b, const struct report_case *c)
{
    const struct suite_entry *entry = *c->metric ? NULL : entry_of(g, b, c);

    for (size_t run = 0; entry && run < g->p->report.n_runs; run++) {
        const struct suite_entry *e = suite_entry_like(&g->plans[run], entry);

        if (e && e->n_done)
            return true;
    }
    return false;
}

/* ---- What may not be held against each other, and what differs otherwise ---- */

/* The rows of a side that have a value, one after another. */
struct walk {
    const struct pair *pair;
    const struct side *side;
    size_t run, i;
};

static bool next_row(struct walk *w, const struct report_rows **rows, size_t *row)
{
    for (; w->run < w->side->end; w->run++, w->i = 0) {
        const struct report_point *p = &w->pair->c->points[w->run];

        while (side_has(w->side, w->run) && w->i < p->n_rows) {
            *rows = &w->pair->bench->rows[w->run];
            *row = p->rows[w->i++];
            if (row_is_usable(*rows, *row))
                return true;
        }
    }
    return false;
}

static struct walk walk_of(const struct pair *pair, const struct side *side)
{
    return (struct walk){.pair = pair, .side = side, .run = side->first};
}

static const char *cell_of(const struct report_rows *rows, size_t row, size_t param)
{
    return table_cell(rows->table, row, rows->params[param]);
}

/* The first text that a side has of a parameter; "" where it has none. */
static const char *first_text(const struct pair *pair, const struct side *side, size_t param)
{
    struct walk w = walk_of(pair, side);
    const struct report_rows *rows;
    size_t row;

    while (next_row(&w, &rows, &row))
        if (*cell_of(rows, row, param))
            return cell_of(rows, row, param);
    return "";
}

static bool has_text(const struct pair *pair, const struct side *side, size_t param,
                     const char *text)
{
    struct walk w = walk_of(pair, side);
    const struct report_rows *rows;
    size_t row;

    while (next_row(&w, &rows, &row))
        if (!strcmp(cell_of(rows, row, param), text))
            return true;
    return false;
}

/* Does an outcome differ? Not where a launch of one side had what the other had, nor where a side
 * does not tell. */
static bool outcome_differs(struct pairing *g, const struct pair *pair, size_t param,
                            const char **a, const char **b)
{
    *a = first_text(pair, &g->a, param);
    *b = first_text(pair, &g->b, param);
    return **a && **b && strcmp(*a, *b) != 0 && !has_text(pair, &g->a, param, *b) &&
           !has_text(pair, &g->b, param, *a);
}

/* What the launches of a side say: "avx512", or "avx512 in 3 of 5 launches, avx2 in 2". */
static const char *outcome_of(struct pairing *g, const struct pair *pair, const struct side *side,
                              size_t param)
{
    struct pool *pool = &g->p->report.pool;
    struct walk w = walk_of(pair, side);
    const struct report_rows *rows;
    size_t row, n = 0, most = 0;

    for (size_t run = side->first; run < side->end; run++)
        most += pair->c->points[run].n_rows;
    const char **texts = pool_alloc(pool, most, sizeof(*texts));
    while (next_row(&w, &rows, &row))
        if (*cell_of(rows, row, param))
            texts[n++] = show_param(pool, pair->bench, param, cell_of(rows, row, param));
    return shares_text(pool, texts, n, "launches", NULL);
}

/* Differing outcomes: the first that decides is the refusal, the others are told. What was chosen is
 * told where its shares differ, too: it may be why the two differ. */
static const char *refuse_outcomes(struct pairing *g, struct pair *pair)
{
    struct pool *pool = &g->p->report.pool;
    const struct report_bench *bench = pair->bench;
    const char *refused = "", *a, *b;

    for (size_t i = 0; i < bench->n_params; i++) {
        bool chosen = described_flag(bench, bench->params[i], COLUMN_USED);
        bool differs = bench->follows[i] && outcome_differs(g, pair, i, &a, &b);
        bool decides = !strcmp(bench->params[i], "path") /* the way between two GPUs */ ||
                       described_flag(bench, bench->params[i], COLUMN_DECIDES);

        if (chosen) {
            a = outcome_of(g, pair, &g->a, i);
            b = outcome_of(g, pair, &g->b, i);
        } else if (differs) {
            a = show_param(pool, bench, i, a);
            b = show_param(pool, bench, i, b);
        }
        if (!differs && !(chosen && *a && *b && strcmp(a, b) != 0))
            continue;
        const char *text = pool_text(pool, "%s %s against %s", show_column(pool, bench, i), a, b);
        if (differs && decides && !*refused)
            refused = text;
        else
            pair->differs = show_joined(pool, pair->differs, text);
    }
    return *refused ? pool_text(pool, "another quantity: %s", refused) : "";
}

static unsigned carriers_of(const struct pair *pair, const struct side *side)
{
    struct walk w = walk_of(pair, side);
    const struct report_rows *rows;
    size_t row;
    unsigned found = 0;

    while (next_row(&w, &rows, &row))
        found |= carriers_read(row_text(rows, row, FIELD_CARRIER));
    return found;
}

static const char *carriers_text(struct pool *pool, unsigned kinds)
{
    static const char *const names[] = {"RDMA", "sockets", "loopback", "shared memory",
                                        "peer access"};
    const char *text = "";

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (kinds & 1u << i)
            text = pool_text(pool, "%s%s%s", text, *text ? " and " : "", names[i]);
    return text;
}

/* A library that is not watched names no wire; then nothing is proved, and nothing refused. */
static const char *refuse_path(struct pairing *g, struct pair *pair)
{
    struct pool *pool = &g->p->report.pool;
    unsigned a = carriers_of(pair, &g->a), b = carriers_of(pair, &g->b);

    if (a == b)
        return "";
    const char *text_a = a ? carriers_text(pool, a) : "not proved";
    const char *text_b = b ? carriers_text(pool, b) : "not proved";
    if (a && b)
        return pool_text(pool, "another path: %s in %s, %s in %s, by the column carrier", text_a,
                         g->a.name, text_b, g->b.name);
    pair->differs =
        show_joined(pool, pair->differs, pool_text(pool, "path %s against %s", text_a, text_b));
    return "";
}

static const char *refuse_origin(struct pairing *g, const struct pair *pair)
{
    const char *origins[2] = {"", ""};
    const struct side *sides[2] = {&g->a, &g->b};

    for (size_t s = 0; s < 2; s++) {
        struct walk w = walk_of(pair, sides[s]);
        const struct report_rows *rows;
        size_t row;

        while (next_row(&w, &rows, &row)) {
            const char *origin = row_text(rows, row, FIELD_ORIGIN);
            if (!strcmp(origin, "imported")) /* measured as well, elsewhere */
                origin = "measured";
            origin = *origin ? origin : "of unknown origin";
            if (!*origins[s] || strcmp(origin, "measured") != 0)
                origins[s] = origin;
        }
    }
    return strcmp(origins[0], origins[1]) ? pool_text(&g->p->report.pool, "%s in %s, %s in %s",
                                                      origins[0], g->a.name, origins[1], g->b.name)
                                          : "";
}

/* Has a row of the side this definition? */
static bool defines(const struct pair *pair, const struct side *side, const char *text)
{
    struct walk w = walk_of(pair, side);
    const struct report_rows *rows;
    size_t row;

    while (next_row(&w, &rows, &row))
        if (!strcmp(row_text(rows, row, FIELD_DIFFERS), text))
            return true;
    return false;
}

/* How the definition of another program's figure differs from ours, as its rows say it. */
static void tell_definitions(struct pairing *g, struct pair *pair)
{
    const struct side *sides[2] = {&g->a, &g->b};

    for (size_t s = 0; s < 2; s++) {
        struct walk w = walk_of(pair, sides[s]);
        const struct report_rows *rows;
        size_t row;

        while (next_row(&w, &rows, &row)) {
            const char *text = row_text(rows, row, FIELD_DIFFERS);
            bool both = defines(pair, sides[!s], text);

            if (*text && !strstr(pair->differs, text))
                pair->differs = show_joined(&g->p->report.pool, pair->differs,
                                            pool_text(&g->p->report.pool, "of %s: %s",
                                                      both ? "both" : sides[s]->name, text));
        }
    }
}

const char *pair_refusal(struct pairing *g, struct pair *pair)
{
    const char *origin = refuse_origin(g, pair);
    const char *path = refuse_path(g, pair);
    const char *outcome = refuse_outcomes(g, pair);

    tell_definitions(g, pair);
    pair->means = compares_means(pair->bench, pair->c, g->p->report.n_runs);
    if (pair->means)
        pair->differs =
            show_joined(&g->p->report.pool, pair->differs, "means are compared, not medians");
    return *origin ? origin : *path ? path : outcome;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What may not be held against each other, and what differs otherwise: see pairs_parts.h. */
#include <string.h>

#include "core/evidence.h"
#include "harness/compare/pairs_parts.h"
#include "harness/report/shares.h"
#include "harness/report/show.h"
#include "harness/report/told.h"

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

/* Does an outcome differ? Not where a launch of one side had what the other had, nor where a side does not tell. */
static bool outcome_differs(struct pairing *g, const struct pair *pair, size_t param,
                            const char **a, const char **b)
{
    *a = first_text(pair, &g->a, param);
    *b = first_text(pair, &g->b, param);
    return **a && **b && strcmp(*a, *b) != 0 && !has_text(pair, &g->a, param, *b) &&
           !has_text(pair, &g->b, param, *a);
}

/* Differing outcomes: the first that decides is the refusal, the others are told. */
static const char *refuse_outcomes(struct pairing *g, struct pair *pair)
{
    struct pool *pool = &g->p->report.pool;
    const struct report_bench *bench = pair->bench;
    const char *refused = "", *a, *b;

    for (size_t i = 0; i < bench->n_params; i++) {
        if (!bench->follows[i] || !outcome_differs(g, pair, i, &a, &b))
            continue;
        bool path = !strcmp(bench->params[i], "path"); /* the way between two GPUs */

        if (told_flag(bench, bench->params[i], COLUMN_LIBRARY)) {
            pair->library_a = a;
            pair->library_b = b;
        }
        bool decides = path || told_flag(bench, bench->params[i], COLUMN_DECIDES);
        const char *text = pool_text(pool, "%s %s against %s", bench->params[i],
                                     show_param(pool, bench, i, a), show_param(pool, bench, i, b));
        if (decides && !*refused)
            refused = text;
        else
            pair->differs = show_joined(pool, pair->differs, text);
    }
    return *refused ? pool_text(pool, "another quantity: %s", refused) : "";
}

/* What the launches of a side chose: "avx512", or "avx512 in 3 of 5 launches, avx2 in 2". */
static const char *choice_of(struct pairing *g, const struct pair *pair, const struct side *side,
                             size_t param)
{
    struct pool *pool = &g->p->report.pool;
    struct walk w = walk_of(pair, side);
    const struct report_rows *rows;
    size_t row, n = 0, most = 0;

    for (size_t run = side->first; run < side->end; run++)
        most += pair->c->points[run].n_rows;
    const char **texts = pool_alloc(pool, most, sizeof(*texts));
    while (texts && next_row(&w, &rows, &row))
        if (*cell_of(rows, row, param))
            texts[n++] = show_param(pool, pair->bench, param, cell_of(rows, row, param));
    return texts ? shares_text(pool, texts, n, "launches", NULL) : "";
}

/* What was left to the benchmark makes no other case, but may be why the two differ. */
static void tell_choices(struct pairing *g, struct pair *pair)
{
    struct pool *pool = &g->p->report.pool;
    const struct report_bench *bench = pair->bench;

    for (size_t i = 0; i < bench->n_params; i++) {
        if (*pair->c->params[i] || !told_left_by(bench, bench->params[i]))
            continue;
        const char *a = choice_of(g, pair, &g->a, i), *b = choice_of(g, pair, &g->b, i);

        if (*a && *b && strcmp(a, b) != 0)
            pair->differs = show_joined(
                pool, pair->differs, pool_text(pool, "%s %s against %s", bench->params[i], a, b));
    }
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
            origin = *origin ? origin : "of unknown origin";
            if (!*origins[s] || strcmp(origin, "measured") != 0)
                origins[s] = origin;
        }
    }
    return strcmp(origins[0], origins[1]) ? pool_text(&g->p->report.pool, "%s in %s, %s in %s",
                                                      origins[0], g->a.name, origins[1], g->b.name)
                                          : "";
}

const char *pair_refusal(struct pairing *g, struct pair *pair)
{
    const char *origin = refuse_origin(g, pair);
    const char *path = refuse_path(g, pair);
    const char *outcome = refuse_outcomes(g, pair);

    tell_choices(g, pair);
    return *origin ? origin : *path ? path : outcome;
}

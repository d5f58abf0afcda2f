/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of matrices: see matrix.h. */
#include <math.h>
#include <string.h>

#include "harness/report/matrix.h"
#include "harness/report/show.h"

#define LOOKS_SLOW_MAX 3 /* that are named */

bool matrix_has_value(const struct matrix_cell *cell)
{
    return cell->c && !isnan(cell->point->value);
}

const char *matrix_origin(struct report *r, const struct matrix *m)
{
    const char *origin = "";

    for (size_t i = 0; !*origin && i < m->n * m->n; i++)
        if (matrix_has_value(&m->cells[i]))
            origin = show_origin(&r->pool, m->cells[i].point->origin);
    return origin;
}

bool matrix_is_listed(const struct matrix *m, size_t cell)
{
    return m->cells[cell].slow && !m->cells[cell].named;
}

/* "carries 0.60 (0.58 to 0.62) of", "take 1.67 times as long as": what others do follows. */
static const char *share_text(struct pool *pool, const struct matrix *m, const struct comparison *k,
                              bool one)
{
    struct comparison times = {.low = 1 / k->high, .high = 1 / k->low};

    return m->more_is_better ? pool_text(pool, "carr%s %.2f%s of", one ? "ies" : "y", k->ratio,
                                         comparison_interval_text(pool, k))
                             : pool_text(pool, "take%s %.2f%s times as long as", one ? "s" : "",
                                         1 / k->ratio, comparison_interval_text(pool, &times));
}

const char *matrix_host_text(struct report *r, const struct matrix *m, size_t i)
{
    static const char *const which[] = {
        [LINKS_BOTH] = "links", [LINKS_FROM] = "links to others", [LINKS_TO] = "links from others"};
    const struct slow_host *s = &m->slow_hosts[i];

    return pool_text(&r->pool, "%s: its %zu %s %s the others'", m->ends[s->host], s->others->peers,
                     which[s->way], share_text(&r->pool, m, s->others, false));
}

const char *matrix_slow_text(struct report *r, const struct matrix *m, size_t cell)
{
    const struct matrix_cell *at = &m->cells[cell];

    return pool_text(&r->pool, "%s -> %s %s the others of its kind%s%s%s", m->ends[cell / m->n],
                     m->ends[cell % m->n], share_text(&r->pool, m, at->others, true),
                     *at->kind ? " (" : "", at->kind, *at->kind ? ")" : "");
}

bool matrix_is_marked(const struct matrix *m, size_t cell)
{
    bool marked = m->cells[cell].slow || m->cells[cell].looks_slow;

    for (size_t i = 0; i < m->n_slow_hosts; i++) {
        const struct slow_host *h = &m->slow_hosts[i];

        marked = marked || (h->host == cell / m->n && h->way != LINKS_TO) ||
                 (h->host == cell % m->n && h->way != LINKS_FROM);
    }
    return marked;
}

const char *matrix_looks_slow_text(struct report *r, const struct matrix *m)
{
    struct show_list names = {.pool = &r->pool, .max = LOOKS_SLOW_MAX};

    for (size_t i = 0; i < m->n * m->n; i++)
        if (m->cells[i].looks_slow && m->looks_slow == 1)
            return matrix_slow_text(r, m, i);
        else if (m->cells[i].looks_slow)
            show_list_add(&names,
                          pool_text(&r->pool, "%s -> %s", m->ends[i / m->n], m->ends[i % m->n]));
    return show_list_text(&names);
}

const char *matrix_slow_names(struct report *r, const struct matrix *m)
{
    struct show_list names = {.pool = &r->pool, .max = 1};

    for (size_t i = 0; i < m->n_slow_hosts; i++)
        show_list_add(&names, m->ends[m->slow_hosts[i].host]);
    for (size_t i = 0; i < m->n * m->n; i++)
        if (matrix_is_listed(m, i))
            show_list_add(&names,
                          pool_text(&r->pool, "%s -> %s", m->ends[i / m->n], m->ends[i % m->n]));
    return show_list_text(&names);
}

bool matrix_holds(const struct matrix *m, const struct report_case *c, size_t run)
{
    for (size_t i = 0; m->run == run && i < m->n * m->n; i++)
        if (m->cells[i].c == c)
            return true;
    return false;
}

static bool is_behind(const struct matrix *m, size_t cell, size_t than)
{
    double x = m->cells[cell].point->value, y = m->cells[than].point->value;

    return m->more_is_better ? x < y : x > y;
}

static const struct matrix_cell *cell_of(const struct matrix *m, const struct report_case *c)
{
    for (size_t i = 0; i < m->n * m->n; i++)
        if (m->cells[i].c == c)
            return &m->cells[i];
    return NULL;
}

struct like *matrix_likes(struct report *r, const struct matrix *m, const struct report_case *of,
                          size_t *n)
{
    const struct matrix_cell *own = cell_of(m, of);
    struct like *all = pool_alloc(&r->pool, m->n * m->n, sizeof(*all));

    *n = 0;
    for (size_t i = 0; own && i < m->n * m->n; i++) {
        const struct matrix_cell *cell = &m->cells[i];

        if (cell->c && !strcmp(cell->kind, own->kind))
            all[(*n)++] =
                (struct like){pool_text(&r->pool, "%s -> %s", m->ends[i / m->n], m->ends[i % m->n]),
                              cell->c, cell->others};
    }
    return all;
}

/* The pairs of one kind. */
struct kind {
    size_t pairs, measured, slow, best, worst; /* cells */
};

static struct kind count_kind(const struct matrix *m, const char *name)
{
    size_t none = m->n * m->n;
    struct kind k = {.best = none, .worst = none};

    for (size_t i = 0; i < none; i++) {
        if (!m->cells[i].c || strcmp(m->cells[i].kind, name) != 0)
            continue;
        k.pairs++;
        if (!matrix_has_value(&m->cells[i]))
            continue;
        k.measured++;
        k.slow += m->cells[i].slow;
        k.worst = k.worst == none || is_behind(m, i, k.worst) ? i : k.worst;
        k.best = k.best == none || is_behind(m, k.best, i) ? i : k.best;
    }
    return k;
}

static const char *kind_text(struct pool *pool, const struct matrix *m, const struct kind *k,
                             const char *link)
{
    const char *pairs = show_count(pool, k->pairs, "pair");
    double best = m->cells[k->best].point->value, worst = m->cells[k->worst].point->value;

    if (k->measured < k->pairs)
        pairs = pool_text(pool, "%zu of %s", k->measured, pairs);
    if (*link)
        pairs = pool_text(pool, "%s (%s)", pairs, link);
    if (k->measured == 1)
        return pool_text(pool, "%s: %s", pairs, document_number(pool, best));
    if (fabs(worst / best - 1) < COMPARISONS_SAME)
        return pool_text(pool, "%s alike: %s", pairs, document_number(pool, best));
    pairs =
        pool_text(pool, "%s: %s to %s, slowest: %s -> %s", pairs, document_number(pool, best),
                  document_number(pool, worst), m->ends[k->worst / m->n], m->ends[k->worst % m->n]);
    return k->slow ? pool_text(pool, "%s, %zu slow for %s kind", pairs, k->slow,
                               k->slow == 1 ? "its" : "their")
                   : pairs;
}

/* Of the path that is asked for. */
static bool begins_kind(const struct matrix *m, size_t cell, const char *path)
{
    return matrix_begins_kind(m, cell) && !strcmp(m->cells[cell].path, path);
}

/* A pair that was skipped before it knew its path belongs to no kind, and would go unseen. */
static const char *pathless_text(struct pool *pool, const struct matrix *m)
{
    size_t pairs = 0, lost = 0;

    for (size_t i = 0; i < m->n * m->n; i++) {
        pairs += m->cells[i].c != NULL;
        lost += m->cells[i].c && !matrix_has_value(&m->cells[i]) && !*m->cells[i].path;
    }
    return lost ? pool_text(pool, "; in all, %zu of %zu pairs have a value", m->measured, pairs)
                : "";
}

const char *matrix_summary(struct report *r, const struct matrix *m, const struct report_case *c,
                           size_t *slow)
{
    const char *path = report_param(m->bench, c, "path"), *text = "";
    size_t kinds = 0;

    *slow = 0;
    for (size_t i = 0; i < m->n * m->n; i++)
        kinds += begins_kind(m, i, path);
    for (size_t i = 0; i < m->n * m->n; i++) {
        const struct matrix_cell *at = &m->cells[i];

        if (!begins_kind(m, i, path))
            continue;
        struct kind k = count_kind(m, at->kind);
        *slow += k.slow;
        const char *link = *at->relation ? at->relation : "link not known";
        text = pool_text(&r->pool, "%s%s%s", text, *text ? "; " : "",
                         kind_text(&r->pool, m, &k, kinds > 1 ? link : ""));
    }
    return *text ? pool_text(&r->pool, "%s%s", text, pathless_text(&r->pool, m)) : "";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of pairs: see matrix.h. */
#include "harness/report/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/units.h"
#include "harness/report/cases_group.h"
#include "harness/report/described.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define MATRIX_ENDS_MAX 128

/* The columns of the two ends, of GPUs and of hosts. */
static const char *const ends[][2] = {{"source", "destination"}, {"from", "to"}};

static bool is_end(const char *param)
{
    for (size_t i = 0; i < 2; i++)
        if (!strcmp(param, ends[i][0]) || !strcmp(param, ends[i][1]))
            return true;
    return false;
}

/* Rows between two hosts: what the link carries or how long it takes, not what stands beside. */
static bool is_host_pair(const struct report_bench *b, const struct report_case *c)
{
    const char *from = report_param(b, c, "from"), *to = report_param(b, c, "to");

    return *from && *to && strcmp(from, to) != 0 && !*report_param(b, c, "side") &&
           described_matches(b, c, "rail=,all") &&
           (!strcmp(c->metric, "bandwidth") || !strcmp(c->metric, "latency"));
}

/* Which kind of rate between hosts: one way alone, or a part of both ways at once. */
enum ways { NEITHER, ALONE, OF_BOTH };

static enum ways ways_of(const char *direction)
{
    if (!strcmp(direction, "both-forward") || !strcmp(direction, "both-reverse"))
        return OF_BOTH;
    return !strcmp(direction, "forward") || !strcmp(direction, "reverse") ? ALONE : NEITHER;
}

/* Where the bytes come from, and where they go: of hosts, what is in reverse is from `to`. */
static const char *end_of(const struct report_bench *b, const struct report_case *c, size_t end)
{
    bool hosts = is_host_pair(b, c);
    bool back = hosts && described_matches(b, c, "direction=reverse,both-reverse");

    return report_param(b, c, ends[hosts][end ^ (size_t)back]);
}

/* All but the ends. Both ways between hosts are in one matrix, on either side of its diagonal. */
static const char *what_it_is_of(const struct report_bench *b, const struct report_case *c,
                                 size_t column, const void *arg)
{
    static const char *const ways[] = {NULL, "one way", "of both ways"};
    bool is_way = column < b->n_params && !strcmp(b->params[column], "direction") &&
                  is_host_pair(b, c) && ways_of(c->params[column]);

    return is_way ? ways[ways_of(c->params[column])] : cases_but(b, c, column, arg);
}

static bool is_in(const struct report_bench *b, size_t run, const struct report_case *c,
                  const void *arg)
{
    (void)arg;
    return (case_is_pair(b, c) || is_host_pair(b, c)) && c->points[run].n_rows > 0 && *c->metric;
}

/* cuda:2 before cuda:10, node2 before node10. */
static int by_name(const void *x, const void *y)
{
    const char *a = *(const char *const *)x, *b = *(const char *const *)y;
    const char *m = strchr(a, ':'), *n = strchr(b, ':');
    int order = m && n ? strverscmp(m, n) : 0;

    return order ? order : strverscmp(a, b);
}

static void add_end(const char **list, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(list[i], name))
            return;
    if (*n < MATRIX_ENDS_MAX)
        list[(*n)++] = name;
}

/* The GPUs or hosts that any pair of this run names: a matrix in which some lack shows that they
 * do. */
static size_t list_ends(const struct report_bench *b, size_t run, const char **list)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_cases; i++) {
        if (!is_in(b, run, &b->cases[i], NULL))
            continue;
        add_end(list, &n, end_of(b, &b->cases[i], 0));
        add_end(list, &n, end_of(b, &b->cases[i], 1));
    }
    if (n)
        qsort(list, n, sizeof(*list), by_name);
    return n;
}

static size_t index_of(const struct matrix *m, const char *name)
{
    size_t i = 0;

    while (i < m->n && strcmp(m->ends[i], name) != 0)
        i++;
    return i;
}

static bool is_pair_of(const json_t *pair, const char *address)
{
    const char *a = fact_name(pair, "a"), *b = fact_name(pair, "b");
    size_t n = strcspn(address, "+");

    if (!*a || !*b || address[n] != '+')
        return false;
    return (strlen(a) == n && !memcmp(a, address, n) && !strcmp(address + n + 1, b)) ||
           (strlen(b) == n && !memcmp(b, address, n) && !strcmp(address + n + 1, a));
}

/* How the probe says that the two GPUs of a row are joined. */
static const char *relation_of(struct report *r, size_t run, const char *address)
{
    FACT_EACH (fact_at(r->runs[run].meta, "machine.gpus.pairs"), pair) {
        long long links = fact_integer(pair, "nvlinks", 0);

        if (is_pair_of(pair, address))
            return links > 0 ? pool_text(&r->pool, "%lld NVLink%s", links, links > 1 ? "s" : "")
                             : fact_name(pair, "relation");
    }
    return "";
}

static void fill_cells(struct report *r, struct matrix *m, const struct case_group *group)
{
    for (size_t i = 0; i < m->n * m->n; i++)
        m->cells[i] = (struct matrix_cell){.asked = COMPARISON_NONE};
    for (size_t i = 0; i < group->n; i++) {
        const struct report_case *c = group->cases[i];
        const struct report_point *p = &c->points[m->run];
        size_t from = index_of(m, end_of(m->bench, c, 0));
        size_t to = index_of(m, end_of(m->bench, c, 1));

        if (from == m->n || to == m->n)
            continue;
        struct matrix_cell *cell = &m->cells[from * m->n + to];
        cell->c = c;
        cell->point = p;
        cell->relation = relation_of(r, m->run, report_param(m->bench, c, "address"));
        cell->path = report_param(m->bench, c, "path");
        cell->kind = show_joined(&r->pool, cell->relation, cell->path);
        if (!strcmp(report_param(m->bench, c, "atomics"), "native"))
            cell->kind = pool_text(&r->pool, "%s, atomics", cell->kind);
        if (isnan(p->value))
            continue;
        m->measured++;
        m->high = isnan(m->high) ? p->value : fmax(m->high, p->value);
    }
}

/* Of what is between hosts a row has a dozen settings more, which mostly are the same
 * everywhere. */
static const char *title_of(struct report *r, const struct report_bench *b,
                            const struct report_case *c)
{
    bool hosts = is_host_pair(b, c);
    const char *text = "";

    for (size_t i = 0; i < b->n_params; i++)
        if (!b->follows[i] && !is_end(b->params[i]) &&
            !(hosts && (ways_of(c->params[i]) ||
                        !(word_in("transport size", b->params[i]) || show_tells_apart(b, c, i)))))
            text = show_joined(&r->pool, text, show_full_param(&r->pool, b, i, c->params[i]));
    if (hosts && ways_of(report_param(b, c, "direction")) == OF_BOTH)
        text = show_joined(&r->pool, text, "both ways at once");
    return text;
}

static double size_of(const struct report_bench *b, const struct report_case *c)
{
    double size;

    return units_parse_double(report_param(b, c, "size"), &size) ? 0 : size;
}

/* Of sizes that hosts exchange, the largest says what a link carries, the smallest how long it
 * takes: the others would be as many matrices more. */
static bool is_telling_size(const struct report_bench *b, size_t run, const struct report_case *c)
{
    bool rate = c->more_is_better;
    double size = size_of(b, c);

    for (size_t i = 0; is_host_pair(b, c) && i < b->n_cases; i++) {
        const struct report_case *other = &b->cases[i];
        double other_size = size_of(b, other);

        if (is_in(b, run, other, NULL) && is_host_pair(b, other) &&
            !strcmp(other->metric, c->metric) &&
            !strcmp(report_param(b, other, "transport"), report_param(b, c, "transport")) &&
            (rate ? other_size > size : other_size < size))
            return false;
    }
    return true;
}

static void make_one(struct report *r, const struct report_bench *b, size_t run,
                     const struct case_group *group, struct matrix *m)
{
    const struct report_case *first = group->cases[0];

    *m = (struct matrix){.bench = b, .run = run, .metric = first->metric, .unit = first->unit};
    m->more_is_better = first->more_is_better;
    m->high = NAN;
    m->hosts = is_host_pair(b, first);
    m->title = title_of(r, b, first);
    m->ends = pool_alloc(&r->pool, MATRIX_ENDS_MAX, sizeof(*m->ends));
    m->n = list_ends(b, run, m->ends);
    m->cells = pool_alloc(&r->pool, m->n * m->n, sizeof(*m->cells));
    fill_cells(r, m, group);
}

void matrices_make(struct report *r, struct matrices *out)
{
    *out = (struct matrices){.n = 0};
    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++)
        for (size_t run = 0; run < r->n_runs; run++) {
            struct case_groups groups = cases_group(&r->pool, b, run, is_in, NULL, what_it_is_of,
                                                    "source destination from to");

            for (size_t i = 0; i < groups.n; i++) {
                struct matrix m;

                if (!is_telling_size(b, run, groups.all[i].cases[0]))
                    continue;
                make_one(r, b, run, &groups.all[i], &m);
                if (m.measured > 0 && (!m.hosts || m.n > 2))
                    *POOL_ADD(&r->pool, out->all, out->n) = m;
            }
        }
}

/* ---- Which pairs and hosts are slow ---- */

/* The cells of one kind that have a value, each as a place of its own; kind NULL: the cells as links of
 * their ends. cells: theirs, in the order of the group. */
static void list_cells(const struct matrix *m, const char *kind, enum links_way way,
                       struct comparison_group *g, size_t *cells)
{
    *g = (struct comparison_group){g->cases, g->place, g->other, .both = way == LINKS_BOTH};
    for (size_t i = 0; i < m->n * m->n; i++) {
        const struct matrix_cell *cell = &m->cells[i];
        size_t from = i / m->n, to = i % m->n;

        if (!matrix_has_value(cell) || !(cell->point->value > 0) ||
            (kind && strcmp(cell->kind, kind) != 0))
            continue;
        cells[g->n] = i;
        g->place[g->n] = kind ? g->n : way == LINKS_TO ? to : from;
        g->other[g->n] = kind ? COMPARISON_NONE : way == LINKS_TO ? from : to;
        g->cases[g->n++] = cell->c;
    }
    g->n_places = kind ? g->n : m->n;
}

bool matrix_begins_kind(const struct matrix *m, size_t cell)
{
    bool begins = matrix_has_value(&m->cells[cell]);

    for (size_t i = 0; begins && i < cell; i++)
        begins =
            !matrix_has_value(&m->cells[i]) || strcmp(m->cells[i].kind, m->cells[cell].kind) != 0;
    return begins;
}

/* Has any pair a value both ways? Else the links of one way are those of both. */
static bool has_both_ways(const struct matrix *m)
{
    for (size_t i = 0; i < m->n * m->n; i++)
        if (matrix_has_value(&m->cells[i]) &&
            matrix_has_value(&m->cells[i % m->n * m->n + i / m->n]))
            return true;
    return false;
}

static void ask_one(struct comparisons *q, struct matrix *m)
{
    size_t all = m->n * m->n;
    size_t *at = xcalloc(4 * all, sizeof(*at)), *cells = at + all;
    struct comparison_group g = {.cases = xcalloc(all, sizeof(const struct report_case *)),
                                 .place = cells + all,
                                 .other = cells + 2 * all};

    comparisons_topic(q, NULL, m->bench, m->run, true);
    for (size_t i = 0; i < all; i++) {
        if (!matrix_begins_kind(m, i))
            continue;
        list_cells(m, m->cells[i].kind, LINKS_BOTH, &g, cells);
        comparisons_add_group(q, &g, COMPARISONS_MARGIN, at);
        for (size_t k = 0; k < g.n; k++)
            m->cells[cells[k]].asked = at[k];
    }
    comparisons_topic(q, NULL, m->bench, m->run, true);
    for (int way = 0; m->hosts && way < (has_both_ways(m) ? LINKS_WAYS : LINKS_BOTH + 1); way++) {
        list_cells(m, NULL, (enum links_way)way, &g, cells);
        m->asked[way] = pool_alloc(&q->r->pool, m->n, sizeof(*m->asked[way]));
        comparisons_add_group(q, &g, COMPARISONS_MARGIN, m->asked[way]);
    }
    free(g.cases);
    free(at);
}

void matrices_ask(struct comparisons *q, struct matrices *all)
{
    for (size_t i = 0; i < all->n; i++)
        ask_one(q, &all->all[i]);
}

/* The host's links of one way, where they are slow; else NULL. */
static const struct comparison *slow_way(const struct comparisons *q, const struct matrix *m,
                                         size_t host, enum links_way way)
{
    const struct comparison *k = m->asked[way] ? comparison_of(q, m->asked[way][host]) : NULL;

    return k && k->slow ? k : NULL;
}

/* One way alone that is slow is said to be: the mean of both is the rate of no link. */
static void judge_host(const struct comparisons *q, struct matrix *m, size_t host)
{
    const struct comparison *both = slow_way(q, m, host, LINKS_BOTH);
    const struct comparison *from = slow_way(q, m, host, LINKS_FROM);
    const struct comparison *to = slow_way(q, m, host, LINKS_TO);
    enum links_way way = from && !to ? LINKS_FROM : to && !from ? LINKS_TO : LINKS_BOTH;
    const struct comparison *k = way == LINKS_FROM ? from : way == LINKS_TO ? to : both;

    if (k)
        m->slow_hosts[m->n_slow_hosts++] = (struct slow_host){host, way, k};
}

static void judge_one(const struct comparisons *q, struct matrix *m)
{
    m->slow_hosts = pool_alloc(&q->r->pool, m->n, sizeof(*m->slow_hosts));
    for (size_t host = 0; m->hosts && host < m->n; host++)
        judge_host(q, m, host);
    for (size_t i = 0; i < m->n * m->n; i++) {
        struct matrix_cell *cell = &m->cells[i];

        for (size_t k = 0; k < m->n_slow_hosts; k++)
            cell->named |= m->slow_hosts[k].host == i / m->n || m->slow_hosts[k].host == i % m->n;
        cell->others = comparison_of(q, cell->asked);
        cell->slow = cell->others && cell->others->slow;
        cell->looks_slow = cell->others && cell->others->looks_slow && !cell->named;
        m->slow += cell->slow;
        m->looks_slow += cell->looks_slow;
    }
}

void matrices_judge(const struct comparisons *q, struct matrices *all)
{
    for (size_t i = 0; i < all->n; i++)
        judge_one(q, &all->all[i]);
}

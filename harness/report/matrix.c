/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of pairs: see matrix.h. */
#include "harness/report/matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "core/units.h"
#include "harness/report/cases.h"
#include "harness/report/described.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define MATRIX_ENDS_MAX 128

/* ---- Slow hosts ---- */

struct judging {
    const struct link *links;
    size_t n, n_hosts;
    enum links_way way;
    double *levels; /* of each host; NaN: no link */
    bool *low;      /* the level is low: not a host to compare with */
    bool *met;      /* scratch: hosts */
    double *scratch, *others;
};

static bool is_of(const struct judging *j, const struct link *l, size_t host)
{
    return (j->way != LINKS_TO && l->from == host) || (j->way != LINKS_FROM && l->to == host);
}

/* Sorts; the higher of two middle values, or the lower. NaN of none. */
static double middle(double *values, size_t n, bool higher)
{
    if (!n)
        return NAN;
    qsort(values, n, sizeof(*values), stats_ascending);
    return values[higher ? n / 2 : (n - 1) / 2];
}

static void take_levels(struct judging *j)
{
    size_t n_known = 0;
    double reference;

    for (size_t h = 0; h < j->n_hosts; h++) {
        size_t n = 0;

        for (size_t i = 0; i < j->n; i++)
            if (is_of(j, &j->links[i], h))
                j->scratch[n++] = j->links[i].value;
        j->levels[h] = middle(j->scratch, n, true);
    }
    for (size_t h = 0; h < j->n_hosts; h++)
        if (!isnan(j->levels[h]))
            j->others[n_known++] = j->levels[h];
    reference = middle(j->others, n_known, false);
    for (size_t h = 0; h < j->n_hosts; h++)
        j->low[h] = j->levels[h] < (1 - LINKS_SLOW) * reference;
}

/* The links of `host` with those that are not low; *peers: how many hosts these are. */
static size_t own_links(struct judging *j, size_t host, size_t *peers)
{
    size_t n = 0;

    *peers = 0;
    for (size_t h = 0; h < j->n_hosts; h++)
        j->met[h] = false;
    for (size_t i = 0; i < j->n; i++) {
        size_t other = j->links[i].from == host ? j->links[i].to : j->links[i].from;

        if (!is_of(j, &j->links[i], host) || j->low[other])
            continue;
        *peers += !j->met[other];
        j->met[other] = true;
        j->scratch[n++] = j->links[i].value;
    }
    return n;
}

/* The links between hosts that are not low: their median, and the share of it that noise may
 * take. */
static double others_median(struct judging *j, double *noise)
{
    size_t n = 0;
    double median;

    for (size_t i = 0; i < j->n; i++)
        if (!j->low[j->links[i].from] && !j->low[j->links[i].to])
            j->others[n++] = j->links[i].value;
    median = stats_median(j->others, n);
    for (size_t i = 0; i < n; i++)
        j->others[i] = fabs(j->others[i] - median);
    *noise = n ? LINKS_NOISE * STATS_MAD_TO_SD * stats_median(j->others, n) / median : NAN;
    return median;
}

static bool is_slow(struct judging *j, size_t host, struct slow_host *slow)
{
    size_t peers, n, fine = 0;
    double noise, reference;

    if (!j->low[host])
        return false;
    for (size_t h = 0; h < j->n_hosts; h++)
        fine += !j->low[h] && !isnan(j->levels[h]);
    n = own_links(j, host, &peers);
    if (peers < 2 || fine < 2)
        return false;
    *slow = (struct slow_host){host, j->way, peers, NAN};
    slow->ratio = stats_median(j->scratch, n);
    reference = others_median(j, &noise);
    slow->ratio /= reference;
    return slow->ratio < 1 - fmax(LINKS_SLOW, noise); /* false of NaN: there are no others */
}

/* Are there at least two other hosts each way? Else the ways are no different views. */
static bool has_both_ways(const struct judging *j, size_t host)
{
    size_t from = 0, to = 0;

    for (size_t i = 0; i < j->n; i++) {
        from += j->links[i].from == host;
        to += j->links[i].to == host;
    }
    return from >= 2 && to >= 2;
}

static void judge_way(struct judging *j, struct slow_host *found, enum links_way way)
{
    j->way = way;
    take_levels(j);
    for (size_t h = 0; h < j->n_hosts; h++) {
        struct slow_host slow;

        if (way != LINKS_BOTH && (found[h].links || !has_both_ways(j, h)))
            continue;
        if (is_slow(j, h, &slow))
            found[h] = slow;
    }
}

size_t links_judge(const struct link *links, size_t n, size_t n_hosts, struct slow_host *slow)
{
    size_t room = n + n_hosts;
    struct judging j = {.links = links,
                        .n = n,
                        .n_hosts = n_hosts,
                        .levels = xcalloc(room, sizeof(double)),
                        .scratch = xcalloc(room, sizeof(double)),
                        .others = xcalloc(room, sizeof(double)),
                        .low = xcalloc(n_hosts, sizeof(bool)),
                        .met = xcalloc(n_hosts, sizeof(bool))};
    struct slow_host *found = xcalloc(n_hosts, sizeof(*found));
    size_t n_slow = 0;

    for (int way = LINKS_BOTH; n_hosts >= 3 && way <= LINKS_TO; way++)
        judge_way(&j, found, (enum links_way)way);
    for (size_t h = 0; h < n_hosts; h++)
        if (found[h].links)
            slow[n_slow++] = found[h];
    free(j.met);
    free(j.low);
    free(j.others);
    free(j.scratch);
    free(j.levels);
    free(found);
    return n_slow;
}

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

/* Both ways between hosts are in one matrix, on either side of its diagonal. */
static bool same_param(const struct report_bench *b, size_t param, const struct report_case *x,
                       const struct report_case *y)
{
    if (!strcmp(x->params[param], y->params[param]))
        return true;
    return !strcmp(b->params[param], "direction") && is_host_pair(b, x) && is_host_pair(b, y) &&
           ways_of(x->params[param]) && ways_of(x->params[param]) == ways_of(y->params[param]);
}

/* Do two cases differ in their ends alone? */
static bool same_matrix(const struct report_bench *b, const struct report_case *x,
                        const struct report_case *y)
{
    if (strcmp(x->metric, y->metric) != 0 || strcmp(x->unit, y->unit) != 0)
        return false;
    for (size_t i = 0; i < b->n_params; i++)
        if (!b->follows[i] && !is_end(b->params[i]) && !same_param(b, i, x, y))
            return false;
    return true;
}

static bool is_in(const struct report_bench *b, const struct report_case *c, size_t run)
{
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
        if (!is_in(b, &b->cases[i], run))
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

/* NaN: no. */
static bool is_behind(const struct matrix *m, double value, double median)
{
    double ratio = value / median;

    return m->more_is_better ? ratio < 1 - MATRIX_SLOW : ratio > 1 + MATRIX_SLOW;
}

/* Of one launch without noise the value counts: a host is judged by several pairs, each of which
 * has its own launch. */
static bool counts_for_hosts(const struct matrix_cell *cell)
{
    return matrix_has_value(cell) &&
           !(cell->vague && (cell->point->n_noisy || cell->point->n_values > 1));
}

static void fill_cells(struct report *r, struct matrix *m, const struct report_case *first)
{
    for (size_t i = 0; i < m->bench->n_cases; i++) {
        const struct report_case *c = &m->bench->cases[i];
        const struct report_point *p = &c->points[m->run];

        if (!is_in(m->bench, c, m->run) || !same_matrix(m->bench, first, c))
            continue;
        size_t from = index_of(m, end_of(m->bench, c, 0));
        size_t to = index_of(m, end_of(m->bench, c, 1));
        if (from == m->n || to == m->n)
            continue;
        struct matrix_cell *cell = &m->cells[from * m->n + to];
        *cell = (struct matrix_cell){.c = c, .point = p, .kind_median = NAN};
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

static void judge_cell(struct matrix *m, size_t cell, double *scratch)
{
    struct matrix_cell *at = &m->cells[cell];
    size_t n = 0;

    if (!matrix_has_value(at))
        return;
    for (size_t i = 0; i < m->n * m->n; i++)
        if (matrix_has_value(&m->cells[i]) && !strcmp(m->cells[i].kind, at->kind))
            scratch[n++] = m->cells[i].point->value;
    if (n < MATRIX_KIND_MIN)
        return;
    at->kind_median = stats_median(scratch, n);
    bool seems = is_behind(m, at->point->value, at->kind_median);
    double end = m->more_is_better ? at->point->high : at->point->low;
    at->slow = seems && is_behind(m, end, at->kind_median);
    at->vague = seems && !at->slow;
    m->slow += at->slow;
    m->vague += at->vague;
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

/* `all`: the pairs that seem slow and are not proven, too. */
static size_t judge_links(const struct matrix *m, struct link *links, bool all,
                          struct slow_host *slow)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n * m->n; i++) {
        const struct matrix_cell *cell = &m->cells[i];
        double value =
            (all ? matrix_has_value(cell) : counts_for_hosts(cell)) ? cell->point->value : 0;

        if (value > 0)
            links[n++] = (struct link){i / m->n, i % m->n, m->more_is_better ? value : 1 / value};
    }
    return links_judge(links, n, m->n, slow);
}

static bool has_host(const struct slow_host *slow, size_t n, size_t host)
{
    for (size_t i = 0; i < n; i++)
        if (slow[i].host == host)
            return true;
    return false;
}

/* Which hosts are behind the others, by their links. A pair that is not proven slow accuses none of
 * its ends. But to leave it out makes the others look fast, so that a host is named only if it is
 * behind with such pairs, too. */
static void judge_hosts(struct report *r, struct matrix *m)
{
    struct link *links = xcalloc(m->n * m->n, sizeof(*links));
    struct slow_host *with = pool_alloc(&r->pool, m->n, sizeof(*with));
    size_t n_with = judge_links(m, links, true, with), kept = 0;

    m->slow_hosts = pool_alloc(&r->pool, m->n, sizeof(*m->slow_hosts));
    m->n_slow_hosts = judge_links(m, links, false, m->slow_hosts);
    for (size_t k = 0; k < m->n_slow_hosts; k++)
        if (has_host(with, n_with, m->slow_hosts[k].host))
            m->slow_hosts[kept++] = m->slow_hosts[k];
    m->n_slow_hosts = kept;
    for (size_t i = 0; i < m->n * m->n; i++)
        for (size_t k = 0; k < m->n_slow_hosts; k++)
            if (m->slow_hosts[k].host == i / m->n || m->slow_hosts[k].host == i % m->n)
                m->cells[i].named = true;
    free(links);
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

        if (is_in(b, other, run) && is_host_pair(b, other) && !strcmp(other->metric, c->metric) &&
            !strcmp(report_param(b, other, "transport"), report_param(b, c, "transport")) &&
            (rate ? other_size > size : other_size < size))
            return false;
    }
    return true;
}

static void make_one(struct report *r, const struct report_bench *b, size_t run,
                     const struct report_case *first, struct matrix *m)
{
    *m = (struct matrix){.bench = b, .run = run, .metric = first->metric, .unit = first->unit};
    m->more_is_better = first->more_is_better;
    m->high = NAN;
    m->hosts = is_host_pair(b, first);
    m->title = title_of(r, b, first);
    m->ends = pool_alloc(&r->pool, MATRIX_ENDS_MAX, sizeof(*m->ends));
    m->n = list_ends(b, run, m->ends);
    m->cells = pool_alloc(&r->pool, m->n * m->n, sizeof(*m->cells));
    double *scratch = xcalloc(m->n * m->n, sizeof(*scratch));
    fill_cells(r, m, first);
    for (size_t i = 0; i < m->n * m->n; i++)
        judge_cell(m, i, scratch);
    free(scratch);
    if (m->hosts)
        judge_hosts(r, m);
}

static bool is_first(const struct report_bench *b, size_t run, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_in(b, &b->cases[i], run) && same_matrix(b, &b->cases[i], &b->cases[index]))
            return false;
    return is_in(b, &b->cases[index], run) && is_telling_size(b, run, &b->cases[index]);
}

void matrices_make(struct report *r, struct matrices *out)
{
    size_t n;
    const struct case_in_run *firsts = cases_that(r, is_first, &n);

    *out = (struct matrices){.all = pool_alloc(&r->pool, n, sizeof(*out->all))};
    for (size_t i = 0; i < n; i++) {
        struct matrix *m = &out->all[out->n];

        make_one(r, firsts[i].bench, firsts[i].run, firsts[i].c, m);
        out->n += m->measured > 0 && (!m->hosts || m->n > 2);
    }
}

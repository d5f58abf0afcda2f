/* SPDX-License-Identifier: Apache-2.0 */
/* Slow hosts: see links.h. */
#include "harness/report/links.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/stats.h"

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

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

/* Sorts; the higher of two middle values, or the lower. NaN of none. */
static double middle(double *values, size_t n, bool higher)
{
    if (!n)
        return NAN;
    qsort(values, n, sizeof(*values), by_value);
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

/* The links between hosts that are not low: their median, and the share of it that noise may take. */
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

int links_judge(const struct link *links, size_t n, size_t n_hosts, struct slow_host *slow,
                size_t *n_slow)
{
    size_t room = n + n_hosts + 1;
    struct judging j = {.links = links, .n = n, .n_hosts = n_hosts};
    struct slow_host *found = calloc(n_hosts + 1, sizeof(*found));
    int err = -ENOMEM;

    *n_slow = 0;
    j.levels = calloc(room, sizeof(double));
    j.scratch = calloc(room, sizeof(double));
    j.others = calloc(room, sizeof(double));
    j.low = calloc(n_hosts + 1, sizeof(bool));
    j.met = calloc(n_hosts + 1, sizeof(bool));
    if (found && j.levels && j.scratch && j.others && j.low && j.met) {
        err = 0;
        for (int way = LINKS_BOTH; n_hosts >= 3 && way <= LINKS_TO; way++)
            judge_way(&j, found, (enum links_way)way);
        for (size_t h = 0; h < n_hosts; h++)
            if (found[h].links)
                slow[(*n_slow)++] = found[h];
    }
    free(j.met);
    free(j.low);
    free(j.others);
    free(j.scratch);
    free(j.levels);
    free(found);
    return err;
}

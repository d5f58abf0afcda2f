/* SPDX-License-Identifier: Apache-2.0 */
/* Cases over pairs of hosts: see spread.h. */
#include "harness/hosts/spread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "harness/hosts/launcher.h"
#include "harness/plan/suite.h"

static bool is_spread(const struct suite_case *c)
{
    return c->between != BETWEEN_NONE && bench_takes_peer(c->bench);
}

static bool is_group(const struct suite_case *c)
{
    return c->between != BETWEEN_NONE && bench_needs(c->bench, "group");
}

bool spread_has_pairs(const struct suite *suite)
{
    for (size_t i = 0; i < suite->n; i++)
        if (is_spread(&suite->cases[i]))
            return true;
    return false;
}

bool spread_has_groups(const struct suite *suite)
{
    for (size_t i = 0; i < suite->n; i++)
        if (is_group(&suite->cases[i]))
            return true;
    return false;
}

/* The bouts of n hosts' tournament, numbered from 1, at [from * n + to] for from < to; 0 elsewhere. By
 * the circle method: one host stays, the others go round, and those opposite each other meet. With
 * an odd number one place of the circle is empty, and the host opposite to it pauses. */
static unsigned *spread_tournament(size_t n)
{
    unsigned *bouts = xcalloc(n * n, sizeof(*bouts));
    size_t even = n + n % 2;

    for (size_t bout = 0; n > 1 && bout < even - 1; bout++) {
        for (size_t k = 0; k < even / 2; k++) {
            size_t a = k ? (bout + k) % (even - 1) : even - 1;
            size_t b = (bout + even - 1 - k) % (even - 1);
            size_t from = a < b ? a : b, to = a < b ? b : a;
            if (to < n)
                bouts[from * n + to] = (unsigned)bout + 1;
        }
    }
    return bouts;
}

static bool is_pair(enum suite_between between, size_t n, size_t from, size_t to)
{
    switch (between) {
    case BETWEEN_RING:
        return n == 2 ? from == 0 && to == 1 : to == (from + 1) % n;
    case BETWEEN_FIRST:
        return from == 0 && to != 0;
    case BETWEEN_ALL:
    case BETWEEN_SAMPLE:
        return from < to;
    case BETWEEN_NONE:
        break;
    }
    return false;
}

/* Where a case is run. */
struct target {
    const char *from, *to, *hosts; /* NULL: none of these */
    unsigned bout;
};

static char *copy_text(const char *from)
{
    return from ? xstrdup(from) : NULL;
}

struct spreading {
    const struct hosts *hosts;
    struct suite_case *cases;
    size_t n;
    unsigned *bouts; /* of the tournament: spread_tournament() */
    unsigned *drawn; /* of its sample, where there is one: 0 for those left out */
    char *names;     /* of all hosts */
};

static int append(struct spreading *s, const struct suite_case *c, const struct target *t)
{
    if (s->n == SUITE_CASES_MAX)
        return -E2BIG;
    struct suite_case *copy = ARRAY_ADD(s->cases, s->n);
    *copy = *c;
    copy->meaning = NULL;
    copy->bout = t->bout;
    copy->arguments = xstrdup(c->arguments);
    copy->from = copy_text(t->from);
    copy->to = copy_text(t->to);
    copy->hosts = copy_text(t->hosts);
    return 0;
}

/* The hosts take their places in the circle by lot, so that the sample does not depend on the order
 * of the file. The ring's own pairs come behind, in two bouts: every second one, and the others. */
static void draw_sample(struct spreading *s, uint64_t seed)
{
    size_t n = s->hosts->n;
    uint32_t *place = xcalloc(n, sizeof(*place));
    struct rng rng;

    s->drawn = xcalloc(n * n, sizeof(*s->drawn));
    for (size_t i = 0; i < n; i++)
        place[i] = (uint32_t)i;
    rng_seed(&rng, seed);
    rng_shuffle_u32(&rng, place, n);
    for (size_t i = 0; n && i < n * n; i++) {
        size_t from = i / n, to = i % n;
        size_t a = place[from] < place[to] ? place[from] : place[to];
        size_t b = place[from] < place[to] ? place[to] : place[from];
        if (from < to && s->bouts[a * n + b] <= SPREAD_BOUTS)
            s->drawn[i] = s->bouts[a * n + b];
    }
    for (size_t i = 0; i < n; i++) {
        size_t next = (i + 1) % n, from = i < next ? i : next, to = i < next ? next : i;
        if (!s->drawn[from * n + to])
            s->drawn[from * n + to] = SPREAD_BOUTS + 1 + (i + 1 == n && n % 2 ? 2 : i % 2);
    }
    free(place);
}

static int append_pairs(struct spreading *s, const struct suite_case *c)
{
    size_t n = s->hosts->n;
    int err = 0;

    for (size_t i = 0; n && !err && i < n * n; i++) {
        struct target t = {.from = s->hosts->all[i / n].name,
                           .to = s->hosts->all[i % n].name,
                           .bout = c->between == BETWEEN_SAMPLE && s->drawn ? s->drawn[i]
                                   : c->between == BETWEEN_SAMPLE || c->between == BETWEEN_ALL
                                       ? s->bouts[i]
                                       : 0};
        if (!is_pair(c->between, n, i / n, i % n) ||
            (c->between == BETWEEN_SAMPLE && s->drawn && !t.bout))
            continue;
        err = append(s, c, &t);
    }
    return err;
}

static void free_cases(struct suite_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        suite_case_release(&cases[i]);
    free(cases);
}

int spread_suite(struct suite *suite, const struct hosts *hosts, uint64_t seed, char *error,
                 size_t len)
{
    struct spreading s = {
        .hosts = hosts, .bouts = spread_tournament(hosts->n), .names = hosts_names(hosts)};

    if (hosts->n > SPREAD_ALL)
        draw_sample(&s, seed);
    int err = 0;

    for (size_t i = 0; !err && i < suite->n; i++) {
        const struct suite_case *c = &suite->cases[i];
        bool spread = is_spread(c), group = is_group(c);
        err = spread ? append_pairs(&s, c)
                     : append(&s, c, &(struct target){.hosts = group ? s.names : NULL});
    }
    free(s.bouts);
    free(s.drawn);
    free(s.names);
    if (err) {
        free_cases(s.cases, s.n);
        snprintf(error, len,
                 "over %d cases with %zu hosts: shorten a list, or say 'between: sample'",
                 SUITE_CASES_MAX, hosts->n);
        return -EINVAL;
    }
    free_cases(suite->cases, suite->n);
    suite->cases = s.cases;
    suite->n = s.n;
    return 0;
}

/* A case of the suite stands once for every pair of hosts, one behind the other. */
static void count(const struct suite *suite, const struct hosts *hosts, const bool *planned,
                  bool *used, struct spread *spread)
{
    const struct suite_case *last = NULL;

    for (size_t i = 0; i < suite->n; i++) {
        const struct suite_case *c = &suite->cases[i];
        if (!planned[i])
            continue;
        spread->over += c->hosts != NULL;
        spread->here += !c->hosts && !c->from;
        if (!c->from)
            continue;
        size_t from = (size_t)(hosts_find(hosts, c->from) - hosts->all);
        size_t to = (size_t)(hosts_find(hosts, c->to) - hosts->all);
        bool *pair = &used[from * hosts->n + to];
        spread->between +=
            !last || last->bench != c->bench || strcmp(last->arguments, c->arguments);
        spread->pairs += !*pair;
        spread->bouts = c->bout > spread->bouts ? c->bout : spread->bouts;
        *pair = true;
        last = c;
    }
}

void spread_count(const struct suite *suite, const struct hosts *hosts, const struct plan *plan,
                  struct spread *spread)
{
    bool *planned = xcalloc(suite->n, sizeof(*planned));
    bool *used = xcalloc(hosts->n * hosts->n, sizeof(*used));

    *spread = (struct spread){0};
    for (size_t i = 0; i < plan->n; i++)
        planned[plan->launches[i].case_number - 1] = true;
    count(suite, hosts, planned, used, spread);
    free(planned);
    free(used);
}

static const char *plural(size_t n, const char *one, const char *more)
{
    return n == 1 ? one : more;
}

void spread_say(const struct hosts_run *run, const struct suite *suite, const struct plan *plan)
{
    const struct hosts *hosts = &run->hosts;
    struct spread spread;
    char by[LAUNCHER_BY_SIZE];

    spread_count(suite, hosts, plan, &spread);
    launcher_by(run, by);
    fputs("plumb run: ", stderr);
    if (spread.between) {
        fprintf(stderr, "between hosts, %s: %zu %s over %zu %s", by, spread.between,
                plural(spread.between, "case", "cases"), spread.pairs,
                plural(spread.pairs, "pair", "pairs"));
        if (spread.bouts > 1)
            fprintf(stderr, " in %u bouts, in each of which no host is in two pairs", spread.bouts);
        fputs("; ", stderr);
    }
    if (spread.over && !spread.between)
        fprintf(stderr, "over all hosts, %s", by);
    else if (spread.over)
        fputs("over all hosts", stderr);
    if (spread.over)
        fprintf(stderr, ": %zu %s with %u ranks on %zu %s; ", spread.over,
                plural(spread.over, "case", "cases"), hosts_slots(hosts), hosts->n,
                plural(hosts->n, "host", "hosts"));
    fprintf(stderr, "on this machine: %zu %s\n", spread.here, plural(spread.here, "case", "cases"));
}

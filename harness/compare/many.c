/* SPDX-License-Identifier: Apache-2.0 */
/* Three runs and more side by side: who is best in each component. See compare.h. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "core/text.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"

/* As of two runs (decide.c), shared among all pairs of runs (Bonferroni). */
#define ALARM_LEVEL 0.005
#define CONFIDENCE  0.95

static size_t pairs_of(size_t n)
{
    return n * (n - 1) / 2;
}

/* The pair whose A is run i and whose B is run k: i < k. */
static size_t index_of(size_t n, size_t i, size_t k)
{
    return i * n - i * (i + 1) / 2 + k - i - 1;
}

const struct pair *many_pair(const struct many *m, const struct many_case *c, size_t i, size_t k)
{
    return c->pairs[i < k ? index_of(m->n, i, k) : index_of(m->n, k, i)];
}

const char *const many_names[MANY_MAX] = {"A", "B", "C", "D", "E", "F", "G", "H"};

const struct run_folder *many_folders(const struct many *m, size_t set)
{
    const struct pairs *p = &m->pairs[set ? index_of(m->n, 0, set) : 0];

    return &p->report.runs[set ? p->n_a : 0];
}

const char *many_name(const struct many *m, size_t run)
{
    const struct pairs *p = &m->pairs[run ? index_of(m->n, 0, run) : 0];

    return p->report.names[run ? p->n_a : 0];
}

/* ---- loading */

int many_load(struct many *m, const struct run_set *sets, size_t n,
              const struct pairs_options *options, char *error, size_t len)
{
    struct pairs_options own = *options;
    int err = 0;

    *m = (struct many){.n = n, .sets = sets};
    m->pairs = calloc(pairs_of(n), sizeof(*m->pairs));
    if (!m->pairs) {
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
    own.decide.alarm_level = ALARM_LEVEL / (double)pairs_of(n);
    own.decide.confidence = 1 - (1 - CONFIDENCE) / (double)pairs_of(n);
    for (size_t i = 0; !err && i < n; i++)
        for (size_t k = i + 1; !err && k < n; k++) {
            struct pairs *p = &m->pairs[index_of(n, i, k)];

            own.name_a = many_names[i];
            own.name_b = many_names[k];
            m->n_pairs = index_of(n, i, k) + 1;
            err = pairs_load(p, (const char *const *)sets[i].all, sets[i].n,
                             (const char *const *)sets[k].all, sets[k].n, &own, error, len);
            if (!err)
                err = pairs_refuse_same(p, error, len);
            if (!err && pairs_disturb(p))
                err = -ENOMEM;
        }
    return err;
}

void many_release(struct many *m)
{
    for (size_t i = 0; i < m->n_pairs; i++)
        pairs_release(&m->pairs[i]);
    free(m->pairs);
    *m = (struct many){0};
}

/* ---- the cases of all pairs, by key */

struct found {
    const struct pair *pair;
    size_t of, order;
};

static int by_key(const void *x, const void *y)
{
    const struct found *a = x, *b = y;
    int order = strcmp(a->pair->key, b->pair->key);

    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static int by_component(const void *x, const void *y)
{
    const struct many_case *a = x, *b = y;
    int order = (a->pipe > b->pipe) - (a->pipe < b->pipe);

    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static struct found *find_all(struct many *m, struct pool *pool, size_t *n)
{
    size_t most = 0;

    for (size_t i = 0; i < m->n_pairs; i++)
        most += m->pairs[i].n;
    struct found *all = pool_alloc(pool, most + 1, sizeof(*all));
    *n = 0;
    for (size_t i = 0; all && i < m->n_pairs; i++)
        for (size_t k = 0; k < m->pairs[i].n; k++)
            all[(*n)++] = (struct found){&m->pairs[i].all[k], i, k};
    if (all)
        qsort(all, *n, sizeof(*all), by_key);
    return all;
}

/* The runs of a pair, by its index. */
static void runs_of(size_t n, size_t of, size_t *a, size_t *b)
{
    *a = 0;
    while (of >= n - 1 - *a)
        of -= n - 1 - (*a)++;
    *b = *a + 1 + of;
}

/* What all pairs of runs say of one case. */
struct account {
    unsigned lacks, failed, thinned; /* a bit a run */
    bool refused, taken;
    const struct pair *first[MANY_MAX]; /* that says so of the run */
};

static void account_for(struct account *of, size_t run, bool lacks, bool failed,
                        const struct pair *pair)
{
    if (lacks)
        of->lacks |= 1u << run;
    if (failed)
        *(lacks ? &of->failed : &of->thinned) |= 1u << run;
    if ((lacks || failed) && (!of->first[run] || lacks))
        of->first[run] = pair;
}

static void add_account(struct account *of, const struct many *m, const struct found *found)
{
    const struct pair *pair = found->pair;
    size_t a, b;

    if (pair->state == PAIR_LOST_BOTH || pair->state == PAIR_LEFT_OUT)
        return; /* a third run, if any, has the value; nothing is lost */
    runs_of(m->n, found->of, &a, &b);
    account_for(of, a, pair->state == PAIR_LOST_A, pair->failed_a, pair);
    account_for(of, b, pair->state == PAIR_LOST_B, pair->failed_b, pair);
    of->refused |= pair->state == PAIR_REFUSED;
    of->taken |= pair->state == PAIR_TAKEN;
}

static void close_account(struct many *m, const struct account *of)
{
    m->n_refused += of->refused;
    m->n_taken += of->taken;
    for (size_t run = 0; run < m->n; run++) {
        struct many_run *r = &m->runs[run];

        r->n_lacking += of->lacks >> run & 1;
        r->n_failed += of->failed >> run & 1;
        r->n_thinned += (of->thinned & ~of->lacks) >> run & 1;
        if (!r->first)
            r->first = of->first[run];
    }
}

/* One case: all that was found of its key. Only what two runs measured is a case to be judged. */
static void collect_case(struct many *m, struct pool *pool, const struct found *all, size_t n)
{
    struct many_case *c = NULL;
    struct account of = {0};

    for (size_t i = 0; i < n; i++) {
        const struct pair *pair = all[i].pair;

        add_account(&of, m, &all[i]);
        if (pair->state != PAIR_READY && pair->state != PAIR_TAKEN)
            continue;
        if (!c) {
            c = &m->cases[m->n_cases++];
            *c = (struct many_case){.pair = pair,
                                    .order = all[i].order,
                                    .pairs = pool_alloc(pool, m->n_pairs, sizeof(pair))};
        }
        if (c->pairs)
            c->pairs[all[i].of] = pair;
    }
    if (c)
        c->lacks = of.lacks;
    close_account(m, &of);
}

static int collect(struct many *m, struct pool *pool)
{
    size_t n, end;
    const struct found *all = find_all(m, pool, &n);

    m->cases = pool_alloc(pool, n + 1, sizeof(*m->cases));
    for (size_t i = 0; all && m->cases && i < n; i = end) {
        for (end = i + 1; end < n && !strcmp(all[end].pair->key, all[i].pair->key);)
            end++;
        collect_case(m, pool, &all[i], end - i);
    }
    return pool->failed ? -ENOMEM : 0;
}

/* ---- who is best */

enum decision many_decision(const struct many *m, const struct many_case *c, size_t i, size_t k)
{
    const struct pair *pair = many_pair(m, c, i, k);
    enum decision d = pair ? pair->decide.decision : DECISION_INCONCLUSIVE;

    if (i > k) /* the pair's B is i */
        return d;
    return d == DECISION_BETTER ? DECISION_WORSE : d == DECISION_WORSE ? DECISION_BETTER : d;
}

double many_ratio(const struct many *m, const struct many_case *c, size_t i, size_t k)
{
    const struct pair *pair = many_pair(m, c, i, k);

    if (!pair || pair->state != PAIR_READY)
        return NAN;
    return i < k ? pair->decide.ratio : 1 / pair->decide.ratio;
}

static bool is_beaten(const struct many *m, const struct many_case *c, size_t run)
{
    bool beaten = false;

    for (size_t k = 0; k < m->n; k++)
        beaten = beaten || (k != run && many_decision(m, c, run, k) == DECISION_WORSE);
    return beaten;
}

/* Those of `group` that stand in one relation to each other, in each of the cases. */
static bool all_equivalent(const struct many *m, const struct many_case *const *cases, size_t n,
                           unsigned group)
{
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < m->n; i++)
            for (size_t k = i + 1; k < m->n; k++)
                if ((group >> i & 1) && (group >> k & 1) &&
                    many_decision(m, cases[c], i, k) != DECISION_EQUIVALENT)
                    return false;
    return true;
}

/* Is the run itself proven better than each other one of `others`, in some of the cases? */
static bool beats_each(const struct many *m, const struct many_case *const *cases, size_t n,
                       size_t run, unsigned others)
{
    unsigned beaten = 1u << run;

    for (size_t c = 0; c < n; c++)
        for (size_t k = 0; k < m->n; k++)
            if (k != run && many_decision(m, cases[c], run, k) == DECISION_BETTER)
                beaten |= 1u << k;
    return !(others & ~beaten);
}

static struct many_best best_of(const struct many *m, const struct many_case *const *cases,
                                size_t n)
{
    struct many_best best = {.state = MANY_MIXED};
    unsigned lost = 0;

    for (size_t c = 0; c < n; c++) {
        best.lacks |= cases[c]->lacks;
        for (size_t run = 0; run < m->n; run++)
            lost |= (unsigned)is_beaten(m, cases[c], run) << run;
    }
    unsigned whole = ~best.lacks & ((1u << m->n) - 1);
    best.group = whole & ~lost;
    int left = __builtin_popcount(best.group);

    if (__builtin_popcount(whole) < 2)
        best.state = MANY_ALONE;
    else if (left == 1)
        best.state = beats_each(m, cases, n, (size_t)__builtin_ctz(best.group), whole)
                         ? MANY_WINNER
                         : MANY_UNDECIDED;
    else if (left)
        best.state = all_equivalent(m, cases, n, best.group) ? MANY_EQUIVALENT : MANY_UNDECIDED;
    return best;
}

static size_t find_pipe(struct many *m, const char *name)
{
    size_t i = 0;

    while (i < m->n_pipes && strcmp(m->pipes[i].name, name) != 0)
        i++;
    if (i == m->n_pipes)
        m->pipes[m->n_pipes++] = (struct many_pipe){.name = name};
    return i;
}

/* Components in the order of the suite. */
static int sort_cases(struct many *m, struct pool *pool)
{
    m->pipes = pool_alloc(pool, m->n_cases + 1, sizeof(*m->pipes));
    if (!m->pipes)
        return -ENOMEM;
    qsort(m->cases, m->n_cases, sizeof(*m->cases), by_component); /* by order alone */
    for (size_t i = 0; i < m->n_cases; i++)
        m->pipes[m->cases[i].pipe = find_pipe(m, m->cases[i].pair->pipe)].n++;
    qsort(m->cases, m->n_cases, sizeof(*m->cases), by_component);
    return 0;
}

static int judge(struct many *m, struct pool *pool)
{
    const struct many_case **all = pool_alloc(pool, m->n_cases + 1, sizeof(*all));
    size_t first = 0;

    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_cases; i++) {
        all[i] = &m->cases[i];
        m->cases[i].best = best_of(m, &all[i], 1);
    }
    for (size_t i = 0; i < m->n_pipes; first += m->pipes[i++].n)
        m->pipes[i].best = best_of(m, &all[first], m->pipes[i].n);
    return 0;
}

int many_judge(struct many *m)
{
    struct pool *pool = &m->pairs[0].report.pool;
    int err = collect(m, pool);

    if (!err)
        err = sort_cases(m, pool);
    if (!err)
        err = judge(m, pool);
    for (size_t i = 0; !err && i < m->n_pairs; i++) {
        size_t unfinished;

        pairs_unfinished(&m->pairs[i], &unfinished);
        m->n_unfinished += unfinished;
    }
    return err;
}

int many_exit(const struct many *m)
{
    bool undecided = !m->n_cases || m->n_taken, incomplete = m->n_unfinished || m->n_refused;

    for (size_t i = 0; i < m->n_pipes; i++)
        undecided |=
            m->pipes[i].best.state == MANY_UNDECIDED || m->pipes[i].best.state == MANY_ALONE;
    for (size_t run = 0; run < m->n; run++)
        incomplete |= m->runs[run].n_lacking || m->runs[run].n_thinned;
    return incomplete ? EXIT_INCOMPLETE : undecided ? EXIT_UNDECIDED : EXIT_GOOD;
}

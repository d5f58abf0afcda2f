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

static const struct pair *pair_of(const struct many *m, const struct many_case *c, size_t i,
                                  size_t k)
{
    return c->pairs[i < k ? index_of(m->n, i, k) : index_of(m->n, k, i)];
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

/* Of run i against run k: DECISION_BETTER: i is better. INCONCLUSIVE where they did not pair. */
static enum decision decision_of(const struct many *m, const struct many_case *c, size_t i,
                                 size_t k)
{
    const struct pair *pair = pair_of(m, c, i, k);
    enum decision d = pair ? pair->decide.decision : DECISION_INCONCLUSIVE;

    if (i > k) /* the pair's B is i */
        return d;
    return d == DECISION_BETTER ? DECISION_WORSE : d == DECISION_WORSE ? DECISION_BETTER : d;
}

static bool is_beaten(const struct many *m, const struct many_case *c, size_t run)
{
    bool beaten = false;

    for (size_t k = 0; k < m->n; k++)
        beaten = beaten || (k != run && decision_of(m, c, run, k) == DECISION_WORSE);
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
                    decision_of(m, cases[c], i, k) != DECISION_EQUIVALENT)
                    return false;
    return true;
}

static size_t count_runs(const struct many *m, unsigned group)
{
    size_t n = 0;

    for (size_t run = 0; run < m->n; run++)
        n += group >> run & 1;
    return n;
}

static size_t first_run(unsigned group)
{
    size_t run = 0;

    while (!(group >> run & 1))
        run++;
    return run;
}

/* Is the run itself proven better than each other one of `others`, in some of the cases? */
static bool beats_each(const struct many *m, const struct many_case *const *cases, size_t n,
                       size_t run, unsigned others)
{
    unsigned beaten = 1u << run;

    for (size_t c = 0; c < n; c++)
        for (size_t k = 0; k < m->n; k++)
            if (k != run && decision_of(m, cases[c], run, k) == DECISION_BETTER)
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
    size_t left = count_runs(m, best.group);

    if (count_runs(m, whole) < 2)
        best.state = MANY_ALONE;
    else if (left == 1)
        best.state =
            beats_each(m, cases, n, first_run(best.group), whole) ? MANY_WINNER : MANY_UNDECIDED;
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

/* ---- what tells the runs apart */

static const struct {
    const char *what, *path;
} facts[] = {
    {"NVIDIA driver", "machine.gpus.driver_version"},
    {"BIOS", "machine.host.bios"},
    {"CPU microcode", "machine.cpu.microcode"},
    {"kernel", "machine.host.kernel"},
    {"CPU model", "machine.cpu.model"},
    {"virtualisation", "machine.virtualization.hypervisor"},
    {"cores", "machine.cpu.cores"},
    {"CUDA", "machine.gpus.cuda.toolkit_version"},
    {"plumb commit", "commit"},
    {"suite", "suite"},
    {"host", "machine.host.hostname"},
};
#define FACTS (sizeof(facts) / sizeof(*facts))

/* The runs of a set. */
static const struct run_folder *folders_of(const struct many *m, size_t set)
{
    const struct pairs *p = &m->pairs[set ? index_of(m->n, 0, set) : 0];

    return &p->report.runs[set ? p->n_a : 0];
}

/* The run.json of a set's first run. */
static const json_t *meta_of(const struct many *m, size_t run)
{
    return folders_of(m, run)->meta;
}

static const char *name_of(const struct many *m, size_t run)
{
    const struct pairs *p = &m->pairs[run ? index_of(m->n, 0, run) : 0];

    return p->report.names[run ? p->n_a : 0];
}

/* *mixed (may be NULL) is set where the runs of the set do not agree. */
static const char *fact_of(struct pool *pool, const struct many *m, size_t run, size_t fact,
                           bool *mixed)
{
    size_t n = m->sets[run].n;
    const char **texts = pool_alloc(pool, n, sizeof(*texts));

    for (size_t i = 0; texts && i < n; i++) {
        texts[i] = differ_text(pool, differ_find(folders_of(m, run)[i].meta, facts[fact].path));
        if (!*texts[i])
            return ""; /* one does not tell */
    }
    return texts ? shares_text(pool, texts, n, "runs", mixed) : "";
}

/* How many different texts all runs have of a fact; 0: one does not tell, or
 * is a set whose runs do not agree. */
static size_t count_different(struct pool *pool, const struct many *m, size_t fact)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        bool known = false, mixed = false;
        const char *text = fact_of(pool, m, i, fact, &mixed);

        if (!*text || mixed)
            return 0;
        for (size_t k = 0; k < i; k++)
            known = known || !strcmp(fact_of(pool, m, k, fact, NULL), text);
        n += !known;
    }
    return n;
}

/* The fact that tells most runs apart; FACTS: none does. */
static size_t telling_fact(struct pool *pool, const struct many *m)
{
    size_t best = FACTS, most = 1;

    for (size_t i = 0; i < FACTS; i++) {
        size_t n = count_different(pool, m, i);

        if (n > most) {
            most = n;
            best = i;
        }
    }
    return best;
}

/* ---- the document */

static const char *letters(struct pool *pool, const struct many *m, unsigned group)
{
    const char **names = pool_alloc(pool, m->n, sizeof(*names));
    size_t n = 0;

    for (size_t i = 0; names && i < m->n; i++)
        if (group >> i & 1)
            names[n++] = many_names[i];
    return names ? words_list(pool, names, n) : "";
}

static const char *best_text(struct pool *pool, const struct many *m, const struct many_best *best)
{
    unsigned every = (1u << m->n) - 1;
    const char *group = best->group == every ? "all" : letters(pool, m, best->group);

    switch (best->state) {
    case MANY_WINNER:
        return best->lacks ? pool_text(pool, "%s is best of %s", group,
                                       letters(pool, m, every & ~best->lacks))
                           : pool_text(pool, "%s is best", group);
    case MANY_EQUIVALENT:
        return pool_text(pool, "%s equivalent", group);
    case MANY_UNDECIDED:
        return count_runs(m, best->group) > 1 ? pool_text(pool, "%s cannot be told apart", group)
                                              : pool_text(pool, "%s is not proven best", group);
    case MANY_ALONE:
        return pool_text(pool, "not all measured: %s lack cases", letters(pool, m, best->lacks));
    case MANY_MIXED:
        if (best->lacks)
            return pool_text(pool, "%s mixed", letters(pool, m, every & ~best->lacks));
        return "mixed";
    default:
        return "mixed";
    }
}

/* As best_text(), to begin a sentence that goes on with the components. */
static const char *best_clause(struct pool *pool, const struct many *m,
                               const struct many_best *best)
{
    bool every = best->group == (1u << m->n) - 1;
    const char *group = every ? "All runs" : letters(pool, m, best->group);
    const char *whole = letters(pool, m, ((1u << m->n) - 1) & ~best->lacks);

    switch (best->state) {
    case MANY_EQUIVALENT:
        return pool_text(pool, "%s are equivalent in", group);
    case MANY_UNDECIDED:
        return count_runs(m, best->group) > 1
                   ? pool_text(pool, "%s cannot be told apart in", every ? "The runs" : group)
                   : pool_text(pool, "%s is never beaten, and not proven best, in", group);
    case MANY_MIXED:
        return best->lacks ? pool_text(pool, "%s each win and lose cases in", whole)
                           : "Each run is beaten in some case in";
    case MANY_ALONE:
        return "No two runs have all cases in";
    default:
        return pool_text(pool, "%s in", best_text(pool, m, best));
    }
}

/* "1.12 to 1.18 times A": the winner's intervals in the cases where it is better than the base. */
static const char *gain_text(struct pool *pool, const struct many *m, const struct many_pipe *pipe)
{
    size_t run = first_run(pipe->best.group), n = 0;
    double low = INFINITY, high = 0;

    for (size_t i = 0; run && i < m->n_cases; i++) {
        const struct many_case *c = &m->cases[i];
        const struct pair *pair = pair_of(m, c, run, 0);

        if (strcmp(c->pair->pipe, pipe->name) != 0 || decision_of(m, c, run, 0) != DECISION_BETTER)
            continue;
        low = fmin(low, pair->decide.low);
        high = fmax(high, pair->decide.high);
        n++;
    }
    if (!n)
        return "";
    return n == pipe->n ? pool_text(pool, " (%.3g to %.3g times A)", low, high)
                        : pool_text(pool, " (%.3g to %.3g times A in %zu of %zu cases)", low, high,
                                    n, pipe->n);
}

static const char *more_text(struct pool *pool, const struct many *m)
{
    size_t most = 0;

    for (size_t i = 0; i < m->n_cases; i++)
        for (size_t k = 0; k < m->n_pairs; k++) {
            const struct pair *pair = m->cases[i].pairs[k];

            if (pair && m->cases[i].best.state == MANY_UNDECIDED &&
                pair->decide.more_launches > most)
                most = pair->decide.more_launches;
        }
    return most ? pool_text(pool, ": up to %zu more %s would decide", most,
                            m->pairs[0].overall.by_runs ? "runs" : "launches")
                : "";
}

static bool is_like(const struct many_best *a, const struct many_best *b)
{
    return a->state == b->state && a->lacks == b->lacks &&
           (a->state == MANY_MIXED || a->state == MANY_ALONE || a->group == b->group);
}

/* "Memory (1.28 to 1.32 times A in 14 of 14 cases) and Copies": the components of one result. */
static const char *components_of(struct pool *pool, const struct many *m, size_t first)
{
    const char **names = pool_alloc(pool, m->n_pipes, sizeof(*names));
    size_t n = 0;

    for (size_t i = first; names && i < m->n_pipes; i++)
        if (is_like(&m->pipes[i].best, &m->pipes[first].best))
            names[n++] =
                m->pipes[i].best.state == MANY_WINNER
                    ? pool_text(pool, "%s%s", m->pipes[i].name, gain_text(pool, m, &m->pipes[i]))
                    : m->pipes[i].name;
    return names ? words_list(pool, names, n) : "";
}

/* "B has no value in 18 cases of other runs, and failed in 2 of them." */
static const char *missing_text(struct pool *pool, const struct many *m, size_t run)
{
    const struct many_run *r = &m->runs[run];
    const char *text = "", *name = many_names[run];

    if (r->n_lacking > r->n_failed)
        text = pool_text(pool, ". %s has no value in %s of other runs", name,
                         show_count(pool, r->n_lacking - r->n_failed, "case"));
    if (r->n_failed)
        text = pool_text(pool, "%s. %s failed or gave wrong data in %s of other runs", text, name,
                         show_count(pool, r->n_failed, "case"));
    if (r->n_thinned)
        text = pool_text(pool, "%s. Some launches of %s failed or gave wrong data in %s", text,
                         name, show_count(pool, r->n_thinned, "case"));
    return text;
}

/* What makes the comparison incomplete, or leaves cases undecided. */
static const char *gaps_text(struct pool *pool, const struct many *m)
{
    const char *text = "";

    for (size_t run = 0; run < m->n; run++)
        text = pool_text(pool, "%s%s", text, missing_text(pool, m, run));
    if (m->n_refused)
        text = pool_text(pool, "%s. %s: two runs measured another quantity", text,
                         show_count(pool, m->n_refused, "case"));
    if (m->n_taken)
        text = pool_text(pool, "%s. %s undecided: left out by --steal", text,
                         show_count(pool, m->n_taken, "case"));
    return m->n_unfinished ? pool_text(pool, "%s. A run was not measured to its end", text) : text;
}

/* Who wins where; then what cannot be told; then what is missing. */
static const char *sentence(struct pool *pool, const struct many *m)
{
    const char *won = "", *rest = "";

    for (size_t i = 0; i < m->n_pipes; i++) {
        const struct many_best *best = &m->pipes[i].best;
        bool known = false;

        for (size_t k = 0; k < i; k++)
            known = known || is_like(&m->pipes[k].best, best);
        if (known)
            continue;
        const char **to = best->state == MANY_WINNER ? &won : &rest;
        const char *text =
            pool_text(pool, "%s %s%s", best_clause(pool, m, best), components_of(pool, m, i),
                      best->state == MANY_UNDECIDED ? more_text(pool, m) : "");

        *to = **to ? pool_text(pool, "%s. %s", *to, text) : text;
    }
    const char *answer = *won && *rest ? pool_text(pool, "%s. %s", won, rest)
                         : *won        ? won
                         : *rest       ? rest
                                       : "No case pairs";

    return pool_text(pool, "%s%s", answer, gaps_text(pool, m));
}

static const char *run_text(struct pool *pool, const struct many *m, size_t run, size_t fact)
{
    const char *host = differ_text(pool, differ_find(meta_of(m, run), "machine.host.hostname"));
    const char *text = name_of(m, run);

    if (m->sets[run].n > 1)
        text = pool_text(pool, "%s and %zu more", text, m->sets[run].n - 1);
    if (fact < FACTS)
        text = pool_text(pool, "%s: %s %s", text, facts[fact].what, fact_of(pool, m, run, fact, NULL));
    return *host ? pool_text(pool, "%s, on %s, %s", text, host,
                             differ_text(pool, differ_find(meta_of(m, run), "started_utc")))
                 : text;
}

static const char *reason_of(const struct pair *pair)
{
    return *pair->reason ? pair->reason : "no reason is given";
}

static void add_answers(struct document *d, struct pool *pool, const struct many *m)
{
    static const char *const words[] = {
        [EXIT_GOOD] = "decided", [EXIT_UNDECIDED] = "undecided", [EXIT_INCOMPLETE] = "incomplete"};
    size_t fact = telling_fact(pool, m);

    document_answer(d, "Verdict", words[many_exit(m)],
                    many_exit(m) == EXIT_INCOMPLETE ? TONE_LOW : TONE_NONE, sentence(pool, m));
    for (size_t i = 0; i < m->n; i++)
        document_answer(d, many_names[i], "", TONE_NONE, run_text(pool, m, i, fact));
    document_answer(d, "Rests on", "", TONE_NONE,
                    pool_text(pool,
                              "%zu comparisons of two runs; intervals and proof hold over all of "
                              "them (%.1f %% each)",
                              m->n_pairs, 100 - 5.0 / (double)m->n_pairs));
    for (size_t i = 0; i < m->n; i++)
        if (m->runs[i].first)
            document_answer(d, "Note", "", TONE_LOW,
                            pool_text(pool, "%s lacks values, such as '%s': %s", many_names[i],
                                      m->runs[i].first->label, reason_of(m->runs[i].first)));
}

/* "B (driver 580)". */
static const char *column_name(struct pool *pool, const struct many *m, size_t run, size_t fact,
                               const char *format)
{
    const char *letter = pool_text(pool, format, many_names[run]);

    return fact < FACTS ? pool_text(pool, "%s, %s", letter, fact_of(pool, m, run, fact, NULL)) : letter;
}

/* The first columns, those of the runs, and the last. */
static struct document_column *make_columns(struct pool *pool, const struct many *m, size_t before)
{
    struct document_column *columns = pool_alloc(pool, before + m->n + 1, sizeof(*columns));
    size_t fact = telling_fact(pool, m);

    for (size_t i = 0; columns && i < m->n; i++)
        columns[before + i] = (struct document_column){
            column_name(pool, m, i, fact, i ? "%s / A" : "%s"), COLUMN_GOES_LAST, true};
    if (columns)
        columns[before + m->n] = (struct document_column){"Best", COLUMN_STAYS, false};
    return columns;
}

/* "0.98 to 1.12": the ratios to the base in the component, from the lowest to the highest. */
static const char *ratios_text(struct pool *pool, const struct many *m, const char *pipe,
                               size_t run)
{
    double low = INFINITY, high = 0;

    for (size_t i = 0; i < m->n_cases; i++) {
        const struct pair *pair = pair_of(m, &m->cases[i], 0, run);

        if (!pair || strcmp(m->cases[i].pair->pipe, pipe) != 0)
            continue;
        low = fmin(low, pair->decide.ratio);
        high = fmax(high, pair->decide.ratio);
    }
    return low > high    ? ""
           : low == high ? pool_text(pool, "%.3f", low)
                         : pool_text(pool, "%.3f to %.3f", low, high);
}

static void add_components(struct document *d, struct pool *pool, const struct many *m)
{
    struct document_column *columns = make_columns(pool, m, 2);
    struct document_table *t = NULL;

    if (columns) {
        columns[0] = (struct document_column){"Component", COLUMN_STAYS, false};
        columns[1] = (struct document_column){"Cases", COLUMN_GOES_FIRST, true};
        t = document_table(d, columns, m->n + 3);
    }
    for (size_t i = 0; t && i < m->n_pipes; i++) {
        const struct many_pipe *pipe = &m->pipes[i];
        struct cell *row = document_row(t);

        row[0] = cell_text(pipe->name);
        row[1] = cell_text(pool_text(pool, "%zu", pipe->n));
        row[2] = cell_text("1");
        for (size_t run = 1; run < m->n; run++)
            row[2 + run] = cell_text(ratios_text(pool, m, pipe->name, run));
        row[2 + m->n] = cell_text(best_text(pool, m, &pipe->best));
    }
}

static const char *base_text(struct pool *pool, const struct many *m, const struct many_case *c)
{
    for (size_t run = 1; run < m->n; run++) {
        const struct pair *pair = pair_of(m, c, 0, run);

        if (pair && pair->state == PAIR_READY)
            return pool_text(pool, "%s %s", document_number(pool, pair->decide.a_value),
                             pair->c->unit);
    }
    return "";
}

/* Is there nothing to choose from? */
static bool is_even(const struct many *m, const struct many_case *c)
{
    return c->best.state == MANY_EQUIVALENT && c->best.group == (1u << m->n) - 1;
}

static void add_case(struct document_table *t, struct pool *pool, const struct many *m,
                     const struct many_case *c)
{
    struct cell *row = document_row(t);

    row[0] = cell_text(c->pair->pipe);
    row[1] = cell_text(c->pair->label);
    row[2] = cell_text(base_text(pool, m, c));
    for (size_t run = 1; run < m->n; run++) {
        const struct pair *pair = pair_of(m, c, 0, run);

        row[2 + run] =
            cell_text(pair && pair->state == PAIR_READY ? view_figures(pool, pair).both : "");
    }
    row[2 + m->n] = cell_text(best_text(pool, m, &c->best));
}

/* even: those alone in which all runs are equivalent; else the others. Returns how many it left. */
static size_t add_cases(struct document *d, struct pool *pool, const struct many *m, bool even)
{
    struct document_column *columns = make_columns(pool, m, 2);
    struct document_table *t = NULL;
    size_t left = 0;

    if (columns) {
        columns[0] = (struct document_column){"Component", COLUMN_STAYS, false};
        columns[1] = (struct document_column){"Case", COLUMN_STAYS, false};
        t = document_table(d, columns, m->n + 3);
    }
    for (size_t i = 0; t && i < m->n_cases; i++)
        if (is_even(m, &m->cases[i]) == even)
            add_case(t, pool, m, &m->cases[i]);
        else
            left++;
    return left;
}

static void add_all_cases(struct document *d, struct pool *pool, const struct many *m,
                          enum view_for reader)
{
    document_heading(d, 3, "Cases", "");
    size_t even = add_cases(d, pool, m, false);
    const char *count =
        pool_text(pool, "%s in which all runs are equivalent", show_count(pool, even, "case"));

    if (even && (reader == VIEW_PAGE || reader == VIEW_ALL))
        add_cases(document_fold(d, count), pool, m, true);
    else if (even)
        document_item(
            d, pool_text(pool, "%s%s", count, reader == VIEW_TERMINAL ? ": --all lists them" : ""));
}

static void add_differences(struct document *d, struct pool *pool, const struct many *m)
{
    struct document_column *columns = pool_alloc(pool, m->n + 1, sizeof(*columns));
    struct document_table *t = NULL;

    for (size_t i = 0; columns && i < m->n; i++)
        columns[i + 1] = (struct document_column){many_names[i], COLUMN_STAYS, false};
    if (columns) {
        columns[0] = (struct document_column){"What differs", COLUMN_STAYS, false};
        t = document_table(d, columns, m->n + 1);
    }
    for (size_t f = 0; t && f < FACTS; f++) {
        if (count_different(pool, m, f) == 1)
            continue;
        bool any = false;

        for (size_t i = 0; i < m->n; i++)
            any = any || *fact_of(pool, m, i, f, NULL);
        struct cell *row = any ? document_row(t) : NULL;

        if (row)
            row[0] = cell_text(facts[f].what);
        for (size_t i = 0; row && i < m->n; i++) {
            const char *text = fact_of(pool, m, i, f, NULL);

            row[i + 1] = cell_text(*text ? text : "not known");
        }
    }
}

static struct document *many_document(struct many *m, enum view_for reader)
{
    struct pool *pool = &m->pairs[0].report.pool;
    struct document *d = document_new(pool);

    add_answers(d, pool, m);
    add_components(d, pool, m);
    add_all_cases(d, pool, m, reader);
    document_paragraph(d,
                       "Ratios are to A, inverted where lower is better: below 1, A is better. "
                       "Best: a run that has all values, that no other run is proven better than, "
                       "and that is proven better than each other one in some case.");
    document_heading(d, 3, "What differs among the runs", "");
    add_differences(d, pool, m);
    return d;
}

int many_print_text(FILE *out, struct many *m, bool all)
{
    struct document_terminal terminal = document_terminal_of(out);

    terminal.folds = all;
    return document_write_terminal(many_document(m, all ? VIEW_ALL : VIEW_TERMINAL), &terminal,
                                   out);
}

static const char *title_of(struct pool *pool, const struct many *m)
{
    const char **names = pool_alloc(pool, m->n, sizeof(*names));

    for (size_t i = 0; names && i < m->n; i++)
        names[i] = name_of(m, i);
    return names ? words_list(pool, names, m->n) : "";
}

int many_print_markdown(FILE *out, struct many *m)
{
    struct pool *pool = &m->pairs[0].report.pool;
    struct document *head = document_new(pool);

    document_heading(head, 2, title_of(pool, m), "");
    document_write_markdown(head, out);
    fputc('\n', out);
    return document_write_markdown(many_document(m, VIEW_COMMENT), out);
}

int many_print_html(FILE *out, struct many *m)
{
    const char *title = title_of(&m->pairs[0].report.pool, m);

    return view_print_page(out, title, title, many_document(m, VIEW_PAGE));
}

/* ---- for programs */

static const char *const best_codes[] = {[MANY_MIXED] = "mixed",
                                         [MANY_WINNER] = "winner",
                                         [MANY_EQUIVALENT] = "equivalent",
                                         [MANY_UNDECIDED] = "undecided",
                                         [MANY_ALONE] = "incomplete"};

static json_t *text_json(struct pool *pool, const char *text)
{
    return json_string(view_printable(pool, text));
}

static json_t *best_json(const struct many *m, const struct many_best *best)
{
    json_t *group = json_array();

    for (size_t i = 0; i < m->n; i++)
        if (best->group >> i & 1)
            json_array_append_new(group, json_string(many_names[i]));
    return json_pack("{s:s, s:o}", "state", best_codes[best->state], "runs", group);
}

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *case_json(struct pool *pool, const struct many *m, const struct many_case *c)
{
    json_t *pairs = json_array();

    for (size_t i = 0; i < m->n; i++)
        for (size_t k = i + 1; k < m->n; k++) {
            const struct pair *pair = pair_of(m, c, i, k);

            if (pair)
                json_array_append_new(pairs, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:b}", "a",
                                                       many_names[i], "b", many_names[k], "verdict",
                                                       decision_name(pair->decide.decision),
                                                       "ratio", number_json(pair->decide.ratio),
                                                       "ratio_low", number_json(pair->decide.low),
                                                       "ratio_high", number_json(pair->decide.high),
                                                       "disturbed", (int)pair->explained));
        }
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "key", text_json(pool, c->pair->key), "label",
                     text_json(pool, c->pair->label), "pipe", text_json(pool, c->pair->pipe),
                     "best", best_json(m, &c->best), "pairs", pairs);
}

int many_print_json(FILE *out, struct many *m)
{
    struct pool *pool = &m->pairs[0].report.pool;
    json_t *runs = json_array(), *pipes = json_array(), *cases = json_array();
    int err = -ENOMEM;

    for (size_t i = 0; i < m->n; i++)
        json_array_append_new(runs, json_pack("{s:s, s:o}", "letter", many_names[i], "name",
                                              text_json(pool, name_of(m, i))));
    for (size_t i = 0; i < m->n_pipes; i++)
        json_array_append_new(
            pipes, json_pack("{s:o, s:I, s:o}", "pipe", text_json(pool, m->pipes[i].name), "cases",
                             (json_int_t)m->pipes[i].n, "best", best_json(m, &m->pipes[i].best)));
    for (size_t i = 0; i < m->n_cases; i++)
        json_array_append_new(cases, case_json(pool, m, &m->cases[i]));
    json_t *o = json_pack("{s:i, s:i, s:o, s:I, s:o, s:o, s:o}", "schema", 2, "exit", many_exit(m),
                          "sentence", text_json(pool, sentence(pool, m)), "comparisons",
                          (json_int_t)m->n_pairs, "runs", runs, "pipes", pipes, "cases", cases);
    if (o) {
        err = json_dumpf(o, out, JSON_INDENT(1)) || fputc('\n', out) == EOF ? -EIO : 0;
        json_decref(o);
    }
    return err;
}

int many_print_csv(FILE *out, struct many *m)
{
    fputs("pipe,key,label,a,b,verdict,ratio,ratio_low,ratio_high\n", out);
    for (size_t c = 0; c < m->n_cases; c++)
        for (size_t i = 0; i < m->n; i++)
            for (size_t k = i + 1; k < m->n; k++) {
                const struct pair *pair = pair_of(m, &m->cases[c], i, k);

                if (!pair)
                    continue;
                csv_print(out, pair->pipe);
                fputc(',', out);
                csv_print(out, pair->key);
                fputc(',', out);
                csv_print(out, pair->label);
                fprintf(out, ",%s,%s,%s,", many_names[i], many_names[k],
                        decision_name(pair->decide.decision));
                csv_print_number(out, pair->decide.ratio);
                fputc(',', out);
                csv_print_number(out, pair->decide.low);
                fputc(',', out);
                csv_print_number(out, pair->decide.high);
                fputc('\n', out);
            }
    return ferror(out) ? -EIO : 0;
}

const char *const many_names[MANY_MAX] = {"A", "B", "C", "D", "E", "F", "G", "H"};

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
        for (size_t k = 0; k < m->pairs[i].n; k++) {
            const struct pair *pair = &m->pairs[i].all[k];

            if (pair->state == PAIR_READY && isfinite(pair->decide.ratio))
                all[(*n)++] = (struct found){pair, i, k};
            m->failed |= pair->state == PAIR_LOST_B && pair->failed_b;
            m->n_left += i == 0 && pair->state != PAIR_READY;
        }
    if (all)
        qsort(all, *n, sizeof(*all), by_key);
    return all;
}

static int collect(struct many *m, struct pool *pool)
{
    size_t n;
    const struct found *all = find_all(m, pool, &n);

    m->cases = pool_alloc(pool, n + 1, sizeof(*m->cases));
    for (size_t i = 0; all && m->cases && i < n; i++) {
        const struct pair *pair = all[i].pair;

        if (!i || strcmp(all[i - 1].pair->key, pair->key) != 0)
            m->cases[m->n_cases++] =
                (struct many_case){.pair = pair,
                                   .order = all[i].order,
                                   .pairs = pool_alloc(pool, m->n_pairs, sizeof(pair))};
        if (m->cases[m->n_cases - 1].pairs)
            m->cases[m->n_cases - 1].pairs[all[i].of] = pair;
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

static struct many_best best_of(const struct many *m, const struct many_case *const *cases,
                                size_t n)
{
    struct many_best best = {.state = MANY_MIXED};
    unsigned lost = 0;
    size_t left = 0;

    for (size_t c = 0; c < n; c++)
        for (size_t run = 0; run < m->n; run++)
            lost |= (unsigned)is_beaten(m, cases[c], run) << run;
    best.group = ~lost & ((1u << m->n) - 1);
    for (size_t run = 0; run < m->n; run++)
        left += best.group >> run & 1;
    if (left == 1)
        best.state = MANY_WINNER;
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
        m->failed |= unfinished > 0;
    }
    return err;
}

int many_exit(const struct many *m)
{
    bool undecided = !m->n_cases;

    for (size_t i = 0; i < m->n_pipes; i++)
        undecided |= m->pipes[i].best.state == MANY_UNDECIDED;
    return m->failed ? EXIT_INCOMPLETE : undecided ? EXIT_UNDECIDED : EXIT_GOOD;
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

/* The run.json of a set's first run. */
static const json_t *meta_of(const struct many *m, size_t run)
{
    const struct pairs *p = &m->pairs[run ? index_of(m->n, 0, run) : 0];

    return p->report.runs[run ? p->n_a : 0].meta;
}

static const char *name_of(const struct many *m, size_t run)
{
    const struct pairs *p = &m->pairs[run ? index_of(m->n, 0, run) : 0];

    return p->report.names[run ? p->n_a : 0];
}

static const char *fact_of(struct pool *pool, const struct many *m, size_t run, size_t fact)
{
    return differ_text(pool, differ_find(meta_of(m, run), facts[fact].path));
}

/* How many different texts all runs have of a fact; 0: one does not tell. */
static size_t count_different(struct pool *pool, const struct many *m, size_t fact)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++) {
        const char *text = fact_of(pool, m, i, fact);
        bool known = false;

        if (!*text)
            return 0;
        for (size_t k = 0; k < i; k++)
            known = known || !strcmp(fact_of(pool, m, k, fact), text);
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
    bool all = best->group == (1u << m->n) - 1;
    const char *group = all ? "all" : letters(pool, m, best->group);

    switch (best->state) {
    case MANY_WINNER:
        return pool_text(pool, "%s is best", group);
    case MANY_EQUIVALENT:
        return pool_text(pool, "%s equivalent", group);
    case MANY_UNDECIDED:
        return pool_text(pool, "%s cannot be told apart", group);
    default:
        return "mixed";
    }
}

static size_t winner_of(const struct many_best *best)
{
    size_t run = 0;

    while (!(best->group >> run & 1))
        run++;
    return run;
}

/* "1.12 to 1.18 times A": the winner's intervals in the cases where it is better than the base. */
static const char *gain_text(struct pool *pool, const struct many *m, const struct many_pipe *pipe)
{
    size_t run = winner_of(&pipe->best), n = 0;
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
    return n ? pool_text(pool, " (%.3g to %.3g times A in %zu of %zu cases)", low, high, n, pipe->n)
             : "";
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
    return a->state == b->state && (a->state == MANY_MIXED || a->group == b->group);
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

/* Who wins where; then what cannot be told. */
static const char *sentence(struct pool *pool, const struct many *m)
{
    const char *won = "", *rest = "";

    for (size_t i = 0; i < m->n_pipes; i++) {
        const struct many_best *best = &m->pipes[i].best;
        bool winner = best->state == MANY_WINNER, known = false;

        for (size_t k = 0; k < i; k++)
            known = known || is_like(&m->pipes[k].best, best);
        if (known)
            continue;
        const char *text =
            pool_text(pool, "%s in %s%s", best_text(pool, m, best), components_of(pool, m, i),
                      best->state == MANY_UNDECIDED ? more_text(pool, m) : "");
        if (winner)
            won = show_joined(pool, won, text);
        else
            rest = *rest ? pool_text(pool, "%s; %s", rest, text) : text;
    }
    return *won && *rest ? pool_text(pool, "%s; %s", won, rest)
           : *won        ? won
           : *rest       ? rest
                         : "no case pairs";
}

static const char *run_text(struct pool *pool, const struct many *m, size_t run, size_t fact)
{
    const char *host = differ_text(pool, differ_find(meta_of(m, run), "machine.host.hostname"));
    const char *text = name_of(m, run);

    if (m->sets[run].n > 1)
        text = pool_text(pool, "%s and %zu more", text, m->sets[run].n - 1);
    if (fact < FACTS)
        text = pool_text(pool, "%s: %s %s", text, facts[fact].what, fact_of(pool, m, run, fact));
    return *host ? pool_text(pool, "%s, on %s, %s", text, host,
                             differ_text(pool, differ_find(meta_of(m, run), "started_utc")))
                 : text;
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
    if (m->failed)
        document_answer(d, "Note", "", TONE_LOW,
                        "a run failed in cases that another one has, or "
                        "is not complete: compare it with the base alone");
}

/* "B (driver 580)". */
static const char *column_name(struct pool *pool, const struct many *m, size_t run, size_t fact,
                               const char *format)
{
    const char *letter = pool_text(pool, format, many_names[run]);

    return fact < FACTS ? pool_text(pool, "%s, %s", letter, fact_of(pool, m, run, fact)) : letter;
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

        if (pair)
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

        row[2 + run] = cell_text(pair ? view_figures(pool, pair).both : "");
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
        struct cell *row = document_row(t);
        bool any = false;

        row[0] = cell_text(facts[f].what);
        for (size_t i = 0; i < m->n; i++) {
            const char *text = fact_of(pool, m, i, f);

            any = any || *text;
            row[i + 1] = cell_text(*text ? text : "not known");
        }
        if (!any)
            row[0] = cell_text("");
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
                       "Best: a run that no other run is proven better than, while each other one "
                       "is beaten in some case.");
    document_heading(d, 3, "What differs among the runs", "");
    add_differences(d, pool, m);
    if (m->n_left)
        document_paragraph(d, pool_text(pool,
                                        "%s of A and B did not pair: plumb compare A B has the "
                                        "reasons.",
                                        show_count(pool, m->n_left, "case")));
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
                                         [MANY_UNDECIDED] = "undecided"};

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

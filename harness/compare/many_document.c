/* SPDX-License-Identifier: Apache-2.0 */
/* Three runs and more side by side, for people. See compare.h. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/program.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"

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
    return many_folders(m, run)->meta;
}

/* *mixed (may be NULL) is set where the runs of the set do not agree. */
static const char *fact_of(struct pool *pool, const struct many *m, size_t run, size_t fact,
                           bool *mixed)
{
    size_t n = m->sets[run].n;
    const char **texts = pool_alloc(pool, n, sizeof(*texts));

    for (size_t i = 0; texts && i < n; i++) {
        texts[i] = differ_text(pool, differ_find(many_folders(m, run)[i].meta, facts[fact].path));
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
        return __builtin_popcount(best->group) > 1
                   ? pool_text(pool, "%s cannot be distinguished", group)
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
        return __builtin_popcount(best->group) > 1
                   ? pool_text(pool, "%s cannot be distinguished in", every ? "The runs" : group)
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

/* The first run that has a value in all cases of a component; m->n: none has. */
static size_t base_of(const struct many *m, const struct many_pipe *pipe)
{
    size_t run = 0;

    while (run < m->n && pipe->best.lacks >> run & 1)
        run++;
    return run;
}

/* "1.12 to 1.18 times A": the winner's ratios to the first of the others, in the cases where it is
 * proven better. */
static const char *gain_text(struct pool *pool, const struct many *m, const struct many_pipe *pipe)
{
    size_t run = (size_t)__builtin_ctz(pipe->best.group), other = 0, n = 0;
    double low = INFINITY, high = 0;

    while (other < m->n && (other == run || pipe->best.lacks >> other & 1))
        other++;
    for (size_t i = 0; other < m->n && i < m->n_cases; i++) {
        const struct many_case *c = &m->cases[i];

        if (strcmp(c->pair->pipe, pipe->name) != 0 ||
            many_decision(m, c, run, other) != DECISION_BETTER)
            continue;
        low = fmin(low, many_ratio(m, c, other, run));
        high = fmax(high, many_ratio(m, c, other, run));
        n++;
    }
    if (!n)
        return "";
    const char *range = words_range(pool, low, high);

    return n == pipe->n ? pool_text(pool, " (%s times %s)", range, many_names[other])
                        : pool_text(pool, " (%s times %s in %zu of %zu cases)", range,
                                    many_names[other], n, pipe->n);
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

const char *many_sentence(struct pool *pool, const struct many *m)
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
    const char *text = many_name(m, run);

    if (m->sets[run].n > 1)
        text = pool_text(pool, "%s and %zu more", text, m->sets[run].n - 1);
    if (fact < FACTS)
        text =
            pool_text(pool, "%s: %s %s", text, facts[fact].what, fact_of(pool, m, run, fact, NULL));
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
                    many_exit(m) == EXIT_INCOMPLETE ? TONE_LOW : TONE_NONE, many_sentence(pool, m));
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
static const char *column_name(struct pool *pool, const struct many *m, size_t run, size_t fact)
{
    return fact < FACTS
               ? pool_text(pool, "%s, %s", many_names[run], fact_of(pool, m, run, fact, NULL))
               : many_names[run];
}

/* The first columns, those of the runs, and the last. */
static struct document_column *make_columns(struct pool *pool, const struct many *m, size_t before)
{
    struct document_column *columns = pool_alloc(pool, before + m->n + 1, sizeof(*columns));
    size_t fact = telling_fact(pool, m);

    for (size_t i = 0; columns && i < m->n; i++)
        columns[before + i] =
            (struct document_column){column_name(pool, m, i, fact), COLUMN_GOES_LAST, true};
    if (columns)
        columns[before + m->n] = (struct document_column){"Best", COLUMN_STAYS, false};
    return columns;
}

/* "0.98 to 1.12": the ratios to the base in the component, from the lowest to the highest. */
static const char *ratios_text(struct pool *pool, const struct many *m,
                               const struct many_pipe *pipe, size_t base, size_t run)
{
    double low = INFINITY, high = 0;

    for (size_t i = 0; i < m->n_cases; i++) {
        double ratio = many_ratio(m, &m->cases[i], base, run);

        if (isnan(ratio) || strcmp(m->cases[i].pair->pipe, pipe->name) != 0)
            continue;
        low = fmin(low, ratio);
        high = fmax(high, ratio);
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
        for (size_t run = 0, base = base_of(m, pipe); run < m->n; run++)
            row[2 + run] = cell_text(run == base   ? "1"
                                     : base < m->n ? ratios_text(pool, m, pipe, base, run)
                                                   : "");
        row[2 + m->n] = cell_text(best_text(pool, m, &pipe->best));
    }
}

/* Of the first run that has a value its value; of each other one its ratio to that. */
static void add_ratios(struct cell *cells, struct pool *pool, const struct many *m,
                       const struct many_case *c)
{
    size_t base = 0;

    for (size_t run = 0; run < m->n; run++)
        cells[run] = cell_text("");
    for (bool found = false; !found && base < m->n; base += !found)
        for (size_t run = base + 1; run < m->n; run++) {
            const struct pair *pair = many_pair(m, c, base, run);

            if (!pair || pair->state != PAIR_READY)
                continue;
            if (!found)
                cells[base] = cell_text(
                    pool_text(pool, "%s %s", document_number(pool, decide_value_a(&pair->decide)),
                              pair->c->unit));
            found = true;
            cells[run] = cell_text(view_figures(pool, pair).both);
        }
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
    add_ratios(&row[2], pool, m, c);
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
                       "The first run with a value shows it, or a 1. The others show their ratio "
                       "to it, inverted where lower is better: below 1, that first run is better. "
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
        names[i] = many_name(m, i);
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

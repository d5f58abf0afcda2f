/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on the terminal, in Markdown, as commands of GitHub and as JUnit XML: see check.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/program.h"
#include "harness/check/check.h"
#include "harness/compare/compare.h"
#include "harness/document/document.h"
#include "harness/document/utf8.h"
#include "harness/history/history_db.h"
#include "harness/report/show.h"

/* ---- The facts: what every output says, in this order ---- */

static const char *verdict_word(const struct check_result *r)
{
    return r->accepted && !r->exit ? "accepted" : gate_verdict_name(r->gate.verdict);
}

size_t check_facts(const struct check_result *r, struct check_fact *facts)
{
    const char *next = r->accepted ? "" : words_next(r);
    const struct check_fact all[CHECK_FACTS] = {
        {"verdict", words_headline(r), words_verdict(r), false},
        {"since", "since", r->since, false},
        {"differs", "changed", words_changed(&r->gate, r->differences, r->n_differences), false},
        {"advice", "next", *next ? next : r->advice, false},
        {"accept", "or accept it", r->accepted ? "" : words_accept(r), false},
        {"detectable", "detects", r->sight.sentence, true},
        {"within", "in margin", words_within(&r->gate), true},
        {"steal", "steal", words_taken(&r->gate), true},
        {"run", "run", r->run, true},
        {"baseline", "baseline", r->baseline->text, true},
        {"history", "history", r->kept.sentence, !r->accepted},
    };
    size_t n = 0;

    for (size_t i = 0; i < CHECK_FACTS; i++)
        if (*all[i].text)
            facts[n++] = all[i];
    return n;
}

/* ---- The verdict as a document: terminal and Markdown ---- */

#define ROWS_MAX 200 /* GitHub takes 1 MiB of a step */

static bool needs_action(enum gate_state state)
{
    return state <= GATE_REFUSED;
}

/* The others are counted; what unfolds lists them. */
static bool is_listed(enum gate_state state)
{
    return needs_action(state) || state == GATE_ACCEPTED || state == GATE_BETTER ||
           state == GATE_UNSEEN;
}

static const struct document_column case_columns[] = {{"verdict", COLUMN_STAYS, false},
                                                      {"case", COLUMN_STAYS, false},
                                                      {"ratio (95 % CI)", COLUMN_GOES_LAST, true},
                                                      {"proof", COLUMN_GOES_FIRST, true},
                                                      {"detects", COLUMN_GOES_LAST, true},
                                                      {"finding", COLUMN_GOES_FIRST, false}};

/* Those that are listed, or the others. */
static void add_cases(struct document *d, const struct gate *g, bool listed)
{
    struct pool *pool = &g->p->report.pool;
    struct document_table *t =
        document_table(d, case_columns, sizeof(case_columns) / sizeof(*case_columns));
    size_t n = 0, left = 0;

    for (size_t i = 0; i < g->n; i++) {
        if (is_listed(g->cases[i].state) != listed)
            continue;
        left += n >= ROWS_MAX;
        if (n++ < ROWS_MAX) {
            const struct gate_case *c = &g->cases[i];
            const struct decide_case *of = &c->pair->decide;
            double p = of->decision == DECISION_BETTER ? of->p_better : of->p_worse;
            struct cell *cells = document_row(t);

            cells[0] =
                cell_word(gate_state_name(c->state), needs_action(c->state) ? TONE_BAD : TONE_NONE);
            cells[1] = cell_text(c->pair->name);
            cells[5] = cell_text(words_whole(pool, c));
            /* what was held against a baseline has figures, where they can be told */
            if (c->pair->state != PAIR_READY || c->state == GATE_NEW)
                continue;
            if (isfinite(of->ratio))
                cells[2] = cell_text(view_figures(pool, c->pair).both);
            if (isfinite(p))
                cells[3] = cell_text(p < 1e-15 ? "p < 1e-15" : pool_text(pool, "p %.1g", p));
            if (isfinite(of->detectable))
                cells[4] = cell_text(words_slowdown(pool, of->detectable));
        }
    }
    if (left)
        document_paragraph(d, pool_text(pool, "and %zu more: --json and --junit have all", left));
}

/* A good night is one line; else the reasons stand below each other. */
static void add_facts(struct document *d, const struct check_result *r)
{
    struct check_fact facts[CHECK_FACTS];
    size_t n = check_facts(r, facts);
    bool good = r->gate.verdict == GATE_PASSED && !r->accepted;

    if (good)
        document_paragraph(
            d, pool_text(&r->gate.p->report.pool, "%s: %s", facts[0].label, facts[0].text));
    for (size_t i = good; i < n; i++)
        if (r->all || (!good && !facts[i].more))
            document_answer(d, facts[i].label, "", TONE_NONE, facts[i].text);
}

static struct document *document_of(const struct check_result *r, bool headed)
{
    const struct gate *g = &r->gate;
    struct pool *pool = &g->p->report.pool;
    struct document *d = document_new(pool);
    size_t n = 0;

    if (headed)
        document_heading(d, 2, pool_text(pool, "plumb check: %s", verdict_word(r)), "");
    add_facts(d, r);
    if (!r->all)
        return d;
    add_cases(d, g, true);
    for (size_t i = 0; i < g->n; i++)
        n += !is_listed(g->cases[i].state);
    if (n) {
        struct document *fold =
            document_fold(d, pool_text(pool, "%s that need%s no action",
                                       show_count(pool, n, "case"), n == 1 ? "s" : ""));

        add_cases(fold, g, false);
    }
    return d;
}

int output_text(FILE *out, const struct check_result *r)
{
    const struct document_terminal terminal = document_terminal_of(out);

    return document_write_terminal(document_of(r, false), &terminal, out);
}

int output_markdown(FILE *out, const struct check_result *r)
{
    return document_write_markdown(document_of(r, true), out);
}

/* ---- The verdict as workflow commands of GitHub Actions ---- */

/* A newline would end the command, and what follows it could be one of its own. */
void github_data(FILE *out, const char *text, bool property)
{
    size_t n, used;

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        if (*text == '\n' || *text == '\r')
            fprintf(out, "%%%02X", *text);
        else if (n == 1 && (*c == '%' || (property && strchr(":,", *c))))
            fprintf(out, "%%%02X", *c);
        else
            fwrite(c, 1, n, out);
    }
}

static void command(FILE *out, const char *kind, const struct check_fact *fact)
{
    fprintf(out, "::%s title=plumb check::", kind);
    github_data(out, fact->label, false);
    fputs(": ", out);
    github_data(out, fact->text, false);
    fputc('\n', out);
}

int output_github(FILE *out, const struct check_result *r)
{
    static const char *const kinds[] = {[GATE_PASSED] = "notice",
                                        [GATE_LOST] = "error",
                                        [GATE_UNDECIDED] = "warning",
                                        [GATE_INCOMPLETE] = "error",
                                        [GATE_FIRST] = "warning"};
    struct check_fact facts[CHECK_FACTS];
    size_t n = check_facts(r, facts);
    bool settled = r->accepted && !r->exit, good = r->gate.verdict == GATE_PASSED && !settled;

    for (size_t i = 0; i < n; i++)
        if (!i || (!facts[i].more && (r->all || !good)))
            command(out, i || settled ? "notice" : kinds[r->gate.verdict], &facts[i]);
    return ferror(out) ? -EIO : 0;
}

/* XML has no way at all to write most control characters, nor U+FFFE and U+FFFF. */
void junit_text(FILE *out, const char *text)
{
    size_t n, used;

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        if (n == 1 && strchr("&<>\"'", *c))
            fprintf(out, "&#%d;", *c);
        else if (n == 3 && !memcmp(c, "\xef\xbf", 2) && (unsigned char)c[2] >= 0xbe)
            fputs(UTF8_REPLACEMENT, out);
        else
            fwrite(c, 1, n, out);
    }
}

static void attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    junit_text(out, value);
    fputc('"', out);
}

enum element { ELEMENT_NONE, ELEMENT_FAILURE, ELEMENT_ERROR, ELEMENT_SKIPPED };

/* A case of which nothing was proven has not passed. */
static enum element element_of(enum gate_state state)
{
    switch (state) {
    case GATE_REGRESSED:
        return ELEMENT_FAILURE;
    case GATE_WRONG:
    case GATE_FAILED:
    case GATE_MISSING:
    case GATE_REFUSED:
        return ELEMENT_ERROR;
    case GATE_BETTER:
    case GATE_EQUIVALENT:
        return ELEMENT_NONE;
    default:
        return ELEMENT_SKIPPED;
    }
}

static size_t count(const struct gate *g, enum element element)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++)
        n += element_of(g->cases[i].state) == element;
    return n;
}

/* Readers follow a test case by its name: labels leave out what does not vary in a run, which
 * another night may. */
static void print_case_junit(FILE *out, struct pool *pool, const struct gate_case *c)
{
    static const char *const names[] = {NULL, "failure", "error", "skipped"};
    enum element element = element_of(c->state);

    fputs("    <testcase", out);
    attribute(out, "name", history_case_name(pool, c->pair->key));
    fputs(" classname=\"", out);
    junit_text(out, c->pair->pipe);
    fputc('/', out);
    junit_text(out, c->pair->bench->name);
    fputc('"', out);
    if (element == ELEMENT_NONE) {
        fputs("><system-out>", out);
        junit_text(out, words_whole(pool, c));
        fputs("</system-out></testcase>\n", out);
        return;
    }
    fprintf(out, "><%s", names[element]);
    attribute(out, "message", words_whole(pool, c));
    attribute(out, "type", gate_state_name(c->state));
    fprintf(out, ">%s%s</%s></testcase>\n", *c->pair->code ? "code: " : "", c->pair->code,
            names[element]);
}

int output_junit(FILE *out, const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct check_fact facts[CHECK_FACTS];
    size_t n_facts = check_facts(r, facts);
    bool stopped = *g->state;
    size_t failures = count(g, ELEMENT_FAILURE), errors = count(g, ELEMENT_ERROR) + stopped;

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    fprintf(out,
            "<testsuites name=\"plumb check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n"
            "  <testsuite name=\"plumb check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\">\n    <properties>\n",
            g->n + stopped, failures, errors, g->n + stopped, failures, errors,
            count(g, ELEMENT_SKIPPED));
    for (size_t i = 0; i < n_facts; i++) {
        fputs("      <property", out);
        attribute(out, "name", facts[i].name);
        attribute(out, "value", (i ? facts[i].text : verdict_word(r)));
        fputs("/>\n", out);
    }
    fputs("    </properties>\n", out);
    if (stopped) {
        fputs("    <testcase name=\"the run came to its end\" classname=\"plumb/check\"><error",
              out);
        attribute(out, "message", facts[0].text);
        fputs(" type=\"incomplete\"></error></testcase>\n", out);
    }
    for (size_t i = 0; i < g->n; i++)
        print_case_junit(out, &g->p->report.pool, &g->cases[i]);
    fputs("    <system-out>", out);
    junit_text(out, facts[0].text);
    fputs("</system-out>\n  </testsuite>\n</testsuites>\n", out);
    return ferror(out) ? -EIO : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as JUnit XML, in the shape that Jenkins, GitLab and others read: see check.h. */
#include <errno.h>
#include <string.h>

#include "harness/check/check.h"
#include "harness/compare/view.h"
#include "harness/document/markdown_text.h"
#include "harness/document/utf8.h"
#include "harness/history/history_db.h"

/* ---- The verdict on a terminal. What was lost comes first, the verdict last. ---- */

#define LISTED_MAX 12 /* of the cases that need nobody's action */

static bool needs_action(enum gate_state state)
{
    return state <= GATE_REFUSED;
}

/* Equivalent, new and inconclusive cases are counted; files list them. */
static bool is_listed(const struct gate *g, enum gate_state state)
{
    return needs_action(state) || state == GATE_BETTER ||
           (state == GATE_UNSEEN && g->tally.unseen < g->tally.held);
}

static void print_case(FILE *out, struct pool *pool, const struct gate_case *c)
{
    struct words_figures f = words_figures(pool, c->pair);

    fprintf(out, "  %s\n", view_printable(pool, c->pair->label));
    if (c->pair->state == PAIR_READY && c->state != GATE_NEW) {
        fprintf(out, "      against the baseline %s", *f.ratio ? f.ratio : "unknown");
        if (*f.proof)
            fprintf(out, ", %s", f.proof);
        if (*f.smallest)
            fprintf(out, ", would have shown a loss from %s", f.smallest);
        fputc('\n', out);
    }
    fprintf(out, "      %s\n", view_printable(pool, c->text));
    if (*c->pair->differs)
        fprintf(out, "      differs: %s\n", view_printable(pool, c->pair->differs));
}

static void print_state(FILE *out, const struct gate *g, enum gate_state state)
{
    size_t most = needs_action(state) ? g->n : LISTED_MAX, shown = 0;
    const char *name = state == GATE_UNSEEN ? "too noisy, or too few launches, to show the loss"
                                            : gate_state_name(state);

    if (!g->counts[state])
        return;
    fprintf(out, "%s: %zu\n", name, g->counts[state]);
    for (size_t i = 0; i < g->n; i++)
        if (g->cases[i].state == state && shown++ < most)
            print_case(out, &g->p->report.pool, &g->cases[i]);
    if (shown > most)
        fprintf(out, "  and %zu more: see --json, --markdown or --junit\n", shown - most);
    fputc('\n', out);
}

static void print_differences(FILE *out, const struct check_result *r)
{
    struct pool *pool = &r->gate.p->report.pool;

    if (!r->n_differences)
        return;
    fputs("machine, program and suite, baseline against run:\n", out);
    for (size_t i = 0; i < r->n_differences; i++) {
        const struct machine_difference *d = &r->differences[i];

        fprintf(out, "  %s: ", view_printable(pool, d->what));
        fprintf(out, "%s against ", *d->a ? view_printable(pool, d->a) : "nothing");
        fprintf(out, "%s\n", *d->b ? view_printable(pool, d->b) : "nothing");
    }
    fputc('\n', out);
}

void output_text(FILE *out, const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = &g->p->report.pool;

    fprintf(out, "run %s\n", view_printable(pool, r->run));
    fprintf(out, "against %s\n\n", view_printable(pool, r->baseline));
    for (int s = 0; s < GATE_STATES; s++)
        if (is_listed(g, (enum gate_state)s))
            print_state(out, g, (enum gate_state)s);
    print_differences(out, r);
    if (*r->kept.sentence && !r->accepted)
        fprintf(out, "%s\n", view_printable(pool, r->kept.sentence));
    if (*r->advice)
        fprintf(out, "%s\n", view_printable(pool, r->advice));
    fprintf(out, "%s: %s\n%s\n", r->accepted ? "found" : gate_verdict_name(g->verdict),
            view_printable(pool, g->sentence), g->unseen);
    if (r->accepted)
        fprintf(out, "%s\n", view_printable(pool, r->kept.sentence));
}

/* ---- The verdict as Markdown, for a summary, a comment or a mail ---- */

#define ROWS_MAX 200 /* GitHub takes 1 MiB of a step */

static void line(FILE *out, const char *head, const char *text, const char *end)
{
    fputs(head, out);
    markdown_text(out, text);
    fputs(end, out);
}

static void print_row(FILE *out, struct pool *pool, const struct gate_case *c)
{
    bool held = c->pair->state == PAIR_READY && c->state != GATE_NEW;
    struct words_figures f =
        held ? words_figures(pool, c->pair) : (struct words_figures){"", "", ""};
    const char *const cells[] = {
        gate_state_name(c->state), c->pair->label, f.ratio, f.proof, f.smallest,
        words_whole(pool, c)};

    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
        line(out, "| ", cells[i], " ");
    fputs("|\n", out);
}

/* All but the equivalent and new cases, which need nobody's eyes. */
static void print_table(FILE *out, const struct gate *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        enum gate_state state = g->cases[i].state;

        if (state == GATE_EQUIVALENT || state == GATE_NEW || state == GATE_ABSENT ||
            n++ >= ROWS_MAX)
            continue;
        if (n == 1)
            fputs("\n| verdict | case | run / baseline (95 %) | proof | shows a loss from | |\n"
                  "|---|---|---|---|---|---|\n",
                  out);
        print_row(out, &g->p->report.pool, &g->cases[i]);
    }
    if (n > ROWS_MAX)
        fprintf(out, "\nand %zu more\n", n - ROWS_MAX);
}

static void print_differences_markdown(FILE *out, const struct check_result *r)
{
    if (r->n_differences)
        fputs("\nMachine, program and suite, baseline against run:\n\n", out);
    for (size_t i = 0; i < r->n_differences; i++) {
        const struct machine_difference *d = &r->differences[i];

        line(out, "- ", d->what, ": ");
        line(out, "", *d->a ? d->a : "nothing", " against ");
        line(out, "", *d->b ? d->b : "nothing", "\n");
    }
}

int output_markdown(FILE *out, const struct check_result *r)
{
    const struct gate *g = &r->gate;

    line(out, "## plumb check: ", r->accepted ? "accepted" : gate_verdict_name(g->verdict), "\n\n");
    line(out, r->accepted ? "Found: " : "", g->sentence, ".\n\n");
    line(out, "**", g->unseen, ".**\n\n");
    line(out, "- run: ", r->run, "\n");
    line(out, "- baseline: ", r->baseline, "\n");
    if (*r->kept.sentence)
        line(out, "- ", r->kept.sentence, "\n");
    if (*r->advice)
        line(out, "- ", r->advice, "\n");
    print_table(out, g);
    print_differences_markdown(out, r);
    return ferror(out) ? -EIO : 0;
}

/* ---- The verdict as workflow commands of GitHub Actions ---- */

#define SHOWN_MAX                                                                                  \
    9 /* GitHub shows ten of each kind a step; the tenth is for the overall sentence */

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

static void command(FILE *out, const char *kind, const char *title, const char *label,
                    const char *text)
{
    fprintf(out, "::%s title=", kind);
    github_data(out, title, true);
    fputs("::", out);
    if (*label) {
        github_data(out, label, false);
        fputs(": ", out);
    }
    github_data(out, text, false);
    fputc('\n', out);
}

static const char *kind_of(enum gate_state state)
{
    if (state <= GATE_REFUSED)
        return "error";
    return state == GATE_BETTER ? "notice" : NULL;
}

static void print_kind(FILE *out, const struct gate *g, const char *kind, const char *as)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->cases[i];
        const char *of = kind_of(c->state);

        if (of && !strcmp(of, kind) && n++ < SHOWN_MAX)
            command(out, as, gate_state_name(c->state), c->pair->label,
                    words_whole(&g->p->report.pool, c));
    }
}

int output_github(FILE *out, const struct check_result *r)
{
    static const char *const kinds[] = {[GATE_PASSED] = "notice",
                                        [GATE_LOST] = "error",
                                        [GATE_UNDECIDED] = "warning",
                                        [GATE_INCOMPLETE] = "error",
                                        [GATE_FIRST] = "warning"};
    const struct gate *g = &r->gate;

    print_kind(out, g, "error", r->accepted ? "warning" : "error");
    print_kind(out, g, "notice", "notice");
    if (r->accepted)
        command(out, "notice", "plumb check", "", r->kept.sentence);
    else
        command(out, kinds[g->verdict], "plumb check", "", g->sentence);
    if (r->kept.done && r->kept.judged.standing == HISTORY_APART)
        command(out, "warning", "plumb check", "", r->kept.sentence);
    if (r->n_differences)
        command(out, "notice", "plumb check", "machine, program and suite, baseline against run",
                words_differences(&g->p->report.pool, r->differences, r->n_differences));
    if (g->tally.unseen && !g->options.first)
        command(out, "warning", "plumb check", "", g->unseen);
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
    fputs("></", out);
    fprintf(out, "%s></testcase>\n", names[element]);
}

static void property(FILE *out, const char *name, const char *value)
{
    fputs("      <property", out);
    attribute(out, "name", name);
    attribute(out, "value", value);
    fputs("/>\n", out);
}

int output_junit(FILE *out, const struct check_result *r)
{
    const struct gate *g = &r->gate;
    bool stopped = *g->state;
    size_t failures = count(g, ELEMENT_FAILURE), errors = count(g, ELEMENT_ERROR) + stopped;

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
    fprintf(out,
            "<testsuites name=\"plumb check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n"
            "  <testsuite name=\"plumb check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
            "skipped=\"%zu\">\n    <properties>\n",
            g->n + stopped, failures, errors, g->n + stopped, failures, errors,
            count(g, ELEMENT_SKIPPED));
    property(out, "run", r->run);
    property(out, "baseline", r->baseline);
    property(out, "verdict", r->accepted ? "accepted" : gate_verdict_name(g->verdict));
    property(out, "unseen", g->unseen);
    if (r->n_differences)
        property(out, "differs",
                 words_differences(&g->p->report.pool, r->differences, r->n_differences));
    fputs("    </properties>\n", out);
    if (stopped) {
        fputs("    <testcase name=\"the run came to its end\" classname=\"plumb/check\"><error",
              out);
        attribute(out, "message", g->sentence);
        fputs(" type=\"incomplete\"></error></testcase>\n", out);
    }
    for (size_t i = 0; i < g->n; i++)
        print_case_junit(out, &g->p->report.pool, &g->cases[i]);
    fputs("    <system-out>", out);
    junit_text(out, g->sentence);
    fputs("</system-out>\n  </testsuite>\n</testsuites>\n", out);
    return ferror(out) ? -EIO : 0;
}

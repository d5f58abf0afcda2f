/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as JUnit XML, in the shape that Jenkins, GitLab and others read: see output.h. */
#include <errno.h>
#include <string.h>

#include "harness/check/output.h"
#include "harness/check/words.h"
#include "harness/history/history_db_build.h"
#include "harness/report/utf8.h"

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

/* Readers follow a test case by its name: labels leave out what does not vary in a run, which another night may. */
static void print_case(FILE *out, struct pool *pool, const struct gate_case *c)
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
        print_case(out, &g->p->report.pool, &g->cases[i]);
    fputs("    <system-out>", out);
    junit_text(out, g->sentence);
    fputs("</system-out>\n  </testsuite>\n</testsuites>\n", out);
    return ferror(out) ? -EIO : 0;
}

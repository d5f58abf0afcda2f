/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as Markdown that GitHub renders. What comes from files is escaped. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/compare/forest.h"
#include "harness/compare/text.h"
#include "harness/report/markdown_text.h"
#include "harness/report/show.h"

#define BLOCK_WIDTH 110 /* columns of a code block that GitHub shows without a scroll bar */
#define CASES_MOST  20  /* of a pipe: a comment on GitHub ends at 64 KiB */
#define NAMED_MAX   10

static void put_cell(FILE *out, const char *text)
{
    fputs(" | ", out);
    markdown_text(out, text);
}

static void print_head(FILE *out, struct view *v)
{
    fprintf(out, "## %s: ", v->name);
    markdown_text(out, v->verdict);
    fputs("\n\nRests on ", out);
    markdown_text(out, v->basis);
    fputs(".\n\n- A: ", out);
    markdown_text(out, v->a);
    fputs("\n- B: ", out);
    markdown_text(out, v->b);
    fputc('\n', out);
    for (size_t i = 0; i < v->n_remarks; i++) {
        fputs("\n> ", out);
        markdown_text(out, v->remarks[i]);
        fputc('\n', out);
    }
}

static void print_pipes(FILE *out, struct view *v)
{
    if (!v->n_pipes)
        return;
    fputs("\n| pipe | cases | worse | inconclusive | better | equivalent | worst: B / A (95 %) | "
          "verdict | case |\n|---|---:|---:|---:|---:|---:|---|---|---|\n",
          out);
    for (size_t i = 0; i < v->n_pipes; i++) {
        const struct view_pipe *pipe = &v->pipes[i];
        struct view_figures f = {.both = "", .verdict = ""};

        if (pipe->worst)
            f = view_figures(v->pool, pipe->worst);
        fputs("| ", out);
        markdown_text(out, pipe->name);
        fprintf(out, " | %zu | %zu | %zu | %zu | %zu", pipe->n, pipe->counts[DECISION_WORSE],
                pipe->counts[DECISION_INCONCLUSIVE], pipe->counts[DECISION_BETTER],
                pipe->counts[DECISION_EQUIVALENT]);
        put_cell(out, f.both);
        put_cell(out, f.verdict);
        put_cell(out, pipe->worst ? pipe->worst->label : "");
        fputs(" |\n", out);
    }
}

/* As wide a fence as the longest row of backticks inside could ask for: labels come from files. */
static void print_forest(FILE *out, struct view *v)
{
    const struct text t = {
        .out = out, .v = v, .width = BLOCK_WIDTH, .most = CASES_MOST, .utf8 = true, .causes = true};

    if (!v->n_ready)
        return;
    fputs("\n~~~~~~~~~~text", out);
    text_forest(&t);
    fputs("~~~~~~~~~~\n", out);
}

static void print_differences(FILE *out, const struct view *v)
{
    if (!v->n_differences)
        return;
    fputs("\n### What differs between the two sides\n\n| what | A | B | may weigh on |\n"
          "|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < v->n_differences; i++) {
        const struct machine_difference *d = &v->differences[i];

        fputs("| ", out);
        markdown_text(out, d->what);
        put_cell(out, *d->a ? d->a : "not known");
        put_cell(out, *d->b ? d->b : "not known");
        put_cell(out, *d->pipes ? d->pipes : "all");
        fputs(" |\n", out);
    }
}

static void print_left(FILE *out, struct view *v)
{
    if (v->n_left)
        fputs("\n### Not compared\n\n", out);
    for (size_t i = 0; i < v->n_left; i++) {
        const struct view_left *left = &v->left[i];

        fprintf(out, "- **%s**: ", show_count(v->pool, left->n, "case"));
        markdown_text(out, view_left_text(v->pool, left));
        fputc('\n', out);
        for (size_t k = 0; k < left->n && k < NAMED_MAX; k++) {
            fputs("  - ", out);
            markdown_text(out, left->pairs[k]->label);
            fputc('\n', out);
        }
        if (left->n > NAMED_MAX)
            fprintf(out, "  - and %zu more\n", left->n - NAMED_MAX);
    }
}

int view_print_markdown(FILE *out, struct view *v)
{
    print_head(out, v);
    print_pipes(out, v);
    print_forest(out, v);
    for (size_t i = 0; i < v->n_obstacles; i++) {
        fputc('\n', out);
        markdown_text(out, v->obstacles[i].text);
        fputc('\n', out);
    }
    print_differences(out, v);
    print_left(out, v);
    if (v->n_ready)
        fprintf(out, "\n<sub>%s</sub>\n", view_explain(v));
    return ferror(out) ? -EIO : 0;
}

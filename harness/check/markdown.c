/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as Markdown, for a summary, a comment or a mail: see output.h. */
#include <errno.h>
#include <string.h>

#include "harness/check/output.h"
#include "harness/check/words.h"
#include "harness/report/markdown_text.h"

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

static void print_differences(FILE *out, const struct check_result *r)
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
    print_differences(out, r);
    return ferror(out) ? -EIO : 0;
}

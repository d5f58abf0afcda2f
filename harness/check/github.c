/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as workflow commands of GitHub Actions: see output.h. */
#include <errno.h>
#include <string.h>

#include "harness/check/output.h"
#include "harness/check/words.h"
#include "harness/report/utf8.h"

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

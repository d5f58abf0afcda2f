/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a terminal: see output.h. What was lost comes first, the verdict last. */
#include <string.h>

#include "harness/check/output.h"
#include "harness/check/words.h"
#include "harness/compare/view.h"

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

/* SPDX-License-Identifier: Apache-2.0 */
/* What to know before believing a comparison: see view_words.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/compare/view_words.h"
#include "harness/report/show.h"

#define REMARKS_MAX 6

static void remark(struct view *v, const char *text)
{
    v->remarks[v->n_remarks++] = view_printable(v->pool, text);
}

static const char *command_of(const struct view *v, size_t run)
{
    const json_t *against = json_object_get(v->p->report.runs[run].meta, "against");
    const char *command = json_string_value(json_object_get(against, "command"));

    return command ? command : "";
}

/* What was measured in turn on the side that begins with this run: "what 'ssh guest plumb' starts" */
static const char *target_text(struct view *v, size_t first)
{
    size_t end = first < v->p->n_a ? v->p->n_a : v->p->report.n_runs;
    const char *command = command_of(v, first), *more = "";

    for (size_t run = first + 1; run < end; run++)
        if (strcmp(command, command_of(v, run)) != 0)
            more = " in one run, and another target in others";
    return *command ? pool_text(v->pool, "what '%s' starts%s", command, more)
                    : pool_text(v->pool, "the plumb that led the run%s", more);
}

/* The first case of those that lost launches: "'triad': 1 of 5 launches of B failed" */
static const char *thinned_text(struct view *v)
{
    for (size_t i = 0; i < v->p->n; i++)
        if (v->p->all[i].state == PAIR_READY && v->p->all[i].failed_b)
            return pool_text(v->pool, "'%s', %s", v->p->all[i].label, v->p->all[i].reason);
    return "";
}

/* Of the cases that have a ratio, how many rest on the differences of launches that stood next to each other; the first that does
 * not; and whether any of these rests on what varies between runs. */
struct turns {
    size_t n_paired, n_alone;
    const struct pair *alone;
    bool alone_by_runs;
};

static struct turns count_turns(const struct view *v)
{
    struct turns t = {0};

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];

        if (pair->state != PAIR_READY || !isfinite(pair->decide.ratio))
            continue;
        if (pair->decide.by_pairs) {
            t.n_paired++;
            continue;
        }
        t.alone = t.n_alone++ ? t.alone : pair;
        t.alone_by_runs |= pair->decide.by_runs;
    }
    return t;
}

/* "; not so in 2 cases, such as 'triad': ..." */
static const char *alone_text(struct view *v, const struct turns *t)
{
    if (!t->n_alone)
        return "";
    return pool_text(v->pool,
                     "; not so in %s%s '%s': a launch says the case twice, or not two of its "
                     "launches have a partner, and each side stands by itself",
                     show_count(v->pool, t->n_alone, "case"), t->n_alone > 1 ? ", such as" : ",",
                     t->alone->label);
}

static const char *in_turn_text(struct view *v, const struct turns *t)
{
    const char *several =
        v->p->n_a > 1
            ? pool_text(v->pool, ": how they vary from one to another of %zu pairs of runs",
                        v->p->n_a)
            : "";
    const char *used =
        t->n_paired
            ? pool_text(v->pool,
                        "each launch of B stood next to one of A, and the differences of the two "
                        "make the intervals%s",
                        several)
            : "but in no case do the intervals come from the differences of two launches next to "
              "each other";

    return pool_text(v->pool, "measured in turn: %s%s; A is %s, B is %s", used, alone_text(v, t),
                     target_text(v, 0), target_text(v, v->p->n_a));
}

/* "": none, or nothing was measured in turn. */
static const char *unused_turn_text(struct view *v)
{
    size_t first, n = pairs_without_partner(v->p, &first);

    if (!n)
        return "";
    return pool_text(v->pool,
                     "runs here were measured in turn, and are held against each other as if they "
                     "were not: '%s'%s no run of its own on the other side that it stood next to; "
                     "name that, too, or leave it out",
                     v->p->report.runs[first].path,
                     n > 1 ? pool_text(v->pool, " (and %zu more) has", n - 1) : " has");
}

int words_remarks(struct view *v)
{
    const struct turns turns = count_turns(v);
    const char *unused = unused_turn_text(v);

    v->remarks = pool_alloc(v->pool, REMARKS_MAX, sizeof(*v->remarks));
    if (!v->remarks)
        return -ENOMEM;
    if (v->p->in_turn && v->n_ready)
        remark(v, in_turn_text(v, &turns));
    if (v->p->n_a == 1 && v->p->n_b == 1 && v->n_ready && (turns.n_alone || !turns.n_paired))
        remark(v, "one run a side: what differs between two moments of one machine (a boot, "
                  "neighbours, temperature) is in no interval here; several runs a side would tell "
                  "it (plumb compare A1 A2 --against B1 B2), or both measured in turn (plumb run "
                  "--against)");
    if (*unused && v->n_ready)
        remark(v, unused);
    if (turns.alone_by_runs)
        remark(v, "where a side has several runs, what varies between runs makes the intervals, "
                  "not what varies between launches");
    if (v->n_thinned)
        remark(v, pool_text(v->pool, "some launches of B failed in %s that the others decide%s: %s",
                            show_count(v->pool, v->n_thinned, "case"),
                            v->n_thinned > 1 ? ", such as" : "", thinned_text(v)));
    return 0;
}

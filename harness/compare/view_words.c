/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of a comparison: see compare.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/exit_code.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"

#define NAMES_MAX 4 /* runs of a side that are named */

struct launches {
    size_t least, most; /* of one run in one case */
};

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

const char *words_difference(struct pool *pool, const struct machine_difference *difference)
{
    return pool_text(pool, "%s: %s against %s", difference->what,
                     *difference->a ? difference->a : "not known",
                     *difference->b ? difference->b : "not known");
}

bool words_has_pipe(const char *pipes, const char *pipe)
{
    size_t len = strlen(pipe);

    while (*pipes) {
        size_t n = strcspn(pipes, ",");

        if (n == len && !memcmp(pipes, pipe, n))
            return true;
        pipes += n;
        pipes += strspn(pipes, ", ");
    }
    return false;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* A run whose name is not that of its folder is told by both: "r-b ('r/b') on guest3".
 * "vm-1 on guest3, 2026-01-02T03:00:00Z" */
static const char *run_text(struct view *v, size_t run)
{
    const json_t *meta = v->p->report.runs[run].meta;
    const char *host =
        text_at(json_object_get(json_object_get(meta, "machine"), "host"), "hostname");
    const char *text = v->p->report.names[run];

    if (strcmp(text, last_part(v->p->report.runs[run].path)) != 0)
        text = pool_text(v->pool, "%s ('%s')", text, v->p->report.runs[run].path);
    if (*host)
        text = pool_text(v->pool, "%s on %s", text, host);
    return show_joined(v->pool, text, text_at(meta, "started_utc"));
}

static const char *side_text(struct view *v, size_t first, size_t n)
{
    const char *text = "";

    if (n == 1)
        return run_text(v, first);
    for (size_t i = 0; i < n && i < NAMES_MAX; i++)
        text = pool_text(v->pool, "%s%s%s", text, i ? "; " : "", run_text(v, first + i));
    if (n > NAMES_MAX)
        text = pool_text(v->pool, "%s; and %zu more", text, n - NAMES_MAX);
    return pool_text(v->pool, "%zu runs: %s", n, text);
}

/* "B (vm-1)": a side of one run by its name, too. */
static const char *side_name(struct view *v, char letter)
{
    size_t n = letter == 'A' ? v->p->n_a : v->p->n_b;
    size_t first = letter == 'A' ? 0 : v->p->n_a;

    if (n != 1)
        return pool_text(v->pool, "%c (%zu runs)", letter, n);
    return pool_text(v->pool, "%c (%s)", letter, v->p->report.names[first]);
}

static const char *short_name(struct view *v, size_t first, size_t n)
{
    const char *name = v->p->report.names[first];

    return n > 1 ? pool_text(v->pool, "%s and %zu more", name, n - 1) : name;
}

static const char *margin_text(struct view *v)
{
    return isnan(v->margin) ? "its margin" : view_percent(v->pool, v->margin);
}

static const struct pair *extreme(const struct view *v, enum decision decision)
{
    const struct pair *found = NULL;

    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n; k++) {
            const struct pair *pair = v->pipes[i].pairs[k];
            double ratio = pair->decide.ratio;

            if (pair->decide.decision != decision || isnan(ratio))
                continue;
            if (!found || (decision == DECISION_BETTER ? ratio > found->decide.ratio
                                                       : ratio < found->decide.ratio))
                found = pair;
        }
    return found;
}

static const char *of_cases(struct view *v, size_t n)
{
    return v->n_ready == 1 ? "the one case" : pool_text(v->pool, "%zu of %zu cases", n, v->n_ready);
}

/* ", the most 'triad' at 0.947 of A (95 % interval 0.941 to 0.953)" */
static const char *most_text(struct view *v, enum decision decision, size_t n)
{
    const struct pair *pair = extreme(v, decision);
    struct view_figures f;

    if (!pair)
        return "";
    f = view_figures(v->pool, pair);
    return pool_text(v->pool, "%s '%s' at %s of A (95 %% interval %s)", n > 1 ? ", the most" : ":",
                     pair->label, f.ratio, f.interval);
}

static const char *worse_text(struct view *v)
{
    const struct decide_overall *o = &v->p->overall;
    const char *text =
        pool_text(v->pool, "%s is worse than %s: %s %s worse%s", side_name(v, 'B'),
                  side_name(v, 'A'), of_cases(v, o->n_worse), o->n_worse == 1 ? "is" : "are",
                  most_text(v, DECISION_WORSE, o->n_worse));

    if (o->n_better)
        text = pool_text(v->pool, "%s; %zu are better", text, o->n_better);
    if (o->n_inconclusive)
        text = pool_text(v->pool, "%s; %zu inconclusive", text, o->n_inconclusive);
    return text;
}

static const char *undecided_text(struct view *v)
{
    const struct decide_overall *o = &v->p->overall;
    const char *text;

    if (!v->n_ready)
        return "nothing could be decided: no case of A could be paired with one of B";
    if (!o->n_judged)
        return pool_text(v->pool,
                         "nothing could be decided: none of %s has a value and a spread on both "
                         "sides",
                         show_count(v->pool, v->n_ready, "case"));
    text = pool_text(v->pool, "undecided whether %s is as good as %s: no case is worse, but %s %s",
                     side_name(v, 'B'), side_name(v, 'A'), of_cases(v, o->n_inconclusive),
                     o->n_inconclusive == 1 ? "is inconclusive" : "are inconclusive");
    if (o->n_better)
        text = pool_text(v->pool, "%s; %zu are better", text, o->n_better);
    return text;
}

static const char *good_text(struct view *v)
{
    const struct decide_overall *o = &v->p->overall;
    const char *b = side_name(v, 'B'), *a = side_name(v, 'A');

    if (o->n_better)
        return pool_text(v->pool, "%s is better than %s: %s %s better%s%s", b, a,
                         of_cases(v, o->n_better), o->n_better == 1 ? "is" : "are",
                         most_text(v, DECISION_BETTER, o->n_better),
                         o->n_equivalent ? pool_text(v->pool, "; %zu are equivalent within %s",
                                                     o->n_equivalent, margin_text(v))
                                         : "");
    return pool_text(v->pool, "%s is equivalent to %s: %s within %s, with the whole interval", b, a,
                     v->n_ready == 1 ? "the one case lies"
                                     : pool_text(v->pool, "all %zu cases lie", v->n_ready),
                     margin_text(v));
}

/* "the run of B is 'interrupted'" */
static const char *unfinished_text(struct view *v)
{
    size_t n = v->n_unfinished;

    for (size_t run = 0; n == 1 && run < v->p->report.n_runs; run++)
        if (!strcmp(text_at(v->p->report.runs[run].meta, "state"), v->state))
            return pool_text(v->pool, "the run '%s' of %c is '%s'", v->p->report.names[run],
                             run < v->p->n_a ? 'A' : 'B', v->state);
    return n ? pool_text(v->pool, "%zu runs were not measured to their end ('%s')", n, v->state)
             : "";
}

static const char *add_missing(struct view *v, const char *text, size_t n, const char *what)
{
    return n ? pool_text(v->pool, "%s%s%s %s that A has", text, *text ? "; " : "", what,
                         show_count(v->pool, n, "case"))
             : text;
}

/* What makes a comparison incomplete. */
static const char *missing_text(struct view *v)
{
    const char *text = add_missing(v, unfinished_text(v), v->n_failed_b, "B failed in");

    text = add_missing(v, text, v->n_thinned, "some launches of B failed in");
    return add_missing(v, text, v->n_lacking, "B has nothing to compare with in");
}

static const char *verdict_text(struct view *v)
{
    const struct decide_overall *o = &v->p->overall;
    size_t others = v->p->n - v->n_ready - v->n_failed_b - v->n_lacking;
    const char *text = o->decision == DECISION_WORSE          ? worse_text(v)
                       : o->decision == DECISION_INCONCLUSIVE ? undecided_text(v)
                                                              : good_text(v);

    if (view_exit(v) == EXIT_INCOMPLETE)
        text = pool_text(v->pool, "incomplete: %s; of %s: %s", missing_text(v),
                         v->n_unfinished ? "what is there" : "the others", text);
    else if (*missing_text(v))
        text = pool_text(v->pool, "%s; %s", text, missing_text(v));
    return others ? pool_text(v->pool, "%s; %zu not compared", text, others) : text;
}

static void count_launches(const struct decide_side *side, struct launches *n)
{
    for (size_t i = 0; i < side->n; i++) {
        size_t launches = side->runs[i].n;

        if (!launches)
            continue;
        n->least = n->least && n->least < launches ? n->least : launches;
        n->most = n->most > launches ? n->most : launches;
    }
}

/* "5", "3 to 5" */
static const char *range_text(struct view *v, const struct launches *n)
{
    return n->least == n->most ? pool_text(v->pool, "%zu", n->most)
                               : pool_text(v->pool, "%zu to %zu", n->least, n->most);
}

static const char *launches_text(struct view *v)
{
    struct launches a = {0}, b = {0};

    for (size_t i = 0; i < v->p->n; i++)
        if (v->p->all[i].state == PAIR_READY) {
            count_launches(&v->p->all[i].decide.a, &a);
            count_launches(&v->p->all[i].decide.b, &b);
        }
    if (a.least != b.least || a.most != b.most)
        return pool_text(v->pool, "; launches of a case in a run: %s of A, %s of B",
                         range_text(v, &a), range_text(v, &b));
    return pool_text(v->pool, ", %s %s of each case in a run", range_text(v, &a),
                     a.most == 1 ? "launch" : "launches");
}

static const char *basis_text(struct view *v)
{
    const char *a = show_count(v->pool, v->p->n_a, "run"),
               *b = show_count(v->pool, v->p->n_b, "run");
    const char *text = v->p->n_a == v->p->n_b ? pool_text(v->pool, "%s a side", a)
                                              : pool_text(v->pool, "%s of A, %s of B", a, b);

    if (!v->n_ready)
        return text;
    return pool_text(v->pool, "%s%s; margin %s", text, launches_text(v),
                     isnan(v->margin) ? "as the suite says for each case" : margin_text(v));
}

static void count_obstacles(struct view *v)
{
    const char *const texts[] = {
        [OBSTACLE_NO_VALUE] = "a side has no value",
        [OBSTACLE_BAD_VALUE] = "a value is 0, negative, infinite or no number, of which no ratio "
                               "can be made: look into the rows",
        [OBSTACLE_ONE_LAUNCH] = "one launch a side tells no spread: measure again with repeat 5",
        [OBSTACLE_FEW] = v->p->in_turn && v->p->n_a > 1
                             ? "a change shows, but so few runs cannot tell it from two levels "
                               "between runs: 5 a side, in turn, can"
                             : "a change shows, but so few launches cannot tell it from two levels "
                               "between launches: 5 a side can",
    };

    for (size_t kind = OBSTACLE_NO_VALUE; kind <= OBSTACLE_FEW; kind++) {
        size_t n = 0;

        for (size_t i = 0; i < v->p->n; i++)
            n += v->p->all[i].state == PAIR_READY && v->p->all[i].decide.obstacle == kind;
        if (n)
            v->obstacles[v->n_obstacles++] =
                (struct view_obstacle){n, pool_text(v->pool, "%s inconclusive for want of data: %s",
                                                    show_count(v->pool, n, "case"), texts[kind])};
    }
}

/* Its interval alone would be read as a verdict. */
static void explain_beyond(struct view *v)
{
    const struct pair *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];

        if (pair->state != PAIR_READY || !view_is_beyond_alone(pair))
            continue;
        first = first ? first : pair;
        n++;
    }
    if (n)
        v->obstacles[v->n_obstacles++] = (struct view_obstacle){
            n, pool_text(
                   v->pool,
                   "%s inconclusive though beyond the margin by itself%s'%s': a difference shows "
                   "there, but is not proven over the whole suite of %s, where chance has as "
                   "many tries",
                   show_count(v->pool, n, "case"), n > 1 ? ", such as " : ", ", first->label,
                   show_count(v->pool, v->p->overall.n_judged, "case"))};
}

int words_make(struct view *v)
{
    v->a = view_printable(v->pool, side_text(v, 0, v->p->n_a));
    v->b = view_printable(v->pool, side_text(v, v->p->n_a, v->p->n_b));
    v->name_a = view_printable(v->pool, short_name(v, 0, v->p->n_a));
    v->name_b = view_printable(v->pool, short_name(v, v->p->n_a, v->p->n_b));
    v->name =
        view_exit(v) == EXIT_INCOMPLETE ? "incomplete" : decision_name(v->p->overall.decision);
    v->verdict = view_printable(v->pool, verdict_text(v));
    v->basis = basis_text(v);
    count_obstacles(v);
    explain_beyond(v);
    return words_remarks(v);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of a comparison: see compare.h. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"
#include "harness/text.h"

struct launch_range {
    size_t least, most; /* of one run in one case */
};

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
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

/* A run whose name is not that of its folder is told by both: "r-b ('r/b') on guest3".
 * "vm-1 on guest3, 2026-01-02T03:00:00Z" */
static const char *run_text(struct view *v, size_t run)
{
    const json_t *meta = v->p->report.runs[run].meta;
    const char *host =
        text_at(json_object_get(json_object_get(meta, "machine"), "host"), "hostname");
    const char *text = v->p->report.names[run], *path = v->p->report.runs[run].path;
    const char *slash = strrchr(path, '/');

    if (strcmp(text, slash ? slash + 1 : path) != 0)
        text = pool_text(v->pool, "%s ('%s')", text, path);
    if (*host)
        text = pool_text(v->pool, "%s on %s", text, host);
    return show_joined(v->pool, text, text_at(meta, "started_utc"));
}

static const char *side_text(struct view *v, size_t first, size_t n)
{
    const char **texts = pool_alloc(v->pool, n, sizeof(*texts));

    for (size_t i = 0; i < n; i++)
        texts[i] = run_text(v, first + i);
    return n == 1 ? texts[0]
                  : pool_text(v->pool, "%zu runs: %s", n,
                              pool_list(v->pool, texts, n, VIEW_NAMES, "; "));
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

/* "bare-1", "bare-1 and 2 more" */
static const char *short_name(struct view *v, size_t first, size_t n)
{
    return pool_list(v->pool, v->p->report.names + first, n, 1, ", ");
}

/* "3 cases, such as 'triad'" */
static const char *such_as(const struct view *v, size_t n, const struct pair *first)
{
    return pool_text(v->pool, "%s, %s'%s'", text_count(n, "case").text, n > 1 ? "such as " : "",
                     first->label);
}

/* What becomes of a component in the sentence: the order is that of the sentence. */
enum fate { FATE_WORSE, FATE_MIXED, FATE_BETTER, FATE_EQUIVALENT, FATE_UNDECIDED, FATES };

static enum fate fate_of(const struct view_pipe *pipe)
{
    bool worse = pipe->counts[DECISION_WORSE], better = pipe->counts[DECISION_BETTER];

    return worse && better                           ? FATE_MIXED
           : worse                                   ? FATE_WORSE
           : better                                  ? FATE_BETTER
           : pipe->counts[DECISION_INCONCLUSIVE] > 0 ? FATE_UNDECIDED
                                                     : FATE_EQUIVALENT;
}

/* Of the many components of one sentence, the table has the number of cases. */
#define RANGED_MAX 2

const char *words_range(struct pool *pool, double low, double high)
{
    const char *from = pool_text(pool, "%.3g", low), *to = pool_text(pool, "%.3g", high);

    return strcmp(from, to) != 0 ? pool_text(pool, "%s to %s", from, to) : from;
}

/* "0.792 to 0.921 times A in 3 of 14 cases": the ratios of those decided so; of one, with its
 * interval. brief: without the cases. */
static const char *range_of(struct view *v, const struct view_pipe *pipe, enum decision decision,
                            bool brief)
{
    double low = INFINITY, high = 0;
    size_t n = pipe->counts[decision];
    const struct decide_case *one = NULL;

    for (size_t i = 0; i < pipe->n; i++) {
        const struct decide_case *c = &pipe->pairs[i]->decide;

        if (c->decision != decision)
            continue;
        low = fmin(low, c->ratio);
        high = fmax(high, c->ratio);
        one = c;
    }
    const char *range =
        !one || low > high ? ""
        : n == 1 ? pool_text(v->pool, "%.3g times A, %.3g to %.3g", one->ratio, one->low, one->high)
                 : pool_text(v->pool, "%s times A", words_range(v->pool, low, high));

    return n == pipe->n_cases || (brief && *range)
               ? range
               : pool_text(v->pool, "%s%sin %zu of %zu cases", range,
                           !*range  ? ""
                           : n == 1 ? ", "
                                    : " ",
                           n, pipe->n_cases);
}

static const char *component_text(struct view *v, const struct view_pipe *pipe, enum fate fate,
                                  bool brief)
{
    switch (fate) {
    case FATE_WORSE:
    case FATE_BETTER:
        return pool_text(
            v->pool, "%s (%s)", pipe->name,
            range_of(v, pipe, fate == FATE_WORSE ? DECISION_WORSE : DECISION_BETTER, brief));
    case FATE_MIXED:
        return pool_text(v->pool, "%s (%zu worse, %zu better)", pipe->name,
                         pipe->counts[DECISION_WORSE], pipe->counts[DECISION_BETTER]);
    default:
        return pipe->name;
    }
}

/* "worse in Memory (0.79 to 0.92 times A in 3 of 14 cases)"; "" where no component is of this fate.
 */
static const char *fate_text(struct view *v, enum fate fate)
{
    static const char *const words[FATES] = {"worse in", "mixed in", "better in", "equivalent in",
                                             "undecided in"};
    const char **names = pool_alloc(v->pool, v->n_pipes + 1, sizeof(*names));
    size_t n = 0, all = 0;

    for (size_t i = 0; i < v->n_pipes; i++)
        all += fate_of(&v->pipes[i]) == fate;
    for (size_t i = 0; i < v->n_pipes; i++)
        if (fate_of(&v->pipes[i]) == fate)
            names[n++] = component_text(v, &v->pipes[i], fate, all > RANGED_MAX);
    if (!n)
        return "";
    if (n == v->n_pipes && n > 1 && fate == FATE_EQUIVALENT)
        return pool_text(v->pool, "equivalent in all %zu components", n);
    return pool_text(v->pool, "%s %s", words[fate], pool_list(v->pool, names, n, VIEW_NAMES, ", "));
}

static int by_size(const void *x, const void *y)
{
    const size_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* "3 more launches a side would decide" */
static const char *launches_more(struct view *v, size_t n, bool by_runs)
{
    return pool_text(v->pool, "%s a side would decide",
                     text_count(n, by_runs ? "more run" : "more launch").text);
}

/* ". 3 more launches a side would decide": all the undecided cases of the whole comparison. Where
 * the most that a case needs is far more than half of them need, both are told. */
static const char *more_text(struct view *v)
{
    size_t *needed = pool_alloc(v->pool, v->p->n + 1, sizeof(*needed));
    size_t n = 0, unknown = v->n_taken, by_runs = 0;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];

        if (pair->state != PAIR_READY || pair->decide.decision != DECISION_INCONCLUSIVE)
            continue;
        if (pair->decide.more_launches)
            needed[n++] = pair->decide.more_launches;
        unknown += pair->explained || !pair->decide.more_launches;
        by_runs += pair->decide.by_runs;
    }
    if (!n)
        return "";
    qsort(needed, n, sizeof(*needed), by_size);
    size_t half = needed[(n - 1) / 2], most = needed[n - 1];

    if (most > 2 * half)
        return pool_text(v->pool, ". %s half of the undecided cases, and %zu all%s",
                         launches_more(v, half, by_runs), most,
                         unknown ? pool_text(v->pool, " but %zu", unknown) : "");
    return pool_text(v->pool, ". %s%s", launches_more(v, most, by_runs),
                     unknown ? pool_text(v->pool, ", but for %s", text_count(unknown, "case").text)
                             : "");
}

/* Who wins where, by how much, and what cannot be told: a sentence for each fate. */
static const char *who_wins(struct view *v)
{
    const char *text = "";

    for (enum fate fate = 0; fate < FATES; fate++) {
        const char *next = fate_text(v, fate);

        if (*next && *text)
            text =
                pool_text(v->pool, "%s. %s is %s", text, fate == FATE_UNDECIDED ? "It" : "B", next);
        else if (*next)
            text = next;
    }
    return pool_text(v->pool, "%s against %s: %s%s", side_name(v, 'B'), side_name(v, 'A'), text,
                     more_text(v));
}

static const char *decided_text(struct view *v)
{
    if (!v->n_ready && v->n_taken)
        return "nothing could be decided: all cases of both sides are left out for steal";
    if (!v->n_ready)
        return "nothing could be decided: no case of A could be paired with one of B";
    if (!v->p->overall.n_judged)
        return pool_text(v->pool,
                         "nothing could be decided: none of %s has a value and a spread on both "
                         "sides",
                         text_count(v->n_ready, "case").text);
    return who_wins(v);
}

/* "the run of B is 'interrupted'" */
static const char *unfinished_text(struct view *v)
{
    size_t n = v->n_unfinished;

    for (size_t run = 0; n == 1 && run < v->p->report.n_runs; run++)
        if (!strcmp(text_at(v->p->report.runs[run].meta, "state"), v->state))
            return pool_text(v->pool, ". The run '%s' of %c is '%s'", v->p->report.names[run],
                             run < v->p->n_a ? 'A' : 'B', v->state);
    return n ? pool_text(v->pool, ". %zu runs were not measured to their end ('%s')", n, v->state)
             : "";
}

/* ". Nothing of Memory and Caches is compared": components that a side has, and no case of which
 * pairs. */
static const char *blank_text(struct view *v)
{
    const char **names = pool_alloc(v->pool, v->p->n + 1, sizeof(*names));
    size_t n = 0;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];
        const struct view_state *state = view_state(pair);
        bool has = state->of_a != state->of_b || pair->state == PAIR_REFUSED;
        bool known = !has;

        for (size_t k = 0; k < v->n_pipes; k++)
            known = known || !strcmp(v->pipes[k].name, pair->pipe);

        for (size_t k = 0; k < n; k++)
            known = known || !strcmp(names[k], pair->pipe);
        if (!known && *pair->pipe)
            names[n++] = pair->pipe;
    }
    return n && v->n_ready ? pool_text(v->pool, ". Nothing of %s is compared",
                                       pool_list(v->pool, names, n, VIEW_NAMES, ", "))
                           : "";
}

/* The answer, and then what it does not cover. */
static const char *verdict_text(struct view *v)
{
    size_t others = v->p->n - v->n_ready - v->n_failed_b - v->n_lacking - v->n_taken;
    const char *text = decided_text(v);

    text = pool_text(v->pool, "%s%s%s", text, blank_text(v), unfinished_text(v));
    const struct {
        size_t n;
        const char *what;
    } missing[] = {{v->n_failed_b, ". B failed in %s that A has"},
                   {v->n_thinned, ". Some launches of B failed in %s that A has"},
                   {v->n_lacking, ". B has nothing to compare with in %s that A has"},
                   {others, ". Not compared: %s"}};

    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++)
        if (missing[i].n)
            text =
                pool_text(v->pool, "%s%s", text,
                          pool_text(v->pool, missing[i].what,
                                    text_count(missing[i].n, i < 3 ? "case" : "other case").text));
    return text;
}

static void count_launches(const struct decide_side *side, struct launch_range *n)
{
    for (size_t i = 0; i < side->n; i++) {
        size_t launches = side->runs[i].n;

        if (!launches)
            continue;
        n->least = n->least && n->least < launches ? n->least : launches;
        n->most = n->most > launches ? n->most : launches;
    }
}

/* "5 launches", "3 to 5 launches" */
static const char *range_text(struct view *v, const struct launch_range *n)
{
    const char *least = n->least == n->most ? "" : pool_text(v->pool, "%zu to ", n->least);

    return pool_text(v->pool, "%s%s", least, text_count(n->most, "launch").text);
}

static const char *launches_text(struct view *v)
{
    struct launch_range a = {0}, b = {0};

    for (size_t i = 0; i < v->p->n; i++)
        if (v->p->all[i].state == PAIR_READY) {
            count_launches(&v->p->all[i].decide.a, &a);
            count_launches(&v->p->all[i].decide.b, &b);
        }
    if (a.least != b.least || a.most != b.most)
        return pool_text(v->pool, ", %s of A and %s of B of each case in a run", range_text(v, &a),
                         range_text(v, &b));
    return pool_text(v->pool, ", %s of each case in a run", range_text(v, &a));
}

static const char *basis_text(struct view *v)
{
    const char *text =
        v->p->n_a == v->p->n_b
            ? pool_text(v->pool, "%s a side", text_count(v->p->n_a, "run").text)
            : pool_text(v->pool, "%s of A, %s of B", text_count(v->p->n_a, "run").text,
                        text_count(v->p->n_b, "run").text);

    if (!v->n_ready)
        return text;
    return pool_text(v->pool, "%s%s; margin %s", text, launches_text(v),
                     isnan(v->margin) ? "as the suite says for each case"
                                      : view_percent(v->pool, v->margin));
}

static void count_obstacles(struct view *v)
{
    const char *const texts[] = {
        [OBSTACLE_NO_VALUE] = "a side has no value",
        [OBSTACLE_BAD_VALUE] = "a value is 0, negative, infinite or no number, of which no ratio "
                               "can be made: look into the rows",
        [OBSTACLE_ONE_LAUNCH] = "one launch on a side shows no spread: measure again with "
                                "repeat 5, or import several files",
        [OBSTACLE_FEW] =
            v->p->in_turn && v->p->n_a > 1
                ? "a change shows, but so few runs cannot separate it from two levels "
                  "between runs: 5 a side, in turn, can"
                : "a change shows, but so few launches cannot separate it from two levels "
                  "between launches: 5 a side can",
    };

    for (size_t kind = OBSTACLE_NO_VALUE; kind <= OBSTACLE_FEW; kind++) {
        size_t n = 0;

        for (size_t i = 0; i < v->p->n; i++)
            n += v->p->all[i].state == PAIR_READY && v->p->all[i].decide.obstacle == kind;
        if (n)
            v->obstacles[v->n_obstacles++] =
                pool_text(v->pool, "%s undecided: %s", text_count(n, "case").text, texts[kind]);
    }
}

static bool is_likely(const struct pair *pair)
{
    return pair->state == PAIR_READY && view_word(pair)->likely;
}

static bool is_explained(const struct pair *pair)
{
    return pair->explained;
}

/* What both sides had of it in the cases that it explains. */
static const char *disturbed_text(struct view *v, size_t n, const struct pair *first)
{
    return pool_text(
        v->pool,
        "%s (%s of A, %s of B), undecided: the time that others took of the CPU can explain a "
        "difference, or hide one; a real loss of that size would not show: measure again on a "
        "quiet machine, or compare without the disturbed launches (--steal 2%%)",
        such_as(v, n, first), document_percent(v->pool, 100 * first->noise_a.taken),
        document_percent(v->pool, 100 * first->noise_b.taken));
}

/* ---- What to know before believing a comparison ---- */

static const char *command_of(const struct view *v, size_t run)
{
    const json_t *against = json_object_get(v->p->report.runs[run].meta, "against");
    const char *command = json_string_value(json_object_get(against, "command"));

    return command ? command : "";
}

/* What was measured in turn on the side that begins with this run: "what 'ssh guest plumb' starts"
 */
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

/* Of the cases that have a ratio, how many rest on the differences of launches that stood next to
 * each other; the first that does not; and whether any of these rests on what varies between runs.
 */
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

static const char *in_turn_text(struct view *v, const struct turns *t)
{
    const char *used =
                   "each launch of B stood next to one of A, and the differences of the two make "
                   "the intervals",
               *alone = "";

    if (!t->n_paired)
        used = "but in no case do the intervals come from the differences of two launches next to "
               "each other";
    else if (v->p->n_a > 1)
        used = pool_text(v->pool, "%s: how they vary from one to another of %zu pairs of runs",
                         used, v->p->n_a);
    if (t->n_alone)
        alone = pool_text(v->pool,
                          "; not so in %s: a launch says the case twice, or not two of its "
                          "launches have a partner, and each side stands by itself",
                          such_as(v, t->n_alone, t->alone));
    return pool_text(v->pool, "measured in turn: %s%s; A is %s, B is %s", used, alone,
                     target_text(v, 0), target_text(v, v->p->n_a));
}

/* "": none, or nothing was measured in turn. */
static const char *unused_turn_text(struct view *v)
{
    size_t first, n = pairs_without_partner(v->p, &first);

    if (!n)
        return "";
    return pool_text(v->pool,
                     "runs here were measured in turn, and are compared as if they were not: "
                     "'%s' has no partner on the other side (%s in all); name that, too, or leave "
                     "it out",
                     v->p->report.runs[first].path, text_count(n, "run").text);
}

static void add_remarks(struct view *v)
{
    const struct turns turns = count_turns(v);
    const char *const all[] = {
        v->p->in_turn ? in_turn_text(v, &turns) : "",
        v->p->n_a == 1 && v->p->n_b == 1 && (turns.n_alone || !turns.n_paired)
            ? "one run a side: the intervals do not hold how two moments of one machine differ "
              "(boot, neighbours, temperature). Several runs a side do (plumb compare A1 A2 "
              "--against B1 B2), and so does plumb run --against"
            : "",
        unused_turn_text(v),
        turns.alone_by_runs
            ? "where a side has several runs, what varies between runs makes the intervals, "
              "not what varies between launches"
            : "",
        v->n_thinned ? pool_text(v->pool, "some launches of B failed in %s, %s",
                                 such_as(v, v->n_thinned, v->thinned), v->thinned->reason)
                     : ""};

    v->remarks = pool_alloc(v->pool, sizeof(all) / sizeof(*all), sizeof(*v->remarks));
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (*all[i] && (v->n_ready || i == 4))
            v->remarks[v->n_remarks++] = view_printable(v->pool, all[i]);
}

void words_make(struct view *v)
{
    const struct pair *first;
    size_t n;

    v->a = view_printable(v->pool, side_text(v, 0, v->p->n_a));
    v->b = view_printable(v->pool, side_text(v, v->p->n_a, v->p->n_b));
    v->name_a = view_printable(v->pool, short_name(v, 0, v->p->n_a));
    v->name_b = view_printable(v->pool, short_name(v, v->p->n_a, v->p->n_b));
    v->name =
        view_exit(v, 1) == EXIT_INCOMPLETE ? "incomplete" : decision_word(v->p->overall.decision);
    v->verdict = view_printable(v->pool, verdict_text(v));
    v->basis = basis_text(v);
    count_obstacles(v);
    if (v->n_taken)
        v->obstacles[v->n_obstacles++] =
            pool_text(v->pool,
                      "%s undecided: left out by --steal. Measure again on a quiet machine, or "
                      "compare without --steal",
                      text_count(v->n_taken, "case").text);
    if ((n = view_count(v, is_likely, &first)))
        v->obstacles[v->n_obstacles++] =
            pool_text(v->pool,
                      "%s, likely different, not proven yet: among %s, chance alone makes one "
                      "such interval likely",
                      such_as(v, n, first), text_count(v->p->overall.n_judged, "case").text);
    if ((n = view_count(v, is_explained, &first)))
        v->obstacles[v->n_obstacles++] = disturbed_text(v, n, first);
    add_remarks(v);
}

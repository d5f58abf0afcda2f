/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a comparison: see compare.h. The sentences are in view_words.c. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "core/row.h"
#include "harness/compare/compare.h"
#include "harness/document/utf8.h"
#include "harness/report/described.h"
#include "harness/report/facts.h"
#include "harness/report/show.h"

static bool is_ready(const struct pair *pair)
{
    return pair->state == PAIR_READY;
}

static bool is_taken(const struct pair *pair)
{
    return pair->state == PAIR_TAKEN;
}

static int rank_of(enum decision decision)
{
    static const int ranks[] = {[DECISION_WORSE] = 0,
                                [DECISION_INCONCLUSIVE] = 1,
                                [DECISION_BETTER] = 2,
                                [DECISION_EQUIVALENT] = 3};

    return ranks[decision];
}

/* Cases without a ratio come last; of those that gained, the largest gain comes first. */
static int by_loss(const void *left, const void *right)
{
    const struct pair *a = *(const struct pair *const *)left;
    const struct pair *b = *(const struct pair *const *)right;
    const struct decide_case *x = &a->decide, *y = &b->decide;
    int order = rank_of(x->decision) - rank_of(y->decision);

    if (!order)
        order = (isnan(x->ratio) != 0) - (isnan(y->ratio) != 0);
    if (!order && x->ratio != y->ratio && !isnan(x->ratio))
        order = (x->ratio > y->ratio) == (x->decision != DECISION_BETTER) ? 1 : -1;
    return order ? order : (a > b) - (a < b);
}

static struct view_pipe *find_pipe(struct view *v, const char *name)
{
    for (size_t i = v->n_pipes; i--;)
        if (!strcmp(v->pipes[i].name, name))
            return &v->pipes[i];
    v->pipes[v->n_pipes] = (struct view_pipe){.name = name};
    return &v->pipes[v->n_pipes++];
}

/* Two passes: how many of each pipe, then which. */
static void fill_pipes(struct view *v)
{
    const struct pair *all = v->p->all;
    size_t n = v->p->n;

    v->pipes = pool_alloc(v->pool, n, sizeof(*v->pipes));
    for (size_t i = 0; i < n; i++)
        if (is_ready(&all[i]) || is_taken(&all[i]))
            find_pipe(v, all[i].pipe)->n_cases++;
    for (size_t i = 0; i < v->n_pipes; i++)
        v->pipes[i].pairs = pool_alloc(v->pool, v->pipes[i].n_cases, sizeof(*v->pipes[i].pairs));
    for (size_t i = 0; i < n; i++)
        if (is_ready(&all[i])) {
            struct view_pipe *pipe = find_pipe(v, all[i].pipe);
            pipe->pairs[pipe->n++] = &all[i];
            v->n_ready++;
        }
    for (size_t i = 0; i < v->n_pipes; i++) {
        struct view_pipe *pipe = &v->pipes[i];
        qsort(pipe->pairs, pipe->n, sizeof(*pipe->pairs), by_loss);
        for (size_t k = 0; k < pipe->n; k++)
            pipe->counts[pipe->pairs[k]->decide.decision]++;
        pipe->counts[DECISION_INCONCLUSIVE] += pipe->n_cases - pipe->n;
        pipe->n_shown = pipe->n - pipe->counts[DECISION_EQUIVALENT];
        pipe->n_first = pipe->counts[DECISION_WORSE] > VIEW_FIRST ? pipe->counts[DECISION_WORSE]
                        : pipe->n_shown < VIEW_FIRST              ? pipe->n_shown
                                                                  : VIEW_FIRST;
        const struct pair *worst = NULL;

        for (size_t k = 0; k < pipe->n; k++) {
            const struct pair *pair = pipe->pairs[k];

            if (isnan(pair->decide.ratio))
                continue;
            if (worst && worst->decide.decision == DECISION_WORSE)
                break; /* it stands first, and is the lowest of those */
            if (!worst || pair->decide.ratio < worst->decide.ratio)
                worst = pair;
        }
        pipe->worst = worst;
    }
}

/* What B failed comes first: it makes the run incomplete. */
static int left_rank(const struct pair *pair)
{
    return pair->state == PAIR_LOST_B && pair->failed_b ? 0 : (int)pair->state;
}

static int by_reason(const void *left, const void *right)
{
    const struct pair *a = *(const struct pair *const *)left;
    const struct pair *b = *(const struct pair *const *)right;
    int order = left_rank(a) - left_rank(b);

    if (!order)
        order = strcmp(a->reason, b->reason);
    return order ? order : (a > b) - (a < b);
}

/* As the cases came. */
static int by_first(const void *left, const void *right)
{
    const struct view_left *a = left, *b = right;
    int order = left_rank(a->pairs[0]) - left_rank(b->pairs[0]);

    return order ? order : (a->pairs[0] > b->pairs[0]) - (a->pairs[0] < b->pairs[0]);
}

static bool lacks(const struct pair *pair)
{
    return !pair->failed_b && (pair->state == PAIR_LOST_A || pair->state == PAIR_LOST_B);
}

/* The case that the other side has in its place: the one that differs in the fewest parameters. */
static const struct pair *nearest_of(const struct view *v, const struct pair *pair, size_t *param)
{
    const struct pair *found = NULL;
    size_t fewest = SIZE_MAX, one = 0;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *other = &v->p->all[i];

        if (!lacks(other) || other->state == pair->state || other->bench != pair->bench ||
            strcmp(other->c->metric, pair->c->metric) != 0)
            continue;
        size_t n = 0;

        for (size_t k = 0; k < pair->bench->n_params; k++)
            if (!pair->bench->follows[k] && strcmp(pair->c->params[k], other->c->params[k]) != 0) {
                one = k;
                n++;
            }
        if (n < fewest) {
            fewest = n;
            found = other;
            *param = one;
        }
    }
    return fewest == 1 ? found : NULL;
}

/* What to do, so that a case that one side has is there on both. */
static const char *advice_of(struct view *v, const struct pair *pair)
{
    size_t i = 0;
    const struct pair *other =
        lacks(pair) && pair->bench && pair->c->params ? nearest_of(v, pair, &i) : NULL;

    if (!other)
        return "";
    const struct report_bench *b = pair->bench;
    const char *name = b->params[i], *own = pair->c->params[i], *its = other->c->params[i];
    char side = pair->state == PAIR_LOST_A ? 'A' : 'B';

    if (strchr(own, '*') || strchr(its, '*')) {
        /* A file did not tell the parameter: whoever ran its program may know. */
        bool own_open = strchr(pair->c->params[i], '*') != NULL;
        const struct pair *open = own_open ? pair : other, *known = own_open ? other : pair;
        const char *param_name = pair->bench->params[i], *value = known->c->params[i];

        /* The side that has the case is the one that does not lack it. */
        return pool_text(
            v->pool,
            "What %c was imported from does not tell '%s', and the other side has %s %s. "
            "If it was the same: plumb import FILE --set %s=%s",
            open->state == PAIR_LOST_A ? 'B' : 'A', param_name, param_name,
            *value ? show_param(v->pool, pair->bench, i, value) : "none", param_name,
            *value ? value : "VALUE");
    }
    if (!*own || !*its)
        return pool_text(v->pool,
                         "'%s' is new in one of the two versions: measure both sides with "
                         "one version",
                         name);
    return pool_text(v->pool,
                     "Nearest: %c has it with %s %s in place of %s. Measure one %s on both sides: "
                     "plumb run SUITE with %s: %s%s",
                     side, name, show_param(v->pool, b, i, its), show_param(v->pool, b, i, own),
                     name, name, show_param(v->pool, b, i, its),
                     described_flag(b, name, COLUMN_BYTES)
                         ? "; between other caches, by a cache level (docs: compare.md)"
                         : "");
}

static void fill_left(struct view *v)
{
    const struct pair **left = pool_alloc(v->pool, v->p->n, sizeof(*left));
    size_t n = 0;

    v->left = pool_alloc(v->pool, v->p->n, sizeof(*v->left));
    for (size_t i = 0; i < v->p->n; i++)
        if (!is_ready(&v->p->all[i]))
            left[n++] = &v->p->all[i];
    qsort(left, n, sizeof(*left), by_reason);
    for (size_t i = 0; i < n; i++) {
        const struct pair *pair = left[i];
        struct view_left *last = v->n_left ? &v->left[v->n_left - 1] : NULL;

        if (!last || left_rank(last->pairs[0]) != left_rank(pair) ||
            strcmp(last->pairs[0]->reason, pair->reason) != 0) {
            last = &v->left[v->n_left++];
            *last =
                (struct view_left){.state = pair->state,
                                   .failed_b = left_rank(pair) == 0,
                                   .reason = *pair->reason ? pair->reason : "no reason is given",
                                   .advice = "",
                                   .pairs = &left[i]};
        }
        last->n++;
        v->n_failed_b += last->failed_b;
    }
    qsort(v->left, v->n_left, sizeof(*v->left), by_first); /* no order hangs on a sentence */
    for (size_t i = 0; i < v->n_left; i++)
        v->left[i].advice = advice_of(v, v->left[i].pairs[0]);
}

/* A cause stands next to the loss: what weighs on every pipe is said once, for all of them. */
static bool has_finding(struct exam *x, const struct exam_result *finding)
{
    for (const struct exam_result *r = exam_results(x); r; r = r->next)
        if (r->state == EXAM_FOUND && r->check == finding->check &&
            !strcmp(r->subject, finding->subject))
            return true;
    return false;
}

/* Does a case that is worse or better go over a network? Where no path is told it may. */
static bool is_on_network(const struct view *v, const struct view_pipe *pipe)
{
    const unsigned network = CARRIER_RDMA | CARRIER_SOCKETS | CARRIER_LOOPBACK;

    for (size_t i = 0; i < pipe->n; i++) {
        const struct pair *pair = pipe->pairs[i];
        unsigned kinds = 0;

        if (pair->decide.decision != DECISION_WORSE && pair->decide.decision != DECISION_BETTER)
            continue;
        for (size_t run = 0; run < v->p->report.n_runs; run++) {
            const struct report_point *p = &pair->c->points[run];

            for (size_t k = 0; k < p->n_rows; k++)
                kinds |=
                    carriers_read(row_text(&pair->bench->rows[run], p->rows[k], FIELD_CARRIER));
        }
        if (!kinds || kinds & network)
            return true;
    }
    return false;
}

static bool is_of_network(const struct exam_result *finding)
{
    const char *area = "";

    exam_find(finding->check->id, &area);
    return !strcmp(area, "network") || !strcmp(area, "rdma");
}

/* What plumb doctor finds on the machine of one side alone, and can explain the component. */
static void add_findings(struct view *v, struct view_pipe *pipe, size_t room, bool of_b)
{
    struct exam *x = report_exam(&v->p->report, of_b ? v->p->n_a : 0),
                *other = report_exam(&v->p->report, of_b ? 0 : v->p->n_a);

    for (const struct exam_result *r = x && other ? exam_results(x) : NULL; r; r = r->next)
        if (r->state == EXAM_FOUND && !exam_repeats(x, r) && pipe->n_causes < room &&
            exam_explains(x, r, pipe->name) && !has_finding(other, r) &&
            (!is_of_network(r) || is_on_network(v, pipe)))
            pipe->causes[pipe->n_causes++] =
                pool_text(v->pool, "found in %s alone: %s", of_b ? "B" : "A", exam_sentence(x, r));
}

#define FINDINGS_MAX 6 /* of a component, of both sides */

static void fill_causes(struct view *v)
{
    for (size_t i = 0; i < v->n_pipes; i++) {
        struct view_pipe *pipe = &v->pipes[i];

        if (!pipe->counts[DECISION_WORSE] && !pipe->counts[DECISION_BETTER])
            continue;
        size_t room = v->n_differences + FINDINGS_MAX;

        pipe->causes = pool_alloc(v->pool, room, sizeof(*pipe->causes));
        for (size_t k = 0; k < v->n_differences; k++) {
            const struct machine_difference *d = &v->differences[k];

            /* what one side could not tell may be the same on both: it explains nothing */
            if (*d->a && *d->b && words_has_pipe(d->pipes, pipe->name) &&
                (strcmp(d->pipes, ON_NETWORK) != 0 || is_on_network(v, pipe)))
                pipe->causes[pipe->n_causes++] =
                    pool_text(v->pool, "%s: %s against %s", d->what, d->a, d->b);
        }
        add_findings(v, pipe, room, true);
        add_findings(v, pipe, room, false);
    }
}

static void find_margin(struct view *v)
{
    v->margin = NAN;
    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n; k++) {
            double margin = v->pipes[i].pairs[k]->decide.margin;

            if (isnan(v->margin))
                v->margin = margin;
            if (margin != v->margin) {
                v->margin = NAN;
                return;
            }
        }
}

int view_exit(const struct view *v)
{
    if (v->p->overall.n_worse)
        return EXIT_BAD;
    /* A reference was measured by the suite of its day. */
    if (v->n_failed_b || (v->n_lacking && !v->reference) || v->n_thinned || v->n_unfinished)
        return EXIT_INCOMPLETE;
    return v->p->overall.decision == DECISION_INCONCLUSIVE ? EXIT_UNDECIDED : EXIT_GOOD;
}

/* ---- What holds of one case, as texts ---- */

#define DECIMALS      3
#define DECIMALS_MOST 6

const char *view_printable(struct pool *pool, const char *text)
{
    size_t n, used, at = 0;
    char *kept = pool_alloc(pool, 3 * strlen(text) + 1, 1); /* a replacement takes three bytes */

    for (; *text; text += used, at += n) {
        const char *c = utf8_printable(text, &n, &used);

        memcpy(kept + at, c, n);
    }
    return kept;
}

const char *view_percent(struct pool *pool, double share)
{
    return isfinite(share) ? pool_text(pool, "%.3g %%", 100 * share) : "";
}

/* Would `value` be written as `mark` is, though it is another? */
static bool hides(double value, double mark, int decimals)
{
    double unit = pow(10, -decimals);

    return value != mark && isfinite(value) && round(value / unit) == round(mark / unit);
}

/* What no digits that are written would tell apart is the same, and asks for none. */
static int decimals_to_tell(double value, double mark)
{
    int decimals = DECIMALS;

    while (decimals < DECIMALS_MOST && hides(value, mark, decimals))
        decimals++;
    return hides(value, mark, decimals) ? DECIMALS : decimals;
}

static const char *number(struct pool *pool, double value, int decimals)
{
    if (!isfinite(value))
        return isnan(value) ? "" : "unbounded";
    return value < 100 && value >= 0.01 ? pool_text(pool, "%.*f", decimals, value)
                                        : document_number(pool, value);
}

const char *decision_word(enum decision decision)
{
    return decision == DECISION_INCONCLUSIVE ? "undecided" : decision_name(decision);
}

enum view_word view_word(const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;

    if (c->decision != DECISION_INCONCLUSIVE)
        return WORD_DECIDED;
    if (pair->explained)
        return WORD_DISTURBED;
    if (!c->beyond || c->obstacle != OBSTACLE_NONE)
        return WORD_UNDECIDED;
    return c->ratio < 1 ? WORD_LIKELY_WORSE : WORD_LIKELY_BETTER;
}

static const char *word_text(const struct pair *pair)
{
    static const char *const words[] = {[WORD_UNDECIDED] = "undecided",
                                        [WORD_DISTURBED] = "undecided: disturbed",
                                        [WORD_LIKELY_WORSE] = "likely worse",
                                        [WORD_LIKELY_BETTER] = "likely better"};
    enum view_word word = view_word(pair);

    return word == WORD_DECIDED ? decision_name(pair->decide.decision) : words[word];
}

struct view_figures view_figures(struct pool *pool, const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;
    /* As many as tell an end of the interval from 1 and from the margin, on which the verdict
     * hangs. */
    const double marks[] = {1, 1 - c->margin, 1 / (1 - c->margin)}, ends[] = {c->low, c->high};
    int decimals = DECIMALS;

    for (size_t i = 0; i < 2 * sizeof(marks) / sizeof(*marks); i++) {
        int needed = decimals_to_tell(ends[i % 2], marks[i / 2]);

        decimals = needed > decimals ? needed : decimals;
    }
    struct view_figures f = {
        .ratio = number(pool, c->ratio, decimals),
        .interval = "",
        .verdict = word_text(pair),
        .more = "",
        .detectable =
            c->detectable > 0.995 ? "over 99 %"
            : isfinite(c->detectable)
                ? pool_text(pool, "%.*f %%", c->detectable < 0.0995 ? 1 : 0, 100 * c->detectable)
                : ""};

    if (!isnan(c->low) && !isnan(c->high))
        f.interval = pool_text(pool, "%s to %s", number(pool, c->low, decimals),
                               number(pool, c->high, decimals));
    f.both = !*f.ratio     ? "no ratio"
             : *f.interval ? pool_text(pool, "%s (%s)", f.ratio, f.interval)
                           : pool_text(pool, "%s (no interval)", f.ratio);
    if (c->decision == DECISION_INCONCLUSIVE && c->more_launches)
        f.more = pool_text(pool, "+%zu", c->more_launches);
    return f;
}

const char *view_left_text(struct pool *pool, const struct view_left *left)
{
    return pool_text(pool, "%s%s", left->state == PAIR_REFUSED ? "not comparable: " : "",
                     left->reason);
}

/* ---- What to know before believing a comparison ---- */

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

/* The first case of those that lost launches: "'triad': 1 of 5 launches of B failed" */
static const char *thinned_text(struct view *v)
{
    for (size_t i = 0; i < v->p->n; i++)
        if (v->p->all[i].failed_b &&
            (v->p->all[i].state == PAIR_READY || v->p->all[i].state == PAIR_TAKEN))
            return pool_text(v->pool, "'%s', %s", v->p->all[i].label, v->p->all[i].reason);
    return "";
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
                     "runs here were measured in turn, and are compared as if they were not: "
                     "'%s'%s no partner on the other side; name that, too, or leave it out",
                     v->p->report.runs[first].path,
                     n > 1 ? pool_text(v->pool, " (and %zu more) has", n - 1) : " has");
}

static void words_remarks(struct view *v)
{
    const struct turns turns = count_turns(v);
    const char *unused = unused_turn_text(v);

    v->remarks = pool_alloc(v->pool, REMARKS_MAX, sizeof(*v->remarks));
    if (v->p->in_turn && v->n_ready)
        remark(v, in_turn_text(v, &turns));
    if (v->p->n_a == 1 && v->p->n_b == 1 && v->n_ready && (turns.n_alone || !turns.n_paired))
        remark(v, "one run a side: the intervals do not hold how two moments of one machine differ "
                  "(boot, neighbours, temperature). Several runs a side do (plumb compare A1 A2 "
                  "--against B1 B2), and so does plumb run --against");
    if (*unused && v->n_ready)
        remark(v, unused);
    if (turns.alone_by_runs)
        remark(v, "where a side has several runs, what varies between runs makes the intervals, "
                  "not what varies between launches");
    if (v->n_thinned)
        remark(v, pool_text(v->pool, "some launches of B failed in %s%s: %s",
                            show_count(v->pool, v->n_thinned, "case"),
                            v->n_thinned > 1 ? ", such as" : "", thinned_text(v)));
}

/* ---- All of it ---- */

void view_make(struct pairs *p, const struct reference *reference, struct view *v)
{
    *v = (struct view){
        .p = p, .pool = &p->report.pool, .reference = reference, .price_a = NAN, .price_b = NAN};
    pairs_disturb(p);
    fill_pipes(v);
    fill_left(v);
    v->n_differences = pairs_machine_differences(p, &v->differences);
    fill_causes(v);
    v->state = pairs_unfinished(p, &v->n_unfinished);
    for (size_t i = 0; i < p->n; i++) {
        bool lost = p->all[i].state == PAIR_LOST_B && !p->all[i].failed_b;

        v->n_lacking += lost || p->all[i].state == PAIR_REFUSED;
        v->n_thinned += (is_ready(&p->all[i]) || is_taken(&p->all[i])) && p->all[i].failed_b;
        v->n_taken += is_taken(&p->all[i]);
    }
    find_margin(v);
    words_make(v);
    words_remarks(v);
}

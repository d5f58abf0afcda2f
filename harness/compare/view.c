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
#include "harness/report/cases.h"
#include "harness/report/described.h"
#include "harness/report/facts.h"
#include "harness/report/show.h"
#include "harness/report/summary.h"

const char *const view_letters[VIEWS_MAX + 1] = {"A", "B", "C", "D", "E", "F", "G", "H"};

/* ---- Words for states and verdicts ---- */

/* The enum and this table are all that there is of a state. They are told in this order. */
static const struct view_state states[] = {
    [PAIR_READY] = {.code = "compared", .of_a = true, .of_b = true},
    [PAIR_REFUSED] = {.code = "refused", .says = "not comparable: ", .of_a = true, .of_b = true},
    [PAIR_LOST_A] = {.code = "lost-a", .of_b = true},
    [PAIR_LOST_B] = {.code = "lost-b", .of_a = true},
    [PAIR_LOST_BOTH] = {.code = "lost-both"},
    [PAIR_TAKEN] = {.code = "taken", .of_a = true, .of_b = true},
    [PAIR_LEFT_OUT] = {.code = "left-out"}};

const struct view_state *view_state(const struct pair *pair)
{
    static const struct view_state failed = {.code = "failed-b", .of_a = true};

    return pair->state == PAIR_LOST_B && pair->failed_b ? &failed : &states[pair->state];
}

/* By decision, in the order in which cases are listed. */
static const struct view_word words[] = {
    [DECISION_WORSE] = {.code = "worse", .text = "worse", .rank = 0},
    [DECISION_INCONCLUSIVE] = {.code = "inconclusive", .text = "inconclusive", .rank = 1},
    [DECISION_BETTER] = {.code = "better", .text = "better", .rank = 2},
    [DECISION_EQUIVALENT] = {.code = "equivalent", .text = "equivalent", .rank = 3}};

const struct view_word *view_word(const struct pair *pair)
{
    static const struct view_word disturbed = {.code = "disturbed", .text = "inconclusive"};
    static const struct view_word likely[] = {
        {.code = "likely-better", .text = "likely better", .likely = true},
        {.code = "likely-worse", .text = "likely worse", .likely = true}};
    const struct decide_case *c = &pair->decide;

    if (c->decision != DECISION_INCONCLUSIVE)
        return &words[c->decision];
    if (pair->explained)
        return &disturbed;
    if (!c->beyond || c->obstacle != OBSTACLE_NONE)
        return &words[DECISION_INCONCLUSIVE];
    return &likely[c->ratio < 1];
}

size_t view_count(const struct view *v, view_is_fn *is, const struct pair **first)
{
    size_t n = 0;

    *first = NULL;
    for (size_t i = 0; i < v->p->n; i++)
        if (is(&v->p->all[i])) {
            *first = n++ ? *first : &v->p->all[i];
        }
    return n;
}

/* ---- Cases by component, and those that were not compared ---- */

/* Cases without a ratio come last; of those that gained, the largest gain comes first. */
static int by_loss(const void *left, const void *right)
{
    const struct pair *a = *(const struct pair *const *)left;
    const struct pair *b = *(const struct pair *const *)right;
    const struct decide_case *x = &a->decide, *y = &b->decide;
    int order = words[x->decision].rank - words[y->decision].rank;

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
        if (all[i].state == PAIR_READY || all[i].state == PAIR_TAKEN)
            find_pipe(v, all[i].pipe)->n_cases++;
    for (size_t i = 0; i < v->n_pipes; i++)
        v->pipes[i].pairs = pool_alloc(v->pool, v->pipes[i].n_cases, sizeof(*v->pipes[i].pairs));
    for (size_t i = 0; i < n; i++)
        if (all[i].state == PAIR_READY) {
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
    v->listed = pool_alloc(v->pool, n, sizeof(*v->listed));
    for (size_t i = 0; i < n; i++)
        if (all[i].state == PAIR_READY && (all[i].decide.decision == DECISION_WORSE ||
                                           all[i].decide.decision == DECISION_INCONCLUSIVE))
            v->listed[v->n_listed++] = &all[i];
    qsort(v->listed, v->n_listed, sizeof(*v->listed), by_loss);
}

/* What B failed comes first: it makes the run incomplete. */
static int left_rank(const struct pair *pair)
{
    return view_state(pair) == &states[pair->state] ? (int)pair->state : 0;
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
    return !pair->failed_b && view_state(pair)->of_a != view_state(pair)->of_b;
}

/* As it was requested. */
static const char *asked_text(const struct pair *pair, size_t param)
{
    bool left = !*pair->c->asked[param] && pair->bench->used[param] < pair->bench->n_params;

    return left ? ROW_LEFT : pair->c->asked[param];
}

/* The case that the other side has in its place: the one that differs in the fewest parameters. */
static const struct pair *nearest_of(const struct view *v, const struct pair *pair, size_t *param)
{
    const struct pair *found = NULL;
    size_t fewest = SIZE_MAX, one = 0;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *other = &v->p->all[i];

        if (!lacks(other) || other->state == pair->state || other->bench != pair->bench ||
            !other->c->asked || strcmp(other->c->metric, pair->c->metric) != 0)
            continue;
        size_t n = 0;

        for (size_t k = 0; k < pair->bench->n_params; k++)
            if ((case_is_made_by(pair->bench, pair->c, k) ||
                 case_is_made_by(pair->bench, other->c, k)) &&
                strcmp(asked_text(pair, k), asked_text(other, k)) != 0) {
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
        lacks(pair) && pair->bench && pair->c->asked ? nearest_of(v, pair, &i) : NULL;

    if (!other)
        return "";
    const struct report_bench *b = pair->bench;
    const char *name = b->params[i], *own = asked_text(pair, i), *its = asked_text(other, i);
    char side = view_state(other)->of_a ? 'A' : 'B';

    if (strchr(own, '*') || strchr(its, '*')) {
        /* A file did not tell the parameter: whoever ran its program may know. */
        bool own_open = strchr(own, '*') != NULL;
        const struct pair *open = own_open ? pair : other;
        const char *param_name = pair->bench->params[i], *value = own_open ? its : own;

        /* The side that has the case is the one that does not lack it. */
        return pool_text(
            v->pool,
            "What %c was imported from does not tell '%s', and the other side has %s %s. "
            "If it was the same: plumb import FILE --set %s=%s",
            view_state(open)->of_a ? 'A' : 'B', param_name, param_name,
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
        if (v->p->all[i].state != PAIR_READY)
            left[n++] = &v->p->all[i];
    qsort(left, n, sizeof(*left), by_reason);
    for (size_t i = 0; i < n; i++) {
        const struct pair *pair = left[i];
        struct view_left *last = v->n_left ? &v->left[v->n_left - 1] : NULL;

        if (!last || left_rank(last->pairs[0]) != left_rank(pair) ||
            strcmp(last->pairs[0]->reason, pair->reason) != 0) {
            last = &v->left[v->n_left++];
            *last =
                (struct view_left){.state = view_state(pair),
                                   .reason = *pair->reason ? pair->reason : "no reason is given",
                                   .pairs = &left[i]};
        }
        last->n++;
        v->n_failed_b += !left_rank(pair);
    }
    qsort(v->left, v->n_left, sizeof(*v->left), by_first); /* no order hangs on a sentence */
    for (size_t i = 0; i < v->n_left; i++)
        v->left[i].advice = advice_of(v, v->left[i].pairs[0]);
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

/* What one side cannot tell may be the same on both: it explains nothing. */
bool view_explains(const struct view *v, const struct machine_difference *d,
                   const struct view_pipe *pipe)
{
    return *d->a && *d->b && (pipe->counts[DECISION_WORSE] || pipe->counts[DECISION_BETTER]) &&
           words_has_pipe(d->pipes, pipe->name) &&
           (strcmp(d->pipes, ON_NETWORK) != 0 || is_on_network(v, pipe));
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

int view_exit(const struct view *v, size_t n)
{
    int exit = EXIT_GOOD;

    /* Side by side no run is judged: a case that is worse hides nothing of what is missing. */
    for (size_t i = 0; n > 1 && i < n; i++) {
        if (v[i].incomplete)
            return EXIT_INCOMPLETE;
        if (v[i].n_taken || v[i].p->overall.n_inconclusive || !v[i].n_ready)
            exit = EXIT_UNDECIDED;
    }
    if (n > 1)
        return exit;
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
        .verdict = view_word(pair)->text,
        .more = "",
        .detectable =
            c->detectable > 0.995 ? "over 99 %"
            : isfinite(c->detectable)
                ? pool_text(pool, "%.*f %%", c->detectable < 0.0995 ? 1 : 0, 100 * c->detectable)
                : ""};

    if (!isnan(c->low) && !isnan(c->high))
        f.interval = pool_text(pool, "%s-%s", number(pool, c->low, decimals),
                               number(pool, c->high, decimals));
    f.both = !*f.ratio     ? "no ratio"
             : *f.interval ? pool_text(pool, "%s (%s)", f.ratio, f.interval)
                           : pool_text(pool, "%s (no CI)", f.ratio);
    if (c->decision == DECISION_INCONCLUSIVE && c->more_launches)
        f.more = pool_text(pool, "+%zu", c->more_launches);
    return f;
}

/* ---- All of it ---- */

/* Places behind their like in the newest run of each side: a slow GPU link is no matter of the other side. */
static void find_slow(struct view *v)
{
    struct headlines h;

    v->slow_a = v->slow_b = "";
    if (!v->n_ready)
        return;
    headlines_make(&v->p->report, &h);
    v->slow_a = summary_slow(&v->p->report, &h, v->p->n_a - 1);
    v->slow_b = summary_slow(&v->p->report, &h, v->p->report.n_runs - 1);
}

static bool failed_a(const struct pair *pair)
{
    return pair->failed_a;
}

static bool is_thinned(const struct pair *pair)
{
    return pair->failed_b && (pair->state == PAIR_READY || pair->state == PAIR_TAKEN);
}

void view_make(struct pairs *p, const struct reference *reference, struct view *v)
{
    *v = (struct view){
        .p = p, .pool = &p->report.pool, .reference = reference, .price_a = NAN, .price_b = NAN};
    pairs_disturb(p);
    fill_pipes(v);
    fill_left(v);
    v->n_differences = pairs_machine_differences(p, &v->differences);
    v->state = pairs_unfinished(p, &v->n_unfinished);
    for (size_t i = 0; i < p->n; i++) {
        const struct pair *pair = &p->all[i];

        v->n_extra += pair->state == PAIR_LOST_A;
        v->n_lacking += pair->state == PAIR_REFUSED || (pair->state == PAIR_LOST_B && lacks(pair));
        v->n_taken += pair->state == PAIR_TAKEN;
    }
    const struct pair *first;

    v->n_thinned = view_count(v, is_thinned, &v->thinned);
    v->incomplete = view_count(v, failed_a, &first) || v->n_failed_b || v->n_lacking ||
                    v->n_thinned || v->n_unfinished;
    find_margin(v);
    find_slow(v);
    words_make(v);
}

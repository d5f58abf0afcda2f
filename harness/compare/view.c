/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a comparison: see view.h. The sentences are in view_words.c. */
#include "harness/compare/view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/exit_code.h"
#include "harness/compare/forest.h"
#include "harness/compare/view_words.h"

static bool is_ready(const struct pair *pair)
{
    return pair->state == PAIR_READY;
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

static const struct pair *worst_of(const struct view_pipe *pipe)
{
    const struct pair *worst = NULL;

    for (size_t i = 0; i < pipe->n; i++) {
        const struct pair *pair = pipe->pairs[i];

        if (isnan(pair->decide.ratio))
            continue;
        if (worst && worst->decide.decision == DECISION_WORSE)
            break; /* it stands first, and is the lowest of those */
        if (!worst || pair->decide.ratio < worst->decide.ratio)
            worst = pair;
    }
    return worst;
}

static void sort_pipe(struct view_pipe *pipe)
{
    qsort(pipe->pairs, pipe->n, sizeof(*pipe->pairs), by_loss);
    for (size_t i = 0; i < pipe->n; i++)
        pipe->counts[pipe->pairs[i]->decide.decision]++;
    pipe->n_shown = pipe->n - pipe->counts[DECISION_EQUIVALENT];
    pipe->n_first = pipe->counts[DECISION_WORSE] > VIEW_FIRST ? pipe->counts[DECISION_WORSE]
                    : pipe->n_shown < VIEW_FIRST              ? pipe->n_shown
                                                              : VIEW_FIRST;
    pipe->worst = worst_of(pipe);
}

/* Two passes: how many of each pipe, then which. */
static int fill_pipes(struct view *v)
{
    const struct pair *all = v->p->all;
    size_t n = v->p->n;

    v->pipes = pool_alloc(v->pool, n + 1, sizeof(*v->pipes));
    if (!v->pipes)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (is_ready(&all[i]))
            find_pipe(v, all[i].pipe)->n++;
    for (size_t i = 0; i < v->n_pipes; i++) {
        v->pipes[i].pairs = pool_alloc(v->pool, v->pipes[i].n, sizeof(*v->pipes[i].pairs));
        if (!v->pipes[i].pairs)
            return -ENOMEM;
        v->pipes[i].n = 0;
    }
    for (size_t i = 0; i < n; i++)
        if (is_ready(&all[i])) {
            struct view_pipe *pipe = find_pipe(v, all[i].pipe);
            pipe->pairs[pipe->n++] = &all[i];
            v->n_ready++;
        }
    for (size_t i = 0; i < v->n_pipes; i++)
        sort_pipe(&v->pipes[i]);
    return 0;
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

static void add_left(struct view *v, const struct pair **at)
{
    const struct pair *pair = *at;
    struct view_left *last = v->n_left ? &v->left[v->n_left - 1] : NULL;

    if (!last || left_rank(last->pairs[0]) != left_rank(pair) ||
        strcmp(last->pairs[0]->reason, pair->reason) != 0) {
        last = &v->left[v->n_left++];
        *last = (struct view_left){.state = pair->state,
                                   .failed_b = left_rank(pair) == 0,
                                   .reason = *pair->reason ? pair->reason : "no reason is given",
                                   .pairs = at};
    }
    last->n++;
    v->n_failed_b += last->failed_b;
}

static int fill_left(struct view *v)
{
    const struct pair **left = pool_alloc(v->pool, v->p->n + 1, sizeof(*left));
    size_t n = 0;

    v->left = pool_alloc(v->pool, v->p->n + 1, sizeof(*v->left));
    if (!left || !v->left)
        return -ENOMEM;
    for (size_t i = 0; i < v->p->n; i++)
        if (!is_ready(&v->p->all[i]))
            left[n++] = &v->p->all[i];
    qsort(left, n, sizeof(*left), by_reason);
    for (size_t i = 0; i < n; i++)
        add_left(v, &left[i]);
    qsort(v->left, v->n_left, sizeof(*v->left), by_first); /* no order hangs on a sentence */
    return 0;
}

/* What one side could not tell may be the same on both: it explains nothing. */
static bool is_known(const struct machine_difference *d)
{
    return *d->a && *d->b;
}

/* A cause stands next to the loss: what weighs on every pipe is said once, for all of them. */
static int fill_causes(struct view *v)
{
    for (size_t i = 0; i < v->n_pipes; i++) {
        struct view_pipe *pipe = &v->pipes[i];

        if (!pipe->counts[DECISION_WORSE] && !pipe->counts[DECISION_BETTER])
            continue;
        pipe->causes = pool_alloc(v->pool, v->n_differences + 1, sizeof(*pipe->causes));
        if (!pipe->causes)
            return -ENOMEM;
        for (size_t k = 0; k < v->n_differences; k++)
            if (is_known(&v->differences[k]) && *v->differences[k].pipes &&
                words_has_pipe(v->differences[k].pipes, pipe->name))
                pipe->causes[pipe->n_causes++] = words_difference(v->pool, &v->differences[k]);
    }
    return 0;
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

int view_make(struct pairs *p, struct view *v)
{
    int err;

    *v = (struct view){.p = p, .pool = &p->report.pool};
    err = fill_pipes(v);
    if (!err)
        err = fill_left(v);
    if (err)
        return err;
    v->n_differences = pairs_machine_differences(p, &v->differences);
    err = fill_causes(v);
    if (err)
        return err;
    v->state = pairs_unfinished(p, &v->n_unfinished);
    for (size_t i = 0; i < p->n; i++) {
        bool lost = p->all[i].state == PAIR_LOST_B && !p->all[i].failed_b;

        v->n_lacking += lost || p->all[i].state == PAIR_REFUSED;
        v->n_thinned += is_ready(&p->all[i]) && p->all[i].failed_b;
    }
    find_margin(v);
    v->axis = forest_axis(v);
    err = words_make(v);
    return err ? err : v->pool->failed ? -ENOMEM : 0;
}

int view_exit(const struct view *v)
{
    if (v->p->overall.n_worse)
        return EXIT_BAD;
    if (v->n_failed_b || v->n_lacking || v->n_thinned || v->n_unfinished)
        return EXIT_INCOMPLETE;
    return v->p->overall.decision == DECISION_INCONCLUSIVE ? EXIT_UNDECIDED : EXIT_GOOD;
}

double view_axis_at(const struct view_axis *axis, double ratio)
{
    return log(ratio / axis->low) / log(axis->high / axis->low);
}

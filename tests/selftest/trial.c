/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/trial.h"

#include <math.h>
#include <stdlib.h>

#include "harness/decide/decide.h"
#include "tests/selftest/rivals.h"

/* One suite's data, and where it is read from. */
struct suite {
    struct side_samples a[SUITE_CASES], b[SUITE_CASES];
    struct decide_run runs_a[SUITE_CASES][SUITE_RUNS], runs_b[SUITE_CASES][SUITE_RUNS];
    struct decide_case cases[SUITE_CASES];
    struct rival_says says[SUITE_CASES];
    bool worse[SUITE_CASES];
    size_t n, runs_a_n, runs_b_n, launches;
    bool in_turn, best;
    struct bootstrap boot;
};

/* Launches that are left out, at random: of one side more than of the other. */
static struct decide_run kept(const struct noise *noise, struct rng *r, struct side_samples *side,
                              size_t run, size_t n)
{
    double *values = side->values[run], *fast = side->fast[run];
    size_t kept = 0;

    for (size_t l = 0; l < n; l++) {
        if (noise->taken > 0 && rng_double(r) < noise->taken)
            continue;
        values[kept] = values[l];
        fast[kept++] = fast[l];
    }
    return (struct decide_run){.values = values, .fast = fast, .n = kept};
}

static void draw(struct suite *s, const struct noise *noise, const struct replay *replay,
                 struct rng *r)
{
    for (size_t c = 0; c < s->n; c++) {
        if (s->in_turn) {
            noise_in_turn(noise, r, c, s->launches, &s->a[c], &s->b[c]);
        } else {
            noise_side(noise, r, replay, c, s->runs_a_n, s->launches, &s->a[c]);
            noise_side(noise, r, replay, c, 1, s->launches, &s->b[c]);
        }
        for (size_t i = 0; i < SUITE_RUNS; i++) {
            s->runs_a[c][i] = kept(noise, r, &s->a[c], i, s->launches);
            s->runs_b[c][i] = kept(noise, r, &s->b[c], i, s->launches);
        }
        s->cases[c] = (struct decide_case){.a = {s->runs_a[c], s->runs_a_n},
                                           .b = {s->runs_b[c], s->runs_b_n},
                                           .higher_is_better = true};
    }
}

static void lose(struct suite *s, size_t c, double loss)
{
    for (size_t run = 0; run < s->runs_b_n; run++)
        for (size_t l = 0; l < s->launches; l++) {
            struct run_samples *of = &s->b[c].runs[run];

            for (size_t i = 0; i < SUITE_SAMPLES; i++)
                of->samples[l][i] += log1p(-loss);
            of->medians[l] += log1p(-loss);
            s->b[c].values[run][l] *= 1 - loss;
            s->b[c].fast[run][l] *= 1 - loss;
        }
}

static void decide(struct suite *s, bool unchanged, bool in_turn, double margin)
{
    struct decide_options options = {.unchanged = unchanged};
    struct decide_overall overall;

    for (size_t c = 0; c < s->n; c++) {
        for (size_t i = 0; i < SUITE_RUNS; i++) { /* compare knows the medians alone */
            s->runs_a[c][i].fast = unchanged ? s->a[c].fast[i] : NULL;
            s->runs_b[c][i].fast = unchanged ? s->b[c].fast[i] : NULL;
        }
        s->cases[c].margin = margin;
        s->cases[c].paired = in_turn;
        s->cases[c].best_of = s->best && unchanged ? (unsigned)s->runs_a_n : 0;
    }
    if (decide_suite(s->cases, s->n, &options, &overall))
        abort();
    for (size_t c = 0; c < s->n; c++)
        s->worse[c] = s->cases[c].decision == DECISION_WORSE;
}

/* For the two methods of this suite: s->worse, and equivalence in says. */
static void ask(struct suite *s, enum method method)
{
    bool in_turn = s->in_turn && method != METHOD_BY_RUNS, gate = method != METHOD_COMPARE;
    double enough = RIVAL_LEVEL; /* Holm's last step */

    switch (method) {
    case METHOD_CHECK:
    case METHOD_COMPARE:
    case METHOD_BY_RUNS:
        decide(s, gate, in_turn, COMPARE_MARGIN);
        for (size_t c = 0; c < s->n; c++)
            s->says[c] = (struct rival_says){.low = s->cases[c].low, .high = s->cases[c].high};
        if (gate)
            decide(s, true, in_turn, CHECK_MARGIN);
        return;
    case METHOD_WELCH:
        for (size_t c = 0; c < s->n; c++)
            rival_welch(&s->a[c], &s->b[c], s->runs_a_n, s->launches, &s->says[c]);
        break;
    default:
        for (size_t c = 0; c < s->n; c++)
            rival_bootstrap(&s->boot, &s->a[c], &s->b[c], s->runs_a_n, s->launches, enough,
                            &s->says[c]);
    }
    rival_judge(s->says, s->n, RIVAL_LEVEL, CHECK_MARGIN, s->worse);
}

static bool is_equivalent(const struct rival_says *says)
{
    return says->low > 1 - COMPARE_MARGIN && says->high < 1 / (1 - COMPARE_MARGIN);
}

/* Counts what one method says of the suite; lost: the case with a true loss, or s->n. */
static void count(struct suite *s, enum method method, size_t lost, struct tally *t)
{
    bool other = false;

    ask(s, method);
    for (size_t c = 0; c < s->n; c++)
        other |= c != lost && s->worse[c];
    if (lost < s->n) {
        t->found += s->worse[lost];
        t->others += other;
        t->loss_equivalent += is_equivalent(&s->says[lost]);
        return;
    }
    t->alarms += other;
    for (size_t c = 0; c < s->n; c++)
        t->equivalent += is_equivalent(&s->says[c]);
}

/* Is the suite of this number judged by that method, too? */
static bool is_asked(const struct trial *t, size_t suite, enum method method)
{
    bool plain = method == METHOD_WELCH || method == METHOD_BOOTSTRAP;

    if (method == METHOD_CHECK || method == METHOD_COMPARE)
        return true;
    return suite < t->rival_suites && plain == !t->noise->moments;
}

static void count_all(struct trial *t, struct suite *s, size_t suite, size_t lost)
{
    for (enum method m = 0; m < METHODS; m++)
        if (is_asked(t, suite, m))
            count(s, m, lost, &t->by[m]);
}

void trial_run(struct trial *t, const struct replay *replay, uint64_t seed)
{
    struct suite *s = calloc(1, sizeof(*s));
    struct rng r;

    if (!s)
        abort();
    rng_seed(&r, seed);
    bootstrap_init(&s->boot, seed + 1);
    s->n = t->cases = t->noise->cases ? t->noise->cases : SUITE_CASES;
    s->in_turn = t->noise->moments;
    s->best = t->noise->best;
    s->runs_a_n = t->noise->runs_a;
    s->runs_b_n = s->in_turn ? s->runs_a_n : 1;
    s->launches = t->launches;
    for (size_t i = 0; i < t->suites; i++) {
        draw(s, t->noise, replay, &r);
        count_all(t, s, i, s->n);
        size_t lost = rng_below(&r, s->n);

        lose(s, lost, TRUE_LOSS);
        count_all(t, s, i, lost);
        if (!t->noise->big)
            continue;
        lose(s, lost, 1 - (1 - BIG_LOSS) / (1 - TRUE_LOSS));
        ask(s, METHOD_CHECK);
        t->by[METHOD_CHECK].big += s->worse[lost];
    }
    free(s);
}

double trial_smallest(double spread, size_t launches, size_t suites, uint64_t seed, double *found)
{
    double values[SUITE_CASES][2][64], sum = 0;
    struct decide_run runs[SUITE_CASES][2];
    struct decide_case cases[SUITE_CASES];
    struct decide_options options = {.unchanged = true};
    struct decide_overall overall;
    struct rng r;

    rng_seed(&r, seed);
    *found = 0;
    for (size_t i = 0; i < suites; i++) {
        for (size_t c = 0; c < SUITE_CASES; c++) {
            for (size_t s = 0; s < 2; s++) {
                noise_gaussian(&r, spread, values[c][s], launches);
                runs[c][s] = (struct decide_run){.values = values[c][s], .n = launches};
            }
            cases[c] = (struct decide_case){
                .a = {&runs[c][0], 1}, .b = {&runs[c][1], 1}, .higher_is_better = true};
        }
        if (decide_suite(cases, SUITE_CASES, &options, &overall))
            abort();
        double smallest = cases[0].smallest;

        sum += smallest;
        for (size_t l = 0; l < launches; l++)
            values[0][1][l] *= 1 - smallest;
        if (decide_suite(cases, SUITE_CASES, &options, &overall))
            abort();
        *found += (double)(cases[0].proven && cases[0].ratio < 1) / (double)suites;
    }
    return sum / (double)suites;
}

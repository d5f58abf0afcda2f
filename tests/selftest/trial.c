/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/selftest/trial.h"

#include <math.h>
#include <stdlib.h>

#include "harness/decide/decide.h"

/* One suite's data, and where it is read from. */
struct suite {
    struct side_values a[SUITE_CASES], b[SUITE_CASES];
    struct decide_run runs_a[SUITE_CASES][SUITE_RUNS], runs_b[SUITE_CASES][SUITE_RUNS];
    struct decide_case cases[SUITE_CASES];
    bool inside[SUITE_CASES],
        equivalent[SUITE_CASES]; /* COMPARE_MARGIN, by the interval and as decided */
    size_t n, runs_a_n, runs_b_n, launches;
    bool in_turn, best;
};

/* Launches that are left out, at random: of one side more than of the other. */
static struct decide_run kept(const struct noise *noise, struct rng *r, struct side_values *side,
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
            s->b[c].values[run][l] *= 1 - loss;
            s->b[c].fast[run][l] *= 1 - loss;
        }
}

static void set_equivalent(struct suite *s, size_t c)
{
    s->inside[c] =
        s->cases[c].low > 1 - COMPARE_MARGIN && s->cases[c].high < 1 / (1 - COMPARE_MARGIN);
    s->equivalent[c] = s->cases[c].decision == DECISION_EQUIVALENT;
}

static void decide(struct suite *s, enum method method, double margin)
{
    bool gate = method == METHOD_CHECK;
    struct decide_options options = {.unchanged = gate};
    struct decide_overall overall;

    for (size_t c = 0; c < s->n; c++) {
        for (size_t i = 0; i < SUITE_RUNS; i++) { /* compare knows the medians alone */
            s->runs_a[c][i].fast = gate ? s->a[c].fast[i] : NULL;
            s->runs_b[c][i].fast = gate ? s->b[c].fast[i] : NULL;
        }
        s->cases[c].margin = margin;
        s->cases[c].paired = s->in_turn;
        s->cases[c].best_of = s->best && gate ? (unsigned)s->runs_a_n : 0;
    }
    if (decide_suite(s->cases, s->n, &options, &overall))
        abort();
    for (size_t c = 0; margin == COMPARE_MARGIN && c < s->n; c++)
        set_equivalent(s, c);
}

/* Counts what one method says of the suite; lost: the case with a true loss, or s->n. */
static void count(struct suite *s, enum method method, size_t lost, struct tally *t)
{
    bool other = false;

    if (method == METHOD_COMPARE || lost < s->n)
        decide(s, method, COMPARE_MARGIN);
    if (method == METHOD_CHECK)
        decide(s, method, CHECK_MARGIN);
    for (size_t c = 0; c < s->n; c++)
        other |= c != lost && s->cases[c].decision == DECISION_WORSE;
    if (lost < s->n) {
        t->found += s->cases[lost].decision == DECISION_WORSE;
        t->others += other;
        t->loss_equivalent += s->inside[lost] || s->equivalent[lost];
        return;
    }
    t->alarms += other;
    for (size_t c = 0; method == METHOD_COMPARE && c < s->n; c++)
        t->equivalent += s->inside[c] && s->equivalent[c];
}

void trial_begin(struct trial *t, const struct noise *noise, const struct replay *replay,
                 size_t launches, uint64_t seed)
{
    *t = (struct trial){.noise = noise,
                        .replay = replay,
                        .launches = launches,
                        .cases = noise->cases ? noise->cases : SUITE_CASES};
    rng_seed(&t->rng, seed);
}

void trial_run(struct trial *t, size_t suites)
{
    struct suite *s = calloc(1, sizeof(*s));

    if (!s)
        abort();
    s->n = t->cases;
    s->in_turn = t->noise->moments;
    s->best = t->noise->best;
    s->runs_a_n = t->noise->runs_a;
    s->runs_b_n = s->in_turn ? s->runs_a_n : 1;
    s->launches = t->launches;
    for (size_t i = 0; i < suites; i++) {
        draw(s, t->noise, t->replay, &t->rng);
        for (enum method m = 0; m < METHODS; m++)
            count(s, m, s->n, &t->by[m]);
        size_t lost = rng_below(&t->rng, s->n);

        lose(s, lost, TRUE_LOSS);
        for (enum method m = 0; m < METHODS; m++)
            count(s, m, lost, &t->by[m]);
        if (!t->noise->big)
            continue;
        lose(s, lost, 1 - (1 - BIG_LOSS) / (1 - TRUE_LOSS));
        decide(s, METHOD_CHECK, CHECK_MARGIN);
        t->by[METHOD_CHECK].big += s->cases[lost].decision == DECISION_WORSE;
    }
    t->suites += suites;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Judging nights: see nights.h. */
#include "tests/selftest/nights.h"

#include <stdlib.h>

#define MARGIN 0.02
#define SEE    0.05
/* What plumb check takes of a history: the last so many baselines, the first so many, and others. */
#define LEVEL_RUNS 10
#define OTHER_RUNS 20
#ifndef PASSING
#define PASSING 2
#endif

/* What a night was taken for. */
enum class { CLASS_BASELINE, CLASS_SEEN };

/* A level that held for more than PASSING nights was another one; what came and went says how nights differ. */
static void set_breaks(const enum class *class, size_t now, bool *breaks)
{
    bool apart = false; /* the stretch before was of another level */

    for (size_t from = 0, end; from < now; from = end) {
        for (end = from + 1; end < now && class[end] == class[from];)
            end++;
        bool passed = class[from] == CLASS_SEEN && end < now && end - from <= PASSING;
        bool other = class[from] == CLASS_SEEN && !passed;

        breaks[from] = from > 0 && other != apart;
        apart = other;
    }
}

/* The runs before night `now` as plumb check takes them out of a history (docs/check.md). Returns how many baselines. */
static size_t roles_of(const enum class *class, size_t now, enum decide_role *role, bool *breaks,
                       bool *taken)
{
    size_t n = 0, others = 0, rank = 0;

    for (size_t t = 0; t < now; t++) {
        taken[t] = class[t] == CLASS_BASELINE;
        n += taken[t];
    }
    set_breaks(class, now, breaks);
    for (size_t t = 0; t < now; t++) {
        if (class[t] != CLASS_BASELINE)
            continue;
        role[t] = rank + LEVEL_RUNS >= n ? DECIDE_LEVEL
                  : rank < LEVEL_RUNS    ? DECIDE_ANCHOR
                                         : DECIDE_SPREAD;
        rank++;
    }
    for (size_t t = now; t-- > 0;) {
        bool other = class[t] != CLASS_BASELINE || role[t] == DECIDE_SPREAD;

        if (!other)
            continue;
        role[t] = DECIDE_SPREAD;
        taken[t] = others++ < OTHER_RUNS;
    }
    return n;
}

/* A run as check sees it. In turn, compare sees the medians alone. */
static struct decide_run run_of(const struct stage *s, const struct world *w, size_t c, size_t t)
{
    return (struct decide_run){.values = s->nights.values[c][t],
                               .fast = w->in_turn ? NULL : s->nights.fast[c][t],
                               .n = WORLD_LAUNCHES};
}

static void set_cases(struct stage *s, const struct world *w, const enum class *class, size_t now)
{
    enum decide_role role[WORLD_NIGHTS] = {DECIDE_LEVEL};
    bool breaks[WORLD_NIGHTS] = {false}, taken[WORLD_NIGHTS] = {false};

    roles_of(class, now, role, breaks, taken);
    for (size_t c = 0; c < w->cases; c++) {
        size_t n = 0;

        for (size_t t = 0; t < now; t++) {
            if (!taken[t])
                continue;
            s->a[c][n] = run_of(s, w, c, t);
            s->a[c][n].role = role[t];
            s->a[c][n++].breaks = breaks[t];
        }
        s->b[c] = run_of(s, w, c, now);
        s->cases[c] = (struct decide_case){
            .a = {s->a[c], n}, .b = {&s->b[c], 1}, .margin = MARGIN, .higher_is_better = true};
    }
}

static enum gate_verdict judge(struct stage *s, const struct world *w, bool gate)
{
    const struct decide_options options = {.unchanged = gate, .b_stays = gate};

    if (decide_suite(s->cases, w->cases, &options, &s->overall))
        abort();
    s->tally = (struct gate_tally){0};
    for (size_t c = 0; c < w->cases; c++)
        gate_count(&s->tally, &s->cases[c], SEE, s->overall.n_judged);
    return gate_tally_verdict(&s->tally, false);
}

static bool is_kept(const struct stage *s, enum gate_verdict verdict)
{
    return verdict != GATE_LOST && !s->tally.suspect;
}

static void count(struct tally *t, const struct stage *s, const struct world *w,
                  enum gate_verdict verdict)
{
    bool found = false, other = false;
    size_t decided = 0;

    for (size_t c = 0; c < w->cases; c++) {
        bool worse = s->cases[c].decision == DECISION_WORSE;

        found |= worse && s->truth.lost[c];
        other |= worse && !s->truth.lost[c];
        decided += s->cases[c].decision != DECISION_INCONCLUSIVE;
    }
    t->suites++;
    t->lost += verdict == GATE_LOST;
    t->undecided += verdict == GATE_UNDECIDED;
    t->passed += verdict == GATE_PASSED;
    t->kept += is_kept(s, verdict);
    t->found += found;
    t->other += other;
    t->decided += (double)decided / (double)w->cases;
}

static void set_way(struct stage *s, const struct world *w, enum way way)
{
    size_t last = way == WAY_BEST_OF_30 ? 30 : LEVEL_RUNS;

    for (size_t c = 0; way != WAY_HISTORY && c < w->cases; c++) {
        struct decide_side *a = &s->cases[c].a;

        for (size_t t = 0; t < w->baselines; t++)
            s->a[c][t] = run_of(s, w, c, t);
        a->n = w->baselines < last ? w->baselines : last;
        a->runs = s->a[c] + w->baselines - a->n;
        s->cases[c].best_of = way == WAY_BEST_OF_30 ? (unsigned)a->n : 0;
    }
}

void nights_judge(struct stage *s, const struct nightly *n, size_t suites, struct dice *d,
                  struct tally *t)
{
    static const enum class class[WORLD_NIGHTS] = {CLASS_BASELINE};

    for (size_t i = 0; i < suites; i++) {
        s->truth = n->truth;
        world_make(&n->w, d, &s->truth, &s->nights);
        set_cases(s, &n->w, class, n->w.baselines);
        set_way(s, &n->w, n->way);
        count(t, s, &n->w, judge(s, &n->w, true));
    }
}

static bool names(const struct stage *s, const struct world *w, bool lost)
{
    for (size_t c = 0; c < w->cases; c++)
        if (s->cases[c].decision == DECISION_WORSE && s->truth.lost[c] == lost)
            return true;
    return false;
}

static void lose_from(struct stage *s, const struct season *season, size_t night)
{
    for (size_t c = 0; c < season->w.cases; c++)
        for (size_t l = 0; s->truth.lost[c] && season->lost_from && night >= season->lost_from &&
                           l < WORLD_LAUNCHES;
             l++) {
            s->nights.values[c][night][l] *= 1 - season->loss;
            s->nights.fast[c][night][l] *= 1 - season->loss;
        }
}

void nights_series(struct stage *s, const struct season *season, struct dice *d, struct seen *seen)
{
    enum class class[WORLD_NIGHTS] = {CLASS_BASELINE};
    struct world w = season->w;
    bool found = false;

    s->truth = (struct truth){.n_lost = season->n_lost};
    w.baselines = WORLD_NIGHTS - 1;
    world_make(&w, d, &s->truth, &s->nights);
    for (size_t t = 0; t < WORLD_NIGHTS; t++)
        lose_from(s, season, t);
    for (size_t now = 1; now < WORLD_NIGHTS; now++) {
        set_cases(s, &w, class, now);
        enum gate_verdict verdict = judge(s, &w, true);
        bool lossy = season->n_lost && now >= season->lost_from;

        class[now] = is_kept(s, verdict) ? CLASS_BASELINE : CLASS_SEEN;
        seen->nights++;
        seen->alarms += names(s, &w, false) || (!lossy && verdict == GATE_LOST);
        seen->adopted += lossy && class[now] == CLASS_BASELINE;
        if (lossy && !found && names(s, &w, true)) {
            found = true;
            seen->when += (double)(now - season->lost_from + 1);
        }
    }
    for (size_t t = 0; t < WORLD_NIGHTS; t++)
        seen->baselines += class[t] == CLASS_BASELINE;
    seen->found += found;
}

void nights_in_turn(struct stage *s, const struct world *w, size_t suites, uint64_t seed,
                    bool known, size_t *alarms, size_t *found)
{
    static const enum class class[WORLD_NIGHTS] = {CLASS_BASELINE};
    struct dice d;

    dice_seed(&d, seed);
    for (size_t k = 0; k < 2 * suites; k++) {
        bool lost = k % 2;

        s->truth = (struct truth){.n_lost = lost, .loss = lost ? ONE_LOSS : 0};
        world_make(w, &d, &s->truth, &s->nights);
        set_cases(s, w, class, 1);
        for (size_t c = 0; c < w->cases; c++) {
            s->a[c][0].went_first = known ? s->nights.first[c] : NULL;
            s->cases[c].paired = true;
        }
        judge(s, w, false);
        *alarms += !lost && names(s, w, false);
        *found += lost && names(s, w, true);
    }
}

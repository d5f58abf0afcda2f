/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison whose verdicts are made up, for tests of what is shown of it. */
#ifndef PLUMB_TESTS_COMPARE_SCENE_H
#define PLUMB_TESTS_COMPARE_SCENE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/compare/compare.h"
#include "harness/exam/exam.h"

#define SCENE_CASES 8

/* Two runs of one machine, one case after another. */
struct scene {
    struct pairs pairs;
    struct run_folder runs[2];
    const char *names[2];
    struct report_case c;
    struct pair all[SCENE_CASES];
    struct decide_run values[2];
    struct view view;
};

static const double launches[] = {10, 10.1, 9.9};

static inline void scene_init(struct scene *s)
{
    memset(s, 0, sizeof(*s));
    s->names[0] = "bare";
    s->names[1] = "guest";
    for (int i = 0; i < 2; i++) {
        s->runs[i].path = (char *)s->names[i];
        s->runs[i].meta = json_object();
        s->values[i] = (struct decide_run){.values = launches, .n = 3};
    }
    s->c = (struct report_case){.metric = "bandwidth", .unit = "GB/s"};
    s->pairs.report.runs = s->runs;
    s->pairs.report.names = s->names;
    s->pairs.report.n_runs = 2;
    s->pairs.n_a = s->pairs.n_b = 1;
    s->pairs.all = s->all;
    s->pairs.overall.decision = DECISION_INCONCLUSIVE;
    s->pairs.overall.unrest = NAN;
}

static inline void scene_release(struct scene *s)
{
    json_decref(s->runs[0].meta);
    json_decref(s->runs[1].meta);
    for (size_t i = 0; i < s->pairs.report.n_runs && s->pairs.report.exams; i++)
        exam_free(s->pairs.report.exams[i]);
    free(s->pairs.report.exams);
    pool_release(&s->pairs.report.pool);
}

static inline struct pair *add_pair(struct scene *s, const char *pipe, const char *label,
                                    enum pair_state state)
{
    struct pair *pair = &s->all[s->pairs.n++];

    assert_true(s->pairs.n <= SCENE_CASES);
    *pair = (struct pair){.c = &s->c,
                          .pipe = pipe,
                          .label = label,
                          .key = label,
                          .state = state,
                          .reason = "",
                          .differs = ""};
    return pair;
}

/* A case decided so; the overall verdict follows as decide_suite() says it. */
static inline struct pair *add_case(struct scene *s, const char *pipe, const char *label,
                                    enum decision decision, double ratio)
{
    struct pair *pair = add_pair(s, pipe, label, PAIR_READY);
    struct decide_overall *o = &s->pairs.overall;

    pair->decide = (struct decide_case){.a = {&s->values[0], 1},
                                        .b = {&s->values[1], 1},
                                        .higher_is_better = true,
                                        .margin = 0.05,
                                        .decision = decision,
                                        .ratio = ratio,
                                        .low = ratio * 0.99,
                                        .high = ratio * 1.01,
                                        .a_value = 10,
                                        .b_value = 10 * ratio,
                                        .p_worse = NAN,
                                        .p_better = NAN,
                                        .error = 0.005,
                                        .freedom = INFINITY,
                                        .smallest = 0.0123};
    o->n_worse += decision == DECISION_WORSE;
    o->n_better += decision == DECISION_BETTER;
    o->n_equivalent += decision == DECISION_EQUIVALENT;
    o->n_inconclusive += decision == DECISION_INCONCLUSIVE;
    o->n_judged++;
    o->decision = o->n_worse          ? DECISION_WORSE
                  : o->n_inconclusive ? DECISION_INCONCLUSIVE
                  : o->n_better       ? DECISION_BETTER
                                      : DECISION_EQUIVALENT;
    return pair;
}

/* What a printer wrote, to be freed. */
static inline char *printed(int (*print)(FILE *out, struct view *v), struct scene *s)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_int_equal(print(out, &s->view), 0);
    fclose(out);
    return text;
}

static inline int print_text(FILE *out, struct view *v)
{
    return view_print_text(out, v, false);
}

static inline int print_all(FILE *out, struct view *v)
{
    return view_print_text(out, v, true);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What two plans have in common, and whose turn it is. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/rng.h"
#include "harness/against/against.h"

struct line {
    const char *bench, *arguments;
    unsigned number, repeat;
    uint64_t timeout_ns;
    double margin;
};

static struct plan plan_of(const struct line *lines, size_t n)
{
    struct plan p = {.launches = calloc(n + 1, sizeof(struct launch)), .n = n};

    assert_non_null(p.launches);
    for (size_t i = 0; i < n; i++)
        p.launches[i] = (struct launch){.bench = strdup(lines[i].bench),
                                        .arguments = strdup(lines[i].arguments),
                                        .from = strdup(""),
                                        .to = strdup(""),
                                        .hosts = strdup(""),
                                        .case_number = lines[i].number,
                                        .repeat = lines[i].repeat,
                                        .timeout_ns = lines[i].timeout_ns,
                                        .margin = lines[i].margin};
    return p;
}

#define PLAN(lines) plan_of(lines, sizeof(lines) / sizeof((lines)[0]))

static void what_both_have_stays_in_the_order_of_a(void **state)
{
    static const struct line of_a[] = {{"memory", "--size 4", 2, 1, 10, 0.02},
                                       {"memory", "--size 9", 3, 1, 10, 0},
                                       {"gemm", "--size 4", 1, 1, 50, 0.03},
                                       {"memory", "--size 4", 2, 2, 10, 0.02}};
    static const struct line of_b[] = {{"gemm", "--size 4", 7, 1, 20, 0},
                                       {"memory", "--size 4", 8, 2, 30, 0.01},
                                       {"memory", "--size 4", 8, 1, 30, 0.01},
                                       {"memory", "--size 4", 8, 3, 30, 0.01},
                                       {"memory", "--size 5", 9, 1, 30, 0}};
    struct plan a = PLAN(of_a), b = PLAN(of_b);
    struct common told;

    (void)state;
    assert_int_equal(common_plan(&a, &b, &told), 0);
    assert_int_equal(a.n, 3);
    assert_int_equal(b.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(a.launches[i].bench, b.launches[i].bench);
        assert_string_equal(a.launches[i].arguments, b.launches[i].arguments);
        assert_int_equal(a.launches[i].repeat, b.launches[i].repeat);
        assert_int_equal(a.launches[i].case_number, b.launches[i].case_number);
        assert_int_equal(a.launches[i].timeout_ns, b.launches[i].timeout_ns);
        assert_ptr_not_equal(a.launches[i].bench, b.launches[i].bench);
    }
    assert_string_equal(a.launches[1].bench, "gemm");
    assert_int_equal(a.launches[1].timeout_ns, 50);
    assert_int_equal(a.launches[2].repeat, 2);
    assert_int_equal(a.launches[2].timeout_ns, 30);
    /* Each keeps what its own suite says: plumb compare takes the smaller one. */
    for (size_t i = 0; i < 3; i++) {
        assert_true(a.launches[i].margin == (i == 1 ? 0.03 : 0.02));
        assert_true(b.launches[i].margin == (i == 1 ? 0 : 0.01));
    }
    assert_int_equal(told.n_only_a, 1);
    assert_int_equal(told.n_only_b, 2);
    assert_string_equal(told.only_a, "memory --size 9");
    assert_string_equal(told.only_b, "memory --size 4");
    plan_release(&a);
    plan_release(&b);
}

static void nothing_in_common_is_said(void **state)
{
    static const struct line of_a[] = {{"memory", "--size 4", 1, 1, 10, 0}};
    static const struct line of_b[] = {{"memory", "--size 5", 1, 1, 10, 0}};
    struct plan a = PLAN(of_a), b = PLAN(of_b);
    struct common told;

    (void)state;
    assert_int_equal(common_plan(&a, &b, &told), -ENOENT);
    assert_int_equal(a.n, 0);
    assert_int_equal(b.n, 0);
    assert_string_equal(told.only_a, "memory --size 4");
    assert_string_equal(told.only_b, "memory --size 5");
    plan_release(&a);
    plan_release(&b);
}

#define CASES_MAX  40
#define REPEAT_MAX 7

/* Two plans of `cases` cases, of which case c is launched counts[c] times, in rounds, each in another order. */
struct scene {
    struct plan a, b;
    unsigned counts[CASES_MAX];
    size_t cases;
};

static void add_round(struct scene *s, struct rng *rng, unsigned repeat)
{
    uint32_t order[CASES_MAX];
    size_t n = 0;

    for (size_t c = 0; c < s->cases; c++)
        if (s->counts[c] >= repeat)
            order[n++] = (uint32_t)c;
    rng_shuffle_u32(rng, order, n);
    for (size_t i = 0; i < n; i++) {
        struct launch l = {.case_number = order[i] + 1, .repeat = repeat};
        s->a.launches[s->a.n++] = l;
        s->b.launches[s->b.n++] = l;
    }
}

static struct scene scene_of(size_t cases, unsigned least, unsigned most, uint64_t seed)
{
    struct scene s = {.cases = cases};
    struct rng rng;

    s.a.launches = calloc(CASES_MAX * REPEAT_MAX, sizeof(struct launch));
    s.b.launches = calloc(CASES_MAX * REPEAT_MAX, sizeof(struct launch));
    assert_true(s.a.launches && s.b.launches);
    rng_seed(&rng, seed);
    for (size_t c = 0; c < cases; c++)
        s.counts[c] = least + (unsigned)rng_below(&rng, most - least + 1);
    for (unsigned repeat = 1; repeat <= most; repeat++)
        add_round(&s, &rng, repeat);
    return s;
}

static void scene_end(struct scene *s)
{
    free(s->a.launches);
    free(s->b.launches);
}

/* 1 where a goes first, -1 where b does, in the launches of a case; how many there are. */
static size_t turns_of_case(const struct scene *s, size_t number, int turns[REPEAT_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < s->a.n; i++)
        if (s->a.launches[i].case_number == number)
            turns[n++] = common_first(&s->a, &s->b, i) ? -1 : 1;
    return n;
}

/* Each case by itself, and then what its launches leave over. */
static void assert_balanced(const struct scene *s)
{
    int begin = 0, begin_odd = 0, all = 0, begin_of[REPEAT_MAX + 1] = {0};

    for (size_t c = 0; c < s->cases; c++) {
        int turns[REPEAT_MAX] = {0}, sum = 0;
        size_t n = turns_of_case(s, c + 1, turns);

        assert_int_equal(n, s->counts[c]);
        for (size_t i = 0; i < n; i++) {
            sum += turns[i];
            assert_true(i == 0 || turns[i] == -turns[i - 1]);
        }
        assert_int_equal(abs(sum), n % 2);
        begin += turns[0];
        begin_odd += n % 2 ? turns[0] : 0;
        begin_of[n] += turns[0];
        all += sum;
    }
    assert_true(abs(begin) <= 1 && abs(begin_odd) <= 1 && abs(all) <= 1);
    for (size_t n = 1; n <= REPEAT_MAX; n++)
        assert_true(abs(begin_of[n]) <= 1);
}

static void each_case_has_half_of_its_launches_in_either_order(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct scene s = scene_of(1 + seed % CASES_MAX, 1 + seed % 3, 3 + seed % 5, seed);

        assert_int_equal(common_turns(&s.a, &s.b, seed), 0);
        for (size_t i = 0; i < s.a.n; i++) {
            int first = common_first(&s.a, &s.b, i);
            assert_int_equal(s.a.launches[i].turn, first == 0 ? TURN_FIRST : TURN_SECOND);
            assert_int_equal(s.b.launches[i].turn, first == 1 ? TURN_FIRST : TURN_SECOND);
        }
        assert_balanced(&s);
        scene_end(&s);
    }
}

/* No case, and not the first pair of a run either, always begins with the same target. */
static void the_seed_says_which_target_a_case_begins_with(void **state)
{
    enum { CASES = 9, SEEDS = 1000 };
    unsigned begins[CASES + 1] = {0}, first = 0;
    int turns[REPEAT_MAX] = {0};

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct scene s = scene_of(CASES, 5, 5, seed), again = scene_of(CASES, 5, 5, seed);

        assert_int_equal(common_turns(&s.a, &s.b, seed), 0);
        assert_int_equal(common_turns(&again.a, &again.b, seed), 0);
        for (size_t i = 0; i < s.a.n; i++)
            assert_int_equal(s.a.launches[i].turn, again.a.launches[i].turn);
        first += common_first(&s.a, &s.b, 0) == 0;
        for (size_t c = 1; c <= CASES; c++) {
            assert_int_equal(turns_of_case(&s, c, turns), 5);
            begins[c] += turns[0] > 0;
        }
        scene_end(&s);
        scene_end(&again);
    }
    assert_in_range(first, SEEDS * 0.44, SEEDS * 0.56);
    for (size_t c = 1; c <= CASES; c++)
        assert_in_range(begins[c], SEEDS * 0.44, SEEDS * 0.56);
}

static void plans_that_do_not_belong_together_have_no_turns(void **state)
{
    struct scene s = scene_of(2, 2, 2, 1);

    (void)state;
    /* Older runs have no record: their pairs alternated along the plan. */
    for (size_t i = 0; i < s.a.n; i++)
        assert_int_equal(common_first(&s.a, &s.b, i), i % 2);
    assert_int_equal(common_turns(&s.a, &s.b, 1), 0);
    s.b.launches[0].turn = s.a.launches[0].turn;
    assert_int_equal(common_first(&s.a, &s.b, 0), -1);
    s.b.launches[0].turn = TURN_NONE;
    assert_int_equal(common_first(&s.a, &s.b, 0), -1);
    s.b.launches[1].repeat++;
    assert_int_equal(common_first(&s.a, &s.b, 1), -1);
    s.a.launches[2].case_number++;
    assert_int_equal(common_first(&s.a, &s.b, 2), -1);
    scene_end(&s);
}

/* As over the wire: written, and read again. */
static json_t *sent(const struct launch *l)
{
    json_t *m = wire_launch(l);
    char *text = json_dumps(m, JSON_COMPACT);

    json_decref(m);
    m = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    assert_non_null(m);
    return m;
}

static void a_launch_goes_over_the_wire_whole(void **state)
{
    static const struct line of_a[] = {{"net", "--size 4 --ways both", 12, 3, 61000000000, 0.015}};
    struct plan a = PLAN(of_a), b = {.launches = calloc(1, sizeof(struct launch)), .n = 1};
    json_t *m = sent(&a.launches[0]);

    (void)state;
    assert_non_null(b.launches);
    assert_int_equal(wire_take_launch(m, &b.launches[0]), 0);
    assert_string_equal(b.launches[0].bench, "net");
    assert_string_equal(b.launches[0].arguments, "--size 4 --ways both");
    assert_int_equal(b.launches[0].case_number, 12);
    assert_int_equal(b.launches[0].repeat, 3);
    assert_int_equal(b.launches[0].timeout_ns, 61000000000);
    assert_true(b.launches[0].margin == 0.015);
    json_object_set_new(m, "repeat", json_integer(0));
    plan_release(&b);
    struct launch none;
    assert_int_equal(wire_take_launch(m, &none), -EBADMSG);
    json_object_del(m, "repeat");
    assert_int_equal(wire_take_launch(m, &none), -EBADMSG);
    json_decref(m);
    plan_release(&a);
}

/* The margin that the message says, NAN where it is refused. */
static double margin_taken(const json_t *m)
{
    struct plan p = {.launches = calloc(1, sizeof(struct launch)), .n = 1};

    assert_non_null(p.launches);
    int err = wire_take_launch(m, &p.launches[0]);
    double margin = err ? NAN : p.launches[0].margin;
    assert_true(!err || err == -EBADMSG);
    plan_release(&p);
    return margin;
}

static json_t *sent_with(double margin)
{
    struct line line = {"memory", "--size 4", 1, 1, 10, margin};
    struct plan p = plan_of(&line, 1);
    json_t *m = sent(&p.launches[0]);

    plan_release(&p);
    return m;
}

static void a_margin_goes_over_the_wire_to_its_last_digit(void **state)
{
    static const double margins[] = {0.01, 0.05, 1.0 / 3, 0.001, 1e-9, 0.999999999999};

    (void)state;
    for (size_t i = 0; i < sizeof(margins) / sizeof(*margins); i++) {
        json_t *m = sent_with(margins[i]);
        assert_true(margin_taken(m) == margins[i]);
        json_decref(m);
    }
}

/* A suite that says none has NAN (suite.h), a plan that is read back 0 (plan.h). */
static void no_margin_goes_over_the_wire_as_none(void **state)
{
    static const double none[] = {0, -1, NAN};

    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
        json_t *m = sent_with(none[i]);
        assert_null(json_object_get(m, "margin"));
        assert_true(margin_taken(m) == 0);
        json_decref(m);
    }
}

static void what_is_no_margin_is_refused(void **state)
{
    static const double wrong[] = {0, 1, -0.01, 5};
    json_t *m = sent_with(0.01);

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        json_object_set_new(m, "margin", json_real(wrong[i]));
        assert_true(isnan(margin_taken(m)));
    }
    json_object_set_new(m, "margin", json_string("1%"));
    assert_true(isnan(margin_taken(m)));
    json_decref(m);
}

static void text_that_is_no_utf8_still_goes(void **state)
{
    json_t *good = wire_text("2 µs"), *bad = wire_text("caf\xe9 \xff!");

    (void)state;
    assert_string_equal(json_string_value(good), "2 µs");
    assert_string_equal(json_string_value(bad), "caf? ?!");
    json_decref(good);
    json_decref(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_both_have_stays_in_the_order_of_a),
        cmocka_unit_test(nothing_in_common_is_said),
        cmocka_unit_test(each_case_has_half_of_its_launches_in_either_order),
        cmocka_unit_test(the_seed_says_which_target_a_case_begins_with),
        cmocka_unit_test(plans_that_do_not_belong_together_have_no_turns),
        cmocka_unit_test(a_launch_goes_over_the_wire_whole),
        cmocka_unit_test(a_margin_goes_over_the_wire_to_its_last_digit),
        cmocka_unit_test(no_margin_goes_over_the_wire_as_none),
        cmocka_unit_test(what_is_no_margin_is_refused),
        cmocka_unit_test(text_that_is_no_utf8_still_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

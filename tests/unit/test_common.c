/* SPDX-License-Identifier: Apache-2.0 */
/* What two plans have in common, and whose turn it is. */
#include "harness/against/against.h"
#include "tests/unit/unit.h"

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

TEST(what_both_have_stays_in_the_order_of_a)
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

    assert_int_equal(common_plan(&a, &b, &told), 0);
    assert_int_equal(a.n, 3);
    assert_int_equal(b.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(a.launches[i].bench, b.launches[i].bench);
        assert_string_equal(a.launches[i].arguments, b.launches[i].arguments);
        assert_string_equal(a.launches[i].bench, i == 1 ? "gemm" : "memory");
        assert_int_equal(a.launches[i].repeat, i == 2 ? 2 : 1);
        assert_int_equal(b.launches[i].repeat, i == 2 ? 2 : 1);
        assert_int_equal(a.launches[i].case_number, b.launches[i].case_number);
        assert_int_equal(a.launches[i].timeout_ns, i == 1 ? 50 : 30);
        assert_int_equal(b.launches[i].timeout_ns, i == 1 ? 50 : 30);
        assert_ptr_not_equal(a.launches[i].bench, b.launches[i].bench);
        /* each keeps what its own suite says: plumb compare takes the smaller one */
        assert_true(a.launches[i].margin == (i == 1 ? 0.03 : 0.02));
        assert_true(b.launches[i].margin == (i == 1 ? 0 : 0.01));
    }
    assert_int_equal(told.n_only_a, 1);
    assert_int_equal(told.n_only_b, 2);
    assert_string_equal(told.only_a, "memory --size 9");
    assert_string_equal(told.only_b, "memory --size 4");
    plan_release(&a);
    plan_release(&b);
    a = plan_of(of_a, 1);
    b = plan_of(of_b, 1);
    assert_int_equal(common_plan(&a, &b, &told), -ENOENT);
    assert_true(a.n == 0 && b.n == 0 && told.n_only_a == 1 && told.n_only_b == 1);
    plan_release(&a);
    plan_release(&b);
}

/* Two plans of these cases, one launch after another. */
static struct plan turns_plan(const size_t *cases, size_t n)
{
    struct plan p = {.launches = calloc(n, sizeof(struct launch)), .n = n};

    assert_non_null(p.launches);
    for (size_t i = 0; i < n; i++) {
        p.launches[i] = (struct launch){.case_number = cases[i], .repeat = 1};
        for (size_t k = 0; k < i; k++)
            p.launches[i].repeat += cases[k] == cases[i];
    }
    return p;
}

/* Each case has half of its launches in either order, by turns; what is left over, and who begins, is balanced
 * over the cases. */
TEST(each_case_has_half_of_its_launches_in_either_order)
{
    enum { CASES = 7, ROUNDS = 5 };
    static const unsigned counts[CASES] = {1, 3, 1, 5, 2, 4, 2};
    size_t cases[CASES * ROUNDS], n = 0;
    unsigned firsts[CASES] = {0};

    for (size_t i = 0; i < CASES * ROUNDS; i++) { /* each round in another order */
        size_t c = (i % CASES * (i / CASES % 2 ? 5 : 1) + i / CASES) % CASES;

        if (i / CASES < counts[c])
            cases[n++] = c + 1;
    }
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct plan a = turns_plan(cases, n), b = turns_plan(cases, n);
        int all = 0, begin = 0, odd = 0, like[ROUNDS + 1] = {0}, last[CASES + 1] = {0};

        common_turns(&a, &b, seed);
        for (size_t i = 0; i < n; i++) {
            size_t c = cases[i] - 1;
            int first = common_first(&a, &b, i), turn = first ? -1 : 1;

            assert_int_equal(a.launches[i].turn, first == 0 ? TURN_FIRST : TURN_SECOND);
            assert_int_equal(b.launches[i].turn, first == 1 ? TURN_FIRST : TURN_SECOND);
            assert_true(last[cases[i]] != turn);
            all += turn;
            if (!last[cases[i]]) {
                begin += turn;
                odd += counts[c] % 2 ? turn : 0;
                like[counts[c]] += turn; /* of cases with as many launches */
                firsts[c] += turn > 0;
            }
            last[cases[i]] = turn;
        }
        assert_true(abs(all) <= 1 && abs(begin) <= 1 && odd == 0);
        for (size_t k = 1; k <= ROUNDS; k++)
            assert_true(abs(like[k]) <= 1);
        free(a.launches);
        free(b.launches);
    }
    for (size_t c = 0; c < CASES; c++)
        assert_in_range(firsts[c], 30, 70);
}

TEST(plans_that_do_not_belong_together_have_no_turns)
{
    static const size_t cases[] = {1, 2, 2, 1};
    struct plan a = turns_plan(cases, 4), b = turns_plan(cases, 4);

    assert_int_equal(common_first(&a, &b, 0), -1);
    common_turns(&a, &b, 1);
    b.launches[0].turn = a.launches[0].turn;
    assert_int_equal(common_first(&a, &b, 0), -1);
    b.launches[0].turn = TURN_NONE;
    assert_int_equal(common_first(&a, &b, 0), -1);
    b.launches[1].repeat++;
    assert_int_equal(common_first(&a, &b, 1), -1);
    a.launches[2].case_number++;
    assert_int_equal(common_first(&a, &b, 2), -1);
    free(a.launches);
    free(b.launches);
}

/* The margin that a launch has when it was written and read again, with `said` in the place of it; NAN where it is
 * refused. */
static double margin_sent(double margin, json_t *said)
{
    struct line line = {"memory", "--size 4", 1, 1, 10, margin};
    struct plan p = plan_of(&line, 1), taken = plan_of(NULL, 0);
    json_t *m = wire_launch(&p.launches[0]);
    char *text;

    if (said)
        json_object_set_new(m, "margin", said);
    text = json_dumps(m, JSON_COMPACT);
    json_decref(m);
    m = json_loads(text, 0, NULL);
    free(text);
    assert_int_equal(!json_object_get(m, "margin"), !said && !(margin > 0));
    int err = wire_take_launch(m, &taken.launches[0]);
    assert_true(!err || err == -EBADMSG);
    taken.n = !err;
    double got = err ? NAN : taken.launches[0].margin;
    json_decref(m);
    plan_release(&taken);
    plan_release(&p);
    return got;
}

/* To its last digit; a suite that says none has NAN (suite.h), a plan that is read back 0 (plan.h). */
TEST(a_margin_goes_over_the_wire)
{
    static const double margins[] = {0.01, 1.0 / 3, 1e-9, 0.999999999999}, none[] = {0, -1, NAN},
                        wrong[] = {0, 1, -0.01, 5};

    for (size_t i = 0; i < sizeof(margins) / sizeof(*margins); i++)
        assert_true(margin_sent(margins[i], NULL) == margins[i]);
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        assert_true(margin_sent(none[i], NULL) == 0);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_true(isnan(margin_sent(0.01, json_real(wrong[i]))));
    assert_true(isnan(margin_sent(0.01, json_string("1%"))));
}

TEST(a_launch_goes_over_the_wire_whole)
{
    static const struct line of_a[] = {{"net", "--size 4 --ways both", 12, 3, 61000000000, 0.015}};
    struct plan a = PLAN(of_a), b = plan_of(NULL, 0);
    json_t *m = wire_launch(&a.launches[0]);
    struct launch none, *l = b.launches;

    b.n = 1;
    assert_int_equal(wire_take_launch(m, l), 0);
    assert_string_equal(l->bench, "net");
    assert_string_equal(l->arguments, "--size 4 --ways both");
    assert_int_equal(l->case_number, 12);
    assert_int_equal(l->repeat, 3);
    assert_int_equal(l->timeout_ns, 61000000000);
    json_object_set_new(m, "repeat", json_integer(0));
    assert_int_equal(wire_take_launch(m, &none), -EBADMSG);
    json_object_del(m, "repeat");
    assert_int_equal(wire_take_launch(m, &none), -EBADMSG);
    json_decref(m);
    plan_release(&a);
    plan_release(&b);
}

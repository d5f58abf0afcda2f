/* SPDX-License-Identifier: Apache-2.0 */
/* What two plans have in common, and whose turn it is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/against/common.h"
#include "harness/against/wire.h"

struct line {
    const char *bench, *arguments;
    unsigned number, repeat;
    uint64_t timeout_ns;
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
                                        .timeout_ns = lines[i].timeout_ns};
    return p;
}

#define PLAN(lines) plan_of(lines, sizeof(lines) / sizeof((lines)[0]))

static void what_both_have_stays_in_the_order_of_a(void **state)
{
    static const struct line of_a[] = {{"memory", "--size 4", 2, 1, 10},
                                       {"memory", "--size 9", 3, 1, 10},
                                       {"gemm", "--size 4", 1, 1, 50},
                                       {"memory", "--size 4", 2, 2, 10}};
    static const struct line of_b[] = {{"gemm", "--size 4", 7, 1, 20},
                                       {"memory", "--size 4", 8, 2, 30},
                                       {"memory", "--size 4", 8, 1, 30},
                                       {"memory", "--size 4", 8, 3, 30},
                                       {"memory", "--size 5", 9, 1, 30}};
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
    assert_int_equal(told.n_only_a, 1);
    assert_int_equal(told.n_only_b, 2);
    assert_string_equal(told.only_a, "memory --size 9");
    assert_string_equal(told.only_b, "memory --size 4");
    plan_release(&a);
    plan_release(&b);
}

static void nothing_in_common_is_said(void **state)
{
    static const struct line of_a[] = {{"memory", "--size 4", 1, 1, 10}};
    static const struct line of_b[] = {{"memory", "--size 5", 1, 1, 10}};
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

static void turns_alternate_who_is_first(void **state)
{
    static const int abba[] = {0, 1, 1, 0, 0, 1, 1, 0};

    (void)state;
    for (size_t i = 0; i < sizeof(abba) / sizeof(*abba); i++)
        assert_int_equal(turn_of(i), abba[i]);
}

static void a_launch_goes_over_the_wire_whole(void **state)
{
    static const struct line of_a[] = {{"net", "--size 4 --ways both", 12, 3, 61000000000}};
    struct plan a = PLAN(of_a), b = {.launches = calloc(1, sizeof(struct launch)), .n = 1};
    json_t *m = wire_launch(&a.launches[0]);

    (void)state;
    assert_non_null(b.launches);
    assert_int_equal(wire_take_launch(m, &b.launches[0]), 0);
    assert_string_equal(b.launches[0].bench, "net");
    assert_string_equal(b.launches[0].arguments, "--size 4 --ways both");
    assert_int_equal(b.launches[0].case_number, 12);
    assert_int_equal(b.launches[0].repeat, 3);
    assert_int_equal(b.launches[0].timeout_ns, 61000000000);
    json_object_set_new(m, "repeat", json_integer(0));
    plan_release(&b);
    struct launch none;
    assert_int_equal(wire_take_launch(m, &none), -EBADMSG);
    json_object_del(m, "repeat");
    assert_int_equal(wire_take_launch(m, &none), -EBADMSG);
    json_decref(m);
    plan_release(&a);
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
        cmocka_unit_test(turns_alternate_who_is_first),
        cmocka_unit_test(a_launch_goes_over_the_wire_whole),
        cmocka_unit_test(text_that_is_no_utf8_still_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

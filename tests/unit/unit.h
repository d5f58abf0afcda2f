/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test includes: cmocka with what it wants, what nearly all tests need, and
 *
 *   TEST(a_step_is_found)
 *   {
 *       assert_int_equal(...);
 *   }
 *
 * which a program runs in their order, or of them alone those that its argument matches.
 */
#ifndef PLUMB_TESTS_UNIT_H
#define PLUMB_TESTS_UNIT_H

// clang-format off
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
// clang-format on

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* With what is done before and after it; both get `state`, as the test does. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_is_listed(void)                                \
    {                                                                                              \
        unit_add((struct CMUnitTest){#name, name, set_up, tear_down, NULL});                       \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

/* What is done before and after all tests of the program; once a file. */
#define TESTS_WITH(set_up, tear_down)                                                              \
    __attribute__((constructor)) static void tests_are_around(void)                                \
    {                                                                                              \
        unit_around(set_up, tear_down);                                                            \
    }                                                                                              \
    _Static_assert(1, "")

/* Each of the texts, which '|' parts, is in it; those behind '!' are not. */
void assert_says(const char *text, const char *wanted);
/* Dead, or a zombie that only waits for whoever adopted it. Waits up to two minutes for that. */
bool is_gone(pid_t pid);

void unit_add(struct CMUnitTest test);
void unit_around(CMFixtureFunction set_up, CMFixtureFunction tear_down);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What shared processes saved, on rows that were made by hand: known answers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/report/processes.h"

#define HEADER "case,repeat,status,elapsed_s,chosen_in,launch_s,process_cases\n"

/* The use of a run that has one benchmark, or two. */
static struct process_use use_of(const char *rows, const char *others)
{
    struct run_bench benches[2] = {{.name = "one"}, {.name = "two"}};
    const struct run_folder run = {.benches = benches, .n_benches = 2};
    const char *texts[2] = {rows, others};
    char text[1024], error[128];
    struct process_use use;

    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text), HEADER "%s", texts[i]);
        assert_int_equal(
            table_parse("rows", text, strlen(text), &benches[i].rows, error, sizeof(error)), 0);
    }
    assert_int_equal(process_use_of(&run, &use), 0);
    table_release(&benches[0].rows);
    table_release(&benches[1].rows);
    return use;
}

static void says(const struct process_use *use, const char *want)
{
    char text[PROCESS_USE_BYTES];

    assert_string_equal(process_use_text(use, text), want);
}

/* Case 1 takes 2 s more as the first, case 2 takes 3 s more: 2.5 s for each of four launches. How
 * long they sampled does not matter. */
static void test_saved(void **state)
{
    struct process_use use = use_of("1,1,ok,0.5,,3.0,0\n"
                                    "2,1,ok,0.5,,1.0,1\n"
                                    "3,1,noisy,0.5,,9.0,2\n"
                                    "2,2,ok,0.2,,3.7,0\n2,2,ok,,,3.7,0\n"
                                    "1,2,ok,1.0,,1.5,1\n"
                                    "3,2,ok,0.5,,9.0,2\n",
                                    "");

    (void)state;
    assert_int_equal(use.launches, 6);
    assert_int_equal(use.processes, 2);
    assert_int_equal(use.known, 4);
    assert_true(fabs(use.saved_s - 4 * 2.5) < 1e-9);
    says(&use, "6 shared 2 processes, which saved about 10 s");
}

/* A search, a failure and launches of their own process are held against nothing. */
static void test_not_known(void **state)
{
    struct process_use use = use_of("1,1,ok,0.5,,9.0,0\n"
                                    "1,2,ok,0.5,1,1.0,1\n"
                                    "2,2,failed,0.5,,9.0,0\n"
                                    "2,1,ok,0.5,,1.0,1\n"
                                    "3,1,ok,0.5,,9.0,\n",
                                    "");

    (void)state;
    assert_int_equal(use.launches, 4);
    assert_int_equal(use.later, 2);
    assert_int_equal(use.known, 0);
    assert_true(isnan(use.saved_s));
    says(&use, "4 shared 2 processes");
}

static void test_partly_known(void **state)
{
    struct process_use use = use_of("1,1,ok,0.5,,121.0,0\n"
                                    "1,2,ok,0.5,,1.0,1\n",
                                    "7,1,ok,0.5,,2.0,0\n"
                                    "8,1,ok,0.5,,1.0,1\n");

    (void)state;
    assert_true(fabs(use.saved_s - 120) < 1e-9);
    says(&use, "4 shared 2 processes, which saved at least about 2 min");
}

/* One case that was no slower as the first: there is no start that could be measured. */
static void test_nothing(void **state)
{
    struct process_use use = use_of("1,1,ok,0.5,,3.0,0\n"
                                    "1,2,ok,0.5,,1.0,1\n"
                                    "2,2,ok,0.5,,1.0,0\n"
                                    "2,1,ok,0.5,,1.5,1\n",
                                    "");

    (void)state;
    assert_true(use.saved_s == 0);
    says(&use, "4 shared 2 processes, which saved nothing measurable");
    use = use_of("1,1,ok,0.5,,3.0,\n", "");
    says(&use, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_not_known),
        cmocka_unit_test(test_partly_known),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

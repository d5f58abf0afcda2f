/* SPDX-License-Identifier: Apache-2.0 */
/* What shared processes saved, on rows that were made by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/report/processes.h"

/* The use of a run that has one benchmark, or two. */
static struct process_use use_of(const char *rows, const char *others)
{
    struct run_bench benches[2] = {{.name = "one"}, {.name = "two"}};
    const struct run_folder run = {.benches = benches, .n_benches = 2};
    const char *texts[2] = {rows, others};
    char text[1024], error[128];

    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "case,repeat,status,elapsed_s,chosen_in,launch_s,process_cases\n%s", texts[i]);
        assert_int_equal(
            table_parse("rows", text, strlen(text), &benches[i].rows, error, sizeof(error)), 0);
    }
    struct process_use use = process_use_of(&run);
    table_release(&benches[0].rows);
    table_release(&benches[1].rows);
    return use;
}

static void test_saved(void **state)
{
    static const struct {
        const char *rows, *others;
        size_t launches, processes, known;
        double saved_s;
        const char *says;
    } cases[] = {
        /* Case 1 takes 2 s more as the first, case 2 takes 3 s more: 2.5 s for each of four
         * launches. How long they sampled does not matter. */
        {"1,1,ok,0.5,,3.0,0\n2,1,ok,0.5,,1.0,1\n3,1,noisy,0.5,,9.0,2\n"
         "2,2,ok,0.2,,3.7,0\n2,2,ok,,,3.7,0\n1,2,ok,1.0,,1.5,1\n3,2,ok,0.5,,9.0,2\n",
         "", 6, 2, 4, 10, "about 10 s"},
        /* A search, a failure and launches of their own process are held against nothing. */
        {"1,1,ok,0.5,,9.0,0\n1,2,ok,0.5,1,1.0,1\n2,2,failed,0.5,,9.0,0\n2,1,ok,0.5,,1.0,1\n"
         "3,1,ok,0.5,,9.0,\n",
         "", 4, 2, 0, NAN, "4 shared 2"},
        /* Of the other benchmark it is not known. */
        {"1,1,ok,0.5,,121.0,0\n1,2,ok,0.5,,1.0,1\n", "7,1,ok,0.5,,2.0,0\n8,1,ok,0.5,,1.0,1\n", 4, 2,
         1, 120, "at least about 2 min"},
        /* One case that was no slower as the first. */
        {"1,1,ok,0.5,,3.0,0\n1,2,ok,0.5,,1.0,1\n2,2,ok,0.5,,1.0,0\n2,1,ok,0.5,,1.5,1\n", "", 4, 2,
         2, 0, "nothing"},
        {"1,1,ok,0.5,,3.0,\n", "", 0, 0, 0, NAN, ""},
    };
    char text[PROCESS_USE_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct process_use use = use_of(cases[i].rows, cases[i].others);

        assert_int_equal(use.launches, cases[i].launches);
        assert_int_equal(use.processes, cases[i].processes);
        assert_int_equal(use.known, cases[i].known);
        if (*cases[i].says)
            assert_true(isnan(cases[i].saved_s) ? isnan(use.saved_s)
                                                : fabs(use.saved_s - cases[i].saved_s) < 1e-9);
        if (!strstr(process_use_text(&use, text), cases[i].says) || (!*cases[i].says && *text))
            fail_msg("case %zu: %s", i, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_saved)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

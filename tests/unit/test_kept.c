/* SPDX-License-Identifier: Apache-2.0 */
/* Which choices of a benchmark are kept for a run, on a made-up benchmark and rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/run/launch.h"

static const char *const units[] = {"auto", "wide", "narrow", NULL};

static struct opt options[] = {
    {.name = "vector-unit", .type = OPT_CHOICE, .flags = OPT_LIST | OPT_KEPT, .choices = units},
    {.name = "other-unit", .type = OPT_CHOICE, .choices = units},
    {.name = "threads", .type = OPT_U64, .flags = OPT_KEPT, .min = 1},
    {.name = NULL},
};

static char *defaults[] = {"auto", "auto", "0", NULL};

static struct bench_info bench = {.name = "made-up", .options = options, .defaults = defaults};

static struct launch launch = {.state = LAUNCH_DONE, .case_number = 7, .repeat = 2};

static void read_rows(const char *cells, struct table *t)
{
    char text[512], error[256];

    snprintf(text, sizeof(text), "vector_unit,other_unit,threads\n%s", cells);
    assert_int_equal(table_parse("rows", text, strlen(text), t, error, sizeof(error)), 0);
}

/* What is kept of a launch with these arguments and rows. */
static void expect(const char *arguments, const char *cells, const char *kept)
{
    struct launch l = launch;
    struct table t;

    l.arguments = (char *)arguments;
    read_rows(cells, &t);
    char *text = kept_choices(&bench, &l, &t, 0, t.n_rows);
    assert_non_null(text);
    assert_string_equal(text, kept);
    free(text);
    table_release(&t);
}

static void test_rows_that_agree(void **state)
{
    (void)state;
    expect("--size 8", "wide,narrow,\n", "--vector-unit wide");
    expect("", "wide,,\nwide,,\n", "--vector-unit wide");
    expect("", ",,\nwide,,\n,,\n", "--vector-unit wide"); /* a row that says nothing of it */
    expect("", "narrow,,4\n", "--vector-unit narrow --threads 4");
}

static void test_rows_that_do_not(void **state)
{
    (void)state;
    expect("", "wide,,\nnarrow,,\n", "");
    expect("", "wide,,\nnarrow,,\nwide,,\n", "");
    expect("", ",,\n", "");
    expect("", "wide,,4\nnarrow,,4\n", "--threads 4"); /* each option by itself */
}

static void test_only_what_was_left_is_kept(void **state)
{
    (void)state;
    expect("--vector-unit auto --size 8", "wide,,\n", "--vector-unit wide");
    expect("--vector-unit narrow", "narrow,,\n", "");
    expect("--size 8 --vector-unit=narrow", "wide,,\n", "");
    expect("--vector-unit automatic", "wide,,\n", "");
}

static void test_only_what_the_option_takes_is_kept(void **state)
{
    (void)state;
    expect("", "auto,,\n", "");
    expect("", "wider,,\n", "");
    expect("", "\"wide,narrow\",,\n", "");
    expect("", ",,many\n", "");
    expect("", ",,0\n", "");
}

static void learn(struct kept *k, struct launch *l, const char *cells)
{
    struct table t;

    read_rows(cells, &t);
    assert_int_equal(kept_learn(k, &bench, l, &t, 0, t.n_rows), 0);
    table_release(&t);
}

static void test_the_first_launch_decides(void **state)
{
    struct kept k = {0};
    struct launch l = launch, other = launch;

    (void)state;
    l.arguments = other.arguments = "";
    other.case_number = 8;
    assert_null(kept_of(&k, &l));
    learn(&k, &l, "wide,,\n");
    l.repeat = 3;
    learn(&k, &l, "narrow,,\n");
    assert_string_equal(kept_of(&k, &l)->arguments, "--vector-unit wide");
    assert_int_equal(kept_of(&k, &l)->repeat, 2);
    assert_null(kept_of(&k, &other)); /* a case of its own */
    learn(&k, &other, ",wide,\n");    /* it chose nothing: the next one may */
    assert_int_equal(k.n, 1);
    learn(&k, &other, "wide,,\nnarrow,,\n");
    learn(&k, &other, "wide,,\n");
    assert_null(kept_of(&k, &other)); /* it stays as it is: each launch decides for itself */
    kept_release(&k);
}

static void uses(const char *arguments, const char *cells, const char *used)
{
    struct kept_case c = {.arguments = (char *)arguments};
    struct table t;

    read_rows(cells, &t);
    assert_int_equal(t.n_rows, strlen(used));
    for (size_t row = 0; row < t.n_rows; row++)
        assert_int_equal(kept_used(&c, &t, row), used[row] == 'y');
    table_release(&t);
}

static void test_rows_by_an_earlier_choice(void **state)
{
    (void)state;
    uses("--vector-unit wide", "wide,,\n,wide,\nnarrow,,\nwider,,\nwid,,\n", "ynnnn");
    uses("--vector-unit wide --threads 4", "wide,,4\nwide,,5\nwide,,\n,,4\nnarrow,,4\n", "ynyyn");
    uses("--elsewhere wide", "wide,,\n", "n");
    uses("", "wide,,\n", "n");
}

static void test_of_hosts_nothing_is_kept(void **state)
{
    struct kept k = {0};
    struct launch group = launch, pair = launch;

    (void)state;
    group.arguments = pair.arguments = "";
    group.hosts = "one;two";
    pair.from = "one";
    pair.to = "two";
    learn(&k, &group, "wide,,\n");
    learn(&k, &pair, "wide,,\n");
    assert_int_equal(k.n, 0);
    kept_release(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_that_agree),
        cmocka_unit_test(test_rows_that_do_not),
        cmocka_unit_test(test_only_what_was_left_is_kept),
        cmocka_unit_test(test_only_what_the_option_takes_is_kept),
        cmocka_unit_test(test_the_first_launch_decides),
        cmocka_unit_test(test_of_hosts_nothing_is_kept),
        cmocka_unit_test(test_rows_by_an_earlier_choice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

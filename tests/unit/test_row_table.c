/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows for people: it lines up, fits the line and loses no figure. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/row.h"

static const char *const params[] = {"size", "kernel", "path"};

/* What a printer wrote; free it. */
static char *printed(void (*print)(FILE *, const struct row *), const struct row *row)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    print(out, row);
    fclose(out);
    return text;
}

/* A row of two parameters. */
static void start(struct row *row)
{
    row_init(row);
    row->param_names = params;
    row->n_params = 2;
    row->params[0] = "4096";
    row->params[1] = "triad";
}

/* With everything that a row may carry. */
static void start_full(struct row *row)
{
    start(row);
    row->n_params = 3;
    row->params[2] = "peer access";
    row->metric = "bandwidth";
    row->unit = "GB/s";
    row->value = 123.456;
    row->summary.ci_low = 99;
    row->summary.ci_high = 5000;
    row->samples = 57;
    row->percent_of_limit = 88.25;
    row->status = "noisy";
    row->reason = "interval is +/- 20 %, wanted 1 %, when sampling stopped (time)";
    row->disturbed = "13 involuntary context switches";
    row->origin = "simulated";
}

static void print_table(FILE *out, const struct row *row)
{
    row_print_table(out, &(struct row_table){0}, row);
}

static void print_line(FILE *out, const struct row *row)
{
    row_print_table(out, &(struct row_table){.begun = true}, row);
}

static void test_table_lines_up(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.metric = "bandwidth";
    row.unit = "GB/s";
    row.value = 100;
    row.summary.ci_low = 99;
    row.summary.ci_high = 102;
    row.samples = 57;
    row.percent_of_limit = 88.25;
    row.status = "ok";
    char *table = printed(print_table, &row);
    assert_string_equal(table, "size      kernel    metric                value unit          -ci  "
                               "    +ci samples   limit  status\n"
                               "4096      triad     bandwidth               100 GB/s       -1.00%  "
                               " +2.00%      57   88.2%  ok\n");
    free(table);
}

/* A share of a reference is shown as such. */
static void test_table_shows_reference(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.limit_kind = "reference";
    row.limit_source = "no code reads this: measured";
    row.percent_of_limit = 88.25;
    row.status = "ok";
    char *table = printed(print_table, &row);
    assert_non_null(strstr(table, "   ref88%  ok\n"));
    free(table);
}

/* Kernel is no column: told above, and again when it changes; size is as wide as its values. */
static void print_three(FILE *out, const struct row *row)
{
    struct row_table table = {.aside = {false, true}, .width = {12}};
    struct row second = *row;

    row_print_table(out, &table, row);
    row_print_table(out, &table, row);
    second.params[1] = "copy";
    second.origin = "simulated";
    row_print_table(out, &table, &second);
}

static void test_table_tells_the_rest_aside(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.metric = "bandwidth";
    row.status = "ok";
    char *text = printed(print_three, &row);
    assert_ptr_equal(strstr(text, "# kernel triad\nsize         metric "), text);
    assert_non_null(strstr(text, "\n\n# kernel copy\n4096         bandwidth "));
    assert_null(strstr(text + 1, "# kernel triad"));
    assert_non_null(strstr(text, " ok [simulated]\n"));
    free(text);
}

/* Four rows, of which each but the second differs from the one above in what is aside. */
static void print_changes(FILE *out, const struct row *row)
{
    struct row_table table = {.aside = {true, true, true}};
    struct row other = *row;

    row_print_table(out, &table, &other);
    row_print_table(out, &table, &other);
    other.params[2] = "through the host";
    row_print_table(out, &table, &other);
    other.params[1] = "";
    row_print_table(out, &table, &other);
    other.params[1] = "copy";
    other.params[2] = NULL;
    row_print_table(out, &table, &other);
}

static void test_what_changes_is_told_alone(void **state)
{
    struct row row;

    (void)state;
    start_full(&row);
    char *text = printed(print_changes, &row), *at = text ? text : "";
    static const char *const told[] = {
        "# size 4096, kernel triad, path peer access\n", "\n# path through the host\n",
        "\n# size 4096, path through the host\n", /* a kernel no more: what is left is told */
        "\n# size 4096, kernel copy\n"};
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        char *next = strstr(at, told[i]);
        if (!next)
            fail_msg("no '%s' behind: %s", told[i], at);
        at = next + strlen(told[i]);
    }
    size_t lines = 0;
    for (at = text; (at = strstr(at, "# ")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 4);
    free(text);
}

static void test_table_shows_no_invented_number(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.metric = "bandwidth";
    row.status = "skipped";
    row.reason = "no second node";
    char *line = printed(print_line, &row);
    assert_ptr_equal(strstr(line, "# skipped: no second node\n4096 "), line);
    size_t cells = strcspn(line, "\n") + strlen("\n4096 ");
    assert_null(strpbrk(line + cells, "0123456789%"));
    assert_non_null(strstr(line, " skipped\n"));
    assert_null(strstr(line, "nan"));
    free(line);
}

/* Skipped three times for one reason, for another, measured, and skipped for that again, twice, of which the second has
 * another value aside. */
static void print_skipped(FILE *out, const struct row *row)
{
    struct row_table table = {.begun = true, .line = 120, .aside = {false, true}};
    struct row other = *row, good = *row;

    other.reason = "no driver";
    good.status = "ok";
    good.reason = "a remark";
    for (int i = 0; i < 3; i++)
        row_print_table(out, &table, row);
    row_print_table(out, &table, &other);
    row_print_table(out, &table, &good);
    row_print_table(out, &table, &other);
    other.params[1] = "copy";
    row_print_table(out, &table, &other);
    row_print_table(out, &table, &other);
    row_print_table_end(out, &table);
    row_print_table_end(out, &table);
}

static void test_table_tells_once_why_rows_are_skipped(void **state)
{
    struct row row;
    static const char *const want[] = {"",
                                       "# kernel triad",
                                       "# skipped: no GPU",
                                       " skipped",
                                       "# and 2 more, skipped for the same reason",
                                       "# skipped: no driver",
                                       " skipped",
                                       " ok: a remark",
                                       "# skipped: no driver",
                                       " skipped",
                                       "",
                                       "# kernel copy",
                                       " skipped",
                                       "# and 1 more, skipped for the same reason"};

    (void)state;
    start(&row);
    row.status = "skipped";
    row.reason = "no GPU";
    char *text = printed(print_skipped, &row), *at = text;
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        char *line = strsep(&at, "\n");
        assert_non_null(line);
        assert_true(strlen(line) >= strlen(want[i]));
        assert_string_equal(line + (want[i][0] == '#' ? 0 : strlen(line) - strlen(want[i])),
                            want[i]);
    }
    assert_string_equal(at, "");
    free(text);
}

static void test_table_tells_of_levels_and_noise(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.status = "noisy";
    row.levels =
        (struct levels){.two = true, .low = 10, .high = 11, .share_low = 0.25, .share_high = 0.75};
    row.disturbed = "steal 3.0 %";
    char *line = printed(print_line, &row);
    assert_non_null(
        strstr(line, " noisy\n    two levels, 10 (25 %) and 11 (75 %) (steal 3.0 %)\n"));
    free(line);
}

static void print_sizes(FILE *out, const struct row *row)
{
    struct row_table table = {.bytes = {true}};
    struct row second = *row;

    row_table_widen(&table, 0, "1610612736");
    row_print_table(out, &table, row);
    second.params[0] = "1610612736";
    row_print_table(out, &table, &second);
    second.params[0] = "all";
    row_print_table(out, &table, &second);
}

static void test_sizes_have_binary_units(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    char *text = printed(print_sizes, &row);
    assert_ptr_equal(strstr(text, "size    kernel    "), text);
    assert_non_null(strstr(text, "\n4 KiB   triad     "));
    assert_non_null(strstr(text, "\n1.5 GiB triad     "));
    assert_non_null(strstr(text, "\nall     triad     "));
    free(text);
}

static size_t longest_line(const char *text)
{
    size_t most = 0;

    for (; *text; text += strcspn(text, "\n") + (strchr(text, '\n') != NULL))
        if (strcspn(text, "\n") > most)
            most = strcspn(text, "\n");
    return most;
}

static void print_80(FILE *out, const struct row *row)
{
    row_print_table(out, &(struct row_table){.line = 80}, row);
}

static void print_100(FILE *out, const struct row *row)
{
    row_print_table(out, &(struct row_table){0}, row); /* no terminal */
}

static void print_200(FILE *out, const struct row *row)
{
    row_print_table(out, &(struct row_table){.line = 240}, row);
}

/* What has no room goes under the row, by name; every figure is still there. */
static void test_lines_fit(void **state)
{
    struct row row;

    (void)state;
    start_full(&row);
    char *wide = printed(print_200, &row), *common = printed(print_100, &row);
    char *narrow = printed(print_80, &row);
    assert_non_null(strstr(wide, " noisy: interval is +/- 20 %, wanted 1 %, when sampling stopped "
                                 "(time) (13 involuntary context switches) [simulated]\n"));
    assert_non_null(strstr(common, " noisy\n    interval is +/- 20 %, wanted 1 %, when sampling "
                                   "stopped (time) (13 involuntary context switches)\n"
                                   "    [simulated]\n"));
    assert_true(longest_line(common) <= 100);
    assert_true(longest_line(narrow) <= 80);
    assert_non_null(strstr(narrow, "\n    kernel triad, path peer access\n"));
    const char *const texts[] = {wide, common, narrow};
    static const char *const kept[] = {"4096 ",   "triad", "peer access", "123.456 ", "GB/s",
                                       "-19.81%", ">999%", " 57 ",        "88.2%"};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++)
            if (!strstr(texts[i], kept[k]))
                fail_msg("'%s' is lost in:\n%s", kept[k], texts[i]);
    free(wide);
    free(common);
    free(narrow);
}

/* A column in which nothing is said leaves before one that tells rows apart. */
static void test_empty_columns_leave_first(void **state)
{
    struct row row;

    (void)state;
    start_full(&row);
    row.params[0] = NULL;
    row.status = "ok";
    row.reason = row.disturbed = NULL;
    char *narrow = printed(print_80, &row);
    assert_ptr_equal(strstr(narrow, "kernel    metric "), narrow);
    assert_non_null(strstr(narrow, "\ntriad     bandwidth "));
    assert_non_null(strstr(narrow, " ok\n    path peer access\n    [simulated]\n"));
    free(narrow);
}

static void print_long_told(FILE *out, const struct row *row)
{
    row_print_table(out, &(struct row_table){.line = 80, .aside = {true, true, true}}, row);
}

static void test_told_lines_fit(void **state)
{
    struct row row;

    (void)state;
    start_full(&row);
    row.status = "skipped";
    row.reason =
        "no GPU here: the driver's library libcuda.so.1 was not found: install the driver, "
        "or name a library";
    row.params[2] = "one two three four five six seven eight nine ten eleven twelve thirteen";
    char *text = printed(print_long_told, &row);
    assert_ptr_equal(strstr(text,
                            "# size 4096, kernel triad, path one two three four five six seven "
                            "eight nine ten\n#   eleven twelve thirteen\nmetric"),
                     text);
    assert_non_null(strstr(text, "\n# skipped: no GPU here: the driver's library libcuda.so.1 was "
                                 "not found: install\n#   the driver, or name a library\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_lines_up),
        cmocka_unit_test(test_table_shows_reference),
        cmocka_unit_test(test_table_tells_the_rest_aside),
        cmocka_unit_test(test_what_changes_is_told_alone),
        cmocka_unit_test(test_table_shows_no_invented_number),
        cmocka_unit_test(test_table_tells_once_why_rows_are_skipped),
        cmocka_unit_test(test_table_tells_of_levels_and_noise),
        cmocka_unit_test(test_sizes_have_binary_units),
        cmocka_unit_test(test_lines_fit),
        cmocka_unit_test(test_empty_columns_leave_first),
        cmocka_unit_test(test_told_lines_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

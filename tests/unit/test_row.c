/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: what is not measured prints as an empty cell, zero prints as zero, and texts survive CSV. */
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
#include "core/text.h"

#define CELLS_MAX 128

static const char *const params[] = {"size", "kernel"};

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

/* Splits one line of CSV that holds no quotes, in place. */
static size_t split(char *line, char **cells)
{
    size_t n = 0;

    line[strcspn(line, "\n")] = 0;
    for (char *cell; (cell = strsep(&line, ",")) != NULL;) {
        assert_true(n < CELLS_MAX);
        cells[n++] = cell;
    }
    return n;
}

static void print_header(FILE *out, const struct row *row)
{
    row_print_csv_header(out, row->param_names, row->n_params);
}

static void start(struct row *row)
{
    row_init(row);
    row->param_names = params;
    row->n_params = 2;
    row->params[0] = "4096";
    row->params[1] = "triad";
}

static size_t column_index(const char *name)
{
    for (size_t i = 0; row_columns[i].name; i++)
        if (!strcmp(row_columns[i].name, name))
            return 2 + i;
    fail_msg("no column '%s'", name);
    return 0;
}

/* The cell of a column in the row as printed. */
static void check_cell(const struct row *row, const char *name, const char *want)
{
    char *cells[CELLS_MAX] = {0}, *line = printed(row_print_csv, row);

    split(line, cells);
    assert_string_equal(cells[column_index(name)], want);
    free(line);
}

static size_t count_columns(void)
{
    size_t n = 0;

    while (row_columns[n].name)
        n++;
    return n;
}

static void test_header_and_row_have_the_same_cells(void **state)
{
    struct row row;
    char *header_cells[CELLS_MAX], *row_cells[CELLS_MAX];

    (void)state;
    start(&row);
    char *header = printed(print_header, &row), *line = printed(row_print_csv, &row);
    assert_int_equal(header[strlen(header) - 1], '\n');
    assert_int_equal(line[strlen(line) - 1], '\n');
    assert_int_equal(split(header, header_cells), 2 + count_columns());
    assert_int_equal(split(line, row_cells), 2 + count_columns());
    assert_string_equal(header_cells[0], "size");
    assert_string_equal(header_cells[1], "kernel");
    for (size_t i = 0; row_columns[i].name; i++)
        assert_string_equal(header_cells[2 + i], row_columns[i].name);
    free(header);
    free(line);
}

static void test_nothing_measured_is_all_empty(void **state)
{
    struct row row;
    char *cells[CELLS_MAX];

    (void)state;
    start(&row);
    row.repeat = 1;
    char *line = printed(row_print_csv, &row);
    size_t n = split(line, cells);
    for (size_t i = 2; i < n; i++)
        assert_string_equal(cells[i], i == column_index("repeat") ? "1" : "");
    free(line);
}

static void test_zero_is_zero(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.value = 0;
    row.summary.stddev = 0;
    row.ledger.steal_percent = 0;
    row.ledger.faults_major = 0;
    row.samples = 50;
    row.discarded = 0;
    check_cell(&row, "value", "0");
    check_cell(&row, "stddev", "0");
    check_cell(&row, "steal_percent", "0");
    check_cell(&row, "faults_major", "0");
    check_cell(&row, "discarded", "0");
    check_cell(&row, "mean", "");
}

static void test_counts_without_samples_are_empty(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.discarded = 7;
    row.inner_repeat = 3;
    row.repeat = 2;
    check_cell(&row, "samples", "");
    check_cell(&row, "discarded", "");
    check_cell(&row, "inner_repeat", "");
    check_cell(&row, "repeat", "2");
    row.samples = 1;
    check_cell(&row, "samples", "1");
    check_cell(&row, "discarded", "7");
    check_cell(&row, "inner_repeat", "3");
}

/* Writes a value of its own into each member and expects each in its own column: a swapped offset
 * or kind is seen. */
static void test_each_column_prints_its_own_member(void **state)
{
    struct row row;
    char texts[CELLS_MAX][24], *cells[CELLS_MAX];

    (void)state;
    start(&row);
    for (size_t i = 0; row_columns[i].name; i++) {
        char *at = (char *)&row + row_columns[i].offset;
        snprintf(texts[i], sizeof(texts[i]), "%zu", 1000 + i);
        if (row_columns[i].kind == ROW_TEXT)
            *(const char **)at = texts[i];
        else if (row_columns[i].kind == ROW_COUNT)
            *(uint64_t *)at = 1000 + i;
        else
            *(double *)at = (double)(1000 + i);
    }
    char *line = printed(row_print_csv, &row);
    split(line, cells);
    for (size_t i = 0; row_columns[i].name; i++)
        assert_string_equal(cells[2 + i], texts[i]);
    free(line);
}

/* The names that a reader of results counts on, against the members that they mean. */
static void test_names_mean_their_members(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.samples = 60;
    row.value = 1.5;
    row.summary.p05 = 2.5;
    row.summary.p999 = 3.5;
    row.summary.ci_low = 4.5;
    row.summary.ci_high = 5.5;
    row.levels.low = 6.5;
    row.levels.share_low = 0.25;
    row.levels.high = 7.5;
    row.levels.share_high = 0.75;
    row.percent_of_limit = 98.5;
    row.ledger.quota_throttled_ms = 8.5;
    row.case_id = "12";
    row.run = "nightly";
    check_cell(&row, "value", "1.5");
    check_cell(&row, "p05", "2.5");
    check_cell(&row, "p999", "3.5");
    check_cell(&row, "ci_low", "4.5");
    check_cell(&row, "ci_high", "5.5");
    check_cell(&row, "level_low", "6.5");
    check_cell(&row, "level_low_share", "0.25");
    check_cell(&row, "level_high", "7.5");
    check_cell(&row, "level_high_share", "0.75");
    check_cell(&row, "percent_of_limit", "98.5");
    check_cell(&row, "quota_throttled_ms", "8.5");
    check_cell(&row, "case", "12");
    check_cell(&row, "run", "nightly");
}

static void test_columns_are_unique_and_explained(void **state)
{
    (void)state;
    for (size_t i = 0; row_columns[i].name; i++) {
        assert_string_not_equal(row_columns[i].help, "");
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row_columns[i].name, row_columns[k].name);
    }
}

static void check_field(const char *field, const char *want)
{
    char text[256] = ""; /* an empty stream leaves it alone */
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_non_null(out);
    csv_print(out, field);
    fclose(out);
    assert_string_equal(text, want);
}

static void test_quoting(void **state)
{
    (void)state;
    check_field(NULL, "");
    check_field("", "");
    check_field("plain text; 5 %", "plain text; 5 %");
    check_field("a,b", "\"a,b\"");
    check_field("say \"hi\"", "\"say \"\"hi\"\"\"");
    check_field("two\nlines", "\"two\nlines\"");
    check_field("return\r", "\"return\r\"");
    check_field("\"", "\"\"\"\"");
}

static void check_number(double value, const char *want)
{
    char text[64] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_non_null(out);
    csv_print_number(out, value);
    fclose(out);
    assert_string_equal(text, want);
}

static void test_numbers(void **state)
{
    (void)state;
    check_number(NAN, "");
    check_number(0, "0");
    check_number(-0.25, "-0.25");
    check_number(123456789, "123456789"); /* nine digits stay */
    check_number(0.123456789, "0.123456789");
    check_number(1.0 / 3, "0.333333333");
}

static void test_quoted_texts_of_a_row(void **state)
{
    struct row row;

    (void)state;
    start(&row);
    row.params[1] = "a,\"b\"";
    row.reason = "library chose \"Haswell\", slow";
    char *line = printed(row_print_csv, &row);
    assert_ptr_equal(strstr(line, "4096,\"a,\"\"b\"\"\","), line);
    assert_non_null(strstr(line, ",\"library chose \"\"Haswell\"\", slow\","));
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_and_row_have_the_same_cells),
        cmocka_unit_test(test_nothing_measured_is_all_empty),
        cmocka_unit_test(test_zero_is_zero),
        cmocka_unit_test(test_counts_without_samples_are_empty),
        cmocka_unit_test(test_each_column_prints_its_own_member),
        cmocka_unit_test(test_names_mean_their_members),
        cmocka_unit_test(test_columns_are_unique_and_explained),
        cmocka_unit_test(test_quoting),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_quoted_texts_of_a_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

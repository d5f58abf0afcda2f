/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: what is not measured prints as an empty cell, zero prints as zero, and texts survive CSV. */
#include <jansson.h>

#include "core/row.h"
#include "core/text.h"
#include "tests/unit/unit.h"

#define CELLS_MAX 128

/* The header of two parameters, and a row, split into cells that hold no quotes. */
static size_t print_row(const struct row *row, char **names, char **cells)
{
    static char text[16384];
    FILE *out = fmemopen(text, sizeof(text), "w");
    char *line = text, *header = NULL;
    size_t n = 0, n_names = 0;

    row_print_csv_header(out, row->param_names, row->n_params);
    row_print_csv(out, row);
    fclose(out);
    header = strsep(&line, "\n");
    line = strsep(&line, "\n");
    for (char *cell; (cell = strsep(&header, ",")) != NULL && n_names < CELLS_MAX;)
        names[n_names++] = cell;
    for (char *cell; (cell = strsep(&line, ",")) != NULL && n < CELLS_MAX;)
        cells[n++] = cell;
    assert_int_equal(n, n_names);
    return n;
}

static void start(struct row *row)
{
    static const char *const params[] = {"size", "kernel"};

    row_init(row);
    row->param_names = params;
    row->n_params = 2;
    row->params[0] = "4096";
    row->params[1] = "triad";
}

static void check_cell(const struct row *row, const char *name, const char *want)
{
    char *names[CELLS_MAX], *cells[CELLS_MAX];
    size_t n = print_row(row, names, cells), i = 0;

    while (i < n && strcmp(names[i], name))
        i++;
    assert_true(i < n);
    if (strcmp(cells[i], want))
        fail_msg("%s is '%s'", name, cells[i]);
}

/* A value of its own in each member is in its own column, and nothing is all empty. */
TEST(test_each_column_prints_its_own_member)
{
    struct row row;
    char texts[CELLS_MAX][24], *names[CELLS_MAX], *cells[CELLS_MAX];
    size_t n;
    start(&row);
    row.repeat = 1;
    n = print_row(&row, names, cells);
    assert_true(!strcmp(names[0], "size") && !strcmp(cells[0], "4096") &&
                !strcmp(cells[1], "triad"));
    for (size_t i = 2; i < n; i++)
        assert_string_equal(cells[i], strcmp(names[i], "repeat") ? "" : "1");
    for (size_t i = 0; row_columns[i].name; i++) {
        char *at = (char *)&row + row_columns[i].offset;

        assert_string_equal(names[2 + i], row_columns[i].name);
        assert_string_not_equal(row_columns[i].help, "");
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row_columns[i].name, row_columns[k].name);
        snprintf(texts[i], sizeof(texts[i]), "%zu", 1000 + i);
        if (row_columns[i].kind == ROW_TEXT)
            *(const char **)at = texts[i];
        else if (row_columns[i].kind == ROW_COUNT)
            *(uint64_t *)at = 1000 + i;
        else
            *(double *)at = (double)(1000 + i);
    }
    print_row(&row, names, cells);
    for (size_t i = 0; row_columns[i].name; i++)
        assert_string_equal(cells[2 + i], texts[i]);
}

/* Zero is zero; without samples the counts of them are empty; names mean their members. */
TEST(test_cells)
{
    struct row row;
    start(&row);
    row.value = row.summary.stddev = row.ledger.steal_percent = 0;
    row.discarded = 7;
    row.inner_repeat = 3;
    row.repeat = 2;
    check_cell(&row, "value", "0");
    check_cell(&row, "stddev", "0");
    check_cell(&row, "steal_percent", "0");
    check_cell(&row, "mean", "");
    check_cell(&row, "samples", "");
    check_cell(&row, "discarded", "");
    check_cell(&row, "inner_repeat", "");
    check_cell(&row, "repeat", "2");
    row.samples = 1;
    row.summary.p999 = 3.5;
    row.summary.ci_low = 4.5;
    row.levels.low = 6.5;
    row.percent_of_limit = 98.5;
    row.case_id = "12";
    row.ledger.faults_major = 0;
    check_cell(&row, "samples", "1");
    check_cell(&row, "discarded", "7");
    check_cell(&row, "inner_repeat", "3");
    check_cell(&row, "faults_major", "0");
    check_cell(&row, "p999", "3.5");
    check_cell(&row, "ci_low", "4.5");
    check_cell(&row, "level_low", "6.5");
    check_cell(&row, "percent_of_limit", "98.5");
    check_cell(&row, "case", "12");
}

TEST(test_texts_and_numbers)
{
    static const struct {
        const char *field; /* NULL: the number */
        double number;
        const char *want;
    } cases[] = {{"", 0, ""},
                 {"plain text; 5 %", 0, "plain text; 5 %"},
                 {"a,b", 0, "\"a,b\""},
                 {"say \"hi\"", 0, "\"say \"\"hi\"\"\""},
                 {"two\nlines", 0, "\"two\nlines\""},
                 {"return\r", 0, "\"return\r\""},
                 {NULL, NAN, ""},
                 {NULL, 0, "0"},
                 {NULL, -0.25, "-0.25"},
                 {NULL, 123456789, "123456789"}, /* nine digits stay */
                 {NULL, 1.0 / 3, "0.333333333"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[256] = ""; /* an empty stream leaves it alone */
        FILE *out = fmemopen(text, sizeof(text), "w");

        if (cases[i].field)
            csv_print(out, cases[i].field);
        else
            csv_print_number(out, cases[i].number);
        fclose(out);
        assert_string_equal(text, cases[i].want);
    }
}

/* Whatever bytes are in it, a row is one line of JSON with the same values; what is not finite is left out, and bytes that are no character are "?". */
TEST(test_json)
{
    static const char *const texts[][2] = {
        {"a,b;\"quoted\" 'too'"},
        {"two\nlines\r\nand\ta tab"},
        {"back\\slash \\u0041 \\n"},
        {"\x01\x1f\x7f controls \b\f\v"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"1e5"},
        {"cut \xe2\x82, stray \xff\xc0, half \xed\xa0\x80", "cut ??, stray ??, half ???"}};
    static const double numbers[] = {-1.5, 1e300, 1e-310, 1.0 / 3, 2e-9, INFINITY, NAN};
    for (size_t i = 0; i < 7; i++) {
        char text[8192] = "";
        FILE *out = fmemopen(text, sizeof(text), "w");
        struct row row;

        start(&row);
        row.params[1] = texts[i][0];
        row.param_counts[0] = true;
        row.bench = "made-up";
        row.value = numbers[i];
        row.samples = i ? UINT32_MAX : 1;
        row_print_json(out, &row);
        fclose(out);
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL),
               *value = json_object_get(json, "value");
        assert_non_null(json);
        assert_string_equal(json_string_value(json_object_get(json, "bench")), "made-up");
        assert_string_equal(json_string_value(json_object_get(json, "kernel")),
                            texts[i][texts[i][1] != NULL]);
        assert_int_equal(json_integer_value(json_object_get(json, "size")), 4096);
        assert_int_equal(json_integer_value(json_object_get(json, "samples")), row.samples);
        assert_int_equal(value != NULL, isfinite(numbers[i]));
        assert_true(!value || fabs(json_number_value(value) / numbers[i] - 1) < 1e-8);
        json_decref(json);
    }
}

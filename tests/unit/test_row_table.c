/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows for people: it lines up, fits the line and loses no figure. */
#include "core/row.h"
#include "tests/unit/unit.h"

/* With everything that a row may carry. */
static struct row full(void)
{
    static const char *const params[] = {"size", "kernel", "path"};
    struct row row;

    row_init(&row);
    row.param_names = params;
    row.n_params = 3;
    row.params[0] = "4096";
    row.params[1] = "triad";
    row.params[2] = "peer access";
    row.metric = "bandwidth";
    row.unit = "GB/s";
    row.value = 123.456;
    row.summary.ci_low = 99;
    row.summary.ci_high = 5000;
    row.samples = 57;
    row.percent_of_limit = 88.25;
    row.status = "noisy";
    row.reason = "interval is +/- 20 %, wanted 1 %, when sampling stopped (time)";
    row.disturbed = "13 involuntary context switches";
    row.ledger.ctx_involuntary = 13;
    row.origin = "simulated";
    return row;
}

/* What is printed of these rows, each a point of its own, and whether the table is ended; free it. */
static char *printed(struct row_table table, const struct row *rows, size_t n, bool end)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    for (size_t i = 0; i < n; i++) {
        row_table_add(&table, &rows[i]);
        row_table_point(out, &table);
    }
    if (end) {
        row_table_end(out, &table);
    } else {
        free(table.rows);
        free(table.cells);
    }
    fclose(out);
    return text;
}

/* Each of the texts, which '|' parts, behind the one before; free()s the text. */
static void says(char *text, const char *wanted)
{
    char copy[512], *at = strcpy(copy, wanted), *from = text;

    for (char *want; (want = strsep(&at, "|"));) {
        char *found = strstr(from, want);

        if (!found)
            fail_msg("no '%s' behind the others, in:\n%s", want, text);
        from = found + strlen(want);
    }
    free(text);
}

/* A number, an interval, a share of the limit or of a reference; what was not measured has none. */
TEST(test_cells)
{
    struct row row = full();

    says(printed((struct row_table){.line = 240}, &row, 1, false),
         "size|kernel|path|bandwidth|95 % CI|of limit\n|4096|triad|peer access|123 GB/s|>100 %|"
         "88 %|noisy, simulated\n");
    row.limit_kind = "reference";
    says(printed((struct row_table){.line = 240}, &row, 1, false), "ref 88 %");
    row.levels =
        (struct levels){.two = true, .low = 10, .high = 11, .share_low = 0.25, .share_high = 0.75};
    row.sustained = 61;
    says(printed((struct row_table){.line = 240}, &row, 1, false), "sustained 49 %, bimodal\n");
    says(printed((struct row_table){.line = 240, .verbose = true}, &row, 1, false),
         "57 samples|10 (25 %) and 11 (75 %)|13 involuntary");
    row = full();
    row.value = row.summary.ci_low = row.summary.ci_high = row.percent_of_limit = NAN;
    row.samples = 0;
    row.status = "skipped";
    row.reason = "no second node";
    const struct row_table wide = {.line = 240};
    char *line = printed(wide, &row, 1, false);
    char *begin = strchr(line, '\n') + 1;
    assert_null(strpbrk(strstr(begin, "peer access"), "0123456789%"));
    assert_null(strstr(line, "nan"));
    says(line, "4096|skipped, simulated\n# no second node\n");
}

/* Metrics of a point are columns of one line, and the mean of one is told at the end. */
TEST(test_a_line_for_each_point)
{
    struct row rows[3];
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct row_table table = {.line = 100, .average = "busbw"};

    for (size_t point = 0; point < 3; point++) {
        for (size_t i = 0; i < 3; i++) {
            rows[i] = full();
            rows[i].status = point == 2 ? "wrong" : "noisy";
            rows[i].params[0] = (const char *[]){"4096", "8192", "16384"}[point];
            rows[i].metric = (const char *[]){"time", "algbw", "busbw"}[i];
            rows[i].unit = i ? "GB/s" : "us";
            rows[i].value = i == 2 ? point ? 20 * (double)point : 10 : 1500;
            row_table_add(&table, &rows[i]);
        }
        row_table_point(out, &table);
    }
    row_table_end(out, &table);
    fclose(out);
    says(text,
         "time|algbw|busbw|wrong\n|4096|1.50 ms|1500|10.0| 0  noisy|\n|8192|20.0|\n|yes  wrong|\n# "
         "average busbw 15.0 GB/s|2 of 3|triad|simulated|3 cases|2 noisy|1 wrong (39 invol");
}

/* What stands above the lines is told again only where it changes. */
TEST(test_context_is_told_where_it_changes)
{
    struct row rows[3];

    for (size_t i = 0; i < 3; i++)
        rows[i] = full();
    rows[2].params[2] = "the host";
    char *text = printed((struct row_table){.line = 100, .place = {0, ROW_DETAIL, ROW_CONTEXT}},
                         rows, 3, false);
    assert_null(strstr(text, "triad"));
    says(text, "# path peer access\n# size|\n|4096|4096|\n# path the host\n|4096");
    says(printed((struct row_table){.line = 100, .verbose = true, .place = {0, ROW_DETAIL}}, rows,
                 1, false),
         "4096|\n    kernel triad\n");
}

/* Skipped three times for one reason, for another, measured, and skipped for that again, twice. */
TEST(test_why_rows_are_skipped_is_told_once)
{
    struct row rows[8];

    for (size_t i = 0; i < 8; i++) {
        rows[i] = full();
        rows[i].status = i == 4 ? "ok" : "skipped";
        rows[i].reason = i < 3 ? "no GPU" : i == 4 ? "set X=1" : "no driver";
    }
    says(printed((struct row_table){.line = 120}, rows, 8, true),
         "skipped|# no GPU\n# and 2 more|skipped|# no driver\n|# set X=1\n|skipped|# no driver\n# "
         "and 2 more|# 8 cases: 7 skipped");
}

TEST(test_sizes_have_binary_units)
{
    struct row_table table = {.bytes = {true}};
    struct row rows[3];

    row_table_widen(&table, 0, "1610612736");
    for (size_t i = 0; i < 3; i++) {
        rows[i] = full();
        rows[i].params[0] = (const char *[]){"4096", "1610612736", "all"}[i];
    }
    says(printed(table, rows, 3, false),
         "size    kernel|\n  4 KiB   triad|\n  1.5 GiB triad|\n  all ");
}

static size_t longest_line(const char *text)
{
    size_t most = 0;

    for (; *text; text += strcspn(text, "\n") + (strchr(text, '\n') != NULL))
        if (strcspn(text, "\n") > most)
            most = strcspn(text, "\n");
    return most;
}

/* What has no room leaves the line: the interval first, parameters last, which go under it. An
 * origin that is no measurement always shows. */
TEST(test_lines_fit)
{
    static const size_t lines[] = {240, 0, 80, 60}; /* 0: no terminal, 100 */
    struct row row = full();

    row.reason = NULL;
    for (size_t i = 0; i < 4; i++) {
        char *text =
            printed((struct row_table){.line = lines[i], .width = {0, 0, 11}}, &row, 1, true);

        assert_true(longest_line(text) <= (lines[i] ? lines[i] : 100));
        assert_int_equal(strstr(text, ">100 %") != NULL, i < 2);
        assert_int_equal(strstr(text, "\n    kernel triad, path peer access\n") != NULL, i == 3);
        says(text, "4096|123 GB/s|88 %|  noisy, simulated\n|1 noisy");
    }
}

static struct row pair_of(const char *from, const char *to, double value)
{
    static const char *const names[] = {"source", "destination", "path"};
    struct row row = full();

    row.param_names = names;
    row.params[0] = from;
    row.params[1] = to;
    row.status = "ok";
    row.reason = NULL;
    row.value = value;
    return row;
}

static char *matrix(const struct row *rows, size_t n)
{
    return printed(
        (struct row_table){
            .line = 60, .place = {0, 0, ROW_DETAIL}, .from = "source", .to = "destination"},
        rows, n, true);
}

/* Of eight places each has a value to each other; one link is slow, and is named. */
TEST(test_pairs_are_a_matrix)
{
    struct row rows[8 * 8];
    char places[8][8];
    size_t n = 0;

    for (int i = 0; i < 8; i++)
        snprintf(places[i], sizeof(places[i]), "cuda:%d", i);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++)
            if (i != k)
                rows[n++] = pair_of(places[i], places[k], i == 7 && k == 2 ? 27.6 : 55.25);
    char *text = matrix(rows, n);
    assert_true(longest_line(text) <= 60);
    size_t printed_lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        printed_lines++;
    assert_true(printed_lines <= 14);
    says(text, "GB/s|simulated\n|0     1     2     3|7 \n  cuda:0    -  55.2|cuda:7 55.2  55.2  "
               "27.6! 55.2|-"
               "|56 cases|cuda:7 to cuda:2 27.6 GB/s (50 %");
}

/* Rates of wrong data and of a failure show nowhere: a word, and the names of the pairs. */
TEST(test_wrong_pairs_have_no_number)
{
    struct row rows[] = {pair_of("a", "b", 99), pair_of("a", "c", 99), pair_of("b", "a", 50),
                         pair_of("b", "c", 99), pair_of("c", "a", 50), pair_of("a", "b", 99)};

    for (size_t i = 0; i < 6; i++)
        rows[i].status = i == 3 ? "failed" : rows[i].value > 50 ? "wrong" : "ok";
    char *text = matrix(rows, 6);
    assert_null(strstr(text, "99"));
    assert_null(strchr(text, '!'));
    says(text, "  a      -   wrong   wrong |  b   50.0       -  failed |  c   50.0|6 cases|"
               "3 wrong (a to b, a to c)|1 failed (b to c)");
}

/* The first pair has neither a value nor a path: the others, and their unit, do not depend on it. */
TEST(test_a_matrix_without_its_first_pair)
{
    struct row rows[] = {pair_of("a", "b", NAN), pair_of("b", "a", 0.05)};

    rows[0].status = "skipped";
    rows[0].params[2] = NULL;
    says(matrix(rows, 2), "MB/s|a|-  skipped|b    50.0|2 cases");
}

/* A slow pair is compared with the middle of its path, also of two; a time is so many times it. */
TEST(test_slow_pairs)
{
    struct row rows[] = {pair_of("a", "b", 10), pair_of("a", "c", 10), pair_of("b", "a", 50),
                         pair_of("b", "c", 10), pair_of("c", "a", 20), pair_of("c", "b", 60)};

    for (size_t i = 0; i < 6; i++)
        rows[i].unit = "us";
    char *text = matrix(rows, 4);
    assert_null(strstr(text, "same path"));
    says(text, "50.0!|slow: b to a 50.0 us (5.0 times");
    rows[4].params[2] = rows[5].params[2] = "the host";
    says(matrix(rows, 6), "50.0!|20.0  60.0!|b to a|5.0 times|same path|c to b 60.0 us (1.5");
}

/* What is above the limit by more than rounding says so. */
TEST(test_remarks_and_kinds_of_limits)
{
    static const double calm[] = {0, 100, 100.5, -5, NAN};
    static const struct {
        const char *text;
        enum limit_kind kind;
    } kinds[] = {{"measured", LIMIT_MEASURED},
                 {"reference", LIMIT_REFERENCE},
                 {"told", LIMIT_TOLD},
                 {"sysfs", LIMIT_SYSFS},
                 {"datasheet", LIMIT_DATASHEET},
                 {"measured: best loads", LIMIT_TOLD},
                 {"", LIMIT_TOLD},
                 {NULL, LIMIT_TOLD}};
    char text[128];

    for (size_t i = 0; i < sizeof(calm) / sizeof(calm[0]); i++)
        assert_string_equal(limit_remark(calm[i], text, sizeof(text)), "");
    assert_memory_equal(limit_remark(100.6, text, sizeof(text)), "101 %", 5);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        assert_int_equal(limit_kind_of(kinds[i].text), kinds[i].kind);
}

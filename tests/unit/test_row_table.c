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
    row.origin = "simulated";
    return row;
}

/* What is printed of these rows, and whether the table is ended; free it. */
static char *printed(struct row_table table, const struct row *rows, size_t n, bool end)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    for (size_t i = 0; i < n; i++)
        row_print_table(out, &table, &rows[i]);
    if (end)
        row_print_table_end(out, &table);
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
         "size|kernel|path|metric|value unit|-ci|+ci samples|limit|status\n4096|triad|peer access|"
         "bandwidth|123.456 GB/s|-19.81%|>999%|57|88.2%|noisy");
    row.limit_kind = "reference";
    says(printed((struct row_table){.line = 240}, &row, 1, false), " ref88%");
    row.levels =
        (struct levels){.two = true, .low = 10, .high = 11, .share_low = 0.25, .share_high = 0.75};
    says(printed((struct row_table){.line = 240}, &row, 1, false), "10 (25 %) and 11 (75 %)");
    row = full();
    row.value = row.summary.ci_low = row.summary.ci_high = row.percent_of_limit = NAN;
    row.samples = 0;
    row.status = "skipped";
    row.reason = "no second node";
    row.disturbed = NULL;
    char *line = printed((struct row_table){.begun = true}, &row, 1, false);
    assert_null(strpbrk(line + strcspn(line, "\n") + 6, "0123456789%"));
    assert_null(strstr(line, "nan"));
    says(line, "# skipped: no second node\n4096 | skipped");
}

/* What is aside is told above, and again where it changes, alone; size is as wide as its values. */
TEST(test_what_is_aside_is_told_where_it_changes)
{
    struct row rows[5];

    for (size_t i = 0; i < 5; i++)
        rows[i] = full();
    rows[2].params[2] = rows[3].params[2] = "the host";
    rows[3].params[1] = "";
    rows[4].params[1] = "copy";
    rows[4].params[2] = NULL;
    char *text = printed((struct row_table){.aside = {true, true, true}}, rows, 5, false);
    size_t told = 0;
    for (const char *at = text; (at = strstr(at, "# ")) != NULL; at++)
        told++;
    assert_int_equal(told, 4);
    says(text, "# size 4096, kernel triad, path peer access\n|\n# path the host\n|"
               "\n# size 4096, path the host\n|" /* a kernel no more: what is left is told */
               "\n# size 4096, kernel copy\n");
    says(printed((struct row_table){.aside = {false, true, true}, .width = {12}}, rows, 1, false),
         "# kernel triad, path peer access\nsize         metric ");
}

/* Skipped three times for one reason, for another, measured, and skipped for that again, twice. */
TEST(test_why_rows_are_skipped_is_told_once)
{
    struct row rows[8];

    for (size_t i = 0; i < 8; i++) {
        rows[i] = full();
        rows[i].n_params = 2;
        rows[i].disturbed = NULL;
        rows[i].status = i == 4 ? "ok" : "skipped";
        rows[i].reason = i < 3 ? "no GPU" : i == 4 ? "a remark" : "no driver";
        rows[i].params[1] = i < 6 ? "triad" : "copy";
    }
    says(printed((struct row_table){.begun = true, .line = 120, .aside = {false, true}}, rows, 8,
                 true),
         "# kernel triad|# skipped: no GPU|skipped|# and 2 more|# skipped: no driver|skipped|"
         " ok: a remark|# skipped: no driver|skipped|# kernel copy|skipped|# and 1 more");
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
         "size    kernel    |\n4 KiB   triad     |\n1.5 GiB triad     |\nall     triad     ");
}

static size_t longest_line(const char *text)
{
    size_t most = 0;

    for (; *text; text += strcspn(text, "\n") + (strchr(text, '\n') != NULL))
        if (strcspn(text, "\n") > most)
            most = strcspn(text, "\n");
    return most;
}

/* What has no room goes under the row, by name, first a column in which nothing is said; every figure is still there. */
TEST(test_lines_fit)
{
    static const char *const kept[] = {"4096 ",   "triad", "peer access", "123.456 ", "GB/s",
                                       "-19.81%", ">999%", " 57 ",        "88.2%"};
    static const size_t lines[] = {240, 0, 80}; /* 0: no terminal, 100 */
    struct row row = full();

    for (size_t i = 0; i < 3; i++) {
        char *text = printed((struct row_table){.line = lines[i]}, &row, 1, false);

        for (size_t k = 0; k < sizeof(kept) / sizeof(kept[0]); k++)
            assert_says(text, kept[k]);
        assert_true(longest_line(text) <= (lines[i] ? lines[i] : 100));
        assert_int_equal(strstr(text, "\n    kernel triad, path peer access\n") != NULL, i == 2);
        says(text, i ? "\n    interval|[simulated]\n" : " noisy: interval|[simulated]\n");
    }
    row.params[0] = NULL;
    says(printed((struct row_table){.line = 80}, &row, 1, false),
         "kernel    metric |\ntriad     bandwidth |\n    path peer access\n");
    row.status = "skipped";
    row.reason =
        "no GPU here: the driver's library libcuda.so.1 was not found: install the driver, "
        "or name a library";
    row.params[2] = "one two three four five six seven eight nine ten eleven twelve thirteen";
    char *text =
        printed((struct row_table){.line = 80, .aside = {true, true, true}}, &row, 1, false);
    assert_true(longest_line(text) <= 80);
    says(text,
         "# kernel triad, path one|\n#   |thirteen\nmetric|\n# skipped: no GPU|\n#   |library\n");
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

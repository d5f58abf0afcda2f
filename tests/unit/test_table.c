/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV reader: what it accepts, and that every kind of damage is told from good. */
#include "harness/table.h"
#include "tests/unit/unit.h"

#include "core/text.h"

static struct table parsed(const char *text)
{
    struct table t;
    char error[256] = "";

    if (table_parse("t.csv", text, strlen(text), &t, error, sizeof(error)))
        fail_msg("%s", error);
    return t;
}

TEST(reads_rows)
{
    struct table t = parsed("a,b,c\n1,two,\n-2.5e3, x ,\"\"\n");

    assert_int_equal(t.n_columns, 3);
    assert_int_equal(t.n_rows, 2);
    assert_string_equal(t.columns[2], "c");
    assert_string_equal(table_text(&t, 1, "b"), " x ");
    assert_string_equal(table_text(&t, 0, "c"), "");
    assert_string_equal(table_text(&t, 1, "c"), "");
    assert_true(table_number(&t, 1, "a") == -2500);
    assert_int_equal(t.header_end, 6);
    assert_int_equal(t.ends[0], 13);
    assert_int_equal(t.ends[1], 27);
    table_release(&t);
    t = parsed("\"a,1\",b\r\n\"x \"\"y\"\"\",\"two\nlines\r\n,3\"\r\nplain,4\n");
    assert_string_equal(t.columns[0], "a,1");
    assert_string_equal(t.columns[1], "b");
    assert_int_equal(t.n_rows, 2);
    assert_string_equal(table_cell(&t, 0, 0), "x \"y\"");
    assert_string_equal(table_cell(&t, 0, 1), "two\nlines\r\n,3");
    assert_string_equal(table_cell(&t, 1, 0), "plain");
    table_release(&t);
}

TEST(unmeasured_is_nan)
{
    struct table t = parsed("a,b\n,0\nnan,12x\ninf, 3\n");

    assert_true(table_number(&t, 0, "b") == 0);
    assert_true(isnan(table_number(&t, 0, "no such column")));
    for (size_t row = 0; row < 3; row++)
        assert_true(isnan(table_number(&t, row, "a")));
    assert_true(isnan(table_number(&t, 1, "b")));
    assert_true(isnan(table_number(&t, 2, "b")));
    assert_int_equal(table_column(&t, "c"), TABLE_NO_COLUMN);
    assert_string_equal(table_text(&t, 0, "c"), "");
    table_release(&t);
}

TEST(refuses_damage)
{
    static const struct {
        const char *text;
        size_t size; /* 0: that of the text */
        const char *line, *why;
    } cases[] = {
        {"", 0, "line 1:", "header"},
        {"a,b\n1,2", 0, "line 1:", "cut off"},
        {"a,b\n1,2\n3\n", 0, "line 3:", "1 cells"},
        {"a,b\n1,2,3\n", 0, "line 2:", "3 cells"},
        {"a,b\n1,\"2\n", 0, "line 2:", "cut off"},
        {"a,b\n1,2\"3\n", 0, "line 2:", "quote"},
        {"a,b\n1,\"2\"3\n", 0, "line 2:", "quote"},
        {"a,b,a\n", 0, "line 1:", "\"a\""},
        {"a,,b\n", 0, "line 1:", "column 2"},
        {"a,b\n1,2\n\n3,4\n", 0, "line 3:", "empty"},
        {"\na,b\n", 0, "line 1:", "empty"},
        {"a,b\n1,2\r3,4\n", 0, "line 2:", "carriage return"},
        {"a,b\n1,2\n3,\0\n", 12, "line 3:", "NUL"},
        {"a,b\n1,2\n\0\0\0", 11, "line 3:", "NUL"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t size = cases[i].size ? cases[i].size : strlen(cases[i].text);
        struct table t = {.n_rows = 9};
        char error[256] = "";

        assert_int_equal(table_parse("t.csv", cases[i].text, size, &t, error, sizeof(error)),
                         -EBADMSG);
        if (!strstr(error, "\"t.csv\"") || !strstr(error, cases[i].line) ||
            !strstr(error, cases[i].why))
            fail_msg("case %zu: %s", i, error);
        assert_int_equal(t.n_rows, 0);
        assert_null(t.texts);
    }
}

/* Cut anywhere, the tail reader keeps exactly the rows that are whole, and says where they end; damage before is none of a tail. */
TEST(tail_keeps_whole_rows)
{
    static const char text[] = "a,b\n1,\"x\ny\"\n2,\"p\"\"q\"\n3,last\n";
    static const char damaged[] = "a,b\n1\n2,3\n4";
    const size_t ends[] = {12, 21, 28};
    char error[256] = "";
    int torn = -1;
    struct table t;

    for (size_t size = 0; size <= strlen(text); size++) {
        size_t whole = (size >= 12) + (size >= 21) + (size >= 28);
        int at_end = size == 0 || size == 4 || size == 12 || size == 21 || size == 28;

        assert_int_equal(table_parse_tail("t", text, size, &t, &torn, error, sizeof(error)), 0);
        assert_int_equal(t.n_rows, whole);
        assert_int_equal(torn, !at_end);
        assert_int_equal(t.n_columns, size >= 4 ? 2 : 0);
        assert_int_equal(t.header_end, size >= 4 ? 4 : 0);
        for (size_t i = 0; i < whole; i++)
            assert_int_equal(t.ends[i], ends[i]);
        table_release(&t);
    }
    assert_int_equal(
        table_parse_tail("t", damaged, strlen(damaged), &t, &torn, error, sizeof(error)), -EBADMSG);
    assert_non_null(strstr(error, "line 2:"));
}

TEST(rows_are_left_out_and_added)
{
    static const char text[] = "n,text\n1,one\n2,two\n3,three\n";
    struct table t;
    char error[256] = "";

    assert_int_equal(table_parse("t", text, strlen(text), &t, error, sizeof(error)), 0);
    table_keep(&t, (const bool[]){false, true, false});
    assert_int_equal(t.n_rows, 1);
    assert_int_equal(t.ends[0], 19);
    assert_int_equal(table_add_row(&t), 1);
    table_set(&t, 1, "text", "four");
    table_set(&t, 0, "n", "two");
    table_set(&t, 0, "gone", "nothing");
    assert_string_equal(table_text(&t, 0, "n"), "two");
    assert_string_equal(table_text(&t, 1, "n"), "");
    assert_string_equal(table_text(&t, 1, "text"), "four");
    table_release(&t);
}

/* What core/text.h writes comes back as it was, in many rows, from a file. */
TEST(reads_what_core_writes)
{
    const char *texts[] = {"plain",   "a,b",  "say \"x\"", "two\nlines",  "",
                           " blank ", "cr\r", "\"",        "caf\xc3\xa9", "\xff\xfe"};
    char path[] = "/tmp/plumb-test-table-XXXXXX", error[256] = "";
    int fd = mkstemp(path);
    FILE *out = fdopen(fd, "w");
    const size_t n = 5000;
    struct table t;

    assert_non_null(out);
    fputs("number,text\n", out);
    for (size_t i = 0; i < n; i++) {
        csv_print_number(out, i ? (double)i / 3 : NAN);
        fputc(',', out);
        csv_print(out, texts[i % 10]);
        fputc('\n', out);
    }
    size_t size = (size_t)ftell(out);
    fclose(out);
    assert_int_equal(table_load(path, &t, error, sizeof(error)), 0);
    assert_int_equal(t.n_rows, n);
    assert_int_equal(t.ends[n - 1], size);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(table_cell(&t, i, 1), texts[i % 10]);
    assert_true(isnan(table_number(&t, 0, "number")));
    assert_true(fabs(table_number(&t, 2, "number") - 2.0 / 3) < 1e-8);
    table_release(&t);
    unlink(path);
    assert_int_equal(table_load(path, &t, error, sizeof(error)), -ENOENT);
    assert_non_null(strstr(error, path));
    assert_int_equal(table_load("/tmp", &t, error, sizeof(error)), -EISDIR);
}

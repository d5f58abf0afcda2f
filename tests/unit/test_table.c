/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the CSV reader: what it accepts, and that every kind of damage is told from good. */
#include "harness/table.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/text.h"

static struct table parsed(const char *text)
{
    struct table t;
    char error[256] = "";

    if (table_parse("t.csv", text, strlen(text), &t, error, sizeof(error)))
        fail_msg("%s", error);
    return t;
}

static void refused_bytes(const char *text, size_t size, const char *message)
{
    struct table t = {.n_rows = 9};
    char error[256] = "";

    assert_int_equal(table_parse("t.csv", text, size, &t, error, sizeof(error)), -EBADMSG);
    assert_string_equal(error, message);
    assert_int_equal(t.n_rows, 0);
    assert_null(t.texts);
}

static void refused(const char *text, const char *message)
{
    refused_bytes(text, strlen(text), message);
}

static void reads_rows(void **state)
{
    (void)state;
    struct table t = parsed("a,b,c\n1,two,\n-2.5e3, x ,\"\"\n");

    assert_int_equal(t.n_columns, 3);
    assert_int_equal(t.n_rows, 2);
    assert_string_equal(t.columns[2], "c");
    assert_string_equal(table_cell(&t, 0, 1), "two");
    assert_string_equal(table_text(&t, 1, "b"), " x ");
    assert_string_equal(table_text(&t, 0, "c"), "");
    assert_string_equal(table_text(&t, 1, "c"), "");
    assert_true(table_number(&t, 1, "a") == -2500);
    assert_int_equal(t.header_end, 6);
    assert_int_equal(t.ends[0], 13);
    assert_int_equal(t.ends[1], 27);
    table_release(&t);
}

static void reads_quotes(void **state)
{
    (void)state;
    struct table t = parsed("\"a,1\",b\n\"x \"\"y\"\"\",\"two\nlines\r\n,3\"\nplain,4\n");

    assert_string_equal(t.columns[0], "a,1");
    assert_int_equal(t.n_rows, 2);
    assert_string_equal(table_cell(&t, 0, 0), "x \"y\"");
    assert_string_equal(table_cell(&t, 0, 1), "two\nlines\r\n,3");
    assert_string_equal(table_cell(&t, 1, 0), "plain");
    table_release(&t);
}

static void reads_carriage_returns(void **state)
{
    (void)state;
    struct table t = parsed("a,b\r\n1,2\r\n\"3\",\"4\"\r\n");

    assert_string_equal(t.columns[1], "b");
    assert_int_equal(t.n_rows, 2);
    assert_string_equal(table_cell(&t, 0, 1), "2");
    assert_string_equal(table_cell(&t, 1, 1), "4");
    assert_int_equal(t.ends[1], 19);
    table_release(&t);
}

static void unmeasured_is_nan(void **state)
{
    (void)state;
    struct table t = parsed("a,b\n,0\nnan,12x\ninf, 3\n");

    assert_true(isnan(table_number(&t, 0, "a")));
    assert_true(table_number(&t, 0, "b") == 0);
    assert_true(isnan(table_number(&t, 0, "no such column")));
    assert_true(isnan(table_number(&t, 1, "a")));
    assert_true(isnan(table_number(&t, 1, "b")));
    assert_true(isnan(table_number(&t, 2, "a")));
    assert_true(isnan(table_number(&t, 2, "b")));
    assert_int_equal(table_column(&t, "c"), TABLE_NO_COLUMN);
    assert_string_equal(table_text(&t, 0, "c"), "");
    table_release(&t);
}

static void refuses_damage(void **state)
{
    (void)state;
    refused("", "\"t.csv\" is damaged at line 1: there is no header");
    refused("a,b\n1,2", "\"t.csv\" is damaged at line 1: it ends inside this row: the file was cut "
                        "off");
    refused("a,b\n1,2\n3\n", "\"t.csv\" is damaged at line 3: 1 cells where the header has 2");
    refused("a,b\n1,2,3\n", "\"t.csv\" is damaged at line 2: 3 cells where the header has 2");
    refused("a,b\n1,\"2\n", "\"t.csv\" is damaged at line 2: it ends inside this row: the file was "
                            "cut off");
    refused("a,b\n1,2\"3\n", "\"t.csv\" is damaged at line 2: a quote where none may be");
    refused("a,b\n1,\"2\"3\n", "\"t.csv\" is damaged at line 2: a quote where none may be");
    refused("a,b,a\n", "\"t.csv\" is damaged at line 1: column \"a\" is there twice");
    refused("a,,b\n", "\"t.csv\" is damaged at line 1: column 2 has no name");
    refused("a,b\n1,2\n\n3,4\n", "\"t.csv\" is damaged at line 3: an empty line");
    refused("\na,b\n", "\"t.csv\" is damaged at line 1: an empty line");
    refused("a,b\n1,2\r3,4\n", "\"t.csv\" is damaged at line 2: a carriage return inside a line");
    refused_bytes("a,b\n1,2\n3,\0\n", 12, "\"t.csv\" is damaged at line 3: a NUL byte");
    refused_bytes("a,b\n1,2\n\0\0\0", 11, "\"t.csv\" is damaged at line 3: a NUL byte");
}

/* Cut anywhere, the tail reader keeps exactly the rows that are whole, and says where they end. */
static void tail_keeps_whole_rows(void **state)
{
    (void)state;
    const char *text = "a,b\n1,\"x\ny\"\n2,\"p\"\"q\"\n3,last\n";
    const size_t ends[] = {12, 21, 28};

    for (size_t size = 0; size <= strlen(text); size++) {
        struct table t;
        char error[256] = "";
        size_t whole = (size >= 12) + (size >= 21) + (size >= 28);
        int torn = -1, at_end = size == 0 || size == 4 || size == 12 || size == 21 || size == 28;

        assert_int_equal(table_parse_tail("t", text, size, &t, &torn, error, sizeof(error)), 0);
        assert_int_equal(t.n_rows, whole);
        assert_int_equal(torn, !at_end);
        assert_int_equal(t.n_columns, size >= 4 ? 2 : 0);
        assert_int_equal(t.header_end, size >= 4 ? 4 : 0);
        for (size_t i = 0; i < whole; i++)
            assert_int_equal(t.ends[i], ends[i]);
        table_release(&t);
    }
}

static void tail_refuses_damage_before_it(void **state)
{
    (void)state;
    const char *text = "a,b\n1\n2,3\n4";
    struct table t;
    char error[256] = "";
    int torn;

    assert_int_equal(table_parse_tail("t", text, strlen(text), &t, &torn, error, sizeof(error)),
                     -EBADMSG);
    assert_string_equal(error, "\"t\" is damaged at line 2: 1 cells where the header has 2");
}

static bool is_even(const struct table *t, char *const *cells, void *arg)
{
    assert_int_equal(t->n_columns, 2);
    ++*(int *)arg;
    return atoi(cells[0]) % 2 == 0;
}

static void keeps_what_is_wanted(void **state)
{
    (void)state;
    const char *text = "n,text\n1,one\n2,two\n3,three\n4,four\n5,fi";
    struct table t;
    char error[256] = "";
    int torn, seen = 0;

    assert_int_equal(
        table_parse_where("t", text, strlen(text), is_even, &seen, &t, &torn, error, sizeof(error)),
        0);
    assert_int_equal(seen, 4);
    assert_true(torn);
    assert_int_equal(t.n_rows, 2);
    assert_string_equal(table_cell(&t, 0, 1), "two");
    assert_string_equal(table_cell(&t, 1, 1), "four");
    assert_int_equal(t.ends[1], 34);
    table_keep(&t, (const bool[]){false, true});
    assert_int_equal(t.n_rows, 1);
    assert_string_equal(table_cell(&t, 0, 1), "four");
    assert_int_equal(t.ends[0], 34);
    table_release(&t);
}

/* What core/text.h writes comes back as it was. */
static void reads_what_core_writes(void **state)
{
    (void)state;
    const char *texts[] = {"plain",   "a,b",  "say \"x\"", "two\nlines",  "",
                           " blank ", "cr\r", "\"",        "caf\xc3\xa9", "\xff\xfe"};
    size_t n = sizeof(texts) / sizeof(*texts), size = 0;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    fputs("number,text\n", out);
    for (size_t i = 0; i < n; i++) {
        csv_print_number(out, i ? (double)i / 3 : NAN);
        fputc(',', out);
        csv_print(out, texts[i]);
        fputc('\n', out);
    }
    fclose(out);
    struct table t = parsed(text);
    assert_int_equal(t.n_rows, n);
    assert_int_equal(t.ends[n - 1], size);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(table_cell(&t, i, 1), texts[i]);
    assert_true(isnan(table_number(&t, 0, "number")));
    assert_true(fabs(table_number(&t, 2, "number") - 2.0 / 3) < 1e-8);
    table_release(&t);
    free(text);
}

static void reads_many_rows(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    fputs("a,b\n", out);
    for (int i = 0; i < 20000; i++)
        fprintf(out, "%d,%d\n", i, i * 2);
    fclose(out);
    struct table t = parsed(text);
    assert_int_equal(t.n_rows, 20000);
    for (size_t i = 0; i < t.n_rows; i += 999)
        assert_int_equal(atoi(table_cell(&t, i, 1)), i * 2);
    assert_int_equal(t.ends[19999], size);
    table_release(&t);
    free(text);
}

static void loads_files(void **state)
{
    (void)state;
    char path[] = "/tmp/plumb-test-table-XXXXXX", error[256] = "";
    int fd = mkstemp(path);
    struct table t;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a\n1\n", 4), 4);
    close(fd);
    assert_int_equal(table_load(path, &t, error, sizeof(error)), 0);
    assert_int_equal(t.n_rows, 1);
    table_release(&t);
    unlink(path);
    assert_int_equal(table_load(path, &t, error, sizeof(error)), -ENOENT);
    assert_non_null(strstr(error, path));
    assert_int_equal(table_load("/tmp", &t, error, sizeof(error)), -EISDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_rows),
        cmocka_unit_test(reads_quotes),
        cmocka_unit_test(reads_carriage_returns),
        cmocka_unit_test(unmeasured_is_nan),
        cmocka_unit_test(refuses_damage),
        cmocka_unit_test(tail_keeps_whole_rows),
        cmocka_unit_test(tail_refuses_damage_before_it),
        cmocka_unit_test(keeps_what_is_wanted),
        cmocka_unit_test(reads_what_core_writes),
        cmocka_unit_test(reads_many_rows),
        cmocka_unit_test(loads_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

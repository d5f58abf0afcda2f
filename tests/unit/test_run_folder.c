/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reading a run folder: which rows count, and that each damaged file is named. */
#include "harness/store/run_folder.h"
#include "tests/unit/unit.h"

#include "tests/unit/fake_run.h"

static const char *const params[] = {"op", "size"};

static void write_rows(const struct fake_run *f, const char *name, const struct row *rows, size_t n)
{
    FILE *out = fake_run_open(f, name, "w");

    row_print_csv_header(out, params, 2);
    for (size_t i = 0; i < n; i++)
        row_print_csv(out, &rows[i]);
    fclose(out);
}

static struct row a_row(const char *case_id, uint64_t repeat, const char *metric, double value)
{
    struct row row;

    fake_row_init(&row, case_id, repeat, metric, "GB/s", value);
    row.param_names = params;
    row.n_params = 2;
    row.params[0] = "triad";
    row.params[1] = "16384";
    return row;
}

/* Launch 1/1 has two rows, 2/1 was skipped without a row, 1/2 was not run. */
static void write_good_run(const struct fake_run *f)
{
    struct row rows[] = {a_row("1", 1, "bandwidth", 10), a_row("1", 1, "latency", 7)};

    fake_run_write(f, "run.json", "{\"schema\": 3, \"run\": \"good\"}\n");
    fake_run_write(f, "plan.csv",
                   FAKE_PLAN_HEADER "done,2,1,1,1,memory,\"--op=triad --size=16K,32K\",60\n"
                                    "skip,0,2,2,1,copy,,60\ntodo,,3,1,2,memory,,60\n");
    write_rows(f, "memory.csv", rows, 2);
}

static int good_run(void **state)
{
    struct fake_run *f = malloc(sizeof(*f));

    fake_run_init(f);
    write_good_run(f);
    *state = f;
    return 0;
}

static int end_run(void **state)
{
    fake_run_release(*state);
    free(*state);
    return 0;
}

static struct run_folder loaded(const struct fake_run *f)
{
    struct run_folder run;
    char error[512] = "";

    if (run_folder_load(f->path, &run, error, sizeof(error)))
        fail_msg("%s", error);
    return run;
}

static void refused(const struct fake_run *f, int code, const char *file, const char *what)
{
    struct run_folder run = {.n_benches = 3};
    char error[512] = "", path[600];

    assert_int_equal(run_folder_load(f->path, &run, error, sizeof(error)), code);
    snprintf(path, sizeof(path), "\"%s%s\"", f->path, file);
    if (!strstr(error, path) || !strstr(error, what))
        fail_msg("\"%s\" names not %s or says not \"%s\"", error, path, what);
    assert_null(run.path);
    assert_int_equal(run.n_benches, 0);
}

TEST_WITH(loads_a_run, good_run, end_run)
{
    struct run_folder run = loaded(*state);

    assert_string_equal(json_string_value(json_object_get(run.meta, "run")), "good");
    assert_int_equal(run.plan.n_rows, 3);
    assert_int_equal(run.n_benches, 2);
    assert_string_equal(run.benches[0].name, "copy");
    assert_int_equal(run.benches[0].rows.n_rows, 0);
    assert_string_equal(run.benches[1].name, "memory");
    assert_int_equal(run.benches[1].rows.n_rows, 2);
    assert_true(table_number(&run.benches[1].rows, 1, "value") == 7);
    run_folder_release(&run);
    fake_run_append(*state, "memory.csv",
                    "triad,16384,bandwidth,GB/s,1"); /* a torn row is left out */
    run = loaded(*state);
    assert_int_equal(run.benches[1].rows.n_rows, 2);
    run_folder_release(&run);
    fake_run_write(*state, "memory.csv", ""); /* nothing is left but its name */
    run = loaded(*state);
    assert_int_equal(run.benches[1].rows.n_rows, 1);
    assert_string_equal(table_text(&run.benches[1].rows, 0, "status"), "failed");
    run_folder_release(&run);
}

/* Rows of a launch that is todo or is not planned do not count. A launch that ended, and has fewer
 * or more rows than promised, has one row that says so. */
TEST_WITH(leaves_out_what_is_not_committed, good_run, end_run)
{
    struct row rows[] = {
        a_row("1", 1, "bandwidth", 10), a_row("1", 2, "bandwidth", 11),
        a_row("2", 1, "bandwidth", 12), a_row("3", 1, "bandwidth", 13),
        a_row("3", 1, "latency", 14),   a_row("4", 1, "bandwidth", 15),
        a_row("5", 1, "bandwidth", 16), a_row("6", 1, "bandwidth", 17),
    };

    write_rows(*state, "memory.csv", rows, 8);
    fake_run_write(*state, "plan.csv",
                   FAKE_PLAN_HEADER "done,1,1,1,1,memory,,60\ntodo,,2,1,2,memory,,60\n"
                                    "done,2,3,2,1,memory,\"--op=triad --size=16K,32K\",60\n"
                                    "fail,1,4,3,1,memory,--op=triad,60\nskip,1,5,5,1,memory,,60\n"
                                    "late,1,6,6,1,memory,,60\n");
    struct run_folder run = loaded(*state);
    assert_int_equal(run.n_benches, 1);
    const struct table *t = &run.benches[0].rows;
    assert_int_equal(t->n_rows, 5);
    assert_true(table_number(t, 0, "value") == 10);
    for (size_t i = 3; i < 5; i++) {
        assert_string_equal(table_text(t, i, "status"), "failed");
        assert_true(isnan(table_number(t, i, "value")));
        assert_string_equal(table_text(t, i, "op"), "triad");
        assert_string_equal(table_text(t, i, "size"), "");
    }
    assert_string_equal(table_text(t, 3, "case"), "2");
    assert_non_null(strstr(table_text(t, 3, "reason"), "1 of 2"));
    assert_non_null(strstr(table_text(t, 4, "reason"), "2 rows"));
    assert_string_equal(table_text(&run.plan, 1, "state"), "todo");
    assert_string_equal(table_text(&run.plan, 2, "state"), "fail");
    assert_int_equal(run.n_lost_rows, 3);
    run_folder_release(&run);
}

/* Each damaged or missing file is named, with what is wrong. */
TEST_WITH(names_what_is_damaged, good_run, end_run)
{
    static const struct {
        const char *file, *text, *word; /* text NULL: it is missing */
    } cases[] = {{"memory.csv", "op,size\n", "\"metric\""},
                 {"memory.csv", NULL, "missing"},
                 {"plan.csv", FAKE_PLAN_HEADER "todo", "ends inside"},
                 {"plan.csv", "state,rows\n", "\"order\""},
                 {"plan.csv", FAKE_PLAN_HEADER "gone,1,1,1,1,memory,,60\n", "\"gone\""},
                 {"plan.csv", FAKE_PLAN_HEADER "done,x,1,1,1,memory,,60\n", "\"x\""},
                 {"plan.csv", FAKE_PLAN_HEADER "done,1,1,1,1,../memory,,60\n", "\"../memory\""},
                 {"plan.csv", NULL, "missing"},
                 {"run.json", "{\"schema\": 3,\n \"run\": }\n", "line 2"},
                 {"run.json", "[1]", "object"},
                 {"run.json", "{}", "schema"},
                 {"run.json", "{\"schema\": 1000}", "1000"}};
    const struct fake_run *f = *state;
    struct fake_run gone = *f;
    char path[600];

    fake_run_append(f, "memory.csv", "triad,16384\n");
    refused(f, -EBADMSG, "/memory.csv", "cells");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        write_good_run(f);
        snprintf(path, sizeof(path), "%s/%s", f->path, cases[i].file);
        if (cases[i].text)
            fake_run_write(f, cases[i].file, cases[i].text);
        else
            unlink(path);
        refused(f, -EBADMSG, path + strlen(f->path), cases[i].word);
    }
    snprintf(path, sizeof(path), "%s/run.json", f->path);
    unlink(path);
    refused(f, -ENOENT, "", "no run folder");
    strcat(gone.path, "-gone");
    refused(&gone, -ENOENT, "", "no run folder");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a history that is older than what other guests took of the CPU, and is brought up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/history/history_db.h"
#include "history_stolen.h"

static const char schema_2[] =
    "PRAGMA application_id = 1347177794; PRAGMA user_version = 2;"
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL,"
    " suite TEXT NOT NULL, started_utc TEXT NOT NULL, version TEXT NOT NULL,"
    " commit_id TEXT NOT NULL, standing INTEGER NOT NULL,"
    " environment INTEGER REFERENCES environments, state TEXT, ended INTEGER,"
    " UNIQUE (name, host, started_utc));"
    "CREATE TABLE series (id INTEGER PRIMARY KEY, host TEXT NOT NULL, suite TEXT NOT NULL,"
    " key TEXT NOT NULL, label TEXT NOT NULL, pipe TEXT NOT NULL, unit TEXT NOT NULL,"
    " higher_is_better INTEGER NOT NULL, place INTEGER NOT NULL, UNIQUE (host, suite, key));"
    "CREATE TABLE launches (series INTEGER NOT NULL REFERENCES series, run INTEGER NOT NULL"
    " REFERENCES runs, launch INTEGER NOT NULL, value REAL NOT NULL,"
    " PRIMARY KEY (series, run, launch)) WITHOUT ROWID;"
    "CREATE TABLE files (run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL,"
    " text BLOB NOT NULL, PRIMARY KEY (run, name));"
    "CREATE INDEX runs_by_time ON runs (host, suite, started_utc);"
    "CREATE TABLE environments (id INTEGER PRIMARY KEY, json TEXT NOT NULL);"
    "CREATE TABLE outcomes (series INTEGER NOT NULL REFERENCES series, run INTEGER NOT NULL"
    " REFERENCES runs, json TEXT NOT NULL, PRIMARY KEY (series, run)) WITHOUT ROWID;"
    "INSERT INTO runs SELECT id, name, host, suite, started_utc, version, commit_id, standing,"
    " environment, state, ended FROM now.runs;"
    "INSERT INTO series SELECT * FROM now.series;"
    "INSERT INTO launches SELECT series, run, launch, value FROM now.launches;"
    "INSERT INTO files SELECT * FROM now.files;"
    "INSERT INTO environments SELECT * FROM now.environments;"
    "INSERT INTO outcomes SELECT series, run, '{}' FROM now.outcomes;" /* without what was chosen */
    /* of the second run the rows were dropped, those of the third are damaged, those of the fourth of another time */
    "DELETE FROM files WHERE run = 2;"
    "UPDATE files SET text = 'no,rows' WHERE run = 3 AND name = 'memory.csv';"
    "UPDATE launches SET value = value + 1 WHERE run = 4 AND launch = 1;";

/* Makes the history of four runs one of schema 2, as that was. */
static void make_schema_2(struct scene *s)
{
    char sql[4096], old[128], said[64];

    for (unsigned i = 0; i < 4; i++)
        add_stolen(s, i, i ? 30 : 12.5, HISTORY_BASELINE);
    snprintf(old, sizeof(old), "%.100s.old", s->db);
    snprintf(sql, sizeof(sql), "ATTACH '%s' AS now; %s", s->db, schema_2);
    if (!sqlite(old, sql, said, sizeof(said)))
        skip();
    assert_int_equal(rename(old, s->db), 0);
}

static void test_an_older_history_is_read_as_it_is(void **state)
{
    struct scene *s = *state;
    char names[128];
    struct history h;
    size_t n_taken;

    make_schema_2(s);
    read_db(s, &h);
    assert_int_equal(h.n_runs, 4);
    assert_int_equal(h.series[0].n, 4);
    assert_true(isnan(h.series[0].steals[0][0]));
    assert_string_equal(h.series[0].outcomes[0], "{}");
    history_release(&h);
    /* of all runs of which the rows are there it is not known */
    baselines(s, 0, 0.02, &n_taken, names, sizeof(names));
    assert_string_equal(names, "one-0 one-2 one-3");
    assert_int_equal(n_taken, 0);
    assert_schema(s, "2\n");
}

static void test_an_older_history_learns_it_from_the_rows_it_keeps(void **state)
{
    struct scene *s = *state;
    char names[128];
    struct history h;
    size_t n_taken;

    make_schema_2(s);
    add_stolen(s, 4, 1, HISTORY_BASELINE);
    assert_schema(s, "4\n");
    assert_sound(s->db);
    read_db(s, &h);
    assert_int_equal(h.n_runs, 5);
    assert_int_equal(h.n_series, 3);
    for (size_t i = 0; i < 2; i++)
        for (size_t l = 0; l < LAUNCHES; l++) {
            assert_true(h.series[i].steals[0][l] == 12.5);
            assert_true(isnan(h.series[i].steals[1][l]));
            assert_true(isnan(h.series[i].steals[2][l]));
            if (l == 1)
                assert_true(isnan(h.series[i].steals[3][l]));
            else
                assert_true(h.series[i].steals[3][l] == 30);
            assert_true(h.series[i].steals[4][l] == 1);
        }
    assert_true(h.series[0].launches[0][1] == 100 * 1.001);
    history_release(&h);
    baselines(s, 0, 0.02, &n_taken, names, sizeof(names));
    assert_string_equal(names, "one-2 one-3 one-4");
    assert_int_equal(n_taken, 1);
    /* what it does not know it learns when the run is added again */
    add_stolen(s, 1, 30, HISTORY_BASELINE);
    read_db(s, &h);
    assert_true(h.series[0].steals[1][0] == 30);
    history_release(&h);
}

/* Where the rows cannot be laid out nothing is changed, and the next one tries again. */
static void test_an_older_history_stays_where_it_cannot_be_brought_up(void **state)
{
    struct scene *s = *state;
    const char *was = getenv("TMPDIR");
    char path[128], error[512] = "";

    make_schema_2(s);
    write_run(s, "one", 6, path, sizeof(path));
    setenv("TMPDIR", "/nowhere/at/all", 1);
    int err = add_as(s->db, path, HISTORY_BASELINE, NULL, error, sizeof(error));
    if (was)
        setenv("TMPDIR", was, 1);
    else
        unsetenv("TMPDIR");
    assert_int_equal(err, -ENOENT);
    assert_non_null(strstr(error, "set TMPDIR"));
    assert_schema(s, "2\n");
    assert_int_equal(count_runs(s->db, ""), 4);
    assert_int_equal(add_as(s->db, path, HISTORY_BASELINE, NULL, error, sizeof(error)), 0);
    assert_schema(s, "4\n");
}

/* It was added by a plumb that did not keep what a benchmark chose: that alone makes the run no other one. */
static void test_a_run_of_an_older_history_is_known(void **state)
{
    struct scene *s = *state;
    struct history_judged judged = {.standing = HISTORY_BASELINE};
    enum history_added how;
    char path[128], error[512] = "", said[64];
    const char *at = path;
    struct report r;

    make_schema_2(s);
    snprintf(path, sizeof(path), "%s/one-0", s->root.path);
    for (int other = 0; other < 2; other++) {
        struct history_db *db = open_db(s->db, true);

        assert_int_equal(report_load(&r, &at, 1, error, sizeof(error)), 0);
        assert_int_equal(history_db_add(db, &r, 0, &judged, &how, error, sizeof(error)), 0);
        assert_int_equal(how, other ? HISTORY_CHANGED : HISTORY_SAME);
        report_release(&r);
        history_db_close(db);
        if (!sqlite(s->db, "UPDATE outcomes SET json = '{\"kernel\":[\"2.6\"]}' WHERE run = 1",
                    said, sizeof(said)))
            skip();
    }
}

/* Which of its rows a run of the older history has lost; and whether that may pass. */
static void assert_brought_up(struct scene *s, const char *damage, int want)
{
    char path[128], error[512] = "", said[64];

    make_schema_2(s);
    if (!sqlite(s->db, damage, said, sizeof(said)))
        skip();
    write_run(s, "one", 6, path, sizeof(path));
    int err = add_as(s->db, path, HISTORY_BASELINE, NULL, error, sizeof(error));
    if (err != want)
        fail_msg("%s: %d (%s)", damage, err, error);
    assert_schema(s, want ? "2\n" : "4\n");
    assert_int_equal(count_runs(s->db, ""), want ? 4 : 5);
    unlink(s->db);
}

static void test_rows_that_are_damaged_for_good_hold_nothing_up(void **state)
{
    struct scene *s = *state;

    assert_brought_up(s, "DELETE FROM files WHERE name = 'run.json'", 0);
    assert_brought_up(s, "DELETE FROM files WHERE name = 'plan.csv'", 0);
    assert_brought_up(s, "UPDATE files SET text = '{\"schema\": 99}' WHERE name = 'run.json'", 0);
    assert_brought_up(s, "UPDATE files SET name = '../out' WHERE name = 'plan.csv'", 0);
}

/* A file of this name cannot be opened for reading, as where too many are open; NULL: none. */
static const char *unopened;

/* In place of the C library's. */
int open(const char *path, int flags, ...)
{
    const char *slash = strrchr(path, '/');
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list args;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    if (unopened && slash && !strcmp(slash + 1, unopened) && (flags & O_ACCMODE) == O_RDONLY) {
        errno = EMFILE;
        return -1;
    }
    return openat(AT_FDCWD, path, flags, mode);
}

/* The file stays of schema 2, whole, and the next one learns all that there is. */
static void test_what_may_pass_is_tried_again(void **state)
{
    struct scene *s = *state;
    char path[128], error[512] = "";
    struct history h;
    int err;

    make_schema_2(s);
    write_run(s, "one", 6, path, sizeof(path));
    unopened = "plan.csv";
    history_db_close(history_db_open(s->db, true, &err, error, sizeof(error)));
    unopened = NULL;
    assert_int_equal(err, -EMFILE);
    assert_non_null(strstr(error, "plan.csv"));
    assert_schema(s, "2\n");
    assert_sound(s->db);
    history_db_close(open_db(s->db, true));
    assert_schema(s, "4\n");
    read_db(s, &h);
    assert_true(h.series[0].steals[0][0] == 12.5);
    assert_true(h.series[0].steals[3][0] == 30);
    history_release(&h);
}

/* A page of the file itself is damaged: that is no matter of one run's rows. */
static void test_a_damaged_file_is_not_brought_up(void **state)
{
    struct scene *s = *state;
    char path[128], error[512] = "", said[64];

    make_schema_2(s);
    /* the rows of one file on pages of their own, each of which names the next, until one names none that is there */
    if (!sqlite(s->db,
                "UPDATE files SET text = zeroblob(200000) WHERE run = 1 AND name = 'memory.csv'",
                said, sizeof(said)))
        skip();
    int fd = open(s->db, O_RDWR | O_CLOEXEC);
    off_t end = lseek(fd, 0, SEEK_END);
    assert_int_equal(pwrite(fd, "\x7f\x7f\x7f\x7f", 4, end - 20 * (off_t)4096), 4);
    close(fd);
    write_run(s, "one", 6, path, sizeof(path));
    int err = add_as(s->db, path, HISTORY_BASELINE, NULL, error, sizeof(error));
    if (err != -EBADMSG)
        fail_msg("%d (%s)", err, error);
    assert_non_null(strstr(error, "cannot read the history")); /* at the rows, and not later on */
    assert_non_null(strstr(error, "the file is damaged"));
    assert_schema(s, "2\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_an_older_history_is_read_as_it_is),
        TEST(test_an_older_history_learns_it_from_the_rows_it_keeps),
        TEST(test_an_older_history_stays_where_it_cannot_be_brought_up),
        TEST(test_a_run_of_an_older_history_is_known),
        TEST(test_rows_that_are_damaged_for_good_hold_nothing_up),
        TEST(test_what_may_pass_is_tried_again),
        TEST(test_a_damaged_file_is_not_brought_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

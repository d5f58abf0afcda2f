/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the history of runs: a run that is added again, and a history of an older schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/history/history_db.h"
#include "history_scene.h"

#define STARTED "2026-01-01T00:00:00Z"

/* The run "r", with so many launches of each of its cases; the third has no value where `third` is 0. */
static void write_r(const struct scene *s, unsigned launches, double first, double third,
                    const char *state, char *path, size_t len)
{
    struct check_run r = {.name = "r",
                          .host = "one",
                          .suite = "quick",
                          .started_utc = STARTED,
                          .values = {first, 20, third},
                          .launches = launches};

    check_run_write(&s->root, &r, path, len);
    FILE *meta = fake_run_open(&s->root, "r/run.json", "w");
    fprintf(
        meta,
        "{\"schema\": 1, \"run\": \"r\", \"suite\": \"quick\", \"version\": \"1.2\", \"commit\":"
        " \"abc\", \"started_utc\": \"" STARTED "\", \"state\": \"%s\", \"machine\": {\"host\":"
        " {\"hostname\": \"one\", \"kernel\": \"6.1\", \"bios\": null, \"bios_why\": \"no DMI\"},"
        " \"findings\": [1], \"load\": {\"average_1min\": 3},"
        " \"network\": [{\"name\": \"eth0\", \"counters\": {\"rx_packets\": 7}}]}}\n",
        state);
    fclose(meta);
}

static enum history_added put(const struct scene *s, const char *path,
                              enum history_standing *standing)
{
    char error[512] = "";
    struct report r = {0};
    enum history_added how = HISTORY_SAME;
    struct history_db *db = open_db(s->db, true);
    struct history_judged judged = {.standing = *standing};
    int err = report_load(&r, &path, 1, error, sizeof(error));

    if (!err)
        err = history_db_add(db, &r, 0, &judged, &how, error, sizeof(error));
    *standing = judged.standing;
    if (err)
        fail_msg("%d: %s", err, error);
    report_release(&r);
    history_db_close(db);
    return how;
}

/* Adds r as it then is; *standing: what it is behind that. */
static enum history_added put_r(const struct scene *s, unsigned launches, double first,
                                double third, const char *state, enum history_standing *standing)
{
    char path[128];

    write_r(s, launches, first, third, state, path, sizeof(path));
    return put(s, path, standing);
}

static void read_db(const struct scene *s, struct history *h)
{
    char error[512] = "";
    struct history_db *db = open_db(s->db, false);

    assert_int_equal(history_db_read(db, "", "", NULL, h, error, sizeof(error)), 0);
    history_db_close(db);
}

static void assert_r(const struct scene *s, size_t n_series, size_t launches, double first,
                     enum history_standing standing)
{
    struct history h;

    read_db(s, &h);
    assert_int_equal(h.n_runs, 1);
    assert_int_equal(h.runs[0].standing, standing);
    assert_int_equal(h.n_series, n_series);
    for (size_t i = 0; i < n_series; i++)
        assert_int_equal(h.series[i].n_launches[0], launches);
    assert_true(h.series[0].launches[0][0] == first);
    history_release(&h);
}

static char *whole_file(const char *path, size_t *n)
{
    FILE *in = fopen(path, "rb");
    char *bytes = calloc(1, 1 << 20);

    if (!in || !bytes)
        abort();
    *n = fread(bytes, 1, 1 << 20, in);
    fclose(in);
    return bytes;
}

static void test_a_run_that_went_on_is_replaced(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_SEEN;

    assert_int_equal(put_r(s, 2, 100, 0, "interrupted", &standing), HISTORY_NEW);
    assert_r(s, 2, 2, 100, HISTORY_SEEN);
    standing = HISTORY_BASELINE;
    assert_int_equal(put_r(s, 3, 100, 5, "complete", &standing), HISTORY_CHANGED);
    assert_int_equal(standing, HISTORY_BASELINE);
    assert_r(s, 3, 3, 100, HISTORY_BASELINE);
    /* as many launches, and another value */
    assert_int_equal(put_r(s, 3, 101, 5, "complete", &standing), HISTORY_CHANGED);
    assert_r(s, 3, 3, 101, HISTORY_BASELINE);
    /* other cases that come to as many launches: the old case is gone */
    assert_int_equal(put_r(s, 5, 101, 0, "complete", &standing), HISTORY_CHANGED);
    assert_r(s, 2, 5, 101, HISTORY_BASELINE);
    assert_sound(s->db);
}

/* Where there is a log, all that is written goes into it, and it stays while somebody has the file open. */
static off_t log_bytes(const struct scene *s)
{
    char path[160];
    struct stat st;

    snprintf(path, sizeof(path), "%s-wal", s->db);
    return stat(path, &st) ? 0 : st.st_size;
}

/* The file stays as it is, byte for byte. */
static void test_what_is_the_same_is_not_written(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_BASELINE;
    size_t n_before, n_after;

    put_r(s, 3, 100, 5, "complete", &standing);
    char *before = whole_file(s->db, &n_before);
    struct history_db *open = open_db(s->db, false);
    off_t log = log_bytes(s);
    assert_int_equal(put_r(s, 3, 100, 5, "complete", &standing), HISTORY_SAME);
    standing = HISTORY_SEEN;
    assert_int_equal(put_r(s, 3, 100, 5, "complete", &standing), HISTORY_SAME);
    assert_int_equal(standing, HISTORY_BASELINE);
    /* an older copy of the folder */
    assert_int_equal(put_r(s, 2, 100, 5, "running", &standing), HISTORY_SHORTER);
    assert_int_equal(standing, HISTORY_BASELINE);
    assert_int_equal(log_bytes(s), log);
    history_db_close(open);
    char *after = whole_file(s->db, &n_after);
    assert_int_equal(n_after, n_before);
    assert_memory_equal(after, before, n_before);
    free(before);
    free(after);
}

static void test_a_standing_survives(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_START;

    put_r(s, 2, 100, 5, "interrupted", &standing);
    standing = HISTORY_SEEN;
    assert_int_equal(put_r(s, 3, 100, 5, "complete", &standing), HISTORY_CHANGED);
    assert_int_equal(standing, HISTORY_START);
    standing = HISTORY_BASELINE;
    assert_int_equal(put_r(s, 4, 100, 5, "complete", &standing), HISTORY_CHANGED);
    assert_r(s, 3, 4, 100, HISTORY_START);
    /* what is accepted is taken as it is */
    standing = HISTORY_START;
    assert_int_equal(put_r(s, 2, 90, 5, "complete", &standing), HISTORY_CHANGED);
    assert_r(s, 3, 2, 90, HISTORY_START);
}

static void test_a_loss_is_no_baseline_by_being_added_again(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_SEEN;

    put_r(s, 3, 100, 5, "complete", &standing);
    standing = HISTORY_BASELINE;
    assert_int_equal(put_r(s, 3, 100, 5, "complete", &standing), HISTORY_SAME);
    assert_int_equal(standing, HISTORY_SEEN);
    assert_r(s, 3, 3, 100, HISTORY_SEEN);
    assert_int_equal(put_r(s, 3, 110, 5, "complete", &standing), HISTORY_CHANGED);
    assert_r(s, 3, 3, 110, HISTORY_SEEN);
}

/* As many launches have ended, and fewer of them have a value: that is no older copy. */
static void test_fewer_values_are_taken(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_BASELINE;

    put_r(s, 3, 100, 5, "complete", &standing);
    assert_int_equal(put_r(s, 3, 100, 0, "complete", &standing), HISTORY_CHANGED);
    assert_r(s, 2, 3, 100, HISTORY_BASELINE);
}

/* All launches were there when it was killed; only its state tells that it has ended since. */
static void test_a_run_that_has_ended_since_is_judged_anew(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_SEEN;

    put_r(s, 3, 100, 5, "running", &standing);
    standing = HISTORY_BASELINE;
    assert_int_equal(put_r(s, 3, 100, 5, "complete", &standing), HISTORY_CHANGED);
    assert_r(s, 3, 3, 100, HISTORY_BASELINE);
}

/* Later runs are held against the folder as it is now. */
static void test_the_rows_are_replaced(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_BASELINE;
    struct history h;
    char error[512] = "", to[128], path[160];
    size_t n;

    put_r(s, 2, 100, 5, "interrupted", &standing);
    put_r(s, 3, 100, 5, "complete", &standing);
    read_db(s, &h);
    struct history_db *db = open_db(s->db, false);
    snprintf(to, sizeof(to), "%s/back", s->root.path);
    mkdir(to, 0755);
    assert_int_equal(history_db_restore(db, h.runs[0].id, to, error, sizeof(error)), 0);
    history_db_close(db);
    history_release(&h);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"run.json", "plan.csv", "memory.csv"};
        size_t n_want;

        snprintf(path, sizeof(path), "%s/r/%s", s->root.path, names[i]);
        char *want = whole_file(path, &n_want);
        snprintf(path, sizeof(path), "%s/%s", to, names[i]);
        char *got = whole_file(path, &n);
        assert_int_equal(n, n_want);
        assert_string_equal(got, want);
        free(want);
        free(got);
    }
}

/* The files that the history keeps of its runs. */
static void assert_files(const struct scene *s, const char *want)
{
    char said[256];

    if (!sqlite(s->db, "SELECT run || '/' || name FROM files ORDER BY run, name", said,
                sizeof(said)))
        skip();
    assert_string_equal(said, want);
}

/* Killed while another benchmark had rows, and resumed without it: later runs are not held against those. */
static void test_the_rows_of_a_benchmark_that_vanished_go(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_START;
    static const char kept[] = "1/memory.csv\n1/plan.csv\n1/run.json\n"
                               "2/memory.csv\n2/null.csv\n2/plan.csv\n2/run.json\n";
    struct history h;
    char path[128], said[16];

    write_r(s, 3, 100, 5, "interrupted", path, sizeof(path));
    fake_run_write(&s->root, "r/null.csv",
                   "number,metric,unit,value,ci_low,ci_high,confidence,samples,limit,stop,origin,"
                   "status,reason,run,case,repeat,host,time_utc\n"
                   "1,time,ns,7,6,8,0.95,10,,converged,measured,ok,,r,c9,0,one," STARTED "\n");
    FILE *plan = fake_run_open(&s->root, "r/plan.csv", "a");
    fputs("done,1,99,c9,0,null,--number 1,60\n", plan);
    fclose(plan);
    assert_int_equal(put(s, path, &standing), HISTORY_NEW);
    assert_files(s, "1/memory.csv\n1/null.csv\n1/plan.csv\n1/run.json\n");
    add(s, "one", 4, HISTORY_BASELINE); /* whose rows stay, such as these */
    assert_true(sqlite(s->db, "INSERT INTO files VALUES (2, 'null.csv', 'x')", said, sizeof(said)));
    snprintf(path, sizeof(path), "%s/r/null.csv", s->root.path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(put_r(s, 4, 100, 5, "complete", &standing), HISTORY_CHANGED);
    assert_files(s, kept);
    read_db(s, &h);
    assert_int_equal(h.n_series, 3);
    history_release(&h);
    /* only rows that nothing stands for are left: that is a change, too */
    assert_int_equal(put_r(s, 4, 100, 5, "complete", &standing), HISTORY_SAME);
    assert_true(sqlite(s->db, "INSERT INTO files VALUES (1, 'null.csv', 'x')", said, sizeof(said)));
    assert_int_equal(put_r(s, 4, 100, 5, "complete", &standing), HISTORY_CHANGED);
    assert_files(s, kept);
}

#define ROUNDS 6

/* Half of the writers come with the folder as it was when the run was killed, half with the one that was resumed:
 * whoever comes last, what is longer stays, and it is whole. */
static void test_old_and_new_at_once(void **state)
{
    struct scene *s = *state;
    char path[128];
    enum history_standing standing = HISTORY_BASELINE;
    struct fake_run old;
    pid_t children[2 * ROUNDS];
    int gate[2], status;

    snprintf(old.path, sizeof(old.path), "%.50s/copy", s->root.path);
    mkdir(old.path, 0755);
    struct scene copy = {.root = old};
    write_r(&copy, 2, 100, 0, "interrupted", path, sizeof(path));
    write_r(s, 4, 100, 5, "complete", path, sizeof(path));
    put(s, path, &standing); /* skips where there is no SQLite */
    unlink(s->db);
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        children[i] = fork();
        if (children[i])
            continue;
        char error[512], go, from[160];

        close(gate[1]);
        snprintf(from, sizeof(from), "%s/r", i % 2 ? s->root.path : copy.root.path);
        if (read(gate[0], &go, 1) < 0)
            _exit(1);
        _exit(add_as(s->db, from, HISTORY_BASELINE, NULL, error, sizeof(error)) ? 1 : 0);
    }
    close(gate[0]);
    close(gate[1]); /* all at once */
    for (int i = 0; i < 2 * ROUNDS; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_r(s, 3, 4, 100, HISTORY_BASELINE);
    assert_sound(s->db);
}

/* --- what a run was measured by --- */

static void test_the_machine_and_the_outcomes_are_kept(void **state)
{
    struct scene *s = *state;
    enum history_standing standing = HISTORY_SEEN;
    const char *root = s->root.path;
    char error[512] = "";
    struct history h;

    put_r(s, 3, 100, 5, "complete", &standing);
    read_db(s, &h);
    assert_string_equal(
        h.runs[0].environment,
        "{\"commit\":\"abc\",\"machine\":{\"host\":{\"bios\":null,\"hostname\":"
        "\"one\",\"kernel\":\"6.1\"},\"network\":[{\"name\":\"eth0\"}]},\"schema\":1,"
        "\"suite\":\"quick\",\"version\":\"1.2\"}");
    assert_string_equal(h.series[0].outcomes[0], "{\"" HISTORY_CHOICES_KEPT "\":[\"kept\"]}");
    struct history folders;
    assert_int_equal(history_read_folders(&root, 1, NULL, &folders, error, sizeof(error)), 0);
    assert_string_equal(folders.runs[0].environment, h.runs[0].environment);
    assert_string_equal(folders.series[0].outcomes[0], h.series[0].outcomes[0]);
    history_release(&folders);
    history_release(&h);
}

/* --- an older schema --- */

/* As schema 1 was. A run with its rows, one whose rows were dropped. */
static const char old_schema[] =
    "PRAGMA application_id = 1347177794; PRAGMA user_version = 1;"
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, host TEXT NOT NULL,"
    " suite TEXT NOT NULL, started_utc TEXT NOT NULL, version TEXT NOT NULL,"
    " commit_id TEXT NOT NULL, standing INTEGER NOT NULL, UNIQUE (name, host, started_utc));"
    "CREATE TABLE series (id INTEGER PRIMARY KEY, host TEXT NOT NULL, suite TEXT NOT NULL,"
    " key TEXT NOT NULL, label TEXT NOT NULL, pipe TEXT NOT NULL, unit TEXT NOT NULL,"
    " higher_is_better INTEGER NOT NULL, place INTEGER NOT NULL, UNIQUE (host, suite, key));"
    "CREATE TABLE launches (series INTEGER NOT NULL REFERENCES series, run INTEGER NOT NULL"
    " REFERENCES runs, launch INTEGER NOT NULL, value REAL NOT NULL,"
    " PRIMARY KEY (series, run, launch)) WITHOUT ROWID;"
    "CREATE TABLE files (run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL,"
    " text BLOB NOT NULL, PRIMARY KEY (run, name));"
    "CREATE INDEX runs_by_time ON runs (host, suite, started_utc);"
    "INSERT INTO runs VALUES (1, 'a', 'one', 'quick', '2025-12-30T00:00:00Z', '1.1', 'old', 1),"
    " (2, 'r', 'one', 'quick', '" STARTED "', '1.2', 'abc', 2);"
    "INSERT INTO series VALUES (1, 'one', 'quick', 'memory|op=op0|bandwidth|GB/s', 'memory op0',"
    " 'Memory', 'GB/s', 1, 0);"
    "INSERT INTO launches VALUES (1, 1, 0, 99), (1, 2, 0, 100), (1, 2, 1, 100.1);"
    "INSERT INTO files VALUES (2, 'run.json', CAST('{\"schema\": 1, \"state\": \"interrupted\","
    " \"run\": \"r\", \"machine\": {\"host\": {\"kernel\": \"6.0\"}}}' AS BLOB));";

static void make_old(const struct scene *s)
{
    char said[64], error[512];
    int err;

    history_db_close(history_db_open("/dev/null/no", true, &err, error, sizeof(error)));
    if (err == -ENOSYS || !sqlite(s->db, old_schema, said, sizeof(said)))
        skip();
}

/* A view changes nothing: an older plumb elsewhere may write to it, too. */
static void test_an_old_history_is_read_as_it_is(void **state)
{
    struct scene *s = *state;
    struct history h;

    make_old(s);
    read_db(s, &h);
    assert_int_equal(h.n_runs, 2);
    assert_int_equal(h.n_series, 1);
    assert_int_equal(h.series[0].n, 2);
    assert_true(h.series[0].launches[1][1] == 100.1);
    assert_null(h.series[0].outcomes[0]);
    assert_null(h.runs[0].environment);
    assert_non_null(strstr(h.runs[1].environment, "6.0"));
    history_release(&h);
    assert_schema(s, "1\n");
}

static void test_an_old_history_is_brought_up_in_place(void **state)
{
    struct scene *s = *state;
    struct history h;
    enum history_standing standing = HISTORY_BASELINE;

    make_old(s);
    add(s, "one", 4, HISTORY_BASELINE);
    assert_schema(s, "4\n");
    assert_sound(s->db);
    read_db(s, &h);
    assert_int_equal(h.n_runs, 3);
    assert_int_equal(h.series[0].n, 3);
    assert_null(h.runs[0].environment);
    assert_string_equal(h.runs[1].environment,
                        "{\"machine\":{\"host\":{\"kernel\":\"6.0\"}},\"schema\":1}");
    assert_int_equal(h.runs[1].standing, HISTORY_START);
    assert_true(h.series[0].launches[0][0] == 99);
    history_release(&h);
    /* a run of the old schema that was resumed since */
    assert_int_equal(put_r(s, 3, 100, 5, "complete", &standing), HISTORY_CHANGED);
    assert_int_equal(standing, HISTORY_START);
    read_db(s, &h);
    assert_int_equal(h.n_runs, 3);
    assert_int_equal(h.series[0].n_launches[1], 3);
    assert_non_null(strstr(h.runs[1].environment, "6.1"));
    history_release(&h);
}

static void test_many_bring_up_one_old_history(void **state)
{
    struct scene *s = *state;
    char paths[ROUNDS][128], error[512];
    pid_t children[ROUNDS];
    int gate[2], status;

    make_old(s);
    assert_int_equal(pipe(gate), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        write_run(s, "one", i + 3, paths[i], sizeof(paths[i]));
        children[i] = fork();
        if (children[i])
            continue;
        char go;

        close(gate[1]);
        if (read(gate[0], &go, 1) < 0)
            _exit(1);
        _exit(add_as(s->db, paths[i], HISTORY_SEEN, NULL, error, sizeof(error)) ? 1 : 0);
    }
    close(gate[0]);
    close(gate[1]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_runs(s->db, "one"), 2 + ROUNDS);
    assert_schema(s, "4\n");
    assert_sound(s->db);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_run_that_went_on_is_replaced),
        TEST(test_what_is_the_same_is_not_written),
        TEST(test_a_standing_survives),
        TEST(test_a_loss_is_no_baseline_by_being_added_again),
        TEST(test_fewer_values_are_taken),
        TEST(test_a_run_that_has_ended_since_is_judged_anew),
        TEST(test_the_rows_are_replaced),
        TEST(test_the_rows_of_a_benchmark_that_vanished_go),
        TEST(test_old_and_new_at_once),
        TEST(test_the_machine_and_the_outcomes_are_kept),
        TEST(test_an_old_history_is_read_as_it_is),
        TEST(test_an_old_history_is_brought_up_in_place),
        TEST(test_many_bring_up_one_old_history),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the history of runs: what is added is there, once, whole or not at all, whoever writes. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/history/history.h"
#include "harness/history/history_db.h"
#include "history_scene.h"

static void check_series(const struct history *h)
{
    assert_int_equal(h->n_runs, 3);
    assert_string_equal(h->runs[0].name, "one-0");
    assert_string_equal(h->runs[2].name, "one-2");
    assert_int_equal(h->n_series, 3);
    assert_string_equal(h->series[0].key, "memory|op=op0|bandwidth|GB/s");
    assert_string_equal(h->series[2].key, "memory|op=op2|bandwidth|GB/s");
    assert_string_equal(h->series[0].host, "one");
    assert_string_equal(h->series[0].unit, "GB/s");
    assert_true(h->series[0].higher_is_better);
    assert_int_equal(h->series[0].n, 3);
    assert_int_equal(h->series[0].n_launches[1], 3);
    assert_true(h->series[0].launches[1][0] == 101);
    assert_true(fabs(h->series[0].launches[2][2] - 102 * 1.002) < 1e-9);
    assert_string_equal(h->series[0].runs[2]->started_utc, "2026-01-03T00:00:00Z");
    /* the run that skipped it is left out */
    assert_int_equal(h->series[2].n, 2);
    assert_string_equal(h->series[2].runs[1]->name, "one-2");
}

static void test_series_are_as_the_folders_have_them(void **state)
{
    struct scene *s = *state;
    struct history h;
    char error[512] = "";
    const char *root = s->root.path, *only[] = {"op1|", NULL};

    /* not in the order of their start */
    add(s, "one", 2, -1);
    add(s, "one", 0, -1);
    add(s, "one", 1, -1);
    struct history_db *db = open_db(s->db, false);
    assert_int_equal(history_db_read(db, "", "", NULL, &h, error, sizeof(error)), 0);
    check_series(&h);
    history_release(&h);
    assert_int_equal(history_db_read(db, "two", "", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_series, 0);
    history_release(&h);
    assert_int_equal(history_db_read(db, "one", "quick", only, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_series, 1);
    assert_true(h.series[0].launches[0][0] == 20);
    history_release(&h);
    history_db_close(db);
    assert_int_equal(history_read_folders(&root, 1, NULL, &h, error, sizeof(error)), 0);
    check_series(&h);
    history_release(&h);
}

static void test_hosts_are_series_of_their_own(void **state)
{
    struct scene *s = *state;
    struct history h;
    char error[512] = "";

    add(s, "two", 0, -1);
    add(s, "one", 0, -1);
    add(s, "one", 2, -1);
    struct history_db *db = open_db(s->db, false);
    assert_int_equal(history_db_read(db, "", "", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_series, 6);
    assert_string_equal(h.series[0].host, "one");
    assert_int_equal(h.series[0].n, 2);
    assert_string_equal(h.series[3].host, "two");
    assert_int_equal(h.series[3].n, 1);
    history_release(&h);
    history_db_close(db);
    assert_int_equal(count_runs(s->db, "one"), 2);
    assert_int_equal(count_runs(s->db, ""), 3);
}

static void test_a_run_is_there_once(void **state)
{
    struct scene *s = *state;
    char path[128], error[512] = "";
    bool known;

    add(s, "one", 0, -1);
    write_run(s, "one", 0, path, sizeof(path));
    assert_int_equal(add_as(s->db, path, -1, &known, error, sizeof(error)), 0);
    assert_true(known);
    assert_int_equal(count_runs(s->db, ""), 1);
    struct history_db *db = open_db(s->db, false);
    struct history h;
    assert_int_equal(history_db_read(db, "", "", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.series[0].n, 1);
    assert_int_equal(h.series[0].n_launches[0], 3);
    history_release(&h);
    history_db_close(db);
}

/* Of the run of that name and start, on host one. */
static size_t baselines_of(const struct scene *s, const char *name, const char *started,
                           size_t most, char *names, size_t len)
{
    const struct history_run run = {
        .name = name, .host = "one", .suite = "quick", .started_utc = started};
    struct history_db *db = open_db(s->db, false);
    struct history_choice c;
    char error[512] = "";

    struct history_sieve sieve = {.most = most};
    assert_int_equal(history_db_choose(db, &run, &sieve, &c, error, sizeof(error)), 0);
    *names = '\0';
    for (size_t i = 0; i < c.n; i++)
        snprintf(names + strlen(names), len - strlen(names), "%s%s", i ? " " : "", c.runs[i].name);
    size_t n = c.n;
    history_choice_release(&c);
    history_db_close(db);
    return n;
}

static size_t baselines(const struct scene *s, const char *started, size_t most, char *names,
                        size_t len)
{
    return baselines_of(s, "other", started, most, names, len);
}

static void test_baselines(void **state)
{
    struct scene *s = *state;
    char names[256];

    add(s, "one", 0, HISTORY_BASELINE);
    add(s, "one", 1, HISTORY_BASELINE);
    add(s, "one", 2, HISTORY_SEEN);
    add(s, "one", 3, HISTORY_BASELINE);
    add(s, "two", 3, HISTORY_BASELINE);
    baselines(s, "2026-02-01T00:00:00Z", 0, names, sizeof(names));
    assert_string_equal(names, "one-0 one-1 one-3");
    baselines(s, "2026-02-01T00:00:00Z", 2, names, sizeof(names));
    assert_string_equal(names, "one-1 one-3");
    /* not itself, nor what came later */
    baselines_of(s, "one-3", "2026-01-04T00:00:00Z", 0, names, sizeof(names));
    assert_string_equal(names, "one-0 one-1");
    /* a level that was accepted starts anew, also of a run that was there; earlier runs see what they saw */
    add(s, "one", 2, HISTORY_START);
    baselines(s, "2026-02-01T00:00:00Z", 0, names, sizeof(names));
    assert_string_equal(names, "one-2 one-3");
    baselines_of(s, "one-2", "2026-01-03T00:00:00Z", 0, names, sizeof(names));
    assert_string_equal(names, "one-0 one-1");
}

/* A run of that name, all in one second. */
static void add_in_second(const struct scene *s, const char *name, int standing)
{
    char path[128], error[512] = "";
    struct check_run r = {.name = name,
                          .host = "one",
                          .suite = "quick",
                          .started_utc = "2026-01-01T00:00:00Z",
                          .values = {100, 20, 5},
                          .launches = 3};

    check_run_write(&s->root, &r, path, sizeof(path));
    int err = add_as(s->db, path, standing, NULL, error, sizeof(error));
    if (err == -ENOSYS)
        skip();
    if (err)
        fail_msg("%d: %s", err, error);
}

static void test_runs_of_one_second_come_in_the_order_they_were_added_in(void **state)
{
    const char *second = "2026-01-01T00:00:00Z";
    struct scene *s = *state;
    char names[256];

    add_in_second(s, "z", HISTORY_BASELINE);
    add_in_second(s, "m", HISTORY_BASELINE);
    add_in_second(s, "a", HISTORY_BASELINE);
    baselines_of(s, "z", second, 0, names, sizeof(names));
    assert_string_equal(names, "");
    baselines_of(s, "a", second, 0, names, sizeof(names));
    assert_string_equal(names, "z m");
    /* one that is not there comes behind all of them */
    baselines_of(s, "new", second, 0, names, sizeof(names));
    assert_string_equal(names, "z m a");
    baselines_of(s, "old", "2025-12-31T23:59:59Z", 0, names, sizeof(names));
    assert_string_equal(names, "");
    /* a start among them cuts off those before it, and none of those behind */
    add_in_second(s, "m", HISTORY_START);
    baselines_of(s, "new", second, 0, names, sizeof(names));
    assert_string_equal(names, "m a");
    baselines_of(s, "m", second, 0, names, sizeof(names));
    assert_string_equal(names, "z");
}

static void test_a_folder_is_not_made(void **state)
{
    struct scene *s = *state;
    char error[512] = "", path[160], folder[128];
    int err;

    snprintf(folder, sizeof(folder), "%s/mistyped", s->root.path);
    snprintf(path, sizeof(path), "%s/h.db", folder);
    assert_null(history_db_open(path, true, &err, error, sizeof(error)));
    if (err == -ENOSYS)
        skip();
    assert_int_equal(err, -ENOENT);
    assert_non_null(strstr(error, "there is no folder"));
    assert_int_equal(access(folder, F_OK), -1);
}

static struct history_entry entry_of(const char *key, const char *label)
{
    static double launches[1] = {1};

    return (struct history_entry){.key = key,
                                  .label = label,
                                  .pipe = "Memory",
                                  .host = "h",
                                  .suite = "s",
                                  .unit = "ns",
                                  .launches = launches,
                                  .n_launches = 1};
}

static void test_names_of_cases(void **state)
{
    struct history h = {0};
    struct history_entries e = {0};
    struct history_run run = {.name = "r", .host = "h", .suite = "s", .started_utc = "2026"};
    const struct history_entry entries[] = {entry_of("null|noise=1|time|ns", "null 1: time"),
                                            entry_of("null|number=1|time|ns", "null 1: time"),
                                            entry_of("null|number=2|time|ns", "null 2: time")};

    (void)state;
    assert_string_equal(history_case_name(&h.pool, "null|noise=none|number=1|time|ns"),
                        "null noise=none number=1: time");
    assert_string_equal(history_case_name(&h.pool, "null|a=50%25%7Cb|c=%257C|time|ns"),
                        "null a=50%|b c=%7C: time");
    assert_string_equal(history_case_name(&h.pool, "null|noise=none||"), "null noise=none");
    assert_string_equal(history_case_name(&h.pool, "odd"), "odd");
    h.runs = &run;
    h.n_runs = 1;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(history_entries_add(&e, &entries[i]), 0);
    assert_int_equal(history_build(&h, &e), 0);
    assert_int_equal(h.n_series, 3);
    assert_string_equal(h.series[0].label, "null noise=1: time");
    assert_string_equal(h.series[1].label, "null number=1: time");
    assert_string_equal(h.series[2].label, "null 2: time");
    free(e.all);
    history_release(&h);
}

static void assert_since(const char *text, const char *want)
{
    char since[PICK_SINCE_BYTES] = "";

    assert_int_equal(pick_since(text, 1767225600 /* 2026-01-01 */, since, sizeof(since)),
                     want ? 0 : -EINVAL);
    if (want)
        assert_string_equal(since, want);
}

static void test_since(void **state)
{
    static const char *const none[] = {"2026-02-30",
                                       "yesterday",
                                       "",
                                       "2026-13",
                                       "2026-1-1",
                                       "2026-01-0",
                                       "0d",
                                       "d",
                                       "-3d",
                                       "3 d",
                                       "123456d",
                                       "2026-00",
                                       "202a",
                                       "2026-01-01 02:00",
                                       "2026-01-01T24:00",
                                       "2025-02-29"};

    (void)state;
    assert_since("2026", "2026-01-01T00:00:00Z");
    assert_since("2026-02", "2026-02-01T00:00:00Z");
    assert_since("2024-02-29", "2024-02-29T00:00:00Z");
    assert_since("2026-02-28T03:04", "2026-02-28T03:04:00Z");
    assert_since("2026-02-28T03:04:05Z", "2026-02-28T03:04:05Z");
    assert_since("30d", "2025-12-02T00:00:00Z");
    for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
        assert_since(none[i], NULL);
}

static void test_a_folder_comes_back(void **state)
{
    struct scene *s = *state;
    char path[128], error[512] = "", to[128];
    struct history_run *runs;
    struct report before = {0}, after = {0};
    size_t n;
    const char *paths[1];

    add(s, "one", 0, HISTORY_BASELINE);
    struct history_db *db = open_db(s->db, false);
    assert_int_equal(history_db_runs(db, "one", "", 0, &runs, &n, error, sizeof(error)), 0);
    snprintf(to, sizeof(to), "%s/back", s->root.path);
    mkdir(to, 0755);
    assert_int_equal(history_db_restore(db, runs[0].id, to, error, sizeof(error)), 0);
    history_runs_release(runs, n);
    history_db_close(db);
    snprintf(path, sizeof(path), "%s/one-0", s->root.path);
    paths[0] = path;
    assert_int_equal(report_load(&before, paths, 1, error, sizeof(error)), 0);
    paths[0] = to;
    assert_int_equal(report_load(&after, paths, 1, error, sizeof(error)), 0);
    assert_int_equal(after.n_rows, before.n_rows);
    assert_true(after.benches[0].cases[0].points[0].value ==
                before.benches[0].cases[0].points[0].value);
    assert_true(json_equal(after.runs[0].meta, before.runs[0].meta));
    report_release(&before);
    report_release(&after);
}

#define WRITERS 8

static void test_eight_writers_and_no_file_yet(void **state)
{
    struct scene *s = *state;
    char paths[WRITERS][128], error[512] = "";
    pid_t children[WRITERS];
    int gate[2], status, err;
    struct history_db *db = history_db_open("/dev/null/no", true, &err, error, sizeof(error));

    assert_null(db);
    if (err == -ENOSYS)
        skip();
    assert_int_equal(pipe(gate), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        write_run(s, "one", i, paths[i], sizeof(paths[i]));
        children[i] = fork();
        if (!children[i]) {
            char go;

            close(gate[1]);
            if (read(gate[0], &go, 1) < 0)
                _exit(1);
            err = add_as(s->db, paths[i], -1, NULL, error, sizeof(error));
            if (err)
                fprintf(stderr, "writer %u: %s\n", i, error);
            _exit(err ? 1 : 0);
        }
    }
    close(gate[0]);
    close(gate[1]); /* all at once */
    for (unsigned i = 0; i < WRITERS; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_runs(s->db, ""), WRITERS);
    assert_sound(s->db);
    struct history h;
    db = open_db(s->db, false);
    assert_int_equal(history_db_read(db, "", "", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_series, 3);
    assert_int_equal(h.series[0].n, WRITERS);
    assert_int_equal(h.series[2].n, WRITERS / 2);
    history_release(&h);
    history_db_close(db);
}

static void nap_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* Killed at whatever instant: the run is there with all its values, or not at all. */
static void test_a_killed_writer_leaves_all_or_nothing(void **state)
{
    struct scene *s = *state;
    char path[128], error[512] = "";

    add(s, "one", 0, -1);
    for (unsigned i = 1; i < 25; i++) {
        write_run(s, "one", i, path, sizeof(path));
        pid_t child = fork();
        if (!child)
            _exit(add_as(s->db, path, -1, NULL, error, sizeof(error)) ? 1 : 0);
        nap_us(400 * (long)i);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    struct history h;
    struct history_db *db = open_db(s->db, false);
    assert_int_equal(history_db_read(db, "", "", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.series[0].n, h.n_runs);
    assert_int_equal(h.series[1].n, h.n_runs);
    for (size_t i = 0; i < h.n_runs; i++)
        assert_int_equal(h.series[1].n_launches[i], 3);
    history_release(&h);
    history_db_close(db);
    assert_sound(s->db);
    add(s, "one", 26, -1);
}

static void test_no_space(void **state)
{
    struct scene *s = *state;
    char path[128], error[512] = "";
    struct rlimit was, small = {.rlim_cur = 96 << 10};

    add(s, "one", 0, -1);
    write_run(s, "one", 1, path, sizeof(path));
    FILE *rows = fopen(strcat(strcpy(error, path), "/memory.csv"), "a");
    for (int i = 0; i < 4000; i++)
        fputs("op9,bandwidth,GB/s,1,,,,,,,measured,ok,,x,none,0,one,2026-01-01T00:00:00Z\n", rows);
    fclose(rows);
    error[0] = '\0';
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small.rlim_max = was.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int err = add_as(s->db, path, -1, NULL, error, sizeof(error));
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(err == -ENOSPC || err == -EIO);
    assert_non_null(strstr(error, s->db));
    assert_int_equal(count_runs(s->db, ""), 1);
    assert_sound(s->db);
    assert_int_equal(add_as(s->db, path, -1, NULL, error, sizeof(error)), 0);
}

static void test_what_is_no_history(void **state)
{
    struct scene *s = *state;
    char error[512] = "", file[128], said[16];
    int err;

    assert_null(history_db_open(s->db, false, &err, error, sizeof(error)));
    if (err == -ENOSYS)
        skip();
    assert_int_equal(err, -ENOENT);
    assert_non_null(strstr(error, "there is no history"));
    snprintf(file, sizeof(file), "%s/text.db", s->root.path);
    fake_run_write(&s->root, "text.db",
                   "this is a text, and long enough to be taken for one page "
                   "of a database: it is none all the same\n");
    assert_null(history_db_open(file, true, &err, error, sizeof(error)));
    assert_int_equal(err, -EBADMSG);
    assert_non_null(strstr(error, "damaged, or is no SQLite file"));
    snprintf(file, sizeof(file), "%s/other.db", s->root.path);
    if (sqlite(file, "CREATE TABLE mine (x)", said, sizeof(said))) {
        assert_null(history_db_open(file, true, &err, error, sizeof(error)));
        assert_int_equal(err, -EPROTO);
        assert_non_null(strstr(error, "of another program"));
        add(s, "one", 0, -1);
        assert_true(sqlite(s->db, "PRAGMA user_version = 9", said, sizeof(said)));
        assert_null(history_db_open(s->db, true, &err, error, sizeof(error)));
        assert_int_equal(err, -EPROTO);
        assert_non_null(strstr(error, "schema 9"));
    }
}

/* Another process holds it in a transaction. */
static void test_locked_for_too_long(void **state)
{
    struct scene *s = *state;
    char path[128], error[512] = "", command[256];
    struct report r = {0};
    const char *paths[] = {path};
    struct history_judged judged = {.standing = HISTORY_BASELINE};
    enum history_added how;
    int err, to[2];

    add(s, "one", 0, -1);
    write_run(s, "one", 1, path, sizeof(path));
    if (!sqlite(s->db, "SELECT 1", command, sizeof(command)))
        skip();
    assert_int_equal(pipe(to), 0);
    pid_t child = fork();
    if (!child) {
        dup2(to[0], 0);
        close(to[1]);
        snprintf(command, sizeof(command), "%s.held", s->db);
        execlp("sqlite3", "sqlite3", s->db, NULL);
        _exit(1);
    }
    snprintf(command, sizeof(command), "BEGIN EXCLUSIVE;\n.output %s.held\nSELECT 1;\n.output\n",
             s->db);
    assert_true(write(to[1], command, strlen(command)) > 0);
    snprintf(command, sizeof(command), "%s.held", s->db);
    for (int i = 0; i < 2000 && access(command, F_OK); i++)
        nap_us(5000);
    struct history_db *db = history_db_open_within(s->db, true, 50, &err, error, sizeof(error));
    if (db) {
        assert_int_equal(report_load(&r, paths, 1, error, sizeof(error)), 0);
        err = history_db_add(db, &r, 0, &judged, &how, error, sizeof(error));
        report_release(&r);
    }
    history_db_close(db);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(to[0]);
    close(to[1]);
    assert_int_equal(err, -EBUSY);
    assert_non_null(strstr(error, "another program has held it"));
    assert_int_equal(count_runs(s->db, ""), 1);
}

static void test_folders_that_cannot_be_read(void **state)
{
    struct scene *s = *state;
    struct history h;
    char error[512] = "";
    const char *none = "/nowhere/at/all", *empty = s->root.path;

    assert_int_equal(history_read_folders(&none, 1, NULL, &h, error, sizeof(error)), -ENOENT);
    assert_non_null(strstr(error, none));
    history_release(&h);
    assert_int_equal(history_read_folders(&empty, 1, NULL, &h, error, sizeof(error)), -ENOENT);
    assert_non_null(strstr(error, "no run folder"));
    history_release(&h);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_series_are_as_the_folders_have_them),
        TEST(test_hosts_are_series_of_their_own),
        TEST(test_a_run_is_there_once),
        TEST(test_baselines),
        TEST(test_runs_of_one_second_come_in_the_order_they_were_added_in),
        TEST(test_a_folder_is_not_made),
        TEST(test_names_of_cases),
        TEST(test_since),
        TEST(test_a_folder_comes_back),
        TEST(test_eight_writers_and_no_file_yet),
        TEST(test_a_killed_writer_leaves_all_or_nothing),
        TEST(test_no_space),
        TEST(test_what_is_no_history),
        TEST(test_locked_for_too_long),
        TEST(test_folders_that_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

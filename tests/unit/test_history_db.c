/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the history of runs: what is added is there, once, whole or not at all, whoever writes. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "harness/history/history.h"
#include "harness/history/history_db.h"
#include "history_scene.h"
#include "tests/unit/unit.h"

#define STARTED "2026-01-01T00:00:00Z"

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

TEST_WITH(test_series_are_as_the_folders_have_them, set_up, tear_down)
{
    struct scene *s = *state;
    struct history h;
    char error[512] = "";
    const char *root = s->root.path, *only[] = {"op1|", NULL};

    for (unsigned i = 3; i--;) /* not in the order of their start */
        add(s, "one", i, true);
    read_db(s, &h);
    check_series(&h);
    history_release(&h);
    assert_int_equal(history_read_folders(&root, 1, NULL, &h, error, sizeof(error)), 0);
    check_series(&h);
    history_release(&h);
    add(s, "two", 0, true); /* another host's are series of their own */
    read_db(s, &h);
    assert_int_equal(h.n_series, 6);
    assert_int_equal(h.series[0].n, 3);
    assert_int_equal(h.series[3].n, 1);
    history_release(&h);
    struct history_db *db = open_db(s->db, false);
    assert_int_equal(history_db_read(db, "one", "quick", only, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_series, 1);
    assert_true(h.series[0].launches[0][0] == 20);
    history_release(&h);
    assert_int_equal(history_db_read(db, "one", "slow", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_series, 0);
    history_release(&h);
    history_db_close(db);
}

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
        "{\"schema\": 3, \"run\": \"r\", \"suite\": \"quick\", \"version\": \"1.2\", \"commit\":"
        " \"abc\", \"started_utc\": \"" STARTED "\", \"state\": \"%s\", \"machine\": {\"host\":"
        " {\"hostname\": \"one\", \"kernel\": \"6.1\", \"bios\": null, \"bios_why\": \"no DMI\"},"
        " \"findings\": [1], \"load\": {\"average_1min\": 3},"
        " \"network\": [{\"name\": \"eth0\", \"counters\": {\"rx_packets\": 7}}]}}\n",
        state);
    fclose(meta);
}

/* How many files are kept, and how much of the rows. */
#define OWN_FILES "SELECT count(*), max(length(text) * (name = 'memory.csv')) FROM files"

/* A run that is there is replaced by what its folder says now, never by an older copy, and so are its files, of
 * which those of a benchmark that vanished go. Whether it is good follows what it says: of the same data the word
 * stays, and what is accepted is taken in any case. */
TEST_WITH(test_a_run_that_is_added_again, set_up, tear_down)
{
    static const struct {
        unsigned launches;
        double first, third;
        const char *state;
        bool asked, accept;
        enum history_added how;
        bool good;
        unsigned n_launches, n_series;
    } steps[] = {
        {2, 100, 0, "interrupted", 0, 0, HISTORY_NEW, 0, 2, 2},
        {3, 100, 5, "complete", 1, 0, HISTORY_CHANGED, 1, 3, 3},
        {3, 101, 5, "complete", 1, 0, HISTORY_CHANGED, 1, 3, 3},
        {3, 101, 5, "complete", 0, 0, HISTORY_SAME, 1, 3, 3},
        {2, 101, 5, "running", 0, 0, HISTORY_SHORTER, 1, 3, 3},
        /* as many launches have ended, and fewer of them have a value: that is no older copy */
        {3, 101, 0, "complete", 1, 0, HISTORY_CHANGED, 1, 3, 2},
        /* other cases that come to as many launches */
        {5, 101, 0, "complete", 0, 0, HISTORY_CHANGED, 0, 5, 2},
        {2, 90, 5, "complete", 1, 1, HISTORY_CHANGED, 1, 2, 3},
        {4, 90, 5, "complete", 0, 0, HISTORY_CHANGED, 1, 4, 3},
        /* from anew: only its state tells that it has ended since */
        {3, 100, 5, "running", 0, 0, HISTORY_NEW, 0, 3, 3},
        {3, 100, 5, "complete", 1, 0, HISTORY_CHANGED, 1, 3, 3},
        /* a loss is no baseline by being added again */
        {3, 100, 5, "complete", 0, 0, HISTORY_NEW, 0, 3, 3},
        {3, 100, 5, "complete", 1, 0, HISTORY_SAME, 0, 3, 3},
        {3, 100, 5, "complete", 1, 1, HISTORY_SAME, 1, 3, 3}};
    const struct history_acceptance acceptance = {.reason = "", .by = "", .at_utc = ""};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        struct history_judged judged = {.good = steps[i].asked,
                                        .acceptance = steps[i].accept ? &acceptance : NULL};
        enum history_added how = HISTORY_NEW;
        char path[128], rows[160], said[64], want[64], error[512] = "";
        struct stat st;
        struct history h;

        if (steps[i].how == HISTORY_NEW)
            unlink(s->db);
        else if (steps[i].how == HISTORY_CHANGED)
            sqlite(s->db, "INSERT INTO files VALUES (1, 'null.csv', 'x')", said, sizeof(said));
        write_r(s, steps[i].launches, steps[i].first, steps[i].third, steps[i].state, path,
                sizeof(path));
        assert_int_equal(add_as(s->db, path, &judged, &how, error, sizeof(error)), 0);
        snprintf(rows, sizeof(rows), "%s/memory.csv", path);
        assert_int_equal(stat(rows, &st), 0);
        snprintf(want, sizeof(want), "3|%ld\n", (long)st.st_size);
        if (judged.good && how != HISTORY_SHORTER && sqlite(s->db, OWN_FILES, said, sizeof(said)))
            assert_string_equal(said, want);
        read_db(s, &h);
        if (how != steps[i].how || judged.good != steps[i].good || h.runs[0].good != steps[i].good)
            fail_msg("step %zu: %d, %d, %d", i, (int)how, judged.good, h.runs[0].good);
        assert_int_equal(h.n_runs, 1);
        assert_int_equal(h.n_series, steps[i].n_series);
        for (size_t k = 0; k < h.n_series; k++)
            assert_int_equal(h.series[k].n_launches[0], steps[i].n_launches);
        assert_true(h.series[0].launches[0][0] == steps[i].first);
        history_release(&h);
    }
    assert_sound(s->db);
}

TEST_WITH(test_since, set_up, tear_down)
{
    static const char *const good[][2] = {{"2026", "2026-01-01T00:00:00Z"},
                                          {"2026-02", "2026-02-01T00:00:00Z"},
                                          {"2024-02-29", "2024-02-29T00:00:00Z"},
                                          {"2026-02-28T03:04", "2026-02-28T03:04:00Z"},
                                          {"2026-02-28T03:04:05Z", "2026-02-28T03:04:05Z"},
                                          {"30d", "2025-12-02T00:00:00Z"}};
    static const char *const bad[] = {"2026-02-30", "2025-02-29", "2026-13", "2026-00",  "2026-1-1",
                                      "2026-01-0",  "123456d",    "0d",      "-3d",      "3 d",
                                      "d",          "202a",       "",        "yesterday"};
    const time_t now = 1767225600; /* 2026-01-01 */
    char since[PICK_SINCE_BYTES];

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_int_equal(pick_since(good[i][0], now, since, sizeof(since)), 0);
        assert_string_equal(since, good[i][1]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(pick_since(bad[i], now, since, sizeof(since)), -EINVAL);
}

#define WRITERS 12

/* Each adds a run, all at once, and there is no file yet. */
static void write_at_once(const struct scene *s, const char paths[WRITERS][128])
{
    pid_t children[WRITERS];
    int gate[2], status;
    char error[512], go;

    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i])
            continue;
        close(gate[1]);
        if (read(gate[0], &go, 1) < 0)
            _exit(1);
        struct history_judged judged = {.good = true};
        enum history_added how;

        _exit(add_as(s->db, paths[i], &judged, &how, error, sizeof(error)) ? 1 : 0);
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_sound(s->db);
}

/* Half of the writers come with a run of their own, a quarter each with one that was killed and with the one that
 * was resumed: whoever comes last, what is longer stays, and it is whole. */
TEST_WITH(test_many_writers_and_no_file_yet, set_up, tear_down)
{
    struct scene *s = *state, copy;
    char paths[WRITERS][128];
    struct history h;

    snprintf(copy.root.path, sizeof(copy.root.path), "%.50s/copy", s->root.path);
    mkdir(copy.root.path, 0755);
    for (unsigned i = 0; i < WRITERS; i++)
        if (i % 4 == 1)
            write_r(&copy, 2, 100, 0, "interrupted", paths[i], sizeof(*paths));
        else if (i % 4 == 3)
            write_r(s, 4, 100, 5, "complete", paths[i], sizeof(*paths));
        else
            write_run(s, "one", i / 2 + 1, paths[i], sizeof(*paths));
    write_at_once(s, paths);
    read_db(s, &h);
    assert_int_equal(h.n_runs, 1 + WRITERS / 2);
    assert_int_equal(h.n_series, 3);
    assert_int_equal(h.series[0].n, 1 + WRITERS / 2);
    assert_int_equal(h.series[0].n_launches[0], 4); /* "r" began first */
    assert_int_equal(h.series[2].n, 1 + WRITERS / 4);
    assert_int_equal(h.series[2].n_launches[0], 4);
    history_release(&h);
}

static int add_good(const struct scene *s, const char *path, char *error, size_t len)
{
    struct history_judged judged = {.good = true};
    enum history_added how;

    return add_as(s->db, path, &judged, &how, error, len);
}

static void nap_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* Killed at whatever instant: the run is there with all its values, or not at all. */
TEST_WITH(test_a_killed_writer_leaves_all_or_nothing, set_up, tear_down)
{
    struct scene *s = *state;
    char path[128], error[512] = "";
    struct history h;

    add(s, "one", 0, true);
    for (unsigned i = 1; i < 25; i++) {
        write_run(s, "one", i, path, sizeof(path));
        pid_t child = fork();
        if (!child)
            _exit(add_good(s, path, error, sizeof(error)) ? 1 : 0);
        nap_us(400 * (long)i);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    read_db(s, &h);
    assert_int_equal(h.series[0].n, h.n_runs);
    assert_int_equal(h.series[1].n, h.n_runs);
    for (size_t i = 0; i < h.n_runs; i++)
        assert_int_equal(h.series[1].n_launches[i], 3);
    history_release(&h);
    assert_sound(s->db);
    add(s, "one", 26, true);
}

TEST_WITH(test_no_space, set_up, tear_down)
{
    struct scene *s = *state;
    char path[128], error[512] = "";
    struct rlimit was, small = {.rlim_cur = 96 << 10};

    add(s, "one", 0, true);
    write_run(s, "one", 1, path, sizeof(path));
    for (int i = 0; i < 4000; i++)
        fake_run_append(
            &s->root, "one-1/memory.csv",
            "op9,bandwidth,GB/s,1,,,,,,,measured,ok,,x,none,0,one,2026-01-01T00:00:00Z\n");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small.rlim_max = was.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int err = add_good(s, path, error, sizeof(error));
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_DFL);
    assert_true(err == -ENOSPC || err == -EIO);
    assert_non_null(strstr(error, s->db));
    assert_int_equal(count_runs(s), 1);
    assert_sound(s->db);
    assert_int_equal(add_good(s, path, error, sizeof(error)), 0);
}

static void assert_refused(const struct scene *s, const char *name, bool create, int want)
{
    char error[512] = "", path[160];
    int err;

    snprintf(path, sizeof(path), "%s/%s", s->root.path, name);
    assert_null(history_db_open(path, create, &err, error, sizeof(error)));
    assert_int_equal(err, want);
    assert_non_null(strstr(error, path));
}

TEST_WITH(test_what_is_no_history, set_up, tear_down)
{
    struct scene *s = *state;
    char path[160], said[16], error[512] = "";
    struct history h;
    const char *none = "/nowhere/at/all", *empty = path;

    assert_refused(s, "history.db", false, -ENOENT);
    assert_refused(s, "mistyped/h.db", true, -ENOENT); /* no folder is made */
    snprintf(path, sizeof(path), "%s/mistyped", s->root.path);
    assert_int_equal(access(path, F_OK), -1);
    fake_run_write(&s->root, "text.db",
                   "this is a text, and long enough to be taken for one page "
                   "of a database: it is none all the same\n");
    assert_refused(s, "text.db", true, -EBADMSG);
    mkdir(path, 0755);
    assert_int_equal(history_read_folders(&none, 1, NULL, &h, error, sizeof(error)), -ENOENT);
    history_release(&h);
    assert_int_equal(history_read_folders(&empty, 1, NULL, &h, error, sizeof(error)), -ENOENT);
    history_release(&h);
    snprintf(path, sizeof(path), "%s/other.db", s->root.path);
    if (!sqlite(path, "CREATE TABLE mine (x)", said, sizeof(said)))
        skip();
    assert_refused(s, "other.db", true, -EPROTO);
    add(s, "one", 0, true);
    for (int version = 4; version <= 9; version += 5) { /* an older schema, and a newer one */
        snprintf(error, sizeof(error), "PRAGMA user_version = %d", version);
        assert_true(sqlite(s->db, error, said, sizeof(said)));
        assert_refused(s, "history.db", true, -EPROTO);
    }
}

/* Another process holds it in a transaction. */
TEST_WITH(test_locked_for_too_long, set_up, tear_down)
{
    struct scene *s = *state;
    char path[128], error[512] = "", command[256];
    struct history_judged judged = {.good = true};
    enum history_added how;
    int err, to[2];

    add(s, "one", 0, true);
    write_run(s, "one", 1, path, sizeof(path));
    if (!sqlite(s->db, "SELECT 1", command, sizeof(command)))
        skip();
    assert_int_equal(pipe(to), 0);
    pid_t child = fork();
    if (!child) {
        dup2(to[0], 0);
        close(to[1]);
        execlp("sqlite3", "sqlite3", s->db, NULL);
        _exit(1);
    }
    snprintf(command, sizeof(command), "BEGIN EXCLUSIVE;\n.output %s.held\nSELECT 1;\n.output\n",
             s->db);
    assert_true(write(to[1], command, strlen(command)) > 0);
    snprintf(command, sizeof(command), "%s.held", s->db);
    for (int i = 0; i < 12000 && access(command, F_OK); i++)
        nap_us(5000);
    struct history_db *db = history_db_open_within(s->db, true, 50, &err, error, sizeof(error));
    if (db)
        err = history_db_add(db, path, &judged, &how, error, sizeof(error));
    history_db_close(db);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(to[0]);
    close(to[1]);
    assert_int_equal(err, -EBUSY);
    assert_int_equal(count_runs(s), 1);
}

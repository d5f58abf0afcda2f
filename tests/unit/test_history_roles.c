/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the runs of a history are to one that is held against them, and to each of its cases: level,
 * anchor, spread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/history/history_db.h"
#include "history_scene.h"

#define KEY(op) "memory|op=op" #op "|bandwidth|GB/s"

static const char *const all[] = {KEY(0), KEY(1), KEY(2)};

#define LATER  "other", "2026-02-01T00:00:00Z"
#define SECOND "2026-01-01T00:00:00Z"

/* "s0 |L1": what each run is to one of that name and start in that case (level, anchor, spread), with | where
 * levels change. */
static void assert_chosen(const struct scene *s, const char *name, const char *started,
                          const struct history_sieve *sieve, const char *key, const char *want)
{
    const struct history_run run = {
        .name = name, .host = "one", .suite = "quick", .started_utc = started};
    struct history_db *db = open_db(s->db, false);
    struct history_choice c;
    char error[512] = "", text[256] = "";
    size_t k = 0;

    assert_int_equal(history_db_choose(db, &run, sieve, &c, error, sizeof(error)), 0);
    for (size_t i = 1; i < c.n_roles; i++)
        k = strcmp(c.roles[i].key, key) ? k : i;
    for (size_t i = 0; i < c.n; i++) {
        const struct pairs_role *role = &c.roles[k].runs[i];
        const char *number = strchr(c.runs[i].name, '-');

        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%c%s", i ? " " : "",
                 i && role->level != role[-1].level ? "|" : "", "Las"[role->role],
                 number ? number + 1 : c.runs[i].name);
    }
    assert_string_equal(text, want);
    history_choice_release(&c);
    history_db_close(db);
}

static void test_baselines(void **state)
{
    struct scene *s = *state;
    const struct history_sieve every = {0}, last = {.most = 2};

    add(s, "one", 0, HISTORY_BASELINE);
    add(s, "one", 1, HISTORY_BASELINE);
    add(s, "one", 2, HISTORY_SEEN);
    add(s, "one", 3, HISTORY_BASELINE);
    add(s, "two", 3, HISTORY_BASELINE);
    assert_chosen(s, LATER, &every, "", "L0 L1 L3");
    assert_chosen(s, LATER, &last, "", "L1 L3");
    /* not itself, nor what came later */
    assert_chosen(s, "one-3", "2026-01-04T00:00:00Z", &every, "", "L0 L1");
    /* a level that was accepted starts anew, also of a run that was there; earlier runs see what they saw */
    add(s, "one", 2, HISTORY_START);
    assert_chosen(s, LATER, &every, "", "L2 L3");
    assert_chosen(s, "one-2", "2026-01-03T00:00:00Z", &every, "", "L0 L1");
}

static void add_in_second(const struct scene *s, const char *name, int standing)
{
    char path[128];
    struct check_run r = {.name = name,
                          .host = "one",
                          .suite = "quick",
                          .started_utc = SECOND,
                          .values = {100, 20, 5},
                          .launches = 3};

    check_run_write(&s->root, &r, path, sizeof(path));
    add_path(s, path, standing);
}

static void test_runs_of_one_second_come_in_the_order_they_were_added_in(void **state)
{
    struct scene *s = *state;
    const struct history_sieve every = {0};

    add_in_second(s, "z", HISTORY_BASELINE);
    add_in_second(s, "m", HISTORY_BASELINE);
    add_in_second(s, "a", HISTORY_BASELINE);
    assert_chosen(s, "z", SECOND, &every, "", "");
    assert_chosen(s, "a", SECOND, &every, "", "Lz Lm");
    /* one that is not there comes behind all of them */
    assert_chosen(s, "new", SECOND, &every, "", "Lz Lm La");
    assert_chosen(s, "old", "2025-12-31T23:59:59Z", &every, "", "");
    /* a start among them cuts off those before it, and none of those behind */
    add_in_second(s, "m", HISTORY_START);
    assert_chosen(s, "new", SECOND, &every, "", "Lm La");
    assert_chosen(s, "m", SECOND, &every, "", "Lz");
}

/* A run with another kernel, and maybe another state, in its run.json. */
static void add_told(const struct scene *s, unsigned i, int standing, const char *kernel,
                     const char *state)
{
    char path[128], name[64], text[512];

    write_run(s, "one", i, path, sizeof(path));
    snprintf(name, sizeof(name), "one-%u/run.json", i);
    snprintf(text, sizeof(text),
             "{\"schema\": 2, \"run\": \"one-%u\", \"suite\": \"quick\", \"version\": \"1.2\","
             " \"commit\": \"abc\", \"started_utc\": \"2026-01-%02uT00:00:00Z\", \"state\": \"%s\","
             " \"machine\": {\"host\": {\"hostname\": \"one\", \"kernel\": \"%s\"}}}\n",
             i, i + 1, state, kernel);
    fake_run_write(&s->root, name, text);
    add_path(s, path, standing);
}

static void test_the_first_runs_and_the_others_have_a_part(void **state)
{
    static const enum history_standing standings[] = {
        HISTORY_BASELINE, HISTORY_START,    HISTORY_BASELINE, HISTORY_SEEN,     HISTORY_SEEN,
        HISTORY_SEEN,     HISTORY_BASELINE, HISTORY_BASELINE, HISTORY_BASELINE, HISTORY_BASELINE};
    struct scene *s = *state;
    json_t *meta = json_pack("{s:{s:{s:s}}}", "machine", "host", "kernel", "6.1");
    struct history_sieve sieve = {.most = 3, .anchors = 2, .spread = 3, .meta = meta};

    add_told(s, 0, HISTORY_SEEN, "6.1", "complete");
    assert_chosen(s, LATER, &sieve, "", ""); /* without a baseline there is none beside it */
    unlink(s->db);
    for (unsigned i = 0; i < 10; i++)
        add_told(s, i, standings[i], i == 3 ? "6.5" : "6.1", i == 4 ? "interrupted" : "complete");
    assert_chosen(s, LATER, &sieve, "", "s0 |a1 a2 s5 s6 L7 L8 L9");
    sieve.spread = 1;
    assert_chosen(s, LATER, &sieve, "", "a1 a2 s6 L7 L8 L9");
    sieve.most = 10; /* of the level are the first, too */
    assert_chosen(s, LATER, &sieve, "", "L1 L2 s5 L6 L7 L8 L9");
    sieve = (struct history_sieve){.most = 1};
    assert_chosen(s, LATER, &sieve, "", "L9");
    /* what came and went within two runs says how runs differ; what stayed, or is still so, was of another level */
    for (unsigned i = 10; i < 15; i++)
        add_told(s, i, i == 13 ? HISTORY_BASELINE : HISTORY_SEEN, "6.1", "complete");
    sieve = (struct history_sieve){.most = 2, .spread = 4, .meta = meta};
    assert_chosen(s, LATER, &sieve, "", "L9 |s10 s11 s12 |L13 |s14");
    json_decref(meta);
}

/* Of 123 baselines and 42 others, copies of one run but the last, the rows of those between go. */
static void test_rows_of_the_first_the_last_and_some_others_are_kept(void **state)
{
    struct scene *s = *state;
    char said[64];

    assert_int_equal(HISTORY_FIRST_RUNS + HISTORY_WHOLE_RUNS, 120);
    assert_int_equal(HISTORY_OTHER_RUNS, 40);
    add(s, "one", 0, HISTORY_BASELINE);
    if (!sqlite(s->db,
                "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 164)"
                " INSERT INTO runs SELECT i, 'c', host, suite, printf('2026-01-02T%03d', i),"
                " version, commit_id, i < 124, environment, state, ended FROM runs, n;"
                "INSERT INTO files SELECT runs.id, files.name, text FROM runs, files"
                " WHERE runs.id > 1",
                said, sizeof(said)))
        skip();
    add(s, "one", 3, HISTORY_SEEN);
    assert_true(sqlite(s->db,
                       "SELECT group_concat(id) FROM (SELECT id FROM runs WHERE id NOT IN"
                       " (SELECT run FROM files) ORDER BY id)",
                       said, sizeof(said)));
    assert_string_equal(said, "21,22,23,124,125\n");
}

/* --- gains that wait to be settled, and levels that were accepted --- */

static int put(const struct scene *s, unsigned i, struct history_judged *judged)
{
    char path[128], error[512] = "";
    const char *at = path;
    struct report r = {0};
    enum history_added how;
    int err;

    write_run(s, "one", i, path, sizeof(path));
    struct history_db *db = history_db_open(s->db, true, &err, error, sizeof(error));
    if (err == -ENOSYS)
        skip();
    if (!err)
        err = report_load(&r, &at, 1, error, sizeof(error));
    if (!err)
        err = history_db_add(db, &r, 0, judged, &how, error, sizeof(error));
    report_release(&r);
    history_db_close(db);
    return err;
}

/* Run i decided all its cases, and was better in the first n. Returns what it is then. */
static enum history_standing judge(const struct scene *s, unsigned i, size_t n_gains)
{
    struct history_judged j = {.standing = n_gains ? HISTORY_PROBATION : HISTORY_BASELINE,
                               .gains = all,
                               .n_gains = n_gains,
                               .decided = all,
                               .n_decided = 3};

    return put(s, i, &j) ? HISTORY_APART : j.standing;
}

static void assert_roles(const struct scene *s, const char *key, const char *want)
{
    json_t *meta = json_object();
    const struct history_sieve sieve = {.most = 3, .anchors = 2, .spread = 9, .meta = meta};

    assert_chosen(s, LATER, &sieve, key, want);
    json_decref(meta);
}

static void test_a_gain_that_is_true_is_a_start_of_its_case(void **state)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(judge(s, i, 0), HISTORY_BASELINE);
    assert_int_equal(judge(s, 4, 1), HISTORY_PROBATION);
    assert_roles(s, KEY(0), "a0 L1 L2 L3 |s4");
    assert_int_equal(judge(s, 5, 1), HISTORY_BASELINE);
    assert_roles(s, KEY(1), "a0 a1 s2 L3 L4 L5");
    assert_roles(s, KEY(0), "s0 s1 s2 s3 |L4 L5");
    for (unsigned i = 6; i < 10; i++)
        judge(s, i, 0);
    assert_roles(s, KEY(1), "a0 a1 s2 s3 s4 s5 s6 L7 L8 L9");
    assert_roles(s, KEY(0), "s0 s1 s2 s3 |a4 a5 s6 L7 L8 L9");
}

static void test_a_gain_that_is_false_is_no_level_in_its_case(void **state)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 2; i++)
        judge(s, i, 0);
    judge(s, 2, 2);
    assert_int_equal(judge(s, 3, 1), HISTORY_BASELINE); /* the first was true, the second not */
    assert_roles(s, KEY(0), "s0 s1 |L2 L3");
    assert_roles(s, KEY(1), "a0 L1 s2 L3");
    assert_roles(s, KEY(2), "a0 L1 L2 L3");
}

/* It is none of the earlier run's, so it waits itself. */
static void test_another_gain_waits_for_itself(void **state)
{
    struct scene *s = *state;

    judge(s, 0, 0);
    judge(s, 1, 1);
    assert_int_equal(judge(s, 2, 2), HISTORY_PROBATION);
    assert_roles(s, KEY(0), "s0 |L1 |s2");
    assert_int_equal(judge(s, 3, 0), HISTORY_BASELINE);
    assert_roles(s, KEY(1), "a0 L1 s2 L3");
}

/* Nor does the run itself, judged once more, nor an earlier one. */
static void test_a_run_that_decided_nothing_settles_nothing(void **state)
{
    struct scene *s = *state;
    struct history_judged j = {.standing = HISTORY_APART};

    judge(s, 1, 0);
    judge(s, 2, 1);
    assert_int_equal(put(s, 3, &j), 0);
    assert_int_equal(judge(s, 2, 1), HISTORY_PROBATION);
    judge(s, 0, 1);
    assert_roles(s, KEY(0), "s0 L1 |s2 s3");
    assert_int_equal(judge(s, 4, 1), HISTORY_BASELINE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_baselines),
        TEST(test_runs_of_one_second_come_in_the_order_they_were_added_in),
        TEST(test_the_first_runs_and_the_others_have_a_part),
        TEST(test_rows_of_the_first_the_last_and_some_others_are_kept),
        TEST(test_a_gain_that_is_true_is_a_start_of_its_case),
        TEST(test_a_gain_that_is_false_is_no_level_in_its_case),
        TEST(test_another_gain_waits_for_itself),
        TEST(test_a_run_that_decided_nothing_settles_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

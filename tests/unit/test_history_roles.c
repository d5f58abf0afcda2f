/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the runs of a history are to one that is held against them: level, anchor, spread. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/history/history_db.h"
#include "history_scene.h"

/* Run.json of run i gets another kernel, and maybe another state. */
static void retell(const struct scene *s, unsigned i, const char *kernel, const char *state)
{
    char name[64], text[512];

    snprintf(name, sizeof(name), "one-%u/run.json", i);
    snprintf(text, sizeof(text),
             "{\"schema\": 1, \"run\": \"one-%u\", \"suite\": \"quick\", \"version\": \"1.2\","
             " \"commit\": \"abc\", \"started_utc\": \"2026-01-%02uT00:00:00Z\", \"state\": \"%s\","
             " \"machine\": {\"host\": {\"hostname\": \"one\", \"kernel\": \"%s\"}}}\n",
             i, i + 1, state, kernel);
    fake_run_write(&s->root, name, text);
}

static void add_told(const struct scene *s, unsigned i, int standing, const char *kernel,
                     const char *state)
{
    char path[128], error[512] = "";

    write_run(s, "one", i, path, sizeof(path));
    retell(s, i, kernel, state);
    int err = add_as(s->db, path, standing, NULL, error, sizeof(error));
    if (err == -ENOSYS)
        skip();
    if (err)
        fail_msg("%d: %s", err, error);
}

/* "0s 3a 4L": the numbers of the runs that a later one is held against, each with its role, and | where levels change. */
static void chosen(const struct scene *s, const struct history_sieve *sieve, char *text, size_t len)
{
    const struct history_run run = {
        .name = "other", .host = "one", .suite = "quick", .started_utc = "2026-02-01T00:00:00Z"};
    struct history_db *db = open_db(s->db, false);
    struct history_choice c;
    char error[512] = "";

    assert_int_equal(history_db_choose(db, &run, sieve, &c, error, sizeof(error)), 0);
    *text = '\0';
    for (size_t i = 0; i < c.n; i++) {
        const struct pairs_role *role = &c.roles[0].runs[i];

        snprintf(text + strlen(text), len - strlen(text), "%s%s%c", i ? " " : "",
                 i && role->level != role[-1].level ? "|" : "", "Las"[role->role]);
        snprintf(text + strlen(text), len - strlen(text), "%s", c.runs[i].name + 4);
    }
    history_choice_release(&c);
    history_db_close(db);
}

static void test_the_first_runs_and_the_others_have_a_part(void **state)
{
    struct scene *s = *state;
    json_t *meta = json_pack("{s:{s:{s:s}}}", "machine", "host", "kernel", "6.1");
    struct history_sieve sieve = {.most = 3, .anchors = 2, .spread = 3, .meta = meta};
    char text[256];

    add_told(s, 0, HISTORY_BASELINE, "6.1", "complete");
    add_told(s, 1, HISTORY_START, "6.1", "complete");
    add_told(s, 2, HISTORY_BASELINE, "6.1", "complete");
    add_told(s, 3, HISTORY_SEEN, "6.5", "complete");    /* another kernel */
    add_told(s, 4, HISTORY_SEEN, "6.1", "interrupted"); /* not to its end */
    add_told(s, 5, HISTORY_SEEN, "6.1", "complete");
    add_told(s, 6, HISTORY_BASELINE, "6.1", "complete");
    add_told(s, 7, HISTORY_BASELINE, "6.1", "complete");
    add_told(s, 8, HISTORY_BASELINE, "6.1", "complete");
    add_told(s, 9, HISTORY_BASELINE, "6.1", "complete");
    chosen(s, &sieve, text, sizeof(text));
    assert_string_equal(text, "s0 |a1 a2 s5 s6 L7 L8 L9");
    sieve.spread = 1;
    chosen(s, &sieve, text, sizeof(text));
    assert_string_equal(text, "a1 a2 s6 L7 L8 L9");
    sieve.most = 10; /* of the level are the first, too */
    chosen(s, &sieve, text, sizeof(text));
    assert_string_equal(text, "L1 L2 s5 L6 L7 L8 L9");
    sieve = (struct history_sieve){.most = 1};
    chosen(s, &sieve, text, sizeof(text));
    assert_string_equal(text, "L9");
    /* what came and went within two runs says how runs differ; what stayed, or is still so, was of another level */
    for (unsigned i = 10; i < 15; i++)
        add_told(s, i, i < 13 || i > 13 ? HISTORY_SEEN : HISTORY_BASELINE, "6.1", "complete");
    sieve = (struct history_sieve){.most = 2, .spread = 4, .meta = meta};
    chosen(s, &sieve, text, sizeof(text));
    assert_string_equal(text, "L9 |s10 s11 s12 |L13 |s14");
    json_decref(meta);
}

static void test_without_a_baseline_there_is_none_beside_it(void **state)
{
    struct scene *s = *state;
    json_t *meta = json_object();
    const struct history_sieve sieve = {.most = 3, .anchors = 2, .spread = 3, .meta = meta};
    char text[256];

    add_told(s, 0, HISTORY_SEEN, "6.1", "complete");
    chosen(s, &sieve, text, sizeof(text));
    assert_string_equal(text, "");
    json_decref(meta);
}

/* Of the runs between the first and the last the rows go, one after the other. */
static void test_rows_of_the_first_the_last_and_some_others_are_kept(void **state)
{
    struct scene *s = *state;
    char said[64], path[128], error[512] = "", name[32], started[32];
    struct check_run r = {.name = name,
                          .host = "one",
                          .suite = "quick",
                          .started_utc = started,
                          .values = {100, 20, 5},
                          .launches = 1};

    for (unsigned i = 0; i < HISTORY_FIRST_RUNS + HISTORY_WHOLE_RUNS + 3; i++) {
        snprintf(name, sizeof(name), "b%u", i);
        snprintf(started, sizeof(started), "2026-01-01T%02u:%02u:00Z", i / 60, i % 60);
        check_run_write(&s->root, &r, path, sizeof(path));
        int err = add_as(s->db, path, HISTORY_BASELINE, NULL, error, sizeof(error));
        if (err == -ENOSYS)
            skip();
        assert_int_equal(err, 0);
    }
    for (unsigned i = 0; i < HISTORY_OTHER_RUNS + 2; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        snprintf(started, sizeof(started), "2026-01-02T00:%02u:00Z", i);
        check_run_write(&s->root, &r, path, sizeof(path));
        assert_int_equal(add_as(s->db, path, HISTORY_SEEN, NULL, error, sizeof(error)), 0);
    }
    if (!sqlite(s->db,
                "SELECT group_concat(name, ' ') FROM (SELECT name FROM runs WHERE id NOT IN"
                " (SELECT run FROM files) ORDER BY id)",
                said, sizeof(said)))
        skip();
    assert_string_equal(said, "b20 b21 b22 s0 s1\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_the_first_runs_and_the_others_have_a_part),
        TEST(test_without_a_baseline_there_is_none_beside_it),
        TEST(test_rows_of_the_first_the_last_and_some_others_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

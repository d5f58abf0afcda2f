/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the history keeps of single cases: gains that wait to be settled, and levels that were accepted. */
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

#define KEY(op) "memory|op=op" #op "|bandwidth|GB/s"

static const char *const all[] = {KEY(0), KEY(1), KEY(2)};

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

    assert_int_equal(put(s, i, &j), 0);
    return j.standing;
}

/* "s0 |L1": what each run is to a later one in that case (level, anchor, spread), with | where levels change. */
static void roles(const struct scene *s, const char *key, char *text, size_t len)
{
    const struct history_run run = {
        .name = "other", .host = "one", .suite = "quick", .started_utc = "2026-02-01T00:00:00Z"};
    json_t *meta = json_object();
    const struct history_sieve sieve = {.most = 3, .anchors = 2, .spread = 9, .meta = meta};
    struct history_db *db = open_db(s->db, false);
    struct history_choice c;
    char error[512] = "";
    size_t k = 0;

    assert_int_equal(history_db_choose(db, &run, &sieve, &c, error, sizeof(error)), 0);
    for (size_t i = 1; i < c.n_roles; i++)
        k = strcmp(c.roles[i].key, key) ? k : i;
    *text = '\0';
    for (size_t i = 0; i < c.n; i++) {
        const struct pairs_role *role = &c.roles[k].runs[i];

        snprintf(text + strlen(text), len - strlen(text), "%s%s%c%s", i ? " " : "",
                 i && role->level != role[-1].level ? "|" : "", "Las"[role->role],
                 c.runs[i].name + 4);
    }
    history_choice_release(&c);
    history_db_close(db);
    json_decref(meta);
}

static void assert_roles(const struct scene *s, const char *key, const char *want)
{
    char text[256];

    roles(s, key, text, sizeof(text));
    assert_string_equal(text, want);
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

static void test_a_case_is_accepted_by_itself(void **state)
{
    struct scene *s = *state;
    const struct history_acceptance accepted = {
        .reason = "driver", .by = "jo", .at_utc = "2026-03-01", .keys = &all[1], .n_keys = 1};
    struct history_judged j = {.standing = HISTORY_SEEN};
    struct history h;
    char error[512] = "";

    for (unsigned i = 0; i < 2; i++)
        judge(s, i, 0);
    assert_int_equal(put(s, 2, &j), 0);
    assert_roles(s, KEY(1), "L0 L1 |s2");
    j.acceptance = &accepted;
    assert_int_equal(put(s, 2, &j), 0); /* it lost elsewhere, too */
    assert_int_equal(j.standing, HISTORY_SEEN);
    assert_roles(s, KEY(0), "L0 L1 |s2");
    assert_roles(s, KEY(1), "s0 s1 |L2");
    j.standing = HISTORY_BASELINE;
    assert_int_equal(put(s, 2, &j), 0); /* that was accepted by now as well */
    assert_int_equal(j.standing, HISTORY_BASELINE);
    assert_roles(s, KEY(0), "L0 L1 L2");
    struct history_db *db = open_db(s->db, false);
    assert_int_equal(history_db_read(db, "", "", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_accepted, 2);
    assert_string_equal(h.accepted[0].run, "one-2");
    assert_string_equal(h.accepted[0].reason, "driver");
    assert_string_equal(h.accepted[0].by, "jo");
    assert_int_equal(h.accepted[0].n_keys, 1);
    assert_string_equal(h.accepted[0].keys[0], KEY(1));
    history_release(&h);
    history_db_close(db);
}

/* Whoever comes first settles it; the other finds it settled. */
static void test_two_writers_settle_a_gain_once(void **state)
{
    struct scene *s = *state;
    char said[64];
    int status;

    judge(s, 0, 0);
    judge(s, 1, 1);
    pid_t children[2];
    for (unsigned i = 0; i < 2; i++) {
        children[i] = fork();
        if (!children[i]) {
            struct history_judged j = {.standing = HISTORY_PROBATION,
                                       .gains = all,
                                       .n_gains = 1,
                                       .decided = all,
                                       .n_decided = 3};
            _exit(put(s, 2 + i, &j) ? 1 : j.standing == HISTORY_BASELINE ? 2 : 0);
        }
    }
    int settled = 0;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
        settled += WEXITSTATUS(status) == 2;
    }
    assert_int_equal(settled, 1);
    assert_sound(s->db);
    if (!sqlite(
            s->db,
            "SELECT group_concat(standing, ' ') FROM (SELECT standing FROM runs ORDER BY standing)",
            said, sizeof(said)))
        skip();
    assert_string_equal(said, "1 1 1 3\n");
    assert_true(sqlite(s->db,
                       "SELECT group_concat(mark, ' ') FROM (SELECT mark FROM marks ORDER BY mark)",
                       said, sizeof(said)));
    assert_string_equal(said, "2 3\n");
}

/* As the program before it made it. */
static void make_schema_3(struct scene *s)
{
    char said[64];

    add(s, "one", 0, HISTORY_BASELINE);
    add(s, "one", 1, HISTORY_START);
    add(s, "one", 2, HISTORY_SEEN);
    if (!sqlite(s->db,
                "DROP TABLE accepted_cases; DROP TABLE accepted; DROP TABLE marks;"
                "DELETE FROM files WHERE run = 3; PRAGMA user_version = 3",
                said, sizeof(said)))
        skip();
}

static void test_a_history_of_schema_3_is_read_and_brought_up(void **state)
{
    struct scene *s = *state;
    struct history h;
    char error[512] = "";

    make_schema_3(s);
    assert_roles(s, KEY(0), "s0 |L1");
    struct history_db *db = open_db(s->db, false);
    assert_int_equal(history_db_read(db, "", "", NULL, &h, error, sizeof(error)), 0);
    assert_int_equal(h.n_runs, 3);
    assert_int_equal(h.n_accepted, 0);
    history_release(&h);
    history_db_close(db);
    assert_schema(s, "3\n");
    judge(s, 3, 1);
    assert_schema(s, "4\n");
    assert_sound(s->db);
    assert_roles(s, KEY(0), "s0 |L1 |s3");
    assert_int_equal(judge(s, 4, 1), HISTORY_BASELINE);
    assert_roles(s, KEY(0), "s0 |s1 |L3 L4");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_gain_that_is_true_is_a_start_of_its_case),
        TEST(test_a_gain_that_is_false_is_no_level_in_its_case),
        TEST(test_another_gain_waits_for_itself),
        TEST(test_a_run_that_decided_nothing_settles_nothing),
        TEST(test_a_case_is_accepted_by_itself),
        TEST(test_two_writers_settle_a_gain_once),
        TEST(test_a_history_of_schema_3_is_read_and_brought_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the runs of a history are to one that is held against them, and to each of its cases. */
#include "harness/history/history_db.h"
#include "history_scene.h"
#include "tests/unit/unit.h"

#define KEY(op) "memory|op=op" #op "|bandwidth|GB/s"

static const char *const some[] = {KEY(0), KEY(1)};

#define LATER  "other", "2026-02-01T00:00:00Z"
#define SECOND "2026-01-01T00:00:00Z"

/* "a0 L1 -2": what each run is to one of that name and start in that case: anchor, level, nothing. */
static void assert_chosen(const struct scene *s, const char *name, const char *started, size_t most,
                          const char *key, const char *want)
{
    const struct history_run run = {
        .name = name, .host = "one", .suite = "quick", .started_utc = started};
    const struct history_sieve sieve = {.most = most};
    struct history_db *db = open_db(s->db, false);
    struct history_choice c;
    char error[512] = "", text[256] = "";
    size_t k = 0;

    assert_int_equal(history_db_choose(db, &run, &sieve, &c, error, sizeof(error)), 0);
    for (size_t i = 1; i < c.n_roles; i++)
        k = strcmp(c.roles[i].key, key) ? k : i;
    for (size_t i = 0; i < c.n; i++) {
        const char *number = strchr(c.runs[i].name, '-');

        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c%s", i ? " " : "",
                 "La-"[c.roles[k].runs[i]], number ? number + 1 : c.runs[i].name);
    }
    assert_string_equal(text, want);
    history_choice_release(&c);
    history_db_close(db);
}

static void accept_run(const struct scene *s, unsigned i, bool good, const char *const *keys)
{
    char path[128];

    write_run(s, "one", i, path, sizeof(path));
    add_path(s, path, good, true, keys);
}

TEST_WITH(test_good_runs_are_baselines, set_up, tear_down)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 4; i++)
        add(s, "one", i, i != 2);
    add(s, "two", 3, true);
    assert_chosen(s, LATER, 0, "", "L0 L1 L3");
    assert_chosen(s, LATER, 2, "", "a0 L1 L3");
    /* not itself, nor what came later */
    assert_chosen(s, "one-3", "2026-01-04T00:00:00Z", 0, "", "L0 L1");
}

TEST_WITH(test_the_first_runs_are_anchors, set_up, tear_down)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 6; i++)
        add(s, "one", i, i != 1);
    assert_chosen(s, LATER, 2, "", "a0 a2 L4 L5");
    assert_chosen(s, LATER, 3, "", "a0 a2 L3 L4 L5");
    assert_chosen(s, LATER, 5, "", "L0 L2 L3 L4 L5");
}

/* No run before it counts any more, and it counts whatever it was; earlier runs see what they saw. */
TEST_WITH(test_an_accepted_change_is_a_new_reference, set_up, tear_down)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 4; i++)
        add(s, "one", i, true);
    accept_run(s, 4, false, NULL);
    assert_chosen(s, LATER, 2, "", "L4");
    for (unsigned i = 5; i < 8; i++)
        add(s, "one", i, i != 5);
    assert_chosen(s, LATER, 2, "", "a4 L6 L7");
    assert_chosen(s, "one-4", "2026-01-05T00:00:00Z", 2, "", "a0 a1 L2 L3");
    /* a run that was there, and judged good by itself, may be accepted later */
    accept_run(s, 6, true, NULL);
    assert_chosen(s, LATER, 2, "", "L6 L7");
}

TEST_WITH(test_a_case_has_a_reference_of_its_own, set_up, tear_down)
{
    struct scene *s = *state;

    for (unsigned i = 0; i < 4; i++)
        add(s, "one", i, true);
    accept_run(s, 4, false, some);
    assert_chosen(s, LATER, 2, "", "a0 a1 L2 L3 -4");
    assert_chosen(s, LATER, 2, KEY(1), "-0 -1 -2 -3 L4");
    assert_chosen(s, LATER, 2, KEY(2), "a0 a1 L2 L3 -4");
    for (unsigned i = 5; i < 8; i++)
        add(s, "one", i, true);
    assert_chosen(s, LATER, 2, "", "a0 a1 -4 -5 L6 L7");
    assert_chosen(s, LATER, 2, KEY(0), "-0 -1 a4 a5 L6 L7");
    /* an acceptance of all cases is one of this case, too */
    accept_run(s, 7, true, NULL);
    assert_chosen(s, LATER, 2, KEY(0), "L7");
}

static void add_in_second(const struct scene *s, const char *name, bool accepted)
{
    char path[128];
    struct check_run r = {.name = name,
                          .host = "one",
                          .suite = "quick",
                          .started_utc = SECOND,
                          .values = {100, 20, 5},
                          .launches = 3};

    check_run_write(&s->root, &r, path, sizeof(path));
    add_path(s, path, true, accepted, NULL);
}

TEST_WITH(test_runs_of_one_second_come_in_the_order_they_were_added_in, set_up, tear_down)
{
    struct scene *s = *state;

    add_in_second(s, "z", false);
    add_in_second(s, "m", false);
    add_in_second(s, "a", false);
    assert_chosen(s, "z", SECOND, 0, "", "");
    assert_chosen(s, "a", SECOND, 0, "", "Lz Lm");
    /* one that is not there comes behind all of them */
    assert_chosen(s, "new", SECOND, 0, "", "Lz Lm La");
    assert_chosen(s, "old", "2025-12-31T23:59:59Z", 0, "", "");
    add_in_second(s, "m", true);
    assert_chosen(s, "new", SECOND, 0, "", "Lm La");
    assert_chosen(s, "m", SECOND, 0, "", "Lz");
}

/* Of a folder all count, also those that began later; one that is there twice counts once. */
TEST_WITH(test_runs_of_a_folder, set_up, tear_down)
{
    struct scene *s = *state;
    const struct history_run run = {
        .name = "one-1", .host = "one", .suite = "quick", .started_utc = "2026-01-02T00:00:00Z"};
    struct history_choice c;
    char error[512] = "", path[128];
    int err;
    struct history_db *db = history_db_open_memory(&err, error, sizeof(error));

    assert_int_equal(err, 0);
    for (unsigned i = 0; i < 4; i++) {
        struct run_folder folder = {0};

        write_run(s, "one", i % 3, path, sizeof(path));
        assert_int_equal(run_folder_load(path, &folder, error, sizeof(error)), 0);
        assert_int_equal(history_db_add_folder(db, &folder, i + 1, error, sizeof(error)), 0);
        run_folder_release(&folder);
    }
    assert_int_equal(history_db_choose(db, &run, &(struct history_sieve){.later = true}, &c, error,
                                       sizeof(error)),
                     0);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.n_level, 2);
    assert_int_equal(c.runs[0].id, 1);
    assert_int_equal(c.runs[1].id, 3);
    history_choice_release(&c);
    history_db_close(db);
}

#define LEFT                                                                                       \
    "SELECT group_concat(id) FROM (SELECT id FROM runs WHERE id NOT IN (SELECT run FROM files) "   \
    "ORDER BY id)"

/* Of 164 runs, copies of one but the last, the rows of those between the first and the last go, and those of runs that are
 * not good; where a case has a reference of its own its first ones stay, too. */
TEST_WITH(test_rows_of_the_first_and_the_last_are_kept, set_up, tear_down)
{
    struct scene *s = *state;
    char said[512];

    assert_int_equal(HISTORY_FIRST_RUNS, 20);
    assert_int_equal(HISTORY_WHOLE_RUNS, 100);
    add(s, "one", 0, true);
    if (!sqlite(s->db,
                "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 164)"
                " INSERT INTO runs SELECT i, 'c', host, suite, printf('2026-01-02T%03d', i),"
                " version, commit_id, i NOT IN (10, 150), environment, state, ended, digest,"
                " least_steal"
                " FROM runs, n;"
                "INSERT INTO files SELECT runs.id, files.name, text FROM runs, files"
                " WHERE runs.id > 1",
                said, sizeof(said)))
        skip();
    add(s, "one", 3, true);
    assert_true(sqlite(s->db, LEFT, said, sizeof(said)));
    /* good: 163 of 165; the first 20 end with 21, the last 100 begin with 65 */
    assert_true(!strncmp(said, "10,22,23,24,", 12) && strstr(said, ",63,64,150\n"));
    assert_true(sqlite(s->db,
                       "INSERT INTO accepted VALUES (1, 150, '', '', '');"
                       "INSERT INTO accepted_cases VALUES (1, 'x');"
                       "INSERT INTO files VALUES (150, 'run.json', 'x')",
                       said, sizeof(said)));
    add(s, "one", 4, true);
    assert_true(sqlite(s->db, LEFT, said, sizeof(said)));
    assert_non_null(strstr(said, ",64,65\n"));
    /* of a reference of all cases nothing before it is needed as its first */
    assert_true(sqlite(s->db, "DELETE FROM accepted_cases", said, sizeof(said)));
    add(s, "one", 5, true);
    assert_true(sqlite(s->db, LEFT, said, sizeof(said)));
    assert_true(!strncmp(said, "1,2,3,4,", 8));
}

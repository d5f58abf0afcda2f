/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of runs that have no part in the level: they say nothing of a case but their values. */
#include "check_runs.h"
#include "harness/compare/pairs.h"
#include "tests/unit/unit.h"

#define RUNS 4 /* of A; then comes the one of B */

struct scene {
    struct fake_run root;
    char paths[RUNS + 1][128];
    const char *a[RUNS], *b;
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));

    fake_run_init(&s->root);
    for (unsigned i = 0; i <= RUNS; i++) {
        char name[32], started[32];
        struct check_run r = {.name = name,
                              .host = "one",
                              .suite = "quick",
                              .started_utc = started,
                              .values = {100 + i, i == 1 ? 0 : 20, 5},
                              .launches = 2};

        snprintf(name, sizeof(name), "r%u", i);
        snprintf(started, sizeof(started), "2026-01-%02uT00:00:00Z", i + 1);
        check_run_write(&s->root, &r, s->paths[i], sizeof(s->paths[i]));
    }
    for (unsigned i = 0; i < RUNS; i++)
        s->a[i] = s->paths[i];
    s->b = s->paths[RUNS];
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    fake_run_release(&s->root);
    free(s);
    return 0;
}

static void load(struct scene *s, const struct pairs_roles *roles, size_t n, struct pairs *p)
{
    const struct pairs_options options = {.margin = 0.02, .roles = roles, .n_roles = n};
    char error[512] = "";

    if (pairs_load(p, s->a, RUNS, &s->b, 1, &options, error, sizeof(error)))
        fail_msg("%s", error);
}

TEST_WITH(test_only_the_level_is_held_against, set_up, tear_down)
{
    static const enum pairs_role most[RUNS] = {PAIRS_NO_PART, PAIRS_LEVEL, PAIRS_LEVEL,
                                               PAIRS_LEVEL};
    static const enum pairs_role own[RUNS] = {PAIRS_NO_PART, PAIRS_NO_PART, PAIRS_ANCHOR,
                                              PAIRS_LEVEL};
    const struct pairs_roles roles[] = {{NULL, most}, {"memory|op=op0|bandwidth|GB/s", own}};
    struct pairs p;

    load(*state, roles, 2, &p);
    assert_int_equal(p.n, 3);
    for (size_t r = 0; r < RUNS; r++) {
        assert_int_equal(p.all[0].decide.a.runs[r].n, own[r] == PAIRS_NO_PART ? 0 : 2);
        assert_int_equal(p.all[2].decide.a.runs[r].n, most[r] == PAIRS_NO_PART ? 0 : 2);
    }
    assert_int_equal(p.all[0].decide.a.runs[2].role, DECIDE_ANCHOR);
    assert_int_equal(p.all[0].decide.a.runs[3].role, DECIDE_LEVEL);
    assert_float_equal(p.all[0].decide.a_value / 103, 1, 1e-3); /* the mean of its level */
    assert_false(pairs_is_level(&p, 0));
    assert_true(pairs_is_level(&p, 1) && pairs_is_level(&p, RUNS));
    pairs_release(&p);
}

static void set_boot(struct scene *s, unsigned run, const char *boot)
{
    char name[32], text[512];

    snprintf(name, sizeof(name), "r%u/run.json", run);
    snprintf(text, sizeof(text),
             "{\"schema\": 3, \"run\": \"r%u\", \"suite\": \"quick\", \"state\": \"complete\","
             " \"started_utc\": \"2026-01-%02uT00:00:00Z\","
             " \"machine\": {\"host\": {\"hostname\": \"one\"}, \"load\": {\"boot\": %s}}}\n",
             run, run + 1, boot);
    fake_run_write(&s->root, name, text);
}

/* By the order in which they are seen; 0 where a run does not tell. */
TEST_WITH(test_boots_are_numbered, set_up, tear_down)
{
    static const char *const boots[RUNS + 1] = {"\"b\"", "\"a\"", "null", "\"b\"", "\"a\""};
    static const unsigned want[RUNS] = {1, 2, 0, 1};
    struct pairs p;

    for (unsigned i = 0; i <= RUNS; i++)
        set_boot(*state, i, boots[i]);
    load(*state, NULL, 0, &p);
    for (size_t r = 0; r < RUNS; r++)
        assert_int_equal(p.all[0].decide.a.runs[r].boot, want[r]);
    assert_int_equal(p.all[0].decide.b.runs[0].boot, 2);
    pairs_release(&p);
}

/* Another kernel, another case and another origin of the figures in a run that is no level. */
TEST_WITH(test_what_is_no_level_says_nothing_of_a_case, set_up, tear_down)
{
    static const enum pairs_role most[RUNS] = {PAIRS_NO_PART, PAIRS_LEVEL, PAIRS_LEVEL,
                                               PAIRS_LEVEL};
    const struct pairs_roles roles[] = {{NULL, most}};
    struct scene *s = *state;
    struct machine_difference *all;
    struct pairs p;
    FILE *rows = fake_run_open(&s->root, "r0/memory.csv", "a");

    fputs("op0,bandwidth,GB/s,90,89,91,0.95,10,,converged,simulated,ok,,r0,c0,2,one,2026\n", rows);
    fputs("op9,bandwidth,GB/s,90,89,91,0.95,10,,converged,measured,ok,,r0,c9,0,one,2026\n", rows);
    fclose(rows);
    rows = fake_run_open(&s->root, "r0/plan.csv", "a");
    fputs("done,1,6,c0,2,memory,--op op0,60\ndone,1,7,c9,0,memory,--op op9,60\n", rows);
    fclose(rows);
    fake_run_write(&s->root, "r0/run.json",
                   "{\"schema\": 3, \"run\": \"r0\", \"suite\": \"quick\", \"version\": \"0.9\","
                   " \"commit\": \"abc\", \"started_utc\": \"2026-01-01T00:00:00Z\","
                   " \"state\": \"complete\", \"machine\": {\"host\": {\"hostname\": \"one\"}}}\n");
    load(s, roles, 1, &p);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_int_equal(pairs_machine_differences(&p, &all), 0);
    pairs_release(&p);
    load(s, NULL, 0, &p);
    assert_int_equal(p.n, 4);
    assert_int_equal(p.all[0].state, PAIR_REFUSED);
    assert_int_equal(pairs_machine_differences(&p, &all), 1);
    assert_false(all[0].environment); /* the version of the program */
    pairs_release(&p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of runs that were measured in turn: which belong together, and which of their launches. */
#include "harness/compare/pairs.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "stores", "size", "level"};
static const char *const triad[] = {"triad", "", "65536", "L2"};

/* A run of plumb run --against, "one-a": its launches' values; 0: it failed, NaN: it is not there. */
static void write_run_as(const struct fake_run *root, const char *name, const char *pair,
                         const char *side, const double *launches, size_t n)
{
    char meta[256];
    struct row row;
    struct scene_run r = scene_begin(root, name, "memory", params, 4);

    for (size_t i = 0; i < n; i++) {
        bool failed = launches[i] == 0;

        if (isnan(launches[i]))
            continue;
        fake_row_init(&row, "1", i + 1, "bandwidth", "GB/s", failed ? NAN : launches[i]);
        row.status = failed ? "failed" : "ok";
        scene_row(&r, &row, triad);
        scene_launch(&r, failed ? "fail" : "done", 1, "1", i + 1, "");
    }
    scene_end(&r);
    snprintf(meta, sizeof(meta),
             "{\"schema\": 1, \"run\": \"%s\", \"machine\": {}, \"against\": {\"pair\": \"%s\", "
             "\"side\": \"%s\"}}\n",
             name, pair, side);
    scene_file(root, name, "run.json", meta);
}

static void write_run(const struct fake_run *root, const char *pair, const char *side,
                      const double *launches, size_t n)
{
    char name[32];

    snprintf(name, sizeof(name), "%s-%s", pair, side);
    write_run_as(root, name, pair, side, launches, n);
}

static struct pairs pairs_of(const struct fake_run *root, const char *const *a, size_t n_a,
                             const char *const *b, size_t n_b)
{
    static const struct pairs_options options = {.margin = 0.05};
    const char *names[8];
    char paths[8][128], error[512];
    struct pairs p;

    for (size_t i = 0; i < n_a + n_b; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", root->path, i < n_a ? a[i] : b[i - n_a]);
        names[i] = paths[i];
    }
    if (pairs_load(&p, names, n_a, names + n_a, n_b, &options, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    return p;
}

static void assert_run(const struct decide_run *run, const double *want, size_t n)
{
    assert_int_equal(run->n, n);
    for (size_t i = 0; i < n; i++)
        assert_float_equal(run->values[i], want[i], 1e-6);
}

static void write_two_pairs(const struct fake_run *root)
{
    write_run(root, "one", "a", (double[]){10, 11, 12}, 3);
    write_run(root, "one", "b", (double[]){20, 21, 22}, 3);
    write_run(root, "two", "a", (double[]){30, 31, 32}, 3);
    write_run(root, "two", "b", (double[]){40, 41, 42}, 3);
}

static void assert_without_partner(const struct pairs *p, size_t want, size_t want_first)
{
    size_t first;

    assert_int_equal(pairs_without_partner(p, &first), want);
    if (want)
        assert_int_equal(first, want_first);
}

static void test_partners(void **state)
{
    const char *a[] = {"one-a", "two-a"}, *b[] = {"two-b", "one-b"};

    write_two_pairs(*state);
    struct pairs p = pairs_of(*state, a, 2, b, 2);
    const struct decide_case *d = &p.all[0].decide;

    assert_true(p.in_turn && d->paired && d->by_pairs && d->by_runs);
    assert_without_partner(&p, 0, 0);
    assert_int_equal(d->a.n, 2);
    assert_run(&d->a.runs[0], (double[]){10, 11, 12}, 3);
    assert_run(&d->b.runs[0], (double[]){20, 21, 22}, 3);
    assert_run(&d->a.runs[1], (double[]){30, 31, 32}, 3);
    assert_run(&d->b.runs[1], (double[]){40, 41, 42}, 3);
    pairs_release(&p);
    /* The other way round, too. */
    p = pairs_of(*state, b, 2, a, 2);
    assert_true(p.in_turn && p.all[0].decide.paired);
    assert_run(&p.all[0].decide.b.runs[0], (double[]){30, 31, 32}, 3);
    pairs_release(&p);
}

static void test_launches_without_a_partner(void **state)
{
    const char *a[] = {"one-a", "two-a"}, *b[] = {"one-b", "two-b"};

    write_two_pairs(*state);
    write_run(*state, "one", "b", (double[]){20, 0, 22}, 3);
    write_run(*state, "two", "a", (double[]){NAN, 31, 32}, 3);
    struct pairs p = pairs_of(*state, a, 2, b, 2);
    const struct decide_case *d = &p.all[0].decide;

    assert_true(d->paired);
    assert_run(&d->a.runs[0], (double[]){10, 12}, 2);
    assert_run(&d->b.runs[0], (double[]){20, 22}, 2);
    assert_run(&d->a.runs[1], (double[]){31, 32}, 2);
    assert_run(&d->b.runs[1], (double[]){41, 42}, 2);
    pairs_release(&p);
}

static void test_a_run_without_the_case(void **state)
{
    const char *a[] = {"one-a", "two-a"}, *b[] = {"one-b", "two-b"};

    write_two_pairs(*state);
    write_run(*state, "one", "b", NULL, 0);
    struct pairs p = pairs_of(*state, a, 2, b, 2);
    const struct decide_case *d = &p.all[0].decide;

    assert_true(d->paired);
    assert_int_equal(d->a.runs[0].n, 0);
    assert_int_equal(d->b.runs[0].n, 0);
    assert_run(&d->b.runs[1], (double[]){40, 41, 42}, 3);
    pairs_release(&p);
    /* Nothing stood next to anything: what there is stands by itself. */
    write_run(*state, "two", "a", NULL, 0);
    p = pairs_of(*state, a, 2, b, 2);
    assert_false(p.all[0].decide.paired);
    assert_run(&p.all[0].decide.a.runs[0], (double[]){10, 11, 12}, 3);
    assert_run(&p.all[0].decide.b.runs[1], (double[]){40, 41, 42}, 3);
    pairs_release(&p);
}

static void test_a_side_with_a_run_more(void **state)
{
    const char *a[] = {"one-a", "two-a"}, *b[] = {"one-b"}, *c[] = {"one-b", "other-b"};

    write_two_pairs(*state);
    struct pairs p = pairs_of(*state, a, 2, b, 1);
    assert_false(p.in_turn || p.all[0].decide.paired || p.all[0].decide.by_pairs);
    assert_without_partner(&p, 1, 1);
    pairs_release(&p);
    write_run(*state, "other", "b", (double[]){20, 21, 22}, 3);
    p = pairs_of(*state, a, 2, c, 2);
    assert_false(p.in_turn || p.all[0].decide.paired);
    assert_int_equal(p.all[0].decide.b.n, 2);
    assert_without_partner(&p, 2, 1);
    pairs_release(&p);
    /* where no run has a partner there is nothing that could have been used */
    p = pairs_of(*state, &a[1], 1, b, 1);
    assert_false(p.in_turn);
    assert_without_partner(&p, 0, 0);
    pairs_release(&p);
}

/* Copies, or a folder that was written over: nobody knows which stood next to which. */
static void test_two_of_one_pair(void **state)
{
    const char *a[] = {"one-a", "again-a"}, *b[] = {"one-b", "again-b"};

    write_two_pairs(*state);
    write_run_as(*state, "again-a", "one", "a", (double[]){10, 11, 12}, 3);
    write_run_as(*state, "again-b", "one", "b", (double[]){20, 21, 22}, 3);
    struct pairs p = pairs_of(*state, a, 2, b, 2);
    assert_false(p.in_turn || p.all[0].decide.paired);
    assert_without_partner(&p, 2, 1);
    pairs_release(&p);
}

/* The plan of a run that is there: turns "fs-" (first, second, not said), NULL: of an older version, without the column; and where
 * in the order of the run its launches are. */
static void write_plan(const struct fake_run *root, const char *run, const char *turns,
                       const unsigned *order)
{
    char name[64];

    snprintf(name, sizeof(name), "%s/plan.csv", run);
    FILE *out = fake_run_open(root, name, "w");
    fprintf(out, "state,rows,order,case,repeat,bench,arguments,timeout_s%s\n",
            turns ? ",turn" : "");
    for (unsigned i = 0; i < 3; i++) {
        fprintf(out, "done,0001,%u,1,%u,memory,--case 1,60", order[i], i + 1);
        if (turns)
            fprintf(out, ",%s", turns[i] == 'f' ? "first" : turns[i] == 's' ? "second" : "");
        fputc('\n', out);
    }
    fclose(out);
}

static void write_order(const struct fake_run *root, const char *pair, const char *side,
                        const char *order)
{
    char name[64], text[256];

    snprintf(name, sizeof(name), "%s-%s", pair, side);
    snprintf(text, sizeof(text),
             "{\"schema\": 1, \"run\": \"%s\", \"machine\": {}, \"against\": {\"pair\": \"%s\", "
             "\"side\": \"%s\", \"order\": \"%s\"}}\n",
             name, pair, side, order);
    scene_file(root, name, "run.json", text);
}

/* want: "fs", of the launches that are left; NULL: nobody knows. Of its partner it is the opposite. */
static void assert_first(const struct decide_case *d, size_t run, const char *want)
{
    const struct decide_run *a = &d->a.runs[run], *b = &d->b.runs[run];

    assert_true(d->paired);
    assert_int_equal(!a->went_first, !want);
    assert_int_equal(!b->went_first, !want);
    if (!want || !a->went_first || !b->went_first)
        return;
    assert_int_equal(a->n, strlen(want));
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->went_first[i], want[i] == 'f');
        assert_int_equal(b->went_first[i], want[i] == 's');
    }
}

static void assert_both_first(const struct fake_run *root, const char *want_one,
                              const char *want_two)
{
    const char *a[] = {"one-a", "two-a"}, *b[] = {"two-b", "one-b"};
    struct pairs p = pairs_of(root, a, 2, b, 2);

    assert_first(&p.all[0].decide, 0, want_one);
    assert_first(&p.all[0].decide, 1, want_two);
    pairs_release(&p);
}

static const unsigned in_order[] = {1, 2, 3};

static void test_who_went_first(void **state)
{
    write_two_pairs(*state);
    write_plan(*state, "one-a", "fsf", in_order);
    write_plan(*state, "one-b", "sfs", in_order);
    write_plan(*state, "two-a", "sfs", in_order);
    write_plan(*state, "two-b", "fsf", in_order);
    assert_both_first(*state, "fsf", "sfs");
    /* a launch that is lost takes its own with it, and no other's */
    write_run(*state, "one", "b", (double[]){0, 21, 22}, 3);
    write_plan(*state, "one-b", "sfs", in_order);
    write_run(*state, "two", "a", (double[]){30, NAN, 32}, 3);
    write_plan(*state, "two-a", "sfs", in_order);
    assert_both_first(*state, "sf", "ss");
}

static void test_who_went_first_is_not_guessed(void **state)
{
    write_two_pairs(*state);
    assert_both_first(*state, NULL, NULL);
    /* one side alone says it, or both say the same of themselves */
    write_plan(*state, "one-a", "fsf", in_order);
    write_plan(*state, "two-a", "fsf", in_order);
    write_plan(*state, "two-b", "ssf", in_order);
    assert_both_first(*state, NULL, NULL);
    write_plan(*state, "one-b", "s-s", in_order);
    write_plan(*state, "two-b", "sfs", in_order);
    assert_both_first(*state, NULL, "fsf");
    /* a rule that this program does not know */
    write_plan(*state, "one-a", NULL, in_order);
    write_plan(*state, "one-b", NULL, in_order);
    write_order(*state, "one", "a", "drawn");
    write_order(*state, "one", "b", "drawn");
    assert_both_first(*state, NULL, "fsf");
}

/* They alternated along the plan: with a at its odd lines. */
static void test_older_runs_tell_by_their_order(void **state)
{
    static const unsigned one[] = {1, 3, 6}, two[] = {2, 5, 8};
    const char *const runs[] = {"one-a", "one-b", "two-a", "two-b"};

    write_two_pairs(*state);
    for (size_t i = 0; i < 4; i++) {
        write_plan(*state, runs[i], NULL, i < 2 ? one : two);
        write_order(*state, i < 2 ? "one" : "two", i % 2 ? "b" : "a", "ABBA");
    }
    assert_both_first(*state, "ffs", "sfs");
    write_plan(*state, "two-b", NULL, in_order);
    assert_both_first(*state, "ffs", NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_partners),
        TEST(test_launches_without_a_partner),
        TEST(test_a_run_without_the_case),
        TEST(test_a_side_with_a_run_more),
        TEST(test_two_of_one_pair),
        TEST(test_who_went_first),
        TEST(test_who_went_first_is_not_guessed),
        TEST(test_older_runs_tell_by_their_order),
    };

    return cmocka_run_group_tests_name("pairs_turns", tests, NULL, NULL);
}

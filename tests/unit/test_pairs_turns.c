/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of runs that were measured in turn: which belong together, which of their launches, and who went first. */
#include "harness/compare/pairs.h"
#include "tests/unit/unit.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "stores", "size", "level_used"};
static const char *const triad[] = {"triad", "", "65536", "L2"};

/* A run of plumb run --against, "one-a", whose launches' values are these: x failed, - is not there; behind each
 * an f where it went first and an s where second. Returns what stands behind a bar. */
static const char *write_run(const struct fake_run *root, const char *name, const char *pair,
                             const char *launches)
{
    size_t len = strcspn(launches, "|");
    char text[256], *word, *rest = text, side = name[strlen(name) - 1];
    struct scene_run r = scene_begin(root, name, "memory", params, 4);

    snprintf(text, sizeof(text), "%.*s", (int)len, launches);
    rewind(r.plan);
    assert_int_equal(ftruncate(fileno(r.plan), 0), 0);
    fprintf(r.plan, "state,rows,order,case,repeat,bench,arguments,timeout_s,turn\n");
    for (uint64_t i = 1; (word = strtok_r(rest, " ", &rest)) != NULL; i++) {
        bool failed = *word == 'x';
        struct row row;

        if (*word == '-')
            continue;
        fake_row_init(&row, "1", i, "bandwidth", "GB/s", failed ? NAN : strtod(word, NULL));
        row.status = failed ? "failed" : "ok";
        scene_row(&r, &row, triad);
        scene_launch(&r, failed ? "fail" : "done", 1, "1", i,
                     strchr(word, 'f')   ? "first"
                     : strchr(word, 's') ? "second"
                                         : "");
    }
    scene_end(&r);
    snprintf(text, sizeof(text),
             "\"run\": \"%s\", \"machine\": {}, \"against\": {\"pair\": \"%s\", \"side\": \"%c\"}",
             name, pair, side);
    scene_meta(root, name, text);
    return launches + len + (launches[len] == '|');
}

/* The runs of each side, a blank between. */
static struct pairs pairs_of(const struct fake_run *root, const char *a, const char *b)
{
    static const struct pairs_options options = {.margin = 0.05};
    const char *names[8];
    char paths[8][128], error[512], name[32];
    size_t n[2] = {0};
    struct pairs p;

    for (int side = 0, len; side < 2; side++)
        for (const char *at = side ? b : a; sscanf(at, "%31s%n", name, &len) == 1; at += len) {
            size_t i = n[0] + n[1];

            n[side]++;
            snprintf(paths[i], sizeof(paths[i]), "%s/%s", root->path, name);
            names[i] = paths[i];
        }
    if (pairs_load(&p, names, n[0], names + n[0], n[1], &options, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    return p;
}

/* "10/20f 11/21s; 30/40": the launches of each pair of runs, and whether A's went first; "" where they are no
 * pairs. */
static void say(const struct decide_case *c, char *text, size_t len)
{
    *text = '\0';
    for (size_t r = 0; c->paired && r < c->a.n; r++) {
        const struct decide_run *a = &c->a.runs[r], *b = &c->b.runs[r];

        assert_int_equal(a->n, b->n);
        assert_int_equal(!a->went_first, !b->went_first);
        snprintf(text + strlen(text), len - strlen(text), "%s", r ? "; " : "");
        for (size_t i = 0; i < a->n; i++) {
            assert_true(!a->went_first || a->went_first[i] == !b->went_first[i]);
            snprintf(text + strlen(text), len - strlen(text), "%s%g/%g%s", i ? " " : "",
                     a->values[i], b->values[i],
                     !a->went_first     ? ""
                     : a->went_first[i] ? "f"
                                        : "s");
        }
    }
}

TEST_WITH(test_launches_in_turn, scene_make, scene_remove)
{
    static const struct {
        const char *runs, *a, *b,
            *want;             /* of one-a, one-b, two-a, two-b; and the runs of each side */
        size_t without, first; /* runs without a partner, and the first of them */
    } cases[] = {
        {"10 11|20 21|30 31|40 41", "one-a two-a", "two-b one-b", "10/20 11/21; 30/40 31/41", 0, 0},
        {"10 11|20 21|30 31|40 41", "two-b one-b", "one-a two-a", "40/30 41/31; 20/10 21/11", 0, 0},
        /* a launch that one side lost takes its partner's with it, and so does a run */
        {"10 11 12|20 x 22|- 31 32|40 41 42", "one-a two-a", "one-b two-b",
         "10/20 12/22; 31/41 32/42", 0, 0},
        {"10 11||30 31|40 41", "one-a two-a", "one-b two-b", "; 30/40 31/41", 0, 0},
        {"10 11|||40 41", "one-a two-a", "one-b two-b", "", 0, 0},
        /* a run more on a side, or copies: nobody knows which stood next to which */
        {"10 11|20 21|30 31|40 41", "one-a two-a", "one-b", "", 1, 1},
        {"10 11|20 21|30 31|40 41", "one-a two-a", "one-b other-b", "", 2, 1},
        {"10 11|20 21|30 31|40 41", "two-a", "one-b", "", 0, 0},
        {"10 11|20 21|30 31|40 41", "one-a again-a", "one-b again-b", "", 2, 1},
        /* who went first; a launch that is lost takes its own with it, and no other's */
        {"10f 11s 12f|20s 21f 22s|30s 31f 32s|40f 41s 42f", "one-a two-a", "two-b one-b",
         "10/20f 11/21s 12/22f; 30/40s 31/41f 32/42s", 0, 0},
        {"10f 11s 12f|xs 21f 22s|30s - 32s|40f 41s 42f", "one-a two-a", "two-b one-b",
         "11/21s 12/22f; 30/40s 32/42s", 0, 0},
        /* it is not guessed: one side alone says it, or both say the same of themselves, or not of all */
        {"10f 11s|20 21|30f 31s|40s 41s", "one-a two-a", "one-b two-b", "10/20 11/21; 30/40 31/41",
         0, 0},
        {"10f 11s|20s 21|30f 31s|40s 41f", "one-a two-a", "one-b two-b",
         "10/20 11/21; 30/40f 31/41s", 0, 0},
    };
    static const char *const names[][2] = {
        {"one-a", "one"}, {"one-b", "one"}, {"two-a", "two"}, {"two-b", "two"}};
    struct fake_run *root = *state;

    write_run(root, "other-b", "other", "20 21");
    write_run(root, "again-a", "one", "10 11");
    write_run(root, "again-b", "one", "20 21");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *runs = cases[i].runs;
        char text[256];
        size_t first = 0;

        for (size_t k = 0; k < 4; k++)
            runs = write_run(root, names[k][0], names[k][1], runs);
        struct pairs p = pairs_of(root, cases[i].a, cases[i].b);
        say(&p.all[0].decide, text, sizeof(text));
        assert_string_equal(text, cases[i].want);
        assert_int_equal(p.all[0].decide.by_pairs, *cases[i].want != '\0');
        assert_int_equal(pairs_without_partner(&p, &first), cases[i].without);
        assert_int_equal(first, cases[i].without ? cases[i].first : first);
        assert_true(p.in_turn || !*cases[i].want);
        assert_false(p.in_turn && cases[i].without);
        pairs_release(&p);
    }
}

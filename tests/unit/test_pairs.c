/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pairing: which launches' values a case has, its key and label, what was lost and why, what is refused,
 * whose margin holds; and what a run folder may hold. */
#include "harness/compare/pairs.h"
#include "tests/unit/unit.h"

#include "tests/unit/pairs_scene.h"

static const char *const params[] = {"op", "stores", "size", "level_used"};
static const char *const triad[] = {"triad", "", "65536", "L2"};
static const struct pairs_options options = {.margin = 0.05};

#define KEY "memory|op=triad|size=65536|bandwidth|GB/s"

/* Launches of one case, "--case CASE". */
static void add(struct scene_run *r, const char *case_id, const char *const *values,
                const double *launches, size_t n)
{
    struct row row;

    for (size_t i = 0; i < n; i++) {
        fake_row_init(&row, case_id, i + 1, "bandwidth", "GB/s", launches[i]);
        scene_row(r, &row, values);
        scene_launch(r, "done", 1, case_id, i + 1, "");
    }
}

static void write_run(const struct fake_run *root, const char *name, const double *launches,
                      size_t n)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 4);

    add(&r, "1", triad, launches, n);
    scene_end(&r);
}

TEST_WITH(test_values, scene_make, scene_remove)
{
    write_run(*state, "a", (double[]){10, 12, 11}, 3);
    write_run(*state, "b", (double[]){9, 8}, 2);
    struct pairs p = scene_pairs(*state, "a", "b");

    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_string_equal(p.all[0].key, KEY);
    assert_string_equal(p.all[0].label, "memory triad, 64 KiB: bandwidth");
    assert_string_equal(p.all[0].pipe, "Memory");
    assert_true(p.all[0].decide.higher_is_better);
    assert_int_equal(p.all[0].decide.a.n, 1);
    assert_int_equal(p.all[0].decide.a.runs[0].n, 3);
    assert_float_equal(p.all[0].decide.a.runs[0].values[1], 12, 1e-5);
    assert_int_equal(p.all[0].decide.b.runs[0].n, 2);
    assert_float_equal(p.all[0].decide.b.runs[0].values[0], 9, 1e-5);
    pairs_release(&p);
}

/* Columns in another order, and a new one that is empty, are the same case. */
TEST_WITH(test_key_is_stable, scene_make, scene_remove)
{
    static const char *const others[] = {"size", "new", "op", "level_used"};
    static const char *const values[] = {"65536", "", "triad", "L2"};
    struct scene_run r = scene_begin(*state, "b", "memory", others, 4);

    add(&r, "7", values, (double[]){10, 10}, 2);
    scene_end(&r);
    write_run(*state, "a", (double[]){10, 10}, 2);
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_READY);
    pairs_release(&p);
    p = scene_pairs(*state, "b", "b");
    assert_string_equal(p.all[0].key, KEY);
    pairs_release(&p);
}

/* A size that one launch measured twice is one launch's word, of which the greater steal counts. */
TEST_WITH(test_a_launch_counts_once, scene_make, scene_remove)
{
    static const double steals[] = {8, 1, NAN, 3};
    struct scene_run r = scene_begin(*state, "a", "memory", params, 4);
    struct row row;

    for (uint64_t i = 0; i < 4; i++) {
        fake_row_init(&row, "1", 1 + i / 2, "bandwidth", "GB/s", 10 + (double)i);
        row.ledger.steal_percent = steals[i];
        scene_row(&r, &row, triad);
    }
    scene_launch(&r, "done", 2, "1", 1, "");
    scene_launch(&r, "done", 2, "1", 2, "");
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "a");
    assert_int_equal(p.all[0].decide.a.runs[0].n, 2);
    assert_float_equal(p.all[0].decide.a.runs[0].values[0], 10.5, 1e-5);
    assert_float_equal(p.all[0].decide.a.runs[0].values[1], 12.5, 1e-5);
    const double *steal = steal_of_launches(&p.report.pool, &p.all[0], 0, 2);
    assert_float_equal(steal[0], 8, 1e-9);
    assert_float_equal(steal[1], 3, 1e-9);
    pairs_release(&p);
}

static void lose(struct row *row, const char *status)
{
    row->status = status;
    row->reason = "for this reason";
    if (strcmp(status, "wrong") != 0) {
        row->value = NAN;
        row->samples = 0;
    }
    if (!strcmp(status, "failed"))
        row->metric = row->unit = "";
}

/* What B lost is told with its reason, and whether it failed; of A it is no failure of B. */
TEST_WITH(test_lost, scene_make, scene_remove)
{
    static const struct {
        const char *status, *launch; /* status: of its row, NULL: only the plan tells of it */
        bool failed;
    } cases[] = {{"skipped", "skip", false},
                 {"failed", "fail", true},
                 {"wrong", "fail", true},
                 {NULL, "late", true},
                 {NULL, "todo", false}};

    write_run(*state, "a", (double[]){10, 10}, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct scene_run r = scene_begin(*state, "b", "memory", params, 4);
        struct row row;

        for (uint64_t k = 1; k < 3; k++) {
            fake_row_init(&row, "1", k, "bandwidth", "GB/s", 10);
            if (cases[i].status) {
                lose(&row, cases[i].status);
                scene_row(&r, &row, triad);
            }
            scene_launch(&r, cases[i].launch, !!cases[i].status, "1", k, "");
        }
        scene_end(&r);
        for (int turned = 0; turned < 2; turned++) {
            struct pairs p = scene_pairs(*state, turned ? "b" : "a", turned ? "a" : "b");

            assert_int_equal(p.n, 1);
            assert_int_equal(p.all[0].state, turned ? PAIR_LOST_A : PAIR_LOST_B);
            assert_int_equal(p.all[0].failed_b, !turned && cases[i].failed);
            assert_int_equal(!strstr(p.all[0].reason, "for this reason"), !cases[i].status);
            assert_string_equal(p.all[0].c->metric, "bandwidth");
            pairs_release(&p);
        }
    }
}

TEST_WITH(test_no_such_case, scene_make, scene_remove)
{
    static const char *const other[] = {"read", "", "65536", "L2"};
    struct scene_run r = scene_begin(*state, "b", "memory", params, 4);

    write_run(*state, "a", (double[]){10, 10}, 2);
    add(&r, "2", other, (double[]){10, 10}, 2);
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 2);
    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_int_equal(p.all[1].state, PAIR_LOST_A);
    assert_false(p.all[0].failed_b);
    pairs_release(&p);
    write_run(*state, "b", NULL, 0); /* nothing at all */
    p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.n, 1);
    assert_int_equal(p.all[0].state, PAIR_LOST_B);
    assert_int_equal(p.overall.n_judged, 0);
    assert_int_equal(p.overall.decision, DECISION_INCONCLUSIVE);
    pairs_release(&p);
}

/* One of several launches that failed is told, and the others are compared. */
TEST_WITH(test_some_failed, scene_make, scene_remove)
{
    struct scene_run r = scene_begin(*state, "b", "memory", params, 4);
    struct row row;

    write_run(*state, "a", (double[]){10, 10}, 2);
    add(&r, "1", triad, (double[]){10, 11}, 2);
    fake_row_init(&row, "1", 3, "bandwidth", "GB/s", 99);
    lose(&row, "wrong");
    scene_row(&r, &row, triad);
    scene_launch(&r, "fail", 1, "1", 3, "");
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "b");
    assert_int_equal(p.all[0].state, PAIR_READY);
    assert_int_equal(p.all[0].decide.b.runs[0].n, 2);
    assert_true(p.all[0].failed_b);
    assert_non_null(strstr(p.all[0].reason, "1 of 3"));
    pairs_release(&p);
}

/* The smaller of both margins holds: a run does not loosen what it is held to. */
TEST_WITH(test_margin, scene_make, scene_remove)
{
    static const struct {
        const char *a, *b;
        bool forced;
        double margin;
    } cases[] = {{"", "", false, 0.05},         {"0.1", "0.2", false, 0.1},
                 {"", "0.2", false, 0.05},      {"0.1", "", false, 0.05},
                 {"0.02", "0.01", false, 0.01}, {"0.1", "0.2", true, 0.05},
                 {"", "nan", false, 0.05},      {"", "7", false, 0.05}};
    char error[512];
    struct pairs p;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct pairs_options asked = {.margin = 0.05, .forced = cases[i].forced};

        for (int side = 0; side < 2; side++) {
            struct scene_run r = scene_begin(*state, side ? "b" : "a", "memory", params, 4);
            struct row row;

            fake_row_init(&row, "1", 1, "bandwidth", "GB/s", 10);
            scene_row(&r, &row, triad);
            scene_launch(&r, "done", 1, "1", 1, side ? cases[i].b : cases[i].a);
            scene_end(&r);
        }
        assert_int_equal(scene_load(&p, *state, "a", "b", &asked, error, sizeof(error)), 0);
        assert_float_equal(p.all[0].decide.margin, cases[i].margin, 1e-6);
        pairs_release(&p);
    }
    assert_int_equal(scene_load(&p, *state, "a", "b", &(struct pairs_options){.margin = -1}, error,
                                sizeof(error)),
                     -EINVAL);
    pairs_release(&p);
}

/* Sorted by their start, and each a run of its own, however many there are; what is no run is passed by. */
TEST_WITH(test_folder_of_runs, scene_make, scene_remove)
{
    enum { MANY = 20 }; /* more than one page of a report takes */
    char path[128], name[32], text[128];

    snprintf(path, sizeof(path), "%s/many", ((struct fake_run *)*state)->path);
    mkdir(path, 0755);
    scene_file(*state, "many/not-a-run", "notes.txt", "x");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many/%d", i);
        write_run(*state, name, (double[]){10 + (i * 7) % MANY, 10}, 2);
        snprintf(text, sizeof(text),
                 "{\"schema\": 3, \"run\": \"%s\", \"started_utc\": \"2026-01-%02dT00:00:00Z\"}",
                 name, 1 + (i * 7) % MANY);
        scene_file(*state, name, "run.json", text);
    }
    write_run(*state, "b", (double[]){10, 10}, 2);
    struct pairs p = scene_pairs(*state, "many", "b");

    assert_int_equal(p.n_a, MANY);
    assert_int_equal(p.n_b, 1);
    assert_int_equal(p.all[0].decide.a.n, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_float_equal(p.all[0].decide.a.runs[i].values[0], 10 + (double)i, 1e-5);
    pairs_release(&p);
}

static void refuse(const struct fake_run *root, const char *a, int err, const char *says)
{
    struct pairs p;
    char error[512];

    write_run(root, "good", (double[]){10, 10}, 2);
    for (int turned = 0; turned < 2; turned++) {
        int got = scene_load(&p, root, turned ? "good" : a, turned ? a : "good", &options, error,
                             sizeof(error));
        if (got != err || !strstr(error, says))
            fail_msg("%d: %s", got, error);
        pairs_release(&p);
    }
}

/* Each is refused with the file, and the line where it is one's. */
TEST_WITH(test_damaged, scene_make, scene_remove)
{
    static const struct {
        const char *file, *text;
        int err;
        const char *says;
    } cases[] = {{"run.json", "{\"run\": \"one\"}", -EPROTO, "schema"},
                 {"run.json", "{\"schema\": \"1\"}", -EPROTO, "schema"},
                 {"run.json", "{\"schema\": 999}", -EPROTO, "999"},
                 {"run.json", "{\"schema\": 3,\n", -EBADMSG, "line 2"},
                 {"run.json", "[1]\n", -EBADMSG, "a/run.json"},
                 {"run.json", "", -EBADMSG, "a/run.json"},
                 {"memory.csv", "op,size\na,b\na,\"b\nc,d,e\n", -EBADMSG, "a/memory.csv"}};
    struct fake_run *root = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        write_run(root, "a", (double[]){10, 10}, 2);
        scene_file(root, "a", cases[i].file, cases[i].text);
        refuse(root, "a", cases[i].err, cases[i].says);
    }
    write_run(root, "a", (double[]){10, 10}, 2);
    fake_run_append(root, "a/memory.csv", "one,cell,too,few\nand a line behind it\n");
    refuse(root, "a", -EBADMSG, "line 4");
}

/* What was measured, and is no number or 0, is a failure of B: it is lost, or not decided. */
TEST_WITH(test_values_that_decide_nothing, scene_make, scene_remove)
{
    static const struct {
        double a[3], b[3];
        size_t n;
        enum pair_state state;
        bool failed;
        enum decide_obstacle obstacle;
    } cases[] = {{{10, 10}, {NAN, NAN}, 2, PAIR_LOST_B, true, OBSTACLE_NONE},
                 {{10, 10, 10}, {0, 10, 0}, 3, PAIR_READY, true, OBSTACLE_BAD_VALUE},
                 {{0, 10, 10}, {10, 10, 10}, 3, PAIR_READY, false, OBSTACLE_BAD_VALUE},
                 {{10}, {5}, 1, PAIR_READY, false, OBSTACLE_ONE_LAUNCH}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        write_run(*state, "a", cases[i].a, cases[i].n);
        write_run(*state, "b", cases[i].b, cases[i].n);
        struct pairs p = scene_pairs(*state, "a", "b");

        assert_int_equal(p.all[0].state, cases[i].state);
        assert_int_equal(p.all[0].failed_b, cases[i].failed);
        assert_int_equal(p.all[0].decide.decision, DECISION_INCONCLUSIVE);
        assert_int_equal(p.all[0].decide.obstacle, cases[i].obstacle);
        assert_int_equal(p.overall.decision, DECISION_INCONCLUSIVE);
        pairs_release(&p);
    }
}

/* Launches of case 1: the way each took ('r' RDMA, 's' sockets, 'n' not proved), in capitals where others took the
 * CPU. What the evidence says is for people: here it is wrong. */
static void write_ways(const struct fake_run *root, const char *name, const char *ways)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 4);
    struct row row;

    for (uint64_t i = 1; ways[i - 1]; i++) {
        bool taken = ways[i - 1] < 'a';
        char way = (char)(ways[i - 1] | 0x20);

        fake_row_init(&row, "1", i, "bandwidth", "GB/s", taken ? 5 : 10);
        row.carrier = way == 's' ? "sockets" : way == 'r' ? "rdma" : "";
        row.evidence = "own: lo sent 12.4 GB, 100 % of the bytes, peer: lo received 12.4 GB";
        row.ledger.steal_percent = taken ? 30 : 0;
        scene_row(&r, &row, triad);
        scene_launch(&r, "done", 1, "1", i, "");
    }
    scene_end(&r);
}

/* Neighbours that take the CPU move no bytes to another path: what the launches that are left out prove still
 * holds. */
TEST_WITH(test_another_path_is_refused, scene_make, scene_remove)
{
    static const struct {
        const char *a, *b;
        double limit;
        enum pair_state state;
        const char *taken, *differs;
    } known[] = {
        {"rr", "ss", 0.02, PAIR_REFUSED, "", ""},
        {"rr", "nn", 0.02, PAIR_READY, "", "path RDMA against not proved"},
        {"rr", "SS", 0.02, PAIR_REFUSED, "2 of 2 launches of B (30 %)", ""}, /* none of B is left */
        {"SS", "rr", 0.02, PAIR_REFUSED, "2 of 2 launches of A (30 %)", ""},
        {"RR", "SS", 0.02, PAIR_REFUSED, "2 of 2 launches of A (30 %), 2 of 2 launches of B (30 %)",
         ""},
        {"rr", "rrS", 0.02, PAIR_REFUSED, "1 of 3 launches of B (30 %)", ""}, /* in that alone */
        {"rr", "ssS", 0.02, PAIR_REFUSED, "1 of 3 launches of B (30 %)", ""}, /* and in others */
        {"rr", "ssR", 0.02, PAIR_REFUSED, "1 of 3 launches of B (30 %)", ""}, /* in others alone */
        {"rr", "SS", 0, PAIR_REFUSED, "", ""},
        {"rr", "RR", 0.02, PAIR_TAKEN, "2 of 2 launches of B (30 %)", ""},
        {"rr", "rrR", 0.02, PAIR_READY, "1 of 3 launches of B (30 %)", ""}};

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        const struct pairs_options asked = {.margin = 0.05, .steal_limit = known[i].limit};
        struct pairs p;
        char error[512];

        write_ways(*state, "a", known[i].a);
        write_ways(*state, "b", known[i].b);
        assert_int_equal(scene_load(&p, *state, "a", "b", &asked, error, sizeof(error)), 0);
        assert_int_equal(p.n, 1);
        assert_string_equal(p.all[0].taken, known[i].taken);
        if (p.all[0].state != known[i].state)
            fail_msg("'%s' against '%s': state %d", known[i].a, known[i].b, (int)p.all[0].state);
        if (known[i].state == PAIR_REFUSED) {
            assert_non_null(strstr(p.all[0].reason, "path"));
            assert_int_equal(p.overall.n_judged, 0);
        } else {
            assert_string_equal(p.all[0].differs, known[i].differs);
        }
        pairs_release(&p);
    }
}

static void write_steal(const struct fake_run *root, const char *name, double percent)
{
    struct scene_run r = scene_begin(root, name, "memory", params, 4);
    struct row row;

    fake_row_init(&row, "1", 1, "bandwidth", "GB/s", 10);
    row.ledger.steal_percent = percent;
    scene_row(&r, &row, triad);
    scene_launch(&r, "done", 1, "1", 1, "");
    scene_end(&r);
}

/* By hand: with 4 % stolen of B the interval, given back, is 1/0.96 times as high; of A, 0.96 times. Within the margin lies
 * what is in 0.95 to 1/0.95. */
TEST_WITH(test_stolen_time_explains, scene_make, scene_remove)
{
    static const struct {
        double a, b; /* % stolen */
        enum decision decision;
        double low, high;
        bool explained;
    } known[] = {
        {0, 4, DECISION_WORSE, 0.8, 0.97, true},
        {0, 4, DECISION_WORSE, 0.8, 0.95, false},
        {4, 0, DECISION_WORSE, 0.8, 0.999, false},
        {4, 0, DECISION_BETTER, 1.03, 1.2, true},
        {4, 0, DECISION_BETTER, 1.05, 1.2, false},
        {0, 4, DECISION_BETTER, 1.001, 1.2, false},
        {0, 4, DECISION_EQUIVALENT, 0.96, 1.02, true},
        {0, 4, DECISION_EQUIVALENT, 0.96, 1.01, false},
        {4, 0, DECISION_EQUIVALENT, 0.98, 1.05, true},
        {4, 0, DECISION_EQUIVALENT, 0.995, 1.05, false},
        {4, 4, DECISION_EQUIVALENT, 0.951, 1.05, false},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        write_steal(*state, "a", known[i].a);
        write_steal(*state, "b", known[i].b);
        for (int as_measured = 0; as_measured < 2; as_measured++) {
            struct pairs p = scene_pairs(*state, "a", "b");
            struct decide_case *c = &p.all[0].decide;

            p.as_measured = as_measured;
            c->decision = known[i].decision;
            c->low = known[i].low;
            c->high = known[i].high;
            pairs_disturb(&p);
            bool explained = known[i].explained && !as_measured;
            if (p.all[0].explained != explained ||
                c->decision != (explained ? DECISION_INCONCLUSIVE : known[i].decision))
                fail_msg("case %zu: explained %d, decision %d", i, p.all[0].explained,
                         (int)c->decision);
            assert_int_equal(p.overall.decision, c->decision);
            pairs_release(&p);
        }
    }
}

/* Another cache level is another quantity; another kernel is told beside it. */
TEST_WITH(test_other_quantities_are_refused, scene_make, scene_remove)
{
    static const char *const names[] = {"op", "level_used", "kernel"};
    static const char *const cases[][6] = {
        {"memory", "L2", "", "DRAM", "", "L2 against DRAM"},
        {"gemm", "", "SkylakeX", "", "Haswell", "SkylakeX against Haswell"}};

    for (size_t i = 0; i < 2; i++) {
        for (int side = 0; side < 2; side++) {
            const char *const values[] = {"x", cases[i][1 + 2 * side], cases[i][2 + 2 * side]};
            struct scene_run r = scene_begin(*state, side ? "b" : "a", cases[i][0], names, 3);
            struct row row;

            fake_row_init(&row, "1", 1, "bandwidth", "GB/s", 1);
            scene_row(&r, &row, values);
            scene_launch(&r, "done", 1, "1", 1, "");
            scene_end(&r);
        }
        struct pairs p = scene_pairs(*state, "a", "b");

        assert_int_equal(p.n, 1);
        assert_int_equal(p.all[0].state, i ? PAIR_READY : PAIR_REFUSED);
        assert_non_null(strstr(i ? p.all[0].differs : p.all[0].reason, cases[i][5]));
        pairs_release(&p);
    }
}

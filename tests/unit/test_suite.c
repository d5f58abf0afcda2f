/* SPDX-License-Identifier: Apache-2.0 */
/* Suites and plans: what is accepted, what is refused and how, and the order of the launches. */
#include "harness/plan/plan.h"
#include "harness/plan/suite.h"
#include "tests/tools/fake_bench.h"
#include "tests/unit/unit.h"

static void parse(const char *text, struct suite *suite)
{
    char error[512] = "";

    if (suite_parse("t.yaml", text, strlen(text), NULL, &fake_list, suite, error, sizeof(error)))
        fail_msg("refused: %s", error);
}

/* Which cases there are: of lists, ranges, defaults, the largest of them. */
TEST(test_cases)
{
    static const struct {
        const char *cases;
        size_t n, which;
        const char *arguments;
    } all[] = {
        {"\n  - bench: fake\n    op: [read, triad]\n    size: 1K..4K x2\n", 6, 1,
         "--op read --size 2048"},
        {"\n  - bench: fake\n    op: [read, triad]\n    size: 1K..4K x2\n", 6, 5,
         "--op triad --size 4096"},
        {" [{bench: fake, size: 4K}]\n", 2, 1,
         "--op write --size 4096"}, /* op: read,write by default */
        {" [{bench: fake, op: largest, size: largest}]\n", 1, 0, "--op write --size 4096"},
        {" [{bench: fake, op: largest, size: largest x4}]\n", 1, 0, "--op write --size 16384"},
        {" [{bench: fake, op: read, check: true}]\n", 1, 0, "--op read --check=yes"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct suite s;
        char text[256];

        snprintf(text, sizeof(text), "suite: a\ncases:%s", all[i].cases);
        parse(text, &s);
        assert_int_equal(s.n, all[i].n);
        assert_string_equal(s.cases[all[i].which].arguments, all[i].arguments);
        assert_true(isnan(s.cases[0].margin));
        suite_release(&s);
    }
}

TEST(test_defaults_and_overrides)
{
    struct suite s;
    parse("suite: a\ndefaults: {repeat: 5, timeout: 7s, budget: 100ms, margin: 2%}\ncases:\n"
          "  - {bench: fake, op: read}\n  - {bench: fake, op: read, repeat: 2, timeout: 1m, "
          "budget: 1s}\n",
          &s);
    assert_true(s.n == 2 && s.cases[0].line == 4);
    assert_true(s.cases[0].repeats == 5 && s.cases[0].timeout_ns == 7000000000ull);
    assert_true(fabs(s.cases[0].margin - 0.02) < 1e-12);
    assert_string_equal(s.cases[0].arguments, "--op read --budget 100ms");
    assert_true(s.cases[1].repeats == 2 && s.cases[1].timeout_ns == 60000000000ull);
    assert_string_equal(s.cases[1].arguments, "--op read --budget 1s");
    suite_release(&s);
}

TEST(test_refusals)
{
    static const char *const all[][3] = {
        {"bench: fakk", "3", "'fake'"},
        {"bench: fake\n    sice: 4K", "4", "'size'"},
        {"bench: fake\n    op: reed", "4", "triad"},
        {"bench: fake\n    op: largest x4", "4", "largest x4"},
        {"bench: fake\n    size: largest xx", "4", "largest xx"},
        {"bench: fake\n    size: 4K..1K x2", "4", "range"},
        {"bench: fake\n    threads: 4096", "4", "1024"},
        {"bench: fake\n    threads: []", "4", "empty"},
        {"bench: fake\n    check: [yes, no]", "4", "yes or no"},
        {"bench: fake\n    csv: yes", "4", "'csv'"},
        {"bench: fake\n    margin: 200%", "4", "margin"},
        {"bench: fake\n    timeout: never", "4", "time"},
        {"op: read", "3", "bench"},
        {"bench: fake\n    shapes: nothing", "4", "nothing"},
        {"bench: fake\n    shape: 'a b'", "4", "blank"},
        {"{bench: fake, size: 1..60000+1, threads: 1..1024+1}", "3", "100000"},
        {NULL, "suite: a\ncases: []\n", "cases"},
        {NULL, "suite: a\n", "cases"},
        {NULL, "cases: [{bench: fake}]\n", "suite"},
        {NULL, "suite: a\ndefaults: {thread: 4}\ncases: [{bench: fake}]\n", "'thread'"}};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct suite suite;
        char error[512] = "", text[512], at[16] = "t.yaml";

        snprintf(text, sizeof(text), all[i][0] ? "suite: a\ncases:\n  - %s\n" : "%s",
                 all[i][0] ? all[i][0] : all[i][1]);
        if (all[i][0])
            snprintf(at, sizeof(at), "t.yaml:%s:", all[i][1]);
        if (!suite_parse("t.yaml", text, strlen(text), NULL, &fake_list, &suite, error,
                         sizeof(error)) ||
            suite.n)
            fail_msg("accepted: %s", text);
        if (!strstr(error, at) || !strstr(error, all[i][2]))
            fail_msg("message '%s' lacks '%s' or '%s'", error, at, all[i][2]);
    }
}

/* Each round has each case once; two rounds, and two seeds, are shuffled differently. */
TEST(test_rounds)
{
    struct suite s;
    struct plan a, b;
    unsigned seen[3][21] = {{0}};
    int same_as_sorted = 1, same_rounds = 1, same_seeds = 1;
    parse("suite: a\ncases:\n  - {bench: fake, op: read, threads: 1..20+1, repeat: 2}\n", &s);
    assert_int_equal(plan_make(&s, 1, NULL, &a), 0);
    assert_int_equal(plan_make(&s, 2, NULL, &b), 0);
    assert_int_equal(a.n, 40);
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(a.launches[i].repeat, i / 20 + 1);
        assert_int_equal(seen[a.launches[i].repeat][a.launches[i].case_number]++, 0);
    }
    for (unsigned i = 0; i < 20; i++) {
        same_as_sorted &= a.launches[i].case_number == i + 1;
        same_rounds &= a.launches[i].case_number == a.launches[i + 20].case_number;
        same_seeds &= a.launches[i].case_number == b.launches[i].case_number;
    }
    assert_false(same_as_sorted || same_rounds || same_seeds);
    plan_release(&a);
    plan_release(&b);
    suite_release(&s);
}

TEST(test_plan_text_comes_back)
{
    struct suite s;
    struct plan plan, back;
    struct table t;
    char *text = NULL, error[256], mark[PLAN_MARK_BYTES + 1];
    size_t size;
    parse("suite: a\ncases:\n  - {bench: fake, size: 1K..4K x2, repeat: 2, timeout: 1500ms}\n", &s);
    assert_int_equal(plan_make(&s, 9, NULL, &plan), 0);
    plan.launches[3].state = LAUNCH_SKIP;
    plan.launches[3].rows = 17;
    plan.launches[1].turn = TURN_FIRST;
    plan.launches[2].turn = TURN_SECOND;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(plan_print(out, &plan), 0);
    fclose(out);
    assert_int_equal(table_parse("plan.csv", text, size, &t, error, sizeof(error)), 0);
    assert_int_equal(plan_from_table(&t, &back, error, sizeof(error)), 0);
    assert_int_equal(back.n, plan.n);
    for (size_t i = 0; i < plan.n; i++) {
        const struct launch *l = &back.launches[i];
        assert_string_equal(l->arguments, plan.launches[i].arguments);
        assert_true(l->timeout_ns == 1500000000ull);
        assert_true(l->mark_at == plan.launches[i].mark_at);
        assert_int_equal(l->turn, plan.launches[i].turn);
        plan_mark_text(l, mark);
        assert_memory_equal(
            text + l->mark_at, mark,
            PLAN_MARK_BYTES); /* what is overwritten in place is what stands there */
    }
    assert_int_equal(back.launches[3].state, LAUNCH_SKIP);
    assert_int_equal(back.launches[3].rows, 17);
    table_release(&t);
    free(text);
    plan_release(&plan);
    plan_release(&back);
    suite_release(&s);
}

TEST(test_turns_are_read_whole_or_not_at_all)
{
    static const char plan[] = "state,rows,order,case,repeat,bench,arguments,timeout_s,turn\n"
                               "todo,0000,1,1,1,fake,,60,%s\n";
    static const struct {
        const char *text;
        int err;
    } all[] = {{"first", 0}, {"second", 0}, {"", 0}, {"third", -EBADMSG}, {"1", -EBADMSG}};
    char text[256], error[256];
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct plan back = {0};
        struct table t;

        snprintf(text, sizeof(text), plan, all[i].text);
        assert_int_equal(table_parse("plan.csv", text, strlen(text), &t, error, sizeof(error)), 0);
        assert_int_equal(plan_from_table(&t, &back, error, sizeof(error)), all[i].err);
        plan_release(&back);
        table_release(&t);
    }
}

/* A case that was measured is kept by what kept its launch: the key has what the command line had. */
TEST(test_only_alike)
{
    static const char key[] =
        "memory|device=host|memory_node=local|op=triad|size=65536|bandwidth|GB/s",
                      label[] = "memory triad 64 KiB: bandwidth",
                      command[] = "--device host --memory-node local --op triad --size 65536";
    static const char *const kept[] = {"memory",
                                       "op triad",
                                       "op=triad",
                                       "size 64K",
                                       "--size 64KiB",
                                       "memory*triad",
                                       "memory-node l",
                                       "copy|op triad",
                                       "mem*=triad|size=65536",
                                       "memory|device=h*",
                                       "",
                                       "triad 64 KiB"},
                             *const left[] = {"op read|size 8", "op=read",         "size 128K",
                                              "nothing|other",  "launch|op=triad", "op read|"};
    const struct only_case c = {.key = key, .label = label};
    for (size_t i = 0; i < 18; i++) {
        const char *only = i < 12 ? kept[i] : left[i - 12];
        if (i != 11 && plan_keeps(NULL, only, "memory", command) != (i < 12))
            fail_msg("'%s' and the command line", only);
        if (only_keeps((const char *const[]){only, NULL}, &c) != (i < 12))
            fail_msg("'%s' and the key", only);
    }
    assert_true(only_keeps(NULL, &c));
}

/* A name of a benchmark is that benchmark, though the pattern would be found elsewhere too. Plans have bytes; people write 64K, which holds for
 * what is a size, and for all of it. */
TEST(test_keeps)
{
    static struct opt options[] = {{.name = "size", .type = OPT_SIZE},
                                   {.name = "load-size", .type = OPT_SIZE},
                                   {.name = "streams", .type = OPT_U64},
                                   {.name = "model", .type = OPT_STRING},
                                   {.name = NULL}};
    static struct bench_info infos[] = {{.name = "copy", .options = options},
                                        {.name = "net", .options = options}};
    static const struct bench_list list = {.benches = infos, .n = 2, .problems = ""};
    static const struct {
        const char *only, *bench, *arguments;
        bool keep;
    } cases[] = {{NULL, "net", "--op copy", true},
                 {"copy", "copy", "--size 8", true},
                 {"copy", "net", "--op copy", false},
                 {"op copy", "net", "--op copy", true},
                 {"net*copy", "net", "--op copy", true},
                 {"copy|op read", "net", "--op read", true},
                 {"copy|op read", "net", "--op copy", false},
                 {"nothing", "net", "--op copy", false},
                 {"*size 64K", "net", "--size 65536", true},
                 {"size 0.5M", "net", "--size 524288", true},
                 {"size 1M*streams 2", "net", "--size 1048576 --streams 2", true},
                 {"1G|size 8B", "net", "--size 8", true},
                 {"--size 64K", "net", "--load-size 65536", false},
                 {"*size 64K", "net", "--size 655360", false},
                 {"*size 64K", "net", "--size 165536", false},
                 {"1K", "net", "--size 8 --streams 1024", false},
                 {"model a-64K", "net", "--model a-64K", true},
                 {"model a-64K", "net", "--model a-65536", false},
                 {"size [64K]*", "net", "--size 4096", true},
                 {"size [64K]*", "net", "--size 8192", false},
                 {"size 64K*load-size 1M", "net", "--size 1048576 --load-size 65536", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (plan_keeps(&list, cases[i].only, cases[i].bench, cases[i].arguments) != cases[i].keep)
            fail_msg("--only '%s' on '%s %s'", cases[i].only, cases[i].bench, cases[i].arguments);
    assert_true(plan_keeps(NULL, "copy", "memory", "--op copy")); /* no benchmarks are known */
}

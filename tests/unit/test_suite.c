/* SPDX-License-Identifier: Apache-2.0 */
/* Suites and plans: what is accepted, what is refused and how, and the order of the launches. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/plan/plan.h"
#include "harness/plan/suite.h"
#include "tests/tools/fake_bench.h"

static void parse(const char *text, struct suite *suite)
{
    char error[512] = "";

    if (suite_parse("t.yaml", text, strlen(text), NULL, &fake_list, suite, error, sizeof(error)))
        fail_msg("refused: %s", error);
}

static void refuse(const char *text, const char *wanted, const char *also)
{
    struct suite suite;
    char error[512] = "";

    if (!suite_parse("t.yaml", text, strlen(text), NULL, &fake_list, &suite, error, sizeof(error)))
        fail_msg("accepted: %s", text);
    if (!strstr(error, wanted) || !strstr(error, also))
        fail_msg("message '%s' lacks '%s' or '%s'", error, wanted, also);
    assert_int_equal(suite.n, 0);
}

static void test_combinations(void **state)
{
    struct suite s;

    (void)state;
    parse("suite: a\ncases:\n  - bench: fake\n    op: [read, triad]\n    size: 1K..4K x2\n", &s);
    assert_int_equal(s.n, 6);
    assert_string_equal(s.cases[0].arguments, "--op read --size 1024");
    assert_string_equal(s.cases[1].arguments, "--op read --size 2048");
    assert_string_equal(s.cases[5].arguments, "--op triad --size 4096");
    assert_int_equal(s.cases[0].line, 3);
    suite_release(&s);
}

static void test_default_lists_become_cases(void **state)
{
    struct suite s;

    (void)state;
    parse("suite: a\ncases: [{bench: fake, size: 4K}]\n", &s);
    assert_int_equal(s.n, 2); /* op: read,write by default */
    assert_string_equal(s.cases[1].arguments, "--op write --size 4096");
    suite_release(&s);
}

static void test_defaults_and_overrides(void **state)
{
    struct suite s;

    (void)state;
    parse("suite: a\ndefaults: {repeat: 5, timeout: 7s, budget: 100ms, margin: 2%}\ncases:\n"
          "  - {bench: fake, op: read}\n  - {bench: fake, op: read, repeat: 2, timeout: 1m, "
          "budget: 1s}\n",
          &s);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.cases[0].repeats, 5);
    assert_true(s.cases[0].timeout_ns == 7000000000ull);
    assert_true(fabs(s.cases[0].margin - 0.02) < 1e-12);
    assert_string_equal(s.cases[0].arguments, "--op read --budget 100ms");
    assert_int_equal(s.cases[1].repeats, 2);
    assert_true(s.cases[1].timeout_ns == 60000000000ull);
    assert_string_equal(s.cases[1].arguments, "--op read --budget 1s");
    suite_release(&s);
}

static void test_largest(void **state)
{
    struct suite s;

    (void)state;
    parse("suite: a\ncases: [{bench: fake, op: largest, size: largest}]\n", &s);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.cases[0].arguments, "--op write --size 4096");
    suite_release(&s);
}

/* Four times the last size; of what is no size the words say nothing. */
static void test_largest_times(void **state)
{
    struct suite s;

    (void)state;
    parse("suite: a\ncases: [{bench: fake, op: largest, size: largest x4}]\n", &s);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.cases[0].arguments, "--op write --size 16384");
    suite_release(&s);
    refuse("suite: a\ncases: [{bench: fake, op: largest x4}]\n", "t.yaml:2:", "largest x4");
    refuse("suite: a\ncases: [{bench: fake, size: largest xx}]\n", "t.yaml:2:", "largest xx");
}

/* Each fourth from the last back, in the order in which they stand; of few values the last is left. */
static void test_coarse(void **state)
{
    static const char *const wanted[] = {"--size 2048", "--size 32768", "--size 524288"};
    struct bench_info bench = fake_list.benches[0];
    struct bench_list list = {.benches = &bench, .n = 1, .problems = ""};
    char error[512] = "", *defaults[8] = {NULL}, sizes[] = "1K,2K,4K,8K,16K,32K,64K,128K,256K,512K";
    static const char text[] = "suite: a\ncases: [{bench: fake, op: coarse, size: coarse}]\n";
    struct suite s;

    (void)state;
    for (size_t i = 0; bench.options[i].name; i++)
        defaults[i] = !strcmp(bench.options[i].name, "size") ? sizes : bench.defaults[i];
    bench.defaults = defaults;
    assert_int_equal(
        suite_parse("t.yaml", text, sizeof(text) - 1, NULL, &list, &s, error, sizeof(error)), 0);
    assert_int_equal(s.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(s.cases[i].arguments, wanted[i]));
        assert_non_null(strstr(s.cases[i].arguments, "--op write"));
    }
    suite_release(&s);
}

static void test_flags_and_margin(void **state)
{
    struct suite s;

    (void)state;
    parse("suite: a\ncases: [{bench: fake, op: read, check: true}]\n", &s);
    assert_string_equal(s.cases[0].arguments, "--op read --check=yes");
    assert_true(isnan(s.cases[0].margin));
    suite_release(&s);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("suite: a\ncases:\n  - bench: fakk\n", "t.yaml:3:", "did you mean 'fake'?");
    refuse("suite: a\ncases:\n  - bench: fake\n    sice: 4K\n",
           "t.yaml:4:", "did you mean 'size'?");
    refuse("suite: a\ncases:\n  - bench: fake\n    op: reed\n", "t.yaml:4:", "read, write, triad");
    refuse("suite: a\ncases:\n  - bench: fake\n    size: 4K..1K x2\n", "t.yaml:4:", "range");
    refuse("suite: a\ncases:\n  - bench: fake\n    threads: 4096\n", "t.yaml:4:", "1024");
    refuse("suite: a\ncases:\n  - bench: fake\n    threads: []\n", "t.yaml:4:", "empty");
    refuse("suite: a\ncases:\n  - bench: fake\n    check: [yes, no]\n", "t.yaml:4:", "yes or no");
    refuse("suite: a\ncases:\n  - bench: fake\n    csv: yes\n", "t.yaml:4:", "'csv'");
    refuse("suite: a\ncases:\n  - bench: fake\n    margin: 200%\n", "t.yaml:4:", "margin");
    refuse("suite: a\ncases:\n  - bench: fake\n    timeout: never\n", "t.yaml:4:", "time");
    refuse("suite: a\ncases:\n  - op: read\n", "t.yaml:3:", "bench");
    refuse("suite: a\ncases: []\n", "t.yaml:2:", "no cases");
    refuse("suite: a\n", "t.yaml", "cases");
    refuse("cases: [{bench: fake}]\n", "t.yaml", "suite");
    refuse("suite: a\ndefaults: {thread: 4}\ncases: [{bench: fake}]\n", "t.yaml:2:", "'thread'");
    refuse("suite: a\ncases: [{bench: fake, size: 1..60000+1, threads: 1..1024+1}]\n",
           "t.yaml:2:", "over 100000 cases");
    refuse("suite: a\ncases: [{bench: fake, shapes: nothing}]\n", "t.yaml:2:", "nothing");
    refuse("suite: a\ncases: [{bench: fake, shape: 'a b'}]\n", "t.yaml:2:", "blank");
}

static void test_rounds(void **state)
{
    struct suite s;
    struct plan plan;
    unsigned seen[3][7] = {{0}};

    (void)state;
    parse("suite: a\ncases:\n  - {bench: fake, size: 1K..4K x2, repeat: 2}\n", &s);
    assert_int_equal(plan_make(&s, 9, NULL, &plan), 0);
    assert_int_equal(plan.n, 12);
    for (size_t i = 0; i < plan.n; i++) {
        assert_int_equal(plan.launches[i].repeat, i / 6 + 1);
        seen[plan.launches[i].repeat][plan.launches[i].case_number]++;
    }
    for (unsigned repeat = 1; repeat <= 2; repeat++)
        for (unsigned number = 1; number <= 6; number++)
            assert_int_equal(seen[repeat][number], 1);
    plan_release(&plan);
    suite_release(&s);
}

/* The two rounds, and two seeds, are shuffled differently: 20 cases make an accident impossible. */
static void test_shuffled(void **state)
{
    struct suite s;
    struct plan a, b;
    int same_as_sorted = 1, same_rounds = 1, same_seeds = 1;

    (void)state;
    parse("suite: a\ncases:\n  - {bench: fake, op: read, threads: 1..20+1, repeat: 2}\n", &s);
    assert_int_equal(plan_make(&s, 1, NULL, &a), 0);
    assert_int_equal(plan_make(&s, 2, NULL, &b), 0);
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

static void test_plan_text_comes_back(void **state)
{
    struct suite s;
    struct plan plan, back;
    struct table t;
    char *text = NULL, error[256], mark[PLAN_MARK_BYTES + 1];
    size_t size;

    (void)state;
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

static void test_turns_are_read_whole_or_not_at_all(void **state)
{
    static const char plan[] = "state,rows,order,case,repeat,bench,arguments,timeout_s,turn\n"
                               "todo,0000,1,1,1,fake,,60,%s\n";
    static const struct {
        const char *text;
        int err;
    } all[] = {{"first", 0}, {"second", 0}, {"", 0}, {"third", -EBADMSG}, {"1", -EBADMSG}};
    char text[256], error[256];

    (void)state;
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

static bool keeps_measured(const char *only, const char *key, const char *label)
{
    const char *const patterns[] = {only, NULL};

    return only_keeps(patterns, &(struct only_case){.key = key, .label = label});
}

/* A case that was measured is kept by what kept its launch: the key has what the command line had. */
static void test_only_alike(void **state)
{
    static const char key[] =
        "memory|device=host|memory_node=local|op=triad|size=65536|bandwidth|GB/s",
                      label[] = "memory triad 64 KiB: bandwidth",
                      command[] = "--device host --memory-node local --op triad --size 65536";
    static const struct {
        const char *only;
        bool keep;
    } both[] = {{"memory", true},
                {"triad", true},
                {"op triad", true},
                {"op=triad", true},
                {"size 64K", true},
                {"--size 64KiB", true},
                {"size=65536", true},
                {"memory*triad", true},
                {"memory_node=local", true},
                {"memory-node l", true},
                {"copy|op triad", true},
                {"op read|size 8", false},
                {"op=read", false},
                {"size 128K", false},
                {"mem*=triad|size=65536", true},
                {"nothing|other", false},
                {"memory|device=h*", true},
                {"launch|op=triad", false},
                {"op read|", false},
                {"", true}};

    (void)state;
    for (size_t i = 0; i < sizeof(both) / sizeof(*both); i++) {
        if (plan_keeps(NULL, both[i].only, "memory", command) != both[i].keep)
            fail_msg("'%s' and the command line", both[i].only);
        if (keeps_measured(both[i].only, key, label) != both[i].keep)
            fail_msg("'%s' and the key", both[i].only);
    }
    assert_true(keeps_measured("triad 64 KiB", key, label));
    assert_true(keeps_measured(key, key, label));
    assert_true(only_keeps(NULL, &(struct only_case){.key = key}));
}

/* A name of a benchmark is that benchmark, though the pattern would be found elsewhere too. */
static void test_keeps(void **state)
{
    static struct bench_info infos[] = {{.name = "copy"}, {.name = "memory"}};
    static const struct bench_list list = {.benches = infos, .n = 2, .problems = ""};
    static const struct {
        const char *only, *bench, *arguments;
        bool keep;
    } cases[] = {
        {NULL, "memory", "--op copy", true},
        {"copy", "copy", "--size 8", true},
        {"copy", "memory", "--op copy", false},
        {"op copy", "memory", "--op copy", true}, /* no benchmark: a pattern */
        {"memory*copy", "memory", "--op copy", true},
        {"memory*copy", "memory", "--op read", false},
        {"copy|op read", "memory", "--op read", true},
        {"copy|op read", "copy", "--size 8", true},
        {"copy|op read", "memory", "--op copy", false},
        {"copy|memory", "memory", "--op copy", true},
        {"nothing", "memory", "--op copy", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (plan_keeps(&list, cases[i].only, cases[i].bench, cases[i].arguments) != cases[i].keep)
            fail_msg("--only '%s' on '%s %s'", cases[i].only, cases[i].bench, cases[i].arguments);
    assert_true(plan_keeps(NULL, "copy", "memory", "--op copy")); /* no benchmarks are known */
}

/* Plans have bytes; people write 64K, which holds for what is a size, and for all of it. */
static void test_keeps_sizes(void **state)
{
    static struct opt options[] = {{.name = "size", .type = OPT_SIZE},
                                   {.name = "load-size", .type = OPT_SIZE},
                                   {.name = "streams", .type = OPT_U64},
                                   {.name = "model", .type = OPT_STRING},
                                   {.name = NULL}};
    static struct bench_info infos[] = {{.name = "net", .options = options}};
    static const struct bench_list list = {.benches = infos, .n = 1, .problems = ""};
    static const struct {
        const char *only, *arguments;
        bool keep;
    } cases[] = {
        {"*size 64K", "--size 65536", true},
        {"*size 64KiB", "--size 65536", true},
        {"*size 65536", "--size 65536", true},
        {"64K", "--size 65536 --streams 2", true},
        {"size 1M*streams 2", "--size 1048576 --streams 2", true},
        {"size 0.5M", "--size 524288", true},
        {"1G|size 8B", "--size 8", true},
        {"--size 64K", "--load-size 65536", false},
        {"*size 64K", "--size 655360", false},
        {"*size 64K", "--size 6553", false},
        {"*size 64K", "--size 165536", false},
        {"streams 1K", "--size 8 --streams 1024", false}, /* no size */
        {"1K", "--size 8 --streams 1024", false},
        {"model a-64K", "--model a-64K", true}, /* as it stands */
        {"model a-64K", "--model a-65536", false},
        {"size [64K]*", "--size 4096", true}, /* a set of characters */
        {"size [64K]*", "--size 8192", false},
        {"size 64K*load-size 1M", "--size 65536 --load-size 1048576", true},
        {"size 64K*load-size 1M", "--size 1048576 --load-size 65536", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (plan_keeps(&list, cases[i].only, "net", cases[i].arguments) != cases[i].keep)
            fail_msg("--only '%s' on '%s'", cases[i].only, cases[i].arguments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_default_lists_become_cases),
        cmocka_unit_test(test_defaults_and_overrides),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_largest_times),
        cmocka_unit_test(test_coarse),
        cmocka_unit_test(test_flags_and_margin),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_plan_text_comes_back),
        cmocka_unit_test(test_turns_are_read_whole_or_not_at_all),
        cmocka_unit_test(test_only_alike),
        cmocka_unit_test(test_keeps),
        cmocka_unit_test(test_keeps_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

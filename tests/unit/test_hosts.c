/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts files, pairs of hosts, what a host answers before anything is measured, and what comes back from it. */
#include "harness/hosts/check.h"
#include "harness/hosts/end.h"
#include "harness/hosts/hosts.h"
#include "harness/hosts/launcher.h"
#include "harness/hosts/spread.h"
#include "harness/text.h"
#include "tests/unit/unit.h"

static struct hosts parsed(const char *text)
{
    struct hosts hosts;
    char error[512] = "";

    if (hosts_parse("f", text, &hosts, error, sizeof(error)))
        fail_msg("refused: %s", error);
    return hosts;
}

/* A line for each slot, as some schedulers have it, adds up. */
TEST(reads_what_mpirun_reads)
{
    static const struct {
        const char *name;
        unsigned slots;
    } want[] = {{"node1", 1},   {"node2", 4},   {"node3", 5},  {"me@node4", 1},
                {"fd00::5", 1}, {"fd00::6", 1}, {"fd00::7", 2}};
    struct hosts h = parsed("# a cluster\n\nnode1\n  node2 slots=4 max_slots=8 # two\r\nnode3:2\n"
                            "me@node4 address=10.0.0.4\n[fd00::5]\nfd00::6\nnode3 slots=3\n"
                            "[fd00::7]:2");

    assert_int_equal(h.n, 7);
    for (size_t i = 0; i < h.n; i++) {
        assert_string_equal(h.all[i].name, want[i].name);
        assert_int_equal(h.all[i].slots, want[i].slots);
    }
    assert_int_equal(h.all[1].line, 4);
    assert_string_equal(h.all[3].address, "10.0.0.4");
    assert_null(h.all[0].address);
    assert_int_equal(hosts_slots(&h), 15);
    hosts_release(&h);
}

TEST(refuses_what_it_does_not_know)
{
    static const struct {
        const char *text, *wanted; /* where, or a word of the reason */
    } cases[] = {
        {"a address=10.0.0.1\na address=10.0.0.2\n", "f:2: 'a'"},
        {"a\nb slot=2\n", "f:2: unknown word 'slot=2'"},
        {"a b\n", "f:1: unknown word 'b'"},
        {"a slots=x\n", "f:1: 'slots=x'"},
        {"a slots\n", "number"},
        {"a slots=0\n", "1 to 1024"},
        {"a:0\n", "1 to 1024"},
        {"a slots=1025\n", "1 to 1024"},
        {"a max_slots=x\n", "number"},
        {"\n\na address=\n", "f:3:"},
        {"-oProxyCommand=x\n", "f:1: '-oProxyCommand=x'"},
        {"a;reboot\n", "f:1:"},
        {"a$(x)\n", "f:1:"},
        {"a:ssh\n", "number of slots"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct hosts hosts;
        char error[512] = "";

        if (!hosts_parse("f", cases[i].text, &hosts, error, sizeof(error)))
            fail_msg("accepted: %s", cases[i].text);
        assert_says(error, cases[i].wanted);
        assert_int_equal(hosts.n, 0);
    }
    struct hosts most = parsed("a slots=1024\n");
    assert_int_equal(hosts_slots(&most), 1024);
    hosts_release(&most);
}

static struct bench_info group = {.name = "allreduce", .needs = "group"};
static struct bench_info peer = {.name = "net", .needs = "peer"}, alone = {.name = "memory"};

static struct suite suite_of(const struct bench_info *bench, enum suite_between between)
{
    struct suite s = {.cases = calloc(2, sizeof(*s.cases)), .n = 2};

    s.cases[0] = (struct suite_case){
        .bench = bench, .between = between, .arguments = strdup("--size 1"), .repeats = 2};
    s.cases[1] = (struct suite_case){.bench = &alone, .arguments = strdup("--op read")};
    return s;
}

/* The pairs of the first case; the other one stays as it is. */
TEST(spreads_over_pairs)
{
    static const struct {
        enum suite_between between;
        const char *hosts, *pairs;
    } cases[] = {
        {BETWEEN_RING, "a\nb\n", "a>b"},         {BETWEEN_RING, "a\nb\nc\n", "a>b b>c c>a"},
        {BETWEEN_FIRST, "a\nb\nc\n", "a>b a>c"}, {BETWEEN_ALL, "a\nb\nc\n", "a>b a>c b>c"},
        {BETWEEN_NONE, "a\nb\nc\n", ""},         {BETWEEN_SAMPLE, "a\nb\nc\n", "a>b a>c b>c"},
    };

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        struct hosts h = parsed(cases[k].hosts);
        struct suite s = suite_of(&peer, cases[k].between);
        char got[256] = "", error[128];

        assert_int_equal(spread_suite(&s, &h, 1, error, sizeof(error)), 0);
        for (size_t i = 0; i < s.n && s.cases[i].from; i++)
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s>%s", i ? " " : "",
                     s.cases[i].from, s.cases[i].to);
        assert_string_equal(got, cases[k].pairs);
        assert_ptr_equal(s.cases[s.n - 1].bench, &alone);
        assert_null(s.cases[s.n - 1].from);
        suite_release(&s);
        hosts_release(&h);
    }
}

/* Of a plan of all its cases. */
static struct spread counted(const struct suite *s, const struct hosts *h)
{
    struct launch launches[256] = {0};
    struct plan plan = {.launches = launches, .n = s->n};
    struct spread spread;

    assert_in_range(s->n, 1, 256);
    for (size_t i = 0; i < s->n; i++)
        launches[i].case_number = (unsigned)i + 1;
    spread_count(s, h, &plan, &spread);
    return spread;
}

TEST(a_group_is_one_case_over_all)
{
    struct hosts h = parsed("a\nb:2\nc\n");

    for (int over = 0; over < 2; over++) {
        struct suite s = suite_of(&group, over ? BETWEEN_SAMPLE : BETWEEN_NONE);
        char error[128];

        assert_int_equal(spread_has_groups(&s), over);
        assert_false(spread_has_pairs(&s));
        assert_int_equal(spread_suite(&s, &h, 1, error, sizeof(error)), 0);
        assert_int_equal(s.n, 2);
        if (over)
            assert_string_equal(s.cases[0].hosts, "a;b;c");
        else
            assert_null(s.cases[0].hosts);
        assert_null(s.cases[0].from);
        assert_null(s.cases[1].hosts);
        assert_int_equal(counted(&s, &h).over, over);
        suite_release(&s);
    }
    hosts_release(&h);
}

/* As many pairs as are counted, each bout's of different hosts, the ring among them. */
TEST(samples_many_hosts)
{
    static const struct {
        int hosts;
        unsigned pairs_least, pairs_most, bouts_most;
    } cases[] = {{2, 1, 1, 1},   {3, 3, 3, 3},       {6, 15, 15, 5},
                 {7, 21, 21, 7}, {34, 120, 140, 33}, {35, 120, 140, 35}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        char text[4096] = "", error[128];
        for (int i = 0; i < cases[c].hosts; i++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "n%d\n", i);
        struct hosts h = parsed(text);
        struct suite s = suite_of(&peer, BETWEEN_SAMPLE);
        assert_int_equal(spread_suite(&s, &h, 1, error, sizeof(error)), 0);
        assert_in_range(s.n - 1, cases[c].pairs_least, cases[c].pairs_most);
        struct spread spread = counted(&s, &h);
        assert_in_range(spread.bouts, 1, cases[c].bouts_most);
        assert_int_equal(spread.pairs, s.n - 1);
        assert_int_equal(spread.between, 1);
        assert_int_equal(spread.here, 1);
        for (size_t i = 0; i + 1 < s.n; i++) {
            const struct suite_case *a = &s.cases[i];
            assert_in_range(a->bout, 1, spread.bouts);
            for (size_t k = i + 1; k + 1 < s.n; k++) {
                const struct suite_case *b = &s.cases[k];
                assert_true(a->bout != b->bout ||
                            (strcmp(a->from, b->from) && strcmp(a->from, b->to) &&
                             strcmp(a->to, b->from) && strcmp(a->to, b->to)));
            }
        }
        suite_release(&s);
        hosts_release(&h);
    }
}

TEST(tells_a_build)
{
    char text[64];

    assert_string_equal(host_build("plumb-net 0.1.0 (abc-dirty, gcc 12, -O2)", text, sizeof(text)),
                        "0.1.0 (abc-dirty)");
    assert_string_equal(host_build("nonsense", text, sizeof(text)), "nonsense");
}

TEST(quotes_for_a_shell)
{
    struct argv w = {0};

    argv_split(&w, " ssh  -p 22 ");
    argv_add(&w, "it's");
    argv_add(&w, "");
    argv_add(&w, "$x");
    char *text = argv_quoted(&w, 1);
    assert_string_equal(text, "-p 22 'it'\\''s' '' '$x'");
    free(text);
    argv_release(&w);
}

/* ---- what a host answers; its clock is asked between 1000 and 1000.2 of ours */

static void answer(struct host *h, const char *begin, const char *end)
{
    json_t *first = json_loads(begin, 0, NULL), *last = json_loads(end, 0, NULL);

    assert_true(first && last);
    *h = (struct host){.name = "n1", .offset_s = NAN};
    h->programs = calloc(2, sizeof(*h->programs));
    h->programs[0] = (struct host_program){.bench = "net", .path = strdup("/x/plumb-net")};
    h->programs[1] = (struct host_program){.bench = "allreduce"};
    h->n_programs = 2;
    check_take(h, &(struct host_answer){first, last, 1000, 1000.2, NULL});
    json_decref(first);
    json_decref(last);
}

static void forget(struct host *h)
{
    struct hosts hosts = {.all = malloc(sizeof(*h)), .n = 1};

    h->name = NULL;
    hosts.all[0] = *h;
    hosts_release(&hosts);
}

TEST(takes_what_a_host_answers)
{
    static const char *const networks[] = {"eth0 10.0.0.1 1 Gb/s", "", "mlx5_0:1 100 Gb/s"};
    struct host h;
    char text[100];

    answer(&h, "{\"name\": \"n1.\\u001bx\", \"clock_s\": 1000.6}",
           "{\"programs\": [{\"status\": -2, \"version\": \"not found\"},"
           " {\"status\": 0, \"version\": \"plumb-allreduce 0.1 (abc, gcc)\"}],"
           " \"networks\": ["
           "{\"name\": \"eth0\", \"speed_mbps\": 1e3, \"addresses\": [\"10.0.0.1\", \"fd00::1\"]},"
           "{\"name\": \"veth1\", \"speed_mbps\": null, \"addresses\": []},"
           "{\"name\": \"mlx5_0:1\", \"speed_mbps\": 1e5, \"addresses\": []}]}");
    assert_string_equal(h.calls, "n1.?x");
    assert_null(h.problem);
    assert_float_equal(h.offset_s, 0.5, 1e-6);
    assert_float_equal(h.spread_s, 0.1, 1e-6);
    assert_null(h.programs[0].version);
    assert_non_null(strstr(host_problem(&h, "net"), "'/x/plumb-net'"));
    assert_null(host_problem(&h, "allreduce"));
    assert_string_equal(h.programs[1].version, "plumb-allreduce 0.1 (abc, gcc)");
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(check_network(json_array_get(h.networks, i), text, sizeof(text)),
                            networks[i]);
    forget(&h);
}

/* Apart by more than a second as far as the round trip lets it be told. */
TEST(tells_clocks_apart)
{
    static const struct {
        const char *said;
        double offset_s;
        bool differs;
    } cases[] = {
        {"1000.1", 0, false},    {"1001.19", 1.09, false}, {"1001.21", 1.11, true},
        {"998.99", -1.11, true}, {"1000", -0.1, false},    {"1002", 1.9, true},
        {"\"no\"", NAN, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[100];
        struct host h;

        snprintf(text, sizeof(text), "{\"name\": \"n1\", \"clock_s\": %s}", cases[i].said);
        answer(&h, text, "{}");
        if (isnan(cases[i].offset_s))
            assert_true(isnan(h.offset_s));
        else
            assert_float_equal(h.offset_s, cases[i].offset_s, 1e-6);
        assert_int_equal(h.problem != NULL, cases[i].differs);
        forget(&h);
    }
}

TEST(looks_who_is_there)
{
    static const struct {
        const char *rows, *wanted;
    } cases[] = {
        {"0,0,A,1,2,x\n1,0,A,2,2,x\n2,1,anything,3,2,x\n", NULL},
        {"0,0,A,1,2,x\n", "1 of 3"},
        {"0,0,A,1,2,x\n2,0,A,2,2,x\n1,1,B,3,2,x\n", "rank 1"},
        {"0,0,A,1,2,x\n1,1,B,2,2,x\n2,0,A,3,2,x\n", "rank 1 is on 'B'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct hosts_run run = {.hosts = parsed("a slots=2\nb\n"),
                                .launcher = launcher_find("mpirun")};
        char csv[512], error[256] = "";

        run.hosts.all[0].calls = strdup("A");
        snprintf(csv, sizeof(csv), "rank,node,host,pid,cpus,build\n%s", cases[i].rows);
        json_t *ranks;
        int err = check_who(&run, csv, strlen(csv), &ranks, error, sizeof(error));
        assert_int_equal(err, cases[i].wanted ? -EBADMSG : 0);
        assert_int_equal(json_array_size(ranks), cases[i].wanted ? 0 : 3);
        json_decref(ranks);
        assert_says(error, cases[i].wanted ? cases[i].wanted : "");
        hosts_release(&run.hosts);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts files, pairs of hosts, and what comes back from a host. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/hosts/end.h"
#include "harness/hosts/hosts.h"
#include "harness/hosts/launcher.h"
#include "harness/hosts/spread.h"
#include "harness/text.h"

static struct hosts parsed(const char *text)
{
    struct hosts hosts;
    char error[512] = "";

    if (hosts_parse("f", text, &hosts, error, sizeof(error)))
        fail_msg("refused: %s", error);
    return hosts;
}

static void refused(const char *text, const char *wanted)
{
    struct hosts hosts;
    char error[512] = "";

    if (!hosts_parse("f", text, &hosts, error, sizeof(error)))
        fail_msg("accepted: %s", text);
    if (!strstr(error, wanted))
        fail_msg("message '%s' lacks '%s'", error, wanted);
    assert_int_equal(hosts.n, 0);
}

static void reads_what_mpirun_reads(void **state)
{
    (void)state;
    struct hosts h = parsed("# a cluster\n\nnode1\n  node2 slots=4 max_slots=8 # two\r\nnode3:2\n"
                            "me@node4 address=10.0.0.4\n[fd00::5]\nfd00::6\n[fd00::7]:2");

    assert_int_equal(h.n, 7);
    static const char *const names[] = {"node1",   "node2",   "node3",  "me@node4",
                                        "fd00::5", "fd00::6", "fd00::7"};
    for (size_t i = 0; i < h.n; i++)
        assert_string_equal(h.all[i].name, names[i]);
    assert_int_equal(h.all[1].line, 4);
    assert_string_equal(h.all[3].address, "10.0.0.4");
    assert_null(h.all[0].address);
    static const unsigned slots[] = {1, 4, 2, 1, 1, 1, 2};
    for (size_t i = 0; i < h.n; i++)
        assert_int_equal(h.all[i].slots, slots[i]);
    assert_int_equal(hosts_slots(&h), 12);
    hosts_release(&h);
}

/* A line for each slot, as some schedulers have it, adds up. */
static void takes_a_host_once(void **state)
{
    (void)state;
    struct hosts h = parsed("a\nb\na slots=2\nb\n");

    assert_int_equal(h.n, 2);
    assert_int_equal(h.all[0].slots, 3);
    assert_int_equal(h.all[1].slots, 2);
    hosts_release(&h);
    refused("a address=10.0.0.1\na address=10.0.0.2\n", "f:2: 'a' has another address in line 1");
}

static void refuses_what_it_does_not_know(void **state)
{
    (void)state;
    refused("a\nb slot=2\n", "f:2: unknown word 'slot=2', did you mean 'slots'?");
    refused("a b\n", "f:1: unknown word 'b'");
    refused("a slots=x\n", "f:1: 'slots=x': slots is a number");
    refused("a slots\n", "slots is a number");
    refused("a slots=0\n", "f:1: 'slots=0': a host has 1 to 1024 slots");
    refused("a:0\n", "a host has 1 to 1024 slots");
    refused("a slots=4000\n", "a host has 1 to 1024 slots");
    refused("a max_slots=x\n", "max_slots is a number");
    refused("\n\na address=\n", "f:3: '' is no host");
    refused("-oProxyCommand=x\n", "f:1: '-oProxyCommand=x' is no host");
    refused("a;reboot\n", "is no host");
    refused("a$(x)\n", "is no host");
    refused("a:ssh\n", "after ':' comes a number of slots");
}

static struct bench_info group = {.name = "allreduce", .needs = "group"};
static struct bench_info peer = {.name = "net", .needs = "peer"}, alone = {.name = "memory"};

static struct suite suite_of(enum suite_between between)
{
    struct suite s = {.cases = calloc(2, sizeof(*s.cases)), .n = 2};

    s.cases[0] = (struct suite_case){
        .bench = &peer, .between = between, .arguments = strdup("--size 1"), .repeats = 2};
    s.cases[1] = (struct suite_case){.bench = &alone, .arguments = strdup("--op read")};
    return s;
}

/* "a>b b>c ...": the pairs of the first case. */
static void pairs(enum suite_between between, const char *text, const char *wanted)
{
    struct hosts h = parsed(text);
    struct suite s = suite_of(between);
    char got[256] = "", error[128];

    assert_int_equal(spread_suite(&s, &h, 1, error, sizeof(error)), 0);
    for (size_t i = 0; i < s.n && s.cases[i].from; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s>%s", i ? " " : "",
                 s.cases[i].from, s.cases[i].to);
    assert_string_equal(got, wanted);
    assert_ptr_equal(s.cases[s.n - 1].bench, &alone);
    assert_null(s.cases[s.n - 1].from);
    suite_release(&s);
    hosts_release(&h);
}

static void spreads_over_pairs(void **state)
{
    (void)state;
    pairs(BETWEEN_RING, "a\nb\n", "a>b");
    pairs(BETWEEN_RING, "a\nb\nc\n", "a>b b>c c>a");
    pairs(BETWEEN_FIRST, "a\nb\nc\n", "a>b a>c");
    pairs(BETWEEN_ALL, "a\nb\nc\n", "a>b a>c b>c");
    pairs(BETWEEN_NONE, "a\nb\nc\n", "");
    pairs(BETWEEN_SAMPLE, "a\nb\nc\n", "a>b a>c b>c");
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
    assert_int_equal(spread_count(s, h, &plan, &spread), 0);
    return spread;
}

static void a_group_is_one_case_over_all(void **state)
{
    (void)state;
    struct hosts h = parsed("a\nb:2\nc\n");
    struct suite s = suite_of(BETWEEN_SAMPLE);
    char error[128];

    s.cases[0].bench = &group;
    assert_true(spread_has_groups(&s));
    assert_false(spread_has_pairs(&s));
    assert_int_equal(spread_suite(&s, &h, 1, error, sizeof(error)), 0);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.cases[0].hosts, "a;b;c");
    assert_null(s.cases[0].from);
    assert_null(s.cases[1].hosts);
    assert_int_equal(counted(&s, &h).over, 1);
    suite_release(&s);

    s = suite_of(BETWEEN_NONE);
    s.cases[0].bench = &group;
    assert_false(spread_has_groups(&s));
    assert_int_equal(spread_suite(&s, &h, 1, error, sizeof(error)), 0);
    assert_null(s.cases[0].hosts);
    suite_release(&s);
    hosts_release(&h);
}

/* Every two meet once; in a bout nobody is in two pairs. */
static void every_two_meet_once(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 33; n++) {
        unsigned *bouts = spread_tournament(n), last = 0;
        assert_non_null(bouts);
        for (size_t a = 0; a < n; a++) {
            bool seen[64] = {false};
            for (size_t b = 0; b < n; b++) {
                unsigned bout = bouts[(a < b ? a : b) * n + (a < b ? b : a)];
                assert_true(a == b ? !bout : bout && bout < n + n % 2 && !seen[bout]);
                seen[bout] = a != b;
                last = bout > last ? bout : last;
            }
        }
        assert_int_equal(last, n + n % 2 - 1);
        free(bouts);
    }
}

/* As many pairs as are counted, each bout's of different hosts, the ring among them. */
static void samples_many_hosts(void **state)
{
    char text[4096] = "", error[128];

    (void)state;
    for (int i = 0; i < 35; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "n%d\n", i);
    struct hosts h = parsed(text);
    struct suite s = suite_of(BETWEEN_SAMPLE);
    assert_int_equal(spread_suite(&s, &h, 1, error, sizeof(error)), 0);
    assert_in_range(s.n - 1, 120, 140);
    struct spread spread = counted(&s, &h);
    assert_int_equal(spread.pairs, s.n - 1);
    assert_int_equal(spread.between, 1);
    assert_int_equal(spread.here, 1);
    for (size_t i = 0; i + 1 < s.n; i++) {
        const struct suite_case *a = &s.cases[i];
        assert_in_range(a->bout, 1, spread.bouts);
        for (size_t k = i + 1; k + 1 < s.n; k++) {
            const struct suite_case *b = &s.cases[k];
            assert_true(a->bout != b->bout || (strcmp(a->from, b->from) && strcmp(a->from, b->to) &&
                                               strcmp(a->to, b->from) && strcmp(a->to, b->to)));
        }
    }
    suite_release(&s);
    hosts_release(&h);
}

static void parts(const char *text, int wanted, const char *rows, const char *samples)
{
    struct stream_parts p;

    assert_int_equal(stream_parts(text, strlen(text), "00ff", &p), wanted);
    if (wanted)
        return;
    assert_int_equal(p.n_rows, strlen(rows));
    assert_memory_equal(p.rows, rows, p.n_rows);
    assert_int_equal(p.n_samples, strlen(samples));
    assert_memory_equal(p.samples, samples, p.n_samples);
    assert_int_equal(p.status, 4);
}

static void takes_rows_and_samples_apart(void **state)
{
    (void)state;
    const char *hello = "Welcome!\nplumb-begin 00ff n1|plumb-net 0.1 (abc, gcc)\n";
    struct stream_hello h = stream_hello(hello, "begin", "00ff");

    assert_true(h.there);
    assert_string_equal(h.name, "n1");
    assert_string_equal(h.version, "plumb-net 0.1 (abc, gcc)");
    assert_false(stream_hello(hello, "begin", "00fe").there);
    assert_false(stream_hello("plumb-begin 00ff n1|plumb", "begin", "00ff").there);
    assert_false(stream_hello("> plumb-begin 00ff n1|v\n", "begin", "00ff").there);

    /* A row that looks like a mark, and rows without their line end. */
    parts("x\nplumb-r 00ff 18\nplumb-end 00ff 0\n\nplumb-s 00ff 1\nyplumb-end 00ff 4\n", 0,
          "plumb-end 00ff 0\n\n", "y");
    parts("plumb-r 00ff 0\nplumb-s 00ff 0\nplumb-end 00ff 4\n", 0, "", "");
    parts("plumb-r 00ff 4\na\nb\nplumb-s 00ff 1\nyplumb-end 00ff 4", -EBADMSG, "", "");
    parts("plumb-r 00ff 400\na\nb\nplumb-s 00ff 1\nyplumb-end 00ff 4\n", -EBADMSG, "", "");
    parts("plumb-r 00ff 4\na\nb\n", -EBADMSG, "", "");
    parts("plumb-r 00ff -1\nplumb-s 00ff 0\nplumb-end 00ff 4\n", -EBADMSG, "", "");
    parts("", -EBADMSG, "", "");
}

static void quotes_for_a_shell(void **state)
{
    struct argv w = {0};

    (void)state;
    argv_split(&w, " ssh  -p 22 ");
    argv_add(&w, "it's");
    argv_add(&w, "");
    argv_add(&w, "$x");
    char *text = argv_quoted(&w, 1);
    assert_string_equal(text, "-p 22 'it'\\''s' '' '$x'");
    free(text);
    argv_release(&w);
}

static void compares_builds(void **state)
{
    char text[64];

    (void)state;
    assert_string_equal(host_build("plumb-net 0.1.0 (abc-dirty, gcc 12, -O2)", text, sizeof(text)),
                        "0.1.0 (abc-dirty)");
    assert_string_equal(host_build("nonsense", text, sizeof(text)), "nonsense");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_mpirun_reads),
        cmocka_unit_test(takes_a_host_once),
        cmocka_unit_test(refuses_what_it_does_not_know),
        cmocka_unit_test(spreads_over_pairs),
        cmocka_unit_test(a_group_is_one_case_over_all),
        cmocka_unit_test(every_two_meet_once),
        cmocka_unit_test(samples_many_hosts),
        cmocka_unit_test(takes_rows_and_samples_apart),
        cmocka_unit_test(quotes_for_a_shell),
        cmocka_unit_test(compares_builds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

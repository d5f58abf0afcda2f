/* SPDX-License-Identifier: Apache-2.0 */
/* Suites that find the GPUs by themselves: what `gpu`, `gpus` and `nodes` come to with none, one,
 * eight and sixteen of them, pairs, sampled pairs, and the one case that says that there is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/plan/plan.h"
#include "harness/plan/suite.h"

#define GPUS_MAX 80

static int accept(const char *text, void *value, char *error, size_t len)
{
    (void)text, (void)value, (void)error, (void)len;
    return 0;
}

static const char *const ops[] = {"read", "write", NULL};

/* `gpus` is a choice here, and must stay one. */
static const char *const kinds[] = {"gpus", "other", NULL};

static const char *const ways[] = {"out", "in", NULL};
static const struct opt_scope pairs = {"source=cuda:* destination=cuda:* source!=@destination",
                                       "pairs"};

static struct opt options[] = {
    {.name = "op", .type = OPT_CHOICE, .flags = OPT_LIST | OPT_COLUMN, .choices = ops},
    {.name = "device", .type = OPT_CUSTOM, .flags = OPT_LIST | OPT_COLUMN, .parse = accept},
    {.name = "source", .type = OPT_CUSTOM, .flags = OPT_LIST | OPT_COLUMN, .parse = accept},
    {.name = "destination", .type = OPT_CUSTOM, .flags = OPT_LIST | OPT_COLUMN, .parse = accept},
    {.name = "kind", .type = OPT_CHOICE, .choices = kinds},
    {.name = "way", .type = OPT_CHOICE, .flags = OPT_LIST, .choices = ways, .scope = &pairs},
    {.name = NULL},
};

static char *defaults[] = {"read", "host", "node0", "node0", "other", "out", NULL};

/* What the fakes answer when they are asked: on a GPU another operation is the default, and two of
 * them. */
static const char program[] =
    "#!/bin/sh\n"
    "case \"$*\" in *--version*) exit 0 ;; *cuda*) op='\"read\", \"write\"' ;; *) op='\"read\"' ;; "
    "esac\n"
    "cat <<END\n"
    "{\"bench\": \"fake\", \"help\": \"a fake\", \"options\": [\n"
    "{\"name\": \"op\", \"type\": \"choice\", \"list\": true, \"column\": true, \"default\": [$op],"
    " \"choices\": [\"read\", \"write\"]},\n"
    "{\"name\": \"device\", \"type\": \"custom\", \"list\": true, \"column\": true,"
    " \"default\": [\"host\"]},\n"
    "{\"name\": \"source\", \"type\": \"custom\", \"list\": true, \"column\": true,"
    " \"default\": [\"node0\"]},\n"
    "{\"name\": \"destination\", \"type\": \"custom\", \"list\": true, \"column\": true,"
    " \"default\": [\"node0\"]},\n"
    "{\"name\": \"kind\", \"type\": \"choice\", \"default\": [\"other\"],"
    " \"choices\": [\"gpus\", \"other\"]},\n"
    "{\"name\": \"way\", \"type\": \"choice\", \"list\": true, \"default\": [\"out\"],"
    " \"choices\": [\"out\", \"in\"]}],\n"
    "\"rows\": {\"columns\": [{\"name\": \"op\"}, {\"name\": \"device\"}, {\"name\": \"source\"},"
    " {\"name\": \"destination\"}]}}\n"
    "END\n";
static char program_path[] = "/tmp/plumb-places-XXXXXX";

static int write_program(void **state)
{
    int fd = mkstemp(program_path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, program, strlen(program)), strlen(program));
    assert_int_equal(fchmod(fd, 0755), 0);
    return close(fd);
}

static int remove_program(void **state)
{
    (void)state;
    return unlink(program_path);
}
static char *columns[] = {"op", "device", "source", "destination", NULL};

/* Two benchmarks that see the same n GPUs beside a library each. */
struct fakes {
    struct bench_backend backends[GPUS_MAX + 2];
    char names[GPUS_MAX][32];
    struct bench_info benches[2];
    struct bench_list list;
};

static struct fakes *fakes_make(size_t n)
{
    struct fakes *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->backends[0] =
        (struct bench_backend){.name = "library", .version = "1.2", .state = BACKEND_PRESENT};
    f->backends[1] = (struct bench_backend){
        .name = "cuda", .why = "no driver: install one", .state = BACKEND_ABSENT};
    for (size_t i = 0; i < n; i++) {
        snprintf(f->names[i], sizeof(f->names[i]), "cuda:%zu", i);
        f->backends[i + 1] =
            (struct bench_backend){.name = f->names[i], .what = "A GPU", .state = BACKEND_PRESENT};
        snprintf(f->backends[i + 1].address, sizeof(f->backends[i + 1].address), "0000:%02zx:00.0",
                 16 + i);
    }
    for (size_t i = 0; i < 2; i++)
        f->benches[i] = (struct bench_info){.name = i ? "mover" : "fake",
                                            .path = program_path,
                                            .help = "a fake",
                                            .needs = "",
                                            .options = options,
                                            .defaults = defaults,
                                            .n_own = 6,
                                            .columns = columns,
                                            .n_columns = 4,
                                            .backends = f->backends,
                                            .n_backends = n ? n + 1 : 2};
    f->list = (struct bench_list){.benches = f->benches, .n = 2, .problems = ""};
    return f;
}

static void parse(const struct fakes *f, const char *text, struct suite *s)
{
    char error[512] = "";

    if (suite_parse("t.yaml", text, strlen(text), NULL, &f->list, s, error, sizeof(error)))
        fail_msg("refused: %s", error);
}

static void test_every_gpu(void **state)
{
    static const size_t counts[] = {1, 8, 16};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct fakes *f = fakes_make(counts[k]);
        struct suite s;
        char last[64];

        parse(f, "suite: a\ncases: [{bench: fake, op: [read, write], device: gpus}]\n", &s);
        assert_int_equal(s.n, 2 * counts[k]);
        assert_string_equal(s.cases[0].arguments, "--op read --device cuda:0");
        snprintf(last, sizeof(last), "--op write --device cuda:%zu", counts[k] - 1);
        assert_string_equal(s.cases[s.n - 1].arguments, last);
        assert_int_equal(s.cases[0].repeats, 5);
        suite_release(&s);
        free(f);
    }
}

static void test_one_gpu_and_lists(void **state)
{
    struct fakes *f = fakes_make(8);
    struct suite s;

    (void)state;
    parse(f, "suite: a\ncases: [{bench: fake, op: read, device: [host, gpu], source: nodes}]\n",
          &s);
    assert_string_equal(s.cases[0].arguments, "--op read --device host --source node0");
    assert_string_equal(s.cases[s.n - 1].bench->name, "fake");
    assert_true(strstr(s.cases[s.n - 1].arguments, "--device cuda:0 --source node"));
    suite_release(&s);
    parse(f, "suite: a\ncases: [{bench: fake, device: host, kind: gpus}]\n", &s);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.cases[0].arguments, "--device host --kind gpus");
    suite_release(&s);
    free(f);
}

/* Of each benchmark one case is left, of the many that ask for a GPU; what asks for none stays. */
static void test_no_gpu(void **state)
{
    struct fakes *f = fakes_make(0);
    struct suite s;

    (void)state;
    parse(f,
          "suite: a\ncases:\n"
          "  - {bench: fake, op: [read, write], device: gpus}\n"
          "  - {bench: fake, op: [read, write], device: gpu}\n"
          "  - {bench: fake, op: [read, write], device: host}\n"
          "  - {bench: mover, source: gpus, destination: gpus}\n"
          "  - {bench: mover, source: nodes, destination: gpus}\n",
          &s);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.cases[0].arguments, "--op read --device cuda:0");
    assert_int_equal(s.cases[0].stand_in, STAND_IN_NO_GPU);
    assert_int_equal(s.cases[0].repeats, 1);
    assert_string_equal(s.cases[1].arguments, "--op read --device host");
    assert_int_equal(s.cases[1].stand_in, STAND_IN_NOT);
    assert_int_equal(s.cases[1].repeats, 5);
    assert_string_equal(s.cases[3].bench->name, "mover");
    assert_string_equal(s.cases[3].arguments, "--source cuda:0 --destination cuda:1");
    suite_release(&s);
    free(f);
}

/* Wrong words are found here too, where nothing is run. */
static void test_no_gpu_is_no_excuse(void **state)
{
    static const char text[] = "suite: a\ncases:\n  - {bench: fake, device: gpus}\n"
                               "  - {bench: fake, device: gpus, op: reed}\n";
    struct fakes *f = fakes_make(0);
    struct suite s;
    char error[512] = "";

    (void)state;
    assert_int_not_equal(
        suite_parse("t.yaml", text, strlen(text), NULL, &f->list, &s, error, sizeof(error)), 0);
    assert_non_null(strstr(error, "t.yaml:4:"));
    free(f);
}

static void test_one_gpu_has_no_pair(void **state)
{
    struct fakes *f = fakes_make(1);
    struct suite s;

    (void)state;
    parse(f,
          "suite: a\ncases:\n"
          "  - {bench: mover, op: [read, write], source: gpus, destination: gpus}\n"
          "  - {bench: mover, op: write, source: gpus, destination: gpus}\n"
          "  - {bench: mover, op: read, source: node0, destination: gpus}\n",
          &s);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.cases[0].arguments, "--op read --source cuda:0 --destination cuda:1");
    assert_int_equal(s.cases[0].stand_in, STAND_IN_NO_OTHER_GPU);
    assert_string_equal(s.cases[1].arguments, "--op read --source node0 --destination cuda:0");
    suite_release(&s);
    free(f);
}

static void test_pairs_of_eight(void **state)
{
    struct fakes *f = fakes_make(8);
    struct suite s;
    struct plan plan;

    (void)state;
    parse(f,
          "suite: a\ncases: [{bench: mover, op: [read, write], source: gpus, destination: gpus, "
          "repeat: 1}]\n",
          &s);
    assert_int_equal(s.n, 2 * 56);
    for (size_t i = 0; i < s.n; i++) {
        char same[64];
        snprintf(same, sizeof(same), "--source cuda:%zu --destination cuda:%zu", i % 8, i % 8);
        assert_null(strstr(s.cases[i].arguments, same));
    }
    assert_int_equal(plan_make(&s, 1, NULL, &plan), 0);
    assert_int_equal(plan.n, 112);
    assert_int_equal(plan.pairs_of, 0);
    plan_release(&plan);
    suite_release(&s);
    free(f);
}

/* Of 16 GPUs 40 pairs, the same for each case, other ones with another seed. */
static void test_pairs_of_sixteen(void **state)
{
    struct fakes *f = fakes_make(16);
    struct suite s;
    struct plan plan, again, other;
    size_t same = 0;

    (void)state;
    parse(f,
          "suite: a\ncases: [{bench: mover, op: [read, write], source: gpus, destination: gpus, "
          "repeat: 1}, {bench: mover, op: read, source: node0, destination: gpus, repeat: 1}]\n",
          &s);
    assert_int_equal(s.n, 2 * 240 + 16);
    assert_int_equal(plan_make(&s, 7, NULL, &plan), 0);
    assert_int_equal(plan_make(&s, 7, NULL, &again), 0);
    assert_int_equal(plan_make(&s, 8, NULL, &other), 0);
    assert_int_equal(plan.n, 2 * 40 + 16);
    assert_int_equal(plan.pairs, 40);
    assert_int_equal(plan.pairs_of, 240);
    for (size_t i = 0; i < plan.n; i++) {
        assert_string_equal(plan.launches[i].arguments, again.launches[i].arguments);
        for (size_t k = 0; k < other.n; k++)
            same += !strcmp(plan.launches[i].arguments, other.launches[k].arguments);
    }
    assert_in_range(same, 2 * 32 + 16, 2 * 39 + 16);
    plan_release(&plan);
    plan_release(&again);
    plan_release(&other);
    suite_release(&s);
    free(f);
}

/* Every GPU is at least twice on either side; near pairs and far ones are among them. */
static void test_chosen_pairs(void **state)
{
    static const unsigned counts[] = {9, 10, 16, 17, 72};

    (void)state;
    for (size_t c = 0; c < 5; c++) {
        unsigned n = counts[c], count, found = 0;
        bool *taken = pairs_choose(n, 3, &count);

        assert_non_null(taken);
        for (unsigned i = 0; i < n; i++) {
            unsigned out = 0, in = 0;
            for (unsigned k = 0; k < n; k++) {
                out += taken[i * n + k];
                in += taken[k * n + i];
                found += taken[i * n + k];
            }
            assert_false(taken[i * n + i]);
            assert_true(out >= 2 && in >= 2);
            assert_true(taken[i * n + (i + 1) % n] && taken[i * n + (i + n / 2) % n]);
        }
        assert_int_equal(found, count);
        assert_int_equal(count, n == 72 ? 152 : n == 17 ? 42 : 40);
        free(taken);
    }
    for (unsigned n = 0; n <= 8; n++) {
        unsigned count;
        free(pairs_choose(n, 3, &count));
        assert_int_equal(count, n ? n * (n - 1) : 0);
    }
}

/* The driver may number the GPUs in another order than they stand on the bus. */
static void test_rank_is_the_order_of_the_bus(void **state)
{
    struct fakes *f = fakes_make(3);

    (void)state;
    strcpy(f->backends[1].address, "0000:c1:00.0");
    strcpy(f->backends[2].address, "0000:3b:00.0");
    strcpy(f->backends[3].address, "0000:af:00.0");
    assert_int_equal(places_gpu_rank(&f->benches[0], 0), 2);
    assert_int_equal(places_gpu_rank(&f->benches[0], 1), 0);
    assert_int_equal(places_gpu_rank(&f->benches[0], 2), 1);
    strcpy(f->backends[1].address, "");
    assert_int_equal(places_gpu_rank(&f->benches[0], 0), 0);
    assert_int_equal(places_gpu_number(&f->benches[0], "cuda:2"), 2);
    assert_true(places_gpu_number(&f->benches[0], "cuda:3") == SIZE_MAX);
    free(f);
}

/* One that fails among others that work keeps its cases: their rows say why. */
static void test_a_broken_gpu_stays(void **state)
{
    struct fakes *f = fakes_make(2);
    struct suite s;

    (void)state;
    f->backends[2].state = BACKEND_ABSENT;
    parse(f, "suite: a\ncases: [{bench: fake, op: read, device: gpus}]\n", &s);
    assert_int_equal(s.n, 2);
    suite_release(&s);
    f->backends[1].state = BACKEND_ABSENT;
    parse(f, "suite: a\ncases: [{bench: fake, op: read, device: gpus}]\n", &s);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.cases[0].stand_in, STAND_IN_NO_GPU);
    suite_release(&s);
    free(f);
}

/* A list that is not named takes the defaults that hold on a GPU, which the benchmark tells;
 * `largest` is the last of those. */
static void test_defaults_on_a_gpu(void **state)
{
    struct fakes *f = fakes_make(2);
    struct suite s;

    (void)state;
    parse(f, "suite: a\ncases: [{bench: fake, device: gpus}]\n", &s);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.cases[0].arguments, "--op read --device cuda:0");
    assert_string_equal(s.cases[3].arguments, "--op write --device cuda:1");
    suite_release(&s);
    parse(f, "suite: a\ncases: [{bench: fake, op: largest, device: gpu}]\n", &s);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.cases[0].arguments, "--op write --device cuda:0");
    suite_release(&s);
    parse(f, "suite: a\ncases: [{bench: fake, op: largest, device: host}]\n", &s);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.cases[0].arguments, "--op read --device host");
    suite_release(&s);
    free(f);
}

static void test_empty_words_are_still_refused(void **state)
{
    static const char text[] = "suite: a\ncases:\n  - {bench: fake, device: ['', gpus]}\n";
    struct fakes *f = fakes_make(2);
    struct suite s;
    char error[512] = "";

    (void)state;
    assert_int_not_equal(
        suite_parse("t.yaml", text, strlen(text), NULL, &f->list, &s, error, sizeof(error)), 0);
    free(f);
}

static void refuse(const struct fakes *f, const char *text, const char *message)
{
    struct suite s;
    char error[512] = "";

    assert_int_not_equal(
        suite_parse("t.yaml", text, strlen(text), NULL, &f->list, &s, error, sizeof(error)), 0);
    if (!strstr(error, message))
        fail_msg("'%s' lacks '%s'", error, message);
}

static void test_what_says_nothing_is_left_out(void **state)
{
    static const char *const want[] = {"--source node0 --destination cuda:1",
                                       "--source cuda:0 --destination cuda:1 --way out",
                                       "--source cuda:0 --destination cuda:1 --way in"};
    struct fakes *f = fakes_make(2);
    struct suite s;

    (void)state;
    parse(f,
          "suite: a\ncases: [{bench: fake, way: [out, in], source: [node0, 'cuda:0'], "
          "destination: 'cuda:1', op: read}]\n",
          &s);
    assert_int_equal(s.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(s.cases[i].arguments + strlen("--op read "), want[i]);
    suite_release(&s);
    free(f);
}

/* Nobody asked for it in vain: neither a default nor what hangs on the machine is a mistake. */
static void test_what_says_nothing_at_all_is_refused(void **state)
{
    struct fakes *f = fakes_make(1);
    struct suite s;

    (void)state;
    refuse(f, "suite: a\ncases: [{bench: fake, way: in, source: node0, destination: 'cuda:0'}]\n",
           "t.yaml:2: option 'way' does not apply here: it is for pairs; leave it out");
    parse(f,
          "suite: a\ndefaults: {way: in}\n"
          "cases: [{bench: fake, op: read, source: node0, destination: 'cuda:0'}]\n",
          &s);
    assert_string_equal(s.cases[0].arguments, "--op read --source node0 --destination cuda:0");
    suite_release(&s);
    parse(f,
          "suite: a\ncases: [{bench: fake, op: read, way: in, source: gpu, destination: gpus}]\n",
          &s);
    assert_string_equal(s.cases[0].arguments, "--op read --source cuda:0 --destination cuda:0");
    suite_release(&s);
    /* What stands for a pair where there is none has the option all the same. */
    parse(f,
          "suite: a\ncases: [{bench: fake, op: read, way: in, source: gpus, destination: gpus}]\n",
          &s);
    assert_string_equal(s.cases[0].arguments,
                        "--op read --source cuda:0 --destination cuda:1 --way in");
    suite_release(&s);
    free(f);
}

static void test_no_case_is_another_one(void **state)
{
    struct fakes *f = fakes_make(2);
    struct suite s;

    (void)state;
    parse(f,
          "suite: a\ncases:\n"
          "  - {bench: fake, op: read, device: [cuda, 'cuda:0', gpus], repeat: 2}\n"
          "  - {bench: fake, op: [write, read], device: gpu, kind: other, repeat: 5}\n"
          "  - {bench: fake, op: read, device: gpu, kind: gpus}\n",
          &s);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.cases[0].arguments, "--op read --device cuda:0");
    assert_int_equal(s.cases[0].repeats, 5); /* the most that any has asked for */
    assert_string_equal(s.cases[1].arguments, "--op read --device cuda:1");
    assert_int_equal(s.cases[1].repeats, 2);
    assert_string_equal(s.cases[2].arguments, "--op write --device cuda:0 --kind other");
    assert_string_equal(s.cases[3].arguments, "--op read --device cuda:0 --kind gpus");
    suite_release(&s);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_gpu),
        cmocka_unit_test(test_one_gpu_and_lists),
        cmocka_unit_test(test_no_gpu),
        cmocka_unit_test(test_no_gpu_is_no_excuse),
        cmocka_unit_test(test_one_gpu_has_no_pair),
        cmocka_unit_test(test_pairs_of_eight),
        cmocka_unit_test(test_pairs_of_sixteen),
        cmocka_unit_test(test_chosen_pairs),
        cmocka_unit_test(test_rank_is_the_order_of_the_bus),
        cmocka_unit_test(test_a_broken_gpu_stays),
        cmocka_unit_test(test_defaults_on_a_gpu),
        cmocka_unit_test(test_empty_words_are_still_refused),
        cmocka_unit_test(test_what_says_nothing_is_left_out),
        cmocka_unit_test(test_what_says_nothing_at_all_is_refused),
        cmocka_unit_test(test_no_case_is_another_one),
    };

    return cmocka_run_group_tests(tests, write_program, remove_program);
}

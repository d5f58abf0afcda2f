/* SPDX-License-Identifier: Apache-2.0 */
/* Suites that find the GPUs by themselves: what `gpu`, `gpus` and `nodes` come to with none, one,
 * eight and sixteen of them, pairs, sampled pairs, and the one case that says that there is none.
 */
#include <sys/stat.h>

#include "harness/plan/plan.h"
#include "harness/plan/suite.h"
#include "tests/unit/unit.h"

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

#define SUITE(cases) "suite: a\ncases:\n" cases

/* What comes of a suite on a machine with so many GPUs: how many cases, the first and the last of them. */
TEST(test_suites)
{
    static const struct {
        size_t gpus;
        const char *suite;
        size_t n;
        const char *first, *last;
        int stand_in, repeats; /* of the first */
    } suites[] = {
        {1, "- {bench: fake, op: [read, write], device: gpus}", 2, "--op read --device cuda:0",
         "--op write --device cuda:0", STAND_IN_NOT, 5},
        {16, "- {bench: fake, op: [read, write], device: gpus}", 32, "--op read --device cuda:0",
         "--op write --device cuda:15", STAND_IN_NOT, 5},
        {8, "- {bench: fake, op: read, device: [host, gpu]}", 2, "--op read --device host",
         "--op read --device cuda:0", STAND_IN_NOT, 5},
        {8, "- {bench: fake, device: host, kind: gpus}", 1, "--device host --kind gpus",
         "--device host --kind gpus", STAND_IN_NOT, 5},
        /* Of each benchmark one case is left, of the many that ask for a GPU; what asks for none stays. */
        {0,
         "- {bench: fake, op: [read, write], device: gpus}\n"
         "- {bench: fake, op: [read, write], device: gpu}\n"
         "- {bench: fake, op: [read, write], device: host}\n"
         "- {bench: mover, source: gpus, destination: gpus}\n"
         "- {bench: mover, source: nodes, destination: gpus}",
         4, "--op read --device cuda:0", "--source cuda:0 --destination cuda:1", STAND_IN_NO_GPU,
         1},
        {1,
         "- {bench: mover, op: [read, write], source: gpus, destination: gpus}\n"
         "- {bench: mover, op: write, source: gpus, destination: gpus}\n"
         "- {bench: mover, op: read, source: node0, destination: gpus}",
         2, "--op read --source cuda:0 --destination cuda:1",
         "--op read --source node0 --destination cuda:0", STAND_IN_NO_OTHER_GPU, 1},
        {8, "- {bench: mover, op: [read, write], source: gpus, destination: gpus}", 2 * 56,
         "--op read --source cuda:0 --destination cuda:1",
         "--op write --source cuda:7 --destination cuda:6", STAND_IN_NOT, 5},
        /* A list that is not named takes the defaults that hold on a GPU; `largest` is the last of those. */
        {2, "- {bench: fake, device: gpus}", 4, "--op read --device cuda:0",
         "--op write --device cuda:1", STAND_IN_NOT, 5},
        {2, "- {bench: fake, op: largest, device: gpu}", 1, "--op write --device cuda:0",
         "--op write --device cuda:0", STAND_IN_NOT, 5},
        {2, "- {bench: fake, op: largest, device: host}", 1, "--op read --device host",
         "--op read --device host", STAND_IN_NOT, 5},
        /* What says nothing is left out: a way where there is no pair. */
        {2,
         "- {bench: fake, way: [out, in], source: [node0, 'cuda:0'], destination: 'cuda:1', op: "
         "read}",
         3, "--op read --source node0 --destination cuda:1",
         "--op read --source cuda:0 --destination cuda:1 --way in", STAND_IN_NOT, 5},
        {1, "- {bench: fake, op: read, way: in, source: gpu, destination: gpus}", 1,
         "--op read --source cuda:0 --destination cuda:0",
         "--op read --source cuda:0 --destination cuda:0", STAND_IN_NOT, 5},
        /* What stands for a pair where there is none has the option all the same. */
        {1, "- {bench: fake, op: read, way: in, source: gpus, destination: gpus}", 1,
         "--op read --source cuda:0 --destination cuda:1 --way in",
         "--op read --source cuda:0 --destination cuda:1 --way in", STAND_IN_NO_OTHER_GPU, 1},
        {1, "- {bench: fake, op: read, source: node0, destination: 'cuda:0'}\ndefaults: {way: in}",
         1, "--op read --source node0 --destination cuda:0",
         "--op read --source node0 --destination cuda:0", STAND_IN_NOT, 5},
        /* No case is another one: of equal ones the most repetitions that any has asked for. */
        {2,
         "- {bench: fake, op: read, device: [cuda, 'cuda:0', gpus], repeat: 2}\n"
         "- {bench: fake, op: [write, read], device: gpu, kind: other, repeat: 5}\n"
         "- {bench: fake, op: read, device: gpu, kind: gpus}",
         4, "--op read --device cuda:0", "--op read --device cuda:0 --kind gpus", STAND_IN_NOT, 5},
    };

    for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++) {
        struct fakes *f = fakes_make(suites[i].gpus);
        char text[512];
        struct suite s;

        snprintf(text, sizeof(text), SUITE("%s\n"), suites[i].suite);
        parse(f, text, &s);
        if (s.n != suites[i].n || strcmp(s.cases[0].arguments, suites[i].first) ||
            strcmp(s.cases[s.n - 1].arguments, suites[i].last))
            fail_msg("suite %zu: %zu cases, %s to %s", i, s.n, s.cases[0].arguments,
                     s.cases[s.n - 1].arguments);
        assert_int_equal(s.cases[0].stand_in, suites[i].stand_in);
        assert_int_equal(s.cases[0].repeats, suites[i].repeats);
        for (size_t k = 0; suites[i].gpus == 8 && s.n == 112 && k < s.n; k++) {
            char same[64];

            snprintf(same, sizeof(same), "--source cuda:%zu --destination cuda:%zu", k % 8, k % 8);
            assert_null(strstr(s.cases[k].arguments, same));
        }
        suite_release(&s);
        free(f);
    }
}

/* Wrong words are found where nothing is run, too; an option that nobody can have meant is one. */
TEST(test_refused)
{
    static const struct {
        size_t gpus;
        const char *suite, *where;
    } suites[] = {
        {0, "- {bench: fake, device: gpus}\n- {bench: fake, device: gpus, op: reed}", "t.yaml:4:"},
        {2, "- {bench: fake, device: ['', gpus]}", "t.yaml:3:"},
        {1, "- {bench: fake, way: in, source: node0, destination: 'cuda:0'}", "'way'"},
    };

    for (size_t i = 0; i < sizeof(suites) / sizeof(*suites); i++) {
        struct fakes *f = fakes_make(suites[i].gpus);
        char text[256], error[512] = "";
        struct suite s;

        snprintf(text, sizeof(text), SUITE("%s\n"), suites[i].suite);
        assert_int_not_equal(
            suite_parse("t.yaml", text, strlen(text), NULL, &f->list, &s, error, sizeof(error)), 0);
        assert_says(error, suites[i].where);
        free(f);
    }
}

/* Of 16 GPUs 40 pairs, the same for each case, other ones with another seed. */
TEST(test_pairs_of_sixteen)
{
    struct fakes *f = fakes_make(16);
    struct suite s;
    struct plan plan, again, other;
    size_t same = 0;

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
TEST(test_chosen_pairs)
{
    static const unsigned counts[] = {9, 10, 16, 17, 72};

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
TEST(test_rank_is_the_order_of_the_bus)
{
    struct fakes *f = fakes_make(3);

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
TEST(test_a_broken_gpu_stays)
{
    struct fakes *f = fakes_make(2);
    struct suite s;

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

TESTS_WITH(write_program, remove_program);

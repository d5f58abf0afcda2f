/* SPDX-License-Identifier: Apache-2.0 */
/* Options: lists and ranges, bounds, hints, what --help prints, and that a bad word
 * changes nothing. */
#include "core/option.h"
#include "tests/unit/unit.h"

enum mode { MODE_READ, MODE_WRITE, MODE_COPY };

struct params {
    bool check;
    uint64_t threads, size_bytes, budget_ns;
    double width, ratio;
    int mode;
    const char *path;
    int shape[2];
};

static int shape_parse(const char *text, void *value, char *error, size_t len)
{
    int *shape = value;

    if (sscanf(text, "%dx%d", &shape[0], &shape[1]) == 2)
        return 0;
    snprintf(error, len, "'%s' is not a shape such as 2x3", text);
    return -EINVAL;
}

static const char *half_the_machine(void)
{
    return "6";
}

static const char *const modes[] = {"read", "write", "copy", NULL};

#define AT(member) offsetof(struct params, member)

#define OPT_AT(called, of, at, ...)                                                                \
    {                                                                                              \
        .name = called, .type = of, .offset = at, ##__VA_ARGS__                                    \
    }
#define OPT(called, short, of, member, ...)                                                        \
    OPT_AT(called, of, AT(member), .letter = short, ##__VA_ARGS__)
#define SWEPT .flags = OPT_LIST | OPT_COLUMN

static const struct opt own[] = {
    OPT("threads", 't', OPT_U64, threads, SWEPT, .min = 1, .max = 64,
        .make_default = half_the_machine, .tried = "cores amount"),
    OPT("size", 's', OPT_SIZE, size_bytes, SWEPT, .def = "4K,1M", .min = 8, .tried = "amount"),
    OPT("mode", 0, OPT_CHOICE, mode, SWEPT, .def = "copy", .choices = modes),
    OPT("shape", 0, OPT_CUSTOM, shape, SWEPT, .parse = shape_parse),
    {.name = NULL}};

static const struct opt common[] = {OPT("check", 'c', OPT_FLAG, check),
                                    OPT("budget", 0, OPT_DURATION, budget_ns, .def = "5s"),
                                    OPT("width", 0, OPT_FRACTION, width, .def = "1%"),
                                    OPT("ratio", 0, OPT_DOUBLE, ratio, .min = 1, .max = 10),
                                    OPT("output", 'O', OPT_STRING, path),
                                    {.name = NULL}};

static const struct opt *const tables[] = {own, common, NULL};

static int open_options(void **state)
{
    static struct opts o;

    *state = &o;
    return opts_init(&o, tables);
}

static int close_options(void **state)
{
    opts_release(*state);
    return 0;
}

#define PARSE(o, ...) parse_words(o, (char *[]){"prog", __VA_ARGS__, NULL})

static int parse_words(struct opts *o, char **argv)
{
    int argc = 0;

    while (argv[argc])
        argc++;
    free(o->args); /* of an earlier call in the same test */
    o->args = NULL;
    o->n_args = 0;
    o->error[0] = 0;
    return opts_parse(o, argc, argv);
}

/* The values of an option, joined by a space. */
static const char *values(const struct opts *o, const char *name)
{
    static char text[512];
    const struct opt_values *v = opts_values(o, name);

    assert_non_null(v);
    text[0] = 0;
    for (size_t i = 0; i < v->n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
                 v->texts[i]);
    return text;
}

TEST_WITH(test_defaults, open_options, close_options)
{
    struct opts *o = *state;
    struct params p = {.ratio = 3, .path = "as it was"};

    assert_string_equal(values(o, "threads"), "6");
    assert_string_equal(values(o, "size"), "4096 1048576");
    assert_int_equal(opts_values(o, "output")->n, 0);
    assert_null(opts_values(o, "no-such"));
    assert_false(opts_values(o, "size")->given);
    assert_int_equal(opts_apply(o, own, NULL, &p), 0);
    assert_int_equal(opts_apply(o, common, NULL, &p), 0);
    assert_int_equal(p.threads, 6);
    assert_int_equal(p.size_bytes, 4096);
    assert_int_equal(p.mode, MODE_COPY);
    assert_true(p.budget_ns == 5000000000);
    assert_float_equal(p.width, 0.01, 1e-15);
    assert_false(p.check);
    assert_float_equal(p.ratio, 3, 0); /* no default: left alone */
    assert_string_equal(p.path, "as it was");
}

TEST_WITH(test_every_way_to_give_one, open_options, close_options)
{
    struct opts *o = *state;
    struct params p = {0};

    assert_int_equal(PARSE(o, "--threads", "2", "--size=64K", "-c", "--mode=read", "-Oa b", "one",
                           "-", "--", "--two", "-t"),
                     0);
    assert_int_equal(opts_apply(o, own, NULL, &p), 0);
    assert_int_equal(opts_apply(o, common, NULL, &p), 0);
    assert_int_equal(p.threads, 2);
    assert_int_equal(p.size_bytes, 65536);
    assert_true(p.check);
    assert_int_equal(p.mode, MODE_READ);
    assert_string_equal(p.path, "a b");
    assert_int_equal(o->n_args, 4);
    assert_string_equal(o->args[0], "one");
    assert_string_equal(o->args[1], "-");
    assert_string_equal(o->args[2], "--two");
    assert_string_equal(o->args[3], "-t");
    assert_true(opts_values(o, "size")->given);
    assert_false(opts_values(o, "budget")->given);
    assert_int_equal(PARSE(o, "-t", "5", "-s", "8", "--check=no"), 0);
    assert_string_equal(values(o, "threads"), "5"); /* the last one wins */
    assert_string_equal(values(o, "check"), "no");
}

TEST_WITH(test_lists_and_ranges, open_options, close_options)
{
    static const char *const cases[][3] = {
        {"threads", "1,2, 4 ,8", "1 2 4 8"},
        {"threads", "1..8", "1 2 4 8"},
        {"threads", "1..9x2", "1 2 4 8"},
        {"threads", "1..27x3", "1 3 9 27"},
        {"threads", "1..9+2", "1 3 5 7 9"},
        {"threads", "3..4x1.1", "3 4"}, /* a small factor still moves on */
        {"threads", "5..5", "5"},
        {"threads", "1,64", "1 64"},
        {"threads", "7,1..4", "7 1 2 4"},
        {"size", "512..4K x2", "512 1024 2048 4096"},
        {"size", "1K..3K+1K", "1024 2048 3072"},
        {"size", "16K..1Mx8", "16384 131072 1048576"},
        {"mode", "read,copy", "read copy"},
        {"shape", "2x3,4x5", "2x3 4x5"}};
    struct opts *o = *state;
    struct params p = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (opts_set(o, cases[i][0], cases[i][1]))
            fail_msg("'%s': %s", cases[i][1], o->error);
        assert_string_equal(values(o, cases[i][0]), cases[i][2]);
    }
    /* one of each list is a point of the sweep */
    assert_int_equal(opts_apply(o, own, (size_t[]){2, 1, 0, 1}, &p), 0);
    assert_int_equal(p.threads, 2);
    assert_int_equal(p.size_bytes, 131072);
    assert_int_equal(p.mode, MODE_READ);
    assert_true(p.shape[0] == 4 && p.shape[1] == 5);
}

/* A bad value changes nothing, and the message has the value, its bound, or what was meant. */
TEST_WITH(test_what_is_refused, open_options, close_options)
{
    static const char *const bad[] = {"1,,2",   "1,",      ",1",  "4..1",    "0..4",
                                      "1..4x1", "1..4x",   "1..", "..4",     "1..4+0",
                                      "1..4y2", "1..2..3", "",    "1;2",     "1..65",
                                      "65",     "0",       "two", "1..4x-2", "1..4xnan"};
    static const char *const cases[][3] = {{"budget", "1s,2s", "1s,2s"},
                                           {"threads", "0", "1 to 64"},
                                           {"size", "4", "8"},
                                           {"size", "1.3K", "1.3K"},
                                           {"mode", "wirte", "'write'"},
                                           {"mode", "erase", "read, write, copy"},
                                           {"width", "101%", "100%"},
                                           {"width", "1 percent", "1 p"},
                                           {"ratio", "11", "'11'"},
                                           {"ratio", "0.9", "'0.9'"},
                                           {"check", "maybe", "'maybe'"},
                                           {"shape", "2y3", "2x3"},
                                           {"thread", "1", "'--threads'"},
                                           {"cores", "1", "'--threads'"},
                                           {"amount", "1", "'--threads' or '--size'"},
                                           {"core", "1", "mean '--mode'"},
                                           {"banana", "1", "see --help"}};
    struct opts *o = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o->error[0] = 0;
        if (opts_set(o, "threads", bad[i]) != -EINVAL)
            fail_msg("'%s' was taken as %s", bad[i], values(o, "threads"));
        assert_string_not_equal(o->error, "");
        assert_string_equal(values(o, "threads"), "6");
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (opts_set(o, cases[i][0], cases[i][1]) != -EINVAL || !strstr(o->error, cases[i][2]))
            fail_msg("%s '%s': %s", cases[i][0], cases[i][1], o->error);
    assert_int_equal(opts_set(o, "ratio", "10"), 0);
    assert_int_equal(opts_set(o, "ratio", "1"), 0);
    assert_int_equal(opts_set(o, "width", "100%"), 0);
}

TEST_WITH(test_list_of_the_most_values, open_options, close_options)
{
    struct opts *o = *state;
    char range[64];

    snprintf(range, sizeof(range), "8..%d+1", 8 + OPT_LIST_MAX - 1);
    assert_int_equal(opts_set(o, "size", range), 0);
    assert_int_equal(opts_values(o, "size")->n, OPT_LIST_MAX);
    snprintf(range, sizeof(range), "8..%d+1", 8 + OPT_LIST_MAX);
    assert_int_equal(opts_set(o, "size", range), -EINVAL);
}

TEST_WITH(test_bad_words_of_a_command_line, open_options, close_options)
{
    struct opts *o = *state;

    assert_int_equal(PARSE(o, "--thraeds=2"), -EINVAL);
    assert_int_equal(PARSE(o, "--thread", "2"), -EINVAL); /* no abbreviations */
    assert_int_equal(PARSE(o, "-z"), -EINVAL);
    assert_int_equal(PARSE(o, "--threads"), -EINVAL);
    assert_int_equal(PARSE(o, "--threads="), -EINVAL);
    assert_int_equal(PARSE(o, "--check", "no"), 0); /* a flag takes no next word */
    assert_int_equal(o->n_args, 1);
    assert_string_equal(values(o, "check"), "yes");
}

/* Where options say something: conditions, whole sweeps, repetitions, and that values stand once. */
static const struct opt_scope pairs = {"from=cuda:* to=cuda:* from!=@to", "pairs"};
static const struct opt_scope either = {"from=host,node* | to=host,node*", "copies with the host"};
static const struct opt_scope sweeps = {"from=cuda:* to=cuda:*", "sweeps over GPUs"};

enum { FROM, TO, OP, MEMORY, SAMPLE };

struct where {
    const char *from, *to, *memory;
    uint64_t op;
    bool sample;
};

static const struct opt table[] = {
    OPT_AT("from", OPT_STRING, offsetof(struct where, from), .flags = OPT_LIST, .def = "host"),
    OPT_AT("to", OPT_STRING, offsetof(struct where, to), .flags = OPT_LIST, .def = "host"),
    OPT_AT("op", OPT_U64, offsetof(struct where, op), .flags = OPT_LIST, .def = "3",
           .scope = &pairs),
    OPT_AT("memory", OPT_STRING, offsetof(struct where, memory), .flags = OPT_LIST, .def = "small",
           .scope = &either),
    OPT_AT("sample", OPT_FLAG, offsetof(struct where, sample), .flags = OPT_SWEEP, .def = "no",
           .scope = &sweeps),
    {.name = NULL}};
static const struct opt *const scoped[] = {table, NULL};

static void scope(struct opts *o, const char *from, const char *to)
{
    assert_int_equal(opts_init(o, scoped), 0);
    assert_int_equal(opts_set(o, "from", from), 0);
    assert_int_equal(opts_set(o, "to", to), 0);
}

TEST(test_conditions)
{
    static const struct {
        const char *from, *to;
        size_t option;
        bool speaks;
    } cases[] = {{"cuda:0", "cuda:1", OP, true},      {"cuda:1", "cuda:1", OP, false},
                 {"cuda:0", "host", OP, false},       {"node0", "cuda:1", OP, false},
                 {"cuda:0", "cuda:1", MEMORY, false}, {"node3", "cuda:1", MEMORY, true},
                 {"cuda:1", "host", MEMORY, true},    {"anything", "else", FROM, true}};
    struct opts o;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        scope(&o, cases[i].from, cases[i].to);
        assert_int_equal(opt_speaks(table, o.values, NULL, cases[i].option), cases[i].speaks);
        opts_release(&o);
    }
}

/* Lists are tried whole, in the options that the condition asks for. */
TEST(test_whole_sweeps)
{
    struct opts o;
    scope(&o, "host,cuda:0", "node1,cuda:0,cuda:1");
    assert_true(opt_ever_speaks(table, o.values, OP)); /* the very last combination */
    opts_release(&o);
    scope(&o, "host,cuda:0", "node1,cuda:0");
    assert_false(opt_ever_speaks(table, o.values, OP));
    assert_true(opt_ever_speaks(table, o.values, MEMORY));
    assert_int_equal(opts_refuse_vain(&o), 0); /* by default it may say nothing */
    assert_int_equal(opts_default(&o, "op", "4"), 0);
    assert_int_equal(opts_refuse_vain(&o), 0);
    assert_int_equal(opts_set(&o, "op", "3"), 0); /* also where it is the default's value */
    assert_int_equal(opts_refuse_vain(&o), -EINVAL);
    opts_release(&o);
}

TEST(test_repetitions)
{
    struct opts o;
    size_t to_gpu[] = {0, 1, 1, 0, 0}, first[] = {0, 0, 0, 0, 0}, later[] = {0, 0, 1, 0, 0},
           other[] = {0, 0, 0, 1, 0};
    scope(&o, "cuda:0", "host,cuda:1");
    assert_int_equal(opts_set(&o, "op", "1,2"), 0);
    assert_int_equal(opts_set(&o, "memory", "small,large"), 0);
    assert_false(opt_repeats(table, o.values, first));
    assert_true(opt_repeats(table, o.values, later));
    assert_false(opt_repeats(table, o.values, to_gpu));
    assert_false(opt_repeats(table, o.values, other)); /* the host's memory does say something */
    opts_release(&o);
}

/* By default both kinds are measured; what was given is for one of them. */
TEST(test_left_out)
{
    static const struct opt_scope bulk = {"kind=bulk", "bulk"};
    static const struct opt kinds[] = {
        {.name = "kind", .type = OPT_STRING, .flags = OPT_LIST, .def = "bulk,ping"},
        OPT_AT("lanes", OPT_U64, offsetof(struct where, to), .flags = OPT_LIST, .def = "1",
               .scope = &bulk),
        {.name = NULL}};
    static const struct opt *const both[] = {kinds, NULL};
    const size_t of_bulk[] = {0, 0}, of_ping[] = {1, 0};
    struct opts o;
    assert_int_equal(opts_init(&o, both), 0);
    assert_false(opt_left_out(kinds, o.values, of_ping)); /* nothing was given */
    assert_int_equal(opts_set(&o, "lanes", "4"), 0);
    assert_true(opt_left_out(kinds, o.values, of_ping));
    assert_false(opt_left_out(kinds, o.values, of_bulk));
    assert_int_equal(opts_set(&o, "kind", "bulk,ping"), 0); /* who asks for both is told */
    assert_false(opt_left_out(kinds, o.values, of_ping));
    opts_release(&o);
}

TEST(test_in_vain)
{
    struct opts o;
    size_t host[] = {0, 0, 0, 0, 0}, gpu[] = {0, 1, 0, 0, 0};
    scope(&o, "cuda:0", "host,cuda:1");
    assert_int_equal(opt_in_vain(table, o.values, host), SIZE_MAX);
    assert_int_equal(opts_set(&o, "op", "1,2"), 0);
    assert_int_equal(opt_in_vain(table, o.values, host), SIZE_MAX); /* of a list one is taken */
    assert_int_equal(opts_set(&o, "op", "2"), 0);
    assert_int_equal(opt_in_vain(table, o.values, host), OP);
    assert_int_equal(opt_in_vain(table, o.values, gpu), SIZE_MAX);
    assert_int_equal(opts_set(&o, "memory", "large"), 0);
    assert_int_equal(opt_in_vain(table, o.values, gpu), MEMORY);
    opts_release(&o);
    scope(&o, "cuda:0", "host");
    assert_int_equal(opts_set(&o, "sample", "yes"), 0); /* of the sweep: no one point is refused */
    assert_int_equal(opt_in_vain(table, o.values, host), SIZE_MAX);
    assert_int_equal(opts_refuse_vain(&o), -EINVAL);
    opts_release(&o);
}

TEST(test_its_default_is_taken)
{
    static const char *const defaults[] = {"3", "11,12", "13..20"};
    struct where p = {.op = 7, .memory = "large"};
    struct opts o;
    scope(&o, "host", "host");
    assert_int_equal(opts_set(&o, "op", "9"), 0);
    for (size_t i = 0; i < 3; i++) {
        const struct opt one = OPT_AT("op", OPT_U64, offsetof(struct where, op), .flags = OPT_LIST,
                                      .def = defaults[i]);
        assert_int_equal(opts_apply_default(&o, &one, &p), 0);
        assert_int_equal(p.op, strtoul(defaults[i], NULL, 10));
    }
    assert_int_equal(opts_apply_default(&o, &table[MEMORY], &p), 0);
    assert_string_equal(p.memory, "small");
    opts_release(&o);
}

TEST(test_values_stand_once)
{
    struct opts o;
    scope(&o, "b,a,b,a,b", "host");
    const struct opt_values *v = opts_values(&o, "from");
    assert_true(v->n == 2 && !strcmp(v->texts[0], "b") && !strcmp(v->texts[1], "a"));
    assert_int_equal(opts_set(&o, "op", "4,1..4+1,2,1"), 0);
    v = opts_values(&o, "op");
    assert_true(v->n == 4 && !strcmp(v->texts[0], "4") && !strcmp(v->texts[3], "3"));
    opts_release(&o);
}

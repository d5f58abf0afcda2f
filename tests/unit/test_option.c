/* SPDX-License-Identifier: Apache-2.0 */
/* Options: lists and ranges, bounds, hints, what --help prints, and that a bad word
 * changes nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/option.h"

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

static const struct opt own[] = {
    {.name = "threads",
     .letter = 't',
     .type = OPT_U64,
     .flags = OPT_LIST | OPT_COLUMN,
     .offset = AT(threads),
     .min = 1,
     .max = 64,
     .make_default = half_the_machine,
     .tried = "cores amount",
     .help = "threads"},
    {.name = "size",
     .tried = "amount",
     .letter = 's',
     .type = OPT_SIZE,
     .flags = OPT_LIST | OPT_COLUMN,
     .offset = AT(size_bytes),
     .def = "4K,1M",
     .min = 8,
     .help = "bytes, of each array"},
    {.name = "mode",
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN,
     .offset = AT(mode),
     .def = "copy",
     .choices = modes,
     .help = "what is done"},
    {.name = "shape",
     .type = OPT_CUSTOM,
     .flags = OPT_LIST,
     .offset = AT(shape),
     .parse = shape_parse,
     .arg = "MxN",
     .help = "rows and columns"},
    {.name = NULL},
};

static const struct opt common[] = {
    {.name = "check", .letter = 'c', .type = OPT_FLAG, .offset = AT(check), .help = "look again"},
    {.name = "budget", .type = OPT_DURATION, .offset = AT(budget_ns), .def = "5s", .help = "time"},
    {.name = "width", .type = OPT_FRACTION, .offset = AT(width), .def = "1%", .help = "of what"},
    {.name = "ratio",
     .type = OPT_DOUBLE,
     .offset = AT(ratio),
     .min = 1,
     .max = 10,
     .help = "ratio"},
    {.name = "output", .letter = 'O', .type = OPT_STRING, .offset = AT(path), .help = "a file"},
    {.name = "secret",
     .type = OPT_FLAG,
     .flags = OPT_HIDDEN,
     .offset = AT(check),
     .help = "hidden"},
    {.name = NULL},
};

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

#define accept(o, name, text, want)                                                                \
    do {                                                                                           \
        if (opts_set(o, name, text))                                                               \
            fail_msg("'%s': %s", text, (o)->error);                                                \
        assert_string_equal(values(o, name), want);                                                \
    } while (0)

#define refuse(o, name, text, message)                                                             \
    do {                                                                                           \
        assert_int_equal(opts_set(o, name, text), -EINVAL);                                        \
        assert_string_equal((o)->error, message);                                                  \
    } while (0)

static void test_defaults(void **state)
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

static void test_every_way_to_give_one(void **state)
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
    assert_string_equal(values(o, "size"), "8");
    assert_string_equal(values(o, "check"), "no");
    assert_int_equal(opts_set(o, "width", "2%"), 0);
    assert_true(opts_values(o, "width")->given);
}

static void test_lists_and_ranges(void **state)
{
    struct opts *o = *state;

    accept(o, "threads", "1,2, 4 ,8", "1 2 4 8");
    accept(o, "threads", "1..8", "1 2 4 8");
    accept(o, "threads", "1..9x2", "1 2 4 8");
    accept(o, "threads", "1..27x3", "1 3 9 27");
    accept(o, "threads", "1..9+2", "1 3 5 7 9");
    accept(o, "threads", "3..4x1.1", "3 4"); /* a small factor still moves on */
    accept(o, "threads", "5..5", "5");
    accept(o, "threads", "7,1..4", "7 1 2 4");
    accept(o, "size", "512..4K x2", "512 1024 2048 4096");
    accept(o, "size", "1K..3K+1K", "1024 2048 3072");
    accept(o, "size", "16K..1Mx8", "16384 131072 1048576");
    accept(o, "mode", "read,copy", "read copy");
    accept(o, "shape", "2x3,4x5", "2x3 4x5");
}

static void test_lists_refused(void **state)
{
    struct opts *o = *state;
    static const char *const bad[] = {"1,,2",  "1,",  ",1",    "4..1",   "0..4",    "1..4x1",
                                      "1..4x", "1..", "..4",   "1..4+0", "1..4y2",  "1..2..3",
                                      "",      "1;2", "1..65", "65",     "1..4x-2", "1..4xnan"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        o->error[0] = 0;
        if (opts_set(o, "threads", bad[i]) != -EINVAL)
            fail_msg("'%s' was taken as %s", bad[i], values(o, "threads"));
        assert_string_not_equal(o->error, "");
        assert_string_equal(values(o, "threads"), "6"); /* a bad value changes nothing */
    }
    refuse(o, "budget", "1s,2s",
           "option '--budget': '1s,2s' is not a time such as 2s, 500ms or 1m");
}

static void test_list_of_the_most_values(void **state)
{
    struct opts *o = *state;
    char range[64], over[64];

    snprintf(range, sizeof(range), "8..%d+1", 8 + OPT_LIST_MAX - 1);
    assert_int_equal(opts_set(o, "size", range), 0);
    assert_int_equal(opts_values(o, "size")->n, OPT_LIST_MAX);
    snprintf(range, sizeof(range), "8..%d+1", 8 + OPT_LIST_MAX);
    snprintf(over, sizeof(over), "option '--size': over %d values", OPT_LIST_MAX);
    refuse(o, "size", range, over);
}

static void test_messages(void **state)
{
    struct opts *o = *state;

    refuse(o, "threads", "two", "option '--threads': 'two' is not a whole number");
    refuse(o, "threads", "0", "option '--threads': '0' is out of range: from 1 to 64");
    refuse(o, "size", "4", "option '--size': '4' is out of range: from 8 up");
    refuse(o, "size", "1.3K", "option '--size': '1.3K' is not a size such as 4096, 16K or 1M");
    refuse(
        o, "mode", "wirte",
        "option '--mode': unknown value 'wirte', did you mean 'write'? Choices: read, write, copy");
    refuse(o, "mode", "erase",
           "option '--mode': unknown value 'erase'; choices: read, write, copy");
    refuse(o, "width", "101%", "option '--width': '101%' is not a share from 0% to 100%");
    refuse(o, "width", "1 percent",
           "option '--width': '1 percent' is not a share such as 1% or 0.01");
    refuse(o, "ratio", "11", "option '--ratio': '11' is not within its bounds, see --help");
    refuse(o, "check", "maybe", "option '--check': 'maybe' is not yes or no");
    refuse(o, "shape", "2y3", "option '--shape': '2y3' is not a shape such as 2x3");
    refuse(o, "thread", "1", "unknown option '--thread': did you mean '--threads'?");
    refuse(o, "cores", "1", "unknown option '--cores': here it is '--threads'");
    refuse(o, "amount", "1", "unknown option '--amount': here it is '--threads' or '--size'");
    refuse(o, "core", "1",
           "unknown option '--core': did you mean '--mode'?"); /* a part of a name is none */
    refuse(o, "banana", "1", "unknown option '--banana': see --help");
}

static void test_bad_words_of_a_command_line(void **state)
{
    struct opts *o = *state;

    assert_int_equal(PARSE(o, "--thraeds=2"), -EINVAL);
    assert_string_equal(o->error, "unknown option '--thraeds': did you mean '--threads'?");
    assert_int_equal(PARSE(o, "--thread", "2"), -EINVAL); /* no abbreviations */
    assert_int_equal(PARSE(o, "-z"), -EINVAL);
    assert_string_equal(o->error, "unknown option '-z': see --help");
    assert_int_equal(PARSE(o, "--threads"), -EINVAL);
    assert_string_equal(o->error, "option '--threads' wants a value: threads");
    assert_int_equal(PARSE(o, "--threads="), -EINVAL);
    assert_int_equal(PARSE(o, "--check", "no"), 0); /* a flag takes no next word */
    assert_int_equal(o->n_args, 1);
    assert_string_equal(values(o, "check"), "yes");
}

static void test_bad_default_is_found(void **state)
{
    static const struct opt broken[] = {
        {.name = "n", .type = OPT_U64, .def = "many", .help = "a number"}, {.name = NULL}};
    const struct opt *const just_this[] = {broken, NULL};
    struct opts o;

    (void)state;
    assert_int_equal(opts_init(&o, just_this), -EINVAL);
    assert_string_equal(o.error, "option '--n': 'many' is not a whole number");
    opts_release(&o);
}

static void test_pick_chooses_from_each_list(void **state)
{
    struct opts *o = *state;
    struct params p = {0};

    accept(o, "threads", "1,2,4", "1 2 4");
    accept(o, "mode", "read,write", "read write");
    accept(o, "shape", "2x3,4x5", "2x3 4x5");
    assert_int_equal(opts_apply(o, own, (size_t[]){2, 1, 0, 1}, &p), 0);
    assert_int_equal(p.threads, 4);
    assert_int_equal(p.size_bytes, 1 << 20);
    assert_int_equal(p.mode, MODE_READ);
    assert_int_equal(p.shape[0], 4);
    assert_int_equal(p.shape[1], 5);
}

static void read_all(void (*print)(const struct opts *, FILE *), const struct opts *o, char *text,
                     size_t len)
{
    FILE *out = fmemopen(text, len, "w");

    assert_non_null(out);
    print(o, out);
    fclose(out);
}

static void test_help_shows_what_is_set_now(void **state)
{
    struct opts *o = *state;
    char text[4096];

    assert_int_equal(opts_set(o, "size", "16K..1Gx2"), 0);
    accept(o, "mode", "read", "read");
    read_all(opts_help, o, text, sizeof(text));
    assert_non_null(strstr(text, "  -t, --threads N,..              threads [6]\n"));
    assert_non_null(strstr(text, "-s, --size SIZE,.."));
    assert_non_null(strstr(text, "bytes, of each array [16K,32K,..,1G]\n"));
    assert_non_null(strstr(text, "--mode read|write|copy,.."));
    assert_non_null(strstr(text, "what is done [read]\n"));
    assert_non_null(strstr(text, "      --shape MxN,.. "));
    assert_non_null(strstr(text, "  -c, --check                     look again\n"));
    assert_null(strstr(text, "secret"));
}

static void test_distance(void **state)
{
    char long_text[80];

    (void)state;
    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = 0;
    assert_int_equal(opts_distance("", ""), 0);
    assert_int_equal(opts_distance("abc", "abc"), 0);
    assert_int_equal(opts_distance("abc", ""), 3);
    assert_int_equal(opts_distance("", "abc"), 3);
    assert_int_equal(opts_distance("kitten", "sitting"), 3);
    assert_int_equal(opts_distance("abcd", "abdc"), 1); /* a swap of neighbours counts one */
    assert_int_equal(opts_distance("abcd", "acbd"), 1);
    assert_int_equal(opts_distance("ca", "abc"), 3); /* restricted: swapped letters stay together */
    assert_true(opts_distance(long_text, "a") == SIZE_MAX);
    assert_true(opts_distance("a", long_text) == SIZE_MAX);
}

static void test_nearest(void **state)
{
    const char *const names[] = {"threads", "size", "mode", NULL};
    const char *const none[] = {NULL};

    (void)state;
    assert_string_equal(opts_nearest("thread", names), "threads");
    assert_string_equal(opts_nearest("siez", names), "size");
    assert_null(opts_nearest("xyzzy", names));
    assert_null(opts_nearest("size", none));
}

#define test(name) cmocka_unit_test_setup_teardown(name, open_options, close_options)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_defaults),
        test(test_every_way_to_give_one),
        test(test_lists_and_ranges),
        test(test_lists_refused),
        test(test_list_of_the_most_values),
        test(test_messages),
        test(test_bad_words_of_a_command_line),
        cmocka_unit_test(test_bad_default_is_found),
        test(test_pick_chooses_from_each_list),
        test(test_help_shows_what_is_set_now),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

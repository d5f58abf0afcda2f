// SPDX-License-Identifier: Apache-2.0
// Tests of the YAML reader: what it accepts, what it refuses and with which words, and that no
// input breaks it.
#include "harness/plan/yaml.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct yaml_doc *load(const char *text)
{
    struct yaml_doc *doc = yaml_doc_load_buffer("t.yaml", text, strlen(text));
    assert_non_null(doc);
    return doc;
}

// Loads, expects the load itself to fail with exactly this message.
static void refused_len(const char *text, size_t len, const char *message)
{
    struct yaml_doc *doc = yaml_doc_load_buffer("t.yaml", text, len);
    assert_non_null(doc);
    assert_non_null(yaml_doc_error(doc));
    assert_string_equal(yaml_doc_error(doc), message);
    assert_int_equal(yaml_doc_status(doc), -EINVAL);
    assert_int_equal(yaml_kind(yaml_doc_root(doc)), YAML_KIND_NONE);
    yaml_doc_free(doc);
}

static void refused(const char *text, const char *message)
{
    refused_len(text, strlen(text), message);
}

static void error_is(struct yaml_doc *doc, const char *message)
{
    assert_non_null(yaml_doc_error(doc));
    assert_string_equal(yaml_doc_error(doc), message);
    assert_int_equal(yaml_doc_status(doc), -EINVAL);
    yaml_doc_free(doc);
}

static void reads_a_tree(void **state)
{
    (void)state;
    const char *text = "name: quick\nlist: [a, 'b', \"c d\"]\nmap:\n  one: 1\n  none:\n";
    struct yaml_doc *doc = load(text);
    struct yaml_value root = yaml_doc_root(doc);
    const char *name = NULL, *item = NULL;
    assert_int_equal(yaml_kind(root), YAML_KIND_MAP);
    assert_int_equal(yaml_count(root), 3);
    assert_string_equal(yaml_key(root, 1), "list");
    assert_int_equal(yaml_text(yaml_get(root, "name"), &name), 0);
    assert_string_equal(name, "quick");
    struct yaml_value list = yaml_get(root, "list");
    assert_int_equal(yaml_kind(list), YAML_KIND_LIST);
    assert_int_equal(yaml_count(list), 3);
    assert_int_equal(yaml_text(yaml_item(list, 2), &item), 0);
    assert_string_equal(item, "c d");
    struct yaml_value map = yaml_item(root, 2);
    assert_int_equal(yaml_line(map), 4);
    assert_int_equal(yaml_line(yaml_key_value(root, 2)), 3);
    assert_int_equal(yaml_kind(yaml_get(map, "none")), YAML_KIND_NULL);
    assert_true(yaml_present(yaml_get(map, "none")));
    assert_false(yaml_present(yaml_get(map, "two")));
    assert_null(yaml_doc_error(doc));
    assert_int_equal(yaml_doc_status(doc), 0);
    yaml_doc_free(doc);
}

static void out_of_range_is_absent(void **state)
{
    (void)state;
    struct yaml_doc *doc = load("a: [1]\nb: text\n");
    struct yaml_value root = yaml_doc_root(doc), list = yaml_item(root, 0);
    assert_int_equal(yaml_kind(yaml_item(list, 1)), YAML_KIND_NONE);
    assert_int_equal(yaml_kind(yaml_item(root, 2)), YAML_KIND_NONE);
    assert_null(yaml_key(root, 2));
    assert_null(yaml_key(list, 0));
    assert_int_equal(yaml_count(yaml_item(root, 1)), 0);
    assert_int_equal(yaml_kind(yaml_item(yaml_item(root, 1), 0)), YAML_KIND_NONE);
    assert_int_equal(yaml_line(yaml_item(list, 1)), 0);
    assert_int_equal(yaml_kind(yaml_get(yaml_get(root, "c"), "d")), YAML_KIND_NONE);
    assert_null(yaml_doc_error(doc));
    yaml_doc_free(doc);
    // 16 fill libyaml's first allocation, so that a step too far leaves the heap block.
    doc = load("[{a: 0, b: 0, c: 0, d: 0, e: 0, f: 0, g: 0, h: 0, i: 0, j: 0, k: 0, l: 0, m: 0, n: "
               "0, o: 0, p: 0}, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]");
    list = yaml_doc_root(doc);
    assert_int_equal(yaml_count(list), 16);
    assert_int_equal(yaml_kind(yaml_item(list, 16)), YAML_KIND_NONE);
    assert_int_equal(yaml_count(yaml_item(list, 0)), 16);
    assert_null(yaml_key(yaml_item(list, 0), 16));
    yaml_doc_free(doc);
}

static void reads_typed_values(void **state)
{
    (void)state;
    static const char *const dtypes[] = {"f32", "bf16", NULL};
    struct yaml_doc *doc = load("i: -12\nd: 1.5e3\nt: yes\nf: off\nc: bf16\ns: \"7\"\n");
    struct yaml_value root = yaml_doc_root(doc);
    int64_t i = 0;
    double d = 0;
    bool t = false, f = true;
    int c = -1;
    const char *s = NULL;
    assert_int_equal(yaml_int(yaml_get(root, "i"), -12, 5, &i), 0);
    assert_int_equal(yaml_double(yaml_get(root, "d"), 0, 1500, &d), 0);
    assert_int_equal(yaml_bool(yaml_get(root, "t"), &t), 0);
    assert_int_equal(yaml_bool(yaml_get(root, "f"), &f), 0);
    assert_int_equal(yaml_choice(yaml_get(root, "c"), dtypes, &c), 0);
    assert_int_equal(yaml_text(yaml_get(root, "s"), &s), 0);
    assert_int_equal(i, -12);
    assert_true(d == 1500);
    assert_true(t && !f);
    assert_int_equal(c, 1);
    assert_string_equal(s, "7");
    yaml_doc_free(doc);
}

static void absent_keeps_the_default(void **state)
{
    (void)state;
    static const char *const words[] = {"x", NULL};
    struct yaml_doc *doc = load("a: 1\n");
    struct yaml_value none = yaml_get(yaml_doc_root(doc), "b");
    int64_t i = 42;
    double d = 4.5;
    bool b = true;
    int c = 3;
    const char *s = "kept";
    assert_int_equal(yaml_int(none, 0, 1, &i), 0);
    assert_int_equal(yaml_double(none, 0, 1, &d), 0);
    assert_int_equal(yaml_bool(none, &b), 0);
    assert_int_equal(yaml_choice(none, words, &c), 0);
    assert_int_equal(yaml_text(none, &s), 0);
    assert_int_equal(yaml_want(none, YAML_KIND_LIST), 0);
    assert_true(i == 42 && d == 4.5 && b && c == 3);
    assert_string_equal(s, "kept");
    assert_null(yaml_doc_error(doc));
    yaml_doc_free(doc);
}

static void int_refuses(const char *text, const char *message)
{
    struct yaml_doc *doc = load(text);
    int64_t i = 77;
    assert_int_equal(yaml_int(yaml_get(yaml_doc_root(doc), "k"), 1, 100, &i), -EINVAL);
    assert_int_equal(i, 77);
    error_is(doc, message);
}

static void integers_are_strict(void **state)
{
    (void)state;
    int_refuses("k: ten", "t.yaml:1: \"k\" wants an integer, has \"ten\"");
    int_refuses("\n\nk: 1.5", "t.yaml:3: \"k\" wants an integer, has \"1.5\"");
    int_refuses("k: 0x10", "t.yaml:1: \"k\" wants an integer, has \"0x10\"");
    int_refuses("k: \"10\"", "t.yaml:1: \"k\" wants an integer, has the text \"10\"");
    int_refuses("k: ' 5'", "t.yaml:1: \"k\" wants an integer, has the text \" 5\"");
    int_refuses("k: [1]", "t.yaml:1: \"k\" wants an integer, has a list");
    int_refuses("k:", "t.yaml:1: \"k\" wants an integer, has nothing");
    int_refuses("k: 0", "t.yaml:1: \"k\" is 0, allowed: 1 to 100");
    int_refuses("k: 101", "t.yaml:1: \"k\" is 101, allowed: 1 to 100");
    int_refuses("k: 99999999999999999999",
                "t.yaml:1: \"k\" is 99999999999999999999, allowed: 1 to 100");
    int_refuses("k: +", "t.yaml:1: \"k\" wants an integer, has \"+\"");
}

// The widest bounds let nothing through that does not fit the type.
static void overflow_is_refused_at_any_bound(void **state)
{
    (void)state;
    int64_t i = 77;
    double d = 77;
    struct yaml_doc *doc = load("k: 9223372036854775808");
    assert_int_equal(yaml_int(yaml_get(yaml_doc_root(doc), "k"), INT64_MIN, INT64_MAX, &i),
                     -EINVAL);
    yaml_doc_free(doc);
    doc = load("k: 1e999");
    assert_int_equal(yaml_double(yaml_get(yaml_doc_root(doc), "k"), 0, INFINITY, &d), -EINVAL);
    yaml_doc_free(doc);
    assert_true(i == 77 && d == 77);
}

static void double_refuses(const char *text, const char *message)
{
    struct yaml_doc *doc = load(text);
    double d = 77;
    assert_int_equal(yaml_double(yaml_get(yaml_doc_root(doc), "k"), 0, 1e300, &d), -EINVAL);
    assert_true(d == 77);
    error_is(doc, message);
}

static void numbers_are_strict(void **state)
{
    (void)state;
    double_refuses("k: nan", "t.yaml:1: \"k\" wants a number, has \"nan\"");
    double_refuses("k: inf", "t.yaml:1: \"k\" wants a number, has \"inf\"");
    double_refuses("k: 0x1p3", "t.yaml:1: \"k\" wants a number, has \"0x1p3\"");
    double_refuses("k: 1.2.3", "t.yaml:1: \"k\" wants a number, has \"1.2.3\"");
    double_refuses("k: '1'", "t.yaml:1: \"k\" wants a number, has the text \"1\"");
    double_refuses("k: 1e999", "t.yaml:1: \"k\" is 1e999, allowed: 0 to 1e+300");
    double_refuses("k: -1", "t.yaml:1: \"k\" is -1, allowed: 0 to 1e+300");
}

static void other_types_are_strict(void **state)
{
    (void)state;
    static const char *const dtypes[] = {"f32", "bf16", NULL};
    bool b = false;
    int c = 9;
    const char *s = NULL;
    struct yaml_doc *doc = load("k: maybe");
    assert_int_equal(yaml_bool(yaml_get(yaml_doc_root(doc), "k"), &b), -EINVAL);
    error_is(doc, "t.yaml:1: \"k\" wants true or false, has \"maybe\"");
    doc = load("k: 'yes'");
    assert_int_equal(yaml_bool(yaml_get(yaml_doc_root(doc), "k"), &b), -EINVAL);
    error_is(doc, "t.yaml:1: \"k\" wants true or false, has the text \"yes\"");
    doc = load("dtype: [f32,\n bf61]");
    assert_int_equal(yaml_choice(yaml_item(yaml_get(yaml_doc_root(doc), "dtype"), 1), dtypes, &c),
                     -EINVAL);
    assert_int_equal(c, 9);
    error_is(doc, "t.yaml:2: unknown dtype \"bf61\", did you mean \"bf16\"? allowed: f32, bf16");
    doc = load("k: ''");
    assert_int_equal(yaml_text(yaml_get(yaml_doc_root(doc), "k"), &s), -EINVAL);
    error_is(doc, "t.yaml:1: \"k\" wants a text, has an empty one");
    doc = load("k: {a: 1}");
    assert_int_equal(yaml_text(yaml_get(yaml_doc_root(doc), "k"), &s), -EINVAL);
    error_is(doc, "t.yaml:1: \"k\" wants a text, has a map");
    doc = load("k: ~");
    assert_int_equal(yaml_text(yaml_get(yaml_doc_root(doc), "k"), &s), -EINVAL);
    error_is(doc, "t.yaml:1: \"k\" wants a text, has nothing");
    doc = load("k: null");
    assert_int_equal(yaml_text(yaml_get(yaml_doc_root(doc), "k"), &s), -EINVAL);
    error_is(doc,
             "t.yaml:1: \"k\" wants a text: null is YAML's nothing, so write \"null\", quoted");
    doc = load("k: 5");
    assert_int_equal(yaml_want(yaml_get(yaml_doc_root(doc), "k"), YAML_KIND_LIST), -EINVAL);
    error_is(doc, "t.yaml:1: \"k\" wants a list, has a single value");
    assert_null(s);
}

static void unknown_keys_are_refused_with_a_hint(void **state)
{
    (void)state;
    static const char *const keys[] = {"name", "repeat", NULL};
    struct yaml_doc *doc = load("name: x\nrepeat: 1\n");
    assert_int_equal(yaml_keys(yaml_doc_root(doc), keys), 0);
    yaml_doc_free(doc);
    doc = load("name: x\nrepeet: 1\n");
    assert_int_equal(yaml_keys(yaml_doc_root(doc), keys), -EINVAL);
    error_is(doc,
             "t.yaml:2: unknown key \"repeet\", did you mean \"repeat\"? allowed: name, repeat");
    doc = load("zzz: 1\n");
    assert_int_equal(yaml_keys(yaml_doc_root(doc), keys), -EINVAL);
    error_is(doc, "t.yaml:1: unknown key \"zzz\", allowed: name, repeat");
    doc = load("- a\n");
    assert_int_equal(yaml_keys(yaml_doc_root(doc), keys), -EINVAL);
    error_is(doc, "t.yaml:1: \"the top level\" wants a map, has a list");
}

static void nearest_needs_to_be_near(void **state)
{
    (void)state;
    static const char *const names[] = {"memory", "gemm", "copy", NULL};
    char longer[200];
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    assert_string_equal(yaml_nearest("memroy", names), "memory");
    assert_string_equal(yaml_nearest("gem", names), "gemm");
    assert_string_equal(yaml_nearest("copy", names), "copy");
    assert_null(yaml_nearest("allreduce", names));
    assert_null(yaml_nearest("", names));
    assert_null(yaml_nearest(longer, names));
}

static void a_missing_key_is_named(void **state)
{
    (void)state;
    const char *s = "kept";
    struct yaml_doc *doc = load("a: 1\nmap:\n  b: 2\n");
    struct yaml_value v = yaml_need(yaml_get(yaml_doc_root(doc), "map"), "c");
    assert_false(yaml_present(v));
    assert_int_equal(yaml_text(v, &s), -EINVAL);
    assert_string_equal(s, "kept");
    error_is(doc, "t.yaml:3: \"map\" lacks the key \"c\"");
    doc = load("a: 1\n");
    assert_int_equal(yaml_kind(yaml_get(yaml_get(yaml_doc_root(doc), "a"), "b")), YAML_KIND_NONE);
    error_is(doc, "t.yaml:1: \"a\" wants a map, has a single value");
}

static void the_first_error_stays(void **state)
{
    (void)state;
    int64_t i = 0;
    struct yaml_doc *doc = load("a: x\nb: y\n");
    struct yaml_value root = yaml_doc_root(doc);
    assert_int_equal(yaml_int(yaml_get(root, "a"), 0, 9, &i), -EINVAL);
    assert_int_equal(yaml_int(yaml_get(root, "b"), 0, 9, &i), -EINVAL);
    assert_int_equal(yaml_fail(root, "own %d", 5), -EINVAL);
    error_is(doc, "t.yaml:1: \"a\" wants an integer, has \"x\"");
    doc = load("a: x\nb: y\n");
    assert_int_equal(yaml_fail(yaml_get(yaml_doc_root(doc), "b"), "own %d", 5), -EINVAL);
    error_is(doc, "t.yaml:2: own 5");
}

static void duplicate_keys_are_refused(void **state)
{
    (void)state;
    refused("a: 1\nb: 2\na: 3\n", "t.yaml:3: key \"a\" stands twice, first on line 1");
    refused("m:\n  x: 1\n  'x': 2\n", "t.yaml:3: key \"x\" stands twice, first on line 2");
    struct yaml_doc *doc = load("a: {x: 1}\nb: {x: 1}\n");
    assert_null(yaml_doc_error(doc));
    yaml_doc_free(doc);
}

static void what_is_not_plain_is_refused(void **state)
{
    (void)state;
    refused("a: &x 1\n", "t.yaml:1: anchor \"&x\" is not supported, write the value out");
    refused("a: &x [1]\n", "t.yaml:1: anchor \"&x\" is not supported, write the value out");
    refused("a: 1\nb: *x\n", "t.yaml:2: alias \"*x\" is not supported, write the value out");
    refused("a: !!int 1\n",
            "t.yaml:1: tag \"tag:yaml.org,2002:int\" is not supported, leave it out");
    refused("a: !x {b: 1}\n", "t.yaml:1: tag \"!x\" is not supported, leave it out");
    refused("a: 1\n---\nb: 1\n", "t.yaml:2: a second document, one is allowed");
    refused("[a, b]: 1\n", "t.yaml:1: a key must be a word");
    refused("a: 1\n? {b: 1}\n: 2\n", "t.yaml:2: a key must be a word");
    refused("a: 1\n'': 2\n", "t.yaml:2: a key must be a word");
    refused("a: \"x\\0y\"\n", "t.yaml:1: text with a NUL character");
    refused("", "t.yaml:1: the file is empty");
    refused_len(NULL, 0, "t.yaml:1: the file is empty");
    refused("# nothing\n", "t.yaml:1: the file is empty");
}

static void broken_yaml_names_its_line(void **state)
{
    (void)state;
    refused("a: 1\nb: [1, 2\n", "t.yaml:3: not valid YAML: did not find expected ',' or ']' while "
                                "parsing a flow sequence");
    refused("a: 1\n@b: 2\n", "t.yaml:2: not valid YAML: found character that cannot start any "
                             "token while scanning for the next token");
    refused("a: 1\nb: \xff\n", "t.yaml:2: not text: invalid leading UTF-8 octet");
    refused_len("a: 1\nb: \0x\n", 11, "t.yaml:2: not text: control characters are not allowed");
}

static void messages_carry_no_terminal_codes(void **state)
{
    (void)state;
    int_refuses("k: \"\\e[31mred\\x9b\"",
                "t.yaml:1: \"k\" wants an integer, has the text \"?[31mred??\"");
    int_refuses(
        "k: a234567890b234567890c234567890d234567890e\n",
        "t.yaml:1: \"k\" wants an integer, has \"a234567890b234567890c234567890d234567890...\"");
}

// Memory that holds n copies of a piece.
static char *copies(const char *piece, size_t n)
{
    size_t len = strlen(piece);
    char *text = malloc(len * n + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, piece, len);
    text[len * n] = 0;
    return text;
}

static void refused_copies(const char *piece, size_t n, const char *message)
{
    char *text = copies(piece, n);
    refused(text, message);
    free(text);
}

static void bounds_hold(void **state)
{
    (void)state;
    refused_copies("[", 500000, "t.yaml:1: nested more than 32 levels deep");
    refused_copies("{a: ", 200000, "t.yaml:1: nested more than 32 levels deep");
    refused_copies("- ", 2000, "t.yaml:1: nested more than 32 levels deep");
    refused_copies("- 1\n", 65536, "t.yaml:65536: more than 65536 values in one file");
    refused_copies("#\n", (1 << 19) + 1, "t.yaml: larger than 1024 KiB");
    char *text = copies("- 1\n", 65535);
    struct yaml_doc *doc = load(text);
    assert_null(yaml_doc_error(doc));
    assert_int_equal(yaml_count(yaml_doc_root(doc)), 65535);
    yaml_doc_free(doc);
    free(text);
    text = copies("- [1]\n- {a: 1}\n", 100); // wide is not deep
    doc = load(text);
    assert_null(yaml_doc_error(doc));
    yaml_doc_free(doc);
    free(text);
    text = copies("[", 64);
    memset(text + 32, ']', 32);
    doc = load(text);
    assert_null(yaml_doc_error(doc));
    yaml_doc_free(doc);
    free(text);
}

static void many_keys_stay_cheap(void **state)
{
    (void)state;
    size_t room = 600000, used = 0;
    char *text = malloc(room);
    assert_non_null(text);
    for (int i = 0; i < 32000; i++)
        used += (size_t)snprintf(text + used, room - used, "key%d: 1\n", i);
    snprintf(text + used, room - used, "key0: 1\n");
    refused(text, "t.yaml:32001: key \"key0\" stands twice, first on line 1");
    free(text);
}

static void a_file_is_read_and_a_missing_one_named(void **state)
{
    (void)state;
    char path[] = "/tmp/plumb-yaml-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a: 5\n", 5), 5);
    close(fd);
    struct yaml_doc *doc = yaml_doc_load_file(path);
    int64_t i = 0;
    assert_int_equal(yaml_int(yaml_need(yaml_doc_root(doc), "a"), 0, 9, &i), 0);
    assert_int_equal(i, 5);
    yaml_doc_free(doc);
    unlink(path);
    doc = yaml_doc_load_file("/nonexistent/x.yaml");
    assert_int_equal(yaml_doc_status(doc), -ENOENT);
    assert_string_equal(yaml_doc_error(doc),
                        "/nonexistent/x.yaml: cannot be read: No such file or directory");
    yaml_doc_free(doc);
    doc = yaml_doc_load_file("/tmp");
    assert_int_equal(yaml_doc_status(doc), -EISDIR);
    yaml_doc_free(doc);
    assert_int_equal(yaml_doc_status(NULL), -ENOMEM);
    assert_string_equal(yaml_doc_error(NULL), "out of memory");
    assert_int_equal(yaml_kind(yaml_doc_root(NULL)), YAML_KIND_NONE);
    yaml_doc_free(NULL);
}

// Touches everything a reader could touch, with every reader.
static void walk(struct yaml_value v, int depth)
{
    static const char *const words[] = {"name", "list", NULL};
    int64_t i = 0;
    double d = 0;
    bool b = false;
    int c = 0;
    const char *s = NULL;
    assert_true(depth <= YAML_DEPTH_MAX + 1);
    yaml_int(v, 0, 9, &i);
    yaml_double(v, 0, 9, &d);
    yaml_bool(v, &b);
    yaml_choice(v, words, &c);
    yaml_text(v, &s);
    if (yaml_kind(v) == YAML_KIND_MAP)
        yaml_keys(v, words);
    for (size_t n = 0; n < yaml_count(v); n++)
        walk(yaml_item(v, n), depth + 1);
}

// A few thousand damaged copies of a file that uses every construct; a sanitizer build makes this
// bite.
static void damaged_input_is_survived(void **state)
{
    (void)state;
    static const char seed[] = "name: q\nlist: [1, {a: b}, 'x', \"\\x41\"]\nm:\n  - |\n    t\n"
                               "  - >-\n    u\n? k\n: &a *a\n--- !t\n...\n%YAML 1.1\n";
    static const char bytes[] = "[]{}&*!|>'\"%@`#,:-? \n\t\\~a0\xff\xc2";
    unsigned rng = 12345;
    for (int round = 0; round < 4000; round++) {
        char text[sizeof(seed)];
        memcpy(text, seed, sizeof(seed));
        for (int k = 0; k < 1 + round % 6; k++) {
            rng = rng * 1103515245u + 12345u;
            text[(rng >> 8) % (sizeof(seed) - 1)] = bytes[(rng >> 20) % (sizeof(bytes) - 1)];
        }
        size_t len = (size_t)(rng >> 12) % sizeof(seed);
        char *exact = malloc(len + !len);
        assert_non_null(exact);
        memcpy(exact, text, len);
        struct yaml_doc *doc = yaml_doc_load_buffer("t.yaml", exact, len);
        free(exact);
        assert_non_null(doc);
        walk(yaml_doc_root(doc), 0);
        yaml_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_tree),
        cmocka_unit_test(out_of_range_is_absent),
        cmocka_unit_test(reads_typed_values),
        cmocka_unit_test(absent_keeps_the_default),
        cmocka_unit_test(integers_are_strict),
        cmocka_unit_test(overflow_is_refused_at_any_bound),
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(other_types_are_strict),
        cmocka_unit_test(unknown_keys_are_refused_with_a_hint),
        cmocka_unit_test(nearest_needs_to_be_near),
        cmocka_unit_test(a_missing_key_is_named),
        cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(duplicate_keys_are_refused),
        cmocka_unit_test(what_is_not_plain_is_refused),
        cmocka_unit_test(broken_yaml_names_its_line),
        cmocka_unit_test(messages_carry_no_terminal_codes),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(many_keys_stay_cheap),
        cmocka_unit_test(a_file_is_read_and_a_missing_one_named),
        cmocka_unit_test(damaged_input_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

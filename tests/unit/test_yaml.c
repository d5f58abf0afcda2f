// SPDX-License-Identifier: Apache-2.0
// Tests of the YAML reader: what it accepts, what it refuses and with which words, and that no
// input breaks it.
#include "harness/plan/yaml.h"
#include "tests/unit/unit.h"

static struct yaml_doc *load(const char *text)
{
    struct yaml_doc *doc = yaml_doc_load_buffer("t.yaml", text, strlen(text));
    assert_non_null(doc);
    return doc;
}

// The error is on this line of t.yaml, with this word in it.
static void error_has(struct yaml_doc *doc, unsigned line, const char *word)
{
    char at[32];
    snprintf(at, sizeof(at), line ? "t.yaml:%u: " : "t.yaml: ", line);
    assert_non_null(yaml_doc_error(doc));
    if (strncmp(yaml_doc_error(doc), at, strlen(at)) || !strstr(yaml_doc_error(doc), word))
        fail_msg("'%s' lacks '%s%s'", yaml_doc_error(doc), at, word);
    assert_int_equal(yaml_doc_status(doc), -EINVAL);
    yaml_doc_free(doc);
}

static void refused(const char *text, size_t len, unsigned line, const char *word)
{
    struct yaml_doc *doc = yaml_doc_load_buffer("t.yaml", text, len);
    assert_non_null(doc);
    assert_int_equal(yaml_kind(yaml_doc_root(doc)), YAML_KIND_NONE);
    error_has(doc, line, word);
}

TEST(reads_a_tree)
{
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

// 16 fill libyaml's first allocation, so that a step too far leaves the heap block.
TEST(out_of_range_is_absent)
{
    struct yaml_doc *doc =
        load("[{a: 0, b: 0, c: 0, d: 0, e: 0, f: 0, g: 0, h: 0, i: 0, j: 0, k: 0, l: 0, m: 0, n: "
             "0, o: 0, p: 0}, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]");
    struct yaml_value list = yaml_doc_root(doc);
    assert_true(yaml_count(list) == 16 && yaml_count(yaml_item(list, 0)) == 16);
    assert_int_equal(yaml_kind(yaml_item(list, 16)), YAML_KIND_NONE);
    assert_null(yaml_key(yaml_item(list, 0), 16));
    yaml_doc_free(doc);
    doc = load("a: [1]\nb: text\n");
    struct yaml_value root = yaml_doc_root(doc);
    list = yaml_item(root, 0);
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
}

TEST(reads_typed_values)
{
    static const char *const dtypes[] = {"f32", "bf16", NULL};
    struct yaml_doc *doc = load("i: -12\nd: 1.5e3\nc: bf16\ns: \"7\"\n");
    struct yaml_value root = yaml_doc_root(doc);
    int64_t i = 0;
    double d = 0;
    int c = -1;
    const char *s = NULL;
    assert_int_equal(yaml_int(yaml_get(root, "i"), -12, 5, &i), 0);
    assert_int_equal(yaml_double(yaml_get(root, "d"), 0, 1500, &d), 0);
    assert_int_equal(yaml_choice(yaml_get(root, "c"), dtypes, &c), 0);
    assert_int_equal(yaml_text(yaml_get(root, "s"), &s), 0);
    assert_true(i == -12 && d == 1500 && c == 1 && !strcmp(s, "7"));
    yaml_doc_free(doc);
}

TEST(absent_keeps_the_default)
{
    static const char *const words[] = {"x", NULL};
    struct yaml_doc *doc = load("a: 1\n");
    struct yaml_value none = yaml_get(yaml_doc_root(doc), "b");
    int64_t i = 42;
    double d = 4.5;
    int c = 3;
    const char *s = "kept";
    assert_int_equal(yaml_int(none, 0, 1, &i) | yaml_double(none, 0, 1, &d), 0);
    assert_int_equal(
        yaml_choice(none, words, &c) | yaml_text(none, &s) | yaml_want(none, YAML_KIND_LIST), 0);
    assert_true(i == 42 && d == 4.5 && c == 3 && !strcmp(s, "kept") && !yaml_doc_error(doc));
    yaml_doc_free(doc);
}

// Numbers, words and texts are strict; the widest bounds let nothing through that does not fit the type. A refused value changes nothing.
TEST(types_are_strict)
{
    static const char *const dtypes[] = {"f32", "bf16", NULL}, *const keys[] = {"k", "repeat",
                                                                                "repeats", NULL};
    enum { INT, WIDE, DOUBLE, ENDLESS, CHOICE, TEXT, LIST, KEYS };
    static const struct {
        int as;
        const char *text;
        unsigned line; // 0: it is taken
        const char *word;
    } cases[] = {{INT, "k: ten", 1, "\"ten\""},
                 {INT, "\n\nk: 1.5", 3, "integer"},
                 {INT, "k: 0x10", 1, "integer"},
                 {INT, "k: \"10\"", 1, "text \"10\""},
                 {INT, "k: ' 5'", 1, "text"},
                 {INT, "k: [1]", 1, "list"},
                 {INT, "k:", 1, "nothing"},
                 {INT, "k: +", 1, "\"+\""},
                 {INT, "k: 0", 1, "1 to 100"},
                 {INT, "k: 1", 0, ""},
                 {INT, "k: 100", 0, ""},
                 {INT, "k: 101", 1, "1 to 100"},
                 {INT, "k: 99999999999999999999", 1, "1 to 100"},
                 {INT, "k: \"\\e[31mred\\x9b\"", 1, "\"?[31mred??\""}, // no codes of terminals
                 {INT, "k: a234567890b234567890c234567890d234567890e\n", 1, "d234567890...\""},
                 {WIDE, "k: 9223372036854775807", 0, ""},
                 {WIDE, "k: 9223372036854775808", 1, ""},
                 {ENDLESS, "k: 1e999", 1, ""},
                 {DOUBLE, "k: nan", 1, "number"},
                 {DOUBLE, "k: inf", 1, "number"},
                 {DOUBLE, "k: 0x1p3", 1, "number"},
                 {DOUBLE, "k: 1.2.3", 1, "number"},
                 {DOUBLE, "k: '1'", 1, "text"},
                 {DOUBLE, "k: 1e999", 1, "0 to 1e+300"},
                 {DOUBLE, "k: -1", 1, "0 to 1e+300"},
                 {DOUBLE, "k: 0", 0, ""},
                 {DOUBLE, "k: 1e300", 0, ""},
                 {CHOICE, "k:\n bf61", 2, "'bf16'?"},
                 {CHOICE, "k: i8", 1, "f32, bf16"},
                 {TEXT, "k: ''", 1, "empty"},
                 {TEXT, "k: {a: 1}", 1, "map"},
                 {TEXT, "k: ~", 1, "nothing"},
                 {TEXT, "k: null", 1, "quoted"},
                 {LIST, "k: 5", 1, "list"},
                 {KEYS, "k: x\nrepeat: 1\n", 0, ""},
                 {KEYS, "k: x\nrepeet: 1\n", 2, "'repeat'?"},
                 {KEYS, "repeaat: 1\n", 1, "'repeat'?"},
                 {KEYS, "zzz: 1\n", 1, "'zzz', allowed: k, repeat"},
                 {KEYS, "- a\n", 1, "map"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct yaml_doc *doc = load(cases[i].text);
        struct yaml_value root = yaml_doc_root(doc),
                          v = cases[i].as == KEYS ? root : yaml_get(root, "k");
        int64_t n = 77;
        double d = 77;
        int c = 9, as = cases[i].as;
        const char *s = NULL;
        int err = as == INT       ? yaml_int(v, 1, 100, &n)
                  : as == WIDE    ? yaml_int(v, INT64_MIN, INT64_MAX, &n)
                  : as == DOUBLE  ? yaml_double(v, 0, 1e300, &d)
                  : as == ENDLESS ? yaml_double(v, 0, INFINITY, &d)
                  : as == CHOICE  ? yaml_choice(v, dtypes, &c)
                  : as == TEXT    ? yaml_text(v, &s)
                  : as == LIST    ? yaml_want(v, YAML_KIND_LIST)
                                  : yaml_keys(v, keys);
        if (err != (cases[i].line ? -EINVAL : 0))
            fail_msg("'%s' gave %d", cases[i].text, err);
        if (!cases[i].line) {
            yaml_doc_free(doc);
            continue;
        }
        assert_true(n == 77 && d == 77 && c == 9 && !s);
        error_has(doc, cases[i].line, cases[i].word);
    }
}

TEST(the_first_error_stays_and_a_missing_key_is_named)
{
    int64_t i = 0;
    const char *s = "kept";
    struct yaml_doc *doc = load("a: x\nb: y\n");
    struct yaml_value root = yaml_doc_root(doc);
    assert_int_equal(yaml_int(yaml_get(root, "a"), 0, 9, &i), -EINVAL);
    assert_int_equal(yaml_int(yaml_get(root, "b"), 0, 9, &i), -EINVAL);
    assert_int_equal(yaml_fail(root, "own %d", 5), -EINVAL);
    error_has(doc, 1, "\"x\"");
    doc = load("a: x\nb: y\n");
    assert_int_equal(yaml_fail(yaml_get(yaml_doc_root(doc), "b"), "own %d", 5), -EINVAL);
    error_has(doc, 2, "own 5");
    doc = load("a: 1\nmap:\n  b: 2\n");
    struct yaml_value v = yaml_need(yaml_get(yaml_doc_root(doc), "map"), "c");
    assert_false(yaml_present(v));
    assert_int_equal(yaml_text(v, &s), -EINVAL);
    assert_string_equal(s, "kept");
    error_has(doc, 3, "\"c\"");
    doc = load("a: 1\n");
    assert_int_equal(yaml_kind(yaml_get(yaml_get(yaml_doc_root(doc), "a"), "b")), YAML_KIND_NONE);
    error_has(doc, 1, "map");
}

TEST(what_is_not_plain_is_refused)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *word;
    } cases[] = {{"a: 1\nb: 2\na: 3\n", 3, "first on line 1"},
                 {"m:\n  x: 1\n  'x': 2\n", 3, "first on line 2"},
                 {"a: &x 1\n", 1, "anchor"},
                 {"a: &x [1]\n", 1, "anchor"},
                 {"a: 1\nb: *x\n", 2, "alias"},
                 {"a: !!int 1\n", 1, "tag"},
                 {"a: !x {b: 1}\n", 1, "tag"},
                 {"a: 1\n---\nb: 1\n", 2, "document"},
                 {"[a, b]: 1\n", 1, "key"},
                 {"a: 1\n? {b: 1}\n: 2\n", 2, "key"},
                 {"a: 1\n'': 2\n", 2, "key"},
                 {"a: \"x\\0y\"\n", 1, "NUL"},
                 {"", 1, "empty"},
                 {"# nothing\n", 1, "empty"},
                 {"a: 1\nb: [1, 2\n", 3, "not valid"},
                 {"a: 1\n@b: 2\n", 2, "not valid"},
                 {"a: 1\nb: \xff\n", 2, "UTF-8"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        refused(cases[i].text, strlen(cases[i].text), cases[i].line, cases[i].word);
    refused(NULL, 0, 1, "empty");
    refused("a: 1\nb: \0x\n", 11, 2, "control");
    struct yaml_doc *doc = load("a: {x: 1}\nb: {x: 1}\n");
    assert_null(yaml_doc_error(doc));
    yaml_doc_free(doc);
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

TEST(bounds_hold)
{
    static const struct {
        const char *piece;
        size_t n;
        unsigned line;    // 0: of the file as a whole
        const char *word; // NULL: it is taken
    } cases[] = {{"[", 500000, 1, "32"},
                 {"{a: ", 200000, 1, "32"},
                 {"- ", 2000, 1, "32"},
                 {"- 1\n", 65536, 65536, "65536"},
                 {"#\n", (1 << 19) + 1, 0, "1024 KiB"},
                 {"- 1\n", 65535, 0, NULL},
                 {"- [1]\n- {a: 1}\n", 100, 0, NULL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = copies(cases[i].piece, cases[i].n);
        if (cases[i].word) {
            refused(text, strlen(text), cases[i].line, cases[i].word);
        } else {
            struct yaml_doc *doc = load(text);
            assert_null(yaml_doc_error(doc));
            assert_true(yaml_count(yaml_doc_root(doc)) == (i == 5 ? 65535 : 200));
            yaml_doc_free(doc);
        }
        free(text);
    }
    for (size_t deep = 32; deep <= 33; deep++) {
        char text[128] = "";
        memset(text, '[', deep);
        memset(text + deep, ']', deep);
        struct yaml_doc *doc = load(text);
        assert_int_equal(yaml_doc_error(doc) != NULL, deep == 33);
        yaml_doc_free(doc);
    }
}

TEST(a_file_is_read_and_a_missing_one_named)
{
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
    assert_non_null(strstr(yaml_doc_error(doc), "/nonexistent/x.yaml"));
    yaml_doc_free(doc);
    doc = yaml_doc_load_file("/tmp");
    assert_int_equal(yaml_doc_status(doc), -EISDIR);
    yaml_doc_free(doc);
    yaml_doc_free(NULL);
}

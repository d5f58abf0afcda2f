/* SPDX-License-Identifier: Apache-2.0 */
/* Loads YAML, refuses what is not plain, reads typed values: see yaml.h. */
#include "harness/plan/yaml.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/alloc.h"
#include "core/option.h"
#include "harness/text.h"

#define ERROR_BYTES 1024
#define QUOTE_CHARS 40

struct yaml_doc {
    char *name;
    yaml_document_t tree;
    bool has_tree;
    int *key_of; /* by node id: the key node that the value stands under, 0 at the top */
    int status;
    char error[ERROR_BYTES];
};

/* A piece of the file made fit for a message: short, and without bytes that a terminal would obey.
 */
struct yaml_quote {
    char text[QUOTE_CHARS + 4];
};

static struct yaml_quote yaml_quote(const char *s)
{
    struct yaml_quote q;
    size_t n = 0;
    // cppcheck-suppress arrayIndexOutOfBoundsCond ; a string ends before its array does
    for (; n < QUOTE_CHARS && s[n]; n++)
        q.text[n] = s[n] >= 0x20 && s[n] < 0x7f ? s[n] : '?';
    snprintf(q.text + n, sizeof(q.text) - n, "%s", s[n] ? "..." : "");
    return q;
}

/* Keeps the error if it is the first. line 0: the whole file. Returns code. */
static int yaml_doc_vfail(struct yaml_doc *doc, int code, size_t line, const char *fmt, va_list ap)
{
    if (doc->status)
        return code;
    doc->status = code;
    int n = line ? snprintf(doc->error, ERROR_BYTES, "%s:%zu: ", doc->name, line)
                 : snprintf(doc->error, ERROR_BYTES, "%s: ", doc->name);
    if (n >= 0 && n < ERROR_BYTES)
        vsnprintf(doc->error + n, ERROR_BYTES - (size_t)n, fmt, ap);
    return code;
}

__attribute__((format(printf, 4, 5))) static int fail(struct yaml_doc *doc, int code, size_t line,
                                                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    yaml_doc_vfail(doc, code, line, fmt, ap);
    va_end(ap);
    return code;
}

// The reader reports a byte offset where the scanner reports a line.
static int fail_parser(struct yaml_doc *doc, const yaml_parser_t *p, const char *data, size_t len)
{
    const char *what = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_MEMORY_ERROR)
        alloc_fail(len);
    if (p->error == YAML_READER_ERROR) {
        size_t line = 1;
        for (size_t i = 0; i < len && i < p->problem_offset; i++)
            line += data[i] == '\n';
        return fail(doc, -EINVAL, line, "not text: %s", what);
    }
    return fail(doc, -EINVAL, p->problem_mark.line + 1, "not valid YAML: %s%s%s", what,
                p->context ? " " : "", p->context ? p->context : "");
}

struct scan {
    int depth;
    int documents;
    size_t nodes;
};

static int refuse_mark(struct yaml_doc *doc, size_t line, const char *what, const yaml_char_t *name)
{
    return fail(doc, -EINVAL, line, "%s \"%s\" is not supported: write the value out", what,
                yaml_quote((const char *)name).text);
}

/* opens: further values may follow inside of it. */
static int check_node(struct yaml_doc *doc, struct scan *scan, size_t line, bool opens,
                      const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return refuse_mark(doc, line, "anchor", anchor);
    if (tag)
        return refuse_mark(doc, line, "tag", tag);
    if (++scan->nodes > YAML_NODES_MAX)
        return fail(doc, -EINVAL, line, "more than %d values in one file", YAML_NODES_MAX);
    scan->depth += opens;
    if (scan->depth > YAML_DEPTH_MAX)
        return fail(doc, -EINVAL, line, "nested more than %d levels deep", YAML_DEPTH_MAX);
    return 0;
}

static int check_event(struct yaml_doc *doc, struct scan *scan, const yaml_event_t *e)
{
    size_t line = e->start_mark.line + 1;

    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return ++scan->documents > 1 ? fail(doc, -EINVAL, line, "a second document, one is allowed")
                                     : 0;
    case YAML_ALIAS_EVENT:
        return refuse_mark(doc, line, "alias", e->data.alias.anchor);
    case YAML_SCALAR_EVENT:
        return memchr(e->data.scalar.value, 0, e->data.scalar.length)
                   ? fail(doc, -EINVAL, line, "text with a NUL character")
                   : check_node(doc, scan, line, false, e->data.scalar.anchor, e->data.scalar.tag);
    case YAML_SEQUENCE_START_EVENT:
        return check_node(doc, scan, line, true, e->data.sequence_start.anchor,
                          e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return check_node(doc, scan, line, true, e->data.mapping_start.anchor,
                          e->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        scan->depth--;
        return 0;
    default:
        return 0;
    }
}

// First pass, over events, before any tree is built: an alias is still visible as such, and a
// hostile file is turned away before it costs memory.
static int check_events(struct yaml_doc *doc, const char *data, size_t len)
{
    struct scan scan = {0};
    yaml_parser_t parser;
    bool end = false;
    int rc = 0;
    if (!yaml_parser_initialize(&parser))
        alloc_fail(len);
    yaml_parser_set_input_string(&parser, (const unsigned char *)data, len);
    while (!rc && !end) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            rc = fail_parser(doc, &parser, data, len);
            break;
        }
        rc = check_event(doc, &scan, &event);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return rc;
}

static yaml_node_t *yaml_doc_node(const struct yaml_doc *doc, int id)
{
    return yaml_document_get_node((yaml_document_t *)&doc->tree, id);
}

static const char *yaml_scalar_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

static size_t yaml_pair_count(const yaml_node_t *map)
{
    return (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start);
}

static int check_keys(struct yaml_doc *doc, const yaml_node_t *map)
{
    for (size_t i = 0; i < yaml_pair_count(map); i++) {
        const yaml_node_pair_t *pairs = map->data.mapping.pairs.start;
        const yaml_node_t *node = yaml_doc_node(doc, pairs[i].key);
        if (node->type != YAML_SCALAR_NODE || !node->data.scalar.length)
            return fail(doc, -EINVAL, node->start_mark.line + 1, "a key must be a word");
        doc->key_of[pairs[i].value] = pairs[i].key;
        for (size_t k = 0; k < i; k++) {
            const yaml_node_t *first = yaml_doc_node(doc, pairs[k].key);
            if (!strcmp(yaml_scalar_of(first), yaml_scalar_of(node)))
                return fail(doc, -EINVAL, node->start_mark.line + 1,
                            "key \"%s\" stands twice, first on line %zu",
                            yaml_quote(yaml_scalar_of(node)).text, first->start_mark.line + 1);
        }
    }
    return 0;
}

static int check_tree(struct yaml_doc *doc)
{
    int n = (int)(doc->tree.nodes.top - doc->tree.nodes.start);
    int rc = 0;
    doc->key_of = xcalloc((size_t)n + 1, sizeof(*doc->key_of));
    // Parents come before their children in the tree, so a list knows its key before its items ask
    // for it.
    for (int id = 1; id <= n && !rc; id++) {
        const yaml_node_t *node = yaml_doc_node(doc, id);
        if (node->type == YAML_MAPPING_NODE)
            rc = check_keys(doc, node);
        for (yaml_node_item_t *i = node->data.sequence.items.start;
             node->type == YAML_SEQUENCE_NODE && i < node->data.sequence.items.top; i++)
            doc->key_of[*i] = doc->key_of[id];
    }
    return rc;
}

static int fail_size(struct yaml_doc *doc)
{
    return fail(doc, -EINVAL, 0, "larger than %u KiB", YAML_BYTES_MAX / 1024);
}

static void doc_parse(struct yaml_doc *doc, const char *data, size_t len)
{
    int rc = len > YAML_BYTES_MAX ? fail_size(doc) : check_events(doc, data, len);
    if (!rc) {
        yaml_parser_t parser;
        if (!yaml_parser_initialize(&parser))
            alloc_fail(len);
        yaml_parser_set_input_string(&parser, (const unsigned char *)data, len);
        if (yaml_parser_load(&parser, &doc->tree))
            doc->has_tree = true;
        else
            rc = fail_parser(doc, &parser, data, len);
        yaml_parser_delete(&parser);
        if (!rc && !yaml_document_get_root_node(&doc->tree))
            rc = fail(doc, -EINVAL, 1, "the file is empty");
    }
    if (!rc)
        check_tree(doc);
}

struct yaml_doc *yaml_doc_load_buffer(const char *name, const void *data, size_t len)
{
    struct yaml_doc *doc = xcalloc(1, sizeof(*doc));

    doc->name = xstrdup(name);
    doc_parse(doc, len ? data : "", len);
    return doc;
}

struct yaml_doc *yaml_doc_load_file(const char *path)
{
    struct buffer text = {0};
    struct yaml_doc *doc;
    int rc = file_read(path, YAML_BYTES_MAX, &text);

    if (rc) {
        doc = xcalloc(1, sizeof(*doc));
        doc->name = xstrdup(path);
        if (rc == -EFBIG)
            fail_size(doc);
        else
            fail(doc, rc, 0, "cannot be read: %s", strerror(-rc));
    } else {
        doc = yaml_doc_load_buffer(path, text.text, text.size);
    }
    buffer_release(&text);
    return doc;
}

void yaml_doc_free(struct yaml_doc *doc)
{
    if (!doc)
        return;
    if (doc->has_tree)
        yaml_document_delete(&doc->tree);
    free(doc->key_of);
    free(doc->name);
    free(doc);
}

int yaml_doc_status(const struct yaml_doc *doc)
{
    return doc->status;
}

const char *yaml_doc_error(const struct yaml_doc *doc)
{
    return doc->status ? doc->error : NULL;
}

/* ---- A loaded document: typed values, with line numbers in the errors ---- */

static struct yaml_value value(struct yaml_doc *doc, int id)
{
    return (struct yaml_value){doc, id};
}

static yaml_node_t *node(struct yaml_value v)
{
    return v.id > 0 ? yaml_doc_node(v.doc, v.id) : NULL;
}

struct yaml_value yaml_doc_root(struct yaml_doc *doc)
{
    return value(doc, yaml_doc_status(doc) ? -1 : 1);
}

static bool is_plain(const yaml_node_t *n)
{
    return n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

enum yaml_kind yaml_kind(struct yaml_value v)
{
    const yaml_node_t *n = node(v);
    if (!n)
        return YAML_KIND_NONE;
    if (n->type == YAML_MAPPING_NODE)
        return YAML_KIND_MAP;
    if (n->type == YAML_SEQUENCE_NODE)
        return YAML_KIND_LIST;
    const char *text = is_plain(n) ? yaml_scalar_of(n) : "text";
    return (!*text || !strcmp(text, "~") || !strcmp(text, "null")) ? YAML_KIND_NULL
                                                                   : YAML_KIND_SCALAR;
}

bool yaml_present(struct yaml_value v)
{
    return v.id > 0;
}

int yaml_line(struct yaml_value v)
{
    const yaml_node_t *n = node(v);
    return n ? (int)n->start_mark.line + 1 : 0;
}

size_t yaml_count(struct yaml_value v)
{
    const yaml_node_t *n = node(v);
    if (!n || n->type == YAML_SCALAR_NODE)
        return 0;
    if (n->type == YAML_MAPPING_NODE)
        return yaml_pair_count(n);
    return (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
}

struct yaml_value yaml_item(struct yaml_value v, size_t i)
{
    const yaml_node_t *n = node(v);
    if (i >= yaml_count(v))
        return value(v.doc, v.id < 0 ? -1 : 0);
    return value(v.doc, n->type == YAML_MAPPING_NODE ? n->data.mapping.pairs.start[i].value
                                                     : n->data.sequence.items.start[i]);
}

struct yaml_value yaml_key_value(struct yaml_value v, size_t i)
{
    if (yaml_kind(v) != YAML_KIND_MAP || i >= yaml_count(v))
        return value(v.doc, v.id < 0 ? -1 : 0);
    return value(v.doc, node(v)->data.mapping.pairs.start[i].key);
}

const char *yaml_key(struct yaml_value v, size_t i)
{
    const yaml_node_t *n = node(yaml_key_value(v, i));
    return n ? yaml_scalar_of(n) : NULL;
}

struct yaml_value yaml_get(struct yaml_value map, const char *key)
{
    if (yaml_want(map, YAML_KIND_MAP))
        return value(map.doc, -1);
    for (size_t i = 0; i < yaml_count(map); i++)
        if (!strcmp(yaml_key(map, i), key))
            return yaml_item(map, i);
    return value(map.doc, 0);
}

// How a message names a value: by the key that it stands under.
static struct yaml_quote name_of(struct yaml_value v)
{
    int key = v.id > 0 ? v.doc->key_of[v.id] : 0;
    return yaml_quote(key ? yaml_scalar_of(yaml_doc_node(v.doc, key)) : "the top level");
}

struct yaml_value yaml_need(struct yaml_value map, const char *key)
{
    struct yaml_value v = yaml_get(map, key);
    if (v.id || map.id <= 0)
        return v;
    yaml_fail(map, "\"%s\" lacks the key \"%s\"", name_of(map).text, key);
    return value(map.doc, -1);
}

int yaml_fail(struct yaml_value v, const char *fmt, ...)
{
    va_list ap;
    if (!v.doc)
        return -EINVAL;
    va_start(ap, fmt);
    yaml_doc_vfail(v.doc, -EINVAL, (size_t)yaml_line(v), fmt, ap);
    va_end(ap);
    return -EINVAL;
}

int yaml_unknown(struct yaml_value v, const char *what, const char *word, const char *const names[])
{
    const char *near = opts_nearest(word, names);
    struct buffer all = {0};

    for (size_t i = 0; names[i]; i++) {
        buffer_text(&all, i ? ", " : "");
        buffer_text(&all, names[i]);
    }
    yaml_fail(v, "unknown %s '%s'%s%s%s allowed: %s", what, yaml_quote(word).text,
              near ? ", did you mean '" : ",", near ? near : "", near ? "'?" : "",
              all.text ? all.text : "none");
    buffer_release(&all);
    return -EINVAL;
}

static int index_of(const char *word, const char *const names[])
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(word, names[i]))
            return i;
    return -1;
}

int yaml_keys(struct yaml_value map, const char *const keys[])
{
    int rc = yaml_want(map, YAML_KIND_MAP);
    for (size_t i = 0; i < yaml_count(map) && !rc; i++)
        if (index_of(yaml_key(map, i), keys) < 0)
            rc = yaml_unknown(yaml_key_value(map, i), "key", yaml_key(map, i), keys);
    return rc;
}

static const char *kind_text(enum yaml_kind kind)
{
    static const char *const text[] = {"nothing", "nothing", "a single value", "a list", "a map"};
    return text[kind];
}

int yaml_want(struct yaml_value v, enum yaml_kind kind)
{
    enum yaml_kind have = yaml_kind(v);
    if (v.id < 0)
        return -EINVAL;
    if (!v.id || have == kind)
        return 0;
    return yaml_fail(v, "\"%s\" wants %s, has %s", name_of(v).text, kind_text(kind),
                     kind_text(have));
}

// The text of a scalar, or NULL and *rc = 0 when v is absent, -EINVAL when it is not a scalar.
static const char *scalar(struct yaml_value v, const char *wanted, int *rc)
{
    *rc = v.id < 0 ? -EINVAL : 0;
    if (v.id <= 0)
        return NULL;
    if (yaml_kind(v) == YAML_KIND_SCALAR)
        return yaml_scalar_of(node(v));
    *rc = yaml_fail(v, "\"%s\" wants %s, has %s", name_of(v).text, wanted, kind_text(yaml_kind(v)));
    return NULL;
}

static int fail_type(struct yaml_value v, const char *wanted)
{
    bool plain = is_plain(node(v));
    return yaml_fail(v, "\"%s\" wants %s, has %s\"%s\"", name_of(v).text, wanted,
                     plain ? "" : "the text ", yaml_quote(yaml_scalar_of(node(v))).text);
}

int yaml_text(struct yaml_value v, const char **out)
{
    int rc;

    if (yaml_kind(v) == YAML_KIND_NULL && !strcmp(yaml_scalar_of(node(v)), "null"))
        return yaml_fail(v,
                         "\"%s\" wants a text: null is YAML's nothing, so write \"null\", quoted",
                         name_of(v).text);
    const char *text = scalar(v, "a text", &rc);
    if (text && !*text)
        return yaml_fail(v, "\"%s\" wants a text, has an empty one", name_of(v).text);
    if (text)
        *out = text;
    return rc;
}

int yaml_int(struct yaml_value v, int64_t lo, int64_t hi, int64_t *out)
{
    int rc;
    char *end;
    const char *text = scalar(v, "an integer", &rc);
    if (!text)
        return rc;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!is_plain(node(v)) || !*text || *end)
        return fail_type(v, "an integer");
    if (errno || n < lo || n > hi)
        return yaml_fail(v, "\"%s\" is %s, allowed: %" PRId64 " to %" PRId64, name_of(v).text,
                         yaml_quote(text).text, lo, hi);
    *out = n;
    return 0;
}

int yaml_double(struct yaml_value v, double lo, double hi, double *out)
{
    int rc;
    char *end;
    const char *text = scalar(v, "a number", &rc);
    if (!text)
        return rc;
    double d = strtod(text, &end);
    if (!is_plain(node(v)) || !*text || *end || strspn(text, "+-.0123456789eE") != strlen(text))
        return fail_type(v, "a number");
    if (!isfinite(d) || d < lo || d > hi)
        return yaml_fail(v, "\"%s\" is %s, allowed: %g to %g", name_of(v).text,
                         yaml_quote(text).text, lo, hi);
    *out = d;
    return 0;
}

int yaml_choice(struct yaml_value v, const char *const names[], int *out)
{
    int rc;
    const char *text = scalar(v, "a word", &rc);
    if (!text)
        return rc;
    int i = index_of(text, names);
    if (i < 0) {
        struct yaml_quote name = name_of(v);
        return yaml_unknown(v, name.text, text, names);
    }
    *out = i;
    return 0;
}

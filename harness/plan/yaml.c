// SPDX-License-Identifier: Apache-2.0
// Loads YAML and refuses what is not plain: see harness/plan/yaml.h.
#include "harness/plan/yaml_doc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct yaml_quote yaml_quote(const char *s)
{
    struct yaml_quote q;
    size_t n = 0;
    for (; n < YAML_QUOTE_CHARS && s[n]; n++)
        q.text[n] = s[n] >= 0x20 && s[n] < 0x7f ? s[n] : '?';
    snprintf(q.text + n, sizeof(q.text) - n, "%s", s[n] ? "..." : "");
    return q;
}

int yaml_doc_vfail(struct yaml_doc *doc, int code, size_t line, const char *fmt, va_list ap)
{
    if (doc->status)
        return code;
    doc->status = code;
    int n = line ? snprintf(doc->error, YAML_ERROR_BYTES, "%s:%zu: ", doc->name, line)
                 : snprintf(doc->error, YAML_ERROR_BYTES, "%s: ", doc->name);
    if (n >= 0 && n < YAML_ERROR_BYTES)
        vsnprintf(doc->error + n, YAML_ERROR_BYTES - (size_t)n, fmt, ap);
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
static size_t line_of_offset(const char *data, size_t len, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < len && i < offset; i++)
        line += data[i] == '\n';
    return line;
}

static int fail_parser(struct yaml_doc *doc, const yaml_parser_t *p, const char *data, size_t len)
{
    const char *what = p->problem ? p->problem : "cannot be read";
    if (p->error == YAML_MEMORY_ERROR)
        return fail(doc, -ENOMEM, 0, "out of memory");
    if (p->error == YAML_READER_ERROR)
        return fail(doc, -EINVAL, line_of_offset(data, len, p->problem_offset), "not text: %s",
                    what);
    return fail(doc, -EINVAL, p->problem_mark.line + 1, "not valid YAML: %s%s%s", what,
                p->context ? " " : "", p->context ? p->context : "");
}

struct scan {
    int depth;
    int documents;
    size_t nodes;
};

static int check_node(struct yaml_doc *doc, struct scan *scan, size_t line,
                      const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        return fail(doc, -EINVAL, line, "anchor \"&%s\" is not supported, write the value out",
                    yaml_quote((const char *)anchor).text);
    if (tag)
        return fail(doc, -EINVAL, line, "tag \"%s\" is not supported, leave it out",
                    yaml_quote((const char *)tag).text);
    if (++scan->nodes > YAML_NODES_MAX)
        return fail(doc, -EINVAL, line, "more than %d values in one file", YAML_NODES_MAX);
    return 0;
}

static int check_open(struct yaml_doc *doc, struct scan *scan, size_t line)
{
    if (++scan->depth > YAML_DEPTH_MAX)
        return fail(doc, -EINVAL, line, "nested more than %d levels deep", YAML_DEPTH_MAX);
    return 0;
}

static int check_scalar(struct yaml_doc *doc, struct scan *scan, const yaml_event_t *e, size_t line)
{
    if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
        return fail(doc, -EINVAL, line, "text with a NUL character");
    return check_node(doc, scan, line, e->data.scalar.anchor, e->data.scalar.tag);
}

static int check_event(struct yaml_doc *doc, struct scan *scan, const yaml_event_t *e)
{
    size_t line = e->start_mark.line + 1;
    int rc = 0;
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return ++scan->documents > 1 ? fail(doc, -EINVAL, line, "a second document, one is allowed")
                                     : 0;
    case YAML_ALIAS_EVENT:
        return fail(doc, -EINVAL, line, "alias \"*%s\" is not supported, write the value out",
                    yaml_quote((const char *)e->data.alias.anchor).text);
    case YAML_SCALAR_EVENT:
        return check_scalar(doc, scan, e, line);
    case YAML_SEQUENCE_START_EVENT:
        rc = check_open(doc, scan, line);
        return rc ? rc
                  : check_node(doc, scan, line, e->data.sequence_start.anchor,
                               e->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        rc = check_open(doc, scan, line);
        return rc ? rc
                  : check_node(doc, scan, line, e->data.mapping_start.anchor,
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
        return fail(doc, -ENOMEM, 0, "out of memory");
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

static int build_tree(struct yaml_doc *doc, const char *data, size_t len)
{
    yaml_parser_t parser;
    int rc = 0;
    if (!yaml_parser_initialize(&parser))
        return fail(doc, -ENOMEM, 0, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)data, len);
    if (yaml_parser_load(&parser, &doc->tree))
        doc->has_tree = true;
    else
        rc = fail_parser(doc, &parser, data, len);
    yaml_parser_delete(&parser);
    if (!rc && !yaml_document_get_root_node(&doc->tree))
        rc = fail(doc, -EINVAL, 1, "the file is empty");
    return rc;
}

yaml_node_t *yaml_doc_node(const struct yaml_doc *doc, int id)
{
    return yaml_document_get_node((yaml_document_t *)&doc->tree, id);
}

const char *yaml_scalar_of(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

struct key {
    const char *text;
    size_t line;
};

static int key_order(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int by_text = strcmp(x->text, y->text);
    return by_text ? by_text : (x->line > y->line) - (x->line < y->line);
}

size_t yaml_pair_count(const yaml_node_t *map)
{
    return (size_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start);
}

static int collect_keys(struct yaml_doc *doc, const yaml_node_t *map, struct key *keys)
{
    for (size_t i = 0; i < yaml_pair_count(map); i++) {
        const yaml_node_pair_t *pair = &map->data.mapping.pairs.start[i];
        const yaml_node_t *node = yaml_doc_node(doc, pair->key);
        if (node->type != YAML_SCALAR_NODE || !node->data.scalar.length)
            return fail(doc, -EINVAL, node->start_mark.line + 1, "a key must be a word");
        keys[i] = (struct key){yaml_scalar_of(node), node->start_mark.line + 1};
        doc->key_of[pair->value] = pair->key;
    }
    return 0;
}

// Sorted, so that a map of very many keys does not cost their square.
static int check_map(struct yaml_doc *doc, const yaml_node_t *map)
{
    size_t n = yaml_pair_count(map);
    struct key *keys = calloc(n + 1, sizeof(*keys));
    if (!keys)
        return fail(doc, -ENOMEM, 0, "out of memory");
    int rc = collect_keys(doc, map, keys);
    if (!rc)
        qsort(keys, n, sizeof(*keys), key_order);
    for (size_t i = 1; i < n && !rc; i++)
        if (!strcmp(keys[i - 1].text, keys[i].text))
            rc = fail(doc, -EINVAL, keys[i].line, "key \"%s\" stands twice, first on line %zu",
                      yaml_quote(keys[i].text).text, keys[i - 1].line);
    free(keys);
    return rc;
}

static int check_tree(struct yaml_doc *doc)
{
    int n = (int)(doc->tree.nodes.top - doc->tree.nodes.start);
    int rc = 0;
    doc->key_of = calloc((size_t)n + 1, sizeof(*doc->key_of));
    if (!doc->key_of)
        return fail(doc, -ENOMEM, 0, "out of memory");
    // Parents come before their children in the tree, so a list knows its key before its items ask
    // for it.
    for (int id = 1; id <= n && !rc; id++) {
        const yaml_node_t *node = yaml_doc_node(doc, id);
        if (node->type == YAML_MAPPING_NODE)
            rc = check_map(doc, node);
        for (yaml_node_item_t *i = node->data.sequence.items.start;
             node->type == YAML_SEQUENCE_NODE && i < node->data.sequence.items.top; i++)
            doc->key_of[*i] = doc->key_of[id];
    }
    return rc;
}

static struct yaml_doc *doc_new(const char *name)
{
    struct yaml_doc *doc = calloc(1, sizeof(*doc));
    if (doc && !(doc->name = strdup(name))) {
        free(doc);
        return NULL;
    }
    return doc;
}

static void doc_parse(struct yaml_doc *doc, const char *data, size_t len)
{
    int rc = 0;
    if (len > YAML_BYTES_MAX)
        rc = fail(doc, -EINVAL, 0, "larger than %u KiB", YAML_BYTES_MAX / 1024);
    if (!rc)
        rc = check_events(doc, data, len);
    if (!rc)
        rc = build_tree(doc, data, len);
    if (!rc)
        check_tree(doc);
}

struct yaml_doc *yaml_doc_load_buffer(const char *name, const void *data, size_t len)
{
    struct yaml_doc *doc = doc_new(name);
    if (doc)
        doc_parse(doc, len ? data : "", len);
    return doc;
}

// Reads one byte more than is allowed, so that a file that is too large is seen as such.
static int read_file(const char *path, char *data, size_t room, size_t *len)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return -errno;
    *len = fread(data, 1, room, f);
    int rc = ferror(f) ? -(errno ? errno : EIO) : 0;
    fclose(f);
    return rc;
}

struct yaml_doc *yaml_doc_load_file(const char *path)
{
    size_t len = 0;
    struct yaml_doc *doc = doc_new(path);
    char *data = malloc(YAML_BYTES_MAX + 1);
    if (!doc || !data) {
        yaml_doc_free(doc);
        free(data);
        return NULL;
    }
    int rc = read_file(path, data, YAML_BYTES_MAX + 1, &len);
    if (rc)
        fail(doc, rc, 0, "cannot be read: %s", strerror(-rc));
    else
        doc_parse(doc, data, len);
    free(data);
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
    return doc ? doc->status : -ENOMEM;
}

const char *yaml_doc_error(const struct yaml_doc *doc)
{
    if (!doc)
        return "out of memory";
    return doc->status ? doc->error : NULL;
}

// SPDX-License-Identifier: Apache-2.0
// Walks a loaded YAML document and reads typed values with line numbers in the errors: see
// harness/plan/yaml.h.
#include "harness/plan/yaml_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAREST_CHARS 64

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

static bool is_null(const yaml_node_t *n)
{
    const char *text = is_plain(n) ? yaml_scalar_of(n) : "text";
    return !*text || !strcmp(text, "~") || !strcmp(text, "null");
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
    return is_null(n) ? YAML_KIND_NULL : YAML_KIND_SCALAR;
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

// Edits (insert, drop, change) that lead from a to b.
static size_t edits(const char *a, const char *b)
{
    size_t row[NEAREST_CHARS + 1];
    size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            size_t shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[n];
}

const char *yaml_nearest(const char *word, const char *const names[])
{
    const char *best = NULL;
    size_t len = strlen(word);
    if (!len || len > NEAREST_CHARS)
        return NULL;
    size_t best_edits = (len + 2) / 3 + 1;
    for (size_t i = 0; names[i]; i++) {
        if (strlen(names[i]) > NEAREST_CHARS)
            continue;
        size_t n = edits(word, names[i]);
        if (n < best_edits) {
            best_edits = n;
            best = names[i];
        }
    }
    return best;
}

static void join(char *out, size_t room, const char *const names[])
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; names[i] && used < room; i++) {
        int n = snprintf(out + used, room - used, "%s%s", i ? ", " : "", names[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

static int fail_choice(struct yaml_value v, const char *what, const char *word,
                       const char *const names[])
{
    char all[YAML_ERROR_BYTES / 2];
    const char *near = yaml_nearest(word, names);
    join(all, sizeof(all), names);
    return yaml_fail(v, "unknown %s \"%s\"%s%s%s allowed: %s", what, yaml_quote(word).text,
                     near ? ", did you mean \"" : ",", near ? near : "", near ? "\"?" : "", all);
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
            rc = fail_choice(yaml_key_value(map, i), "key", yaml_key(map, i), keys);
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

int yaml_bool(struct yaml_value v, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", NULL};
    int rc;
    const char *text = scalar(v, "true or false", &rc);
    if (!text)
        return rc;
    int i = is_plain(node(v)) ? index_of(text, words) : -1;
    if (i < 0)
        return fail_type(v, "true or false");
    *out = i % 2;
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
        return fail_choice(v, name.text, text, names);
    }
    *out = i;
    return 0;
}

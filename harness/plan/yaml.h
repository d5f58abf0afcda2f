/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a YAML file (or memory) into a tree that is safe to walk, with a line number on every
 * error. A small layer over libyaml's document API, shared by the suite parser, the shape sets and
 * the hardware figures.
 *
 * libcyaml does not serve here: its schema is fixed before a file is read, and the keys of a case
 * are the options of its benchmark. It reads 010 as 8, keeps no lines for later errors, and an
 * error has neither the allowed keys nor a hint.
 *
 * What is accepted is the plain part of YAML: maps, lists and scalars. Refused, each with
 * "name:line: what": anchors, aliases, tags, a second document, a key that is not a text or stands
 * twice in its map, a NUL inside a text, nesting beyond YAML_DEPTH_MAX, more than YAML_NODES_MAX
 * nodes, more than YAML_BYTES_MAX bytes. After a load without error every node has one parent, and
 * a walk from the root ends.
 *
 * Errors stick: the first one is kept in the document (text and code), later ones are dropped. A
 * reader can therefore ask for all its keys in a row and look at yaml_doc_status() once at the end:
 *
 *     yaml_keys(root, (const char *const[]){"name", "repeat", NULL});
 *     yaml_text(yaml_need(root, "name"), &name);
 *     yaml_int(yaml_get(root, "repeat"), 1, 1000, &repeat);   (where absent, repeat stays)
 *     if (yaml_doc_status(doc)) ...
 */
#ifndef PLUMB_HARNESS_YAML_H
#define PLUMB_HARNESS_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define YAML_BYTES_MAX (1u << 20)
#define YAML_NODES_MAX 65536
#define YAML_DEPTH_MAX 32

struct yaml_doc;

// One place in a document; small, passed by value, valid until yaml_doc_free(). Three states: a
// node, absent (an optional key that is not there), refused (asking for it was an error, which the
// document holds).
struct yaml_value {
    struct yaml_doc *doc;
    int id; // > 0: node, 0: absent, < 0: refused
};

enum yaml_kind {
    YAML_KIND_NONE,   // absent or refused
    YAML_KIND_NULL,   // "key:" with nothing after it, "~" or "null"
    YAML_KIND_SCALAR, // a text, number, or truth value, quoted or not
    YAML_KIND_LIST,
    YAML_KIND_MAP,
};

// Load. Ask yaml_doc_status() whether it can be
// used. The caller owns it. name stands in the messages in place of a path. data needs no NUL at
// its end and is not kept.
struct yaml_doc *yaml_doc_load_file(const char *path);
struct yaml_doc *yaml_doc_load_buffer(const char *name, const void *data, size_t len);
void yaml_doc_free(struct yaml_doc *doc); // NULL is allowed

// 0, or the -errno of the first error: -EINVAL for what the file says, -ENOENT, -EACCES... for the
// file itself.
int yaml_doc_status(const struct yaml_doc *doc);

// The text of the first error, "name:line: what" or "name: what"; NULL when there is none.
const char *yaml_doc_error(const struct yaml_doc *doc);

// The top value; refused when the document has an error or doc is NULL.
struct yaml_value yaml_doc_root(struct yaml_doc *doc);

enum yaml_kind yaml_kind(struct yaml_value v);
bool yaml_present(struct yaml_value v); // there is a node (null counts as one)
int yaml_line(struct yaml_value v);     // counts from 1; 0 for none

// The items of a list, or the pairs of a map in the order of the file. Out of range, or of the
// wrong kind: count 0, absent, NULL.
size_t yaml_count(struct yaml_value v);
struct yaml_value yaml_item(struct yaml_value v,
                            size_t i);               // i-th item of a list, or i-th value of a map
const char *yaml_key(struct yaml_value v, size_t i); // i-th key of a map
struct yaml_value yaml_key_value(struct yaml_value v,
                                 size_t i); // the key itself, for its line in an error

// Value of key in map: absent when the key is not there. yaml_need() makes that an error that names
// the key. Both refuse when map is not a map.
struct yaml_value yaml_get(struct yaml_value map, const char *key);
struct yaml_value yaml_need(struct yaml_value map, const char *key);

// Refuses the first key of map that is not among keys (NULL-terminated), with the nearest allowed
// key and the list of all.
int yaml_keys(struct yaml_value map, const char *const keys[]);

// Typed readers. All: 0 and *out set; 0 and *out untouched when v is absent (so *out may hold a
// default); -EINVAL and the error set when the value is of another type or out of [lo, hi]. Numbers
// must not be quoted. The text stays owned by the document.
int yaml_text(struct yaml_value v, const char **out); // any scalar but null or ""
int yaml_int(struct yaml_value v, int64_t lo, int64_t hi, int64_t *out); // decimal
int yaml_double(struct yaml_value v, double lo, double hi, double *out); // finite decimal
int yaml_choice(struct yaml_value v, const char *const names[],
                int *out); // index into names (NULL-terminated)

// Refuses v unless it is a list, or a map (absent passes).
int yaml_want(struct yaml_value v, enum yaml_kind kind);

// Refuses a word that is not among names (NULL-terminated): "unknown WHAT 'WORD'", with the nearest of
// them and all. Returns -EINVAL.
int yaml_unknown(struct yaml_value v, const char *what, const char *word,
                 const char *const names[]);

// Records an error of the caller's own at the line of v, as "name:line: <text>". Returns -EINVAL.
int yaml_fail(struct yaml_value v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

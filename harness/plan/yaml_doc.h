// SPDX-License-Identifier: Apache-2.0
// The inside of a YAML document, shared by harness/plan/yaml.c (loads it) and harness/plan/yaml_value.c
// (walks it). Others use harness/plan/yaml.h.
#ifndef PLUMB_HARNESS_YAML_DOC_H
#define PLUMB_HARNESS_YAML_DOC_H

#include "harness/plan/yaml.h"

#include <stdarg.h>
#include <yaml.h>

#define YAML_ERROR_BYTES 1024
#define YAML_QUOTE_CHARS 40

struct yaml_doc {
    char *name;
    yaml_document_t tree;
    bool has_tree;
    int *key_of; // by node id: the key node that the value stands under, 0 at the top
    int status;
    char error[YAML_ERROR_BYTES];
};

// A piece of the file made fit for a message: short, and without bytes that a terminal would obey.
struct yaml_quote {
    char text[YAML_QUOTE_CHARS + 4];
};
struct yaml_quote yaml_quote(const char *s);

// Keeps the error if it is the first. line 0: the whole file. Returns code.
int yaml_doc_vfail(struct yaml_doc *doc, int code, size_t line, const char *fmt, va_list ap);

yaml_node_t *yaml_doc_node(const struct yaml_doc *doc,
                           int id); // NULL for an id that is not in the tree
const char *yaml_scalar_of(const yaml_node_t *node);
size_t yaml_pair_count(const yaml_node_t *map);

#endif

// SPDX-License-Identifier: Apache-2.0
// The loaded hardware figures, shared by harness/limits*.c. Others use harness/limits/limits.h.
#ifndef PLUMB_HARNESS_LIMITS_TABLE_H
#define PLUMB_HARNESS_LIMITS_TABLE_H

#include "harness/limits/limits.h"
#include "harness/plan/yaml.h"

// What a figure may be called in an entry of one kind, its unit, and the bounds that catch a slip
// of the pen.
struct figure_spec {
    const char *kind;
    const char *name;
    const char *unit;
    double lo, hi;
    bool required;
};
extern const struct figure_spec limits_specs[]; // ends with kind NULL
extern const char *const limits_kinds[];        // NULL-terminated

struct limits_source {
    const char *id;
    char *text; // owned
    bool used;
    struct yaml_value at;
};

struct limits_figure {
    const struct figure_spec *spec;
    double value;
    const char *source;
    const char *note;
};

struct limits_entry {
    const char *kind;
    char *prefix;       // "<kind>.<key>", owned
    const char **names; // NULL-terminated, owned (not the texts)
    const char **pci;
    struct limits_figure *figures;
    size_t figure_count;
};

struct limits {
    struct yaml_doc **docs; // own every text that entries point to
    size_t doc_count;
    struct limits_source *sources; // of all files, in their order
    size_t source_count;
    struct limits_entry *entries;
    size_t entry_count;
};

// Adds one file to l. Returns 0 or -errno; the error is in the document, which l owns by then.
int limits_add_file(struct limits *l, struct yaml_doc *doc);

const struct limits_entry *limits_find_pci(const struct limits *l, const char *kind,
                                           const char *id);
const struct limits_entry *limits_find_name(const struct limits *l, const char *kind,
                                            const char *name);

#endif

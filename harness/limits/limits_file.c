// SPDX-License-Identifier: Apache-2.0
// Reads one file of configs/hardware into the table: see docs/limits.md for the format.
#include "harness/limits/limits_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPECS_MAX 64

struct file {
    struct limits *limits;
    const char *kind;
    size_t first_source; // of this file, in limits->sources
};

static int out_of_memory(struct yaml_value at)
{
    yaml_fail(at, "out of memory");
    return -ENOMEM;
}

// ---- sources

static char *source_text(const char *title, const char *publisher, const char *date,
                         const char *url)
{
    char *text = NULL;
    int n = asprintf(&text, "%s, %s%s%s%s%s", title, publisher, date ? ", " : "", date ? date : "",
                     url ? ", " : "", url ? url : "");
    return n < 0 ? NULL : text;
}

static struct limits_source *find_source(const struct file *f, const char *id)
{
    for (size_t i = f->first_source; i < f->limits->source_count; i++)
        if (!strcmp(f->limits->sources[i].id, id))
            return &f->limits->sources[i];
    return NULL;
}

static int add_source(struct file *f, struct yaml_value at, struct limits_source *out)
{
    static const char *const keys[] = {"id", "title", "publisher", "date", "url", NULL};
    const char *id = NULL, *title = NULL, *publisher = NULL, *date = NULL, *url = NULL;
    yaml_keys(at, keys);
    yaml_text(yaml_need(at, "id"), &id);
    yaml_text(yaml_need(at, "title"), &title);
    yaml_text(yaml_need(at, "publisher"), &publisher);
    yaml_text(yaml_get(at, "date"), &date);
    yaml_text(yaml_get(at, "url"), &url);
    if (yaml_doc_status(at.doc))
        return yaml_doc_status(at.doc);
    if (!date && !url)
        return yaml_fail(at, "source \"%s\" needs a date or a url", id);
    if (find_source(f, id))
        return yaml_fail(at, "source \"%s\" stands twice", id);
    *out = (struct limits_source){.id = id, .at = at};
    out->text = source_text(title, publisher, date, url);
    return out->text ? 0 : out_of_memory(at);
}

static int read_sources(struct file *f, struct yaml_value list)
{
    struct limits *l = f->limits;
    size_t n = yaml_count(list);
    int rc = yaml_want(list, YAML_KIND_LIST);
    if (rc)
        return rc;
    struct limits_source *more = realloc(l->sources, (l->source_count + n + 1) * sizeof(*more));
    if (!more)
        return out_of_memory(list);
    l->sources = more;
    for (size_t i = 0; i < n && !rc; i++) {
        rc = add_source(f, yaml_item(list, i), &l->sources[l->source_count]);
        l->source_count += !rc;
    }
    return rc;
}

static const char *use_source(struct file *f, struct yaml_value at, const char *otherwise)
{
    const char *id = NULL;
    if (!yaml_present(at))
        return otherwise;
    if (yaml_text(at, &id))
        return NULL;
    struct limits_source *source = find_source(f, id);
    if (!source) {
        yaml_fail(at, "unknown source \"%.40s\", the file's \"sources\" lacks it", id);
        return NULL;
    }
    source->used = true;
    return source->text;
}

static int check_sources_used(const struct file *f)
{
    for (size_t i = f->first_source; i < f->limits->source_count; i++) {
        const struct limits_source *source = &f->limits->sources[i];
        if (!source->used)
            return yaml_fail(source->at, "source \"%s\" is used by no figure", source->id);
    }
    return 0;
}

// ---- figures

static void figure_names(const char *kind, const char *names[SPECS_MAX])
{
    size_t n = 0;
    for (const struct figure_spec *s = limits_specs; s->kind && n < SPECS_MAX - 1; s++)
        if (!strcmp(s->kind, kind))
            names[n++] = s->name;
    names[n] = NULL;
}

static const struct figure_spec *find_spec(const char *kind, const char *name)
{
    for (const struct figure_spec *s = limits_specs; s->kind; s++)
        if (!strcmp(s->kind, kind) && !strcmp(s->name, name))
            return s;
    return NULL;
}

// "name: 5" takes its source from the entry; "name: {value: 5, source: x, note: y}" has its own.
static int read_figure(struct file *f, struct yaml_value at, const char *source,
                       struct limits_figure *out)
{
    static const char *const keys[] = {"value", "source", "note", NULL};
    struct yaml_value number = at;
    if (yaml_kind(at) == YAML_KIND_MAP) {
        yaml_keys(at, keys);
        number = yaml_need(at, "value");
        source = use_source(f, yaml_get(at, "source"), source);
        yaml_text(yaml_get(at, "note"), &out->note);
    }
    yaml_double(number, out->spec->lo, out->spec->hi, &out->value);
    if (!yaml_doc_status(at.doc) && !source)
        yaml_fail(at, "\"%s\" has no source, neither its own nor its entry's", out->spec->name);
    out->source = source;
    return yaml_doc_status(at.doc);
}

static int check_required(const struct limits_entry *e, struct yaml_value at)
{
    for (const struct figure_spec *s = limits_specs; s->kind; s++) {
        bool have = !s->required || strcmp(s->kind, e->kind) != 0;
        for (size_t i = 0; i < e->figure_count && !have; i++)
            have = e->figures[i].spec == s;
        if (!have)
            return yaml_fail(at, "\"%s\" lacks the figure \"%s\"", e->prefix, s->name);
    }
    return 0;
}

static int read_figures(struct file *f, struct yaml_value map, const char *source,
                        struct limits_entry *e)
{
    const char *names[SPECS_MAX];
    figure_names(f->kind, names);
    int rc = yaml_keys(map, names);
    e->figures = calloc(yaml_count(map) + 1, sizeof(*e->figures));
    if (!e->figures)
        return out_of_memory(map);
    for (size_t i = 0; i < yaml_count(map) && !rc; i++) {
        struct limits_figure *figure = &e->figures[e->figure_count];
        figure->spec = find_spec(f->kind, yaml_key(map, i));
        rc = read_figure(f, yaml_item(map, i), source, figure);
        e->figure_count += !rc;
    }
    return rc ? rc : check_required(e, map);
}

// ---- entries

// A list of texts, as a NULL-terminated array of pointers into the document.
static const char **read_texts(struct yaml_value list)
{
    const char **texts = calloc(yaml_count(list) + 1, sizeof(*texts));
    if (!texts) {
        out_of_memory(list);
        return NULL;
    }
    yaml_want(list, YAML_KIND_LIST);
    for (size_t i = 0; i < yaml_count(list); i++)
        yaml_text(yaml_item(list, i), &texts[i]);
    return texts;
}

static bool is_pci_id(const char *id)
{
    static const char hex[] = "0123456789abcdef";
    return strlen(id) == 9 && strspn(id, hex) == 4 && id[4] == ':' && strspn(id + 5, hex) == 4;
}

static int check_ids(const struct file *f, const struct limits_entry *e, struct yaml_value at)
{
    for (size_t i = 0; e->pci[i]; i++) {
        if (!is_pci_id(e->pci[i]))
            return yaml_fail(at, "PCI id \"%.40s\" wants four hex digits, a colon, four hex digits",
                             e->pci[i]);
        if (limits_find_pci(f->limits, f->kind, e->pci[i]))
            return yaml_fail(at, "PCI id \"%s\" is given twice", e->pci[i]);
    }
    for (size_t i = 0; e->names[i]; i++)
        if (limits_find_name(f->limits, f->kind, e->names[i]))
            return yaml_fail(at, "name \"%.60s\" is given twice", e->names[i]);
    for (size_t i = 0; i < f->limits->entry_count; i++)
        if (!strcmp(f->limits->entries[i].prefix, e->prefix))
            return yaml_fail(at, "entry \"%s\" stands twice", e->prefix);
    return 0;
}

static int read_key(struct file *f, struct yaml_value at, struct limits_entry *e)
{
    const char *key = NULL;
    struct yaml_value v = yaml_need(at, "key");
    if (yaml_text(v, &key))
        return -EINVAL;
    if (strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(key))
        return yaml_fail(v, "key \"%.40s\" wants small letters, digits and \"-\"", key);
    e->kind = f->kind;
    if (asprintf(&e->prefix, "%s.%s", f->kind, key) < 0) {
        e->prefix = NULL;
        return out_of_memory(at);
    }
    return 0;
}

static int read_entry(struct file *f, struct yaml_value at, struct limits_entry *e)
{
    static const char *const keys[] = {"key", "names", "pci", "source", "note", "figures", NULL};
    const char *note = NULL;
    int rc = yaml_keys(at, keys);
    rc = rc ? rc : read_key(f, at, e);
    e->names = read_texts(yaml_get(at, "names"));
    e->pci = read_texts(yaml_get(at, "pci"));
    yaml_text(yaml_get(at, "note"), &note);
    const char *source = use_source(f, yaml_get(at, "source"), NULL);
    rc = rc ? rc : yaml_doc_status(at.doc);
    rc = rc ? rc : check_ids(f, e, at);
    return rc ? rc : read_figures(f, yaml_need(at, "figures"), source, e);
}

static int read_entries(struct file *f, struct yaml_value list)
{
    struct limits *l = f->limits;
    size_t n = yaml_count(list);
    int rc = yaml_want(list, YAML_KIND_LIST);
    if (rc)
        return rc;
    struct limits_entry *more = realloc(l->entries, (l->entry_count + n + 1) * sizeof(*more));
    if (!more)
        return out_of_memory(list);
    l->entries = more;
    for (size_t i = 0; i < n && !rc; i++) {
        struct limits_entry *e = &l->entries[l->entry_count];
        memset(e, 0, sizeof(*e));
        rc = read_entry(f, yaml_item(list, i), e);
        l->entry_count++; // also on error: limits_free() takes what there is
    }
    return rc;
}

int limits_add_file(struct limits *l, struct yaml_doc *doc)
{
    static const char *const keys[] = {"about", "kind", "sources", "entries", NULL};
    struct yaml_value root = yaml_doc_root(doc);
    struct file f = {.limits = l, .first_source = l->source_count};
    const char *about = NULL;
    int kind = -1;
    yaml_keys(root, keys);
    yaml_text(yaml_need(root, "about"), &about);
    yaml_choice(yaml_need(root, "kind"), limits_kinds, &kind);
    int rc = yaml_doc_status(doc);
    if (rc)
        return rc;
    f.kind = limits_kinds[kind];
    rc = read_sources(&f, yaml_need(root, "sources"));
    rc = rc ? rc : read_entries(&f, yaml_need(root, "entries"));
    return rc ? rc : check_sources_used(&f);
}

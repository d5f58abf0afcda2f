/* SPDX-License-Identifier: Apache-2.0 */
/* Loads configs/hardware and looks figures up: see limits.h. */
#include "harness/limits/limits.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "harness/plan/yaml.h"

/* What a figure may be called in an entry of one kind, its unit, and the bounds that catch a slip
 * of the pen. */
struct figure_spec {
    const char *kind;
    const char *name;
    const char *unit;
    double lo, hi;
    bool required;
};

struct limits_source {
    const char *id;
    char *text; /* owned */
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
    char *prefix;       /* "<kind>.<key>", owned */
    const char **names; /* NULL-terminated, owned (not the texts) */
    const char **pci;
    struct limits_figure *figures;
    size_t figure_count;
};

struct limits {
    struct yaml_doc **docs; /* own every text that entries point to */
    size_t doc_count;
    struct limits_source *sources; /* of all files, in their order */
    size_t source_count;
    struct limits_entry *entries;
    size_t entry_count;
};

/* ---- The one table of what configs/hardware may state: kind, figure, unit, bounds ---- */

#define REQUIRED true
#define OPTIONAL false

static const char *const limits_kinds[] = {"gpu",        "sm",     "nic", "ethernet",
                                           "infiniband", "memory", NULL};

// clang-format off
static const struct figure_spec limits_specs[] = {
    // Dense rates. "_f16acc": with a 16-bit accumulator, where that is faster than the 32-bit one.
    {"gpu", "f64_tflops",            "TFLOP/s", 0.01,  1000, OPTIONAL},
    {"gpu", "f64_tensor_tflops",     "TFLOP/s", 0.01,  1000, OPTIONAL},
    {"gpu", "f32_tflops",            "TFLOP/s", 0.1,   1000, OPTIONAL},
    {"gpu", "f32_matrix_tflops",     "TFLOP/s", 0.1,   1000, OPTIONAL},
    {"gpu", "tf32_tflops",           "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "f16_tflops",            "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "f16_f16acc_tflops",     "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "bf16_tflops",           "TFLOP/s", 1,    10000, OPTIONAL},
    {"gpu", "fp8_tflops",            "TFLOP/s", 1,    20000, OPTIONAL},
    {"gpu", "fp8_f16acc_tflops",     "TFLOP/s", 1,    20000, OPTIONAL},
    {"gpu", "fp4_tflops",            "TFLOP/s", 1,    50000, OPTIONAL},
    {"gpu", "int8_tops",             "TOP/s",   1,    20000, OPTIONAL},
    {"gpu", "memory_gb",             "GB",      1,     1000, REQUIRED},
    {"gpu", "memory_gbytes_per_s",   "GB/s",   10,    50000, REQUIRED},
    {"gpu", "l2_mib",                "MiB",     0.5,   1000, OPTIONAL},
    {"gpu", "pcie_gen",              "",        1,        7, OPTIONAL},
    {"gpu", "pcie_lanes",            "",        1,       32, OPTIONAL},
    {"gpu", "nvlink_gen",            "",        1,        6, OPTIONAL},
    {"gpu", "nvlink_links",          "",        1,       36, OPTIONAL},
    {"gpu", "nvlink_gbytes_per_s",   "GB/s",    1,     4000, OPTIONAL},
    {"gpu", "c2c_gbytes_per_s",      "GB/s",    1,     4000, OPTIONAL},
    {"gpu", "xgmi_gbytes_per_s",     "GB/s",    1,     4000, OPTIONAL},

    // Operations of one streaming multiprocessor in one clock.
    {"sm", "f64_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "f32_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "tf32_per_clock",         "",        1,   100000, OPTIONAL},
    {"sm", "f16_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "bf16_per_clock",         "",        1,   100000, OPTIONAL},
    {"sm", "fp8_per_clock",          "",        1,   100000, OPTIONAL},
    {"sm", "int8_per_clock",         "",        1,   100000, OPTIONAL},

    {"nic", "port_gbits_per_s",      "Gb/s",    1,     1600, OPTIONAL},
    {"nic", "pcie_gen",              "",        1,        7, OPTIONAL},
    {"nic", "pcie_lanes",            "",        1,       32, OPTIONAL},

    {"ethernet", "data_gbits_per_s", "Gb/s",    0.01,  1600, REQUIRED},

    {"infiniband", "lane_data_gbits_per_s", "Gb/s", 1, 500, REQUIRED},

    {"memory", "interface_bits",     "",       16,     4096, REQUIRED},
    {"memory", "max_mt_s",           "MT/s",  200,    20000, REQUIRED},
    {"memory", "gbytes_per_s",       "GB/s",    1,     5000, REQUIRED},
    {0},
};
// clang-format on

static bool among(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (!strcasecmp(text, *list))
            return true;
    return false;
}

const char *limits_device(const struct limits *l, const char *kind, const char *id,
                          const char *name)
{
    for (size_t i = 0; i < l->entry_count; i++)
        if (!strcmp(l->entries[i].kind, kind) &&
            ((id && among(id, l->entries[i].pci)) || (name && among(name, l->entries[i].names))))
            return l->entries[i].prefix;
    return NULL;
}

/* ---- One file of configs/hardware; docs/limits.md has the format ---- */

#define SPECS_MAX 64

struct file {
    struct limits *limits;
    const char *kind;
    size_t first_source; // of this file, in limits->sources
};

/* ---- Sources of the file ---- */

static struct limits_source *find_source(const struct file *f, const char *id)
{
    for (size_t i = f->first_source; i < f->limits->source_count; i++)
        if (!strcmp(f->limits->sources[i].id, id))
            return &f->limits->sources[i];
    return NULL;
}

static void add_source(struct file *f, struct yaml_value at)
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
        return;
    if (!date && !url)
        yaml_fail(at, "source \"%s\" needs a date or a url", id);
    if (find_source(f, id))
        yaml_fail(at, "source \"%s\" stands twice", id);
    *ARRAY_ADD(f->limits->sources, f->limits->source_count) = (struct limits_source){
        .id = id,
        .at = at,
        .text = xasprintf("%s, %s%s%s%s%s", title, publisher, date ? ", " : "", date ? date : "",
                          url ? ", " : "", url ? url : "")};
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

/* ---- Figures of the file ---- */

// "name: 5" takes its source from the entry; "name: {value: 5, source: x, note: y}" has its own.
static void read_figure(struct file *f, struct yaml_value at, const char *source,
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
}

static void read_figures(struct file *f, struct yaml_value map, const char *source,
                         struct limits_entry *e)
{
    const char *names[SPECS_MAX];
    const struct figure_spec *s;
    size_t n = 0, i;
    for (s = limits_specs; s->kind && n < SPECS_MAX - 1; s++)
        if (!strcmp(s->kind, f->kind))
            names[n++] = s->name;
    names[n] = NULL;
    if (yaml_keys(map, names))
        return;
    e->figures = xcalloc(yaml_count(map), sizeof(*e->figures));
    for (i = 0; i < yaml_count(map) && !yaml_doc_status(map.doc); i++) {
        struct limits_figure *figure = &e->figures[e->figure_count++];
        for (s = limits_specs; strcmp(s->kind, f->kind) || strcmp(s->name, yaml_key(map, i)); s++)
            ;
        figure->spec = s;
        read_figure(f, yaml_item(map, i), source, figure);
    }
    for (s = limits_specs; s->kind; s++) {
        for (i = 0; i < e->figure_count && e->figures[i].spec != s; i++)
            ;
        if (s->required && !strcmp(s->kind, f->kind) && i == e->figure_count)
            yaml_fail(map, "\"%s\" lacks the figure \"%s\"", e->prefix, s->name);
    }
}

/* ---- Entries of the file ---- */

// A list of texts, as a NULL-terminated array of pointers into the document.
static const char **read_texts(struct yaml_value list)
{
    const char **texts = xcalloc(yaml_count(list) + 1, sizeof(*texts));
    yaml_want(list, YAML_KIND_LIST);
    for (size_t i = 0; i < yaml_count(list); i++)
        yaml_text(yaml_item(list, i), &texts[i]);
    return texts;
}

static void check_ids(const struct file *f, const struct limits_entry *e, struct yaml_value at)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; e->pci[i]; i++) {
        const char *id = e->pci[i];
        if (strlen(id) != 9 || strspn(id, hex) != 4 || id[4] != ':' || strspn(id + 5, hex) != 4)
            yaml_fail(at, "PCI id \"%.40s\" wants four hex digits, a colon, four hex digits", id);
        if (limits_device(f->limits, f->kind, id, NULL))
            yaml_fail(at, "PCI id \"%s\" is given twice", id);
    }
    for (size_t i = 0; e->names[i]; i++)
        if (limits_device(f->limits, f->kind, NULL, e->names[i]))
            yaml_fail(at, "name \"%.60s\" is given twice", e->names[i]);
    for (size_t i = 0; i < f->limits->entry_count; i++)
        if (!strcmp(f->limits->entries[i].prefix, e->prefix))
            yaml_fail(at, "entry \"%s\" stands twice", e->prefix);
}

static void read_entry(struct file *f, struct yaml_value at, struct limits_entry *e)
{
    static const char *const keys[] = {"key", "names", "pci", "source", "note", "figures", NULL};
    const char *key = "", *note = NULL;
    yaml_keys(at, keys);
    yaml_text(yaml_need(at, "key"), &key);
    if (strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(key))
        yaml_fail(yaml_need(at, "key"), "key \"%.40s\" wants small letters, digits and \"-\"", key);
    e->kind = f->kind;
    e->prefix = xasprintf("%s.%s", f->kind, key);
    e->names = read_texts(yaml_get(at, "names"));
    e->pci = read_texts(yaml_get(at, "pci"));
    yaml_text(yaml_get(at, "note"), &note);
    const char *source = use_source(f, yaml_get(at, "source"), NULL);
    if (yaml_doc_status(at.doc))
        return;
    check_ids(f, e, at);
    read_figures(f, yaml_need(at, "figures"), source, e);
}

/* Adds one file to l. Returns 0 or -errno; the error is in the document, which l owns by then. */
static int limits_add_file(struct limits *l, struct yaml_doc *doc)
{
    static const char *const keys[] = {"about", "kind", "sources", "entries", NULL};
    struct yaml_value root = yaml_doc_root(doc), sources, entries;
    struct file f = {.limits = l, .first_source = l->source_count};
    const char *about = NULL;
    int kind = -1;
    yaml_keys(root, keys);
    yaml_text(yaml_need(root, "about"), &about);
    yaml_choice(yaml_need(root, "kind"), limits_kinds, &kind);
    if (yaml_doc_status(doc))
        return yaml_doc_status(doc);
    f.kind = limits_kinds[kind];
    sources = yaml_need(root, "sources");
    yaml_want(sources, YAML_KIND_LIST);
    for (size_t i = 0; i < yaml_count(sources) && !yaml_doc_status(doc); i++)
        add_source(&f, yaml_item(sources, i));
    entries = yaml_need(root, "entries");
    yaml_want(entries, YAML_KIND_LIST);
    for (size_t i = 0; i < yaml_count(entries) && !yaml_doc_status(doc); i++) {
        struct limits_entry e = {.kind = NULL};
        read_entry(&f, yaml_item(entries, i), &e);
        *ARRAY_ADD(l->entries, l->entry_count) = e; // also on error, to be freed
    }
    for (size_t i = f.first_source; i < l->source_count; i++)
        if (!l->sources[i].used)
            yaml_fail(l->sources[i].at, "source \"%s\" is used by no figure", l->sources[i].id);
    return yaml_doc_status(doc);
}

#define KEY_BYTES 256

static int is_yaml(const struct dirent *d)
{
    size_t len = strlen(d->d_name);
    return len > 5 && d->d_name[0] != '.' && !strcmp(d->d_name + len - 5, ".yaml");
}

static int load_path(struct limits *l, const char *path, char *err, size_t errlen)
{
    struct yaml_doc *doc = yaml_doc_load_file(path);
    *ARRAY_ADD(l->docs, l->doc_count) = doc;
    int rc = yaml_doc_status(doc);
    rc = rc ? rc : limits_add_file(l, doc);
    if (rc)
        snprintf(err, errlen, "%s", yaml_doc_error(doc));
    return rc;
}

static int load_folder(struct limits *l, const char *folder, char *err, size_t errlen)
{
    struct dirent **files = NULL;
    int n = scandir(folder, &files, is_yaml, alphasort);
    int rc = 0;
    if (n < 0) {
        rc = -errno;
        snprintf(err, errlen, "hardware figures \"%s\" cannot be read: %s", folder, strerror(-rc));
        return rc;
    }
    if (n == 0) {
        snprintf(err, errlen, "hardware figures \"%s\" has no .yaml file", folder);
        rc = -ENOENT;
    }
    for (int i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s", folder, files[i]->d_name);
        rc = rc ? rc : load_path(l, path, err, errlen);
        free(path);
        free(files[i]);
    }
    free(files);
    return rc;
}

struct limits *limits_load(const char *configs_dir, const char *file, char *err, size_t errlen)
{
    char *folder = xasprintf("%s/hardware", configs_dir);
    struct limits *l = xcalloc(1, sizeof(*l));
    int rc = load_folder(l, folder, err, errlen);
    free(folder);
    if (!rc && file)
        rc = load_path(l, file, err, errlen);
    if (!rc)
        return l;
    limits_free(l);
    return NULL;
}

void limits_free(struct limits *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->entry_count; i++) {
        free(l->entries[i].prefix);
        free(l->entries[i].names);
        free(l->entries[i].pci);
        free(l->entries[i].figures);
    }
    for (size_t i = 0; i < l->source_count; i++)
        free(l->sources[i].text);
    for (size_t i = 0; i < l->doc_count; i++)
        yaml_doc_free(l->docs[i]);
    free(l->entries);
    free(l->sources);
    free(l->docs);
    free(l);
}

static const struct limits_figure *find_figure(const struct limits *l, const char *key)
{
    const char *dot = strrchr(key, '.');
    size_t len = dot ? (size_t)(dot - key) : 0;
    for (size_t i = 0; dot && i < l->entry_count; i++) {
        const struct limits_entry *e = &l->entries[i];
        if (strlen(e->prefix) != len || strncmp(e->prefix, key, len))
            continue;
        for (size_t j = 0; j < e->figure_count; j++)
            if (!strcmp(e->figures[j].spec->name, dot + 1))
                return &e->figures[j];
    }
    return NULL;
}

int limits_lookup(const struct limits *l, const char *key, double *value, const char **unit,
                  const char **source)
{
    const struct limits_figure *figure = find_figure(l, key);
    if (!figure)
        return -ENOENT;
    if (value)
        *value = figure->value;
    if (unit)
        *unit = figure->spec->unit;
    if (source)
        *source = figure->source;
    return 0;
}

int limits_each(const struct limits *l, int (*fn)(const struct limit_figure *figure, void *data),
                void *data)
{
    char key[KEY_BYTES];
    int rc = 0;
    for (size_t i = 0; i < l->entry_count; i++) {
        const struct limits_entry *e = &l->entries[i];
        for (size_t j = 0; j < e->figure_count && !rc; j++) {
            const struct limits_figure *f = &e->figures[j];
            snprintf(key, sizeof(key), "%s.%s", e->prefix, f->spec->name);
            rc = fn(&(struct limit_figure){key, f->value, f->spec->unit, f->source, f->note}, data);
        }
    }
    return rc;
}

// SPDX-License-Identifier: Apache-2.0
// Loads configs/hardware and looks figures up: see harness/limits/limits.h.
#include "harness/limits/limits.h"
#include "harness/limits/limits_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KEY_BYTES 256

static int is_yaml(const struct dirent *d)
{
    size_t len = strlen(d->d_name);
    return len > 5 && d->d_name[0] != '.' && !strcmp(d->d_name + len - 5, ".yaml");
}

static int add_doc(struct limits *l, struct yaml_doc *doc)
{
    struct yaml_doc **more = realloc(l->docs, (l->doc_count + 1) * sizeof(*more));
    if (more)
        l->docs = more;
    if (!doc || !more) {
        yaml_doc_free(doc);
        return -ENOMEM;
    }
    l->docs[l->doc_count++] = doc;
    return 0;
}

static int load_file(struct limits *l, const char *folder, const char *name, char *err,
                     size_t errlen)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return -ENOMEM;
    struct yaml_doc *doc = yaml_doc_load_file(path);
    free(path);
    int rc = add_doc(l, doc);
    if (rc)
        return rc;
    rc = yaml_doc_status(doc);
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
        rc = rc ? rc : load_file(l, folder, files[i]->d_name, err, errlen);
        free(files[i]);
    }
    free(files);
    return rc;
}

struct limits *limits_load(const char *configs_dir, char *err, size_t errlen)
{
    char *folder = NULL;
    struct limits *l = calloc(1, sizeof(*l));
    snprintf(err, errlen, "out of memory");
    if (l && asprintf(&folder, "%s/hardware", configs_dir) >= 0) {
        int rc = load_folder(l, folder, err, errlen);
        free(folder);
        if (!rc)
            return l;
    }
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

const char *limits_note(const struct limits *l, const char *key)
{
    const struct limits_figure *figure = find_figure(l, key);
    return figure ? figure->note : NULL;
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

static bool among(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (!strcasecmp(text, *list))
            return true;
    return false;
}

const struct limits_entry *limits_find_pci(const struct limits *l, const char *kind, const char *id)
{
    for (size_t i = 0; i < l->entry_count; i++)
        if (!strcmp(l->entries[i].kind, kind) && among(id, l->entries[i].pci))
            return &l->entries[i];
    return NULL;
}

const struct limits_entry *limits_find_name(const struct limits *l, const char *kind,
                                            const char *name)
{
    for (size_t i = 0; i < l->entry_count; i++)
        if (!strcmp(l->entries[i].kind, kind) && among(name, l->entries[i].names))
            return &l->entries[i];
    return NULL;
}

static int give(const struct limits_entry *e, const char **entry)
{
    if (!e)
        return -ENOENT;
    *entry = e->prefix;
    return 0;
}

int limits_gpu_by_pci(const struct limits *l, const char *id, const char **entry)
{
    return give(limits_find_pci(l, "gpu", id), entry);
}

int limits_gpu_by_name(const struct limits *l, const char *name, const char **entry)
{
    return give(limits_find_name(l, "gpu", name), entry);
}

int limits_nic_by_pci(const struct limits *l, const char *id, const char **entry)
{
    return give(limits_find_pci(l, "nic", id), entry);
}

// SPDX-License-Identifier: Apache-2.0
// Reads configs/shapes/*.yaml: see harness/plan/shapes.h.
#include "harness/plan/shapes.h"
#include "harness/plan/yaml.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM_MAX   (INT64_C(1) << 31)
#define UNITS_MAX 16
#define WORD_MAX  64

static bool is_word(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    return strspn(s, letters) == strlen(s) && strlen(s) < WORD_MAX;
}

static int read_word(struct yaml_value at, const char **out)
{
    int rc = yaml_text(at, out);
    if (!rc && !is_word(*out))
        rc = yaml_fail(at, "\"%.40s\" wants small letters, digits, \"-\" and \".\"", *out);
    return rc;
}

static int read_shape(struct yaml_value at, struct shape *s)
{
    static const char *const keys[] = {"name", "m", "n", "k", "count", NULL};
    int rc = yaml_keys(at, keys);
    rc = rc ? rc : read_word(yaml_need(at, "name"), &s->name);
    rc = rc ? rc : yaml_int(yaml_need(at, "m"), 1, DIM_MAX, &s->m);
    rc = rc ? rc : yaml_int(yaml_need(at, "n"), 1, DIM_MAX, &s->n);
    rc = rc ? rc : yaml_int(yaml_need(at, "k"), 1, DIM_MAX, &s->k);
    return rc ? rc : yaml_int(yaml_need(at, "count"), 1, 100000, &s->count);
}

static int check_new(struct yaml_value at, const struct shape *shapes, size_t n)
{
    const struct shape *s = &shapes[n];
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(shapes[i].name, s->name))
            return yaml_fail(at, "shape \"%s\" stands twice", s->name);
        if (shapes[i].m == s->m && shapes[i].n == s->n && shapes[i].k == s->k)
            return yaml_fail(at, "shape \"%s\" is the same product as \"%s\", add up their counts",
                             s->name, shapes[i].name);
    }
    return 0;
}

static int read_units(struct yaml_value list, int64_t units[UNITS_MAX], size_t *count)
{
    int rc = yaml_want(list, YAML_KIND_LIST);
    size_t n = yaml_count(list);
    if (!rc && (n < 1 || n > UNITS_MAX))
        rc = yaml_fail(list, "\"units\" has %zu values, allowed: 1 to %d", n, UNITS_MAX);
    for (size_t i = 0; i < n && !rc; i++) {
        rc = yaml_int(yaml_item(list, i), 1, 1 << 24, &units[i]);
        if (!rc && i && units[i] <= units[i - 1])
            rc = yaml_fail(yaml_item(list, i), "\"units\" wants rising values");
    }
    *count = n;
    return rc;
}

// Row 0 is read from the file; the other rows are the same shapes with more units.
static int expand(struct yaml_value list, struct shape *shapes, size_t per_row,
                  const int64_t *units, size_t rows)
{
    for (size_t i = rows * per_row; i-- > 0;) {
        shapes[i] = shapes[i % per_row];
        shapes[i].units = units[i / per_row];
        shapes[i].m *= shapes[i].units;
        if (shapes[i].m > DIM_MAX)
            return yaml_fail(yaml_item(list, i % per_row),
                             "shape \"%s\" with %" PRId64 " units has m beyond %" PRId64,
                             shapes[i].name, shapes[i].units, DIM_MAX);
    }
    return 0;
}

static int read_shapes(struct yaml_value list, const int64_t *units, size_t rows,
                       struct shape_set *out)
{
    size_t n = yaml_count(list);
    int rc = yaml_want(list, YAML_KIND_LIST);
    if (!rc && (n < 1 || n > 1000))
        rc = yaml_fail(list, "\"shapes\" has %zu entries, allowed: 1 to 1000", n);
    if (rc)
        return rc;
    out->shapes = calloc(n * rows + 1, sizeof(*out->shapes));
    if (!out->shapes)
        return -ENOMEM;
    for (size_t i = 0; i < n && !rc; i++) {
        rc = read_shape(yaml_item(list, i), &out->shapes[i]);
        rc = rc ? rc : check_new(yaml_item(list, i), out->shapes, i);
    }
    out->count = n * rows;
    return rc ? rc : expand(list, out->shapes, n, units, rows);
}

static int read_set(struct yaml_value root, struct shape_set *out)
{
    static const char *const keys[] = {"name", "about", "source", "unit", "units", "shapes", NULL};
    int64_t units[UNITS_MAX];
    size_t rows = 0;
    int rc = yaml_keys(root, keys);
    rc = rc ? rc : read_word(yaml_need(root, "name"), &out->name);
    rc = rc ? rc : yaml_text(yaml_need(root, "about"), &out->about);
    rc = rc ? rc : yaml_text(yaml_need(root, "source"), &out->source);
    rc = rc ? rc : read_word(yaml_need(root, "unit"), &out->unit);
    rc = rc ? rc : read_units(yaml_need(root, "units"), units, &rows);
    return rc ? rc : read_shapes(yaml_need(root, "shapes"), units, rows, out);
}

static int load(struct yaml_doc *doc, struct shape_set *out, char *err, size_t errlen)
{
    memset(out, 0, sizeof(*out));
    out->owner = doc;
    int rc = yaml_doc_status(doc);
    rc = rc ? rc : read_set(yaml_doc_root(doc), out);
    if (rc) {
        const char *text = yaml_doc_error(doc);
        snprintf(err, errlen, "%s", text ? text : "out of memory");
        shapes_free(out);
    }
    return rc;
}

int shapes_load(const char *path, struct shape_set *out, char *err, size_t errlen)
{
    return load(yaml_doc_load_file(path), out, err, errlen);
}

int shapes_load_buffer(const char *name, const void *data, size_t len, struct shape_set *out,
                       char *err, size_t errlen)
{
    return load(yaml_doc_load_buffer(name, data, len), out, err, errlen);
}

void shapes_free(struct shape_set *set)
{
    free(set->shapes);
    yaml_doc_free(set->owner);
    memset(set, 0, sizeof(*set));
}

int shape_text(const struct shape *shape, char *buf, size_t size)
{
    return snprintf(buf, size, "%" PRId64 "x%" PRId64 "x%" PRId64, shape->m, shape->n, shape->k);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a case: see suite.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hw/rail.h"
#include "core/hw/topo.h"
#include "core/rng.h"
#include "harness/plan/bench_info.h"
#include "harness/plan/suite.h"
#include "harness/plan/yaml.h"
#include "harness/text.h"

struct places_read {
    bool word;      /* a word stands in the text */
    bool every_gpu; /* `gpus` stands in the text */
    bool no_gpu;    /* it asks for GPUs, and there is none */
};

/* ---- The words that stand for what a machine has ---- */

#define PLACES_GPUS_MAX 1024

/* Is backend i a GPU (rather than a library or an engine)? Its name is KIND:NUMBER then. */
static bool places_is_gpu(const struct bench_info *b, size_t backend)
{
    const char *colon = strchr(b->backends[backend].name, ':');

    return colon && colon != b->backends[backend].name && colon[1] &&
           !colon[1 + strspn(colon + 1, "0123456789")];
}

size_t places_gpu_count(const struct bench_info *b)
{
    size_t n = 0;
    bool works = false;

    for (size_t i = 0; i < b->n_backends && n < PLACES_GPUS_MAX; i++) {
        if (!places_is_gpu(b, i))
            continue;
        works |= b->backends[i].state == BACKEND_PRESENT;
        n++;
    }
    return works ? n : 0;
}

static const struct bench_backend *gpu_at(const struct bench_info *b, size_t number)
{
    for (size_t i = 0, n = 0; i < b->n_backends; i++)
        if (places_is_gpu(b, i) && n++ == number)
            return &b->backends[i];
    return NULL;
}

size_t places_gpu_number(const struct bench_info *b, const char *name)
{
    size_t n = places_gpu_count(b);

    for (size_t i = 0; i < n; i++)
        if (!strcmp(gpu_at(b, i)->name, name))
            return i;
    return SIZE_MAX;
}

bool places_gpu_is_simulated(const struct bench_info *b, const char *name)
{
    size_t number = places_gpu_number(b, name);

    return number != SIZE_MAX && gpu_at(b, number)->simulated;
}

size_t places_gpu_rank(const struct bench_info *b, size_t number)
{
    const char *own = gpu_at(b, number)->address;
    size_t n = places_gpu_count(b), rank = 0;

    for (size_t i = 0; i < n; i++) {
        int d = strcmp(gpu_at(b, i)->address, own);
        rank += d < 0 || (d == 0 && i < number);
    }
    return rank;
}

bool places_taken_by(const struct opt *opt)
{
    return opt->type == OPT_CUSTOM || opt->type == OPT_STRING;
}

struct words {
    struct buffer *out;
    size_t n;
};

static void add_word(struct words *w, const char *word, size_t len)
{
    buffer_text(w->out, w->n++ ? "," : "");
    buffer_add(w->out, word, len);
}

static void add_gpus(const struct bench_info *b, struct words *w, bool every,
                     struct places_read *read)
{
    size_t n = places_gpu_count(b);

    read->word = true;
    read->every_gpu |= every;
    read->no_gpu |= !n;
    if (!n)
        add_word(w, PLACES_NO_GPU, strlen(PLACES_NO_GPU));
    for (size_t i = 0; i < (every ? n : n > 0); i++)
        add_word(w, gpu_at(b, i)->name, strlen(gpu_at(b, i)->name));
}

static void add_nodes(struct words *w, struct places_read *read)
{
    struct topo *topo = NULL;

    read->word = true;
    if (topo_open(
            &topo)) { /* a machine that cannot be read has one node, as far as anybody knows */
        add_word(w, "node0", strlen("node0"));
        return;
    }
    for (unsigned i = 0; i < topo_nodes(topo); i++) {
        char name[24];
        int n = snprintf(name, sizeof(name), "node%u", topo_node_id(topo, i));
        add_word(w, name, (size_t)n);
    }
    topo_close(topo);
}

/* The number of a backend that is a rail; -1: it is none. */
static long rail_number(const char *name)
{
    size_t n = strlen(RAIL_PREFIX);
    const char *digits = name + n;

    if (strncmp(name, RAIL_PREFIX, n) || !*digits || digits[strspn(digits, "0123456789")])
        return -1;
    return strtol(digits, NULL, 10);
}

/* By their numbers. A machine that has none keeps the first, whose row says why. */
static void add_rails(const struct bench_info *b, struct words *w, struct places_read *read)
{
    size_t before = w->n;

    read->word = true;
    for (size_t i = 0; i < b->n_backends; i++) {
        char number[24];

        if (rail_number(b->backends[i].name) < 0)
            continue;
        int n = snprintf(number, sizeof(number), "%ld", rail_number(b->backends[i].name));
        add_word(w, number, (size_t)n);
    }
    if (w->n == before)
        add_word(w, "0", 1);
}

/* A comma-separated list with the words replaced, and a GPU's other names by its one name.
 * *out is the caller's to release. */
static void places_expand(const struct bench_info *b, const char *text, struct buffer *out,
                          struct places_read *read)
{
    struct words words = {.out = out};

    *read = (struct places_read){0};
    for (;;) {
        size_t n = strcspn(text, ",");
        if (n == 3 && !memcmp(text, "gpu", n))
            add_gpus(b, &words, false, read);
        else if (n == 4 && !memcmp(text, "gpus", n))
            add_gpus(b, &words, true, read);
        else if (n == 8 && !memcmp(text, "all-gpus", n)) {
            /* All at once, as one place. */
            const char *place = places_gpu_count(b) ? PLACES_ALL_GPUS : PLACES_NO_GPU;

            read->word = true;
            read->no_gpu |= !places_gpu_count(b);
            add_word(&words, place, strlen(place));
        } else if (n == 5 && !memcmp(text, "nodes", n))
            add_nodes(&words, read);
        else if (n == 5 && !memcmp(text, "rails", n))
            add_rails(b, &words, read);
        else if (n == strcspn(PLACES_NO_GPU, ":") && !memcmp(text, PLACES_NO_GPU, n))
            add_word(&words, PLACES_NO_GPU, strlen(PLACES_NO_GPU));
        else
            add_word(&words, text, n);
        if (!text[n])
            break;
        text += n + 1;
    }
}

/* ---- Choosing pairs of GPUs ---- */

static void take(bool *taken, unsigned n, unsigned from, unsigned to, unsigned *count)
{
    if (from == to || taken[from * n + to])
        return;
    taken[from * n + to] = true;
    ++*count;
}

bool *pairs_choose(unsigned n, uint64_t seed, unsigned *count)
{
    bool *taken = xcalloc((size_t)n * n, sizeof(*taken));
    unsigned wanted = n * (n - 1);
    struct rng rng;

    *count = 0;
    if (n > PAIRS_ALL) {
        for (unsigned i = 0; i < n; i++) {
            take(taken, n, i, (i + 1) % n, count);
            take(taken, n, i, (i + n / 2) % n, count);
        }
        wanted = *count + 8 > PAIRS_SAMPLED ? *count + 8 : PAIRS_SAMPLED;
    } else {
        for (unsigned i = 0; i < n * n; i++)
            take(taken, n, i / n, i % n, count);
    }
    rng_seed(&rng, seed);
    while (*count < wanted)
        take(taken, n, (unsigned)rng_below(&rng, n), (unsigned)rng_below(&rng, n), count);
    return taken;
}

/* ---- Reads configs/shapes/NAME.yaml ---- */

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
    out->shapes = xcalloc(n * rows, sizeof(*out->shapes));
    for (size_t i = 0; i < n && !rc; i++) {
        struct yaml_value at = yaml_item(list, i);
        struct shape *s = &out->shapes[i];
        rc = yaml_keys(at, (const char *const[]){"name", "m", "n", "k", "count", NULL});
        rc = rc ? rc : read_word(yaml_need(at, "name"), &s->name);
        rc = rc ? rc : yaml_int(yaml_need(at, "m"), 1, DIM_MAX, &s->m);
        rc = rc ? rc : yaml_int(yaml_need(at, "n"), 1, DIM_MAX, &s->n);
        rc = rc ? rc : yaml_int(yaml_need(at, "k"), 1, DIM_MAX, &s->k);
        rc = rc ? rc : yaml_int(yaml_need(at, "count"), 1, 100000, &s->count);
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
        snprintf(err, errlen, "%s", yaml_doc_error(doc));
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

/* Keys of a case that are the harness' own. */
static const char *const own_keys[] = {"bench",   "repeat", "timeout", "margin",
                                       "between", "shapes", NULL};

/* Options that all benchmarks have but a suite may not set, since the harness does. */
static const char *const kept_options[] = {"csv",  "json", "output",  "samples",  "describe",
                                           "help", "seed", "version", "no-color", NULL};

static bool among(const char *text, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(text, *names))
            return true;
    return false;
}

/* "a, b" of a list, or the text of a scalar, as the command line would have it. New text. */
static char *value_text(struct yaml_value v)
{
    struct buffer joined = {0};
    const char *text = NULL;

    if (yaml_kind(v) != YAML_KIND_LIST)
        return yaml_text(v, &text) || !text ? NULL : xstrdup(text);
    if (!yaml_count(v))
        yaml_fail(v, "the list is empty: name at least one value, or leave the key out");
    for (size_t i = 0; i < yaml_count(v); i++) {
        if (yaml_text(yaml_item(v, i), &text)) {
            buffer_release(&joined);
            return NULL;
        }
        buffer_text(&joined, i ? "," : "");
        buffer_text(&joined, text);
    }
    return joined.text;
}

bool suite_key_is_own(const char *key)
{
    return among(key, own_keys);
}

size_t suite_option_index(const struct bench_info *b, const char *key)
{
    size_t i = 0;

    while (b->options[i].name && strcmp(b->options[i].name, key))
        i++;
    return b->options[i].name && !among(key, kept_options) ? i : SIZE_MAX;
}

bool suite_option_is_left(const struct bench_info *b, size_t i)
{
    return bench_needs(b, "group") && !strcmp(b->options[i].name, "ranks");
}

static int unknown_key(const struct bench_info *b, struct yaml_value key, const char *name)
{
    const char *names[256];
    char *what = xasprintf("option of '%s'", b->name);
    size_t n = 0;

    for (size_t i = 0; own_keys[i]; i++)
        names[n++] = own_keys[i];
    for (size_t i = 0; b->options[i].name && n < 255; i++)
        if (!among(b->options[i].name, kept_options) && !among(b->options[i].name, own_keys))
            names[n++] = b->options[i].name;
    names[n] = NULL;
    int err = yaml_unknown(key, what, name, names);
    free(what);
    return err;
}

/* Words that stand for what this machine has are replaced first. */
static int set_option(struct case_draft *draft, size_t i, const char *text, char *error, size_t len)
{
    struct buffer expanded = {0};
    struct places_read read;

    if (!places_taken_by(&draft->bench->options[i]))
        return case_draft_set(draft, i, text, error, len);
    places_expand(draft->bench, text, &expanded, &read);
    int err = case_draft_set(draft, i, expanded.text, error, len);
    if (!err) {
        draft->every_gpu[i] = read.every_gpu;
        draft->by_machine |= read.word;
        draft->no_gpu |= read.no_gpu;
    }
    buffer_release(&expanded);
    return err;
}

/* 1 of "largest", 4 of "largest x4" of sizes; 0: it is neither. */
static unsigned times_largest(const struct opt *opt, const char *text)
{
    unsigned times;
    char end;

    if (opt->type == OPT_SIZE && sscanf(text, "largest x%4u%c", &times, &end) == 1)
        return times;
    return !strcmp(text, "largest");
}

int suite_option_read(struct case_draft *draft, struct yaml_value key, const char *name,
                      struct yaml_value value)
{
    const struct bench_info *b = draft->bench;
    size_t i = suite_option_index(b, name);
    char error[512];

    if (i == SIZE_MAX)
        return unknown_key(b, key, name);
    char *text = value_text(value);
    if (!text)
        return -EINVAL; /* the document holds the error */
    /* Of the option's default values, which may hang on the others: known when all are read. */
    draft->largest[i] =
        b->options[i].flags & OPT_LIST && *b->defaults[i] ? times_largest(&b->options[i], text) : 0;
    draft->general[i] = false;
    int err = draft->largest[i] ? 0 : set_option(draft, i, text, error, sizeof(error));
    free(text);
    return err ? yaml_fail(value, "%s", error) : 0;
}

int suite_shapes_read(struct case_draft *draft, struct yaml_value value, const char *configs)
{
    struct buffer list = {0};
    struct shape_set set = {0};
    const char *name = NULL;
    char path[4096], error[512];
    size_t i = suite_option_index(draft->bench, "shape");

    if (yaml_text(value, &name) || !name)
        return -EINVAL;
    if (i == SIZE_MAX)
        return yaml_fail(value, "benchmark '%s' takes no shapes", draft->bench->name);
    snprintf(path, sizeof(path), "%s/shapes/%s.yaml", configs ? configs : "configs", name);
    int err = shapes_load(path, &set, error, sizeof(error));
    if (err)
        return yaml_fail(value, "no shape set '%s': %s", name, error);
    for (size_t k = 0; k < set.count; k++) {
        char text[96];
        shape_text(&set.shapes[k], text, sizeof(text));
        buffer_text(&list, k ? "," : "");
        buffer_text(&list, text);
    }
    err = case_draft_set(draft, i, list.text, error, sizeof(error));
    shapes_free(&set);
    buffer_release(&list);
    return err ? yaml_fail(value, "%s", error) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Series out of single values: see history_db.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "harness/exam/exam.h"
#include "harness/history/history.h"
#include "harness/history/history_db.h"
#include "harness/report/cases.h"
#include "harness/report/show.h"

static int compare_series(const struct history_entry *a, const struct history_entry *b)
{
    int d = strcmp(a->host, b->host);

    d = d ? d : strcmp(a->suite, b->suite);
    return d ? d : strcmp(a->key, b->key);
}

static int compare_entries(const void *a, const void *b)
{
    const struct history_entry *x = a, *y = b;
    int d = compare_series(x, y);

    return d ? d : (x->run > y->run) - (x->run < y->run);
}

/* n entries of one series, in time order. How it is called, and where it stands, the last one says.
 */
static void fill_series(struct history *h, struct history_series *s, const struct history_entry *e,
                        size_t n)
{
    const struct history_entry *last = &e[n - 1];
    const struct history_run **runs = pool_alloc(&h->pool, n, sizeof(*runs));

    *s = (struct history_series){
        .key = last->key,
        .label = last->label,
        .pipe = last->pipe,
        .host = last->host,
        .suite = last->suite,
        .unit = last->unit,
        .higher_is_better = last->higher_is_better,
        .n = n,
        .runs = runs,
        .launches = pool_alloc(&h->pool, n, sizeof(*s->launches)),
        .steals = pool_alloc(&h->pool, n, sizeof(*s->steals)),
        .n_launches = pool_alloc(&h->pool, n, sizeof(*s->n_launches)),
        .outcomes = pool_alloc(&h->pool, n, sizeof(*s->outcomes)),
    };
    for (size_t i = 0; i < n; i++) {
        runs[i] = &h->runs[e[i].run];
        s->launches[i] = e[i].launches;
        s->steals[i] = e[i].steals;
        s->n_launches[i] = e[i].n_launches;
        s->outcomes[i] = e[i].outcomes;
    }
}

struct placed {
    struct history_series series;
    size_t place;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int d = strcmp(x->series.host, y->series.host);

    d = d ? d : strcmp(x->series.suite, y->series.suite);
    d = d ? d : (x->place > y->place) - (x->place < y->place);
    return d ? d : strcmp(x->series.key, y->series.key);
}

/* What ends a part of a key is written as %7C in it: harness/compare/pairs.c. */
static const char *plain_part(struct pool *pool, const char *part, const char *end)
{
    char *text = pool_alloc(pool, (size_t)(end - part) + 1, 1), *to = text;

    while (part < end) {
        bool bar = !strncmp(part, "%7C", 3);

        *to++ = bar ? '|' : *part;
        part += bar || !strncmp(part, "%25", 3) ? 3 : 1;
    }
    return text;
}

const char *history_case_name(struct pool *pool, const char *key)
{
    const char *unit = strrchr(key, '|'), *name = "", *end;

    for (const char *part = key; unit && part < unit; part = end + 1) {
        const char *between = part == key ? "" : " ";

        end = strchr(part, '|');
        if (end == unit)
            between = part == unit ? "" : ": "; /* a case of launches that died has no metric */
        name = pool_text(pool, "%s%s%s", name, between, plain_part(pool, part, end));
    }
    return *name ? name : key;
}

static int compare_labels(const void *a, const void *b)
{
    const struct history_series *x = *(struct history_series *const *)a,
                                *y = *(struct history_series *const *)b;
    int d = strcmp(x->host, y->host);

    d = d ? d : strcmp(x->suite, y->suite);
    return d ? d : strcmp(x->label, y->label);
}

/* Labels of different nights leave out different things: "null 1" of one, where the number varied,
 * may be another case than "null 1" of the next. Those are called by all that makes them. */
static void part_labels(struct history *h)
{
    struct history_series **sorted = xcalloc(h->n_series, sizeof(*sorted));

    for (size_t i = 0; i < h->n_series; i++)
        sorted[i] = &h->series[i];
    qsort(sorted, h->n_series, sizeof(*sorted), compare_labels);
    for (size_t i = 0, end; i < h->n_series; i = end) {
        for (end = i + 1; end < h->n_series && !compare_labels(&sorted[i], &sorted[end]);)
            end++;
        for (size_t k = i; end > i + 1 && k < end; k++)
            sorted[k]->label = history_case_name(&h->pool, sorted[k]->key);
    }
    free(sorted);
}

void history_build(struct history *h, struct history_entries *e)
{
    struct placed *placed = xcalloc(e->n, sizeof(*placed));

    h->series = pool_alloc(&h->pool, e->n, sizeof(*h->series));
    if (e->n)
        qsort(e->all, e->n, sizeof(*e->all), compare_entries);
    for (size_t i = 0, end; i < e->n; i = end) {
        for (end = i + 1; end < e->n && !compare_series(&e->all[i], &e->all[end]);)
            end++;
        placed[h->n_series].place = e->all[end - 1].place;
        fill_series(h, &placed[h->n_series++].series, &e->all[i], end - i);
    }
    qsort(placed, h->n_series, sizeof(*placed), compare_placed);
    for (size_t i = 0; i < h->n_series; i++)
        h->series[i] = placed[i].series;
    free(placed);
    part_labels(h);
}

static const char *text_of(const json_t *object, const char *key, const char *other)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && *text ? text : other;
}

const char *history_db_path(const char *asked, char *path, size_t len)
{
    struct stat st;
    size_t n = strlen(asked);

    if (stat(asked, &st) || !S_ISDIR(st.st_mode))
        return asked;
    snprintf(path, len, "%s%s" HISTORY_FILE, asked, n && asked[n - 1] == '/' ? "" : "/");
    return path;
}

struct history_run history_run_of(const struct run_folder *run)
{
    const json_t *machine = json_object_get(run->meta, "machine");
    const char *slash = strrchr(run->path, '/');

    return (struct history_run){
        .name = text_of(run->meta, "run", slash && slash[1] ? slash + 1 : run->path),
        .host = text_of(json_object_get(machine, "host"), "hostname", "unknown"),
        .suite = text_of(run->meta, "suite", "unknown"),
        .started_utc = text_of(run->meta, "started_utc", ""),
        .version = text_of(run->meta, "version", ""),
        .commit = text_of(run->meta, "commit", ""),
        .good = true,
    };
}

int history_cases(struct pairs *p, const char *path, char *error, size_t len)
{
    static const struct pairs_options options = {.margin = 0.05};

    return pairs_load(p, &path, 1, &path, 1, &options, error, len);
}

/* ---- What a run was measured by, kept as JSON ---- */

/* These are of one run, or say at length what is said by something else (config_hash, machine). All
 * the rest is kept, also what this program knows nothing of. */
static const char *const own[] = {"run",   "command", "seed",   "started_utc", "finished_utc",
                                  "state", "clock",   "config", "limits",      "harness_cost"};

/* A copy without why something is not known, and without counters, which are others each time. */
static json_t *without_passing(const json_t *value)
{
    json_t *kept, *one;
    const char *key;
    size_t i;

    if (json_is_object(value)) {
        kept = json_object();
        json_object_foreach ((json_t *)value, key, one)
            if (!exam_passes(key))
                json_object_set_new(kept, key, without_passing(one));
        return kept;
    }
    if (!json_is_array(value))
        return json_incref((json_t *)value);
    kept = json_array();
    json_array_foreach (value, i, one)
        json_array_append_new(kept, without_passing(one));
    return kept;
}

/* Takes the value. */
static const char *written(struct pool *pool, json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    const char *kept = text ? pool_text(pool, "%s", text) : NULL;

    free(text);
    json_decref(value);
    return kept && *kept ? kept : NULL;
}

const char *history_environment(struct pool *pool, const json_t *meta)
{
    json_t *kept = json_is_object(meta) ? without_passing(meta) : NULL;

    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        json_object_del(kept, own[i]);
    return written(pool, kept);
}

/* Each once, and sorted: launches come in a shuffled order, which is to make no difference. */
static void insert_text(json_t *list, const char *text)
{
    size_t i = 0;
    int order = -1;

    for (; i < json_array_size(list); i++)
        if ((order = strcmp(json_string_value(json_array_get(list, i)), text)) >= 0)
            break;
    if (*text && order)
        json_array_insert_new(list, i, json_string(text));
}

static json_t *texts_of(const struct pairs *p, const struct pair *pair, size_t param)
{
    const struct report_rows *rows = &pair->bench->rows[p->n_a];
    const struct report_point *point = &pair->c->points[p->n_a];
    json_t *texts = json_array();

    for (size_t k = 0; k < point->n_rows; k++)
        if (isfinite(row_number(rows, point->rows[k], FIELD_VALUE)))
            insert_text(texts, table_cell(rows->table, point->rows[k], rows->params[param]));
    return texts;
}

const char *history_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair)
{
    const struct report_bench *b = pair->bench;
    json_t *outcomes = json_object();

    for (size_t i = 0; i < b->n_params; i++) {
        json_t *texts = case_is_made_by(b, pair->c, i) ? NULL : texts_of(p, pair, i);

        if (json_array_size(texts))
            json_object_set(outcomes, show_column(pool, b, i), texts);
        json_decref(texts);
    }
    return written(pool, outcomes);
}

/* ---- What was accepted, for people and for programs ---- */

#define NAMED_MAX 3

static const char *cases_text(struct pool *pool, const struct history_acceptance *a)
{
    const char *list = "";

    for (size_t i = 0; i < a->n_keys && i < NAMED_MAX; i++)
        list = pool_text(pool, "%s%s%s", list, i ? ", " : "", history_case_name(pool, a->keys[i]));
    if (!a->n_keys)
        return "all cases";
    return a->n_keys > NAMED_MAX ? pool_text(pool, "%zu cases, %s and others", a->n_keys, list)
                                 : list;
}

const char *history_acceptance_text(struct pool *pool, const struct history_acceptance *a)
{
    return pool_text(pool, "run %s, %s (%s%s%s): %s", a->run, cases_text(pool, a), a->by,
                     *a->by ? ", " : "", a->at_utc, *a->reason ? a->reason : "no reason given");
}

void history_print_accepted(FILE *out, struct history *h)
{
    if (h->n_accepted)
        fputs("\naccepted levels:\n", out);
    for (size_t i = 0; i < h->n_accepted; i++) {
        const struct history_acceptance *a = &h->accepted[i];

        trend_put(out, pool_text(&h->pool, "  host %s, suite %s: %s", a->host, a->suite,
                                 history_acceptance_text(&h->pool, a)));
        fputc('\n', out);
    }
}

/* Bytes that are no UTF-8 are no text of JSON. */
static json_t *text_json(const char *text)
{
    json_t *value = *text ? json_string(text) : NULL;

    return value ? value : json_null();
}

json_t *history_accepted_json(struct history *h)
{
    json_t *all = json_array();

    for (size_t i = 0; i < h->n_accepted; i++) {
        const struct history_acceptance *a = &h->accepted[i];
        json_t *keys = a->n_keys ? json_array() : json_null();

        for (size_t k = 0; k < a->n_keys; k++)
            json_array_append_new(keys, text_json(a->keys[k]));
        json_array_append_new(
            all, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "host", text_json(a->host),
                           "suite", text_json(a->suite), "run", text_json(a->run), "started_utc",
                           text_json(a->started_utc), "reason", text_json(a->reason), "by",
                           text_json(a->by), "at_utc", text_json(a->at_utc), "cases", keys));
    }
    return all;
}

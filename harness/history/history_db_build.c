/* SPDX-License-Identifier: Apache-2.0 */
/* What the history keeps of a run beside its values, and what it says of it: see history_db.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "harness/document/record.h"
#include "harness/history/history.h"
#include "harness/history/history_db.h"
#include "harness/machine/fact.h"
#include "harness/report/cases.h"
#include "harness/report/show.h"

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

struct history_value history_value(const struct history_series *s, size_t i, double steal_limit)
{
    struct history_value v = {.value = NAN, .taken = NAN};
    double *kept = xcalloc(2 * s->n_launches[i] + 1, sizeof(*kept)),
           *taken = kept + s->n_launches[i];
    size_t n = 0;

    for (size_t k = 0; k < s->n_launches[i]; k++) {
        double value = s->launches[i][k];

        if (!(isfinite(value) && value > 0))
            v.n_bad++;
        else if (steal_is_over(s->steals[i][k], steal_limit))
            taken[v.n_taken++] = value;
        else
            kept[n++] = value;
    }
    if (n)
        v.value = stats_centre(kept, n);
    else if (v.n_taken)
        v.taken = stats_centre(taken, v.n_taken);
    free(kept);
    return v;
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
            if (!fact_passes(key))
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

const char *history_acceptance_text(struct pool *pool, const struct history_acceptance *a)
{
    const char **cases = pool_alloc(pool, a->n_keys, sizeof(*cases));

    for (size_t i = 0; i < a->n_keys; i++)
        cases[i] = history_case_name(pool, a->keys[i]);
    return pool_text(pool, "run %s, %s (%s%s%s): %s", a->run,
                     a->n_keys ? pool_list(pool, cases, a->n_keys, NAMED_MAX, ", ") : "all cases",
                     a->by, *a->by ? ", " : "", a->at_utc,
                     *a->reason ? a->reason : "no reason given");
}

/* Not known is null. */
static const char *or_null(const char *text)
{
    return text && *text ? text : NULL;
}

json_t *history_acceptance_json(struct pool *pool, const struct history_acceptance *a)
{
    const struct record_field fields[] = {record_text("host", or_null(a->host)),
                                          record_text("suite", or_null(a->suite)),
                                          record_text("run", or_null(a->run)),
                                          record_text("started_utc", or_null(a->started_utc)),
                                          record_text("reason", or_null(a->reason)),
                                          record_text("by", or_null(a->by)),
                                          record_text("at_utc", or_null(a->at_utc))};
    json_t *one = json_object(), *keys = a->n_keys ? json_array() : json_null();

    record_json(pool, one, fields, sizeof(fields) / sizeof(*fields));
    for (size_t i = 0; i < a->n_keys; i++)
        json_array_append_new(keys, json_text(pool, a->keys[i]));
    json_object_set_new(one, "cases", keys);
    return one;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a run was measured by, kept as JSON: see history_db_build.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/history/history_db_build.h"
#include "harness/report/told.h"

/* These are of one run, or say at length what is said by something else (config_hash, machine). All the rest
 * is kept, also what this program knows nothing of. */
static const char *const own[] = {"run",   "command", "seed",   "started_utc", "finished_utc",
                                  "state", "clock",   "config", "limits",      "harness_cost"};

static bool is_reason(const char *key)
{
    size_t n = strlen(key);

    return !strcmp(key, "because") || (n > 4 && !strcmp(key + n - 4, "_why"));
}

/* A copy without why something is not known. */
static json_t *without_reasons(const json_t *value)
{
    json_t *kept, *one;
    const char *key;
    size_t i;

    if (json_is_object(value)) {
        kept = json_object();
        json_object_foreach ((json_t *)value, key, one)
            if (!is_reason(key))
                json_object_set_new(kept, key, without_reasons(one));
        return kept;
    }
    if (!json_is_array(value))
        return json_incref((json_t *)value);
    kept = json_array();
    json_array_foreach (value, i, one)
        json_array_append_new(kept, without_reasons(one));
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
    json_t *kept = json_is_object(meta) ? without_reasons(meta) : NULL;

    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        json_object_del(kept, own[i]);
    json_object_del(json_object_get(kept, "machine"), "findings");
    return written(pool, kept);
}

static bool has_text(const json_t *list, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach (list, i, one)
        if (!strcmp(json_string_value(one), text))
            return true;
    return false;
}

/* Launches come in a shuffled order, which is to make no difference. */
static void insert_text(json_t *list, const char *text)
{
    size_t i = 0;

    if (!*text || has_text(list, text))
        return;
    while (i < json_array_size(list) &&
           strcmp(json_string_value(json_array_get(list, i)), text) < 0)
        i++;
    json_array_insert_new(list, i, json_string(text));
}

/* What the launch left to the benchmark is in no key; which it took is in the rows alone. */
static bool is_choice(const struct report_bench *b, const struct report_case *c, size_t param)
{
    return !*c->params[param] && told_left_by(b, b->params[param]);
}

static bool is_outcome(const struct report_bench *b, const struct report_case *c, size_t param)
{
    return b->follows[param] ||
           (b->sought_by[param] < b->n_params && *c->params[b->sought_by[param]]);
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

/* choices: also what the benchmark chose, and the word that this is kept. */
static const char *outcomes_of(struct pool *pool, const struct pairs *p, const struct pair *pair,
                               bool choices)
{
    const struct report_bench *b = pair->bench;
    json_t *outcomes = choices ? json_pack("{s:[s]}", HISTORY_CHOICES_KEPT, "kept") : json_object();

    for (size_t i = 0; i < b->n_params; i++) {
        bool wanted = is_outcome(b, pair->c, i) || (choices && is_choice(b, pair->c, i));
        json_t *texts = wanted ? texts_of(p, pair, i) : NULL;

        if (json_array_size(texts))
            json_object_set(outcomes, b->params[i], texts);
        json_decref(texts);
    }
    return written(pool, outcomes);
}

const char *history_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair)
{
    return outcomes_of(pool, p, pair, true);
}

bool history_same_outcomes(struct pool *pool, const struct pairs *p, const struct pair *pair,
                           const char *kept)
{
    bool choices = !*kept || strstr(kept, "\"" HISTORY_CHOICES_KEPT "\"");
    const char *now = outcomes_of(pool, p, pair, choices);

    return !strcmp(kept, now ? now : "");
}

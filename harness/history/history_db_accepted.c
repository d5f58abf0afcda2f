/* SPDX-License-Identifier: Apache-2.0 */
/* What was accepted, for people and for programs: see history_db_build.h. */
#include "harness/history/history_db_build.h"
#include "harness/history/trend.h"

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

static json_t *keys_json(const struct history_acceptance *a)
{
    json_t *keys = a->n_keys ? json_array() : json_null();

    for (size_t i = 0; i < a->n_keys; i++)
        json_array_append_new(keys, text_json(a->keys[i]));
    return keys;
}

json_t *history_accepted_json(struct history *h)
{
    json_t *all = json_array();

    for (size_t i = 0; i < h->n_accepted; i++) {
        const struct history_acceptance *a = &h->accepted[i];

        json_array_append_new(all,
                              json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "host",
                                        text_json(a->host), "suite", text_json(a->suite), "run",
                                        text_json(a->run), "started_utc", text_json(a->started_utc),
                                        "reason", text_json(a->reason), "by", text_json(a->by),
                                        "at_utc", text_json(a->at_utc), "cases", keys_json(a)));
    }
    return all;
}

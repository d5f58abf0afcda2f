/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of cases: see case_key.h. */
#include "harness/report/case_key.h"

#include <string.h>

bool case_is_made_by(const struct report_bench *b, const struct report_case *c, size_t param)
{
    return !b->follows[param] &&
           (b->sought_by[param] == b->n_params || !*c->params[b->sought_by[param]]);
}

/* A '|' would end the part. */
static const char *key_text(struct pool *pool, const char *text)
{
    const char *kept = "";

    if (!text[strcspn(text, "|%")])
        return text;
    while (*text) {
        size_t n = strcspn(text, "|%");

        kept = pool_text(pool, "%s%.*s%s", kept, (int)n, text,
                         text[n] == '|'   ? "%7C"
                         : text[n] == '%' ? "%25"
                                          : "");
        text += n + (text[n] != 0);
    }
    return kept;
}

/* By name: another version may have its columns in another order. */
static size_t next_param(const struct report_bench *b, size_t last)
{
    size_t next = b->n_params;

    for (size_t i = 0; i < b->n_params; i++)
        if ((last == b->n_params || strcmp(b->params[i], b->params[last]) > 0) &&
            (next == b->n_params || strcmp(b->params[i], b->params[next]) < 0))
            next = i;
    return next;
}

const char *case_key(struct pool *pool, const struct report_bench *b, const struct report_case *c)
{
    const char *key = b->name;

    for (size_t i = next_param(b, b->n_params); i < b->n_params; i = next_param(b, i))
        if (*c->params[i] && case_is_made_by(b, c, i))
            key = pool_text(pool, "%s|%s=%s", key, b->params[i], key_text(pool, c->params[i]));
    return pool_text(pool, "%s|%s|%s", key, key_text(pool, c->metric), key_text(pool, c->unit));
}

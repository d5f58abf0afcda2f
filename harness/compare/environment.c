/* SPDX-License-Identifier: Apache-2.0 */
/* Was a run measured in the environment of others? See pairs.h. */
#include <errno.h>
#include <string.h>

#include "harness/compare/differ_parts.h"
#include "harness/report/shares.h"

const char *differ_listed(const struct differ *d, const json_t *list, const char *text)
{
    (void)d;
    return !*text && json_is_array(list) && !json_array_size(list) ? "none" : text;
}

/* The texts that tell something, first; returns how many. */
static size_t known_first(const char **to, const char *const *texts, size_t n)
{
    size_t known = 0;

    for (size_t i = 0; i < n; i++)
        if (*texts[i])
            to[known++] = texts[i];
    return known;
}

static bool is_among(const char *text, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(texts[i], text))
            return true;
    return false;
}

/* The texts are the JSON's, which may go. */
static const char *kept(const struct differ *d, const char *text)
{
    return pool_text(d->pool, "%s", text);
}

void differ_environment(struct differ *d, const char *what, const char *const *texts,
                        const char *pipes)
{
    struct environment_word *w = d->word;
    const char **others = pool_alloc(d->pool, d->n_a + 1, sizeof(*others));
    const char *own = texts[d->n_a];
    bool mixed;

    if (d->aside || !others)
        return;
    size_t n = known_first(others, texts, d->n_a);
    if (*own && n && !is_among(own, others, n))
        w->other[w->n_other++] = (struct machine_difference){
            what, kept(d, shares_text(d->pool, others, n, "runs", &mixed)), kept(d, own), pipes,
            true};
    else if (!*own != !n)
        w->unknown[w->n_unknown++] = what;
}

#define FACTS_MAX 128 /* more than differ_all() asks for */

int environment_compare(struct pool *pool, const json_t *const *others, size_t n, const json_t *run,
                        struct environment_word *word)
{
    struct differ d = {.pool = pool, .n_runs = n + 1, .n_a = n, .word = word};

    *word = (struct environment_word){
        .other = pool_alloc(pool, FACTS_MAX, sizeof(*word->other)),
        .unknown = pool_alloc(pool, FACTS_MAX, sizeof(*word->unknown)),
    };
    d.runs = pool_alloc(pool, n + 1, sizeof(*d.runs));
    if (!d.runs || !word->other || !word->unknown)
        return -ENOMEM;
    memcpy(d.runs, others, n * sizeof(*d.runs));
    d.runs[n] = run;
    differ_all(&d);
    return pool->failed ? -ENOMEM : 0;
}

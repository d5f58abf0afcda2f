/* SPDX-License-Identifier: Apache-2.0 */
/* Series out of single values: see history_db_build.h. */
#include "harness/history/history_db_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int history_entries_add(struct history_entries *e, const struct history_entry *entry)
{
    if (e->n == e->room) {
        size_t room = e->room ? 2 * e->room : 256;
        struct history_entry *more = reallocarray(e->all, room, sizeof(*more));

        if (!more)
            return -ENOMEM;
        e->all = more;
        e->room = room;
    }
    e->all[e->n++] = *entry;
    return 0;
}

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

/* n entries of one series, in time order. How it is called, and where it stands, the last one says. */
static bool fill_series(struct history *h, struct history_series *s, const struct history_entry *e,
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
    if (!runs || !s->launches || !s->steals || !s->n_launches || !s->outcomes)
        return false;
    for (size_t i = 0; i < n; i++) {
        runs[i] = &h->runs[e[i].run];
        s->launches[i] = e[i].launches;
        s->steals[i] = e[i].steals;
        s->n_launches[i] = e[i].n_launches;
        s->outcomes[i] = e[i].outcomes;
    }
    return true;
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

    while (text && part < end) {
        bool bar = !strncmp(part, "%7C", 3);

        *to++ = bar ? '|' : *part;
        part += bar || !strncmp(part, "%25", 3) ? 3 : 1;
    }
    return text ? text : "";
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

/* Labels of different nights leave out different things: "null 1" of one, where the number varied, may
 * be another case than "null 1" of the next. Those are called by all that makes them. */
static bool part_labels(struct history *h)
{
    struct history_series **sorted = calloc(h->n_series + 1, sizeof(*sorted));

    if (!sorted)
        return false;
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
    return true;
}

static size_t group_end(const struct history_entries *e, size_t begin)
{
    size_t end = begin + 1;

    while (end < e->n && !compare_series(&e->all[begin], &e->all[end]))
        end++;
    return end;
}

int history_build(struct history *h, struct history_entries *e)
{
    struct placed *placed = calloc(e->n + 1, sizeof(*placed));
    bool good = placed;

    h->series = pool_alloc(&h->pool, e->n + 1, sizeof(*h->series));
    good = good && h->series;
    if (good && e->n)
        qsort(e->all, e->n, sizeof(*e->all), compare_entries);
    for (size_t i = 0; good && i < e->n;) {
        size_t end = group_end(e, i);

        placed[h->n_series].place = e->all[end - 1].place;
        good = fill_series(h, &placed[h->n_series++].series, &e->all[i], end - i);
        i = end;
    }
    if (good)
        qsort(placed, h->n_series, sizeof(*placed), compare_placed);
    for (size_t i = 0; good && i < h->n_series; i++)
        h->series[i] = placed[i].series;
    free(placed);
    good = good && part_labels(h);
    return good && !h->pool.failed ? 0 : -ENOMEM;
}

static const char *text_of(const json_t *object, const char *key, const char *other)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text && *text ? text : other;
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
        .standing = HISTORY_BASELINE,
    };
}

int history_cases(struct pairs *p, const char *path, char *error, size_t len)
{
    static const struct pairs_options options = {.margin = 0.05};

    return pairs_load(p, &path, 1, &path, 1, &options, error, len);
}

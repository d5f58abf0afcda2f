/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions: see dimension.h. */
#include "harness/report/dimension.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"

struct found {
    const char *text;
    double number;
    size_t first; /* case in which it is first met */
};

static double number_of(const char *text)
{
    uint64_t size;
    double number;

    if (!units_parse_size(text, &size))
        return (double)size;
    return units_parse_double(text, &number) ? NAN : number;
}

static int by_text(const void *x, const void *y)
{
    const struct found *a = x, *b = y;
    int d = strcmp(a->text, b->text);

    return d ? d : (a->first > b->first) - (a->first < b->first);
}

static int by_number(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    return (a->number > b->number) - (a->number < b->number);
}

static int by_first(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    return (a->first > b->first) - (a->first < b->first);
}

/* The values, each once, in their final order; returns how many. */
static size_t list_values(struct found *found, size_t n, bool *numeric)
{
    size_t kept = 0;

    qsort(found, n, sizeof(*found), by_text);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(found[kept - 1].text, found[i].text) != 0)
            found[kept++] = found[i];
    *numeric = true;
    for (size_t i = 0; i < kept; i++) {
        found[i].number = number_of(found[i].text);
        *numeric = *numeric && !isnan(found[i].number);
    }
    qsort(found, kept, sizeof(*found), *numeric ? by_number : by_first);
    return kept;
}

struct place {
    const char *text;
    size_t index;
};

static int by_place(const void *x, const void *y)
{
    return strcmp(((const struct place *)x)->text, ((const struct place *)y)->text);
}

static int index_cases(struct dimension *d, const struct report_bench *b, const size_t *cases,
                       size_t n)
{
    struct place *places = calloc(d->n_values + 1, sizeof(*places));

    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < d->n_values; i++)
        places[i] = (struct place){d->values[i], i};
    qsort(places, d->n_values, sizeof(*places), by_place);
    for (size_t i = 0; i < n; i++) {
        struct place wanted = {b->cases[cases[i]].params[d->param], 0};
        struct place *at = bsearch(&wanted, places, d->n_values, sizeof(*places), by_place);

        d->of_case[i] = at ? at->index : 0;
    }
    free(places);
    return 0;
}

int dimension_make(struct pool *pool, const struct report_bench *b, const size_t *cases, size_t n,
                   size_t param, struct dimension *d)
{
    struct found *found = calloc(n + 1, sizeof(*found));
    bool numeric = false;
    int err = -ENOMEM;

    *d = (struct dimension){.param = param};
    if (!found)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        found[i] = (struct found){b->cases[cases[i]].params[param], NAN, i};
    d->n_values = list_values(found, n, &numeric);
    d->values = pool_alloc(pool, d->n_values, sizeof(*d->values));
    d->numbers = pool_alloc(pool, d->n_values, sizeof(*d->numbers));
    d->of_case = pool_alloc(pool, n, sizeof(*d->of_case));
    if (d->values && d->numbers && d->of_case) {
        for (size_t i = 0; i < d->n_values; i++) {
            d->values[i] = found[i].text;
            d->numbers[i] = found[i].number;
        }
        if (!numeric)
            d->numbers = NULL;
        err = index_cases(d, b, cases, n);
    }
    free(found);
    return err;
}

int classes_make(struct pool *pool, size_t n_cases, struct classes *classes)
{
    classes->n = 1;
    classes->of_case = pool_alloc(pool, n_cases, sizeof(*classes->of_case));
    return classes->of_case ? 0 : -ENOMEM;
}

struct member {
    size_t class, value, index;
};

static int by_class(const void *x, const void *y)
{
    const struct member *a = x, *b = y;

    if (a->class != b->class)
        return a->class < b->class ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Members of a new class stand together, its first case foremost. */
static void renumber(struct classes *classes, const struct member *members, size_t n)
{
    size_t head = 0;

    for (size_t i = 0; i < n; i++) {
        if (!i || members[i].class != members[i - 1].class ||
            members[i].value != members[i - 1].value)
            head = i;
        classes->of_case[members[i].index] = members[head].index;
    }
    /* now each case knows the first case of its class: count those in order */
    classes->n = 0;
    for (size_t i = 0; i < n; i++) {
        size_t first = classes->of_case[i];

        classes->of_case[i] = first == i ? classes->n++ : classes->of_case[first];
    }
}

int classes_refine(struct classes *classes, const struct dimension *d, size_t n_cases, bool *split)
{
    struct member *members = calloc(n_cases + 1, sizeof(*members));
    size_t before = classes->n;

    if (!members)
        return -ENOMEM;
    for (size_t i = 0; i < n_cases; i++)
        members[i] = (struct member){classes->of_case[i], d->of_case[i], i};
    qsort(members, n_cases, sizeof(*members), by_class);
    renumber(classes, members, n_cases);
    free(members);
    *split = classes->n > before;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of a suite that measure the same: see suite_expand.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/suite_expand.h"

void suite_case_release(struct suite_case *c)
{
    free(c->arguments);
    free(c->from);
    free(c->to);
    free(c->hosts);
    free(c->meaning);
    c->arguments = c->meaning = NULL;
}

/* Those that measure the same stand together, the first of the suite in front. */
static int by_meaning(const void *a, const void *b)
{
    const struct suite_case *x = *(struct suite_case *const *)a;
    const struct suite_case *y = *(struct suite_case *const *)b;
    int order = strcmp(x->bench->name, y->bench->name);

    if (!order)
        order = strcmp(x->meaning, y->meaning);
    return order ? order : (x > y) - (x < y);
}

static bool same(const struct suite_case *x, const struct suite_case *y)
{
    return x->bench == y->bench && !strcmp(x->meaning, y->meaning);
}

int suite_unite(struct suite *suite)
{
    struct suite_case **sorted = calloc(suite->n + 1, sizeof(struct suite_case *)), *first;
    size_t kept = 0;

    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < suite->n; i++)
        sorted[i] = &suite->cases[i];
    qsort(sorted, suite->n, sizeof(struct suite_case *), by_meaning);
    first = sorted[0];
    for (size_t i = 1; i < suite->n; i++) {
        if (!same(first, sorted[i])) {
            first = sorted[i];
            continue;
        }
        if (sorted[i]->repeats > first->repeats)
            first->repeats = sorted[i]->repeats;
        sorted[i]->repeats = 0;
    }
    for (size_t i = 0; i < suite->n; i++) {
        struct suite_case *c = &suite->cases[i];
        free(c->meaning);
        c->meaning = NULL;
        if (c->repeats)
            suite->cases[kept++] = *c;
        else
            suite_case_release(c);
    }
    suite->n = kept;
    free(sorted);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What two plans share: see common.h. */
#include "harness/against/common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_launches(const void *x, const void *y)
{
    const struct launch *a = *(struct launch *const *)x, *b = *(struct launch *const *)y;
    int d = strcmp(a->bench, b->bench);

    d = d ? d : strcmp(a->arguments, b->arguments);
    return d ? d : (a->repeat > b->repeat) - (a->repeat < b->repeat);
}

static void tell(const struct launch *l, size_t *n, char text[160])
{
    if (!(*n)++)
        snprintf(text, 160, "%.20s %.130s", l->bench, l->arguments);
}

static void release_launch(struct launch *l)
{
    struct plan one = {.launches = calloc(1, sizeof(*l)), .n = 1};

    if (!one.launches)
        return;
    one.launches[0] = *l;
    plan_release(&one);
}

static struct launch **sorted(const struct plan *p)
{
    struct launch **all = calloc(p->n + 1, sizeof(struct launch *));

    for (size_t i = 0; all && i < p->n; i++)
        all[i] = &p->launches[i];
    if (all)
        qsort(all, p->n, sizeof(struct launch *), compare_launches);
    return all;
}

/* Moves each launch of a that b has to the front of a, and its twin into `twins`. */
static size_t match(struct plan *a, struct launch **of_b, size_t n_b, struct launch *twins,
                    struct common *told)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++) {
        struct launch *l = &a->launches[i];
        struct launch **found = bsearch(&l, of_b, n_b, sizeof(struct launch *), compare_launches);
        if (!found || !(*found)->bench) {
            tell(l, &told->n_only_a, told->only_a);
            release_launch(l);
            continue;
        }
        twins[n] = **found;
        twins[n].case_number = l->case_number;
        if (twins[n].timeout_ns < l->timeout_ns)
            twins[n].timeout_ns = l->timeout_ns;
        l->timeout_ns = twins[n].timeout_ns;
        (*found)->rows = 1; /* taken */
        a->launches[n++] = *l;
    }
    return n;
}

int common_plan(struct plan *a, struct plan *b, struct common *told)
{
    struct launch **of_b = sorted(b), *twins = calloc(a->n + 1, sizeof(*twins));

    *told = (struct common){0};
    if (!of_b || !twins) {
        free(of_b);
        free(twins);
        return -ENOMEM;
    }
    a->n = match(a, of_b, b->n, twins, told);
    for (size_t i = 0; i < b->n; i++) {
        if (b->launches[i].rows)
            continue;
        tell(&b->launches[i], &told->n_only_b, told->only_b);
        release_launch(&b->launches[i]);
    }
    free(b->launches);
    b->launches = twins;
    b->n = a->n;
    free(of_b);
    return a->n ? 0 : -ENOENT;
}

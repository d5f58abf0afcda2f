/* SPDX-License-Identifier: Apache-2.0 */
/* What two plans share: see against.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "harness/against/against.h"

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
    struct plan one = {.launches = xmemdup(l, sizeof(*l)), .n = 1};

    plan_release(&one);
}

/* Moves each launch of a that b has to the front of a, and its twin into `twins`. */
static size_t match(struct plan *a, struct launch **of_b, size_t n_b, struct launch *twins,
                    struct common *common)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++) {
        struct launch *l = &a->launches[i];
        struct launch **found = bsearch(&l, of_b, n_b, sizeof(struct launch *), compare_launches);
        if (!found || !(*found)->bench) {
            tell(l, &common->n_only_a, common->only_a);
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

int common_plan(struct plan *a, struct plan *b, struct common *common)
{
    struct launch **of_b = xcalloc(b->n, sizeof(struct launch *));

    for (size_t i = 0; i < b->n; i++)
        of_b[i] = &b->launches[i];
    qsort(of_b, b->n, sizeof(struct launch *), compare_launches);
    struct launch *twins = xcalloc(a->n, sizeof(*twins));

    *common = (struct common){0};
    a->n = match(a, of_b, b->n, twins, common);
    for (size_t i = 0; i < b->n; i++) {
        if (b->launches[i].rows)
            continue;
        tell(&b->launches[i], &common->n_only_b, common->only_b);
        release_launch(&b->launches[i]);
    }
    free(b->launches);
    b->launches = twins;
    b->n = a->n;
    free(of_b);
    return a->n ? 0 : -ENOENT;
}

/* A case, by its launches: all[0] to all[n - 1], in the order of the plan. */
struct turn_case {
    struct launch **all;
    size_t n;
};

static int compare_places(const void *x, const void *y)
{
    const struct launch *a = *(struct launch *const *)x, *b = *(struct launch *const *)y;
    int d = (a->case_number > b->case_number) - (a->case_number < b->case_number);

    return d ? d : (a > b) - (a < b);
}

/* Those with an odd number of launches first: half of them begin with a, and half of all. Then by
 * their number, as some cases are launched but once, to say why they cannot run; then in the plan's
 * order, which is shuffled. */
static int compare_cases(const void *x, const void *y)
{
    const struct turn_case *a = x, *b = y;
    int d = (int)(b->n % 2) - (int)(a->n % 2);

    d = d ? d : (a->n > b->n) - (a->n < b->n);
    return d ? d : (a->all[0] > b->all[0]) - (a->all[0] < b->all[0]);
}

void common_turns(struct plan *a, struct plan *b, uint64_t seed)
{
    struct launch **launches = xcalloc(a->n, sizeof(struct launch *));
    struct turn_case *cases = xcalloc(a->n, sizeof(*cases));
    /* The plan's cases; how many. */
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++)
        launches[i] = &a->launches[i];
    qsort(launches, a->n, sizeof(*launches), compare_places);
    for (size_t i = 0; i < a->n; i++) {
        if (!n || cases[n - 1].all[0]->case_number != launches[i]->case_number)
            cases[n++] = (struct turn_case){&launches[i], 0};
        cases[n - 1].n++;
    }
    qsort(cases, n, sizeof(*cases), compare_cases);
    struct rng rng;

    rng_seed(&rng, ~seed); /* not the numbers that shuffled the plan */
    size_t begin = rng_below(&rng, 2);
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < cases[c].n; i++)
            cases[c].all[i]->turn = (begin + c + i) % 2 ? TURN_SECOND : TURN_FIRST;
    for (size_t i = 0; i < a->n; i++)
        b->launches[i].turn = a->launches[i].turn == TURN_FIRST ? TURN_SECOND : TURN_FIRST;
    free(launches);
    free(cases);
}

int common_first(const struct plan *a, const struct plan *b, size_t i)
{
    const struct launch *x = &a->launches[i], *y = &b->launches[i];

    if (x->case_number != y->case_number || x->repeat != y->repeat)
        return -1;
    if (!x->turn || !y->turn || x->turn == y->turn)
        return -1;
    return x->turn == TURN_SECOND;
}

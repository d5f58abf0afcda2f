/* SPDX-License-Identifier: Apache-2.0 */
/* Holm 1979, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 65. */
#include "harness/decide/parts.h"

#include <errno.h>
#include <stdlib.h>

struct candidate {
    double p;
    size_t i;
};

static int by_p(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return (x->p > y->p) - (x->p < y->p);
}

int holm(const double *p, size_t n, double level, bool *proven)
{
    struct candidate *order = malloc((n ? n : 1) * sizeof(*order));

    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct candidate){p[i], i};
        proven[i] = false;
    }
    qsort(order, n, sizeof(*order), by_p);
    for (size_t k = 0; k < n && order[k].p <= level / (double)(n - k); k++)
        proven[order[k].i] = true;
    free(order);
    return 0;
}

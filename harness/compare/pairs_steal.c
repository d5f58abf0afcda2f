/* SPDX-License-Identifier: Apache-2.0 */
/* What other guests took of the CPU: see steal.h. */
#include "harness/compare/steal.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/compare/pairs_parts.h"

bool steal_is_share(double asked)
{
    return asked > 0 && asked <= 1;
}

double steal_limit(double asked)
{
    return asked < 1 ? asked : 0;
}

bool steal_is_over(double percent, double limit)
{
    return limit > 0 && percent > 100 * limit;
}

double *steal_of_launches(struct pool *pool, const struct pair *pair, size_t run, size_t n)
{
    const struct report_rows *rows = &pair->bench->rows[run];
    const struct report_point *point = &pair->c->points[run];
    double *steal = pool_alloc(pool, n + 1, sizeof(*steal));
    size_t launches = 0, last = SIZE_MAX;

    for (size_t i = 0; steal && i < n; i++)
        steal[i] = NAN;
    for (size_t i = 0; steal && i < point->n_rows; i++) {
        size_t row = point->rows[i];

        if (!row_is_usable(rows, row))
            continue;
        if (last == SIZE_MAX || !rows_are_one_launch(rows, last, row))
            launches++;
        last = row;
        if (launches <= n) /* of NaN and a number, fmax takes the number */
            steal[launches - 1] = fmax(steal[launches - 1], row_number(rows, row, FIELD_STEAL));
    }
    return steal;
}

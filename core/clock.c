/* SPDX-License-Identifier: Apache-2.0 */
/* The clock: see clock.h. */
#include "core/clock.h"

#include <stdlib.h>

#define BATCHES  21
#define READINGS 500

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct clock_quality clock_measure(void)
{
    struct clock_quality q = {.resolution_ns = UINT64_MAX};
    double cost[BATCHES];

    for (int b = 0; b < BATCHES; b++) {
        uint64_t first = clock_now_ns(), last = first;
        for (int i = 0; i < READINGS; i++) {
            uint64_t now = clock_now_ns();
            if (now != last && now - last < q.resolution_ns)
                q.resolution_ns = now - last;
            last = now;
        }
        cost[b] = (double)(last - first) / READINGS;
    }
    qsort(cost, BATCHES, sizeof(cost[0]), by_value);
    q.cost_ns = cost[BATCHES / 2];
    return q;
}

const char *clock_utc(char *text, size_t len)
{
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(text, len, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of products drew: see forecast.h. */
#include <math.h>

#include "harness/forecast/forecast.h"

struct part_power parts_power(const struct parts *p)
{
    struct part_power power = {NAN, NAN, NAN};
    double sum = 0, n = 0;

    for (size_t i = 0; i < p->n_products; i++) {
        const struct part_product *at = &p->products[i];
        double off = hypot(POWER_ACCURACY, POWER_UPDATE_S / at->watts_s);

        if (!(at->watts > 0) || !(off < 1)) /* too short a time tells nothing */
            continue;
        sum += at->watts;
        n++;
        power.low = fmin(power.low, at->watts * (1 - off));
        power.high = fmax(power.high, at->watts * (1 + off));
    }
    power.watts = n > 0 ? sum / n : NAN;
    return power;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up series of nightly runs, seeded: the noises that histories are tested with. */
#ifndef PLUMB_SELFTEST_HISTORY_NOISE_H
#define PLUMB_SELFTEST_HISTORY_NOISE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rng.h"

/* Writes n deviations, logarithms, around a level. Where it says "1 %", that is the standard deviation. */
typedef void noise_make(struct rng *rng, double *x, size_t n);

struct noise_kind {
    const char *name, *what;
    noise_make *make;
    bool promised; /* false alarms on it are at most what is promised */
};

extern const struct noise_kind noise_kinds[]; /* ends with a NULL name */

#endif

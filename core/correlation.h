// SPDX-License-Identifier: Apache-2.0
// How far the samples of a series depend on those before: autocorrelation times. Pure functions;
// docs/statistics.md has the method and what simulation says of it.
#ifndef PLUMB_CORE_CORRELATION_H
#define PLUMB_CORE_CORRELATION_H

#include <stddef.h>

struct correlation {
    double time;   // in samples, >= 1; NaN: cannot be told
    double window; // samples over which the autocovariance was added up, beyond the first pair
};

// Of sign(x - median): on which side of the median samples fall. O(n). 0 or -ENOMEM.
int correlation_of_signs(const double *x, size_t n, double median, struct correlation *out);

// The longer of that and of the same of the ranks. A slow wander, or a second level that is rarely
// visited, moves ranks before it moves the median. O(n). 0 or -ENOMEM.
int correlation_longest(const double *x, size_t n, double median, struct correlation *out);

#endif

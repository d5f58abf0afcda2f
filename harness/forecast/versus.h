/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison in one figure: how many times as many samples a second one node of B makes as one
 * node of A, in training steps of a model with a batch of 1 and Adam, by the forecast of each
 * (docs/forecast.md). What may be off is taken to be independent between the two.
 */
#ifndef PLUMB_FORECAST_VERSUS_H
#define PLUMB_FORECAST_VERSUS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/document/pool.h"

/* Run folders of a side. */
struct side_runs {
    const char *const *runs;
    size_t n;
};

struct versus {
    const char *model;
    double a, b;             /* samples a second; NaN: no forecast */
    const char *dtypes[2];   /* of the products of A and B: the fastest that each measured; "" */
    bool tight[2];           /* A, B: see versus_text() */
    double ratio, low, high; /* b / a, with its interval; NaN */
    const char *why;         /* there is none; "" */
};

/* 0; -EINVAL: there is no such model, with error set. Texts are of the pool. */
int versus_make(const char *model, struct side_runs a, struct side_runs b, struct pool *pool,
                struct versus *v, char *error, size_t len);

/* "for gpt2-xl in bf16 B is 1.9 (1.6 to 2.2) times A"; with prices also what that is for the same money
 * (NaN: none is known), and which side would have to compute activations again, which is not in it. */
const char *versus_text(struct pool *pool, const struct versus *v, double price_a, double price_b);

#endif

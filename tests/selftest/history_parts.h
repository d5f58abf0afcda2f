/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the history's self-test; used by history*.c alone. */
#ifndef PLUMB_SELFTEST_HISTORY_PARTS_H
#define PLUMB_SELFTEST_HISTORY_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rng.h"
#include "harness/history/history.h"
#include "tests/selftest/promise.h"

struct effort {
    size_t series;       /* years of each kind of noise that is promised */
    size_t series_open;  /* and of each that is not */
    size_t steps, slips; /* series of each kind */
    bool markdown;
    bool all; /* also what nothing is promised of */
    struct promises *said;
};

/* The changes of x, the caller's to free. Exits where memory is short. */
struct change_point *history_find(const double *x, size_t n, size_t *n_points);

/* A table: its head, "a|b|c", then rows of a name and cells. */
void history_head(const struct effort *e, const char *title, const char *columns);
void history_name(const struct effort *e, const char *name);
void history_cell(const struct effort *e, const char *format, double value);
void history_end(const struct effort *e);

/* Holds `wrong` of so many series against the share that is promised, by more than chance explains. */
void history_promise(const struct effort *e, const char *what, size_t wrong, size_t of,
                     double share);

/* Slow slips, which are told as steps: how often and how soon. */
void history_slips(const struct effort *e, struct rng *rng);
/* What a few slips among many cases are told as. */
void history_some_slip(const struct effort *e, struct rng *rng);
/* Levels of few runs that go back. */
void history_short_levels(const struct effort *e, struct rng *rng);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What is promised, held against what was counted, and said as tests (TAP). */
#ifndef PLUMB_SELFTEST_PROMISE_H
#define PLUMB_SELFTEST_PROMISE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * In the full form a promise is broken where more trials go wrong than it says. The short form has few trials: there,
 * too, chance must not explain them, which it does once in CHANCE tests of a promise that holds just so.
 */
#define CHANCE 1e-5

struct promises {
    bool brief, tap;
    size_t tests, broken;
};

/* P(X >= k), X binomial */
double promise_chance(size_t k, size_t n, double share);

/* At most `share` of `of` trials may go wrong, which do not hang together. */
bool promise_breaks(const struct promises *p, size_t wrong, size_t of, double share);
/* So few went wrong that at least nine in ten such samples would have more if the promise held just so. */
bool promise_is_clear(size_t wrong, size_t of, double share);
/* Counts a test, and says so with --tap. Returns whether it is broken. */
bool promise_tell(struct promises *p, bool broken, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends the output; returns the program's exit status. */
int promise_end(const struct promises *p, const char *program);

#endif

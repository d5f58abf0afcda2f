/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark says of itself while it measures: on a terminal one line, which is taken away
 * before a row is printed; under a harness that asks for it (core/status_line.h), its estimate. Else
 * nothing. */
#ifndef PLUMB_CORE_BENCH_TELLER_H
#define PLUMB_CORE_BENCH_TELLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct teller {
    int fd;        /* of the harness' file; -1: none */
    bool terminal; /* stderr is one, and no harness reads along */
    bool drawn;
    size_t done, total;          /* points */
    uint64_t begin_ns, point_ns; /* when all began, and when the point did */
    char label[96];
};

void teller_open(struct teller *t, size_t total);
void teller_close(struct teller *t);

/* A point begins: "memory triad 64K". */
void teller_begin(struct teller *t, const char *label);
bool teller_is_heard(const struct teller *t); /* by anybody? */
/* value NaN: there is none yet; half: of its interval, as a share of it; NaN: not known. */
void teller_show(struct teller *t, double value, double half, const char *unit);
/* It ended: the line is taken away. */
void teller_end(struct teller *t);

#endif

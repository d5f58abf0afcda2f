/* SPDX-License-Identifier: Apache-2.0 */
/* Our own figure, out of the rows of one of our benchmarks, and how it was measured. */
#ifndef PLUMB_HARNESS_CROSSCHECK_OURS_H
#define PLUMB_HARNESS_CROSSCHECK_OURS_H

#include "harness/crosscheck/witness.h"

struct ours {
    double value;
    char cpus[64]; /* the leader's > the peer's: "0>1"; "" where the benchmark has no such column */
    char detail[160]; /* what carried it: "lo bbr, MSS 65483" */
    char gid[8];      /* the index in RoCE's table; "" where there is none */
};

/* Reads the CSV of a run. 0; -EBADMSG: the rows are not those that were asked for; -EIO: they say that
 * it failed or is wrong; -EOPNOTSUPP: that it cannot run here. All with error. */
int ours_read(const struct witness *w, const char *csv, size_t size, struct ours *out, char *error,
              size_t len);

#endif

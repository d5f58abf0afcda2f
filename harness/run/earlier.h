/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launches took in the last run of a suite (the column launch_s), to state how long a plan will
 * take: the newest complete run by this build on this host, under the same rule for processes, of all
 * cases or with the same --only.
 *
 * A launch is known by its benchmark and arguments. Its time is the mean of its repetitions. Those
 * that failed or were late count for nothing, nor do those on several hosts.
 */
#ifndef PLUMB_HARNESS_EARLIER_H
#define PLUMB_HARNESS_EARLIER_H

#include <jansson.h>

#include "harness/plan/plan.h"

struct earlier {
    json_t *seconds, *launches; /* "bench arguments": the sum, and of how many */
    char run[256];              /* its folder; "": there is none */
};

/* Looks below each of these folders, which ends with NULL; one that is not there has none. */
void earlier_load(struct earlier *e, const char *const *folders, const char *suite,
                  const char *only, const char *processes);
void earlier_release(struct earlier *e);

/* How long this launch took then; NaN: not known. */
double earlier_seconds(const struct earlier *e, const struct launch *l);

#endif

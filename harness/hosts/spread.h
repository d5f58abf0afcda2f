/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases that need a peer, spread over the pairs of hosts: each becomes a case for every pair that its
 * `between` names. Of hosts 1 to n, in the order of the hosts file:
 *
 *   ring    1 to 2, 2 to 3, ..., n to 1; two hosts are one pair
 *   first   1 to each of the others
 *   all     every two of them once, the earlier one leads
 *   none    none: it is run on this machine, like those that need no peer
 *
 * The first of a pair leads: what is called forward goes from it to the other.
 */
#ifndef PLUMB_HARNESS_SPREAD_H
#define PLUMB_HARNESS_SPREAD_H

#include "harness/hosts/hosts.h"
#include "harness/plan/suite.h"

struct spread {
    size_t between, here; /* cases of either kind, before they were spread */
    size_t pairs;         /* different ones */
};

/* Would it spread any? */
bool spread_wanted(const struct suite *suite);
/* 0, -ENOMEM, or -EINVAL with error: it makes too many. */
int spread_suite(struct suite *suite, const struct hosts *hosts, struct spread *told, char *error,
                 size_t len);

#endif

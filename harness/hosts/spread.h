/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases that need a peer, spread over the pairs of hosts: each becomes a case for every pair that its
 * `between` names. Of hosts 1 to n, in the order of the hosts file:
 *
 *   ring    1 to 2, 2 to 3, ..., n to 1; two hosts are one pair
 *   first   1 to each of the others
 *   all     every two of them once, the earlier one leads, as a round-robin tournament: in bouts, in each of which no host
 *           is in two pairs
 *   sample  all up to SPREAD_ALL hosts; above, the ring, and SPREAD_BOUTS bouts of such a tournament drawn by the seed, so that each
 *           host is in as many pairs as any other: about 4 n pairs
 *   none    none: it is run on this machine, like those that need no peer
 *
 * The first of a pair leads: what is called forward goes from it to the other.
 *
 * Cases that need a group stay one each, over all hosts; `none` leaves them on this machine.
 */
#ifndef PLUMB_HARNESS_SPREAD_H
#define PLUMB_HARNESS_SPREAD_H

#include "harness/hosts/hosts.h"
#include "harness/plan/suite.h"

#define SPREAD_ALL   16
#define SPREAD_BOUTS 6

struct spread {
    size_t between, over, here; /* cases of each kind, before they were spread */
    size_t pairs;               /* different ones */
    unsigned bouts;             /* of all or sample; 0: neither */
};

/* Would it spread any over pairs? Run any over all hosts? */
bool spread_has_pairs(const struct suite *suite);
bool spread_has_groups(const struct suite *suite);
/* 0, -ENOMEM, or -EINVAL with error: it makes too many. */
int spread_suite(struct suite *suite, const struct hosts *hosts, uint64_t seed, struct spread *told,
                 char *error, size_t len);

/* The bouts of n hosts' tournament, numbered from 1, at [from * n + to] for from < to; 0 elsewhere. To be freed; NULL when memory is
 * short. */
unsigned *spread_tournament(size_t n);

#endif

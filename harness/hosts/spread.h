/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases that need a peer, spread over pairs of hosts: each becomes a case for every pair that its
 * `between` names. Of hosts 1 to n, in the order of the hosts file:
 *
 *   ring    1 to 2, 2 to 3, ..., n to 1; two hosts are one pair
 *   first   1 to each of the others
 *   all     every two of them once, the earlier one leads, as a round-robin tournament: it has
 *           bouts, and in a bout no host is in two pairs
 *   sample  all up to SPREAD_ALL hosts. Above, the ring and SPREAD_BOUTS bouts of such a
 *           tournament, drawn by the seed: about 4 n pairs, each host in as many as any other
 *   none    none: it is run on this machine, like those that need no peer
 *
 * The first of a pair leads: what is called forward goes from it to the other.
 *
 * Cases that need a group stay one each, over all hosts; `none` leaves them on this machine.
 */
#ifndef PLUMB_HARNESS_SPREAD_H
#define PLUMB_HARNESS_SPREAD_H

#include "harness/hosts/hosts.h"
#include "harness/plan/plan.h"

#define SPREAD_ALL   16
#define SPREAD_BOUTS 6

/* Would it spread any over pairs? Run any over all hosts? */
bool spread_has_pairs(const struct suite *suite);
bool spread_has_groups(const struct suite *suite);
/* 0, or -EINVAL with error: it makes too many. */
int spread_suite(struct suite *suite, const struct hosts *hosts, uint64_t seed, char *error,
                 size_t len);

/* The cases that a plan took of a suite that was spread. */
struct spread {
    size_t between, over, here; /* cases of each kind, as many as before they were spread */
    size_t pairs;               /* different ones */
    unsigned bouts;             /* of all or sample; 0: neither */
};

void spread_count(const struct suite *suite, const struct hosts *hosts, const struct plan *plan,
                  struct spread *spread);

/* The same in a line on stderr: "plumb run: between hosts, by ssh: 2 cases over 3 pairs; ..." */
void spread_say(const struct hosts_run *run, const struct suite *suite, const struct plan *plan);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One launch of a benchmark that needs a group, over all hosts of a run: slots ranks on each, numbered in the order of the
 * hosts. Like a pair (pair.h) it is a body of a child.
 *
 * With a launcher that starts each end by itself: rank 0 first, alone, on the first host, with a port of the run's range, another
 * where that is taken; when it says that it listens, one connection a host for all further ranks there, some hosts at a
 * time. All are told a secret made for this launch. Rank 0 says itself who of them is missing or gone; where it cannot,
 * since its own host is gone, or a host was never reached, this does.
 */
#ifndef PLUMB_HARNESS_GROUP_LAUNCH_H
#define PLUMB_HARNESS_GROUP_LAUNCH_H

#include "harness/hosts/launcher.h"
#include "harness/hosts/pair.h"

struct group {
    const struct hosts_run *run;
    const char *program; /* as of a pair */
    const char *const
        *arguments; /* as of a pair; --np N among them is not heeded: the slots say it */
    unsigned number;
};

/* As pair_body(); `arg` is a struct group. */
int group_body(void *arg);

/* The command lines of a launch, for people: one for rank 0, one for each host, or one for all. */
char *group_commands(const struct group *g);

/* The names of the hosts, "a;b;c", as plans and rows have them. New text, NULL when memory is short. */
char *group_names(const struct hosts *hosts);

/* Between group.c and group_order.c: */

/* The ranks of one connection. */
struct group_seat {
    const struct host *host;
    unsigned first, n;
};

/* How many connections a group has; seats: one each, the first is rank 0. To be freed. */
struct group_seat *group_seats(const struct hosts_run *run, unsigned *n);
unsigned group_port(const struct group *g, unsigned attempt);
void group_order(const struct group *g, const struct group_seat *seat, const char *token,
                 unsigned port, bool shown, struct words *out);

#endif

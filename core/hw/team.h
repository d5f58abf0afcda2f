/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A team of bound threads that run one function together. Thread 0 is the caller. The time of a run
 * is from the first thread's start to the last one's end: the slowest counts, as over ranks.
 */
#ifndef PLUMB_CORE_HW_TEAM_H
#define PLUMB_CORE_HW_TEAM_H

#include <stdint.h>

struct team;
struct topo;

typedef void team_fn(void *arg, unsigned thread, unsigned threads);

/* Binds the caller to cpus[0] and starts n - 1 threads bound to the others. 0 or -errno; nothing is
 * left behind on an error. */
int team_open(struct team **team, const struct topo *topo, const unsigned *cpus, unsigned n);
void team_close(struct team *team); /* joins the threads; the caller stays bound */

/* Runs fn(arg, thread, n) on all threads after a common start. each_ns, where not NULL, gets the n
 * threads' own times. */
void team_run(struct team *team, team_fn *fn, void *arg, uint64_t *ns, uint64_t *each_ns);

unsigned team_size(const struct team *team);

#endif

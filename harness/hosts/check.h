/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of hosts before anything long starts: can each be reached, has it the same build of every benchmark that is
 * to run there, does its clock agree with ours to a second, which network interfaces has it; and, of a benchmark
 * that needs a group, do all its ranks find each other (plumb-NAME --who, launched as it will be).
 *
 * What fails is kept with the host, with what to do, and launches that need it fail at once with that sentence.
 */
#ifndef PLUMB_HARNESS_HOSTS_CHECK_H
#define PLUMB_HARNESS_HOSTS_CHECK_H

#include "harness/hosts/launcher.h"
#include "harness/plan/plan.h"

#define CHECK_CLOCK_S 1.0 /* further apart, as far as it can be told, is another time */

/* Of the hosts and benchmarks that launches of the plan wait for. Says what it found on stderr. 0, -ENOMEM or another -errno of
 * this machine. */
int check_all(struct hosts_run *run, const struct bench_list *benches, const struct plan *plan);

/* Between check.c, check_ask.c, check_trial.c and check_say.c: */

/* Asks all hosts that have programs, some at a time. 0 or -errno. */
int check_ask(struct hosts_run *run, const struct bench_list *benches);
/* Launches plumb-NAME --who over all. 0 or -errno; what is wrong becomes the first host's problem with that benchmark. */
int check_trial(struct hosts_run *run, const struct bench_info *bench);
/* The table, and each problem with how many launches it concerns. */
void check_say(const struct hosts_run *run, const struct plan *plan);

/* Takes what a host said. The clock was read at some time between two readings of ours, in seconds. */
int check_take(struct host *h, const char *text, const char *token, double begin_s, double end_s);
/* Of "NAME|SPEED|ADDRESS ...": "eth0 10.1.0.1 1 Gb/s". Returns text; "" where there is nothing to say. */
const char *check_network(const char *network, char *text, size_t len);
/* Is this table of --who right for these hosts? 0, -EBADMSG with error, or -ENOMEM. */
int check_who(const struct hosts_run *run, const char *csv, size_t size, char *error, size_t len);

#endif

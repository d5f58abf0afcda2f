/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the hosts before anything long starts:
 *
 *   - Can each be reached?
 *   - Has it the same build of every benchmark that is to run there?
 *   - Does its clock agree with ours to a second?
 *   - Which network interfaces has it?
 *   - Do all ranks of a benchmark that needs a group find each other (plumb-NAME --who)?
 *
 * A failure is kept with the host, as a sentence with the next step. Launches that need the host
 * fail at once with that sentence.
 */
#ifndef PLUMB_HARNESS_HOSTS_CHECK_H
#define PLUMB_HARNESS_HOSTS_CHECK_H

#include "harness/hosts/hosts.h"
#include "harness/hosts/launcher.h"
#include "harness/plan/plan.h"

/* Asks for the launches of the plan that are to do, and prints the answers on stderr. 0, or -errno
 * of this machine. */
int check_all(struct hosts_run *run, const struct bench_list *benches, const struct plan *plan);

/* Takes the answer of a host; its "end" is there. */
void check_take(struct host *h, const struct host_answer *answer);
/* Of an entry of host.networks: "eth0 10.1.0.1 1 Gb/s". Returns text; "" where the interface has no
 * address. */
const char *check_network(const json_t *network, char *text, size_t len);
/* Is this table of --who right for these hosts? 0 and, for run.json, its rows, a new list; or -EBADMSG
 * with error. */
int check_who(const struct hosts_run *run, const char *csv, size_t size, json_t **ranks,
              char *error, size_t len);

#endif

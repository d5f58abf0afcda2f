/* SPDX-License-Identifier: Apache-2.0 */
/* How a run reaches its hosts: from the options of plumb run, into run.json, and back from there. */
#ifndef PLUMB_HARNESS_HOSTS_RUN_H
#define PLUMB_HARNESS_HOSTS_RUN_H

#include <jansson.h>

#include "harness/hosts/launcher.h"
#include "harness/plan/plan.h"

/* As given on the command line; NULL and 0: not given. */
struct hosts_options {
    const char *file, *launcher, *rsh, *remote_dir, *arguments;
    uint64_t port, wait_ns, slots;
};

/* Checks options that go together and reads the file. run->launcher stays NULL where everything is to run on this
 * machine. 0, -ENOMEM, or -EINVAL and the like with error. */
int hosts_run_make(const struct hosts_options *o, struct hosts_run *run, char *error, size_t len);
/* The launcher must be here, enough hosts for `pairs` or a `group`, and each have an address, where the launcher needs
 * one. 0 or -errno with error. */
int hosts_run_check(struct hosts_run *run, bool pairs, bool group, char *error, size_t len);
void hosts_run_release(struct hosts_run *run);

/* For run.json: launcher, hosts, and what they answered when they were asked (check.h). A new object, or NULL. */
json_t *hosts_run_meta(const struct hosts_run *run);
/* Back from there, for a run that goes on. NULL meta: no hosts. 0, -ENOMEM, or -EBADMSG with error. */
int hosts_run_from_meta(const json_t *meta, const struct plan *plan, struct hosts_run *run,
                        char *error, size_t len);

#endif

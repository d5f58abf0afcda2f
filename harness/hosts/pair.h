/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One launch between two hosts: its ends are started by the launcher, and its rows and samples come out as those of
 * a benchmark on this machine would. It is a body of a child (child.h), which the harness stops and times
 * like any other.
 *
 * With a launcher that starts each end by itself: the listener first, with a port of the run's range, another
 * where that is taken; the leader when the listener says that it listens; both are told a secret made for
 * this launch. When the leader has ended the listener ends, too, or is made to.
 */
#ifndef PLUMB_HARNESS_PAIR_H
#define PLUMB_HARNESS_PAIR_H

#include "harness/hosts/launcher.h"

#define PAIR_FAILED 120 /* exit status: the last line on standard error is the reason */
#define PAIR_LOST                                                                                  \
    121 /* of a group: all is measured; the last line says who was lost without being needed */

struct pair {
    const struct hosts_run *run;
    const struct host *from, *to;
    const char
        *program; /* of this machine; on the others it is at the same place, or in remote_dir */
    const char *const
        *arguments;  /* ended by NULL; also how rows are printed, not where samples go */
    unsigned number; /* of the launch: which port is tried first */
};

/* A child's body: rows to standard output, samples to CHILD_SAMPLES_FD, and what happens meanwhile to standard
 * error. Returns the benchmark's exit status, or PAIR_FAILED. `arg` is a struct pair. */
int pair_body(void *arg);

/* The command lines of a launch, for people: two lines or one. New text, NULL when memory is short. */
char *pair_commands(const struct pair *p);

/* Version and commit of "plumb-net 0.1.0 (COMMIT, compiler, flags)" alone. */
const char *pair_build(const char *version, char *text, size_t len);

#endif

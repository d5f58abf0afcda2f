/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One launch over hosts: its ends are started by the launcher, and its rows and samples come out as those of a benchmark on
 * this machine would. It is a body of a child (child.h), which the harness stops and times like any other.
 *
 * A pair is a group of two. With a launcher that starts each end by itself, the listener is started first, with a port of the
 * run's range, another where that is taken; when it says that it listens, one connection a host for all others, some at a time.
 * All are told a secret made for this launch. In a group the listener is rank 0, which leads; in a pair the other one leads. Who
 * leads has the rows, and says itself who of the others is missing or gone; where it cannot, since its own host is gone, or a
 * host was never reached, this does. With mpirun and srun all ends are one job.
 */
#ifndef PLUMB_HARNESS_HOST_LAUNCH_H
#define PLUMB_HARNESS_HOST_LAUNCH_H

#include "harness/hosts/launcher.h"

/* Exit statuses beside those of benchmarks. */
#define HOST_LAUNCH_FAILED 120 /* the last line on standard error is the reason */
#define HOST_LAUNCH_LOST                                                                           \
    121 /* of a group: all is measured; the last line says who was lost without being needed */

struct host_launch {
    const struct hosts_run *run;
    const struct host *from,
        *to; /* a pair; NULL: a group over all hosts, slots ranks on each, in their order */
    const char
        *program; /* of this machine; on the others it is at the same place, or in remote_dir */
    const char *const *
        arguments; /* ended by NULL; also how rows are printed, not where samples go. A group's --np N is
                        not heeded: the slots say it */
    unsigned number; /* of the launch: which port is tried first */
};

/* A child's body: rows to standard output, samples to CHILD_SAMPLES_FD, and what happens meanwhile to standard error. Returns
 * the benchmark's exit status, or one of the above. `arg` is a struct host_launch. */
int host_launch_body(void *arg);

/* The command lines of a launch, for people: one for each connection. New text, NULL when memory is short. */
char *host_launch_commands(const struct host_launch *l);

/* ---- command lines: host_order.c */

/* One connection. The first is the listener, or with mpirun and srun all of them. */
struct host_seat {
    const struct host *host;
    enum hosts_task task;
    unsigned first, n; /* of a group: its ranks there */
};

/* To be freed; NULL: memory is short. */
struct host_seat *host_seats(const struct host_launch *l, unsigned *n);
/* The port that a launch tries as its first, second, ... */
unsigned host_port(const struct host_launch *l, unsigned attempt);
/* The words of one connection. */
void host_order(const struct host_launch *l, const struct host_seat *seat, const char *token,
                unsigned port, bool shown, struct words *out);

/* Where the program is on a host. */
void host_program_path(const struct hosts_run *run, const struct host *host, const char *program,
                       char *path, size_t len);
int host_token(char token[HOSTS_TOKEN_SIZE]); /* 0 or -errno */
/* Version and commit of "plumb-net 0.1.0 (COMMIT, compiler, flags)" alone. */
const char *host_build(const char *version, char *text, size_t len);

#endif

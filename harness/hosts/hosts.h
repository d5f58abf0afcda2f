/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that a suite runs between, as a hosts file lists them: one a line, as mpirun takes
 * them.
 *
 *   node1                      # a name, user@name or an address; IPv6 may stand in [brackets]
 *   node2 slots=4              # or MPICH's node2:4: the ranks of a group there; default 1. Pairs
 *                              # ignore it, and max_slots is ignored
 *   node3 address=10.1.0.3     # where the others reach it for data; default: looked up by its name
 */
#ifndef PLUMB_HARNESS_HOSTS_H
#define PLUMB_HARNESS_HOSTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/plan/plan.h"

#define HOSTS_MAX       1024
#define HOSTS_NAME_MAX  256
#define HOSTS_FILE_MAX  (1u << 20) /* bytes */
#define HOSTS_ADDRESSES 46         /* characters of the longest numeric one, and its end */
#define HOSTS_SLOTS_MAX 1024       /* of one host, and of all that a group takes */

/* One benchmark on a host, as it was asked before anything was measured: see check.h. */
struct host_program {
    const char *bench; /* its name; of the list of benchmarks, which outlives this */
    char *path;        /* where it was asked for; NULL: not yet */
    char *version;     /* NULL: it does not start there */
    char *problem;     /* what needs it there fails with this sentence; NULL: none */
};

struct host {
    char *name;     /* as the launcher takes it */
    char *address;  /* NULL: none was given, and none was looked up yet */
    unsigned slots; /* ranks of a group */
    int line;
    bool here; /* it is this machine */
    /* What it answered before anything was measured. */
    bool asked, answered;
    char *problem;    /* what needs this host fails with this sentence; NULL: none */
    char *calls;      /* what it calls itself; NULL: no answer */
    json_t *networks; /* [{"name", "speed_mbps": or null, "addresses": []}]; NULL: not known */
    double offset_s;  /* its clock less ours, NAN: not known */
    double spread_s;  /* the offset is known to this much either way */
    struct host_program *programs;
    size_t n_programs;
};

struct hosts {
    struct host *all;
    size_t n;
};

/* Reads the text of a hosts file; `name` is for messages. A host that is listed again is the same
 * one, with the slots of both lines. 0, or -EINVAL with error "FILE:LINE: what". */
int hosts_parse(const char *name, const char *text, struct hosts *hosts, char *error, size_t len);
int hosts_load(const char *path, struct hosts *hosts, char *error, size_t len);
void hosts_release(struct hosts *hosts);

/* With one slot. */
void hosts_add(struct hosts *hosts, const char *name, const char *address, int line);
unsigned hosts_slots(const struct hosts *hosts); /* of all */
/* What keeps a launch of this benchmark off the host; NULL: nothing that is known. */
const char *host_problem(const struct host *host, const char *bench);
/* Their names, "a;b;c", as plans and rows have them. New text. */
char *hosts_names(const struct hosts *hosts);
const struct host *hosts_find(const struct hosts *hosts, const char *name);

/* Marks the hosts that are this machine. */
void hosts_mark_here(struct hosts *hosts);
/* Looks up the addresses that were not given: numeric, so that both ends of a pair mean the same.
 * 0, or -EINVAL with error: a name is unknown here, or it is loopback, which other hosts cannot
 * reach. */
int hosts_look_up(struct hosts *hosts, char *error, size_t len);

/* ---- How a run reaches its hosts: from the options of plumb run, into run.json, and back ---- */

struct launcher;

struct hosts_run {
    const struct launcher *launcher; /* NULL: no hosts, every case is run on this machine */
    struct hosts hosts;
    char *file, *rsh, *remote_dir,
        *arguments;         /* rsh: a program and its arguments; NULL: not given */
    uint64_t port, wait_ns; /* wait_ns: a host that sends nothing for so long is not there */
    bool hydra;             /* mpirun is MPICH's or one of its kin */
    json_t *ranks; /* by benchmark: the ranks' reports of themselves (check.h); NULL: none */
};

/* As given on the command line; NULL and 0: not given. */
struct hosts_options {
    const char *file, *rsh, *remote_dir, *arguments;
    const char *launcher; /* of launcher_names */
    uint64_t port, wait_ns, slots;
};

/* Checks options that go together and reads the file. run->launcher stays NULL where everything is
 * to run on this machine. 0, or -EINVAL and the like with error. */
int hosts_run_make(const struct hosts_options *o, struct hosts_run *run, char *error, size_t len);
/* The launcher must be here, and enough hosts for `pairs` or a `group`, each with an address where
 * the launcher needs one. 0 or -errno with error. */
int hosts_run_check(struct hosts_run *run, bool pairs, bool group, char *error, size_t len);
void hosts_run_release(struct hosts_run *run);

/* For run.json: launcher, hosts, and their answers to check.h. A new object. */
json_t *hosts_run_meta(const struct hosts_run *run);
/* Back from there, for a run that goes on. NULL meta: no hosts. 0, or -EBADMSG with
 * error. */
int hosts_run_from_meta(const json_t *meta, const struct plan *plan, struct hosts_run *run,
                        char *error, size_t len);

#endif

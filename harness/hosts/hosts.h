/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that a suite runs between, as a hosts file names them: one a line, as mpirun takes them.
 *
 *   node1                      # a name, user@name or an address; IPv6 may stand in [brackets]
 *   node2 slots=4              # slots, max_slots and MPICH's node2:4 are read and left aside
 *   node3 address=10.1.0.3     # where the others reach it for data; unless given, what its name means here
 */
#ifndef PLUMB_HARNESS_HOSTS_H
#define PLUMB_HARNESS_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#define HOSTS_MAX       1024
#define HOSTS_NAME_MAX  256
#define HOSTS_FILE_MAX  (1u << 20) /* bytes */
#define HOSTS_ADDRESSES 46         /* characters of the longest numeric one, and its end */

struct host {
    char *name;    /* as the launcher takes it */
    char *address; /* NULL: none was given, and none was looked up yet */
    int line;
    bool here;      /* it is this machine */
    char *version;  /* of the benchmark there, once it was asked; NULL: not asked, no answer */
    char *problem;  /* the sentence on what it answered instead; NULL: none */
    bool unreached; /* that no command can be started there: what needs it fails with `problem` */
};

struct hosts {
    struct host *all;
    size_t n;
};

/* Reads the text of a hosts file; `name` is for messages. A host that is named again is taken once. 0,
 * -ENOMEM, or -EINVAL with error "FILE:LINE: what". */
int hosts_parse(const char *name, const char *text, struct hosts *hosts, char *error, size_t len);
int hosts_load(const char *path, struct hosts *hosts, char *error, size_t len);
void hosts_release(struct hosts *hosts);

int hosts_add(struct hosts *hosts, const char *name, const char *address,
              int line); /* 0, -ENOMEM */
const struct host *hosts_find(const struct hosts *hosts, const char *name);

/* Marks those that are this machine. */
void hosts_mark_here(struct hosts *hosts);
/* Looks up the addresses that were not given: numeric, so that both ends of a pair mean the same. 0, or
 * -EINVAL with error: a name means nothing here, or it means loopback, where other hosts cannot reach it. */
int hosts_look_up(struct hosts *hosts, char *error, size_t len);

#endif

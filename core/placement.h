/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads run and where their memory lies, as options say it: "any", a node's number, "local",
 * "remote".
 */
#ifndef PLUMB_CORE_PLACEMENT_H
#define PLUMB_CORE_PLACEMENT_H

#include <stddef.h>

#include "core/topo.h"

#define PLACEMENT_ANY    (-1) /* of threads: all usable CPUs */
#define PLACEMENT_LOCAL  (-1) /* of memory: the node of the thread that uses it */
#define PLACEMENT_REMOTE (-2) /* of memory: another node than the threads' */

/* For OPT_CUSTOM options; *value is an int. "any" or 0, 1, ...; "local", "remote" or 0, 1, ... */
int placement_parse_node(const char *text, void *value, char *error, size_t len);
int placement_parse_memory(const char *text, void *value, char *error, size_t len);

struct placement {
    unsigned threads;
    unsigned *cpus;  /* threads of them */
    int memory_node; /* the system's number, or -1: where each thread runs */
};

/* Chooses CPUs for `threads` threads (0: one a core) on `node`, and the node of their memory. 0;
 * -EOPNOTSUPP: not on this machine, -ENOMEM; both with *error. Release it in any case. */
int placement_resolve(const struct topo *topo, unsigned threads, int node, int memory,
                      struct placement *p, char *error, size_t len);
void placement_release(struct placement *p);

#endif

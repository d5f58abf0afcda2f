/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of places: the host, one of its NUMA nodes ("node0"), a GPU ("cuda:0"). As options take
 * them.
 *
 * Where a call takes `error`, it writes what failed and what to do about it: no full stop, no
 * newline.
 *
 * Where threads run and where their memory lies, as options say it: "any", a node's number,
 * "local", "remote".
 */
#ifndef PLUMB_CORE_HW_PLACE_H
#define PLUMB_CORE_HW_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct topo;

struct place {
    bool gpu;       /* else memory and CPUs of the host */
    unsigned index; /* the GPU's number, or the NUMA node's as the system counts */
};

#define PLACE_GPU_PREFIX "cuda:"

/* Its one name. */
struct place_name {
    char text[24];
} place_name(struct place place);

/* Which places an option takes. */
#define PLACE_WHOLE 1u /* "host" */
#define PLACE_PART  2u /* "node0": a node of the host */
#define PLACE_GPU   4u /* "cuda:0" */
#define PLACE_ANY   7u

/* For conditions of options (option.h): the value is one of these, in its one name. */
#define PLACES_OF_HOST "host,node*"
#define PLACES_OF_GPUS "cuda:*"

/* Reads a name, without a look at the machine ("cuda" is cuda:0, "host" part 0). 0, or -EINVAL with
 * *error naming the choices and the nearest of them. */
int place_parse(const char *name, unsigned kinds, struct place *place, char *error, size_t len);

/* As struct opt's `parse`, with a const char * for a value: any place; host or a GPU; a GPU. */
int place_read_any(const char *text, void *value, char *error, size_t len);
int place_read_device(const char *text, void *value, char *error, size_t len);
int place_read_gpu(const char *text, void *value, char *error, size_t len);

/* Reads a name and probes the place ("host" is its first node; whether a GPU is there shows when it
 * is opened). -ENODEV with *error when it is not here, -EINVAL when the name is none of a place. */
int place_find(const char *name, const struct topo *topo, struct place *place, char *error,
               size_t len);

/* Words for places, as struct opt's `expand`: "nodes" is every node, "gpus" every GPU, "gpu" the
 * first one; a place's other names ("cuda", "node:1") become its one name. */
bool place_words(const char *word, char *list, size_t len);
/* The same where the host is a number of nodes: "host" is the first one. */
bool place_words_of_nodes(const char *word, char *list, size_t len);
const char *place_all_nodes(void); /* for struct opt's make_default */

#define PLACEMENT_ANY    (-1) /* of threads: all usable CPUs */
#define PLACEMENT_LOCAL  (-1) /* of memory: the node of the thread that uses it */
#define PLACEMENT_REMOTE (-2) /* of memory: another node than the threads' */

/* A node's number, or one of these words for another value of the int *value; a NULL name ends them. */
struct place_word {
    const char *name;
    int value;
};
int place_parse_word(const char *text, const struct place_word *words, void *value, char *error,
                     size_t len);
/* For OPT_CUSTOM options; *value is an int. "any" or 0, 1, ...; "local", "remote" or 0, 1, ... */
int placement_parse_node(const char *text, void *value, char *error, size_t len);
int placement_parse_memory(const char *text, void *value, char *error, size_t len);

struct placement {
    unsigned threads;
    unsigned *cpus;  /* threads of them */
    int memory_node; /* the system's number, or -1: where each thread runs */
};

/* Chooses CPUs for `threads` threads (0: one a core) on `node`, and the node of their memory. 0;
 * -EOPNOTSUPP: not on this machine, with *error. Release it in any case. */
int placement_resolve(const struct topo *topo, unsigned threads, int node, int memory,
                      struct placement *p, char *error, size_t len);
void placement_release(struct placement *p);
bool placement_has_node(const struct topo *topo, int node);

#endif

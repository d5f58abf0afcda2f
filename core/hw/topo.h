/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads and memory go: a thin layer over hwloc. Loaded at first use, since loading takes
 * milliseconds.
 *
 * CPU and node numbers are the system's own (hwloc's "OS index"). CPUs outside of the process'
 * affinity mask do not exist here.
 *
 * Which level of the memory hierarchy a working set lives in.
 */
#ifndef PLUMB_CORE_HW_TOPO_H
#define PLUMB_CORE_HW_TOPO_H

#include <stddef.h>
#include <stdint.h>

struct topo;

/* To be called before hwloc is: it opens none of its plugins, unless the environment says where
 * they are. They find devices, which nothing here asks it for, and bring X, OpenCL and the like
 * into the process; in a bundle, those of another hwloc. topo_open() does it. */
void topo_without_plugins(void);

int topo_open(struct topo **topo); /* 0 or -EIO */
void topo_close(struct topo *topo);

unsigned topo_cpus(const struct topo *topo);  /* usable CPUs (hardware threads) */
unsigned topo_cores(const struct topo *topo); /* usable cores */
unsigned topo_nodes(const struct topo *topo); /* NUMA nodes with memory; at least 1 */

/* The OS number of node i, 0 <= i < topo_nodes(). */
unsigned topo_node_id(const struct topo *topo, unsigned i);
/* The node that is nearest to a CPU, as an OS number; -1 when not known. */
int topo_node_of_cpu(const struct topo *topo, unsigned cpu);

/* Fills cpus[0..n) with where n threads are best put: one a core before two a core, near to one
 * another by node; only CPUs of `node` when node >= 0. 0, or -ERANGE when there are fewer CPUs. */
int topo_spread(const struct topo *topo, int node, unsigned n, unsigned *cpus);

int topo_bind_self(const struct topo *topo, unsigned cpu); /* the calling thread; 0 or -errno */
void topo_unbind_self(const struct topo *topo); /* the calling thread: all usable CPUs again */

/* Data or unified cache of a level (1..) as seen from the first usable CPU: its size; 0 when there
 * is none or it is hidden. */
uint64_t topo_cache_bytes(const struct topo *topo, unsigned level);
uint64_t topo_last_cache_bytes(const struct topo *topo); /* of all packages' last caches that usable
                                                            CPUs can reach; 0 when hidden */

/* "0-3,8" of n CPUs in any order; ends in ".." when it does not fit. */
const char *topo_cpus_text(const unsigned *cpus, unsigned n, char *text, size_t len);

struct hwloc_topology;
struct hwloc_topology *
topo_hwloc(const struct topo *topo); /* for what is not here; owned by topo */

/* Bytes of a level's cache (1: L1) for each of n threads on these CPUs: of the cache that most of
 * them share, an equal part; 0 where a thread has none at this level, or it is hidden. */
uint64_t cache_share(const struct topo *topo, unsigned level, const unsigned *cpus, unsigned n);
/* "L1", "L2", ... : the first level at which every cache holds what the threads on its CPUs touch,
 * `bytes` each; "DRAM" when none does; "" when no cache is visible (guests may hide them). */
const char *cache_level(const struct topo *topo, const unsigned *cpus, unsigned n, uint64_t bytes);

/* A team of bound threads that run one function together. Thread 0 is the caller. The time of a run
 * is from the first thread's start to the last one's end: the slowest counts, as over ranks. */

struct team;

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

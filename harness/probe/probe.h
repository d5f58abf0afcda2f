/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb probe: what this machine is, bare metal or virtual, and what bounds its pipes.
 *
 * Facts come from /proc, /sys, hwloc and, on the running machine only, NVML (opened at run time).
 * All of them go into one JSON object, whose keys docs/probe.md lists. Two rules hold everywhere:
 *  - what could not be learnt is null, and "<key>_why" beside it says why;
 *  - every conclusion (hypervisor, container, what a device is) carries a "because" list.
 * Addresses (MAC, IP, GUID), serial numbers and UUIDs are never read into the object.
 *
 * Units in the keys: _bytes, _mhz, _gt_s (1e9 transfers a second), _gbits_per_s (1e9 bits),
 * _gbytes_per_s (1e9 bytes, one direction).
 */
#ifndef PLUMB_PROBE_H
#define PLUMB_PROBE_H

#include <jansson.h>
#include <stdio.h>

/*
 * Learns the machine. sysroot is the root of a recorded tree (scripts/record-machine), in which
 * case nothing of the running machine is read; NULL or "" means the running machine. The caller
 * owns *machine (json_decref). The object's key order is stable, and it stands as it is in
 * run.json. Not thread-safe: a sysroot is handed to hwloc through the environment, which is then
 * put back. Returns 0; -ENOENT, -ENOTDIR, -EACCES where sysroot is no readable folder; -ENODATA
 * where it holds neither "sys" nor "proc".
 */
int probe_machine(const char *sysroot, json_t **machine);

/*
 * Which of the variables ("NAME=VALUE", NULL-ended, as environ) steer libraries:
 * {"OMP_NUM_THREADS": "4"}. Others are not looked at. The caller owns it.
 */
json_t *probe_settings(const char *const *variables);

/*
 * Under a launcher: which of the host's processes of a job this is, and the CPUs of all of them:
 * {"local": 1, "by": "LOCAL_RANK", "visible_devices": "0,1", "local_size": 2, "peers": ["0-7",
 * "8-15"]}. Waits up to half a second for the others. NULL: no launcher.
 */
json_t *probe_rank(const char *const *variables);

/*
 * How the counters of a machine grew from one reading to a later one of the same boot: adds to
 * `machine` its "load.watched_seconds", and "grown" to each interface, RDMA port, PCI function and
 * GPU in it, to "load" and to "virtualization.limits": their counters' growth, under their names. A counter that is smaller than before, or that was not read
 * twice, is left out. Nothing is added where the times since boot are not known, or do not grow.
 */
void probe_growth(json_t *machine, const json_t *before, const json_t *after);

/* The same for this machine, which `machine` describes: waits, and reads its counters again. */
void probe_watch(json_t *machine, double seconds);

/*
 * Prints the object as an aligned table for people. Reads only the object; a key that lacks is
 * printed as "?", so that objects of other versions print too. Returns 0 or -EIO.
 */
int probe_print(FILE *out, const json_t *machine);

/*
 * The command. argv[0] is "probe". Returns the exit code: 0 good, 2 usage, 4 incomplete (not even
 * the processor could be read, or the output could not be written whole).
 */
int cmd_probe(int argc, char **argv);

#endif

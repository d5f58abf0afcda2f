// SPDX-License-Identifier: Apache-2.0
// What hardware can do at most, and who says so: the figures of configs/hardware/*.yaml (vendors'
// datasheets and published standards), the formulas that turn a link into a payload rate, and the
// limits of one machine.
//
// Conventions, everywhere: one direction of a link, not the sum of both; dense arithmetic, not
// sparse; GB/s is 1e9 bytes, Gb/s is 1e9 bits, a multiply-add is two operations. A limit errs
// upwards: no honest measurement may exceed it, so what cannot be known (acknowledgements, refresh,
// skip symbols) is not subtracted.
//
// The file format is described in docs/limits.md; limits_load() is its only reader and refuses what
// it does not know.
#ifndef PLUMB_HARNESS_LIMITS_H
#define PLUMB_HARNESS_LIMITS_H

#include <jansson.h>
#include <stddef.h>

struct limits;

// Reads every configs_dir/hardware/*.yaml. Returns NULL and writes "file:line: what" to err on the
// first fault: unknown key, missing or unused source, a figure out of its bounds, an entry, name or
// PCI id given twice. The caller frees the result. file: one more of this format, NULL: none; what it
// gives again is refused.
struct limits *limits_load(const char *configs_dir, const char *file, char *err, size_t errlen);
void limits_free(struct limits *l); // NULL is allowed

// One figure by its key, "<kind>.<entry>.<figure>", e.g. "gpu.h100-sxm5-80gb.bf16_tflops". Each of
// value, unit, source may be NULL. The strings live as long as l. source reads "title, publisher,
// date, url". Returns 0 or -ENOENT.
int limits_lookup(const struct limits *l, const char *key, double *value, const char **unit,
                  const char **source);

// Calls fn for every figure, in the order of the files. Stops and returns the first result that is
// not 0.
struct limit_figure {
    const char *key; // as limits_lookup() takes it; valid during the call
    double value;
    const char *unit;
    const char *source;
    const char *note; // or NULL
};
int limits_each(const struct limits *l, int (*fn)(const struct limit_figure *figure, void *data),
                void *data);

// The entry of a device of this kind ("gpu", "nic"), as the first part of a key: "gpu.h100-sxm5-80gb";
// NULL: none. By its id, "vendor:device" with four hex digits each (case does not matter), or its
// name, which has to match whole: "NVIDIA A100-SXM4-40GB MIG 1g.5gb" is not a whole A100 and is not
// found. The other of the two is NULL.
const char *limits_device(const struct limits *l, const char *kind, const char *id,
                          const char *name);

// The limits of one machine from what `plumb probe --json` says of it (docs/probe.md). *out
// becomes a new array (the caller's) of objects
//
//   {"key", "value", "unit", "source": "datasheet" | "sysfs" | "nvml", "detail"}
//
// (gpu.* also have "address", the PCI address, by which rows name their GPU) in this order, each
// key once:
//
//   dram.gbytes_per_s                  all channels, from the firmware's table
//   pcie.<address>.gbytes_per_s        the link as it is, one direction, before packet headers; of
//                                      a GPU, which slows its link when idle: the width as it is,
//                                      the best speed of both ends. Where the PCI bus does not
//                                      show the link of a GPU, the same from NVML
//   pcie.<address>.best_gbytes_per_s   what both ends could do
//   pcie.<address>.path_gbytes_per_s   the slowest link above the device's own, where that is
//                                      slower than pcie.<address>.gbytes_per_s
//   net.<name>.gbits_per_s             link speed
//   net.<name>.tcp_gbits_per_s         TCP payload at the link speed and MTU
//   net.<name>.chip_gbits_per_s        the fastest port of any card with this chip
//   rdma.<name>.<port>.gbits_per_s     data rate
//   rdma.<name>.<port>.payload_gbits_per_s
//   gpu.<index>.<figure>               e.g. gpu.0.bf16_tflops: the datasheet's; of a GPU that is
//                                      not in configs/hardware, and of a simulated one, from NVML:
//                                      multiprocessors x highest clock x operations of one in a
//                                      clock (configs/hardware/gpu-sm.yaml), and memory clock x
//                                      bus width
//   p2p.<a>+<b>.nvlink_gbytes_per_s    NVLinks between the GPUs at two addresses, one direction
//
// What the probe could not learn is left out, never guessed; facts of a type that is not
// understood are passed over, so that a recorded or older machine file still gives the limits that
// it can. Only a whole physical device gets datasheet figures: not a virtual function, a vGPU, a
// GPU cut by MIG or a paravirtual card, whose "speed" is a made-up number too.
//
// Returns 0, or -EINVAL when machine is no object, or a text of it is not UTF-8.
int limits_machine(const struct limits *l, const json_t *machine, json_t **out);

#endif

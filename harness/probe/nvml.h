// SPDX-License-Identifier: Apache-2.0
/*
 * What NVIDIA's management library says of the GPUs of the machine we run on. The library is opened at
 * run time and only read from; one build serves machines with and without it. Its interface is
 * declared here as far as it is used (NVML API reference, "Device Queries" and "NvLink Methods").
 */
#ifndef PLUMB_PROBE_NVML_H
#define PLUMB_PROBE_NVML_H

#include <jansson.h>
#include <stddef.h>

struct nvml;

/*
 * Opens libnvidia-ml.so.1 and starts it. Returns 0; -ENOENT where there is no library, -ENODEV where
 * it does not start (no driver, or one of another version); why then holds the reason in words.
 */
int nvml_open(struct nvml **nvml, char *why, size_t size);
void nvml_close(struct nvml *nvml);

/* Adds "driver_version" and "cuda_version". */
void nvml_fill_system(const struct nvml *nvml, json_t *object);

unsigned nvml_count(const struct nvml *nvml);

/* The PCI address of GPU index as the kernel writes it, "0000:3b:00.0". Returns 0 or -ENODEV. */
int nvml_address(const struct nvml *nvml, unsigned index, char *buf, size_t size);

/*
 * Adds what GPU index says: name, memory_bytes, memory_gbytes_per_s (2 x clock x bus width / 8: double
 * data rate), pcie, clocks, ecc, power_limit_watts, virtualization, nvlink, mig. What it does not
 * answer is null.
 */
void nvml_fill_gpu(const struct nvml *nvml, unsigned index, json_t *gpu);

#endif

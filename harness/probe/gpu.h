/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of probe_gpus(): what NVML says of a GPU, how GPUs are linked, what CUDA shows, and
 * what moves data to and from GPU memory without the processor. Each adds its keys to the object it
 * is given; what is not known becomes null with its why.
 */
#ifndef PLUMB_PROBE_GPU_H
#define PLUMB_PROBE_GPU_H

#include "core/hw/nvml.h"
#include "harness/probe/facts.h"

/* gpu_nvml.c */

/* Driver, highest CUDA version, confidential computing: into "gpus". */
void nvml_fill_system(const struct nvml *nvml, json_t *gpus);
/* PCI address of number `index`, "0000:3b:00.0". 0 or -ENODEV. */
int nvml_address(const struct nvml *nvml, unsigned index, char *buf, size_t size);
unsigned nvml_count(const struct nvml *nvml);
/* Everything that NVML knows about one GPU. */
void nvml_fill_gpu(const struct nvml *nvml, struct nvml_device *device, json_t *gpu);

/* "cuda": the module of this build, its toolkit, the devices it shows, matched by address with
 * those in "devices"; "toolkit_version": the one on this machine. */
void probe_cuda(struct probe *p, json_t *gpus);

/* gpu_link.c */

/* "nvlink": lanes and speed over all, and for each peer. */
void nvml_fill_links(const struct nvml *nvml, struct nvml_device *device, json_t *gpu);
/* "pairs": for every two GPUs how they reach one another. nvml may be NULL, then why says why. */
void probe_gpu_pairs(struct probe *p, json_t *gpus, const struct nvml *nvml, const char *why);

/* gpu.c */

/* A GPU that only a library shows, without its place on the PCI bus. */
json_t *gpu_add_unseen(json_t *list, const char *address, const char *source);

#endif

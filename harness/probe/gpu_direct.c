/* SPDX-License-Identifier: Apache-2.0 */
/* The ways of data into GPU memory that go round the processor, as far as kernel modules tell. */
#include "harness/probe/gpu_parts.h"

#include <stdio.h>
#include <string.h>

/* A driver that is not loaded is known not to be; that a module's folder was not read is not. */
static void set_module(struct probe *p, json_t *object, const char *key, const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "sys/module/%s", name);
    fact_set_there(object, key, &p->tree, path);
}

/* Under its name of today, or the one before: not loaded where neither is. */
static void set_peer_memory(struct probe *p, json_t *gpus)
{
    static const char key[] = "peer_memory_module";

    set_module(p, gpus, key, "nvidia_peermem");
    if (json_is_true(json_object_get(gpus, key)) ||
        (json_is_null(json_object_get(gpus, key)) &&
         !tree_exists(&p->tree, "sys/module/nv_peer_mem")))
        return;
    json_object_del(gpus, "peer_memory_module_why");
    set_module(p, gpus, key, "nv_peer_mem");
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14 ..." */
static void set_flavour(struct probe *p, json_t *gpus)
{
    static const char path[] = "proc/driver/nvidia/version";
    char line[TREE_LINE];
    int rc = tree_line(&p->tree, path, line, sizeof(line));

    if (rc)
        fact_set_unknown(gpus, "driver_flavour", "/%s: %s", path, fact_errno(rc));
    else
        fact_set_text(gpus, "driver_flavour",
                      strstr(line, "Open Kernel Module") ? "open" : "proprietary");
}

/* Linux hands GPU memory to other drivers (DMA-BUF) from 5.12 on; NVIDIA's does so in its open kernel
 * modules (GPUDirect RDMA and GPUDirect Storage, NVIDIA GPU Operator's documentation). */
static void set_dma_buf(struct probe *p, const json_t *gpus, json_t *direct)
{
    const char *kernel = fact_string(json_object_get(p->machine, "host"), "kernel");
    const char *flavour = fact_string(gpus, "driver_flavour");
    json_t *because = json_array();
    int major = 0, minor = 0;
    bool numbered = kernel && sscanf(kernel, "%3d.%3d", &major, &minor) == 2;
    bool young = major > 5 || (major == 5 && minor >= 12);

    if (flavour)
        fact_say(because, "/proc/driver/nvidia/version: the %s kernel modules", flavour);
    if (numbered)
        fact_say(because, "Linux %d.%d; DMA-BUF for RDMA came with 5.12", major, minor);
    if (flavour && strcmp(flavour, "open") != 0)
        fact_set_bool(direct, "dma_buf", false);
    else if (!flavour || !numbered)
        fact_set_unknown(direct, "dma_buf", "%s",
                         flavour ? "the kernel's version is not known"
                                 : fact_string(gpus, "driver_flavour_why"));
    else if (young)
        fact_set_bool(direct, "dma_buf", true);
    else
        fact_set_unknown(direct, "dma_buf",
                         "this kernel is older than 5.12; a distribution may have brought it back");
    json_object_set_new(direct, "because", because);
}

void probe_gpudirect(struct probe *p, json_t *gpus)
{
    json_t *direct;

    set_flavour(p, gpus);
    set_peer_memory(p, gpus);
    direct = fact_object(gpus, "gpudirect");
    set_dma_buf(p, gpus, direct);
    set_module(p, direct, "gdrcopy", "gdrdrv");
    set_module(p, direct, "storage", "nvidia_fs");
}

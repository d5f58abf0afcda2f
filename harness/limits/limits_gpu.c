// SPDX-License-Identifier: Apache-2.0
// The limits of one GPU: its datasheet's where it is a whole one of a known model, else what
// follows from what NVML says of it.
#include "harness/limits/limits_join.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// What is known of the GPU that limits are written for.
struct gpu_join {
    struct joiner *j;
    const json_t *gpu;
    size_t index;
    const char *entry;  // of the datasheet, or NULL
    const char *except; // a figure that NVML gave, or NULL
};

static bool is_cut(const json_t *gpu)
{
    return json_is_true(json_object_get(json_object_get(gpu, "mig"), "enabled"));
}

// A stand-in may bear any name.
static bool is_simulated(const struct joiner *j, const json_t *gpu)
{
    const char *nature = limits_text(gpu, "nature");
    return (nature && !strcmp(nature, "simulated")) ||
           json_is_true(json_object_get(json_object_get(j->machine, "gpus"), "simulated"));
}

// All of one GPU. A simulated one is what its description says: a whole one, or a vGPU.
static bool is_whole(const struct joiner *j, const json_t *gpu)
{
    static const char *const whole[] = {"none", "passthrough", NULL};
    if (is_cut(gpu))
        return false;
    return is_simulated(j, gpu) ? limits_is_one_of(limits_text(gpu, "virtualization"), whole)
                                : limits_is_whole(gpu);
}

static const char *find_entry(const struct joiner *j, const json_t *gpu)
{
    const char *entry = NULL, *name = limits_text(gpu, "name");
    if (!is_whole(j, gpu) || is_simulated(j, gpu))
        return NULL;
    if (!limits_gpu_by_pci(j->l, limits_pci_id(j, limits_text(gpu, "address")).text, &entry))
        return entry;
    return name && !limits_gpu_by_name(j->l, name, &entry) ? entry : NULL;
}

// A row names its GPU by the PCI address, so each of its limits does.
static void add_gpu_limit(const struct gpu_join *g, const char *name, double value,
                          const char *unit, const char *source, const char *detail)
{
    const char *address = limits_label(g->gpu, "address");
    size_t before = json_array_size(g->j->out);
    limits_add(g->j, limits_key("gpu.%zu.%s", g->index, name), value, unit, source, "%s", detail);
    if (address && json_array_size(g->j->out) > before)
        json_object_set_new(json_array_get(g->j->out, before), "address", json_string(address));
}

static int add_figure(const struct limit_figure *f, void *data)
{
    const struct gpu_join *g = data;
    size_t len = strlen(g->entry);
    char detail[1024];
    if (strncmp(f->key, g->entry, len) || f->key[len] != '.')
        return 0;
    const char *name = f->key + len + 1;
    if (g->except && !strcmp(name, g->except))
        return 0;
    snprintf(detail, sizeof(detail), "%s: %s%s%s", g->entry, f->source, f->note ? "; " : "",
             f->note ? f->note : "");
    add_gpu_limit(g, name, f->value, f->unit, "datasheet", detail);
    return 0;
}

// ---- what follows from NVML

// "sm.cc-9-0.bf16_per_clock" of compute capability 9.0.
static double per_clock(const struct gpu_join *g, const char *type)
{
    const char *capability = limits_text(g->gpu, "compute_capability");
    int major, minor;
    double value = 0;
    if (!capability || sscanf(capability, "%3d.%3d", &major, &minor) != 2)
        return 0;
    struct limit_key key = limits_key("sm.cc-%d-%d.%s_per_clock", major, minor, type);
    return limits_lookup(g->j->l, key.text, &value, NULL, NULL) ? 0 : value;
}

static void add_rate(const struct gpu_join *g, const char *type)
{
    double sms = limits_number(g->gpu, "sms"), mhz = limits_number(g->gpu, "sm_max_mhz");
    double each = per_clock(g, type);
    bool whole_numbers = !strncmp(type, "int", 3);
    char name[32], detail[256];
    if (sms == 0 || mhz == 0 || each == 0)
        return;
    snprintf(name, sizeof(name), "%s_%s", type, whole_numbers ? "tops" : "tflops");
    snprintf(detail, sizeof(detail),
             "%.0f multiprocessors x %.0f MHz at most x %.0f operations a clock (compute "
             "capability %s)",
             sms, mhz, each, limits_text(g->gpu, "compute_capability"));
    add_gpu_limit(g, name, sms * mhz * 1e6 * each / 1e12, whole_numbers ? "TOP/s" : "TFLOP/s",
                  "nvml", detail);
}

static void add_from_nvml(const struct gpu_join *g)
{
    static const char *const types[] = {"f64", "f32", "tf32", "f16", "bf16", "fp8", "int8"};
    double memory = limits_number(g->gpu, "memory_gbytes_per_s");
    if (!is_whole(g->j, g->gpu)) // the whole is no limit of a share
        return;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        add_rate(g, types[i]);
    if (memory > 0)
        add_gpu_limit(g, "memory_gbytes_per_s", memory, "GB/s", "nvml",
                      is_simulated(g->j, g->gpu)
                          ? "memory clock x bus width, of a simulated GPU"
                          : "memory clock x bus width; this model is not in configs/hardware");
}

// Where the PCI bus does not show the link: a GPU in a guest, for one.
static void add_link(const struct gpu_join *g)
{
    const json_t *pcie = json_object_get(g->gpu, "pcie");
    const char *address = limits_label(g->gpu, "address");
    int gen = limits_count(pcie, "max_generation"), width = limits_count(pcie, "width");
    double rate;
    if (!address || limits_pcie(g->j->l, gen, width, 0, &rate))
        return;
    struct limit_key key = limits_key("pcie.%s.gbytes_per_s", address);
    if (!limits_has(g->j, key.text))
        limits_add(g->j, key, rate, "GB/s", "nvml",
                   "width as it is, generation of a busy GPU: generation %d x%d, one direction, "
                   "before packet headers",
                   gen, width);
}

// ---- NVLink

// What n links of a GPU carry of data, of what NVML says that they signal. NVML counts coding and error
// correction in; the generation's figure does not.
static double nvlink_data(const struct joiner *j, const json_t *gpu, double links, double signalled)
{
    struct limit_key key = limits_key(
        "nvlink.gen%d.link_gbytes_per_s",
        (int)limits_number(json_object_get(gpu, "nvlink"), "version")); // 2.2 is the second
    double each = 0;
    if (links <= 0 || limits_lookup(j->l, key.text, &each, NULL, NULL))
        return signalled;
    return fmin(signalled, links * each);
}

static const json_t *gpu_at(const struct joiner *j, const char *address)
{
    const json_t *gpus = json_object_get(json_object_get(j->machine, "gpus"), "devices"), *gpu;
    size_t i;
    json_array_foreach (gpus, i, gpu) {
        const char *at = limits_label(gpu, "address");
        if (at && !strcmp(at, address))
            return gpu;
    }
    return NULL;
}

static void add_nvlink(const struct gpu_join *g, double signalled)
{
    double active = limits_number(json_object_get(g->gpu, "nvlink"), "active");
    char detail[96];
    snprintf(detail, sizeof(detail), "%.0f active links, one direction; %.4g GB/s signalled",
             active, signalled);
    add_gpu_limit(g, "nvlink_gbytes_per_s", nvlink_data(g->j, g->gpu, active, signalled), "GB/s",
                  "nvml", detail);
}

void limits_add_gpu_pair(struct joiner *j, const json_t *pair)
{
    const char *a = limits_label(pair, "a"), *b = limits_label(pair, "b");
    const char *via = limits_text(pair, "nvlink_via");
    double rate = limits_number(pair, "nvlink_gbytes_per_s");
    if (!a || !b || rate == 0)
        return;
    rate = nvlink_data(j, gpu_at(j, a), limits_count(pair, "nvlinks"), rate);
    limits_add(j, limits_key("p2p.%s+%s.nvlink_gbytes_per_s", a, b), rate, "GB/s", "nvml",
               "%d NVLinks between the two%s, one direction", limits_count(pair, "nvlinks"),
               via && !strcmp(via, "nvswitch") ? " over switches" : "");
}

void limits_add_gpu(struct joiner *j, const json_t *gpu, size_t index)
{
    double links = limits_number(json_object_get(gpu, "nvlink"), "gbytes_per_s");
    struct gpu_join g = {.j = j,
                         .gpu = gpu,
                         .index = index,
                         .entry = find_entry(j, gpu),
                         .except = links > 0 ? "nvlink_gbytes_per_s" : NULL};
    if (links > 0)
        add_nvlink(&g, links);
    if (g.entry)
        limits_each(j->l, add_figure, &g);
    else
        add_from_nvml(&g);
    add_link(&g);
}

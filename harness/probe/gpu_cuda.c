/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA shows to a program of this build, and which toolkit this machine has. Nothing is started on
 * a GPU: only the driver is asked. */
#include "core/hw/gpu.h"
#include "harness/probe/gpu_parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *find_gpu(const json_t *list, const char *address)
{
    json_t *gpu;
    size_t i;

    json_array_foreach (list, i, gpu)
        if (!strcmp(fact_string(gpu, "address"), address))
            return gpu;
    return NULL;
}

/* Replaces null and its why; leaves what is known. */
static void settle(json_t *gpu, const char *key, json_t *value)
{
    char why[64];

    if (json_is_null(json_object_get(gpu, key)) || !json_object_get(gpu, key)) {
        snprintf(why, sizeof(why), "%s_why", key);
        json_object_del(gpu, why);
        json_object_set(gpu, key, value);
    }
    json_decref(value);
}

static void set_version(json_t *object, const char *key, int version)
{
    char text[32];

    snprintf(text, sizeof(text), "%d.%d", version / 1000, version % 1000 / 10);
    fact_set_text_or(object, key, version ? text : NULL, "the module does not say");
}

/* Of a GPU with MIG a program is given one slice: its figures are not the GPU's. */
static void fill_device(json_t *gpu, const struct gpu_ops *ops, unsigned index,
                        const struct gpu_facts *f)
{
    char text[32];

    snprintf(text, sizeof(text), "%s:%u", ops->name, index);
    fact_set_text(gpu, "cuda", text);
    fact_set_number(gpu, "cuda_sms", f->sms);
    fact_set_number(gpu, "copy_engines", f->copy_engines);
    fact_set_number(gpu, "l2_bytes", (long long)f->l2_bytes);
    if (f->numa_node >= 0)
        settle(gpu, "numa_node", json_integer(f->numa_node));
    if (fact_true(json_object_get(gpu, "mig"), "enabled"))
        return;
    snprintf(text, sizeof(text), "%u.%u", f->major, f->minor);
    settle(gpu, "compute_capability", fact_text(text));
    settle(gpu, "sms", json_integer(f->sms));
    settle(gpu, "memory_bytes", json_integer((json_int_t)f->memory_bytes));
}

static void fill_devices(json_t *gpus, struct gpus *opened, const struct gpu_ops *ops, json_t *cuda)
{
    json_t *list = json_object_get(gpus, "devices");
    unsigned count = gpus_count(opened);
    struct gpu_facts facts;

    fact_set_number(cuda, "devices", count);
    for (unsigned i = 0; i < count; i++) {
        json_t *gpu;

        if (ops->facts(i, &facts) || !facts.address[0])
            continue;
        set_version(cuda, "toolkit_version", facts.toolkit_version);
        set_version(cuda, "driver_version", facts.driver_version);
        gpu = find_gpu(list, facts.address);
        if (!gpu) {
            gpu = gpu_add_unseen(list, facts.address, "cuda");
            if (fact_true(cuda, "simulated"))
                fact_set_text(gpu, "nature", "simulated");
        }
        settle(gpu, "name", fact_text(facts.name));
        fill_device(gpu, ops, i, &facts);
    }
}

static void ask_module(json_t *gpus, json_t *cuda)
{
    struct gpus *opened = gpus_open();
    const char *why = "out of memory";
    const struct gpu_ops *ops = opened ? gpus_module(opened, &why) : NULL;

    fact_set_bool(cuda, "works", ops != NULL);
    if (!ops)
        fact_set_text(cuda, "works_why", why);
    else if (!strcmp(ops->origin(), "simulated")) {
        fact_set_bool(cuda, "simulated", true);
        fact_set_bool(gpus, "simulated", true);
    }
    if (ops)
        fill_devices(gpus, opened, ops, cuda);
    gpus_close(opened);
}

/* The folder of the toolkit: $CUDA_HOME, $CUDA_PATH, or where the first nvcc on the path lies. */
static bool toolkit_folder(char *folder, size_t size)
{
    static const char *const given[] = {"CUDA_HOME", "CUDA_PATH"};
    const char *path = getenv("PATH");
    char file[PATH_MAX], real[PATH_MAX];

    for (size_t i = 0; i < 2; i++) {
        const char *home = getenv(given[i]);

        if (home && *home && snprintf(folder, size, "%s", home) < (int)size)
            return true;
    }
    while (path && *path) {
        size_t n = strcspn(path, ":");

        snprintf(file, sizeof(file), "%.*s/nvcc", (int)n, path);
        if (n && !access(file, X_OK) && realpath(file, real)) {
            *strrchr(real, '/') = 0;
            return snprintf(folder, size, "%s/..", real) < (int)size;
        }
        path += n + (path[n] == ':');
    }
    return false;
}

static bool version_of_json(const char *folder, char *version, size_t size)
{
    char path[PATH_MAX + 16];
    json_t *all;
    const char *text;

    snprintf(path, sizeof(path), "%s/version.json", folder);
    all = json_load_file(path, 0, NULL);
    text = fact_string(json_object_get(all, "cuda"), "version");
    if (text)
        snprintf(version, size, "%s", text);
    json_decref(all);
    return text != NULL;
}

/* "#define CUDA_VERSION 13000": 13.0 */
static bool version_of_header(const char *folder, char *version, size_t size)
{
    char path[PATH_MAX + 16], line[512];
    int number = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/include/cuda.h", folder);
    f = fopen(path, "re");
    while (f && !number && fgets(line, sizeof(line), f))
        if (sscanf(line, "#define CUDA_VERSION %9d", &number) != 1)
            number = 0;
    if (f)
        fclose(f);
    snprintf(version, size, "%d.%d", number / 1000, number % 1000 / 10);
    return number > 0;
}

static void find_toolkit(json_t *gpus)
{
    char folder[PATH_MAX], version[32];

    if (!toolkit_folder(folder, sizeof(folder)))
        fact_set_unknown(gpus, "toolkit_version", "no nvcc on the path, and no CUDA_HOME");
    else if (version_of_json(folder, version, sizeof(version)) ||
             version_of_header(folder, version, sizeof(version)))
        fact_set_text(gpus, "toolkit_version", version);
    else
        fact_set_unknown(gpus, "toolkit_version", "%s has neither version.json nor include/cuda.h",
                         folder);
}

void probe_cuda(struct probe *p, json_t *gpus)
{
    static const char why[] = "CUDA cannot be asked about a recorded machine";
    json_t *cuda = fact_object(gpus, "cuda");

    if (p->tree.live) {
        find_toolkit(gpus);
        ask_module(gpus, cuda);
        return;
    }
    fact_set_unknown(gpus, "toolkit_version", "%s", why);
    fact_set_unknown(cuda, "works", "%s", why);
}

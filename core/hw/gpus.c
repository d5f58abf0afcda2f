/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU module and its devices, opened when they are first asked for: see gpu.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hw/gpu.h"
#include "core/module.h"

struct gpus {
    bool asked;                   /* the module was looked for */
    const struct gpu_ops *ops;    /* NULL: there is none that started */
    const struct gpu_ops *loaded; /* whether it started or not */
    char why[GPU_ERROR_BYTES];
    struct gpu **opened; /* count of them, NULL where not opened */
    unsigned count;
    const volatile int *cancel; /* see gpus_heed() */
};

static const struct module_kind kind = {
    .file = "plumb-cuda.so",
    .environment = "PLUMB_CUDA_MODULE",
    .what = "GPU module",
    .unbuilt =
        "for want of nvcc: install the CUDA toolkit or set CUDA_HOME, then make config && make",
    .symbol = GPU_MODULE_SYMBOL,
};

struct gpus *gpus_open(void)
{
    return calloc(1, sizeof(struct gpus));
}

void gpus_heed(struct gpus *gpus, const volatile int *cancel)
{
    gpus->cancel = cancel;
}

/* One that was closed had a silent device: that is the process's, too. */
static bool left_silent;

bool gpus_silent(const struct gpus *gpus)
{
    if (left_silent)
        return true;
    for (unsigned i = 0; i < gpus->count; i++)
        if (gpus->opened[i] && gpu_base(gpus->opened[i])->silent)
            return true;
    return false;
}

void gpus_close(struct gpus *gpus)
{
    if (!gpus)
        return;
    left_silent = gpus_silent(gpus);
    for (unsigned i = 0; i < gpus->count; i++)
        if (gpus->opened[i] && !gpus_silent(gpus)) { /* others may wait for a silent one, too */
            gpus->ops->close(gpus->opened[i]);
            gpus->opened[i] = NULL;
        }
    free(gpus->opened);
    free(gpus); /* the module stays mapped: the driver's threads may still run in it */
}

/* The same, built with an older toolkit, for drivers that the first is too new for. */
static const struct module_kind older = {
    .file = "plumb-cuda12.so",
    .environment = "PLUMB_CUDA_MODULE",
    .what = "GPU module of CUDA 12",
    .unbuilt = "for want of a CUDA 12 toolkit where it was built",
    .symbol = GPU_MODULE_SYMBOL,
};

static const struct gpu_ops *load_module(struct gpus *gpus, const struct module_kind *of)
{
    const struct gpu_ops *ops = module_open(of, gpus->why, sizeof(gpus->why));

    if (ops && ops->abi != GPU_MODULE_ABI) {
        snprintf(gpus->why, sizeof(gpus->why),
                 "the GPU module is of another version (interface %u, this program has %u): build "
                 "both from the same source, with make, or install both together",
                 ops->abi, GPU_MODULE_ABI);
        return NULL;
    }
    return ops;
}

/* Which process has started the driver, it or the one that it was forked from: a fact of the process, not of one `struct gpus`. */
static pid_t driver_of;

bool gpus_used(void)
{
    return driver_of != 0;
}

/* The driver answers CUDA_ERROR_NOT_INITIALIZED to every call in a child of a process that has started it. */
static bool is_forked(struct gpus *gpus)
{
    if (!driver_of || driver_of == getpid())
        return false;
    snprintf(gpus->why, sizeof(gpus->why),
             "this process was forked from one that had used a GPU, and cannot use any (CUDA): run "
             "this case by a command of its own");
    return true;
}

/* NULL, with both reasons, where neither starts. A module that was named is the only one. */
static const struct gpu_ops *start_older(struct gpus *gpus)
{
    const char *given = getenv(kind.environment);
    char too_new[GPU_ERROR_BYTES];

    if (given && *given)
        return NULL;
    snprintf(too_new, sizeof(too_new), "%s", gpus->why);
    const struct gpu_ops *ops = load_module(gpus, &older);
    if (ops) {
        gpus->loaded = ops;
        return ops->init(gpus->why, sizeof(gpus->why)) ? NULL : ops;
    }
    snprintf(gpus->why, sizeof(gpus->why), "%.200s, or put '%s' of a build with CUDA 12 beside it",
             too_new, older.file);
    return NULL;
}

static void start(struct gpus *gpus)
{
    const struct gpu_ops *ops = gpus->loaded = load_module(gpus, &kind);

    if (!ops || is_forked(gpus))
        return;
    int err = ops->init(gpus->why, sizeof(gpus->why));
    if (err == -ELIBBAD)
        ops = start_older(gpus);
    if (!ops || (err && err != -ELIBBAD))
        return;
    driver_of = getpid();
    gpus->count = ops->count();
    gpus->opened = calloc(gpus->count ? gpus->count : 1, sizeof(struct gpu *));
    if (gpus->opened)
        gpus->ops = ops;
    else
        snprintf(gpus->why, sizeof(gpus->why), "out of memory");
}

const struct gpu_ops *gpus_module(struct gpus *gpus, const char **why)
{
    if (!gpus->asked)
        start(gpus);
    gpus->asked = true;
    if (why)
        *why = gpus->why;
    return gpus->ops;
}

const char *gpus_origin(struct gpus *gpus)
{
    gpus_module(gpus, NULL);
    return gpus->loaded ? gpus->loaded->origin() : "measured";
}

unsigned gpus_count(struct gpus *gpus)
{
    return gpus_module(gpus, NULL) ? gpus->count : 0;
}

/* Where there are GPUs, a number that none of them has is a mistake of who asks. */
static int no_such(const struct gpus *gpus, unsigned index, char *error, size_t len)
{
    const char *name = gpus->ops->name;

    if (!gpus->count)
        snprintf(error, len, "there is no %s:%u: this machine shows no GPU", name, index);
    else if (gpus->count == 1)
        snprintf(error, len, "there is no %s:%u: there is 1 GPU: %s:0", name, index, name);
    else
        snprintf(error, len, "there is no %s:%u: there are %u GPUs: %s:0..%s:%u", name, index,
                 gpus->count, name, name, gpus->count - 1);
    return gpus->count ? -EINVAL : -ENODEV;
}

int gpus_get(struct gpus *gpus, unsigned index, struct gpu **gpu, char *error, size_t len)
{
    const char *why;
    const struct gpu_ops *ops = gpus_module(gpus, &why);

    *gpu = NULL;
    if (!ops) {
        snprintf(error, len, "%s", why);
        return -ENODEV;
    }
    if (index >= gpus->count)
        return no_such(gpus, index, error, len);
    struct gpu **slot = &gpus->opened[index];
    if (*slot && gpu_base(*slot)->silent) {
        snprintf(error, len, "not tried: %s:%u did not answer in a case before this one", ops->name,
                 index);
        return -EIO;
    }
    if (*slot && gpu_base(*slot)->lost) {
        ops->close(*slot);
        *slot = NULL;
    }
    int err = *slot ? 0 : ops->open(index, slot, error, len);
    *gpu = err ? NULL : *slot;
    if (*gpu) {
        gpu_base(*gpu)->cancel = gpus->cancel;
        gpu_base(*gpu)->expected_ns = 0;
    }
    return err;
}

void gpus_say_on(struct gpus *gpus, backend_say_fn *say, void *arg)
{
    const char *why = "out of memory";
    const struct gpu_ops *ops = gpus ? gpus_module(gpus, &why) : NULL;
    char name[32];

    if (!ops)
        say(arg, &(struct backend){.name = "cuda", .why = why});
    for (unsigned i = 0; ops && i < gpus->count; i++) {
        struct gpu_facts facts;
        int err = ops->facts(i, &facts);
        snprintf(name, sizeof(name), "%s:%u", ops->name, i);
        say(arg, &(struct backend){.name = name,
                                   .state = BACKEND_PRESENT,
                                   .what = err ? NULL : facts.name,
                                   .why = err ? "no answer" : NULL,
                                   .address = err ? NULL : facts.address,
                                   .simulated = !strcmp(ops->origin(), "simulated")});
    }
}

void gpus_say(backend_say_fn *say, void *arg)
{
    struct gpus *gpus = gpus_open();

    gpus_say_on(gpus, say, arg);
    gpus_close(gpus);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Timing by a GPU's own events, held until all is queued: see gpu.h. */
#include "core/hw/gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/backend.h"
#include "core/clock.h"
#include "core/hw/gpu_watch.h"
#include "core/row.h"

/* ---- The GPU module and its devices, opened when they are first asked for ---- */

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
    return xcalloc(1, sizeof(struct gpus));
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

/* Which process has started the driver, it or the one that it was forked from: a fact of the
 * process, not of one `struct gpus`. */
static pid_t driver_of;

bool gpus_used(void)
{
    return driver_of != 0;
}

/* The driver answers CUDA_ERROR_NOT_INITIALIZED to every call in a child of a process that has
 * started it. */
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
    gpus->opened = xcalloc(gpus->count, sizeof(struct gpu *));
    gpus->ops = ops;
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

/* The count as an exit status; lower ones are a program's own, as of one without memory. */
#define COUNT_FROM 16
#define COUNT_MOST (255 - COUNT_FROM)

unsigned gpus_count_apart(void)
{
    int status = 0;

    fflush(NULL); /* or the child would write it once more */
    pid_t child = fork();
    if (child == 0) {
        unsigned n = gpus_count(gpus_open());
        _exit(COUNT_FROM + (int)(n < COUNT_MOST ? n : COUNT_MOST));
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) > COUNT_FROM
               ? (unsigned)WEXITSTATUS(status) - COUNT_FROM
               : 0;
}

/* Where there are GPUs, a number that none of them has is a mistake of who asks. */
int gpus_no_such(const char *name, unsigned count, unsigned index, char *error, size_t len)
{
    if (!count)
        snprintf(error, len, "there is no %s:%u: this machine shows no GPU", name, index);
    else if (count == 1)
        snprintf(error, len, "there is no %s:%u: there is 1 GPU: %s:0", name, index, name);
    else
        snprintf(error, len, "there is no %s:%u: there are %u GPUs: %s:0..%s:%u", name, index,
                 count, name, name, count - 1);
    return count ? -EINVAL : -ENODEV;
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
        return gpus_no_such(ops->name, gpus->count, index, error, len);
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
    const char *why;
    const struct gpu_ops *ops = gpus_module(gpus, &why);
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

/* Below this, the host's wake-up after the wait is too large a share of what it measures. */
#define COMPARED_MIN_NS 2000000.0
#define COMPARED_RUNS   5 /* fewer may all have been disturbed */
#define AGREE_SHARE     0.02
#define WAKE_UP_NS      30000.0

int gpu_aside_open(struct gpu *gpu, struct gpu_stream **stream)
{
    struct gpu_base *base = gpu_base(gpu);
    int err = base->aside ? 0 : base->ops->stream_open(gpu, &base->aside);

    base->asides += !err;
    *stream = err ? NULL : base->aside;
    return err;
}

void gpu_aside_close(struct gpu *gpu)
{
    struct gpu_base *base = gpu_base(gpu);

    if (--base->asides)
        return;
    base->ops->stream_close(base->aside);
    base->aside = NULL;
}

void gpu_tell_connections(char *text, size_t len)
{
    const char *set = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

    if (set && *set)
        evidence_add(text, len, "CUDA_DEVICE_MAX_CONNECTIONS=%.8s", set);
}

int gpu_timer_open(struct gpu_timer *t, struct gpu *gpu, struct gpu_watch *watch)
{
    const struct gpu_ops *ops = gpu_ops(gpu);
    int err;

    *t = (struct gpu_timer){.gpu = gpu, .watch = watch};
    if ((err = ops->stream_open(gpu, &t->stream)) || (err = ops->event_open(gpu, &t->begin)) ||
        (err = ops->event_open(gpu, &t->end)))
        gpu_timer_close(t);
    return err;
}

void gpu_timer_close(struct gpu_timer *t)
{
    if (t->end)
        gpu_ops(t->gpu)->event_close(t->end);
    if (t->begin)
        gpu_ops(t->gpu)->event_close(t->begin);
    if (t->stream)
        gpu_ops(t->gpu)->stream_close(t->stream);
    *t = (struct gpu_timer){0};
}

/* While the device works: a look at its clocks. Returns whether there was one, since it may outlast
 * the work, and the host's clock then says nothing. */
static bool look(struct gpu_timer *t)
{
    return t->watch && gpu_watch_look(t->watch);
}

/* A busy host wakes up late, now and then by much: the least excess of all runs is what the clocks
 * themselves differ by. */
void gpu_timer_compare(struct gpu_timer *t, double device_ns, double host_ns)
{
    if (device_ns < COMPARED_MIN_NS)
        return;
    if (!t->compared || host_ns * t->device_ns < t->host_ns * device_ns) {
        t->device_ns = device_ns;
        t->host_ns = host_ns;
    }
    t->compared++;
}

static int run_part(struct gpu_timer *t, gpu_queue_fn *queue, void *arg, uint64_t first, uint64_t n,
                    double *ns)
{
    const struct gpu_ops *ops = gpu_ops(t->gpu);
    int err = ops->hold(t->stream);

    if (err)
        return err;
    err = ops->event_record(t->begin, t->stream);
    for (uint64_t i = first; !err && i < first + n; i++)
        err = queue(arg, t->stream, i);
    err = err ? err : ops->event_record(t->end, t->stream);
    uint64_t begin_ns = clock_now_ns();
    int released = ops->release(t->stream); /* also after an error: nothing may wait for ever */
    bool looked = !err && look(t);
    int waited = ops->stream_wait(t->stream);
    double host_ns = (double)(clock_now_ns() - begin_ns);

    err = err ? err : released ? released : waited;
    if (!err)
        err = ops->event_elapsed(t->begin, t->end, ns);
    if (!err && !looked)
        gpu_timer_compare(t, *ns, host_ns);
    return err;
}

int gpu_timer_run(struct gpu_timer *t, gpu_queue_fn *queue, void *arg, uint64_t n, unsigned each,
                  uint64_t *ns)
{
    uint64_t most = (GPU_HELD_MAX - 2) / (each ? each : 1); /* two events */
    double sum = 0, part = 0;
    int err = most ? 0 : -EINVAL;

    for (uint64_t first = 0; !err && first < n; first += most) {
        err = run_part(t, queue, arg, first, n - first < most ? n - first : most, &part);
        sum += part;
    }
    *ns = sum < 1 ? 1 : (uint64_t)(sum + 0.5);
    return err;
}

const char *gpu_timer_disagreement(const struct gpu_timer *t, char *text, size_t len)
{
    double less_ns = t->host_ns - t->device_ns;

    text[0] = 0;
    if (t->compared >= COMPARED_RUNS && less_ns > AGREE_SHARE * t->host_ns + WAKE_UP_NS)
        snprintf(text, len,
                 "the GPU's events show %.3g %% less time than the host's clock: one of the two is "
                 "wrong, or the GPU is shared",
                 100 * less_ns / t->host_ns);
    else if (t->compared && -less_ns > AGREE_SHARE * t->host_ns)
        snprintf(text, len,
                 "the GPU's events show %.3g %% more time than passed by the host's clock: do not "
                 "trust them here",
                 -100 * less_ns / t->host_ns);
    return text;
}

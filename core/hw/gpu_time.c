/* SPDX-License-Identifier: Apache-2.0 */
/* Timing by a GPU's own events, held until all is queued: see gpu_time.h. */
#include "core/hw/gpu_time.h"

#include <errno.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/hw/gpu_watch.h"

/* Below this, the host's wake-up after the wait is too large a share of what it measures. */
#define COMPARED_MIN_NS 2000000.0
#define COMPARED_RUNS   5 /* fewer may all have been disturbed */
#define AGREE_SHARE     0.02
#define WAKE_UP_NS      30000.0

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

static int queue_part(struct gpu_timer *t, gpu_queue_fn *queue, void *arg, uint64_t first,
                      uint64_t n)
{
    const struct gpu_ops *ops = gpu_ops(t->gpu);
    int err = ops->event_record(t->begin, t->stream);

    for (uint64_t i = first; !err && i < first + n; i++)
        err = queue(arg, t->stream, i);
    return err ? err : ops->event_record(t->end, t->stream);
}

static int run_part(struct gpu_timer *t, gpu_queue_fn *queue, void *arg, uint64_t first, uint64_t n,
                    double *ns)
{
    const struct gpu_ops *ops = gpu_ops(t->gpu);
    int err = ops->hold(t->stream);

    if (err)
        return err;
    err = queue_part(t, queue, arg, first, n);
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

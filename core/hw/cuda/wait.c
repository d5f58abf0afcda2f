/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a device that may never answer. */
#include <errno.h>
#include <time.h>

#include "core/clock.h"
#include "core/hw/cuda/gpu_cuda.h"

/* As the driver's own wait does, it asks without a pause: whoever times a wait sees its end at once.
 * After so long a pause is nothing beside what was waited. */
#define EAGER_NS 1000000000u
#define PAUSE_NS 100000

static uint64_t patience_ns(const struct gpu_base *base)
{
    uint64_t least_ns = base->patience_ns ? base->patience_ns : GPU_PATIENCE_NS;

    return least_ns + base->expected_ns + GPU_PATIENCE_TIMES * base->longest_ns;
}

static bool is_cancelled(const struct gpu_base *base)
{
    return base->cancel && *base->cancel;
}

static int give_up(struct gpu *gpu, uint64_t waited_ns, bool cancelled)
{
    gpu->base.lost = gpu->base.silent = true;
    return cuda_error(gpu, -ETIMEDOUT, "%sGPU %u at %s has not answered for %.3g s%s",
                      cancelled ? "interrupted: " : "", gpu->base.index, gpu->base.facts.address,
                      (double)waited_ns * 1e-9,
                      cancelled ? "" : ": dmesg | grep -i xid may say why");
}

int cuda_wait(struct gpu *gpu, cuda_query_fn *query, void *arg)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t begin_ns = clock_now_ns(), cancelled_ns = 0, waited_ns = 0;
    int err;

    while ((err = query(arg)) == -EAGAIN) {
        waited_ns = clock_now_ns() - begin_ns;
        if (!cancelled_ns && is_cancelled(&gpu->base))
            cancelled_ns = begin_ns + waited_ns;
        if (cancelled_ns && begin_ns + waited_ns - cancelled_ns > GPU_CANCEL_NS)
            return give_up(gpu, waited_ns, true);
        if (waited_ns > patience_ns(&gpu->base))
            return give_up(gpu, waited_ns, false);
        if (waited_ns > EAGER_NS)
            nanosleep(&pause, NULL);
    }
    if (waited_ns > gpu->base.longest_ns)
        gpu->base.longest_ns = waited_ns;
    return err;
}

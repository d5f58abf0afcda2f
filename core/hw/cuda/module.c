/* SPDX-License-Identifier: Apache-2.0 */
/* The module's one symbol: the table of operations, over the CUDA driver. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "core/hw/cuda/gpu_cuda.h"
#include "core/hw/gpu.h"

/* There without gemm.c too, which is left out where cublasLt.h is not found: NULL then. */
extern const struct gpu_gemm_ops cuda_gemm_ops __attribute__((weak, visibility("hidden")));

/* A table of functions has no other place for what init found. */
static struct cuda_state the_state;

struct cuda_state *cuda_state(void)
{
    return &the_state;
}

static int init(char *error, size_t len)
{
    struct cuda_state *state = cuda_state();
    int count = 0, err = state->count ? 0 : cuda_driver_open(&state->driver, error, len);
    char text[160];

    if (err || state->count)
        return err;
    CUresult result = state->driver.cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS || count < 1) {
        snprintf(error, len, "cuDeviceGetCount: %s",
                 result ? cuda_error_text(&state->driver, result, text, sizeof(text))
                        : "the driver shows no GPU: nvidia-smi -L");
        return -ENODEV;
    }
    state->count = count < CUDA_GPUS_MAX ? (unsigned)count : CUDA_GPUS_MAX;
    return 0;
}

/* Asked anew each time: cuBLASLt is opened later than the driver. */
static const char *origin(void)
{
    const struct cuda_state *state = cuda_state();

    if ((state->driver.library && dlsym(state->driver.library, "plumb_simulated")) ||
        (state->gemm_library && dlsym(state->gemm_library, "plumb_simulated")))
        return "simulated";
    return "measured";
}

static unsigned count(void)
{
    return cuda_state()->count;
}

__attribute__((visibility("default"))) const struct gpu_ops plumb_gpu_module = {
    .name = "cuda",
    .abi = GPU_MODULE_ABI,
    .init = init,
    .origin = origin,
    .count = count,
    .facts = cuda_facts,
    .link = cuda_link,
    .open = cuda_open,
    .close = cuda_close,
    .free_bytes = cuda_free_bytes,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .stream_open = cuda_stream_open,
    .stream_close = cuda_stream_close,
    .stream_wait = cuda_stream_wait,
    .stream_sync = cuda_stream_sync,
    .stream_query = cuda_stream_query,
    .stream_after = cuda_stream_after,
    .stream_native = cuda_stream_native,
    .hold = cuda_hold,
    .release = cuda_release,
    .event_open = cuda_event_open,
    .event_close = cuda_event_close,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_sync = cuda_event_sync,
    .event_query = cuda_event_query,
    .event_elapsed = cuda_event_elapsed,
    .copy = cuda_copy,
    .set = cuda_set,
    .prefetch = cuda_prefetch,
    .kernel = cuda_kernel,
    .occupancy = cuda_occupancy,
    .launch = cuda_launch,
    .peer = cuda_peer,
    .graph_begin = cuda_graph_begin,
    .graph_end = cuda_graph_end,
    .graph_launch = cuda_graph_launch,
    .graph_close = cuda_graph_close,
    .driver_call = cuda_driver_call,
    .alloc_ordered = cuda_alloc_ordered,
    .free_ordered = cuda_free_ordered,
    .export_memory = cuda_export,
    .flush_writes = cuda_flush_writes,
    .gemm = &cuda_gemm_ops,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* Primary contexts: retained, released, reset; peers; waiting for all of a device. */
#include "tests/sim/sim.h"

#include <string.h>

static void free_streams(struct sim *sim, unsigned gpu)
{
    struct sim_stream *stream = sim->streams, *next;

    for (; stream; stream = next) {
        next = stream->next;
        if (stream->gpu == gpu)
            sim_stream_free(sim, stream);
    }
}

static void free_events(struct sim *sim, unsigned gpu)
{
    struct sim_event_object **at = &sim->events, *event;

    while ((event = *at)) {
        if (event->gpu != gpu) {
            at = &event->next;
            continue;
        }
        *at = event->next;
        sim_event_drop(event);
    }
}

/* Memory by handles is no context's: it outlives a reset. */
static void free_blocks(struct sim *sim, unsigned gpu)
{
    for (size_t i = sim->space.count; i--;)
        if (sim->space.blocks[i].gpu == gpu && !sim->space.blocks[i].by_handle)
            sim_space_give_back(sim, &sim->space.blocks[i]);
}

static void clear(struct sim *sim, struct sim_device *device)
{
    free_streams(sim, device->index);
    free_events(sim, device->index);
    free_blocks(sim, device->index);
    sim_modules_free(device);
    memset(device->peer, 0, sizeof(device->peer));
    memset(device->touched, 0, sizeof(device->touched));
    device->error = device->lost ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
    device->active = false;
}

static CUresult of_number(struct sim *sim, CUdevice number, struct sim_device **device)
{
    if (number < 0 || number >= (int)sim->machine.gpus)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = &sim->device[number];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice number)
{
    struct sim_device *device = NULL;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuDevicePrimaryCtxRetain");

    rc = rc ? rc : of_number(sim, number, &device);
    if (!rc && device->lost)
        rc = CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (!rc) {
        device->retained++;
        device->active = true;
        *context = (CUcontext)device;
    }
    return sim_leave(sim, rc);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice number)
{
    struct sim_device *device = NULL;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuDevicePrimaryCtxRelease");

    rc = rc ? rc : of_number(sim, number, &device);
    if (!rc && !device->retained)
        rc = CUDA_ERROR_INVALID_CONTEXT;
    if (!rc && !--device->retained)
        clear(sim, device);
    return sim_leave(sim, rc);
}

CUresult cuDevicePrimaryCtxReset(CUdevice number)
{
    struct sim_device *device = NULL;
    struct sim *sim;
    CUresult rc = sim_enter(&sim, "cuDevicePrimaryCtxReset");

    rc = rc ? rc : of_number(sim, number, &device);
    if (!rc)
        clear(sim, device);
    return sim_leave(sim, rc);
}

CUresult cuCtxSynchronize(void)
{
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuCtxSynchronize");

    if (!rc && sim_capturing(sim))
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return sim_leave(sim, rc ? rc : sim_wait_device(sim, device->index));
}

static CUresult peer_of(struct sim *sim, const struct sim_device *device, CUcontext context,
                        unsigned *peer)
{
    struct sim_device *other = (struct sim_device *)context;

    if (other < sim->device || other >= sim->device + SIM_GPUS || other == device)
        return CUDA_ERROR_INVALID_CONTEXT;
    *peer = other->index;
    return other->active ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags)
{
    struct sim_device *device;
    struct sim *sim;
    unsigned peer = 0;
    CUresult rc = sim_enter_device(&sim, &device, "cuCtxEnablePeerAccess");

    rc = rc ? rc : peer_of(sim, device, context, &peer);
    if (!rc && flags)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc &&
        (sim_link(&sim->machine, device->index, peer)->kind == SIM_NO_LINK ||
         sim_fault_strikes(&sim->machine, SIM_PEER_REFUSED,
                           (struct sim_event){.gpu = (int)device->index, .peer = (int)peer})))
        rc = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (!rc && device->peer[peer])
        rc = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (!rc)
        device->peer[peer] = true;
    return sim_leave(sim, rc);
}

CUresult cuCtxDisablePeerAccess(CUcontext context)
{
    struct sim_device *device;
    struct sim *sim;
    unsigned peer = 0;
    CUresult rc = sim_enter_device(&sim, &device, "cuCtxDisablePeerAccess");

    rc = rc ? rc : peer_of(sim, device, context, &peer);
    if (!rc && !device->peer[peer])
        rc = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    if (!rc)
        device->peer[peer] = false;
    return sim_leave(sim, rc);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events. */
#include "tests/sim/sim.h"

#include <stdlib.h>

CUresult sim_stream_of(struct sim *sim, const struct sim_device *device, CUstream handle,
                       struct sim_stream **stream)
{
    for (struct sim_stream *s = sim->streams; s; s = s->next)
        if (s == (struct sim_stream *)handle && !s->closed) {
            *stream = s;
            return s->gpu == device->index ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
        }
    return CUDA_ERROR_INVALID_HANDLE;
}

static void keep(struct sim_graph *graph, struct sim_op *op)
{
    if (graph->first)
        graph->last->next = op;
    else
        graph->first = op;
    graph->last = op;
}

/* Puts a copy of the operation into the stream, or into the graph that is being made of it. */
CUresult sim_submit(struct sim *sim, struct sim_stream *stream, const struct sim_op *op)
{
    struct sim_op *mine;
    CUresult rc = stream->capture ? CUDA_SUCCESS : sim_wait_room(sim, stream);

    if (rc)
        return rc;
    mine = malloc(sizeof(*mine));
    if (!mine)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *mine = *op;
    mine->gpu = stream->gpu;
    mine->next = NULL;
    if (stream->capture)
        keep(stream->capture, mine);
    else
        sim_queue(sim, stream, mine);
    return CUDA_SUCCESS;
}

bool sim_capturing(const struct sim *sim)
{
    for (const struct sim_stream *s = sim->streams; s; s = s->next)
        if (s->capture && s->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
            return true;
    return false;
}

CUresult cuStreamCreate(CUstream *handle, unsigned flags)
{
    struct sim_stream *stream = NULL;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuStreamCreate");

    if (!rc && flags > CU_STREAM_NON_BLOCKING)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && !(stream = calloc(1, sizeof(*stream))))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc) {
        stream->id = ++sim->stream_ids;
        stream->gpu = device->index;
        stream->next = sim->streams;
        sim->streams = stream;
        *handle = (CUstream)stream;
    }
    return sim_leave(sim, rc);
}

/* What is queued is still done. */
CUresult cuStreamDestroy(CUstream handle)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuStreamDestroy");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (!rc) {
        stream->closed = true;
        if (!stream->first)
            sim_stream_free(sim, stream);
    }
    return sim_leave(sim, rc);
}

static CUresult about_stream(struct sim **sim, CUstream handle, const char *call,
                             struct sim_stream **stream)
{
    struct sim_device *device;
    CUresult rc = sim_enter_device(sim, &device, call);

    rc = rc ? rc : sim_stream_of(*sim, device, handle, stream);
    if (!rc && (*stream)->capture) {
        (*stream)->capture_bad = true;
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return rc;
}

CUresult cuStreamSynchronize(CUstream handle)
{
    struct sim_stream *stream;
    struct sim *sim;
    CUresult rc = about_stream(&sim, handle, "cuStreamSynchronize", &stream);

    return sim_leave(sim, rc ? rc : sim_wait(sim, stream->id, stream->queued_seq));
}

CUresult cuStreamQuery(CUstream handle)
{
    struct sim_stream *stream;
    struct sim *sim;
    CUresult rc = about_stream(&sim, handle, "cuStreamQuery", &stream);

    return sim_leave(sim, rc ? rc : sim_query(sim, stream->id, stream->queued_seq));
}

CUresult cuEventCreate(CUevent *handle, unsigned flags)
{
    struct sim_event_object *event = NULL;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuEventCreate");

    if (!rc && flags > (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && !(event = calloc(1, sizeof(*event))))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc) {
        event->gpu = device->index;
        event->refs = 1;
        event->timing = !(flags & CU_EVENT_DISABLE_TIMING);
        event->next = sim->events;
        sim->events = event;
        *handle = (CUevent)event;
    }
    return sim_leave(sim, rc);
}

static CUresult event_of(struct sim *sim, CUevent handle, struct sim_event_object **event)
{
    for (*event = sim->events; *event; *event = (*event)->next)
        if (*event == (struct sim_event_object *)handle)
            return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventDestroy(CUevent handle)
{
    struct sim_event_object **at, *event;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuEventDestroy");

    rc = rc ? rc : event_of(sim, handle, &event);
    if (!rc) {
        for (at = &sim->events; *at != event; at = &(*at)->next)
            ;
        *at = event->next;
        sim_event_drop(event);
    }
    return sim_leave(sim, rc);
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle)
{
    struct sim_op op = {.kind = SIM_OP_RECORD};
    struct sim_event_object *event;
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuEventRecord");

    rc = rc ? rc : event_of(sim, handle, &event);
    rc = rc ? rc : sim_stream_of(sim, device, stream_handle, &stream);
    if (!rc && event->gpu != stream->gpu)
        rc = CUDA_ERROR_INVALID_HANDLE;
    if (rc)
        return sim_leave(sim, rc);
    event->captured = stream->capture != NULL;
    if (event->captured)
        return sim_leave(sim, CUDA_SUCCESS); /* an edge within the graph, and so none */
    op.record.event = event;
    op.record.generation = event->generation + 1;
    rc = sim_submit(sim, stream, &op);
    if (!rc) {
        event->generation++;
        event->refs++;
        event->recorded = true;
        event->done = false;
        event->stream = stream->id;
        event->seq = stream->queued_seq;
    }
    return sim_leave(sim, rc);
}

static CUresult about_event(struct sim **sim, CUevent handle, const char *call,
                            struct sim_event_object **event)
{
    struct sim_device *device;
    CUresult rc = sim_enter_device(sim, &device, call);

    rc = rc ? rc : event_of(*sim, handle, event);
    return rc ? rc : (*event)->captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* One that was never recorded counts as reached. */
CUresult cuEventSynchronize(CUevent handle)
{
    struct sim_event_object *event;
    struct sim *sim;
    CUresult rc = about_event(&sim, handle, "cuEventSynchronize", &event);

    if (!rc && event->recorded)
        rc = sim_wait(sim, event->stream, event->seq);
    return sim_leave(sim, rc);
}

CUresult cuEventQuery(CUevent handle)
{
    struct sim_event_object *event;
    struct sim *sim;
    CUresult rc = about_event(&sim, handle, "cuEventQuery", &event);

    if (!rc && event->recorded)
        rc = sim_query(sim, event->stream, event->seq);
    return sim_leave(sim, rc);
}

CUresult cuEventElapsedTime(float *ms, CUevent from_handle, CUevent to_handle)
{
    struct sim_event_object *from, *to;
    struct sim *sim;
    CUresult rc = about_event(&sim, from_handle, "cuEventElapsedTime", &from);

    rc = rc ? rc : event_of(sim, to_handle, &to);
    if (!rc &&
        (!from->recorded || !to->recorded || !from->timing || !to->timing || from->gpu != to->gpu))
        rc = CUDA_ERROR_INVALID_HANDLE;
    rc = rc ? rc : sim_query(sim, from->stream, from->seq);
    rc = rc ? rc : sim_query(sim, to->stream, to->seq);
    if (!rc)
        *ms = (float)((to->at_ns - from->at_ns) / 1e6);
    return sim_leave(sim, rc);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags)
{
    struct sim_op op = {.kind = SIM_OP_AFTER};
    struct sim_event_object *event;
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuStreamWaitEvent");

    rc = rc ? rc : event_of(sim, event_handle, &event);
    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (!rc && flags)
        rc = CUDA_ERROR_INVALID_VALUE;
    if (!rc && (stream->capture || event->captured))
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (rc || !event->recorded)
        return sim_leave(sim, rc);
    op.after.stream = event->stream;
    op.after.seq = event->seq;
    return sim_leave(sim, sim_submit(sim, stream, &op));
}

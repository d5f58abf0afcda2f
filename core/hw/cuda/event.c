/* SPDX-License-Identifier: Apache-2.0 */
/* Events and graphs. */
#include <errno.h>
#include <stdlib.h>

#include "core/hw/cuda/gpu_cuda.h"

int cuda_event_open(struct gpu *gpu, struct gpu_event **out)
{
    struct gpu_event *event;
    int err = cuda_enter(gpu);

    *out = NULL;
    if (err)
        return err;
    event = calloc(1, sizeof(*event));
    if (!event)
        return cuda_error(gpu, -ENOMEM, "out of host memory");
    event->gpu = gpu;
    err = CUDA(gpu, cuEventCreate, &event->event, CU_EVENT_DEFAULT);
    if (err)
        free(event);
    else
        *out = event;
    return err;
}

void cuda_event_close(struct gpu_event *event)
{
    if (!event)
        return;
    if (cuda_enter_quietly(event->gpu))
        event->gpu->driver->cuEventDestroy(event->event);
    free(event);
}

int cuda_event_record(struct gpu_event *event, struct gpu_stream *stream)
{
    int err = cuda_enter(event->gpu);

    return err ? err : CUDA(event->gpu, cuEventRecord, event->event, stream->stream);
}

static int query(void *arg)
{
    struct gpu_event *event = arg;

    return CUDA(event->gpu, cuEventQuery, event->event);
}

int cuda_event_wait(struct gpu_event *event)
{
    int err = cuda_enter(event->gpu);

    return err ? err : cuda_wait(event->gpu, query, event);
}

int cuda_event_sync(struct gpu_event *event)
{
    int err = cuda_enter(event->gpu);

    return err ? err : CUDA(event->gpu, cuEventSynchronize, event->event);
}

int cuda_event_query(struct gpu_event *event)
{
    int err = cuda_enter(event->gpu);

    return err ? err : CUDA(event->gpu, cuEventQuery, event->event);
}

int cuda_event_elapsed(struct gpu_event *from, struct gpu_event *to, double *ns)
{
    float ms = 0;
    int err = cuda_enter(from->gpu);

    *ns = 0;
    if (!err)
        err = CUDA(from->gpu, cuEventElapsedTime, &ms, from->event, to->event);
    if (err == -EAGAIN)
        return cuda_error(from->gpu, -EAGAIN,
                          "the events were not reached yet: wait for them first");
    *ns = (double)ms * 1e6;
    return err;
}

int cuda_graph_begin(struct gpu_stream *stream)
{
    int err = cuda_enter(stream->gpu);

    /* Only this thread's calls are watched for what a graph cannot hold. */
    return err ? err
               : CUDA(stream->gpu, cuStreamBeginCapture, stream->stream,
                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

int cuda_graph_end(struct gpu_stream *stream, struct gpu_graph **out)
{
    struct gpu *gpu = stream->gpu;
    struct gpu_graph *graph = calloc(1, sizeof(*graph));
    int err = cuda_enter(gpu);

    *out = NULL;
    if (!graph)
        return cuda_error(gpu, -ENOMEM, "out of host memory");
    graph->gpu = gpu;
    if (!err)
        err = CUDA(gpu, cuStreamEndCapture, stream->stream, &graph->graph);
    if (!err)
        err = CUDA(gpu, cuGraphInstantiateWithFlags, &graph->exec, graph->graph, 0);
    if (err)
        cuda_graph_close(graph);
    else
        *out = graph;
    return err;
}

int cuda_graph_launch(struct gpu_stream *stream, struct gpu_graph *graph)
{
    int err = cuda_enter(stream->gpu);

    return err ? err : CUDA(stream->gpu, cuGraphLaunch, graph->exec, stream->stream);
}

void cuda_graph_close(struct gpu_graph *graph)
{
    if (!graph)
        return;
    if (cuda_enter_quietly(graph->gpu)) {
        if (graph->exec)
            graph->gpu->driver->cuGraphExecDestroy(graph->exec);
        if (graph->graph)
            graph->gpu->driver->cuGraphDestroy(graph->graph);
    }
    free(graph);
}

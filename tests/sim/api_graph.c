/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs made by capturing one stream. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <string.h>

static void graph_free(struct sim_graph *graph)
{
    while (graph->first) {
        struct sim_op *op = graph->first;

        graph->first = op->next;
        sim_op_free(op);
    }
    graph->magic = 0;
    free(graph);
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuStreamBeginCapture");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (!rc && stream->capture)
        rc = CUDA_ERROR_ILLEGAL_STATE;
    if (!rc && !(stream->capture = calloc(1, sizeof(*stream->capture))))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc) {
        stream->capture->magic = SIM_GRAPH_MAGIC;
        stream->capture->gpu = device->index;
        stream->capture_mode = mode;
        stream->capture_bad = false;
    }
    return sim_leave(sim, rc);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuStreamEndCapture");

    *graph = NULL;
    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    if (!rc && !stream->capture)
        rc = CUDA_ERROR_ILLEGAL_STATE;
    if (rc)
        return sim_leave(sim, rc);
    if (stream->capture_bad) {
        graph_free(stream->capture);
        rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        *graph = (CUgraph)stream->capture;
    }
    stream->capture = NULL;
    return sim_leave(sim, rc);
}

static struct sim_op *node_of(const struct sim_op *op)
{
    struct sim_op *mine = malloc(sizeof(*mine));

    if (mine) {
        *mine = *op;
        mine->next = NULL;
        mine->in_graph = true;
    }
    return mine;
}

static CUresult graph_of(void *handle, struct sim_graph **graph)
{
    *graph = handle;
    return handle && (*graph)->magic == SIM_GRAPH_MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph handle, unsigned long long flags)
{
    struct sim_graph *graph, *copy = NULL;
    struct sim_device *device;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuGraphInstantiateWithFlags");

    (void)flags;
    *exec = NULL;
    rc = rc ? rc : graph_of(handle, &graph);
    if (!rc && !(copy = calloc(1, sizeof(*copy))))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc)
        return sim_leave(sim, rc);
    copy->magic = SIM_GRAPH_MAGIC;
    copy->gpu = graph->gpu;
    for (const struct sim_op *op = graph->first; op; op = op->next) {
        struct sim_op *mine = node_of(op);

        if (!mine) {
            graph_free(copy);
            return sim_leave(sim, CUDA_ERROR_OUT_OF_MEMORY);
        }
        if (copy->first)
            copy->last->next = mine;
        else
            copy->first = mine;
        copy->last = mine;
    }
    *exec = (CUgraphExec)copy;
    return sim_leave(sim, rc);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    struct sim_stream *stream;
    struct sim_device *device;
    struct sim_graph *graph;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, "cuGraphLaunch");

    rc = rc ? rc : sim_stream_of(sim, device, handle, &stream);
    rc = rc ? rc : graph_of(exec, &graph);
    if (!rc && stream->capture)
        rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (const struct sim_op *op = rc ? NULL : graph->first; op && !rc; op = op->next)
        rc = sim_submit(sim, stream, op);
    return sim_leave(sim, rc);
}

static CUresult destroy(void *handle, const char *call)
{
    struct sim_device *device;
    struct sim_graph *graph;
    struct sim *sim;
    CUresult rc = sim_enter_device(&sim, &device, call);

    rc = rc ? rc : graph_of(handle, &graph);
    if (!rc)
        graph_free(graph);
    return sim_leave(sim, rc);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return destroy(exec, "cuGraphExecDestroy");
}

CUresult cuGraphDestroy(CUgraph graph)
{
    return destroy(graph, "cuGraphDestroy");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of calls to a GPU: see gpu_launch.h. */
#include "benches/launch/gpu_launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/hw/gpu_kernels.h"

#define FILL_BLOCK 256
#define FILL_GRID  (LAUNCH_WORDS / FILL_BLOCK)

static int drain(struct launch *l)
{
    l->queued = 0;
    return gpu_ops(l->gpu)->stream_wait(l->stream);
}

static int enqueue(struct launch *l)
{
    struct gpu_empty_args args = {0};

    return gpu_ops(l->gpu)->launch(l->stream, l->empty, 1, 32, &args);
}

static int enqueue_and_wait(struct launch *l)
{
    int err = enqueue(l);

    return err ? err : gpu_ops(l->gpu)->stream_sync(l->stream);
}

static int enqueue_graph(struct launch *l)
{
    return gpu_ops(l->gpu)->graph_launch(l->stream, l->graph);
}

static int enqueue_graph_and_wait(struct launch *l)
{
    int err = enqueue_graph(l);

    return err ? err : gpu_ops(l->gpu)->stream_sync(l->stream);
}

static int wait_idle(struct launch *l)
{
    return gpu_ops(l->gpu)->stream_sync(l->stream);
}

static int record_and_wait(struct launch *l)
{
    int err = gpu_ops(l->gpu)->event_record(l->event, l->stream);

    return err ? err : gpu_ops(l->gpu)->event_sync(l->event);
}

static int query_event(struct launch *l)
{
    return gpu_ops(l->gpu)->event_query(l->event);
}

static int alloc_kind(struct launch *l, enum gpu_memory kind)
{
    void *at = NULL;
    int err = gpu_ops(l->gpu)->alloc(l->gpu, kind, l->bytes, &at);

    if (!err)
        gpu_ops(l->gpu)->free(l->gpu, kind, at);
    return err;
}

static int alloc_device(struct launch *l)
{
    return alloc_kind(l, GPU_DEVICE);
}

static int alloc_pinned(struct launch *l)
{
    return alloc_kind(l, GPU_PINNED);
}

static int alloc_ordered(struct launch *l)
{
    void *at = NULL;
    int err = gpu_ops(l->gpu)->alloc_ordered(l->stream, l->bytes, &at);

    return err ? err : gpu_ops(l->gpu)->free_ordered(l->stream, at);
}

static int ask_driver(struct launch *l)
{
    return gpu_ops(l->gpu)->driver_call(l->gpu);
}

static int copy_word(struct launch *l)
{
    int err = gpu_ops(l->gpu)->copy(l->stream, l->device, l->host, sizeof(*l->host));

    return err ? err : gpu_ops(l->gpu)->stream_sync(l->stream);
}

static int rest_queue(struct launch *l)
{
    return ++l->queued < GPU_HELD_MAX ? 0 : drain(l);
}

static int rest_ordered(struct launch *l)
{
    l->queued += 2; /* taken, and given back */
    return l->queued < GPU_HELD_MAX ? 0 : drain(l);
}

static int rest_graph(struct launch *l)
{
    l->queued += l->nodes;
    return l->queued < GPU_HELD_MAX ? 0 : drain(l);
}

/* The next word is another one: what is found at the end is the last copy's. */
static int rest_copy(struct launch *l)
{
    l->host[0] = gpu_hash(l->count, 0);
    return 0;
}

/* A graph of n kernels: the empty one, or, once, the one that fills. */
static int make_graph(struct launch *l, uint64_t n, const struct gpu_fill_args *fill,
                      struct gpu_graph **graph)
{
    const struct gpu_ops *ops = gpu_ops(l->gpu);
    int err = ops->graph_begin(l->stream);

    if (err)
        return err;
    if (fill)
        err = ops->launch(l->stream, l->fill, FILL_GRID, FILL_BLOCK, fill);
    for (uint64_t i = 0; !err && !fill && i < n; i++)
        err = enqueue(l);
    int ended = ops->graph_end(l->stream, graph); /* also after an error: capturing must end */
    return err ? err : ended;
}

static int prepare_graph(struct launch *l)
{
    return make_graph(l, l->nodes, NULL, &l->graph);
}

/* What is left of the pool is given back at each wait, and the next one would take it anew. */
static int prepare_ordered(struct launch *l)
{
    return gpu_ops(l->gpu)->alloc_ordered(l->stream, l->bytes, &l->kept);
}

static int check_copy(struct launch *l, char *what, size_t len)
{
    const struct gpu_ops *ops = gpu_ops(l->gpu);
    uint64_t sent = gpu_hash(l->count - 1, 0);
    int err = ops->copy(l->stream, l->host, l->device, sizeof(*l->host));

    if (!err)
        err = drain(l);
    if (!err && l->count > 1 && l->host[0] != sent) {
        snprintf(what, len, "wrong data: the last 8 bytes sent are not what the GPU has");
        err = -EBADMSG;
    }
    return err;
}

static const struct launch_op launch_ops[] = {
    {.name = "launch",
     .help = "launch an empty kernel: until the call returns",
     .once = enqueue,
     .rest = rest_queue},
    {.name = "launch-complete",
     .help = "the same, and wait until it has run",
     .once = enqueue_and_wait},
    {.name = "launch-rate",
     .help = "many in a row and the wait for the last, per kernel",
     .flags = LAUNCH_MANY,
     .once = enqueue},
    {.name = "graph",
     .help = "launch a graph of --nodes empty kernels",
     .flags = LAUNCH_NODES,
     .once = enqueue_graph,
     .rest = rest_graph,
     .prepare = prepare_graph},
    {.name = "graph-complete",
     .help = "the same, and wait until it has run",
     .flags = LAUNCH_NODES,
     .once = enqueue_graph_and_wait,
     .prepare = prepare_graph},
    {.name = "stream-sync", .help = "wait for a stream that is idle", .once = wait_idle},
    {.name = "event",
     .help = "record an event in an idle stream and wait for it",
     .once = record_and_wait},
    {.name = "event-query",
     .help = "ask whether an event was reached that was",
     .once = query_event},
    {.name = "alloc",
     .help = "take --size bytes of device memory and give them back",
     .flags = LAUNCH_BYTES,
     .once = alloc_device},
    {.name = "alloc-ordered",
     .help = "the same in stream order",
     .flags = LAUNCH_BYTES | LAUNCH_KEEPS,
     .once = alloc_ordered,
     .rest = rest_ordered,
     .prepare = prepare_ordered},
    {.name = "pinned-alloc",
     .help = "the same of page-locked host memory",
     .flags = LAUNCH_BYTES | LAUNCH_ON_HOST,
     .once = alloc_pinned},
    {.name = "driver-call", .help = "ask the driver for the free memory", .once = ask_driver},
    {.name = "copy-small",
     .help = "copy 8 bytes to the device and wait",
     .once = copy_word,
     .rest = rest_copy,
     .check = check_copy},
    {.name = NULL},
};

const char *const launch_names[] = {
    "launch",       "launch-complete", "launch-rate", "graph", "graph-complete",
    "stream-sync",  "event",           "event-query", "alloc", "alloc-ordered",
    "pinned-alloc", "driver-call",     "copy-small",  NULL};

const struct launch_op *launch_find(const char *name)
{
    for (const struct launch_op *op = launch_ops; op->name; op++)
        if (!strcmp(op->name, name))
            return op;
    return NULL;
}

static int open_parts(struct launch *l)
{
    const struct gpu_ops *ops = gpu_ops(l->gpu);
    size_t bytes = LAUNCH_WORDS * sizeof(uint64_t);
    int err;

    if ((err = ops->stream_open(l->gpu, &l->stream)) ||
        (err = ops->event_open(l->gpu, &l->event)) ||
        (err = ops->kernel(l->gpu, "empty", &l->empty)) ||
        (err = ops->kernel(l->gpu, "fill", &l->fill)) ||
        (err = ops->alloc(l->gpu, GPU_DEVICE, bytes, &l->device)) ||
        (err = ops->alloc(l->gpu, GPU_PINNED, bytes, (void **)&l->host)))
        return err;
    memset(l->host, 0, bytes);
    return record_and_wait(l);
}

int launch_open(struct launch *l, struct gpu *gpu, const struct launch_op *op, uint64_t nodes,
                uint64_t bytes)
{
    *l = (struct launch){.gpu = gpu, .op = op, .nodes = nodes, .bytes = bytes};
    int err = open_parts(l);

    if (!err && op->prepare)
        err = op->prepare(l);
    return err;
}

void launch_close(struct launch *l)
{
    const struct gpu_ops *ops = l->gpu ? gpu_ops(l->gpu) : NULL;

    if (!ops)
        return;
    if (l->kept)
        ops->free_ordered(l->stream, l->kept);
    if (l->stream)
        ops->stream_wait(l->stream);
    if (l->graph)
        ops->graph_close(l->graph);
    if (l->event)
        ops->event_close(l->event);
    if (l->stream)
        ops->stream_close(l->stream);
    ops->free(l->gpu, GPU_DEVICE, l->device);
    ops->free(l->gpu, GPU_PINNED, l->host);
    *l = (struct launch){0};
}

int launch_once(struct launch *l, uint64_t *ns)
{
    uint64_t begin_ns = clock_now_ns();
    int err = l->op->once(l);

    *ns = clock_now_ns() - begin_ns;
    l->count++;
    if (!err && l->op->rest)
        err = l->op->rest(l);
    return err;
}

int launch_many(struct launch *l, uint64_t n, uint64_t *ns)
{
    uint64_t begin_ns = clock_now_ns();
    int err = 0;

    for (uint64_t i = 0; !err && i < n; i++)
        err = l->op->once(l);
    if (!err)
        err = drain(l);
    *ns = clock_now_ns() - begin_ns;
    l->count += n;
    return err;
}

static int run_fill(struct launch *l, const struct gpu_fill_args *args)
{
    const struct gpu_ops *ops = gpu_ops(l->gpu);
    struct gpu_graph *graph = NULL;
    int err;

    if (!(l->op->flags & LAUNCH_NODES))
        return ops->launch(l->stream, l->fill, FILL_GRID, FILL_BLOCK, args);
    err = make_graph(l, 1, args, &graph);
    if (!err)
        err = ops->graph_launch(l->stream, graph);
    if (!err)
        err = drain(l);
    if (graph)
        ops->graph_close(graph);
    return err;
}

int launch_check(struct launch *l, uint64_t seed, char *what, size_t len)
{
    const struct gpu_ops *ops = gpu_ops(l->gpu);
    uint64_t bytes = LAUNCH_WORDS * sizeof(uint64_t), wrong = 0;
    struct gpu_fill_args args = {
        .dst = l->device, .count = LAUNCH_WORDS, .seed = seed, .type = GPU_U64, .kind = GPU_RANDOM};
    int err = l->op->check ? l->op->check(l, what, len) : 0;

    if (!err)
        err = ops->set(l->stream, l->device, 0, bytes);
    if (!err)
        err = run_fill(l, &args);
    if (!err)
        err = ops->copy(l->stream, l->host, l->device, bytes);
    if (!err)
        err = drain(l);
    if (err)
        return err;
    for (uint64_t i = 0; i < LAUNCH_WORDS; i++)
        wrong += l->host[i] != gpu_value_bits(GPU_U64, GPU_RANDOM, seed, i);
    if (wrong)
        snprintf(what, len, "wrong data: %llu of %d words that a kernel wrote are not right",
                 (unsigned long long)wrong, LAUNCH_WORDS);
    return wrong ? -EBADMSG : 0;
}

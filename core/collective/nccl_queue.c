/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of NCCL's for all ranks of this process, and waiting for them: see nccl_rank.h. By
 * asking, so that the channels are looked after and nothing waits for good. */
#include "core/clock.h"
#include "core/collective/nccl_rank.h"

#define SETTING_UP_NS 20000000000u /* a communicator of many GPUs may be this long in the making */
#define TIMES_SLOWER  4            /* than the last call one may be */

int nccl_each(struct collective *c, nccl_rank_fn *fn, const void *arg)
{
    struct nccl_state *s = c->state;
    int err = 0;

    for (unsigned i = 0; i < s->n_ranks && !err; i++) {
        err = fn(&s->ranks[i], arg);
        if (err && s->ranks[i].c.error[0])
            collective_fail(c, err, "%s", s->ranks[i].c.error);
        for (unsigned k = 0; k < s->n_ranks && err; k++) /* the others wait for this one */
            s->ranks[k].gpu.broken |= s->ranks[i].gpu.broken;
    }
    return err;
}

int nccl_await_comm(struct nccl_rank *r, const void *arg)
{
    (void)arg;
    return library_gpu_await(&r->c, &r->gpu, nccl_look_comm, SETTING_UP_NS);
}

static int look_comm(struct nccl_rank *r, const void *arg)
{
    int err = nccl_look_comm(&r->c, &r->gpu);

    (void)arg;
    r->gpu.broken |= err != 0;
    return err;
}

/* The first of its kind is only begun: nccl_await_comm(). */
static int queue(struct nccl_rank *r, const struct nccl_call *call, bool first)
{
    int err = nccl_enqueue(r, call, first);

    if (err == -EAGAIN)
        return nccl_await_comm(r, NULL);
    r->gpu.broken |= err != 0;
    return err;
}

static double bytes_of(const struct collective *c, unsigned call)
{
    return (double)c->calls[call].count * (double)collective_type_bytes(c->point->type);
}

struct queued {
    unsigned call;
    bool first;
};

static int queue_call(struct nccl_rank *r, const void *arg)
{
    const struct queued *q = arg;
    const struct collective *c = &r->c;
    struct library_part part = library_part(c, &c->calls[q->call]);
    const struct nccl_call of = {.op = c->point->op,
                                 .type = c->point->type,
                                 .sum = c->point->sum,
                                 .input = (const char *)r->gpu.input + part.input,
                                 .result = (char *)r->gpu.result + part.result,
                                 .count = c->calls[q->call].count,
                                 .element_bytes = collective_type_bytes(c->point->type),
                                 .root = c->point->root};

    return queue(r, &of, q->first);
}

/* What is asked of NCCL between these two it is given at once: several ranks of one process would
 * wait for each other else. */
static int group(struct collective *c, bool begin)
{
    struct nccl_state *s = c->state;
    bool wanted = c->point->aggregated > 1 || s->n_ranks > 1;
    int err = wanted ? nccl_group(c, begin) : 0;

    for (unsigned i = 0; i < s->n_ranks && err; i++)
        s->ranks[i].gpu.broken = true;
    return err;
}

/* By all ranks of this process. */
static int queue_all(struct collective *c, unsigned call)
{
    const struct queued q = {call, false};
    int err = group(c, true);

    err = err ? err : nccl_each(c, queue_call, &q);
    return err ? err : group(c, false);
}

static int look(struct nccl_rank *r, const void *arg)
{
    (void)arg;
    return library_gpu_look(&r->c, &r->gpu);
}

static int await_stream(struct nccl_rank *r, const void *expected_ns)
{
    return library_gpu_await(&r->c, &r->gpu, library_gpu_look, *(const uint64_t *)expected_ns);
}

static int await_all(struct collective *c, uint64_t expected_ns)
{
    return nccl_each(c, await_stream, &expected_ns);
}

/* How long nothing need be seen of a call: so much longer than the last one took, and all that a
 * slow network takes where there was none. */
static uint64_t expected_ns(const struct collective *c, double bytes)
{
    const struct nccl_state *s = c->state;

    return s->ns_per_byte > 0 ? (uint64_t)(TIMES_SLOWER * s->ns_per_byte * bytes)
                              : library_gpu_slowest_ns(c, bytes);
}

static int call_done(struct collective *c, unsigned call, uint64_t begin_ns)
{
    struct nccl_state *s = c->state;
    double bytes = bytes_of(c, call);
    int err = await_all(c, expected_ns(c, bytes));

    if (!err)
        s->ns_per_byte = (double)(clock_now_ns() - begin_ns) / bytes;
    return err;
}

int nccl_call_first(struct collective *c, unsigned call)
{
    const struct queued q = {call, true};
    uint64_t begin_ns = clock_now_ns();
    int err = nccl_each(c, queue_call, &q);

    err = err ? err : nccl_each(c, nccl_await_comm, NULL);
    return err ? err : call_done(c, call, begin_ns);
}

static void count(struct collective *c, unsigned call)
{
    struct nccl_state *s = c->state;

    s->bytes += bytes_of(c, call);
}

int nccl_run(struct collective *c, unsigned call)
{
    count(c, call);
    uint64_t begin_ns = clock_now_ns();
    int err = queue_all(c, call);

    return err ? err : call_done(c, call, begin_ns);
}

/* ---- Several operations before one wait ---- */

/* `pipelined` times `aggregated` operations into the stream, or into the graph that it keeps. */
static int queue_operations(struct collective *c)
{
    uint32_t pipelined = c->point->pipelined ? c->point->pipelined : 1;
    uint32_t aggregated = c->point->aggregated ? c->point->aggregated : 1;
    int err = 0;

    for (uint32_t i = 0; i < pipelined && !err; i++) {
        err = group(c, true);
        for (uint32_t k = 0; k < aggregated && !err; k++)
            for (unsigned call = 0; call < c->n_calls && !err; call++)
                err = nccl_each(c, queue_call, &(const struct queued){call, false});
        err = err ? err : group(c, false);
    }
    return err;
}

static int capture(struct nccl_rank *r, const void *arg)
{
    int err = gpu_ops(r->gpu.gpu)->graph_begin(r->gpu.stream);

    (void)arg;
    r->captures = !err;
    return err ? collective_fail(&r->c, err, "nccl: %s", gpu_error(r->gpu.gpu)) : 0;
}

static int end_capture(struct nccl_rank *r, const void *arg)
{
    int err = r->captures ? gpu_ops(r->gpu.gpu)->graph_end(r->gpu.stream, &r->graph) : 0;

    (void)arg;
    r->captures = false;
    return err ? collective_fail(
                     &r->c, err, "nccl: no graph of %llu operations: %s",
                     (unsigned long long)(collective_batch(r->c.point) / r->c.point->graphs),
                     gpu_error(r->gpu.gpu))
               : 0;
}

/* A graph for each GPU, all captured at once: NCCL's groups are of all ranks of the process. A capture
 * that was begun is ended, whatever failed. */
int nccl_make_graph(struct collective *c)
{
    struct nccl_state *s = c->state;
    int err = nccl_each(c, capture, NULL);

    if (!err)
        err = queue_operations(c);
    if (!err)
        return nccl_each(c, end_capture, NULL);
    for (unsigned i = 0; i < s->n_ranks; i++)
        end_capture(&s->ranks[i], NULL);
    return err;
}

static int launch(struct nccl_rank *r, const void *arg)
{
    int err = gpu_ops(r->gpu.gpu)->graph_launch(r->gpu.stream, r->graph);

    (void)arg;
    r->gpu.broken |= err != 0;
    return err ? collective_fail(&r->c, err, "nccl: %s", gpu_error(r->gpu.gpu)) : 0;
}

int nccl_run_batch(struct collective *c)
{
    struct nccl_state *s = c->state;
    uint64_t n = collective_batch(c->point);
    double bytes = 0;

    for (unsigned call = 0; call < c->n_calls; call++)
        bytes += bytes_of(c, call) * (double)n;
    s->bytes += bytes;
    int err = s->ranks[0].graph ? 0 : queue_operations(c);
    /* Each GPU's first, then each GPU's second: a queue that is full would wait for what the others
     * have not been given yet. */
    for (uint32_t i = 0; s->ranks[0].graph && i < c->point->graphs && !err; i++)
        err = nccl_each(c, launch, NULL);
    return err ? err : await_all(c, expected_ns(c, bytes));
}

int nccl_start(struct collective *c, unsigned call)
{
    count(c, call);
    return queue_all(c, call);
}

int nccl_test(struct collective *c, bool *done)
{
    int err = nccl_each(c, look, NULL);

    *done = !err;
    return err == -EAGAIN ? 0 : err;
}

/* NCCL has none: a sum of one number, which none has before all have come. */
static int queue_barrier(struct nccl_rank *r, const void *first)
{
    const struct nccl_call of = {.op = COLLECTIVE_ALLREDUCE,
                                 .type = COLLECTIVE_I32,
                                 .sum = COLLECTIVE_MAX,
                                 .input = r->gpu.word,
                                 .result = r->gpu.word,
                                 .count = 1,
                                 .element_bytes = sizeof(int32_t)};

    return queue(r, &of, *(const bool *)first);
}

static int barrier(struct collective *c, bool first)
{
    /* none of a sample's time, and each operation may be short */
    int err = nccl_each(c, look_comm, NULL);

    if (!err && !first)
        err = group(c, true);
    if (!err)
        err = nccl_each(c, queue_barrier, &first);
    if (!err)
        err = first ? nccl_each(c, nccl_await_comm, NULL) : group(c, false);
    return err ? err : await_all(c, library_gpu_slowest_ns(c, 0));
}

int nccl_barrier(struct collective *c)
{
    return barrier(c, false);
}

int nccl_barrier_first(struct collective *c)
{
    return barrier(c, true);
}

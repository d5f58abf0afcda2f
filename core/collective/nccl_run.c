/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of NCCL's, and waiting for them: by asking, so that the channels are looked after and nothing waits for good. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/collective/library.h"
#include "core/collective/nccl_state.h"

#define SETTING_UP_NS 20000000000u /* a communicator of many GPUs may be this long in the making */
#define TIMES_SLOWER  4            /* than the last call one may be */

int nccl_look_comm(struct collective *c, struct library_gpu *g)
{
    struct nccl_state *s = c->state;
    char error[256] = "";
    int err = s->comm ? s->nccl->comm_state(s->comm, error, sizeof(error)) : 0;

    (void)g;
    return err && err != -EAGAIN ? collective_fail(c, err, "nccl: %s", error) : err;
}

int nccl_await_comm(struct collective *c)
{
    struct nccl_state *s = c->state;

    return library_gpu_await(c, &s->gpu, nccl_look_comm, SETTING_UP_NS);
}

static int queue(struct collective *c, const struct nccl_call *call, bool first)
{
    struct nccl_state *s = c->state;
    char error[256] = "";
    int err = s->nccl->enqueue(s->comm, call, s->gpu.native, first, error, sizeof(error));

    if (err == -EAGAIN)
        return nccl_await_comm(c);
    s->gpu.broken |= err != 0;
    return err ? collective_fail(c, err, "nccl: %s", error) : 0;
}

static double bytes_of(const struct collective *c, unsigned call)
{
    return (double)c->calls[call].count * (double)collective_type_bytes(c->point->type);
}

static int queue_call(struct collective *c, unsigned call, bool first)
{
    const struct nccl_state *s = c->state;
    struct library_part part = library_part(c, &c->calls[call]);
    const struct nccl_call of = {.op = c->point->op,
                                 .type = c->point->type,
                                 .sum = c->point->sum,
                                 .input = (const char *)s->gpu.input + part.input,
                                 .result = (char *)s->gpu.result + part.result,
                                 .count = c->calls[call].count,
                                 .element_bytes = collective_type_bytes(c->point->type)};

    return queue(c, &of, first);
}

/* How long nothing need be seen of a call: so much longer than the last one took, and all that a slow network takes where there was none. */
static uint64_t expected_ns(const struct collective *c, double bytes)
{
    const struct nccl_state *s = c->state;

    return s->ns_per_byte > 0 ? (uint64_t)(TIMES_SLOWER * s->ns_per_byte * bytes)
                              : library_gpu_slowest_ns(c, bytes);
}

static int call_once(struct collective *c, unsigned call, bool first)
{
    struct nccl_state *s = c->state;
    double bytes = bytes_of(c, call);
    uint64_t begin_ns = clock_now_ns();
    int err = queue_call(c, call, first);

    if (!err)
        err = library_gpu_await(c, &s->gpu, library_gpu_look, expected_ns(c, bytes));
    if (!err)
        s->ns_per_byte = (double)(clock_now_ns() - begin_ns) / bytes;
    return err;
}

int nccl_call_first(struct collective *c, unsigned call)
{
    return call_once(c, call, true);
}

static void count(struct collective *c, unsigned call)
{
    struct nccl_state *s = c->state;

    s->bytes += bytes_of(c, call);
    s->calls++;
}

int nccl_run(struct collective *c, unsigned call)
{
    count(c, call);
    return call_once(c, call, false);
}

int nccl_start(struct collective *c, unsigned call)
{
    count(c, call);
    return queue_call(c, call, false);
}

int nccl_test(struct collective *c, bool *done)
{
    struct nccl_state *s = c->state;
    int err = library_gpu_look(c, &s->gpu);

    *done = !err;
    return err == -EAGAIN ? 0 : err;
}

/* NCCL has none: a sum of one number, which none has before all have come. */
static int barrier(struct collective *c, bool first)
{
    struct nccl_state *s = c->state;
    const struct nccl_call of = {.op = COLLECTIVE_ALLREDUCE,
                                 .type = COLLECTIVE_I32,
                                 .sum = COLLECTIVE_MAX,
                                 .input = s->gpu.word,
                                 .result = s->gpu.word,
                                 .count = 1,
                                 .element_bytes = sizeof(int32_t)};
    int err =
        nccl_look_comm(c, &s->gpu); /* none of a sample's time, and each operation may be short */

    s->gpu.broken |= err != 0;
    if (!err)
        err = queue(c, &of, first);
    return err ? err : library_gpu_wait(c, &s->gpu, 0);
}

int nccl_barrier(struct collective *c)
{
    return barrier(c, false);
}

int nccl_barrier_first(struct collective *c)
{
    return barrier(c, true);
}

int nccl_write(struct collective *c, uint64_t offset, const void *from, size_t bytes)
{
    struct nccl_state *s = c->state;

    return library_gpu_copy(c, &s->gpu, (char *)s->gpu.input + offset, from, bytes);
}

int nccl_read(struct collective *c, uint64_t offset, void *to, size_t bytes)
{
    struct nccl_state *s = c->state;

    return library_gpu_copy(c, &s->gpu, to, (const char *)s->gpu.result + offset, bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of NCCL's, and waiting for them: by asking, so that the channels are looked after and nothing waits for good. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/collective/library.h"
#include "core/collective/nccl_state.h"

#define LOOK_NS       50000000     /* attend, and NCCL's own state: twenty times a second */
#define TURNS         64           /* between two looks at the clock */
#define SETTING_UP_NS 20000000000u /* a communicator of many GPUs may be this long in the making */
#define SLOWEST_GBPS  0.1

typedef int look_fn(struct collective *c); /* 0, -EAGAIN, or an error that is said */

/* What NCCL does is not to be seen: nothing counts as standing still before the slowest network would be done. */
static int await(struct collective *c, look_fn *look, uint64_t expected_ns)
{
    struct nccl_state *s = c->state;
    uint64_t begin_ns = clock_now_ns(), looked_ns = begin_ns;
    int err;

    for (unsigned turns = 1; (err = look(c)) == -EAGAIN; turns++) {
        if (c->point->crowded)
            sched_yield();
        uint64_t now_ns = turns % TURNS ? looked_ns : clock_now_ns();
        if (now_ns - looked_ns < LOOK_NS)
            continue;
        looked_ns = now_ns;
        uint64_t waited_ns = now_ns - begin_ns;
        char error[256] = "";
        err = s->comm ? s->nccl->comm_state(s->comm, error, sizeof(error)) : 0;
        if (err && err != -EAGAIN)
            return collective_fail(c, err, "nccl: %s", error);
        err = c->attend ? c->attend(c, waited_ns > expected_ns ? waited_ns - expected_ns : 0) : 0;
        if (err)
            return err;
    }
    return err;
}

static int look_comm(struct collective *c)
{
    struct nccl_state *s = c->state;
    char error[256] = "";
    int err = s->nccl->comm_state(s->comm, error, sizeof(error));

    return err && err != -EAGAIN ? collective_fail(c, err, "nccl: %s", error) : err;
}

static int look_stream(struct collective *c)
{
    struct nccl_state *s = c->state;
    int err = gpu_ops(s->gpu)->stream_query(s->stream);

    return err && err != -EAGAIN ? collective_fail(c, err, "nccl: %s", gpu_error(s->gpu)) : err;
}

/* Whoever gave up cannot know what NCCL and the device are still at. */
static int judged(struct nccl_state *s, int err)
{
    s->broken |= err != 0;
    return err;
}

int nccl_await_comm(struct collective *c)
{
    return judged(c->state, await(c, look_comm, SETTING_UP_NS));
}

int nccl_await_stream(struct collective *c, double bytes)
{
    return judged(c->state, await(c, look_stream, (uint64_t)(2 * bytes * c->n / SLOWEST_GBPS)));
}

static int queue(struct collective *c, const struct nccl_call *call)
{
    struct nccl_state *s = c->state;
    char error[256] = "";
    int err = s->nccl->enqueue(s->comm, call, s->native, error, sizeof(error));

    if (err == -EAGAIN) /* it has yet to connect */
        return nccl_await_comm(c);
    return err ? judged(s, collective_fail(c, err, "nccl: %s", error)) : 0;
}

static double bytes_of(const struct collective *c, unsigned call)
{
    return (double)c->calls[call].count * (double)collective_type_bytes(c->point->type);
}

static int queue_call(struct collective *c, unsigned call)
{
    const struct nccl_state *s = c->state;
    struct library_part part = library_part(c, &c->calls[call]);
    const struct nccl_call of = {.op = c->point->op,
                                 .type = c->point->type,
                                 .sum = c->point->sum,
                                 .input = (const char *)s->input + part.input,
                                 .result = (char *)s->result + part.result,
                                 .count = c->calls[call].count,
                                 .element_bytes = collective_type_bytes(c->point->type)};

    return queue(c, &of);
}

int nccl_call_once(struct collective *c, unsigned call)
{
    int err = queue_call(c, call);

    return err ? err : nccl_await_stream(c, bytes_of(c, call));
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
    return nccl_call_once(c, call);
}

int nccl_start(struct collective *c, unsigned call)
{
    count(c, call);
    return queue_call(c, call);
}

int nccl_test(struct collective *c, bool *done)
{
    int err = look_stream(c);

    *done = !err;
    return err == -EAGAIN ? 0 : judged(c->state, err);
}

/* NCCL has none: a sum of one number, which none has before all have come. */
int nccl_barrier(struct collective *c)
{
    const struct nccl_state *s = c->state;
    const struct nccl_call of = {.op = COLLECTIVE_ALLREDUCE,
                                 .type = COLLECTIVE_I32,
                                 .sum = COLLECTIVE_MAX,
                                 .input = s->word,
                                 .result = s->word,
                                 .count = 1,
                                 .element_bytes = sizeof(int32_t)};
    int err = queue(c, &of);

    return err ? err : nccl_await_stream(c, 0);
}

static int copy(struct collective *c, void *to, const void *from, size_t bytes)
{
    struct nccl_state *s = c->state;
    int err = gpu_ops(s->gpu)->copy(s->stream, to, from, bytes);

    if (err)
        return judged(s, collective_fail(c, err, "nccl: %s", gpu_error(s->gpu)));
    return nccl_await_stream(c, (double)bytes);
}

int nccl_write(struct collective *c, uint64_t offset, const void *from, size_t bytes)
{
    const struct nccl_state *s = c->state;

    return copy(c, (char *)s->input + offset, from, bytes);
}

int nccl_read(struct collective *c, uint64_t offset, void *to, size_t bytes)
{
    const struct nccl_state *s = c->state;

    return copy(c, to, (const char *)s->result + offset, bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU of another process: both ends, see remote.h. */
#include "benches/copy/remote.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "benches/copy/gpu_copy.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/talk.h"
#include "core/hw/nvml.h"
#include "core/hw/topo.h"

/* What a request may take: a driver that starts, or a GPU that does not answer, which its own end
 * says after a minute. Signs of life tell meanwhile that the other end is there. */
#define STEP_WAIT_NS (2 * (uint64_t)GPU_PATIENCE_NS)
#define KEPT_FREE    ((uint64_t)64 << 20) /* of a GPU's memory, for the driver itself */

enum request {
    ASK_ALLOC = 1, /* struct copy_remote_order; struct copy_remote_memory */
    ASK_DO,        /* struct deed; uint64_t, where it is wrong */
    ASK_FREE,      /* -; - */
    REQUESTS
};

struct deed {
    uint32_t what, memory; /* enum copy_remote_deed */
    uint64_t seed;         /* of its data, where that matters */
};

enum state { EMPTY, HELD };

/* ---- The end that is asked ---- */

struct server {
    struct talk_server talk;
    struct topo *topo;
    struct gpus *gpus;
    struct gpu *gpu;
    struct gpu_copy_memory memory[COPY_REMOTE_MEMORIES];
};

static struct server *of(struct talk_server *t)
{
    return t->arg;
}

static int driver_said(struct talk_server *t, int err)
{
    return err ? talk_fail(t, err, "%s", gpu_error(of(t)->gpu)) : 0;
}

static int fits(struct talk_server *t, uint64_t bytes)
{
    struct gpu *gpu = of(t)->gpu;
    uint64_t free_bytes = 0;
    int err = driver_said(t, gpu_ops(gpu)->free_bytes(gpu, &free_bytes));

    if (err)
        return err;
    free_bytes = free_bytes > KEPT_FREE ? free_bytes - KEPT_FREE : 0;
    return bytes <= free_bytes
               ? 0
               : talk_fail(t, -EOPNOTSUPP, "%llu MiB are needed on %s:%u, %llu are free",
                           (unsigned long long)(bytes >> 20), gpu_ops(gpu)->name,
                           gpu_base(gpu)->index, (unsigned long long)(free_bytes >> 20));
}

static int take(struct talk_server *t, const struct copy_remote_order *order,
                struct copy_remote_memory *told)
{
    struct server *s = of(t);
    const struct copy_memory_config config = {.gpu = s->gpu, .bytes = order->bytes, .fabric = true};
    char why[GPU_FABRIC_TEXT];
    int err = fits(t, order->bytes * order->memories);

    for (unsigned i = 0; !err && i < order->memories; i++) {
        struct gpu_copy_memory *m = &s->memory[i];
        err = gpu_copy_memory_alloc(m, s->topo, &config, t->error, sizeof(t->error));
        if (err == -EOPNOTSUPP)
            talk_fail(t, err, "%s%s", gpu_error(s->gpu),
                      gpu_copy_fabric_state(s->gpu, why, sizeof(why)));
        if (!err)
            err = driver_said(t, gpu_ops(s->gpu)->share(s->gpu, m->at, told->handle[i]));
    }
    return err;
}

static void free_all(struct server *s)
{
    for (unsigned i = 0; i < COPY_REMOTE_MEMORIES; i++)
        gpu_copy_memory_free(&s->memory[i]);
}

static int alloc(struct talk_server *t)
{
    struct copy_remote_memory *told = t->body;
    struct copy_remote_order order;
    struct server *s = of(t);

    memcpy(&order, t->in.bytes, sizeof(order));
    if (!order.bytes || order.bytes > UINT64_MAX / COPY_REMOTE_MEMORIES || !order.memories ||
        order.memories > COPY_REMOTE_MEMORIES)
        return talk_fail(t, -EPROTO, "it was asked for no memory, or for too much");
    int err = gpus_get(s->gpus, order.gpu, &s->gpu, t->error, sizeof(t->error));
    if (err)
        return err == -EINVAL ? -EOPNOTSUPP : err; /* another machine may have fewer */
    gpu_base(s->gpu)->error[0] = 0;
    err = take(t, &order, told);
    if (err) {
        free_all(s);
        return err;
    }
    snprintf(told->gpu, sizeof(told->gpu), "%s:%u %.80s", gpu_ops(s->gpu)->name,
             gpu_base(s->gpu)->index, gpu_base(s->gpu)->facts.name);
    snprintf(told->address, sizeof(told->address), "%s", gpu_base(s->gpu)->facts.address);
    snprintf(told->origin, sizeof(told->origin), "%s", gpus_origin(s->gpus));
    gethostname(told->host, sizeof(told->host) - 1);
    gpu_copy_fabric_of(s->gpu, &told->nvlink_gbps, told->domain, sizeof(told->domain));
    return 0;
}

static int act(struct talk_server *t)
{
    size_t wrong_at = COPY_MEMORY_RIGHT;
    uint64_t *wrong = t->body;
    struct deed deed;
    int err;

    memcpy(&deed, t->in.bytes, sizeof(deed));
    if (deed.memory >= COPY_REMOTE_MEMORIES || !of(t)->memory[deed.memory].at)
        return talk_fail(t, -EPROTO, "it was asked for memory that it has not");
    struct gpu_copy_memory *m = &of(t)->memory[deed.memory];
    switch (deed.what) {
    case COPY_REMOTE_FILL:
        err = gpu_copy_memory_fill(m, deed.seed, false);
        break;
    case COPY_REMOTE_POISON:
        err = gpu_copy_memory_poison(m);
        break;
    case COPY_REMOTE_SPOIL:
        err = gpu_copy_memory_spoil(m);
        break;
    default:
        err = gpu_copy_memory_check(m, deed.seed, false, &wrong_at);
    }
    *wrong = wrong_at == COPY_MEMORY_RIGHT ? UINT64_MAX : wrong_at;
    return driver_said(t, err);
}

static int release(struct talk_server *t)
{
    free_all(of(t));
    return 0;
}

static const struct talk_request requests[REQUESTS] = {
    [ASK_ALLOC] = {sizeof(struct copy_remote_order), sizeof(struct copy_remote_memory), EMPTY,
                   EMPTY, HELD, TALK_NEVER, alloc},
    [ASK_DO] = {sizeof(struct deed), sizeof(uint64_t), HELD, HELD, HELD, TALK_NEVER, act},
    [ASK_FREE] = {0, 0, EMPTY, HELD, EMPTY, TALK_NEVER, release},
};

uint32_t copy_remote_protocol(void)
{
    static const uint32_t layout[] = {
        0x636f7003, /* of the requests: raise it when their order or meaning changes */
        sizeof(struct copy_remote_order),
        sizeof(struct copy_remote_memory),
    };

    return meet_protocol(layout, sizeof(layout) / sizeof(*layout));
}

int copy_remote_serve(struct channel *c, void *arg)
{
    struct server *s = xcalloc(1, sizeof(*s));

    (void)arg;
    s->talk =
        (struct talk_server){.channel = c, .requests = requests, .n_requests = REQUESTS, .arg = s};
    s->gpus = gpus_open();
    int err = topo_open(&s->topo);
    if (!err)
        err = talk_serve(&s->talk);
    if (!gpus_silent(s->gpus)) {
        free_all(s);
        gpus_close(s->gpus);
    }
    topo_close(s->topo);
    free(s);
    return err == -EHOSTUNREACH ? err : err ? 1 : 0;
}

/* ---- The end that leads ---- */

enum { OWN, PEER, SIDES };

struct copy_remote {
    struct channel *channel;
    struct talk talk;
};

int copy_remote_open(struct copy_remote **out, struct channel *c)
{
    struct copy_remote *r = *out = xcalloc(1, sizeof(*r));
    struct channel *const channels[SIDES] = {[PEER] = c};

    r->channel = c;
    int err = talk_open(&r->talk, channels, SIDES, requests, REQUESTS);
    if (err)
        snprintf(r->talk.said, sizeof(r->talk.said), "no signs of life can be given: %s",
                 strerror(-err));
    return err;
}

void copy_remote_close(struct copy_remote *r)
{
    if (!r)
        return;
    talk_close(&r->talk);
    channel_close(r->channel);
    free(r);
}

const char *copy_remote_error(const struct copy_remote *r)
{
    return r->talk.said;
}

bool copy_remote_broken(const struct copy_remote *r)
{
    return r->talk.broken;
}

int copy_remote_alive(struct copy_remote *r)
{
    int err = talk_watch(&r->talk) ? r->talk.peers[PEER].cut ? -EHOSTUNREACH : -ECONNRESET
                                   : channel_alive(r->channel);

    if (err && !r->talk.peers[PEER].gone)
        talk_lose(&r->talk, PEER, err, channel_error(r->channel));
    if (err)
        snprintf(r->talk.said, sizeof(r->talk.said), "%s", r->talk.peers[PEER].error);
    return err;
}

static int ask(struct copy_remote *r, enum request request, const void *data, size_t len,
               void *reply, size_t size)
{
    return talk_call(&r->talk, PEER, (uint16_t)request, data, len, reply, size, STEP_WAIT_NS);
}

#define END(text) ((text)[sizeof(text) - 1] = 0)

int copy_remote_alloc(struct copy_remote *r, const struct copy_remote_order *order,
                      struct copy_remote_memory *memory)
{
    int err = ask(r, ASK_ALLOC, order, sizeof(*order), memory, sizeof(*memory));

    END(memory->gpu), END(memory->address), END(memory->host), END(memory->origin);
    END(memory->domain);
    return err;
}

int copy_remote_free(struct copy_remote *r)
{
    return r->talk.broken ? 0 : ask(r, ASK_FREE, NULL, 0, NULL, 0);
}

int copy_remote_do(struct copy_remote *r, enum copy_remote_deed what, unsigned memory,
                   uint64_t seed, size_t *wrong_at)
{
    const struct deed deed = {.what = what, .memory = memory, .seed = seed};
    uint64_t at = 0;
    int err = ask(r, ASK_DO, &deed, sizeof(deed), &at, sizeof(at));

    if (wrong_at)
        *wrong_at = at == UINT64_MAX ? COPY_MEMORY_RIGHT : (size_t)at;
    return err;
}

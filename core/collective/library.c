/* SPDX-License-Identifier: Apache-2.0 */
/* Parts and least traffic of a library's calls; the GPU of a rank: see library.h. */
#include "core/collective/library.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/hw/gpu.h"
#include "core/hw/nic.h"
#include "core/hw/sys.h"

struct library_part library_part(const struct collective *c, const struct collective_call *call)
{
    uint64_t element = collective_type_bytes(c->point->type), whole = call->first * element;
    uint64_t blocks = call->first / c->n * element, own = call->count / c->n * c->me * element;
    struct library_part part = {whole, whole};

    if (c->point->op == COLLECTIVE_ALL_GATHER || c->point->op == COLLECTIVE_GATHER)
        part.input = c->point->in_place ? whole + own : blocks;
    if (c->point->op == COLLECTIVE_REDUCE_SCATTER || c->point->op == COLLECTIVE_SCATTER)
        part.result = c->point->in_place ? whole + own : blocks;
    return part;
}

struct collective_load library_least(const struct collective *c, double bytes)
{
    unsigned node = world_member(c->world, c->members[c->me])->node;

    for (unsigned i = 0; i < c->me; i++)
        if (world_member(c->world, c->members[i])->node == node)
            return (struct collective_load){0};
    struct collective_load load = collective_load(c->world, c->point->op, c->members, c->n,
                                                  c->point->root / collective_each(c->point), node);
    return (struct collective_load){bytes * load.out, bytes * load.in};
}

static void add(char list[256], const char *name)
{
    size_t used = strlen(list);

    snprintf(list + used, 256 - used, "%s%s", used ? ", " : "", name);
}

int library_devices(struct collective *c)
{
    char name[sizeof(c->point->device)], device[NIC_NAME];
    bool more = c->point->device[0];
    char list[256] = "";
    unsigned port;

    for (const char *at = c->point->device; more;) {
        size_t n = strcspn(at, "+");
        snprintf(name, sizeof(name), "%.*s", (int)n, at);
        more = at[n] == '+';
        at += n + more;
        if (if_nametoindex(name) || !nic_parse_port(NULL, name, device, &port))
            continue;
        struct if_nameindex *all = if_nameindex();
        for (struct if_nameindex *one = all; one && one->if_index; one++)
            add(list, one->if_name);
        if (all)
            if_freenameindex(all);
        struct names ports = nic_ports(NULL);
        for (size_t i = 0; i < ports.count; i++)
            add(list, ports.name[i]);
        names_free(&ports);
        return collective_fail(c, -ENODEV,
                               "%s: no interface or RDMA device '%.60s' here; there are %s",
                               c->ops->name, name, list);
    }
    return 0;
}

void library_flow(struct collective_report *told, const char *device, struct collective_load least)
{
    struct collective_flow *f = &told->flows[told->n_flows];

    if (!*device || (least.out <= 0 && least.in <= 0))
        return;
    *f = (struct collective_flow){.out_bytes = least.out, .in_bytes = least.in, .other_node = 1};
    snprintf(f->device, sizeof(f->device), "%s", device);
    told->n_flows++;
}

/* --- the GPU of a rank, its stream and buffers --- */

#define ABORT_STEPS   100 /* of 10 ms */
#define ABORT_STEP_NS 10000000
#define LOOK_NS       50000000 /* attend, and the library's own state: twenty times a second */
#define TURNS         64       /* between two looks at the clock */
#define SLOWEST_GBPS  0.1

/* A GPU that did not answer is asked nothing more in this process: each call would wait for it,
 * too. */
static bool gpu_is_silent;

static int zero(struct collective *c, struct library_gpu *g, void *at, size_t bytes)
{
    int err = gpu_ops(g->gpu)->set(g->stream, at, 0, bytes);

    return err ? collective_fail(c, err, "%s: %s", c->ops->name, gpu_error(g->gpu)) : 0;
}

static size_t whole_words(size_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

int library_gpu_take(struct collective *c, struct library_gpu *g, size_t bytes, void **at)
{
    int err = gpu_ops(g->gpu)->alloc(g->gpu, GPU_DEVICE, whole_words(bytes), at);

    if (err)
        return collective_fail(c, err, "%s: %s", c->ops->name, gpu_error(g->gpu));
    return zero(c, g, *at, whole_words(bytes));
}

static int take(struct collective *c, struct library_gpu *g, size_t bytes, void **at)
{
    int err = g->take ? g->take(c, whole_words(bytes), at) : 0;

    if (!g->take)
        return library_gpu_take(c, g, bytes, at);
    return err ? err : zero(c, g, *at, whole_words(bytes));
}

int library_gpu_buffers(struct collective *c, struct library_gpu *g)
{
    const struct collective_point *p = c->point;
    size_t size = collective_type_bytes(p->type);
    uint64_t input = collective_input_count(p->op, p->count, c->n) * size;
    uint64_t result = collective_result_count(p->op, p->count, c->n) * size;
    int err = take(c, g, p->in_place ? p->count * size : result, &g->result);

    if (!err && !p->in_place)
        err = take(c, g, input, &g->input);
    if (p->in_place)
        g->input = g->result;
    return err ? err : library_gpu_wait(c, g, (double)(input + result));
}

int library_gpu_open(struct collective *c, struct library_gpu *g, unsigned *count)
{
    char error[GPU_ERROR_BYTES] = "";
    unsigned local = world_member(c->world, world_rank(c->world))->local;

    if (gpu_is_silent)
        return collective_fail(c, -EIO,
                               "%s: not tried: the GPU did not answer in a case before this one",
                               c->ops->name);
    g->gpus = gpus_open();
    *count = gpus_count(g->gpus);
    unsigned index = local * (g->each ? g->each : 1) + g->number;
    int err = gpus_get(g->gpus, *count ? index % *count : 0, &g->gpu, error, sizeof(error));
    if (err)
        return collective_fail(c, err, "%s: %s", c->ops->name, error);
    snprintf(c->gpu, sizeof(c->gpu), "%s", gpu_base(g->gpu)->facts.address);
    err = gpu_ops(g->gpu)->stream_open(g->gpu, &g->stream);
    g->native = err ? NULL : gpu_ops(g->gpu)->stream_native(g->stream);
    return g->native
               ? 0
               : collective_fail(c, err ? err : -EIO, "%s: %s", c->ops->name, gpu_error(g->gpu));
}

void library_gpu_enter(struct library_gpu *g)
{
    gpu_ops(g->gpu)->stream_native(g->stream);
}

/* What was aborted comes to its end soon, unless the GPU hangs. */
static bool is_idle(const struct library_gpu *g)
{
    const struct timespec pause = {.tv_nsec = ABORT_STEP_NS};
    int err = -EAGAIN;

    for (unsigned i = 0; i < ABORT_STEPS && err == -EAGAIN; i++) {
        err = gpu_ops(g->gpu)->stream_query(g->stream);
        if (err == -EAGAIN)
            nanosleep(&pause, NULL);
    }
    return err != -EAGAIN;
}

static void give_back_one(struct library_gpu *g, void *at)
{
    if (at && g->give_back)
        g->give_back(at);
    else
        gpu_ops(g->gpu)->free(g->gpu, GPU_DEVICE, at);
}

static void give_back(struct library_gpu *g)
{
    const struct gpu_ops *ops = gpu_ops(g->gpu);

    give_back_one(g, g->input != g->result ? g->input : NULL);
    give_back_one(g, g->result);
    ops->free(g->gpu, GPU_DEVICE, g->word);
    ops->stream_close(g->stream);
}

void library_gpu_close(struct library_gpu *g)
{
    if (g->left || (g->stream && g->broken && !is_idle(g)))
        gpu_base(g->gpu)->silent = gpu_is_silent = true; /* all below would wait for it */
    if (g->gpu && !gpu_base(g->gpu)->silent)
        give_back(g);
    gpus_close(g->gpus);
    *g = (struct library_gpu){0};
}

static int judged(struct library_gpu *g, int err)
{
    g->broken |= err != 0 && err != -EAGAIN;
    return err;
}

/* What a library does is not to be seen: nothing counts as standing still before the slowest
 * network would be done. */
int library_gpu_await(struct collective *c, struct library_gpu *g, library_look_fn *look,
                      uint64_t expected_ns)
{
    uint64_t begin_ns = clock_now_ns(), looked_ns = begin_ns;
    int err;

    for (unsigned turns = 1; (err = look(c, g)) == -EAGAIN; turns++) {
        if (c->point->crowded)
            sched_yield();
        uint64_t now_ns = turns % TURNS ? looked_ns : clock_now_ns();
        if (now_ns - looked_ns < LOOK_NS)
            continue;
        looked_ns = now_ns;
        uint64_t waited_ns = now_ns - begin_ns;
        /* The channels, and the library's own state; 0: go on waiting. */
        err = g->failed ? g->failed(c, g) : 0;
        if ((!err || err == -EAGAIN) && c->attend)
            err = c->attend(c, waited_ns > expected_ns ? waited_ns - expected_ns : 0);
        else if (err == -EAGAIN)
            err = 0;
        if (err)
            break;
    }
    return judged(g, err);
}

int library_gpu_look(struct collective *c, struct library_gpu *g)
{
    int err = gpu_ops(g->gpu)->stream_query(g->stream);

    if (!err || err == -EAGAIN)
        return err;
    return judged(g, collective_fail(c, err, "%s: %s", c->ops->name, gpu_error(g->gpu)));
}

uint64_t library_gpu_slowest_ns(const struct collective *c, double bytes)
{
    return (uint64_t)(2 * bytes * c->n / SLOWEST_GBPS);
}

int library_gpu_wait(struct collective *c, struct library_gpu *g, double bytes)
{
    return library_gpu_await(c, g, library_gpu_look, library_gpu_slowest_ns(c, bytes));
}

int library_gpu_copy(struct collective *c, struct library_gpu *g, void *to, const void *from,
                     size_t bytes)
{
    int err = gpu_ops(g->gpu)->copy(g->stream, to, from, bytes);

    if (err)
        return judged(g, collective_fail(c, err, "%s: %s", c->ops->name, gpu_error(g->gpu)));
    return library_gpu_wait(c, g, (double)bytes);
}

void library_gpu_address(struct library_gpu *g, struct collective_address *address)
{
    const char *uuid = gpu_base(g->gpu)->facts.uuid;

    address->len = strlen(uuid);
    memcpy(address->bytes, uuid, address->len);
}

/* Has the address from there on a GPU's name, and that one? */
static bool is_of(const struct collective_address *address, size_t from, const void *name,
                  size_t len)
{
    return len && address->len == from + len && !memcmp(address->bytes + from, name, len);
}

bool library_gpu_is(struct library_gpu *g, const struct collective_address *address, size_t from)
{
    const char *own = gpu_base(g->gpu)->facts.uuid;

    return is_of(address, from, own, strlen(own));
}

bool library_gpu_shared(struct library_gpu *g, const struct collective_address *addresses,
                        unsigned n, size_t from)
{
    for (unsigned i = 0; i < n; i++) {
        if (library_gpu_is(g, &addresses[i], from))
            return true;
        for (unsigned j = 0; j < i; j++)
            if (addresses[i].len > from &&
                is_of(&addresses[j], from, addresses[i].bytes + from, addresses[i].len - from))
                return true;
    }
    return false;
}

bool library_gpu_simulated(const struct library_gpu *g)
{
    return !strcmp(gpus_origin(g->gpus), "simulated");
}

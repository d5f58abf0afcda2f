/* SPDX-License-Identifier: Apache-2.0 */
/* Our own backends: schedules of ours run by the engine over a wire. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/collective/data.h"
#include "core/collective/engine.h"
#include "core/units.h"
#include "core/wire/wires.h"

struct own_call { /* all calls of one count */
    uint64_t count;
    struct schedule schedule;
    struct engine *engine;
    uint64_t segment_bytes;
};

struct own {
    const struct wire_ops *transport;
    struct wire *wire;
    struct own_call *calls, barrier; /* of each distinct count */
    unsigned n_calls;
    uint64_t segment_bytes; /* of the longest */
    struct engine *running;
    void *spare;  /* of whichever engine runs */
    void *tokens; /* of the barrier */
    size_t spare_bytes, tokens_bytes;
};

/* --- what a backend can do, and what it has done --- */

/* The flow of a device and a kind of way; where there is room for no more, the last one. */
static struct collective_flow *flow_of(struct collective_report *told, const char *device,
                                       bool other_node)
{
    struct collective_flow *flow = told->flows;

    for (uint32_t i = 0; i < told->n_flows; i++, flow++)
        if (!strcmp(flow->device, device) && flow->other_node == other_node)
            return flow;
    if (told->n_flows == COLLECTIVE_FLOWS_MAX)
        return flow - 1;
    told->n_flows++;
    snprintf(flow->device, sizeof(flow->device), "%s", device);
    flow->other_node = other_node;
    flow->exact = 1;
    return flow;
}

static int refuse(char *why, size_t len, const char *format, const char *a, const char *b)
{
    snprintf(why, len, format, a, b);
    return -EOPNOTSUPP;
}

static int own_supports(const struct collective_point *p, unsigned n, char *why, size_t len)
{
    const char *op = collective_ops_names[p->op];
    bool whole = p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE;

    if (data_lacks(p))
        return refuse(why, len, "'%s': %s", p->backend, data_lacks(p));
    if (!wire_find(p->transport))
        return refuse(why, len, "there is no transport '%s'%s", p->transport, "");
    if (p->in_place && whole)
        return refuse(why, len, "'%s' is not done in place%s", op, "");
    if (p->op == COLLECTIVE_REDUCE_SCATTER && !strcmp(p->backend, collective_doubling.name))
        return refuse(why, len, "'%s' sends whole vectors: for '%s' take halving", p->backend, op);
    if (p->count % n && collective_has_blocks(p->op))
        return refuse(why, len, "'%s' wants as many elements as there are blocks, or twice, %s", op,
                      "thrice and so on");
    return 0;
}

static size_t element_bytes(const struct collective *c)
{
    return collective_type_bytes(c->point->type);
}

#define DOUBLING_MOST (16u << 10)
#define HALVING_MOST  (512u << 10)

/* Of auto: what its longest call suits. See docs/allreduce.md. */
static const struct collective_ops *suited(const struct collective *c)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < c->n_calls; i++)
        count = c->calls[i].count > count ? c->calls[i].count : count;
    uint64_t bytes = count * element_bytes(c);
    if (bytes > HALVING_MOST)
        return &collective_ring;
    return bytes > DOUBLING_MOST || c->point->op == COLLECTIVE_REDUCE_SCATTER
               ? &collective_halving
               : &collective_doubling;
}

/* Which of our algorithms this point goes by. */
static const struct collective_ops *goes_by(const struct collective *c)
{
    return c->ops == &collective_auto ? suited(c) : c->ops;
}

static void own_tell(struct collective *c, struct collective_report *told)
{
    struct own *o = c->state;
    struct wire *f = o->wire;
    char size[24];

    memset(told, 0, sizeof(*told));
    units_format_size(o->segment_bytes, size, sizeof(size));
    snprintf(told->algorithm, sizeof(told->algorithm), "%s, segments of %s", goes_by(c)->name,
             size);
    if (f->ops->describe)
        f->ops->describe(f, told->detail, sizeof(told->detail));
    uint32_t node = world_member(c->world, c->members[c->me])->node;
    for (unsigned i = 0; i < f->n_links; i++) {
        const struct wire_link *l = &f->links[i];
        struct collective_flow *flow =
            flow_of(told, l->device, world_member(c->world, l->peer)->node != node);
        flow->out_bytes += (double)l->out.through;
        flow->in_bytes += (double)l->in.through;
    }
    if (f->ops->facts)
        told->n_facts = (uint32_t)f->ops->facts(f, told->facts);
    told->has_rail = f->ops->rail && !f->ops->rail(f, &told->rail);
}

/* How long nothing moves in a join is the wire's to judge: it knows what to say. */
static int attend_join(void *arg)
{
    struct collective *c = arg;

    return c->attend ? c->attend(c, 0) : 0;
}

static int open_wire(struct collective *c)
{
    struct own *o = c->state;
    const struct collective_point *p = c->point;
    struct wire_options options = {.device = p->device,
                                   .tcp = p->tcp,
                                   .rdma = p->rdma,
                                   .message_most = o->segment_bytes,
                                   .crowded = p->crowded,
                                   .node = -1,
                                   .attend = attend_join,
                                   .attend_arg = c};
    char error[COLLECTIVE_ERROR_BYTES] = "";
    int err = wire_open(&o->wire, o->transport, c->world, &options, error, sizeof(error));
    return err ? collective_fail(c, err, "%s", error[0] ? error : strerror(-err)) : 0;
}

/* Adds a schedule that has been made: what it is cut to, and the memory that it needs. */
static void measure(struct collective *c, struct own_call *call)
{
    struct own *o = c->state;
    uint64_t longest = call->schedule.longest * element_bytes(c);
    size_t spare;

    call->segment_bytes =
        engine_segment(o->transport, longest, call->schedule.hops, c->point->segment_bytes);
    spare = engine_spare_bytes(c, &call->schedule, call->segment_bytes);
    o->spare_bytes = spare > o->spare_bytes ? spare : o->spare_bytes;
    if (call->segment_bytes > o->segment_bytes)
        o->segment_bytes = call->segment_bytes;
}

static struct own_call *call_of(struct own *o, uint64_t count)
{
    for (unsigned i = 0; i < o->n_calls; i++)
        if (o->calls[i].count == count)
            return &o->calls[i];
    return NULL;
}

static int make_schedules(struct collective *c)
{
    struct own *o = c->state;
    const struct collective_point *p = c->point;
    int err = 0;

    for (unsigned i = 0; i < c->n_calls && !err; i++) {
        if (call_of(o, c->calls[i].count))
            continue;
        struct own_call *call = &o->calls[o->n_calls++];
        call->count = c->calls[i].count;
        err = schedule_make(&call->schedule,
                            goes_by(c) == &collective_halving    ? SCHEDULE_HALVING
                            : goes_by(c) == &collective_doubling ? SCHEDULE_DOUBLING
                                                                 : SCHEDULE_RING,
                            p, call->count, c->n, c->me);
        if (!err)
            measure(c, call);
    }
    schedule_barrier(&o->barrier.schedule, c->n, c->me);
    measure(c, &o->barrier);
    return err ? collective_fail(c, err, "no schedule of '%s' for '%s': %s", c->ops->name,
                                 collective_ops_names[p->op], strerror(-err))
               : 0;
}

static int spare_memory(struct collective *c)
{
    struct own *o = c->state;
    size_t line = 4096;

    o->spare_bytes = (o->spare_bytes + line) / line * line;
    o->tokens_bytes = (c->n * element_bytes(c) + line - 1) / line * line;
    o->spare = aligned_alloc(line, o->spare_bytes);
    o->tokens = aligned_alloc(line, o->tokens_bytes);
    if (!o->spare || !o->tokens)
        return collective_fail(c, -ENOMEM, "no %zu bytes of memory for what is being reduced",
                               o->spare_bytes);
    memset(o->spare, 0, o->spare_bytes);
    memset(o->tokens, 0, o->tokens_bytes);
    return 0;
}

static int tell_memory(struct collective *c)
{
    struct own *o = c->state;
    const struct collective_point *p = c->point;
    uint64_t input = collective_input_count(p->op, p->count, c->n) * element_bytes(c);
    uint64_t result = collective_result_count(p->op, p->count, c->n) * element_bytes(c);
    int err = 0;

    if (p->in_place)
        result = p->count * element_bytes(c);
    else
        err = wire_memory(o->wire, c->input, input);
    if (!err)
        err = wire_memory(o->wire, c->result, result);
    if (!err)
        err = wire_memory(o->wire, o->spare, o->spare_bytes);
    if (!err)
        err = wire_memory(o->wire, o->tokens, o->tokens_bytes);
    return err ? collective_fail(c, err, "%s", o->wire->error) : 0;
}

static int make_engine(struct collective *c, struct own_call *call)
{
    struct own *o = c->state;

    call->engine = engine_open(c, o->wire, &call->schedule, o->spare, call->segment_bytes);
    return engine_link(call->engine);
}

static int own_open(struct collective *c)
{
    struct own *o = c->state = xcalloc(1, sizeof(*o));

    o->calls = xcalloc(c->n_calls, sizeof(*o->calls));
    o->transport = wire_find(c->point->transport);
    int err = o->transport ? collective_host_alloc(c)
                           : collective_fail(c, -EOPNOTSUPP, "there is no transport '%s'",
                                             c->point->transport);
    if (!err)
        err = make_schedules(c);
    if (!err)
        err = spare_memory(c);
    if (!err)
        err = open_wire(c);
    if (!err)
        err = tell_memory(c);
    for (unsigned i = 0; i < o->n_calls && !err; i++)
        err = make_engine(c, &o->calls[i]);
    return err ? err : make_engine(c, &o->barrier);
}

/* UINT_MAX: no member. */
static unsigned member_of(const struct collective *c, unsigned rank)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->members[i] == rank)
            return i;
    return UINT32_MAX;
}

static int own_peers(struct collective *c, unsigned *peers, unsigned *n)
{
    const struct wire *f = ((struct own *)c->state)->wire;

    *n = f->n_links;
    for (unsigned i = 0; i < f->n_links; i++)
        peers[i] = member_of(c, f->links[i].peer);
    return 0;
}

static int link_of(const struct wire *f, unsigned rank)
{
    for (unsigned i = 0; i < f->n_links; i++)
        if (f->links[i].peer == rank)
            return (int)i;
    return -1;
}

static int own_address(struct collective *c, unsigned peer, struct collective_address *address)
{
    struct wire *f = ((struct own *)c->state)->wire;
    int err;

    _Static_assert(WIRE_ADDRESS_MAX <= COLLECTIVE_ADDRESS_MAX, "a wire's address is one of ours");
    address->member = peer;
    address->len = 0;
    err = wire_address(f, (unsigned)link_of(f, c->members[peer]), address->bytes, &address->len);
    return err ? collective_fail(c, err, "%s", f->error) : 0;
}

static int own_join(struct collective *c, const struct collective_address *addresses, unsigned n)
{
    struct wire *f = ((struct own *)c->state)->wire;
    const void **bytes = xcalloc(f->n_links, sizeof(*bytes));
    size_t *lens = xcalloc(f->n_links, sizeof(*lens));
    char name[WORLD_NAME_MAX + 24];
    int err = 0;

    for (unsigned i = 0; i < n; i++) {
        int link = link_of(f, c->members[addresses[i].member]);
        if (link < 0)
            continue;
        bytes[link] = addresses[i].bytes;
        lens[link] = addresses[i].len;
    }
    for (unsigned i = 0; i < f->n_links && !err; i++)
        if (!bytes[i])
            err = collective_fail(c, -EPROTO, "%s has not said where it is to be found",
                                  world_name(c->world, f->links[i].peer, name, sizeof(name)));
    if (!err && f->n_links && (err = wire_join(f, bytes, lens)))
        collective_fail(c, err, "%s", f->error);
    free(bytes);
    free(lens);
    return err;
}

/* Its waits are not those of an operation. */
static int own_barrier(struct collective *c)
{
    struct own *o = c->state;
    uint64_t waited_ns = c->waited_ns, blocked_ns = c->blocked_ns;
    int err = engine_run(o->barrier.engine, NULL, o->tokens);

    c->waited_ns = waited_ns;
    c->blocked_ns = blocked_ns;
    return err;
}

/* Where a call's elements begin: what a count is to blocks the place is, too. */
static struct own_call *locate(struct collective *c, unsigned call, void **input, void **result)
{
    const struct collective_point *p = c->point;
    uint64_t first = c->calls[call].first;
    uint64_t in = collective_input_count(p->op, first, c->n);
    uint64_t out = collective_result_count(p->op, first, c->n);

    if (p->in_place)
        in = out = first;
    *input = (char *)c->input + in * element_bytes(c);
    *result = (char *)c->result + out * element_bytes(c);
    return call_of(c->state, c->calls[call].count);
}

static int own_run(struct collective *c, unsigned call)
{
    void *input, *result;
    struct own_call *of = locate(c, call, &input, &result);

    return engine_run(of->engine, input, result);
}

static int own_start(struct collective *c, unsigned call)
{
    void *input, *result;
    struct own_call *of = locate(c, call, &input, &result);

    ((struct own *)c->state)->running = of->engine;
    return engine_begin(of->engine, input, result);
}

static int own_test(struct collective *c, bool *done)
{
    struct engine *e = ((struct own *)c->state)->running;
    int state = engine_progress(e, 0);

    *done = state > 0;
    return state ? (state < 0 ? state : 0) : engine_attend(e);
}

static int own_unheard(struct collective *c, uint64_t for_ns)
{
    const struct own *o = c->state;
    char name[WORLD_NAME_MAX + 32];
    const char *device;
    int peer = o && o->wire ? wire_unheard(o->wire, for_ns, &device) : -1;

    if (peer < 0)
        return 0;
    return collective_fail(c, -EHOSTUNREACH,
                           "it sends to %s over %s, and nothing is acknowledged: a link, a "
                           "firewall or the MTU between them",
                           world_name(c->world, (unsigned)peer, name, sizeof(name)), device);
}

static void own_close(struct collective *c)
{
    struct own *o = c->state;

    if (!o)
        return;
    for (unsigned i = 0; i < o->n_calls; i++) {
        engine_close(o->calls[i].engine);
        schedule_release(&o->calls[i].schedule);
    }
    engine_close(o->barrier.engine);
    schedule_release(&o->barrier.schedule);
    wire_close(o->wire);
    free(o->calls);
    free(o->spare);
    free(o->tokens);
    free(o);
    c->state = NULL;
    collective_host_free(c);
}

/* clang-format off */
#define OWN_HOOKS                                                                                  \
    .own = true, .supports = own_supports, .open = own_open, .peers = own_peers,                   \
    .address = own_address, .join = own_join, .barrier = own_barrier, .run = own_run,              \
    .start = own_start, .test = own_test, .unheard = own_unheard, .tell = own_tell,                \
    .close = own_close
/* clang-format on */

const struct collective_ops collective_ring = {
    .name = "ring",
    OWN_HOOKS,
};

const struct collective_ops collective_auto = {
    .name = "auto",
    OWN_HOOKS,
};

const struct collective_ops collective_halving = {
    .name = "halving",
    OWN_HOOKS,
};

const struct collective_ops collective_doubling = {
    .name = "doubling",
    .chosen_most = 65536,
    OWN_HOOKS,
};

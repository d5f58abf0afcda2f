/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives of NCCL, between GPUs: one for each rank, its own where there are enough. The GPU
 * module has the memory and the stream.
 *
 * Where a node has fewer GPUs than ranks, several share one: NCCL takes them for different machines
 * then, by NCCL_HOSTID, and talks to them over sockets. That is a rehearsal of a program, no
 * measurement of GPUs, and each row says so.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/backend.h"
#include "core/clock.h"
#include "core/collective/data.h"
#include "core/collective/nccl_rank.h"
#include "core/row.h"

static int rank_write(struct collective *c, uint64_t offset, const void *from, size_t bytes)
{
    struct nccl_rank *r = c->state;

    return library_gpu_copy(c, &r->gpu, (char *)r->gpu.input + offset, from, bytes);
}

static int rank_read(struct collective *c, uint64_t offset, void *to, size_t bytes)
{
    struct nccl_rank *r = c->state;

    return library_gpu_copy(c, &r->gpu, to, (const char *)r->gpu.result + offset, bytes);
}

/* Of a rank's c. */
static const struct collective_ops rank_ops = {
    .name = "nccl", .device_memory = true, .write = rank_write, .read = rank_read};

/* Each rank of this process in turn; what one of them says is said in c->error. */
static int each(struct collective *c, nccl_rank_fn *fn)
{
    struct nccl_state *s = c->state;
    int err = 0;

    for (unsigned i = 0; i < s->n_ranks && !err; i++) {
        err = fn(&s->ranks[i]);
        if (err && s->ranks[i].c.error[0])
            collective_fail(c, err, "%s", s->ranks[i].c.error);
        for (unsigned k = 0; k < s->n_ranks && err; k++) /* the others wait for this one */
            s->ranks[k].gpu.broken |= s->ranks[i].gpu.broken;
    }
    return err;
}

static int fill_rank(struct nccl_rank *r)
{
    return collective_fill(&r->c, r->s->seed);
}

static int nccl_fill(struct collective *c, uint64_t seed)
{
    ((struct nccl_state *)c->state)->seed = seed;
    return each(c, fill_rank);
}

static int compare_rank(struct nccl_rank *r)
{
    int err = collective_compare(&r->c, r->s->seed);

    if (err == -EBADMSG && r->s->n_ranks > 1) {
        char wrong[COLLECTIVE_ERROR_BYTES];
        snprintf(wrong, sizeof(wrong), "%s", r->c.error);
        snprintf(r->c.error, sizeof(r->c.error), "rank %u of the communicator: %.300s", r->c.me,
                 wrong);
    }
    return err;
}

static int nccl_compare(struct collective *c, uint64_t seed)
{
    ((struct nccl_state *)c->state)->seed = seed;
    return each(c, compare_rank);
}

#define WORD_BYTES 256

static void nccl_backends(backend_say_fn *say, void *arg)
{
    struct backend b = {.name = "nccl"};
    char error[GPU_ERROR_BYTES] = "", version[64];
    bool found = !nccl_library(error, sizeof(error));
    struct gpus *gpus = gpus_open();

    b.why = error;
    if (found && gpus_module(gpus, &b.why)) {
        nccl_version(version, sizeof(version));
        b.state = BACKEND_PRESENT;
        b.version = version;
        b.what = nccl_file();
        b.why = NULL;
        b.simulated = nccl_is_simulated();
    }
    say(arg, &b);
    gpus_close(gpus);
}

static int nccl_supports(const struct collective_point *p, unsigned n, char *why, size_t len)
{
    const char *algorithm, *protocol;

    (void)n;
    if (p->in_place && (p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE)) {
        snprintf(why, len,
                 "nccl: all-to-all and send-receive are not in place: leave --in-place out");
        return -EOPNOTSUPP;
    }
    return p->algorithm[0] ? nccl_log_algorithm(p->algorithm, &algorithm, &protocol, why, len) : 0;
}

#define FP8_VERSION    22400
#define FP8_CAPABILITY 9 /* of devices that reduce fp8 in NCCL (src/device/reduce_kernel.h) */

/* What this library, and this GPU, cannot do of the point. */
static int check_type(struct nccl_rank *r)
{
    struct collective *c = &r->c;
    const struct gpu_facts *gpu = &gpu_base(r->gpu.gpu)->facts;
    bool fp8 = c->point->type == COLLECTIVE_E4M3 || c->point->type == COLLECTIVE_E5M2;
    char version[64];

    if (nccl_version(version, sizeof(version)) < FP8_VERSION && fp8)
        return collective_fail(c, -EOPNOTSUPP, "nccl: fp8 needs NCCL 2.24 or newer, and this is %s",
                               version);
    if (fp8 && collective_reduces(c->point->op) && gpu->major < FP8_CAPABILITY)
        return collective_fail(c, -EOPNOTSUPP,
                               "nccl: fp8 is reduced by GPUs of compute capability 9.0 or newer, "
                               "and '%s' has %u.%u: take another type",
                               gpu->name, gpu->major, gpu->minor);
    return 0;
}

static int open_rank(struct nccl_rank *r)
{
    unsigned count = 0, own = r->s->n_ranks;
    int err = library_gpu_open(&r->c, &r->gpu, &count);

    if (!err && own > 1 && count % own)
        return collective_fail(&r->c, -EOPNOTSUPP,
                               "nccl: --per-process %u does not divide the GPUs of this machine, "
                               "of which there are %u",
                               own, count);
    if (err)
        return err;
    r->gpu.failed = nccl_look_comm;
    nccl_take_memory(&r->gpu); /* as nccl-tests has its buffers, where the library can */
    err = check_type(r);
    if (err)
        return err;
    err = library_gpu_take(&r->c, &r->gpu, WORD_BYTES, &r->gpu.word);
    return err ? err : library_gpu_buffers(&r->c, &r->gpu);
}

/* As a member with one rank would be. */
static void make_ranks(struct collective *c)
{
    struct nccl_state *s = c->state;
    unsigned own = collective_each(c->point), n = c->n * own;

    s->ranks = xcalloc(own, sizeof(*s->ranks));
    s->members = xcalloc(n, sizeof(*s->members));
    for (unsigned i = 0; i < n; i++)
        s->members[i] = c->members[i / own];
    for (unsigned i = 0; i < own; i++) {
        struct nccl_rank *r = &s->ranks[i];
        r->s = s;
        r->c = *c;
        r->c.ops = &rank_ops;
        r->point = *c->point;
        r->point.per_process = 1;
        r->c.point = &r->point;
        r->c.members = s->members;
        r->c.n = n;
        r->c.me = c->me * own + i;
        r->c.state = r;
        r->gpu.each = own;
        r->gpu.number = i;
    }
    s->n_ranks = own;
}

static int nccl_open(struct collective *c)
{
    char error[GPU_ERROR_BYTES] = "";
    struct nccl_state *s = c->state = xcalloc(1, sizeof(*s));
    int err = nccl_library(error, sizeof(error));

    if (err)
        return collective_fail(c, err, "nccl: %s", error);
    err = library_devices(c);
    if (err)
        return err;
    make_ranks(c);
    err = each(c, open_rank);
    for (unsigned i = 0; i < s->n_ranks && !err; i++) {
        size_t used = strlen(c->gpu);
        snprintf(c->gpu + used, sizeof(c->gpu) - used, "%s%s", i ? "+" : "", s->ranks[i].c.gpu);
    }
    return err;
}

/* NCCL's id goes from member 0 to the others, before all else in its address, where others have
 * zeros; which GPU each has, to member 0 and to all on its node. */
static int nccl_peers(struct collective *c, unsigned *peers, unsigned *n)
{
    unsigned own = world_member(c->world, c->members[c->me])->node;

    *n = 0;
    for (unsigned i = 0; i < c->n; i++)
        if (i != c->me && (!c->me || !i || world_member(c->world, c->members[i])->node == own))
            peers[(*n)++] = i;
    return 0;
}

static int nccl_address(struct collective *c, unsigned peer, struct collective_address *address)
{
    struct nccl_state *s = c->state;
    struct collective_address gpu;
    int err = c->me ? 0 : nccl_make_id(c);

    (void)peer;
    library_gpu_address(&s->ranks[0].gpu, &gpu); /* it stands for the others of this process */
    memcpy(address->bytes, s->id, sizeof(s->id));
    memcpy(address->bytes + sizeof(s->id), gpu.bytes, gpu.len);
    address->len = sizeof(s->id) + gpu.len;
    return err;
}

/* NCCL takes no two ranks of one machine that have one GPU. The first of them stays what it is, the
 * others are machines of their own for NCCL. It asks for NCCL_HOSTID once in a process, at the
 * first communicator: a rank that was in one by then, and shares now, is refused by NCCL. */
static void stand_apart(struct collective *c, const struct collective_address *addresses,
                        unsigned n)
{
    struct nccl_state *s = c->state;
    bool first = true;
    char id[96];

    for (unsigned i = 0; i < n; i++)
        first &= addresses[i].member > c->me ||
                 !library_gpu_is(&s->ranks[0].gpu, &addresses[i], NCCL_ID_BYTES);
    snprintf(id, sizeof(id), "%s-rank-%u", world_member(c->world, world_rank(c->world))->host,
             world_rank(c->world));
    if (!first)
        setenv("NCCL_HOSTID", id, 0);
}

static int take_addresses(struct collective *c, const struct collective_address *addresses,
                          unsigned n)
{
    struct nccl_state *s = c->state;
    bool known = c->me == 0;

    for (unsigned i = 0; i < n; i++) {
        if (addresses[i].len < sizeof(s->id))
            return collective_fail(c, -EPROTO, "nccl: a member's address is too short");
        if (addresses[i].member || known)
            continue;
        memcpy(s->id, addresses[i].bytes, sizeof(s->id));
        known = true;
    }
    if (!known)
        return collective_fail(c, -EPROTO, "nccl: member 0 sent no id");
    stand_apart(c, addresses, n);
    if (c->me == 0)
        s->shared = library_gpu_shared(&s->ranks[0].gpu, addresses, n, sizeof(s->id));
    for (unsigned i = 0; i < n && s->n_ranks > 1; i++)
        if (library_gpu_is(&s->ranks[0].gpu, &addresses[i], sizeof(s->id)))
            return collective_fail(c, -EOPNOTSUPP,
                                   "nccl: --per-process %u: two processes of this machine would "
                                   "have the same GPUs: start fewer",
                                   s->n_ranks);
    return c->n == 1 ? nccl_make_id(c) : 0;
}

/* ---- Operations of all ranks of this process, and waiting for them: by asking, so that the channels
 * are looked after and nothing waits for good ---- */

#define SETTING_UP_NS 20000000000u /* a communicator of many GPUs may be this long in the making */
#define TIMES_SLOWER  4            /* than the last call one may be */

#define BARRIER UINT32_MAX /* the number of a call that is one */

/* Until NCCL is done with what it was asked for last. */
static int await_comm(struct nccl_rank *r)
{
    return library_gpu_await(&r->c, &r->gpu, nccl_look_comm, SETTING_UP_NS);
}

static int look_comm(struct nccl_rank *r)
{
    int err = nccl_look_comm(&r->c, &r->gpu);

    r->gpu.broken |= err != 0;
    return err;
}

static double bytes_of(const struct collective *c, unsigned call)
{
    return (double)c->calls[call].count * (double)collective_type_bytes(c->point->type);
}

/* The call that is asked for. The first of its kind is only begun: await_comm(). */
static int queue(struct nccl_rank *r)
{
    const struct collective *c = &r->c;
    /* NCCL has no barrier: a sum of one number, which none has before all have come. */
    struct nccl_call of = {.op = COLLECTIVE_ALLREDUCE,
                           .type = COLLECTIVE_I32,
                           .sum = COLLECTIVE_MAX,
                           .input = r->gpu.word,
                           .result = r->gpu.word,
                           .count = 1,
                           .element_bytes = sizeof(int32_t)};

    if (r->s->call != BARRIER) {
        struct library_part part = library_part(c, &c->calls[r->s->call]);
        of = (struct nccl_call){.op = c->point->op,
                                .type = c->point->type,
                                .sum = c->point->sum,
                                .input = (const char *)r->gpu.input + part.input,
                                .result = (char *)r->gpu.result + part.result,
                                .count = c->calls[r->s->call].count,
                                .element_bytes = collective_type_bytes(c->point->type),
                                .root = c->point->root};
    }
    int err = nccl_enqueue(r, &of, r->s->first);
    if (err == -EAGAIN)
        return await_comm(r);
    r->gpu.broken |= err != 0;
    return err;
}

static int queue_call(struct collective *c, unsigned call)
{
    struct nccl_state *s = c->state;

    s->call = call;
    return each(c, queue);
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
    int err = group(c, true);

    err = err ? err : queue_call(c, call);
    return err ? err : group(c, false);
}

/* The first of its kind: NCCL may wait for its peers in it. */
static int queue_first(struct collective *c, unsigned call)
{
    struct nccl_state *s = c->state;

    s->first = true;
    int err = queue_call(c, call);
    s->first = false;
    return err ? err : each(c, await_comm);
}

static int look(struct nccl_rank *r)
{
    return library_gpu_look(&r->c, &r->gpu);
}

static int await_stream(struct nccl_rank *r)
{
    return library_gpu_await(&r->c, &r->gpu, library_gpu_look, r->s->expected_ns);
}

/* How long nothing need be seen of a call: so much longer than the last one took, and all that a
 * slow network takes where there was none. */
static int await_all(struct collective *c, double bytes)
{
    struct nccl_state *s = c->state;

    s->expected_ns = s->ns_per_byte > 0 ? (uint64_t)(TIMES_SLOWER * s->ns_per_byte * bytes)
                                        : library_gpu_slowest_ns(c, bytes);
    return each(c, await_stream);
}

static int call_done(struct collective *c, unsigned call, uint64_t begin_ns)
{
    struct nccl_state *s = c->state;
    double bytes = bytes_of(c, call);
    int err = await_all(c, bytes);

    if (!err)
        s->ns_per_byte = (double)(clock_now_ns() - begin_ns) / bytes;
    return err;
}

static int call_first(struct collective *c, unsigned call)
{
    uint64_t begin_ns = clock_now_ns();
    int err = queue_first(c, call);

    return err ? err : call_done(c, call, begin_ns);
}

static int nccl_start(struct collective *c, unsigned call)
{
    ((struct nccl_state *)c->state)->bytes += bytes_of(c, call);
    return queue_all(c, call);
}

static int nccl_run(struct collective *c, unsigned call)
{
    uint64_t begin_ns = clock_now_ns();
    int err = nccl_start(c, call);

    return err ? err : call_done(c, call, begin_ns);
}

static int nccl_test(struct collective *c, bool *done)
{
    int err = each(c, look);

    *done = !err;
    return err == -EAGAIN ? 0 : err;
}

static int barrier(struct collective *c, bool first)
{
    struct nccl_state *s = c->state;
    /* none of a sample's time, and each operation may be short */
    int err = each(c, look_comm);

    if (!err)
        err = first ? queue_first(c, BARRIER) : queue_all(c, BARRIER);
    s->expected_ns = library_gpu_slowest_ns(c, 0);
    return err ? err : each(c, await_stream);
}

static int nccl_barrier(struct collective *c)
{
    return barrier(c, false);
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
                err = queue_call(c, call);
        err = err ? err : group(c, false);
    }
    return err;
}

static int capture(struct nccl_rank *r)
{
    int err = gpu_ops(r->gpu.gpu)->graph_begin(r->gpu.stream);

    r->captures = !err;
    return err ? collective_fail(&r->c, err, "nccl: %s", gpu_error(r->gpu.gpu)) : 0;
}

static int end_capture(struct nccl_rank *r)
{
    int err = r->captures ? gpu_ops(r->gpu.gpu)->graph_end(r->gpu.stream, &r->graph) : 0;

    r->captures = false;
    return err ? collective_fail(
                     &r->c, err, "nccl: no graph of %llu operations: %s",
                     (unsigned long long)(collective_batch(r->c.point) / r->c.point->graphs),
                     gpu_error(r->gpu.gpu))
               : 0;
}

static int launch(struct nccl_rank *r)
{
    int err = gpu_ops(r->gpu.gpu)->graph_launch(r->gpu.stream, r->graph);

    r->gpu.broken |= err != 0;
    return err ? collective_fail(&r->c, err, "nccl: %s", gpu_error(r->gpu.gpu)) : 0;
}

static int nccl_run_batch(struct collective *c)
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
        err = each(c, launch);
    return err ? err : await_all(c, bytes);
}

/* NCCL looks at its algorithm's variables while a communicator is made. What they were comes
 * back. */
struct kept {
    char *algorithm, *protocol;
};

static char *swap(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *kept = old ? xstrdup(old) : NULL;

    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
    return kept;
}

static int make_comm(struct collective *c)
{
    const char *asked = c->point->algorithm, *algorithm = NULL, *protocol = NULL;
    struct kept kept = {0};
    char error[256] = "";

    if (*asked && nccl_log_algorithm(asked, &algorithm, &protocol, error, sizeof(error)))
        return collective_fail(c, -EOPNOTSUPP, "%s", error);
    if (algorithm)
        kept.algorithm = swap("NCCL_ALGO", algorithm);
    if (protocol)
        kept.protocol = swap("NCCL_PROTO", protocol);
    int err = each(c, nccl_begin_comm);
    err = err ? err : each(c, await_comm);
    if (algorithm)
        free(swap("NCCL_ALGO", kept.algorithm));
    if (protocol)
        free(swap("NCCL_PROTO", kept.protocol));
    free(kept.algorithm);
    free(kept.protocol);
    return err;
}

/* Calls before anything is measured: they connect, and of the longest NCCL says how. */
static int nccl_join(struct collective *c, const struct collective_address *addresses, unsigned n)
{
    struct nccl_state *s = c->state;
    unsigned most = 0;

    for (unsigned i = 1; i < c->n_calls; i++)
        if (c->calls[i].count > c->calls[most].count)
            most = i;
    nccl_log_begin(&s->says);
    int err = take_addresses(c, addresses, n);
    if (!err)
        err = make_comm(c);
    if (!err && c->point->registered != COLLECTIVE_REGISTER_NONE) {
        err = each(c, nccl_begin_register);
        err = err ? err : each(c, await_comm);
        err = err ? err : each(c, nccl_check_registered);
    }
    if (!err)
        err = call_first(c, most);
    nccl_log_end(&s->says);
    /* Each other call once, and the barrier's: NCCL may connect anew for another size (2.22 and
     * later). */
    for (unsigned i = 0; i < c->n_calls && !err; i++)
        err = i == most ? 0 : call_first(c, i);
    if (!err)
        err = barrier(c, true);
    nccl_log_check(&s->says);
    if (err || !c->point->graphs)
        return err;
    /* A graph for each GPU, all captured at once: NCCL's groups are of all ranks of the process. A
     * capture that was begun is ended, whatever failed. */
    err = each(c, capture);
    if (!err)
        err = queue_operations(c);
    if (!err)
        return each(c, end_capture);
    for (unsigned i = 0; i < s->n_ranks; i++)
        end_capture(&s->ranks[i]);
    return err;
}

static void nccl_tell(struct collective *c, struct collective_report *told)
{
    const struct nccl_state *s = c->state;
    const struct nccl_log *says = &s->says;
    char version[64];
    const char *device = c->point->device, *network = says->network ? says->devices : "";

    nccl_version(version, sizeof(version));
    snprintf(told->algorithm, sizeof(told->algorithm), "%s%s",
             s->shared && c->n > 1 ? LIBRARY_GPU_SHARED : "", says->algorithm);
    snprintf(told->detail, sizeof(told->detail), "%.24s%s%.40s%s%.40s%s", version,
             says->wires[0] ? ", via " : "", says->wires, network[0] ? ", network " : "", network,
             says->chatty   ? ", writes a line for each call"
             : !says->heard ? ", its debug output was not read"
                            : "");
    snprintf(told->library_algorithm, sizeof(told->library_algorithm), "%s", says->chose);
    snprintf(told->library_protocol, sizeof(told->library_protocol), "%s", says->protocol);
    told->library_channels = says->channels;
    told->carriers = says->carriers;
    gpu_tell_connections(told->detail, sizeof(told->detail));
    sockets_of_nccl(told->sockets, sizeof(told->sockets));
    told->members_add = says->members_add;
    told->switches_add = says->switches_add;
    told->gpu_shared = s->shared && c->n > 1;
    told->simulated = nccl_is_simulated() || library_gpu_simulated(&s->ranks[0].gpu);
    if (says->n_devices == 1 && network[0] && !c->point->device[0])
        device = network; /* what was asked for is the claim, whatever NCCL says that it took */
    library_flow(told, device, library_least(&s->ranks[0].c, s->bytes));
}

static void nccl_close(struct collective *c)
{
    struct nccl_state *s = c->state;

    if (!s)
        return;
    nccl_log_close(&s->says);
    for (unsigned i = 0; i < s->n_ranks; i++) /* NCCL waits for its graphs */
        if (s->ranks[i].graph && !s->ranks[i].gpu.broken)
            gpu_ops(s->ranks[i].gpu.gpu)->graph_close(s->ranks[i].graph);
    for (unsigned i = 0; i < s->n_ranks; i++)
        nccl_begin_finalize(&s->ranks[i]);
    for (unsigned i = 0; i < s->n_ranks; i++) {
        if (s->ranks[i].comm && !s->ranks[i].gpu.broken)
            await_comm(&s->ranks[i]);
        nccl_close_comm(&s->ranks[i]);
    }
    for (unsigned i = 0; i < s->n_ranks; i++)
        library_gpu_close(&s->ranks[i].gpu);
    free(s->ranks);
    free(s->members);
    free(s);
    c->state = NULL;
}

const struct collective_ops collective_nccl = {
    .name = "nccl",
    .device_memory = true,
    .backends = nccl_backends,
    .supports = nccl_supports,
    .open = nccl_open,
    .peers = nccl_peers,
    .address = nccl_address,
    .join = nccl_join,
    .barrier = nccl_barrier,
    .run = nccl_run,
    .run_batch = nccl_run_batch,
    .start = nccl_start,
    .test = nccl_test,
    .fill = nccl_fill,
    .compare = nccl_compare,
    .tell = nccl_tell,
    .close = nccl_close,
};

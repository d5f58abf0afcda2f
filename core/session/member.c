/* SPDX-License-Identifier: Apache-2.0 */
/* One rank's part of a point, from open to close: see session.h. What it does in between:
 * member_run.c, prove.c. */
#include "core/session/member.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/machine.h"

#define LOOK_NS         20000000u   /* between two looks at the channels */
#define LINKS_NS        1000000000u /* and at the links, of our own backends */
#define LIBRARY_OPEN_NS 120000000000u
#define LIBRARY_STEP_NS 30000000000u
#define SLOWEST_GBPS    0.01      /* a network may be as slow as this */
#define CALL_NS         20000000u /* and a message, to each */
#define TIMES_SLOWER    4         /* than before it may be */

static int say_stuck(struct member *m, uint64_t still_ns)
{
    m->c.error[0] = 0; /* that rank 0 has given up follows from it */
    return collective_fail(&m->c, -ETIMEDOUT, "nothing has moved for %.3g s",
                           (double)still_ns / 1e9);
}

static int look(struct member *m, uint64_t now_ns)
{
    helper_hold(m->by_helper ? m->helper : NULL);
    __atomic_store_n(&m->fed_ns, now_ns, __ATOMIC_RELAXED);
    int err = m->look(m);
    helper_let(m->by_helper ? m->helper : NULL);
    return err;
}

static int attend(struct collective *c, uint64_t still_ns)
{
    struct member *m = c->attend_arg;
    uint64_t now_ns = clock_now_ns();
    int err = 0;

    m->moved_ns = now_ns - still_ns;
    /* A slow rank keeps others waiting for as long as its bytes take. So it is a fault that nothing
     * moves in any rank, and none that nothing moves here. */
    bool others = m->c.ops->own && m->others_still_ns;
    if (still_ns >= m->still_ns && (!others || m->others_still_ns(m) >= m->still_ns))
        return say_stuck(m, still_ns);
    if (now_ns - m->looked_ns < LOOK_NS)
        return 0;
    m->looked_ns = now_ns;
    watchdog_feed(m->dog);
    if (m->look)
        err = look(m, now_ns);
    if (err == -ECANCELED && c->ops->own && still_ns >= m->still_ns)
        return say_stuck(m, still_ns);
    if (err || !m->c.ops->own || now_ns - m->links_ns < LINKS_NS)
        return err;
    m->links_ns = now_ns;
    return member_links(m, COLLECTIVE_STILL_NS); /* a dead link is found though others move */
}

static const struct world_member *info(const struct member *m, unsigned member)
{
    return world_member(m->world, m->members[member]);
}

static void prepare(struct member *m, const struct collective_order *order, const uint32_t *members)
{
    m->open = true;
    m->point = order->point;
    if (m->device && m->device[0])
        snprintf(m->point.device, sizeof(m->point.device), "%s", m->device);
    for (unsigned i = 0; i < order->n; i++)
        m->members[i] = members[i];
    m->operation_ns = 0;
    m->ran = m->cpu_known = false;
    m->looked_ns = 0;
    m->still_ns = COLLECTIVE_STILL_NS;
    m->c = (struct collective){.point = &m->point,
                               .world = m->world,
                               .topo = m->topo,
                               .members = m->members,
                               .n = order->n,
                               .me = order->me,
                               .n_calls = order->n_calls,
                               .attend = attend,
                               .attend_arg = m};
    const struct world_member *own = info(m, m->c.me);
    m->first_of_node = m->first_of_machine = true;
    for (unsigned i = 0; i < m->c.me; i++) {
        const struct world_member *o = info(m, i);
        m->first_of_node &= o->node != own->node;
        m->first_of_machine &= o->node != own->node && !machine_same(o->machine, own->machine);
    }
}

static int find_backend(struct member *m)
{
    const struct collective_ops *ops = m->find(m->point.backend);
    char why[COLLECTIVE_ERROR_BYTES] = "";

    if (!ops)
        return collective_fail(&m->c, -EOPNOTSUPP, "this build knows no backend '%s'",
                               m->point.backend);
    int err = ops->supports ? ops->supports(&m->point, m->c.n, why, sizeof(why)) : 0;
    if (err)
        return collective_fail(&m->c, err, "%s", why);
    m->c.ops = ops;
    return 0;
}

/* Each 0, or -errno with m->c.error. `members` and calls are copied. */
static int member_open(struct member *m, const struct member_job *job)
{
    const struct collective_order *order = job->order;

    prepare(m, order, job->members);
    if (m->device && strlen(m->device) >= sizeof(m->point.device))
        return collective_fail(&m->c, -EOPNOTSUPP,
                               "'%.60s...' names more devices than can be recorded", m->device);
    m->c.calls = m->calls = xmemdup(job->calls, order->n_calls * sizeof(*job->calls));
    m->c.extra = m->extra = order->n_extra ? xmemdup(job->extra, order->n_extra) : NULL;
    m->c.n_extra = order->n_extra;
    int err = find_backend(m);
    if (err)
        return err;
    if (!m->c.ops->own && !m->by_helper) /* before it is bound, so that the watchdog is not */
        err = watchdog_open(&m->dog);
    if (err)
        return collective_fail(&m->c, err, "no timer for a watchdog: %s", strerror(-err));
    /* A CPU of its own, where there is one for each. What the caller says of crowds is for a
     * machine that nobody has seen. A library on GPUs has threads that carry the bytes: they would
     * inherit the one CPU and wait there for this thread, and it places them itself. So do threads
     * of a backend that is made of several. */
    unsigned cpus[WORLD_RANKS_MAX];
    m->point.crowded = m->topo && order->cpu_ranks > topo_cpus(m->topo);
    if (m->topo && !m->point.crowded && !m->c.ops->device_memory && !m->c.ops->alone &&
        !topo_spread(m->topo, -1, order->cpu_ranks, cpus))
        m->bound = !topo_bind_self(m->topo, cpus[order->cpu_rank]);
    member_watch(m, COLLECTIVE_ASK_OPEN, NULL);
    err = m->c.ops->open(&m->c);
    watchdog_rest(m->dog);
    /* Not known is not wrong: without a library that tells, nothing is told. */
    char list[sizeof(m->c.gpu)], *save = NULL;
    snprintf(list, sizeof(list), "%s", world_rank(m->world) ? m->c.gpu : "");
    if (list[0])
        m->watch = gpu_watch_open();
    for (char *gpu = strtok_r(list, "+", &save); gpu; gpu = strtok_r(NULL, "+", &save))
        gpu_watch_add(m->watch, gpu);
    return err ? collective_fail(&m->c, err, "'%s' cannot be opened: %s", m->c.ops->name,
                                 strerror(-err))
               : 0;
}

int member_addresses(struct member *m, struct address_list *addresses)
{
    unsigned peers[WORLD_RANKS_MAX], n = 0;
    int err = m->c.ops->peers ? m->c.ops->peers(&m->c, peers, &n) : 0;

    for (unsigned i = 0; i < n && !err; i++) {
        struct collective_address address = {.member = peers[i]};
        err = m->c.ops->address(&m->c, peers[i], &address);
        if (!err)
            err = addresses_add(addresses, peers[i], address.bytes, address.len);
    }
    return err ? collective_fail(&m->c, err, "no address for a peer: %s", strerror(-err)) : 0;
}

/* from whom */
static int member_join(struct member *m, const struct address_list *list)
{
    struct collective_address *addresses = xcalloc(list->n + 1u, sizeof(*addresses));
    const uint8_t *bytes;
    unsigned n = 0;

    for (size_t at = 0; addresses_next(list, &at, &addresses[n].member, &bytes, &addresses[n].len);
         n++)
        memcpy(addresses[n].bytes, bytes, addresses[n].len);
    member_watch(m, COLLECTIVE_ASK_JOIN, NULL);
    int err = m->c.ops->join(&m->c, addresses, n);
    watchdog_rest(m->dog);
    free(addresses);
    if (err)
        return collective_fail(&m->c, err, "'%s' cannot connect: %s", m->c.ops->name,
                               strerror(-err));
    return member_fill(m, m->point.seed);
}

int member_links(struct member *m, uint64_t for_ns)
{
    bool can = m->open && m->c.ops && m->c.ops->unheard;

    return can ? m->c.ops->unheard(&m->c, for_ns) : 0;
}

/* however far it came; harmless when nothing is open */
static void member_close(struct member *m)
{
    if (!m->open)
        return;
    member_watch(m, COLLECTIVE_ASK_CLOSE, NULL);
    if (m->c.ops)
        m->c.ops->close(&m->c);
    watchdog_close(m->dog);
    m->dog = NULL;
    if (m->bound)
        topo_unbind_self(m->topo);
    overlap_close(&m->overlap);
    path_close(m->path);
    m->path = NULL;
    gpu_watch_close(m->watch);
    m->watch = NULL;
    free(m->calls);
    free(m->extra);
    m->calls = NULL;
    m->extra = NULL;
    m->bound = m->open = false;
}

uint64_t member_patience_ns(const struct member *m, enum collective_request request,
                            const struct session_run *run)
{
    if (request == COLLECTIVE_ASK_OPEN || request == COLLECTIVE_ASK_JOIN)
        return LIBRARY_OPEN_NS;
    if (request != COLLECTIVE_ASK_RUN && request != COLLECTIVE_ASK_CHECK)
        return LIBRARY_STEP_NS;
    /* All that one operation could take, on a network that is not broken. */
    double each = (double)TIMES_SLOWER * (double)m->operation_ns;
    for (unsigned i = 0; !m->operation_ns && i < m->c.n_calls; i++)
        each += 2 * (double)m->calls[i].count * (double)collective_type_bytes(m->point.type) /
                SLOWEST_GBPS;
    if (!m->operation_ns)
        each += (double)CALL_NS * m->c.n_calls * m->c.n;
    if (run)
        each = (each + (double)run->gap_ns + TIMES_SLOWER * (double)run->overlap_ns) *
               (double)run->operations;
    each += COLLECTIVE_STILL_NS;
    return each < 1e18 ? (uint64_t)each : (uint64_t)1e18;
}

void member_watch(struct member *m, enum collective_request request, const struct session_run *run)
{
    static const char *const steps[COLLECTIVE_REQUESTS] = {
        [COLLECTIVE_ASK_OPEN] = "opening",
        [COLLECTIVE_ASK_JOIN] = "connecting",
        [COLLECTIVE_ASK_RUN] = "an operation",
        [COLLECTIVE_ASK_CHECK] = "the operation checked",
        [COLLECTIVE_ASK_CLOSE] = "disconnecting"};
    char name[WORLD_NAME_MAX + 32], what[160];

    m->still_ns = COLLECTIVE_STILL_NS;
    if (!m->dog && !m->by_helper)
        return;
    m->still_ns = member_patience_ns(m, request, run);
    __atomic_store_n(&m->limit_ns, m->still_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&m->fed_ns, clock_now_ns(), __ATOMIC_RELAXED);
    if (!m->dog)
        return;
    snprintf(what, sizeof(what), "%s: %s by '%s'",
             world_name(m->world, world_rank(m->world), name, sizeof(name)), steps[request],
             m->c.ops->name);
    watchdog_set(m->dog, m->still_ns + COLLECTIVE_ENDS_NS, what);
}

/* --- a member's part of a request, by its own thread or by a helper thread that may be abandoned
 * --- */

#define STEP_NS 30000000000u /* what a helper does before a backend's limit is set */

static int act(void *arg)
{
    struct member_job *j = arg;
    struct member *m = j->member;

    switch (j->what) {
    case COLLECTIVE_ASK_OPEN:
        return member_open(m, j);
    case COLLECTIVE_ASK_JOIN:
        return member_join(m, j->addresses);
    case COLLECTIVE_ASK_RUN:
        return member_run(m, &j->run, &j->times);
    case COLLECTIVE_ASK_OVERLAP:
        return member_overlap_alone(m, j->overlap_ns, &j->ns);
    case COLLECTIVE_ASK_CHECK:
        return member_check(m);
    default:
        member_close(m);
        return 0;
    }
}

static int await(void *arg)
{
    struct member *m = arg;

    return m->await(m);
}

uint64_t member_still_ns(const struct member *m)
{
    uint64_t limit_ns = __atomic_load_n(&m->limit_ns, __ATOMIC_RELAXED);
    uint64_t fed_ns = __atomic_load_n(&m->fed_ns, __ATOMIC_RELAXED), now_ns = clock_now_ns();
    uint64_t still_ns = now_ns > fed_ns ? now_ns - fed_ns : 0;

    return still_ns > limit_ns ? still_ns : 0;
}

int member_do(struct member *m, struct member_job *job)
{
    job->member = m;
    m->moved_ns = m->links_ns = clock_now_ns();
    if (helper_abandoned(m->helper))
        return -ECANCELED;
    if (job->what == COLLECTIVE_ASK_OPEN) {
        /* The thread is made before this one is bound to a CPU. */
        const struct collective_ops *ops = m->find(job->order->point.backend);
        bool blocks = ops && ops->blocks;
        if (blocks && !m->job)
            m->job = xcalloc(1, sizeof(*m->job));
        if (blocks && !m->helper && helper_open(&m->helper))
            m->helper = NULL;
        m->by_helper = blocks && m->helper;
    }
    if (!m->open && job->what != COLLECTIVE_ASK_OPEN)
        return 0;
    if (!m->by_helper)
        return act(job);
    /* The caller's is on its stack, where an abandoned helper may still write. */
    *m->job = *job;
    __atomic_store_n(&m->limit_ns, STEP_NS, __ATOMIC_RELAXED);
    __atomic_store_n(&m->fed_ns, clock_now_ns(), __ATOMIC_RELAXED);
    int err = helper_do(m->helper, act, m->job, await, m);
    if (!helper_abandoned(m->helper))
        *job = *m->job;
    return err;
}

void member_end(struct member *m)
{
    if (helper_abandoned(m->helper))
        return;
    helper_close(m->helper);
    m->helper = NULL;
    free(m->job);
    m->job = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A member's part of a request, by its own thread or by a hand that may be left: see order.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/order.h"
#include "core/clock.h"

#define STEP_NS 30000000000u /* what a hand does before a backend's limit is set */

static int act(void *arg)
{
    struct member_job *j = arg;
    struct member *m = j->member;

    switch (j->what) {
    case COLLECTIVE_ASK_OPEN:
        return member_open(m, j->order, j->members, j->calls);
    case COLLECTIVE_ASK_JOIN:
        return member_join(m, j->cards);
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

static bool is_handed(const struct member *m, const struct collective_order *order)
{
    const struct collective_ops *ops = m->find(order->point.backend);

    return m->hand && m->job && ops && ops->blocks;
}

/* The caller's is on its stack, where a hand that is left may still write. */
static int do_handed(struct member *m, struct member_job *job)
{
    *m->job = *job;
    __atomic_store_n(&m->limit_ns, STEP_NS, __ATOMIC_RELAXED);
    __atomic_store_n(&m->fed_ns, clock_now_ns(), __ATOMIC_RELAXED);
    pulse_at(m->pulse, ++m->request);
    int err = hand_do(m->hand, act, m->job, await, m);
    if (hand_left(m->hand))
        return err;
    pulse_at(m->pulse, 0);
    *job = *m->job;
    return err;
}

int member_do(struct member *m, struct member_job *job)
{
    job->member = m;
    m->moved_ns = m->links_ns = clock_now_ns();
    if (hand_left(m->hand))
        return -ECANCELED;
    if (job->what == COLLECTIVE_ASK_OPEN) {
        m->handed = is_handed(m, job->order);
        m->request = (uint64_t)job->order->serial << 32;
    }
    if (!m->open && job->what != COLLECTIVE_ASK_OPEN)
        return 0;
    return m->handed ? do_handed(m, job) : act(job);
}

/* The thread first, so that it is not of a rank that is bound. */
void member_stand_beside(struct member *m, struct collective_hello *hello)
{
    uint16_t port = (uint16_t)hello->port;
    int err;

    m->job = calloc(1, sizeof(*m->job));
    if (!hello->beside || hand_open(&m->hand))
        m->hand = NULL;
    if (!hello->beside || (world_rank(m->world) && !port))
        return;
    err = world_rank(m->world) ? pulse_follow(&m->pulse, m->world, port)
                               : pulse_lead(&m->pulse, m->world, &port);
    hello->port = err ? 0 : port;
}

void member_stand_alone(struct member *m)
{
    pulse_close(m->pulse);
    m->pulse = NULL;
    if (hand_left(m->hand))
        return;
    hand_close(m->hand);
    m->hand = NULL;
    free(m->job);
    m->job = NULL;
}

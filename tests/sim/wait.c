/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host waits: until the real clock has got to where the schedule has the end of what it waits for.
 *
 * As long as one thread alone uses the driver, nothing can be queued while it waits: the schedule is
 * worked out to that end at once, what is to be done to the data is done, and the rest of the time is
 * slept. With several threads, or behind a word that is still to be released, it goes from one moment
 * at which something happens to the next.
 */
#include "tests/sim/sim.h"

#include <sys/prctl.h>
#include <time.h>

#define QUEUE_MAX    1024 /* operations of a stream that the driver takes before it makes one wait */
#define SPIN_NS      40000.0   /* a sleep ends this much late, or less */
#define SLEEP_MAX_NS 5000000.0 /* another thread may have changed something */
#define HELD_NS      20000.0   /* a word in memory may change at any time */
#define QUERY_NS     200000.0  /* who asks in a loop is to leave the CPU to others */

static bool any_held(const struct sim *sim)
{
    for (const struct sim_stream *stream = sim->streams; stream; stream = stream->next)
        if (stream->head && stream->head->state == SIM_HELD && stream->head->released_ns < 0)
            return true;
    return false;
}

/* The kernel rounds a sleep up by the thread's slack: 50 us, unless less is asked for. */
static void sleep_ns(long ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    int slack_ns = prctl(PR_GET_TIMERSLACK);

    prctl(PR_SET_TIMERSLACK, 1);
    nanosleep(&t, NULL);
    if (slack_ns > 0)
        prctl(PR_SET_TIMERSLACK, slack_ns);
}

/* Gives the lock away until `until_ns` is near, `most_ns` at most. */
static void snooze(struct sim *sim, double until_ns, double most_ns)
{
    double gap_ns = until_ns - sim_clock(sim) - SPIN_NS;

    gap_ns = gap_ns < most_ns ? gap_ns : most_ns;
    pthread_mutex_unlock(&sim->lock);
    if (gap_ns >= 1)
        sleep_ns((long)gap_ns);
    pthread_mutex_lock(&sim->lock);
}

static CUresult error_of(const struct sim *sim, const struct sim_stream *stream)
{
    return stream ? sim->device[stream->gpu].error : CUDA_SUCCESS;
}

/* CUDA_ERROR_NOT_READY, or what it came to, as far as the schedule is known. */
static CUresult state_of(const struct sim *sim, const struct sim_stream *stream, uint64_t seq)
{
    CUresult rc = error_of(sim, stream);

    if (rc || !stream)
        return rc;
    return stream->done_seq >= seq ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult look(struct sim *sim, uint64_t id, uint64_t seq)
{
    sim_poll(sim);
    sim_advance(sim, sim_clock(sim));
    return state_of(sim, sim_stream_by_id(sim, id), seq);
}

static void apply_to(struct sim *sim, uint64_t id, uint64_t seq)
{
    struct sim_stream *stream = sim_stream_by_id(sim, id);

    if (stream)
        sim_apply(sim, stream, seq);
}

/* Works the schedule out to the end that is waited for, or as far as it can be known. */
static CUresult look_ahead(struct sim *sim, uint64_t id, uint64_t seq)
{
    CUresult rc = look(sim, id, seq);
    double next;

    while (rc == CUDA_ERROR_NOT_READY && !sim->many_threads && !any_held(sim)) {
        next = sim_next(sim);
        if (next >= SIM_NEVER)
            break;
        sim_advance(sim, next);
        rc = state_of(sim, sim_stream_by_id(sim, id), seq);
    }
    return rc;
}

CUresult sim_wait(struct sim *sim, uint64_t id, uint64_t seq)
{
    CUresult rc;

    while ((rc = look_ahead(sim, id, seq)) == CUDA_ERROR_NOT_READY) {
        apply_to(sim, id, seq); /* what has begun can be done meanwhile */
        snooze(sim, sim_next(sim), any_held(sim) ? HELD_NS : SLEEP_MAX_NS);
    }
    if (!rc)
        apply_to(sim, id, seq);
    while (sim->now_ns > sim_clock(sim) && !sim->many_threads)
        snooze(sim, sim->now_ns, SIM_NEVER);
    if (!rc)
        sim_host_acted(sim);
    sim_streams_reap(sim);
    return rc;
}

CUresult sim_query(struct sim *sim, uint64_t id, uint64_t seq)
{
    CUresult rc = look(sim, id, seq);

    if (!rc || rc == CUDA_ERROR_NOT_READY)
        apply_to(sim, id, seq); /* what has begun can be done meanwhile */
    if (!rc)
        sim_host_acted(sim);
    if (rc == CUDA_ERROR_NOT_READY)
        snooze(sim, sim_next(sim), any_held(sim) ? HELD_NS : QUERY_NS);
    sim_streams_reap(sim);
    return rc;
}

CUresult sim_wait_device(struct sim *sim, unsigned gpu)
{
    uint64_t id[256], seq[256];
    unsigned n = 0;
    CUresult rc = CUDA_SUCCESS;

    for (struct sim_stream *stream = sim->streams; stream && n < 256; stream = stream->next)
        if (stream->gpu == gpu) {
            id[n] = stream->id;
            seq[n++] = stream->queued_seq;
        }
    for (unsigned i = 0; i < n && !rc; i++)
        rc = sim_wait(sim, id[i], seq[i]);
    return rc;
}

CUresult sim_wait_room(struct sim *sim, struct sim_stream *stream)
{
    uint64_t id = stream->id, seq = stream->queued_seq;
    CUresult rc;

    if (seq < QUEUE_MAX || stream->done_seq > seq - QUEUE_MAX)
        return CUDA_SUCCESS;
    while ((rc = look(sim, id, seq - QUEUE_MAX)) == CUDA_ERROR_NOT_READY)
        snooze(sim, sim_next(sim), HELD_NS);
    return rc;
}

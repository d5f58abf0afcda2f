/* SPDX-License-Identifier: Apache-2.0 */
/* A launch over a group of hosts: see group.h. */
#include "harness/hosts/group.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/exit_code.h"
#include "harness/child.h"
#include "harness/hosts/pair_order.h"
#include "harness/hosts/talk.h"

#define PORT_TRIES 16
#define AT_ONCE    32             /* connections that are being made */
#define LISTEN_NS  20000000000ull /* from its first word on */
#define GONE_NS    7000000000ull  /* for rank 0 to say who is gone, and to end */
#define SILENT_NS  500000000ull   /* for rank 0 to say why all others have given it up, */
#define MUTE_NS    6000000000ull  /* and it has said nothing for so long before that */
#define SLICE_MS   200

static volatile sig_atomic_t stop; /* set by the signal handler alone */

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* One connection; number 0 is rank 0, or with mpirun and srun all of them. */
struct state {
    uint64_t since_ns; /* it was started, or has said its first word */
    bool there;        /* it has */
};

struct work {
    const struct group *g;
    struct talk talk;
    struct group_seat *seats;
    struct end *ends;
    struct state *states;
    unsigned n, started;
    const struct end *gone; /* of the others, the first that was seen to have ended badly */
    uint64_t gone_ns;       /* when that was */
    char program[4096], where[64];
};

static int start_end(struct work *w, unsigned i, unsigned port)
{
    const struct group_seat *seat = &w->seats[i];
    struct end *e = &w->ends[i];

    *e = (struct end){.name = seat->host->name};
    group_order(w->g, seat, w->talk.token, port, false, &e->command);
    int err = end_start(e);
    w->started = i + 1;
    w->states[i] = (struct state){.since_ns = clock_now_ns()};
    if (err)
        return talk_give_up(&w->talk, "cannot start '%s' for '%s': %s",
                            e->command.n ? e->command.all[0] : "the launcher", e->name,
                            strerror(-err));
    if (w->g->run->launcher->ranks)
        end_hang_up(e);
    else
        end_tell(e, w->talk.secret);
    return 0;
}

/* With mpirun and srun the others' first words come through the same stream, as "plumb-peer". */
static int check_peers(struct work *w, const struct end *e)
{
    const char *at = e->output.text;
    int status = 0;

    while (!status && (at = stream_find(at, "peer", w->talk.token)) != NULL) {
        struct stream_hello hello = stream_hello(at, "peer", w->talk.token);
        if (!hello.there)
            return 0;
        status = talk_check_version(&w->talk, hello.name, hello.version);
        at = strchr(at, '\n');
    }
    return status;
}

/* Looks whether this end has said its first word, and whether it is the right one. 0 or PAIR_FAILED. */
static int look_at_hello(struct work *w, unsigned i)
{
    struct end *e = &w->ends[i];
    struct state *s = &w->states[i];

    if (s->there)
        return 0;
    struct stream_hello hello = stream_hello(e->output.text, "begin", w->talk.token);
    if (hello.there) {
        s->there = true;
        s->since_ns = clock_now_ns();
        return talk_check_version(&w->talk, e->name, hello.version);
    }
    pair_program(w->g->run, w->seats[i].host, w->g->program, w->program, sizeof(w->program));
    if (end_is_over(e))
        return talk_stopped(&w->talk, e, w->program);
    return clock_now_ns() >= s->since_ns + w->g->run->wait_ns ? talk_mute(&w->talk, e) : 0;
}

/* Lets some time pass and reads. 0 or PAIR_FAILED. */
static int attend(struct work *w)
{
    int err = stop ? -EINTR : ends_attend(w->ends, w->started, SLICE_MS);

    return err ? talk_give_up(&w->talk, "cannot read what the hosts say: %s", strerror(-err)) : 0;
}

/* Rank 0 until it listens. 0, -EADDRINUSE or PAIR_FAILED. */
static int wait_for_listener(struct work *w)
{
    const struct end *e = &w->ends[0];

    for (;;) {
        int status = look_at_hello(w, 0);
        if (status || e->listening)
            return status;
        if (end_is_over(e))
            return e->taken ? -EADDRINUSE : talk_stopped(&w->talk, e, w->program);
        if (w->states[0].there && clock_now_ns() >= w->states[0].since_ns + LISTEN_NS)
            return talk_give_up(&w->talk, "'%s' does not begin to listen", e->name);
        if ((status = attend(w)) != 0)
            return status;
    }
}

static int start_leader(struct work *w, unsigned *port)
{
    int status = -EADDRINUSE;

    for (unsigned i = 0; status == -EADDRINUSE && i < PORT_TRIES; i++) {
        ends_stop(w->ends, w->started, END_STOP_NS);
        *port = group_port(w->g, i);
        status = start_end(w, 0, *port);
        if (!status)
            status = wait_for_listener(w);
    }
    if (status == -EADDRINUSE)
        return talk_give_up(&w->talk,
                            "on '%s' %d ports from %u on are all in use: give another --port",
                            w->ends[0].name, PORT_TRIES, group_port(w->g, 0));
    return status;
}

static int look_at_all(struct work *w)
{
    int status = 0;

    for (unsigned i = 0; !status && i < w->started; i++)
        status = look_at_hello(w, i);
    return status;
}

static unsigned under_way(const struct work *w)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->started; i++)
        n += !w->states[i].there;
    return n;
}

static int start_others(struct work *w, unsigned port)
{
    int status = 0;

    while (!status && w->started < w->n && !end_is_over(&w->ends[0])) {
        if (under_way(w) < AT_ONCE)
            status = start_end(w, w->started, port);
        else if (!(status = attend(w)))
            status = look_at_all(w);
    }
    return status;
}

/* The first of the others that has ended as it should not. */
static const struct end *find_gone(const struct work *w)
{
    for (unsigned i = 1; i < w->started; i++)
        if (end_is_over(&w->ends[i]) && w->ends[i].status)
            return &w->ends[i];
    return NULL;
}

/* Have all others given up, and rank 0 says nothing of it? Then it is rank 0 that is lost, and perhaps its host with all that runs there. */
static int look_for_silence(struct work *w)
{
    const struct end *last = NULL;

    for (unsigned i = 1; i < w->started; i++) {
        const struct end *e = &w->ends[i];
        if (!end_is_over(e) && w->seats[i].host == w->seats[0].host)
            continue;
        if (!end_is_over(e) || e->status != EXIT_INCOMPLETE)
            return 0;
        last = !last || e->ended_ns > last->ended_ns ? e : last;
    }
    if (!last || w->started < w->n || clock_now_ns() < last->ended_ns + SILENT_NS ||
        w->ends[0].said_ns + MUTE_NS > last->ended_ns)
        return 0;
    return talk_give_up(
        &w->talk, "rank 0, on '%s', says nothing, and all others have given it up: on '%s' %s",
        w->ends[0].name, last->name, *last->last ? last->last : "without a word");
}

/* Rank 0 knows best who is gone, and what can be measured without; where it says nothing in time, here is who. */
static int look_for_gone(struct work *w)
{
    const struct end *e = w->gone ? w->gone : find_gone(w); /* others may end because of it */

    if (!e || w->ends[0].loss[0])
        return 0;
    if (!w->gone)
        w->gone_ns = clock_now_ns();
    w->gone = e;
    if (clock_now_ns() < w->gone_ns + GONE_NS)
        return 0;
    const struct group_seat *seat = &w->seats[e - w->ends];
    return talk_give_up(&w->talk,
                        "on '%s' %s of %u from %u on ended with status %d, and rank 0 says nothing "
                        "of it%s%s",
                        e->name, seat->n == 1 ? "the rank" : "a rank", seat->n, seat->first,
                        e->status, *e->last ? ": " : "", e->last);
}

static int finish(struct work *w)
{
    const struct end *e = &w->ends[0];
    int status = 0;

    while (!status && !end_is_over(e) &&
           !stream_is_whole(e->output.text, e->output.size, w->talk.token)) {
        status = attend(w);
        if (!status)
            status = look_at_all(w);
        if (!status)
            status = w->g->run->launcher->ranks ? check_peers(w, e) : look_for_silence(w);
        if (!status && !w->g->run->launcher->ranks)
            status = look_for_gone(w);
    }
    return status ? status : talk_take_parts(&w->talk, e, w->program);
}

/* Nothing failed, and yet a rank was lost. */
static int tell_loss(struct work *w)
{
    if (!w->ends[0].loss[0])
        return 0;
    talk_give_up(&w->talk, "a rank that no case needs was lost: on '%s' %s", w->ends[0].name,
                 w->ends[0].loss);
    return PAIR_LOST;
}

static int run_each(struct work *w)
{
    unsigned port = 0;
    int status = start_leader(w, &port);

    if (!status)
        status = start_others(w, port);
    if (!status)
        status = finish(w);
    if (!status)
        status = tell_loss(w);
    bool lost = status == EXIT_INCOMPLETE || status == PAIR_LOST;
    if (status != PAIR_FAILED) /* the others end by themselves, but who was lost */
        ends_wait(w->ends, w->started, lost ? END_LOST_NS : END_GRACE_NS);
    return status;
}

static int run_job(struct work *w)
{
    int status = start_end(w, 0, 0);

    return status ? status : finish(w);
}

static int run(struct work *w)
{
    const struct hosts_run *hosts = w->g->run;

    w->seats = group_seats(hosts, &w->n);
    w->ends = calloc(w->n + 1, sizeof(*w->ends));
    w->states = calloc(w->n + 1, sizeof(*w->states));
    if (!w->seats || !w->ends || !w->states)
        return talk_give_up(&w->talk, "out of memory");
    ends_allow(w->n);
    pair_program(hosts, w->seats[0].host, w->g->program, w->program, sizeof(w->program));
    snprintf(w->where, sizeof(w->where), "all of %zu hosts", hosts->hosts.n);
    int status = talk_begin(&w->talk);
    if (!status)
        status = hosts->launcher->ranks ? run_job(w) : run_each(w);
    talk_end(&w->talk);
    return status;
}

/* Ranks that ended since another one was lost explain nothing: the one that was lost first is the reason. */
static void tell_cause(const struct work *w)
{
    for (unsigned i = 0; i < w->started; i++) {
        const struct end_cause *c = &w->ends[i].cause;
        if (c->lost.kind == NOTICE_NONE)
            continue;
        dprintf(STDERR_FILENO, "rank %u (%s) %s (said by rank %u)\n", c->lost.rank, c->lost.host,
                notice_words(c->lost.kind), c->speaker);
        return;
    }
}

int group_body(void *arg)
{
    const struct group *g = arg;
    struct work w = {.g = g, .talk = {.run = g->run, .program = g->program, .where = w.where}};

    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN); /* an end that is gone shows by its status */
    fcntl(CHILD_SAMPLES_FD, F_SETFD, FD_CLOEXEC);
    int status = run(&w);
    if (w.ends)
        ends_stop(w.ends, w.started, end_grace_ns(stop, status, g->run->launcher->ranks));
    if (status == PAIR_FAILED || status == PAIR_LOST)
        dprintf(STDERR_FILENO, "%s\n", w.talk.reason);
    if (status == PAIR_FAILED)
        tell_cause(&w);
    free(w.ends);
    free(w.states);
    free(w.seats);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A launch between two hosts: see pair.h. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/exit_code.h"
#include "harness/child.h"
#include "harness/hosts/pair_order.h"
#include "harness/hosts/talk.h"

#define PORT_TRIES 16
#define LISTEN_NS  20000000000ull /* from its first word on */
#define SILENT_NS  500000000ull   /* for a leader that was given up to say why */
#define BREAK_NS                                                                                   \
    700000000ull /* for the way to the listener to break, where the leader has lost it */
#define SLICE_MS 200
#define BROKE    255 /* ssh's own, when it lost its connection: a benchmark has none such */

static volatile sig_atomic_t stop; /* set by the signal handler alone */

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

enum { LISTENER, LEADER }; /* of two ends; with ranks the only one is number 0 */

struct work {
    const struct pair *p;
    struct talk talk;
    struct end ends[2];
    unsigned n;
    char program[4096], where[2 * HOSTS_NAME_MAX + 16];
};

static bool same_name(const char *host, const char *says)
{
    const char *at = strchr(host, '@');

    host = at ? at + 1 : host;
    size_t n = strcspn(host, "."), m = strcspn(says, ".");
    return n == m && !strncasecmp(host, says, n);
}

/* The first rank is the one that leads: it must be on the host that the row will name. */
static int check_order(struct work *w, const struct stream_hello *hello)
{
    const struct pair *p = w->p;

    /* Names of this machine need not be the one that it calls itself. */
    if (!p->run->launcher->ranks || p->from->here || same_name(p->from->name, hello->name) ||
        !same_name(p->to->name, hello->name))
        return 0;
    return talk_give_up(&w->talk,
                        "%s put its first process on '%s', not on '%s': see its own options",
                        p->run->launcher->name, p->to->name, p->from->name);
}

/* Has it said that it is there, and is it the right one? 0: yes; -EAGAIN: not yet; PAIR_FAILED. */
static int look_at_hello(struct work *w, const struct end *e)
{
    struct stream_hello hello = stream_hello(e->output.text, "begin", w->talk.token);
    struct stream_hello peer = stream_hello(e->output.text, "peer", w->talk.token);
    int status = hello.there ? talk_check_version(&w->talk, e->name, hello.version) : -EAGAIN;

    if (!status)
        status = check_order(w, &hello);
    if (!status && peer.there)
        status = talk_check_version(&w->talk, w->p->to->name, peer.version);
    return status;
}

/* Starts one end; an end that needs a secret is told it. 0 or PAIR_FAILED. */
static int start_end(struct work *w, unsigned i, enum hosts_task task, unsigned port)
{
    const struct host *host = task == TASK_LISTEN ? w->p->to : w->p->from;
    struct end *e = &w->ends[i];

    *e = (struct end){.name = host->name};
    pair_order(w->p, task, w->talk.token, port, false, &e->command);
    pair_program(w->p->run, host, w->p->program, w->program, sizeof(w->program));
    int err = end_start(e);
    w->n = i + 1;
    if (err)
        return talk_give_up(&w->talk, "cannot start '%s' for '%s': %s",
                            e->command.n ? e->command.all[0] : "the launcher", e->name,
                            strerror(-err));
    if (task != TASK_RANKS)
        end_tell(e, w->talk.secret);
    else
        end_hang_up(e);
    return 0;
}

/* Until the end is there and, of a listener, listens. 0, -EADDRINUSE, or PAIR_FAILED. */
static int wait_until_there(struct work *w, struct end *e, bool listener)
{
    uint64_t until_ns = clock_now_ns() + w->p->run->wait_ns;
    bool there = false;

    for (;;) {
        int status = there ? 0 : look_at_hello(w, e);
        if (status == PAIR_FAILED)
            return status;
        if (!status && !there) {
            there = true;
            until_ns = clock_now_ns() + LISTEN_NS;
        }
        if (there && (!listener || e->listening))
            return 0;
        if (end_is_over(e))
            return e->taken ? -EADDRINUSE : talk_stopped(&w->talk, e, w->program);
        if (clock_now_ns() >= until_ns)
            return there ? talk_give_up(&w->talk, "'%s' does not begin to listen", e->name)
                         : talk_mute(&w->talk, e);
        int err = stop ? -EINTR : ends_attend(w->ends, w->n, SLICE_MS);
        if (err)
            return talk_give_up(&w->talk, "cannot read what '%s' says: %s", e->name,
                                strerror(-err));
    }
}

static int start_listener(struct work *w, unsigned *port)
{
    int status = -EADDRINUSE;

    for (unsigned i = 0; status == -EADDRINUSE && i < PORT_TRIES; i++) {
        ends_stop(w->ends, w->n, END_STOP_NS);
        *port = pair_port(w->p, i);
        status = start_end(w, LISTENER, TASK_LISTEN, *port);
        if (!status)
            status = wait_until_there(w, &w->ends[LISTENER], true);
    }
    if (status == -EADDRINUSE)
        return talk_give_up(&w->talk,
                            "on '%s' %d ports from %u on are all in use: give another --port",
                            w->p->to->name, PORT_TRIES, pair_port(w->p, 0));
    return status;
}

static const char *last_word(const struct end *e)
{
    return *e->last ? e->last : "it ended without a word";
}

static int give_up_broken(struct work *w, const struct end *e)
{
    return talk_give_up(&w->talk, "the connection to '%s' broke: %s", e->name, last_word(e));
}

/* A leader whose peer is gone knows its address only, and not why; the way to the listener may tell both. */
static int take_rows(struct work *w, const struct end *e)
{
    const struct end *listener = &w->ends[LISTENER];
    struct stream_parts parts;

    if (w->n == 2 && !stream_parts(e->output.text, e->output.size, w->talk.token, &parts) &&
        parts.status == EXIT_INCOMPLETE) {
        ends_wait(&w->ends[LISTENER], 1, BREAK_NS);
        if (listener->ended && listener->status == BROKE)
            return give_up_broken(w, listener);
    }
    return talk_take_parts(&w->talk, e, w->program);
}

/* A listener serves one leader. Where that falls silent it has ended badly, and the leader would have had its say. */
static int look_for_silence(struct work *w)
{
    const struct end *listener = &w->ends[LISTENER];

    if (w->n < 2 || !end_is_over(listener) || !listener->status ||
        clock_now_ns() < listener->ended_ns + SILENT_NS)
        return 0;
    if (listener->status == BROKE) /* nobody knows what its program said */
        return give_up_broken(w, listener);
    return talk_give_up(&w->talk, "'%s', which leads, says nothing, and '%s' has given it up: %s",
                        w->ends[LEADER].name, listener->name, last_word(listener));
}

static int finish(struct work *w, struct end *e)
{
    int err = 0, status = 0;

    while (!err && !end_is_over(e) &&
           !stream_is_whole(e->output.text, e->output.size, w->talk.token)) {
        err = stop ? -EINTR : ends_attend(w->ends, w->n, SLICE_MS);
        if (!err)
            status = look_at_hello(w, e); /* of a second rank it may come late */
        if (status != PAIR_FAILED)
            status = look_for_silence(w);
        if (status == PAIR_FAILED)
            return status;
    }
    if (err)
        return talk_give_up(&w->talk, "cannot read what '%s' says: %s", e->name, strerror(-err));
    return take_rows(w, e);
}

static int run_two(struct work *w)
{
    unsigned port = 0;
    int status = start_listener(w, &port);

    if (!status)
        status = start_end(w, LEADER, TASK_LEAD, port);
    if (!status)
        status = wait_until_there(w, &w->ends[LEADER], false);
    if (!status)
        status = finish(w, &w->ends[LEADER]);
    if (status != PAIR_FAILED && status != EXIT_INCOMPLETE) /* the listener ends by itself */
        ends_wait(w->ends, w->n, END_GRACE_NS);
    return status;
}

static int run_ranks(struct work *w)
{
    int status = start_end(w, 0, TASK_RANKS, 0);

    return status ? status : finish(w, &w->ends[0]);
}

int pair_body(void *arg)
{
    const struct pair *p = arg;
    struct work w = {.p = p, .talk = {.run = p->run, .program = p->program, .where = w.where}};

    snprintf(w.where, sizeof(w.where), "'%s' and '%s'", p->from->name, p->to->name);
    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN); /* an end that is gone shows by its status */
    fcntl(CHILD_SAMPLES_FD, F_SETFD, FD_CLOEXEC);
    int status = talk_begin(&w.talk);
    if (!status)
        status = p->run->launcher->ranks ? run_ranks(&w) : run_two(&w);
    talk_end(&w.talk);
    ends_stop(w.ends, w.n, end_grace_ns(stop, status, p->run->launcher->ranks));
    if (status == PAIR_FAILED)
        dprintf(STDERR_FILENO, "%s\n", w.talk.reason);
    return status;
}

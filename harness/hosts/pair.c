/* SPDX-License-Identifier: Apache-2.0 */
/* A launch between two hosts: see pair.h. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/meet.h"
#include "core/group/secret.h"
#include "harness/child.h"
#include "harness/hosts/end.h"
#include "harness/hosts/pair_order.h"
#include "harness/hosts/stream.h"

#define PORT_TRIES    16
#define LISTEN_NS     20000000000ull /* from its first word on */
#define END_GRACE_NS  3000000000ull  /* for the listener, after the leader */
#define STOP_GRACE_NS 5000000000ull  /* for what runs on a host to notice that we have hung up */
#define TERM_GRACE_NS                                                                              \
    1500000000ull /* the same when we are to end ourselves: less than child.c gives us */
#define SLICE_MS 200

static volatile sig_atomic_t stop; /* set by the signal handler alone */

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

enum { LISTENER, LEADER }; /* of two ends; with ranks the only one is number 0 */

struct work {
    const struct pair *p;
    struct end ends[ENDS_MAX];
    unsigned n;
    char token[HOSTS_TOKEN_SIZE], secret[80], program[4096];
    char version[STREAM_TEXT_MAX]; /* this machine's, which the ends must have, too */
    char reason[768];
};

__attribute__((format(printf, 2, 3))) static int give_up(struct work *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(w->reason, sizeof(w->reason), format, args);
    va_end(args);
    return PAIR_FAILED;
}

/* ssh says why in its last line, mpirun and srun in their first. */
static int say_unreached(struct work *w, const struct end *e)
{
    const struct launcher *launcher = w->p->run->launcher;
    const char *why = launcher->ranks ? e->first : e->last;
    char by[LAUNCHER_BY_SIZE];

    why = *why ? why : "it ended without a word";
    launcher_by(w->p->run, by);
    if (launcher->ranks)
        return give_up(w, "cannot start on '%s' and '%s' %s: %s (status %d)", w->p->from->name,
                       w->p->to->name, by, why, e->status);
    return give_up(w, "cannot reach '%s' %s: %s (status %d)", e->name, by, why, e->status);
}

/* What an end that stopped before its time says of itself. */
static int say_stopped(struct work *w, const struct end *e)
{
    struct stream_hello missing = stream_hello(e->output.text, "missing", w->token);

    if (missing.there)
        return give_up(w,
                       "'%s' does not start on '%s' (%s): %s; install it there at the same place, "
                       "or say where with --remote-dir",
                       w->program, e->name, missing.name, missing.version);
    if (!stream_hello(e->output.text, "begin", w->token).there)
        return say_unreached(w, e);
    return give_up(w, "on '%s': %s", e->name,
                   *e->last ? e->last : "it ended before its time, without a word");
}

static int check_version(struct work *w, const char *name, const char *version)
{
    char theirs[STREAM_TEXT_MAX], ours[STREAM_TEXT_MAX];

    pair_build(version, theirs, sizeof(theirs));
    pair_build(w->version, ours, sizeof(ours));
    if (!strcmp(theirs, ours))
        return 0;
    return give_up(w,
                   "the version on '%s' differs: it has %s, this machine %s; install the same "
                   "build on all hosts",
                   name, theirs, ours);
}

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
    return give_up(w, "%s put its first process on '%s', not on '%s': see its own options",
                   p->run->launcher->name, p->to->name, p->from->name);
}

/* Has it said that it is there, and is it the right one? 0: yes; -EAGAIN: not yet; PAIR_FAILED. */
static int look_at_hello(struct work *w, const struct end *e)
{
    struct stream_hello hello = stream_hello(e->output.text, "begin", w->token);
    struct stream_hello peer = stream_hello(e->output.text, "peer", w->token);
    int status = hello.there ? check_version(w, e->name, hello.version) : -EAGAIN;

    if (!status)
        status = check_order(w, &hello);
    if (!status && peer.there)
        status = check_version(w, w->p->to->name, peer.version);
    return status;
}

/* Starts one end; an end that needs a secret is told it. 0 or PAIR_FAILED. */
static int start_end(struct work *w, unsigned i, enum hosts_task task, unsigned port)
{
    const struct host *host = task == TASK_LISTEN ? w->p->to : w->p->from;
    struct end *e = &w->ends[i];

    *e = (struct end){.name = host->name};
    pair_order(w->p, task, w->token, port, false, &e->command);
    pair_program(w->p->run, host, w->p->program, w->program, sizeof(w->program));
    int err = end_start(e);
    w->n = i + 1;
    if (err)
        return give_up(w, "cannot start '%s' for '%s': %s",
                       e->command.n ? e->command.all[0] : "the launcher", e->name, strerror(-err));
    if (task != TASK_RANKS)
        end_tell(e, w->secret);
    else
        end_hang_up(e);
    return 0;
}

/* Until the end is there and, of a listener, listens. 0, -EADDRINUSE, or PAIR_FAILED. */
static int wait_until_there(struct work *w, struct end *e, bool listener)
{
    uint64_t until_ns = clock_now_ns() + w->p->run->wait_ns;
    char by[LAUNCHER_BY_SIZE];
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
            return e->taken ? -EADDRINUSE : say_stopped(w, e);
        if (clock_now_ns() >= until_ns)
            return there ? give_up(w, "'%s' does not begin to listen", e->name)
                         : give_up(w, "'%s' does not answer: nothing came from it %s in %.3g s",
                                   e->name, launcher_by(w->p->run, by),
                                   (double)w->p->run->wait_ns * 1e-9);
        int err = stop ? -EINTR : ends_attend(w->ends, w->n, SLICE_MS);
        if (err)
            return give_up(w, "cannot read what '%s' says: %s", e->name, strerror(-err));
    }
}

static int start_listener(struct work *w, unsigned *port)
{
    int status = -EADDRINUSE;

    for (unsigned i = 0; status == -EADDRINUSE && i < PORT_TRIES; i++) {
        ends_stop(w->ends, w->n, STOP_GRACE_NS);
        *port = pair_port(w->p, i);
        status = start_end(w, LISTENER, TASK_LISTEN, *port);
        if (!status)
            status = wait_until_there(w, &w->ends[LISTENER], true);
    }
    if (status == -EADDRINUSE)
        return give_up(w, "on '%s' %d ports from %u on are all in use: give another --port",
                       w->p->to->name, PORT_TRIES, pair_port(w->p, 0));
    return status;
}

/* The leader's end and what it gave. Returns the benchmark's exit status or PAIR_FAILED. */
static int take_parts(struct work *w, const struct end *e)
{
    struct stream_parts parts;

    if (stream_parts(e->output.text, e->output.size, w->token, &parts))
        return stream_hello(e->output.text, "begin", w->token).there
                   ? give_up(w, "the connection to '%s' broke before its rows had come: %s",
                             e->name, *e->last ? e->last : "it ended without a word")
                   : say_stopped(w, e);
    if (parts.status != 0 && parts.status != 1 && parts.status != 4)
        return give_up(w, "on '%s' it ended with status %d%s%s", e->name, parts.status,
                       *e->last ? ": " : "", e->last);
    int err = write_all(STDOUT_FILENO, parts.rows, parts.n_rows);
    if (!err)
        err = write_all(CHILD_SAMPLES_FD, parts.samples, parts.n_samples);
    return err ? give_up(w, "cannot hand on the rows of '%s': %s", e->name, strerror(-err))
               : parts.status;
}

static int finish(struct work *w, struct end *e)
{
    int err = 0, status = 0;

    while (!err && !end_is_over(e) && !stream_is_whole(e->output.text, e->output.size, w->token)) {
        err = stop ? -EINTR : ends_attend(w->ends, w->n, SLICE_MS);
        if (!err)
            status = look_at_hello(w, e); /* of a second rank it may come late */
        if (status == PAIR_FAILED)
            return status;
    }
    if (err)
        return give_up(w, "cannot read what '%s' says: %s", e->name, strerror(-err));
    return take_parts(w, e);
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
    if (status != PAIR_FAILED)
        ends_wait(w->ends, w->n, END_GRACE_NS); /* the listener ends by itself */
    return status;
}

static int run_ranks(struct work *w)
{
    int status = start_end(w, 0, TASK_RANKS, 0);

    return status ? status : finish(w, &w->ends[0]);
}

static int ask_own_version(struct work *w)
{
    const char *argv[] = {w->p->program, "--version", NULL};
    struct child_result r = {0};
    int err = child_run(&(struct child_spec){.argv = argv, .timeout_ns = w->p->run->wait_ns}, &r);

    if (!err && r.status)
        err = -ENOEXEC;
    if (!err)
        snprintf(w->version, sizeof(w->version), "%.*s", (int)strcspn(r.out.text, "\n"),
                 r.out.text);
    child_result_release(&r);
    return err;
}

int pair_body(void *arg)
{
    struct work w = {.p = arg};
    int status, err = pair_token(w.token);

    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN); /* an end that is gone shows by its status */
    fcntl(CHILD_SAMPLES_FD, F_SETFD, FD_CLOEXEC);
    if (!err)
        err = meet_secret_make(w.secret, sizeof(w.secret));
    if (err)
        status = give_up(&w, "no random numbers for a secret: %s", strerror(-err));
    else if ((err = ask_own_version(&w)) != 0)
        status = give_up(&w, "'%s' does not say its version: %s", w.p->program, strerror(-err));
    else
        status = w.p->run->launcher->ranks ? run_ranks(&w) : run_two(&w);
    secret_wipe(w.secret, sizeof(w.secret));
    ends_stop(w.ends, w.n, stop ? TERM_GRACE_NS : STOP_GRACE_NS);
    if (status == PAIR_FAILED)
        dprintf(STDERR_FILENO, "%s\n", w.reason);
    return status;
}

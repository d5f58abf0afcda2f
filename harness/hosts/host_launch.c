/* SPDX-License-Identifier: Apache-2.0 */
/* One launch over hosts, from its start to its end: see launcher.h. */
#include "harness/hosts/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/meet.h"
#include "core/group/notice.h"
#include "core/group/secret.h"
#include "core/program.h"
#include "harness/child.h"
#include "harness/hosts/end.h"
#include "harness/text.h"

/* How long a launch waits for its other ends after the leader's; less where a case failed, so that
 * the failure is printed soon. */
#define END_GRACE_NS 3000000000ull
#define END_LOST_NS  500000000ull

/* How long ends_stop() waits. A program on a host ends by itself once its input is closed: less
 * time is needed where the launch failed, and where this process must end (child.c gives it 2
 * s). */
#define END_STOP_NS   5000000000ull
#define END_TERM_NS   1500000000ull
#define END_FAILED_NS 700000000ull

/* ---- The state of one launch, and the reason of its failure ---- */

/* Functions of it that return an int: 0, or HOST_LAUNCH_FAILED with the reason set. */
struct talk {
    const struct hosts_run *run;
    const char *program; /* on this machine */
    const char *where;   /* "'a' and 'b'": of a launcher that starts all at once */
    char token[HOSTS_TOKEN_SIZE], secret[80];
    char version[STREAM_TEXT_MAX]; /* this machine's, which the ends must have, too */
    char reason[768];
};

static int talk_give_up(struct talk *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int talk_give_up(struct talk *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(t->reason, sizeof(t->reason), format, args);
    va_end(args);
    return HOST_LAUNCH_FAILED;
}

/* Makes token and secret, and asks the version of this machine. 0 or HOST_LAUNCH_FAILED. */
static int talk_begin(struct talk *t)
{
    int err = host_token(t->token);

    if (!err)
        err = meet_secret_make(t->secret, sizeof(t->secret));
    if (err)
        return talk_give_up(t, "no random numbers for a secret: %s", strerror(-err));
    err = host_own_version(t->program, t->run->wait_ns, t->version);
    return err ? talk_give_up(t, "'%s' does not say its version: %s", t->program, strerror(-err))
               : 0;
}

/* Why an end stopped before its time, as far as it reports it. */
static int talk_stopped(struct talk *t, const struct end *e, const char *program)
{
    struct stream_hello missing = stream_hello(e->output.text, "missing", t->token);

    if (missing.there)
        host_say_missing(program, e->name, &missing, t->reason, sizeof(t->reason));
    else if (!stream_hello(e->output.text, "begin", t->token).there) {
        char by[LAUNCHER_BY_SIZE];

        if (t->run->launcher->ranks)
            return talk_give_up(t, "cannot start on %s %s: %s (status %d)", t->where,
                                launcher_by(t->run, by), host_why(t->run, e), e->status);
        host_say_unreached(t->run, e, t->reason, sizeof(t->reason));
        return HOST_LAUNCH_FAILED;
    } else
        talk_give_up(t, "on '%s': %s", e->name,
                     *e->last ? e->last : "it ended before its time, without a word");
    return HOST_LAUNCH_FAILED;
}

/* The version of a host, by name, against ours. */
static int talk_check_version(struct talk *t, const char *name, const char *version)
{
    return host_same_build(name, version, t->version, t->reason, sizeof(t->reason))
               ? 0
               : HOST_LAUNCH_FAILED;
}

/* Writes the rows and samples of an end to our own standard output and CHILD_SAMPLES_FD. Returns
 * the benchmark's exit status, or HOST_LAUNCH_FAILED. */
static int talk_take_parts(struct talk *t, const struct end *e, const char *program)
{
    struct stream_parts parts;

    if (stream_parts(e->output.text, e->output.size, t->token, &parts))
        return stream_hello(e->output.text, "begin", t->token).there
                   ? talk_give_up(t, "the connection to '%s' broke before its rows had come: %s",
                                  e->name, *e->last ? e->last : "it ended without a word")
                   : talk_stopped(t, e, program);
    if (!exit_has_rows(parts.status))
        return talk_give_up(t, "on '%s' it ended with status %d%s%s", e->name, parts.status,
                            *e->last ? ": " : "", e->last);
    int err = write_all(STDOUT_FILENO, parts.rows, parts.n_rows);
    if (!err)
        err = write_all(CHILD_SAMPLES_FD, parts.samples, parts.n_samples);
    return err ? talk_give_up(t, "cannot hand on the rows of '%s': %s", e->name, strerror(-err))
               : parts.status;
}

/* ---- A launch from its start to its end ---- */

#define PORT_TRIES 16
#define AT_ONCE    32             /* connections that are being made */
#define LISTEN_NS  20000000000ull /* from its first line on */
#define GONE_NS    7000000000ull  /* for rank 0 to report who is gone, and to end */
#define SILENT_NS  500000000ull   /* for the leader to report why the others gave it up, */
#define MUTE_NS    6000000000ull  /* after rank 0 was silent for so long */
#define STOPPED_NS 5500000000ull  /* that a process here may be stopped */
#define BREAK_NS   700000000ull   /* for the connection of a lost listener to break */
#define SLICE_MS   200
#define BROKE      255 /* the status of an ssh that lost its connection; no benchmark has it */

static volatile sig_atomic_t stop; /* set by the signal handler alone */

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* One connection; number 0 is the listener, or with mpirun and srun all of them. */
struct state {
    uint64_t since_ns; /* it was started, or has said its first word */
    bool there;        /* it has */
};

struct work {
    const struct host_launch *l;
    struct talk talk;
    struct host_connection *connections;
    struct end *ends;
    struct state *states;
    unsigned n, started;
    unsigned lead;          /* who has the rows */
    const struct end *gone; /* of the others, the first that was seen to have ended badly */
    uint64_t gone_ns;       /* when that was */
    char where[2 * HOSTS_NAME_MAX + 16];
};

static bool is_pair(const struct work *w)
{
    return w->l->from != NULL;
}

static bool is_job(const struct work *w)
{
    return w->l->run->launcher->ranks;
}

/* Starts one end, and tells it the secret where it needs that. 0 or HOST_LAUNCH_FAILED. */
static int start_end(struct work *w, unsigned i, unsigned port)
{
    struct end *e = &w->ends[i];

    *e = (struct end){.name = w->connections[i].host->name};
    host_order(w->l, &w->connections[i], w->talk.token, port, false, &e->command);
    int err = end_start(e);
    w->started = i + 1;
    w->states[i] = (struct state){.since_ns = clock_now_ns()};
    if (err)
        return talk_give_up(&w->talk, "cannot start '%s' for '%s': %s",
                            e->command.n ? e->command.all[0] : "the launcher", e->name,
                            strerror(-err));
    if (is_job(w))
        end_hang_up(e);
    else
        end_tell(e, w->talk.secret);
    return 0;
}

static bool same_name(const char *host, const char *says)
{
    const char *at = strchr(host, '@');

    host = at ? at + 1 : host;
    size_t n = strcspn(host, "."), m = strcspn(says, ".");
    return n == m && !strncasecmp(host, says, n);
}

/* The first rank of a pair is the one that leads: it must be on the host that the row will name. */
static int check_order(struct work *w, const struct stream_hello *hello)
{
    const struct host *from = w->l->from, *to = w->l->to;

    /* Names of this machine need not be the one that it calls itself. */
    if (!is_job(w) || !is_pair(w) || from->here || same_name(from->name, hello->name) ||
        !same_name(to->name, hello->name))
        return 0;
    return talk_give_up(&w->talk,
                        "%s put its first process on '%s', not on '%s': see its own options",
                        w->l->run->launcher->name, to->name, from->name);
}

/* In a job the others' first words come through the same stream, as "plumb-peer". */
static int check_peers(struct work *w, const struct end *e)
{
    const char *at = e->output.text;
    int status = 0;

    while (!status && (at = stream_find(at, "peer", w->talk.token)) != NULL) {
        struct stream_hello hello = stream_hello(at, "peer", w->talk.token);
        if (!hello.there)
            return 0;
        status =
            talk_check_version(&w->talk, is_pair(w) ? w->l->to->name : hello.name, hello.version);
        at = strchr(at, '\n');
    }
    return status;
}

/* If this end has said its first word: is it the right one? 0 or HOST_LAUNCH_FAILED. */
static int check_hello(struct work *w, unsigned i)
{
    struct state *s = &w->states[i];
    const struct end *e = &w->ends[i];
    struct stream_hello hello = {0};

    if (!s->there)
        hello = stream_hello(e->output.text, "begin", w->talk.token);
    if (!hello.there)
        return is_job(w) ? check_peers(w, e) : 0;
    *s = (struct state){.since_ns = clock_now_ns(), .there = true};
    int status = talk_check_version(&w->talk, e->name, hello.version);
    return status ? status : check_order(w, &hello);
}

static const char *program_at(const struct work *w, unsigned i, char path[4096])
{
    host_program_path(w->l->run, w->connections[i].host, w->l->program, path, 4096);
    return path;
}

/* Looks whether this end is there, or has failed to come. 0 or HOST_LAUNCH_FAILED. */
static int look_at_hello(struct work *w, unsigned i)
{
    const struct state *s = &w->states[i];
    struct end *e = &w->ends[i];
    char path[4096];
    int status = check_hello(w, i);

    if (status || s->there)
        return status;
    if (end_is_over(e))
        return talk_stopped(&w->talk, e, program_at(w, i, path));
    if (clock_now_ns() < s->since_ns + w->l->run->wait_ns)
        return 0;
    host_say_mute(w->l->run, e, w->talk.reason, sizeof(w->talk.reason));
    return HOST_LAUNCH_FAILED;
}

/* Lets some time pass and reads. 0 or HOST_LAUNCH_FAILED. */
static int attend(struct work *w)
{
    int err = stop ? -EINTR : ends_attend(w->ends, w->started, SLICE_MS);

    if (err)
        return talk_give_up(&w->talk, "cannot read what the hosts say: %s", strerror(-err));
    for (unsigned i = 0; i < w->started; i++) {
        const struct end *e = &w->ends[i];
        if (e->stopped_ns && clock_now_ns() >= e->stopped_ns + STOPPED_NS) {
            /* What this machine runs for an end: mpirun, ssh, what --rsh says, or the script
             * itself. */
            const struct host_connection *c = &w->connections[e - w->ends];

            return talk_give_up(&w->talk,
                                "'%s' was stopped (SIGSTOP), process %d here, which holds the "
                                "connection to %s",
                                is_job(w)        ? w->l->run->launcher->name
                                : c->host->here  ? "sh"
                                : w->l->run->rsh ? w->l->run->rsh
                                                 : "ssh",
                                (int)e->pid, is_job(w) ? w->talk.where : e->name);
        }
    }
    return 0;
}

/* 0, -EADDRINUSE or HOST_LAUNCH_FAILED. */
static int wait_for_listener(struct work *w)
{
    const struct end *e = &w->ends[0];
    char path[4096];

    for (;;) {
        int status = look_at_hello(w, 0);
        if (status || e->listening)
            return status;
        if (end_is_over(e))
            return e->taken ? -EADDRINUSE : talk_stopped(&w->talk, e, program_at(w, 0, path));
        if (w->states[0].there && clock_now_ns() >= w->states[0].since_ns + LISTEN_NS)
            return talk_give_up(&w->talk, "'%s' does not begin to listen", e->name);
        if ((status = attend(w)) != 0)
            return status;
    }
}

static int start_listener(struct work *w, unsigned *port)
{
    int status = -EADDRINUSE;

    for (unsigned i = 0; status == -EADDRINUSE && i < PORT_TRIES; i++) {
        ends_stop(w->ends, w->started, END_STOP_NS);
        *port = host_port(w->l, i);
        status = start_end(w, 0, *port);
        if (!status)
            status = wait_for_listener(w);
    }
    if (status == -EADDRINUSE)
        return talk_give_up(&w->talk,
                            "on '%s' %d ports from %u on are all in use: give another --port",
                            w->connections[0].host->name, PORT_TRIES, host_port(w->l, 0));
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

static const char *last_word(const struct end *e)
{
    return *e->last ? e->last : "it ended without a word";
}

static int give_up_broken(struct work *w, const struct end *e)
{
    return talk_give_up(&w->talk, "the connection to '%s' broke: %s", e->name, last_word(e));
}

/* A listener serves one leader. If it ended badly, and the leader reported nothing in time, the
 * leader is lost. */
static int look_at_listener(struct work *w)
{
    const struct end *listener = &w->ends[0];

    if (!end_is_over(listener) || !listener->status ||
        clock_now_ns() < listener->ended_ns + SILENT_NS)
        return 0;
    if (listener->status == BROKE) /* nobody knows what its program said */
        return give_up_broken(w, listener);
    return talk_give_up(&w->talk,
                        "'%s', the leader, does not answer, and '%s' counts it as lost: %s",
                        w->ends[w->lead].name, listener->name, last_word(listener));
}

/* Did all others give up while rank 0 was silent? Then rank 0 is lost, and perhaps its whole
 * host. */
static int look_for_silence(struct work *w)
{
    const struct end *last = NULL;

    for (unsigned i = 1; i < w->started; i++) {
        const struct end *e = &w->ends[i];
        if (!end_is_over(e) && w->connections[i].host == w->connections[0].host)
            continue;
        if (!end_is_over(e) || e->status != EXIT_INCOMPLETE)
            return 0;
        last = !last || e->ended_ns > last->ended_ns ? e : last;
    }
    if (!last || w->started < w->n || clock_now_ns() < last->ended_ns + SILENT_NS ||
        w->ends[0].said_ns + MUTE_NS > last->ended_ns)
        return 0;
    return talk_give_up(
        &w->talk, "rank 0, on '%s', does not answer, and all others count it as lost: on '%s' %s",
        w->ends[0].name, last->name, *last->last ? last->last : "without a word");
}

/* The first of the others that has ended as it should not. */
static const struct end *find_gone(const struct work *w)
{
    for (unsigned i = 1; i < w->started; i++)
        if (end_is_over(&w->ends[i]) && w->ends[i].status)
            return &w->ends[i];
    return NULL;
}

/* Rank 0 knows best who is gone, and what can be measured without. If it reports nothing in time,
 * this does. */
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
    const struct host_connection *connection = &w->connections[e - w->ends];
    return talk_give_up(&w->talk,
                        "on '%s' %s of %u from %u on ended with status %d, and rank 0 does not "
                        "report it%s%s",
                        e->name, connection->n == 1 ? "the rank" : "a rank", connection->n,
                        connection->first, e->status, *e->last ? ": " : "", e->last);
}

/* Is an end lost that the leader does not report? In a job its launcher ends all. */
static int look_at_others(struct work *w)
{
    if (is_job(w))
        return 0;
    if (is_pair(w))
        return look_at_listener(w);
    int status = look_for_silence(w);
    return status ? status : look_for_gone(w);
}

/* The leader of a pair knows only the address of a peer that is gone, and no reason. The connection
 * to the listener may show the name and the reason. */
static int take_rows(struct work *w, const struct end *e)
{
    const struct end *listener = &w->ends[0];
    struct stream_parts parts;
    char path[4096];

    if (is_pair(w) && !is_job(w) &&
        !stream_parts(e->output.text, e->output.size, w->talk.token, &parts) &&
        parts.status == EXIT_INCOMPLETE) {
        ends_wait(&w->ends[0], 1, BREAK_NS);
        if (listener->ended && listener->status == BROKE)
            return give_up_broken(w, listener);
    }
    return talk_take_parts(&w->talk, e, program_at(w, w->lead, path));
}

static int finish(struct work *w)
{
    const struct end *e = &w->ends[w->lead];
    int status = 0;

    while (!status && !end_is_over(e) &&
           !stream_is_whole(e->output.text, e->output.size, w->talk.token)) {
        status = attend(w);
        if (!status)
            status = look_at_all(w);
        if (!status)
            status = look_at_others(w);
    }
    if (!status)
        status = check_hello(w, w->lead); /* all may have come at once */
    return status ? status : take_rows(w, e);
}

/* Nothing failed, and yet a rank was lost. */
static int tell_loss(struct work *w)
{
    const struct end *e = &w->ends[w->lead];

    if (!e->loss[0])
        return 0;
    talk_give_up(&w->talk, "a rank that no case needs was lost: on '%s' %s", e->name, e->loss);
    return HOST_LAUNCH_LOST;
}

static int run(struct work *w)
{
    const struct host_launch *l = w->l;

    w->connections = host_connections(l, &w->n);
    w->ends = xcalloc(w->n, sizeof(*w->ends));
    w->states = xcalloc(w->n, sizeof(*w->states));
    w->lead = is_pair(w) && !is_job(w) ? 1 : 0;
    ends_allow(w->n);
    if (is_pair(w))
        snprintf(w->where, sizeof(w->where), "'%s' and '%s'", l->from->name, l->to->name);
    else
        snprintf(w->where, sizeof(w->where), "all of %zu hosts", l->run->hosts.n);
    int status = talk_begin(&w->talk);
    if (!status && !is_job(w)) {
        unsigned port = 0;
        status = start_listener(w, &port);

        /* Where the listener leads and has ended, nobody is waited for. */
        while (!status && w->started < w->n && (w->lead > 0 || !end_is_over(&w->ends[0]))) {
            if (under_way(w) < AT_ONCE)
                status = start_end(w, w->started, port);
            else if (!(status = attend(w)))
                status = look_at_all(w);
        }
        if (!status)
            status = finish(w);
        if (!status)
            status = tell_loss(w);
        bool lost = status == EXIT_INCOMPLETE || status == HOST_LAUNCH_LOST;
        if (status != HOST_LAUNCH_FAILED) /* the others end by themselves, but who was lost */
            ends_wait(w->ends, w->started, lost ? END_LOST_NS : END_GRACE_NS);
    } else if (!status && !(status = start_end(w, 0, 0)))
        status = finish(w);
    secret_wipe(w->talk.secret, sizeof(w->talk.secret));
    return status;
}

/* The rank that was lost first is the reason; other ranks ended because of it. */
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

int host_launch_body(void *arg)
{
    const struct host_launch *l = arg;
    struct work w = {.l = l, .talk = {.run = l->run, .program = l->program, .where = w.where}};

    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN); /* an end that is gone shows by its status */
    fcntl(CHILD_SAMPLES_FD, F_SETFD, FD_CLOEXEC);
    int status = run(&w);
    if (w.ends)
        ends_stop(w.ends, w.started,
                  stop                      ? END_TERM_NS
                  : status && !(is_job(&w)) ? END_FAILED_NS
                                            : END_STOP_NS);
    if (status == HOST_LAUNCH_FAILED || status == HOST_LAUNCH_LOST)
        dprintf(STDERR_FILENO, "%s\n", w.talk.reason);
    if (status == HOST_LAUNCH_FAILED)
        tell_cause(&w);
    free(w.ends);
    free(w.states);
    free(w.connections);
    return status;
}

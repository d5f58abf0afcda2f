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

/* ---- A launch from its start to its end ---- */

#define PORT_TRIES 16
#define AT_ONCE    32             /* connections that are being made */
#define LISTEN_NS  20000000000ull /* from its first line on */
#define GONE_NS    7000000000ull  /* for rank 0 to report who is gone, and to end */
#define SILENT_NS  500000000ull   /* for the leader to report why the others gave it up, */
#define MUTE_NS    6000000000ull  /* after rank 0 was silent for so long */
#define STOPPED_NS 5500000000ull  /* that a process here may be stopped */
#define BREAK_NS   700000000ull   /* for the connection of a lost listener to break */
#define SLICE_MS   50
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
    json_t *missing;   /* the agent's message that the program does not start there; NULL */
    json_t *rows;      /* its last message, with rows and samples; NULL: not yet */
};

/* Functions of it that return an int: 0, or HOST_LAUNCH_FAILED with the reason set. */
struct work {
    const struct host_launch *l;
    struct host_connection *connections;
    struct end *ends;
    struct state *states;
    unsigned n, started;
    unsigned lead;          /* who has the rows */
    const struct end *gone; /* of the others, the first that was seen to have ended badly */
    uint64_t gone_ns;       /* when that was */
    char where[2 * HOSTS_NAME_MAX + 16]; /* "'a' and 'b'": of a launcher that starts all at once */
    char secret[80];
    char version[HOST_VERSION_MAX]; /* this machine's, which the ends must have, too */
    char reason[768];
};

static int give_up(struct work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int give_up(struct work *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(w->reason, sizeof(w->reason), format, args);
    va_end(args);
    return HOST_LAUNCH_FAILED;
}

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

    *e = (struct end){END_NONE, .name = w->connections[i].host->name, .talks = true};
    host_order(w->l, &w->connections[i], port, false, &e->command);
    int err = end_start(e);
    w->started = i + 1;
    w->states[i] = (struct state){.since_ns = clock_now_ns()};
    if (err)
        return give_up(w, "cannot start '%s' for '%s': %s",
                       e->command.n ? e->command.all[0] : "the launcher", e->name, strerror(-err));
    if (is_job(w))
        end_hang_up(e);
    else
        end_tell(e, w->secret);
    return 0;
}

/* Ends those that were started; only their causes stay. */
static void stop_ends(struct work *w, uint64_t grace_ns)
{
    ends_stop(w->ends, w->started, grace_ns);
    for (unsigned i = 0; i < w->started; i++) {
        json_decref(w->states[i].missing);
        json_decref(w->states[i].rows);
        w->states[i] = (struct state){0};
    }
}

/* Why an end stopped before its time, as far as it reports it. */
static int why_stopped(struct work *w, unsigned i)
{
    const struct end *e = &w->ends[i];
    const struct host *host = w->connections[i].host;
    char path[4096], calls[HOST_VERSION_MAX], why[HOST_VERSION_MAX], by[LAUNCHER_BY_SIZE];
    const json_t *missing = w->states[i].missing;

    if (missing) {
        host_program_path(w->l->run, host, w->l->program, path, sizeof(path));
        host_say_missing(path, e->name, message_line(missing, "name", calls, sizeof(calls)),
                         message_line(missing, "why", why, sizeof(why)), w->reason,
                         sizeof(w->reason));
    } else if (w->states[i].there) {
        give_up(w, "on '%s': %s", e->name,
                *e->last ? e->last : "it ended before its time, without a word");
    } else if (is_job(w)) {
        give_up(w, "cannot start on %s %s: %s (status %d)", w->where, launcher_by(w->l->run, by),
                host_why(w->l->run, e), e->p.status);
    } else {
        host_agent_path(w->l->run, host, path, sizeof(path));
        host_say_unreached(w->l->run, e, path, w->reason, sizeof(w->reason));
    }
    return HOST_LAUNCH_FAILED;
}

static bool same_name(const char *host, const char *says)
{
    const char *at = strchr(host, '@');

    host = at ? at + 1 : host;
    size_t n = strcspn(host, "."), m = strcspn(says, ".");
    return n == m && !strncasecmp(host, says, n);
}

/* The first word of an end, in a job of each rank: is it the right build, and is the one that leads
 * on the host that the row will name? 0 or HOST_LAUNCH_FAILED. */
static int take_hello(struct work *w, unsigned i, const json_t *m)
{
    const struct host *from = w->l->from, *to = w->l->to;
    bool first = !is_job(w) || json_integer_value(json_object_get(m, "rank")) == 0;
    char name[HOST_VERSION_MAX], version[HOST_VERSION_MAX];

    message_line(m, "name", name, sizeof(name));
    message_line(m, "version", version, sizeof(version));
    if (first) {
        w->states[i].since_ns = clock_now_ns();
        w->states[i].there = true;
    }
    if (!host_same_build(first        ? w->ends[i].name
                         : is_pair(w) ? to->name
                                      : name,
                         version, w->version, w->reason, sizeof(w->reason)))
        return HOST_LAUNCH_FAILED;
    /* Names of this machine need not be the one that it calls itself. */
    if (!first || !is_job(w) || !is_pair(w) || from->here || same_name(from->name, name) ||
        !same_name(to->name, name))
        return 0;
    return give_up(w, "%s put its first process on '%s', not on '%s': see its own options",
                   w->l->run->launcher->name, to->name, from->name);
}

/* Takes what has come from this end's agent. 0 or HOST_LAUNCH_FAILED. */
static int take_answers(struct work *w, unsigned i)
{
    struct state *s = &w->states[i];
    int status = 0;
    json_t *m;

    while (!status && (m = end_answer(&w->ends[i])) != NULL) {
        char state[16], error[200];
        json_t **to = NULL;

        message_line(m, "state", state, sizeof(state));
        if (*message_line(m, "error", error, sizeof(error)))
            status = give_up(w, "on '%s': %s", w->ends[i].name, error);
        else if (!strcmp(state, "begin"))
            status = take_hello(w, i, m);
        else if (!strcmp(state, "missing"))
            to = &s->missing;
        else if (!strcmp(state, "end"))
            to = &s->rows;
        if (to && !*to)
            *to = json_incref(m);
        json_decref(m);
    }
    return status;
}

/* Looks whether this end is there, or has failed to come. 0 or HOST_LAUNCH_FAILED. */
static int look_at_hello(struct work *w, unsigned i)
{
    const struct state *s = &w->states[i];
    struct end *e = &w->ends[i];
    int status = take_answers(w, i);

    if (status || s->there)
        return status;
    if (end_is_over(e))
        return why_stopped(w, i);
    if (clock_now_ns() < s->since_ns + w->l->run->wait_ns)
        return 0;
    host_say_mute(w->l->run, e, w->reason, sizeof(w->reason));
    return HOST_LAUNCH_FAILED;
}

/* Lets some time pass and reads. 0 or HOST_LAUNCH_FAILED. */
static int attend(struct work *w)
{
    int err = stop ? -EINTR : ends_attend(w->ends, w->started, SLICE_MS);

    if (err)
        return give_up(w, "cannot read what the hosts say: %s", strerror(-err));
    for (unsigned i = 0; i < w->started; i++) {
        const struct end *e = &w->ends[i];
        if (e->stopped_ns && clock_now_ns() >= e->stopped_ns + STOPPED_NS) {
            /* What this machine runs for an end: mpirun, ssh, what --rsh says, or the agent
             * itself. */
            const struct host_connection *c = &w->connections[e - w->ends];

            return give_up(w,
                           "'%s' was stopped (SIGSTOP), process %d here, which holds the "
                           "connection to %s",
                           is_job(w)        ? w->l->run->launcher->name
                           : c->host->here  ? "plumb agent"
                           : w->l->run->rsh ? w->l->run->rsh
                                            : "ssh",
                           (int)e->p.pid, is_job(w) ? w->where : e->name);
        }
    }
    return 0;
}

/* 0, -EADDRINUSE or HOST_LAUNCH_FAILED. */
static int wait_for_listener(struct work *w)
{
    const struct end *e = &w->ends[0];

    for (;;) {
        int status = look_at_hello(w, 0);
        if (status || e->listening)
            return status;
        if (end_is_over(e))
            return e->taken ? -EADDRINUSE : why_stopped(w, 0);
        if (w->states[0].there && clock_now_ns() >= w->states[0].since_ns + LISTEN_NS)
            return give_up(w, "'%s' does not begin to listen", e->name);
        if ((status = attend(w)) != 0)
            return status;
    }
}

static int start_listener(struct work *w, unsigned *port)
{
    int status = -EADDRINUSE;

    for (unsigned i = 0; status == -EADDRINUSE && i < PORT_TRIES; i++) {
        stop_ends(w, END_STOP_NS);
        *port = host_port(w->l, i);
        status = start_end(w, 0, *port);
        if (!status)
            status = wait_for_listener(w);
    }
    if (status == -EADDRINUSE)
        return give_up(w, "on '%s' %d ports from %u on are all in use: give another --port",
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

static const char *last_word(const struct end *e)
{
    return *e->last ? e->last : "it ended without a word";
}

static int give_up_broken(struct work *w, const struct end *e)
{
    return give_up(w, "the connection to '%s' broke: %s", e->name, last_word(e));
}

/* A listener serves one leader. If it ended badly, and the leader reported nothing in time, the
 * leader is lost. */
static int look_at_listener(struct work *w)
{
    const struct end *listener = &w->ends[0];

    if (!end_is_over(listener) || !listener->p.status ||
        clock_now_ns() < listener->p.ended_ns + SILENT_NS)
        return 0;
    if (listener->p.status == BROKE) /* nobody knows what its program said */
        return give_up_broken(w, listener);
    return give_up(w, "'%s', the leader, does not answer, and '%s' counts it as lost: %s",
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
        if (!end_is_over(e) || e->p.status != EXIT_INCOMPLETE)
            return 0;
        last = !last || e->p.ended_ns > last->p.ended_ns ? e : last;
    }
    if (!last || w->started < w->n || clock_now_ns() < last->p.ended_ns + SILENT_NS ||
        w->ends[0].said_ns + MUTE_NS > last->p.ended_ns)
        return 0;
    return give_up(w,
                   "rank 0, on '%s', does not answer, and all others count it as lost: on '%s' %s",
                   w->ends[0].name, last->name, *last->last ? last->last : "without a word");
}

/* The first of the others that has ended as it should not. */
static const struct end *find_gone(const struct work *w)
{
    for (unsigned i = 1; i < w->started; i++)
        if (end_is_over(&w->ends[i]) && w->ends[i].p.status)
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
    return give_up(w,
                   "on '%s' %s of %u from %u on ended with status %d, and rank 0 does not "
                   "report it%s%s",
                   e->name, connection->n == 1 ? "the rank" : "a rank", connection->n,
                   connection->first, e->p.status, *e->last ? ": " : "", e->last);
}

/* Writes the rows and samples to our own standard output and CHILD_SAMPLES_FD. Returns the
 * benchmark's exit status, or HOST_LAUNCH_FAILED. */
static int take_rows(struct work *w)
{
    const struct end *e = &w->ends[w->lead], *listener = &w->ends[0];
    const char *rows, *samples;
    int status;

    if (json_unpack(w->states[w->lead].rows, "{s:i, s:s, s:s}", "status", &status, "rows", &rows,
                    "samples", &samples))
        return w->states[w->lead].there
                   ? give_up(w, "the connection to '%s' broke before its rows had come: %s",
                             e->name, last_word(e))
                   : why_stopped(w, w->lead);
    /* The leader of a pair knows only the address of a peer that is gone, and no reason. The
     * connection to the listener may show the name and the reason. */
    if (w->lead && status == EXIT_INCOMPLETE) {
        ends_wait(&w->ends[0], 1, BREAK_NS);
        if (listener->p.ended && listener->p.status == BROKE)
            return give_up_broken(w, listener);
    }
    if (!exit_has_rows(status))
        return give_up(w, "on '%s' it ended with status %d%s%s", e->name, status,
                       *e->last ? ": " : "", e->last);
    int err = write_all(STDOUT_FILENO, rows, strlen(rows));
    if (!err)
        err = write_all(CHILD_SAMPLES_FD, samples, strlen(samples));
    return err ? give_up(w, "cannot hand on the rows of '%s': %s", e->name, strerror(-err))
               : status;
}

static int finish(struct work *w)
{
    int status = 0;

    while (!status && !end_is_over(&w->ends[w->lead]) && !w->states[w->lead].rows) {
        status = attend(w);
        if (!status)
            status = look_at_all(w);
        if (!status)
            status = is_job(w) ? 0 : is_pair(w) ? look_at_listener(w) : look_for_silence(w);
        /* Is an end lost that the leader does not report? In a job its launcher ends all. */
        if (!status && !is_job(w) && !is_pair(w))
            status = look_for_gone(w);
    }
    if (!status)
        status = take_answers(w, w->lead); /* all may have come at once */
    return status ? status : take_rows(w);
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
    int status = 0, err = meet_secret_make(w->secret, sizeof(w->secret));
    if (err)
        status = give_up(w, "no random numbers for a secret: %s", strerror(-err));
    else if (host_version(l->program, l->run->wait_ns, w->version))
        status = give_up(w, "'%s' does not say its version: %s", l->program, w->version);
    if (!status && !is_job(w)) {
        unsigned port = 0;
        status = start_listener(w, &port);

        /* Where the listener leads and has ended, nobody is waited for. */
        while (!status && w->started < w->n && (w->lead > 0 || !end_is_over(&w->ends[0]))) {
            unsigned under_way = 0;
            for (unsigned i = 0; i < w->started; i++)
                under_way += !w->states[i].there;
            if (under_way < AT_ONCE)
                status = start_end(w, w->started, port);
            else if (!(status = attend(w)))
                status = look_at_all(w);
        }
        if (!status)
            status = finish(w);
        const struct end *e = &w->ends[w->lead];
        if (!status && e->loss[0]) { /* nothing failed, and yet a rank was lost */
            give_up(w, "a rank that no case needs was lost: on '%s' %s", e->name, e->loss);
            status = HOST_LAUNCH_LOST;
        }
        bool lost = status == EXIT_INCOMPLETE || status == HOST_LAUNCH_LOST;
        if (status != HOST_LAUNCH_FAILED) /* the others end by themselves, but who was lost */
            ends_wait(w->ends, w->started, lost ? END_LOST_NS : END_GRACE_NS);
    } else if (!status && !(status = start_end(w, 0, 0)))
        status = finish(w);
    secret_wipe(w->secret, sizeof(w->secret));
    return status;
}

int host_launch_body(void *arg)
{
    const struct host_launch *l = arg;
    struct work w = {.l = l};

    signal(SIGTERM, on_signal);
    signal(SIGPIPE, SIG_IGN); /* an end that is gone shows by its status */
    fcntl(CHILD_SAMPLES_FD, F_SETFD, FD_CLOEXEC);
    int status = run(&w);
    if (w.ends)
        stop_ends(&w, stop ? END_TERM_NS : status && !(is_job(&w)) ? END_FAILED_NS : END_STOP_NS);
    if (status == HOST_LAUNCH_FAILED || status == HOST_LAUNCH_LOST)
        dprintf(STDERR_FILENO, "%s\n", w.reason);
    /* The rank that was lost first is the reason; other ranks ended because of it. */
    for (unsigned i = 0; i < w.started && status == HOST_LAUNCH_FAILED; i++) {
        const struct end_cause *c = &w.ends[i].cause;
        if (c->lost.kind == NOTICE_NONE)
            continue;
        dprintf(STDERR_FILENO, "rank %u (%s) %s (said by rank %u)\n", c->lost.rank, c->lost.host,
                notice_words(c->lost.kind), c->speaker);
        break;
    }
    free(w.ends);
    free(w.states);
    free(w.connections);
    return status;
}

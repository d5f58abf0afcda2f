/* SPDX-License-Identifier: Apache-2.0 */
/* The end that listens: see meet.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/meet.h"

/* ---- The door ---- */

#define COMPLAINTS_A_SECOND 5
#define ACCEPTS_A_TURN      16 /* then those that wait for an answer get one */
#define CROWDED_MS          20 /* a place will be free soon */

static void say(const char *format, va_list args)
{
    char line[512];

    vsnprintf(line, sizeof(line), format, args);
    fprintf(stderr, "listening: %s\n", line); /* one write a line */
}

/* Lines on stderr: of runs, always; about those that are turned away, some. */
static __attribute__((format(printf, 1, 2))) void serve_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
}

static void tell_left_out(struct meet_log *log)
{
    if (log->left_out)
        serve_say("%llu more were turned away", (unsigned long long)log->left_out);
    log->left_out = 0;
}

void door_complain(struct meet_log *log, const char *format, ...)
{
    uint64_t now_ns = clock_now_ns();
    va_list args;

    if (now_ns - log->second_ns >= 1000000000u) {
        tell_left_out(log);
        log->second_ns = now_ns;
        log->said = 0;
    }
    if (log->said++ >= COMPLAINTS_A_SECOND) {
        log->left_out++;
        return;
    }
    va_start(args, format);
    say(format, args);
    va_end(args);
}

int door_open(struct meet_door *d, const char *address, uint16_t *port,
              const struct meet_secret *secret, uint32_t protocol, char *error, size_t len)
{
    d->secret = secret;
    d->protocol = protocol;
    return meet_open_listeners(address, port, d->listeners, &d->n_listeners, error, len);
}

void door_free(struct meet_place *p)
{
    shake_end(&p->shake);
    p->c = NULL;
    p->taken = false;
}

static void leave(struct meet_place *p)
{
    if (p->c)
        channel_close(p->c);
    else if (p->fd >= 0)
        close(p->fd);
    door_free(p);
}

void door_close(struct meet_door *d)
{
    tell_left_out(&d->log);
    for (size_t i = 0; i < DOOR_PLACES; i++)
        if (d->places[i].taken)
            leave(&d->places[i]);
    for (size_t i = 0; i < d->n_listeners; i++)
        close(d->listeners[i]);
    d->n_listeners = 0;
}

void door_turn_away(struct meet_door *d, struct meet_place *p, const char *why)
{
    char address[MEET_ADDRESS_BYTES];

    meet_address_text(&p->address, address, sizeof(address));
    door_complain(&d->log, "'%s' was turned away: it %s", address, why);
    leave(p);
}

int door_let_in(struct meet_place *p)
{
    shake_answer(&p->shake, NULL);
    int err = meet_say(p->fd, &p->shake);
    if (err)
        return err;
    err = meet_channel(&p->c, p->fd, &p->shake, p->shake.name, &p->address);
    if (err)
        p->fd = -1; /* closed */
    return err;
}

/* A free place, or that of the oldest stranger, who has had some time at least; NULL: there is none
 * just now. */
static struct meet_place *find_place(struct meet_door *d)
{
    struct meet_place *oldest = NULL;
    uint64_t now_ns = clock_now_ns();

    for (size_t i = 0; i < DOOR_PLACES; i++) {
        struct meet_place *p = &d->places[i];
        if (!p->taken)
            return p;
        if (!p->proved_ns && now_ns - p->since_ns > DOOR_KEEP_NS &&
            (!oldest || p->since_ns < oldest->since_ns))
            oldest = p;
    }
    return oldest;
}

/* 0, or -errno: nobody more is waiting, or could be taken in. */
static int take_one(struct meet_door *d, int listener)
{
    struct shake_self self;
    struct meet_place *p = find_place(d);
    char name[SHAKE_NAME_BYTES];

    if (!p)
        return -EBUSY;
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    int fd = accept4(listener, (struct sockaddr *)&address, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -errno;
    int err = meet_self(&self, d->secret, d->protocol, name);
    if (err) {
        close(fd);
        return err;
    }
    if (p->taken)
        door_turn_away(d, p, "had to make way for others");
    *p = (struct meet_place){
        .taken = true, .fd = fd, .since_ns = clock_now_ns(), .address = address};
    shake_begin(&p->shake, true, &self);
    secret_wipe(&self, sizeof(self));
    return 0;
}

/* Has it proved itself by now? */
static bool prove(struct meet_door *d, struct meet_place *p)
{
    int err = meet_hear(p->fd, &p->shake);

    if (p->shake.state == SHAKE_FAILED) {
        meet_say(p->fd, &p->shake); /* another version is told which one this is */
        door_turn_away(d, p, p->shake.error);
    } else if (err && err != -EAGAIN) {
        door_turn_away(d, p, "disconnected before it proved itself");
    } else if (p->shake.state == SHAKE_PROVED) {
        p->proved_ns = clock_now_ns();
        return true;
    }
    return false;
}

static void look_at_times(struct meet_door *d)
{
    uint64_t now_ns = clock_now_ns();

    for (size_t i = 0; i < DOOR_PLACES; i++) {
        struct meet_place *p = &d->places[i];
        if (p->taken && !p->proved_ns && now_ns - p->since_ns > DOOR_PROVE_NS)
            door_turn_away(d, p, "had not proved itself in time");
    }
    if (now_ns - d->log.second_ns >= 1000000000u)
        tell_left_out(&d->log);
}

int door_turn(struct meet_door *d, void (*hear)(void *arg, struct meet_place *p), void *arg)
{
    struct pollfd polls[MEET_LISTENERS_MAX + DOOR_PLACES];
    struct meet_place *who[DOOR_PLACES];
    bool room = find_place(d);
    size_t n = 0, n_who = 0;

    for (size_t i = 0; i < DOOR_PLACES; i++)
        if (d->places[i].taken) {
            who[n_who++] = &d->places[i];
            polls[n++] = (struct pollfd){.fd = d->places[i].fd, .events = POLLIN | POLLRDHUP};
        }
    for (size_t i = 0; i < d->n_listeners; i++)
        polls[n++] = (struct pollfd){.fd = room ? d->listeners[i] : -1, .events = POLLIN};
    if (poll(polls, n, room ? DOOR_SLICE_MS : CROWDED_MS) < 0 && errno != EINTR)
        return -errno;
    for (size_t i = 0; i < n_who; i++)
        if (polls[i].revents && (who[i]->proved_ns || prove(d, who[i])))
            hear(arg, who[i]);
    look_at_times(d);
    for (size_t i = 0; i < d->n_listeners; i++)
        if (polls[n_who + i].revents) {
            int err = 0;
            for (int k = 0; k < ACCEPTS_A_TURN && !err; k++)
                err = take_one(d, d->listeners[i]);
            if (err != -EMFILE && err != -ENFILE && err != -ENOMEM && err != -ENOBUFS)
                continue;
            door_complain(&d->log, "nobody can be let in: %s", strerror(-err));
            /* or it would be asked again at once */
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        }
    return 0;
}

/* ---- A server's run: a child for one peer ---- */

/* In the child, which does not return. */
static void be_the_session(struct serve *s, struct meet_place *p, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);            /* it died before the line above */
    signal(SIGINT, SIG_IGN); /* meant for the server, which ends this process */
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    /* What was the server's alone. The place's own socket stays. */
    for (size_t i = 0; i < s->door.n_listeners; i++)
        close(s->door.listeners[i]);
    for (size_t i = 0; i < DOOR_PLACES; i++)
        if (s->door.places[i].taken && &s->door.places[i] != p)
            close(s->door.places[i].fd);
    int err = door_let_in(p);
    struct channel *c = p->c;
    for (size_t i = 0; i < DOOR_PLACES; i++)
        shake_end(&s->door.places[i].shake);
    if (!err)
        err = s->fn(c, s->arg);
    if (err == -EHOSTUNREACH)
        snprintf(s->said, CHANNEL_ERROR_BYTES, "%s", channel_error(c));
    channel_close(c);
    fflush(NULL);
    _exit(err < 0 ? -err : err);
}

/* Starts a run for one that has proved itself; its place is free afterwards. */
static void serve_start(struct serve *s, struct meet_place *p)
{
    struct serve_session *run = &s->session;
    char address[MEET_ADDRESS_BYTES];
    pid_t parent = getpid();

    meet_address_text(&p->address, address, sizeof(address));
    snprintf(run->name, sizeof(run->name), "%s", p->shake.name);
    snprintf(run->peer, sizeof(run->peer), "%s (%.*s)", p->shake.name, MEET_ADDRESS_BYTES - 1,
             address);
    fflush(NULL); /* or the child would write it once more */
    pid_t child = fork();
    if (child == 0)
        be_the_session(s, p, parent);
    if (child < 0) {
        serve_say("'%s' cannot be served: %s", run->peer, strerror(errno));
        close(p->fd);
    } else {
        serve_say("serving '%s'", run->peer);
        run->child = child;
        run->fd = p->fd;
        run->gone_ns = 0;
    }
    door_free(p);
}

static void session_ended(struct serve *s, int status)
{
    struct serve_session *run = &s->session;

    s->silent = WIFEXITED(status) && WEXITSTATUS(status) == EHOSTUNREACH;
    if (s->silent)
        serve_say("%s", s->said);
    else if (WIFSIGNALED(status))
        serve_say("the run of '%s' was killed by signal %d (%s)", run->peer, WTERMSIG(status),
                  strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        serve_say("the run of '%s' failed (exit status %d)", run->peer, WEXITSTATUS(status));
    else
        serve_say("the run of '%s' is done", run->peer);
    shutdown(run->fd, SHUT_RDWR);
    close(run->fd);
    run->child = 0;
    s->runs++;
}

/* A peer that is gone ends its run by itself, unless that hangs. */
static bool is_orphan(struct serve_session *run)
{
    struct pollfd p = {.fd = run->fd, .events = POLLRDHUP};
    uint64_t now_ns = clock_now_ns();

    if (!run->gone_ns && poll(&p, 1, 0) > 0)
        run->gone_ns = now_ns;
    return run->gone_ns && now_ns - run->gone_ns > SERVE_ORPHAN_NS;
}

/* the run that is on, at once */
static void serve_kill(struct serve *s)
{
    int status = 0;

    if (!s->session.child)
        return;
    kill(s->session.child, SIGKILL);
    while (waitpid(s->session.child, &status, 0) < 0 && errno == EINTR) {
    }
    session_ended(s, status);
}

void serve_watch(struct serve *s)
{
    struct serve_session *run = &s->session;
    int status = 0;

    if (!run->child)
        return;
    pid_t pid = waitpid(run->child, &status, WNOHANG);
    if (pid == run->child || (pid < 0 && errno == ECHILD)) {
        session_ended(s, status);
    } else if (is_orphan(run)) {
        serve_say("the run of '%s' hangs though its peer is gone", run->peer);
        serve_kill(s);
    }
}

/* Of one that has proved itself and waits: it can only leave. */
static void hear(void *arg, struct meet_place *p)
{
    struct serve *s = arg;
    struct pollfd ended = {.fd = p->fd, .events = POLLRDHUP};

    if (poll(&ended, 1, 0) > 0)
        door_turn_away(&s->door, p, "disconnected");
}

/* Serves the first of those that proved themselves when nobody is served. */
static void serve_the_proved(struct serve *s)
{
    uint64_t now_ns = clock_now_ns();
    struct meet_place *first = NULL;

    for (size_t i = 0; i < DOOR_PLACES; i++) {
        struct meet_place *p = &s->door.places[i];
        if (!p->taken || !p->proved_ns)
            continue;
        if (!first || p->proved_ns < first->proved_ns)
            first = p;
        if (s->session.child && now_ns - p->proved_ns > SERVE_HOLD_NS) {
            shake_answer(&p->shake, s->session.name);
            meet_say(p->fd, &p->shake);
            door_turn_away(&s->door, p, p->shake.error);
        }
    }
    if (first && first->taken && !s->session.child)
        serve_start(s, first);
}

static int serve_all(struct serve *s, char *error, size_t len)
{
    int err = 0;

    while (!err) {
        if (s->l->cancel && *s->l->cancel) {
            snprintf(error, len, "stopped");
            err = -EINTR;
        } else if (s->l->runs && s->runs >= s->l->runs) {
            if (!s->silent || s->l->runs > 1)
                break;
            snprintf(error, len, "%s", s->said);
            err = -EHOSTUNREACH;
        } else {
            err = door_turn(&s->door, hear, s);
            serve_watch(s);
            serve_the_proved(s);
            if (err)
                snprintf(error, len, "cannot listen any more: %s", strerror(-err));
        }
    }
    return err;
}

int meet_serve(const struct meet_listen *l, channel_child_fn *fn, void *arg, char *error,
               size_t len)
{
    uint16_t port = l->port;
    struct serve *s = xcalloc(1, sizeof(*s));

    s->l = l;
    s->fn = fn;
    s->arg = arg;
    s->said =
        mmap(NULL, CHANNEL_ERROR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->said == MAP_FAILED)
        alloc_fail(CHANNEL_ERROR_BYTES);
    int err = door_open(&s->door, l->address, &port, l->secret, l->protocol, error, len);
    if (!err) {
        if (l->ready)
            l->ready(l->arg, l->address ? l->address : "localhost", port);
        err = serve_all(s, error, len);
        serve_kill(s);
        door_close(&s->door);
    }
    munmap(s->said, CHANNEL_ERROR_BYTES);
    secret_wipe(s, sizeof(*s));
    free(s);
    return err;
}

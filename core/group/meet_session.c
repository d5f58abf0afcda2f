/* SPDX-License-Identifier: Apache-2.0 */
/* A server's run: a child for one peer. See meet_serve.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/meet_serve.h"

#define COMPLAINTS_A_SECOND 5

static void say(const char *format, va_list args)
{
    char line[512];

    vsnprintf(line, sizeof(line), format, args);
    fprintf(stderr, "listening: %s\n", line); /* one write a line */
}

void serve_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
}

void serve_tell_left_out(struct serve_log *log)
{
    if (log->left_out)
        serve_say("%llu more were turned away", (unsigned long long)log->left_out);
    log->left_out = 0;
}

void serve_complain(struct serve_log *log, const char *format, ...)
{
    uint64_t now_ns = clock_now_ns();
    va_list args;

    if (now_ns - log->second_ns >= 1000000000u) {
        serve_tell_left_out(log);
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

/* What was the server's alone. The place's own socket stays. */
static void forget_the_server(struct serve *s, const struct serve_place *p)
{
    for (size_t i = 0; i < s->n_listeners; i++)
        close(s->listeners[i]);
    for (size_t i = 0; i < SERVE_PLACES; i++)
        if (s->places[i].taken && &s->places[i] != p)
            close(s->places[i].fd);
}

/* In the child, which does not return. */
static void be_the_session(struct serve *s, struct serve_place *p, pid_t parent)
{
    struct channel *c = NULL;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);            /* it died before the line above */
    signal(SIGINT, SIG_IGN); /* meant for the server, which ends this process */
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    forget_the_server(s, p);
    shake_answer(&p->shake, NULL);
    int err = meet_say(p->fd, &p->shake);
    if (!err)
        err = meet_channel(&c, p->fd, &p->shake, p->shake.name, &p->address);
    for (size_t i = 0; i < SERVE_PLACES; i++)
        shake_end(&s->places[i].shake);
    if (!err)
        err = s->fn(c, s->arg);
    channel_close(c);
    fflush(NULL);
    _exit(err < 0 ? -err : err);
}

void serve_start(struct serve *s, struct serve_place *p)
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
        serve_say("'%s' is served", run->peer);
        run->child = child;
        run->fd = p->fd;
        run->gone_ns = 0;
    }
    shake_end(&p->shake);
    p->taken = false;
}

static void session_ended(struct serve *s, int status)
{
    struct serve_session *run = &s->session;

    s->silent = WIFEXITED(status) && WEXITSTATUS(status) == EHOSTUNREACH;
    if (s->silent)
        serve_say("'%s' does not answer: it hangs or was cut off", run->peer);
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
    s->last_ns = clock_now_ns();
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

void serve_kill(struct serve *s)
{
    int status = 0;

    if (!s->session.child)
        return;
    kill(s->session.child, SIGKILL);
    while (waitpid(s->session.child, &status, 0) < 0 && errno == EINTR) {
    }
    session_ended(s, status);
}

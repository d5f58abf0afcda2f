/* SPDX-License-Identifier: Apache-2.0 */
/* Channels to children of this process, and signs of life over channels of any kind: see
 * channel.h. */
#include "core/group/channel.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* ---- A channel to a child of this process: see channel_fork() in channel.h ---- */

#define REASON_NS 500000000u  /* from its socket's end to its own, at most */
#define GRACE_NS  1000000000u /* to end by itself, before it is killed */

/* Has it ended? Waits for so long. */
static bool child_ended(struct fd_channel *c, uint64_t wait_ns)
{
    uint64_t until_ns = fd_until(wait_ns);

    for (;;) {
        int status = -1;
        pid_t pid = c->child_gone ? 0 : waitpid(c->child, &status, WNOHANG);
        if (pid == c->child || (pid < 0 && errno == ECHILD)) { /* ECHILD: somebody else waited */
            c->child_gone = true;
            c->child_status = status;
        }
        if (c->child_gone || clock_now_ns() >= until_ns)
            return c->child_gone;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

static int look_at_child(struct fd_channel *c, bool closed)
{
    char *text = c->base.error;
    size_t len = sizeof(c->base.error);
    int status;

    if (!child_ended(c, closed ? REASON_NS : 0))
        return 0;
    status = c->child_status;
    if (status == -1)
        snprintf(text, len, "'%s' has ended", c->base.peer);
    else if (WIFSIGNALED(status))
        snprintf(text, len, "'%s' was killed by signal %d (%s)", c->base.peer, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, len, "'%s' ended with exit status %d", c->base.peer, WEXITSTATUS(status));
    return -ECONNRESET;
}

static void close_child(struct channel *channel)
{
    struct fd_channel *c = (struct fd_channel *)channel;

    shutdown(c->fd, SHUT_RDWR);
    if (!child_ended(c, GRACE_NS)) {
        kill(c->child, SIGKILL);
        while (waitpid(c->child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    fd_channel_close(channel);
}

static const struct channel_ops local_ops = {
    .name = "local",
    .send = fd_channel_send,
    .recv = fd_channel_recv,
    .alive = fd_channel_alive,
    .beat = fd_channel_beat,
    .expect = fd_channel_expect,
    .quiet_ns = fd_channel_quiet_ns,
    .address = fd_channel_address,
    .token = fd_channel_token,
    .close = fd_channel_close,
};

static const struct channel_ops local_parent_ops = {
    .name = "local",
    .send = fd_channel_send,
    .recv = fd_channel_recv,
    .alive = fd_channel_alive,
    .beat = fd_channel_beat,
    .expect = fd_channel_expect,
    .quiet_ns = fd_channel_quiet_ns,
    .address = fd_channel_address,
    .token = fd_channel_token,
    .close = close_child,
};

pid_t channel_child(struct channel *channel)
{
    return channel && channel_base(channel)->ops == &local_parent_ops
               ? ((struct fd_channel *)channel)->child
               : 0;
}

/* How many of them have not ended. */
static size_t count_children(struct channel *const *c, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        left += channel_child(c[i]) && !child_ended((struct fd_channel *)c[i], 0);
    return left;
}

void channel_end_children(struct channel *const *c, size_t n)
{
    uint64_t until_ns = fd_until(GRACE_NS);

    for (size_t i = 0; i < n; i++)
        if (channel_child(c[i]))
            shutdown(((struct fd_channel *)c[i])->fd, SHUT_RDWR);
    while (count_children(c, n) && clock_now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    for (size_t i = 0; i < n; i++)
        if (channel_child(c[i]) && !((struct fd_channel *)c[i])->child_gone)
            kill(channel_child(c[i]), SIGKILL);
}

void channel_forget(struct channel *c)
{
    if (!c)
        return;
    close(((struct fd_channel *)c)->fd); /* not shut down: the parent has it */
    free(c);
}

/* In the child, which does not return. `parents` is the other end of `fd`. */
static void be_the_child(int fd, struct fd_channel *parents, pid_t parent, channel_child_fn *fn,
                         void *arg)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);            /* it died before the line above */
    signal(SIGINT, SIG_IGN); /* meant for the parent, which ends this process */
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    struct fd_channel *c = fd_channel_new(&local_ops, fd, NULL);
    if (!c)
        _exit(ENOMEM);
    memcpy(c->link.token, parents->link.token, sizeof(c->link.token));
    channel_forget((struct channel *)parents);
    snprintf(c->base.peer, sizeof(c->base.peer), "the process that started this one (pid %d)",
             (int)parent);
    int status = fn((struct channel *)c, arg);
    fd_channel_close((struct channel *)c);
    fflush(NULL);
    _exit(status < 0 ? -status : status);
}

/* The parent's end, and the socket for the child's: that is made in the child, so that a parent of
 * many touches no more memory than it uses, and each fork has little to copy. */
static int make_pair(struct fd_channel **parents, int *child_end)
{
    uint8_t key[SECRET_KEY_BYTES];
    int fds[2], err = secret_random(key, sizeof(key));

    if (err)
        return err;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return -errno;
    *child_end = fds[1];
    *parents = fd_channel_new(&local_parent_ops, fds[0], NULL);
    if (*parents) {
        memcpy((*parents)->link.token, key, sizeof(key));
        return 0;
    }
    close(fds[0]);
    close(fds[1]);
    return -ENOMEM;
}

int channel_fork(struct channel **channel, channel_child_fn *fn, void *arg)
{
    struct fd_channel *c = NULL;
    pid_t parent = getpid();
    int child_end = -1, err = make_pair(&c, &child_end);

    if (err || !c)
        return err;
    fflush(NULL); /* or the child would write it once more */
    pid_t child = fork();
    if (child == 0)
        be_the_child(child_end, c, parent, fn, arg);
    if (child < 0)
        err = -errno;
    close(child_end); /* not shut down: the child has it */
    if (err) {
        fd_channel_close((struct channel *)c);
        return err;
    }
    c->child = child;
    c->look = look_at_child;
    snprintf(c->base.peer, sizeof(c->base.peer), "the other process (pid %d)", (int)child);
    *channel = (struct channel *)c;
    return 0;
}

#define EVERY_NS 500000000

struct beat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    unsigned n;
    struct channel *channels[];
};

static void beat_all(const struct beat *b)
{
    for (unsigned i = 0; i < b->n; i++)
        channel_base(b->channels[i])->ops->beat(b->channels[i]);
}

static void *live(void *arg)
{
    struct beat *b = arg;
    struct timespec next;

    pthread_mutex_lock(&b->lock);
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!b->over) {
        beat_all(b);
        next.tv_nsec += EVERY_NS;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&b->ended, &b->lock, &next);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void release(struct beat *b)
{
    pthread_cond_destroy(&b->ended);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static void take(struct beat *b, struct channel *c, uint64_t silent_ns)
{
    if (!c || !channel_base(c)->ops->beat)
        return;
    channel_base(c)->ops->expect(c, silent_ns);
    b->channels[b->n++] = c;
}

int beat_start(struct beat **out, struct channel *const *channels, unsigned n, uint64_t silent_ns)
{
    struct beat *b = calloc(1, sizeof(*b) + n * sizeof(struct channel *));
    pthread_condattr_t attr;
    sigset_t all, before;

    *out = NULL;
    if (!b)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        take(b, channels[i], silent_ns);
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->ended, &attr);
    pthread_condattr_destroy(&attr);
    beat_all(b);      /* so that the other end has one before it hears anything else */
    sigfillset(&all); /* signals are for who waits */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = b->n ? -pthread_create(&b->thread, NULL, live, b) : -EOPNOTSUPP;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        release(b);
    else
        *out = b;
    return err;
}

void beat_end(struct beat *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->over = true;
    pthread_cond_signal(&b->ended);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    release(b);
}

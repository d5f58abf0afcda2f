/* SPDX-License-Identifier: Apache-2.0 */
/* A channel to a child of this process: see channel_fork() in channel.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/fd_channel.h"

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
    .address = fd_channel_address,
    .token = fd_channel_token,
    .close = fd_channel_close,
};

static const struct channel_ops local_parent_ops = {
    .name = "local",
    .send = fd_channel_send,
    .recv = fd_channel_recv,
    .alive = fd_channel_alive,
    .address = fd_channel_address,
    .token = fd_channel_token,
    .close = close_child,
};

/* In the child, which does not return. */
static void be_the_child(struct fd_channel *c, struct fd_channel *parents, pid_t parent,
                         channel_child_fn *fn, void *arg)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);            /* it died before the line above */
    signal(SIGINT, SIG_IGN); /* meant for the parent, which ends this process */
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    close(parents->fd);
    free(parents);
    snprintf(c->base.peer, sizeof(c->base.peer), "the process that started this one (pid %d)",
             (int)parent);
    int status = fn((struct channel *)c, arg);
    fd_channel_close((struct channel *)c);
    fflush(NULL);
    _exit(status < 0 ? -status : status);
}

/* Both ends, as yet in one process. */
static int make_pair(struct fd_channel *ends[2])
{
    uint8_t key[SECRET_KEY_BYTES];
    int fds[2], err = secret_random(key, sizeof(key));

    if (err)
        return err;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return -errno;
    ends[0] = fd_channel_new(&local_parent_ops, fds[0], NULL, false);
    ends[1] = fd_channel_new(&local_ops, fds[1], NULL, true);
    if (!ends[0] || !ends[1])
        goto close_fds;
    memcpy(ends[0]->key, key, sizeof(key));
    memcpy(ends[1]->key, key, sizeof(key));
    return 0;
close_fds:
    free(ends[0]);
    free(ends[1]);
    close(fds[0]);
    close(fds[1]);
    return -ENOMEM;
}

int channel_fork(struct channel **channel, channel_child_fn *fn, void *arg)
{
    struct fd_channel *ends[2] = {NULL, NULL};
    pid_t parent = getpid();
    int err = make_pair(ends);

    if (err || !ends[0] || !ends[1])
        return err;
    fflush(NULL); /* or the child would write it once more */
    pid_t child = fork();
    if (child == 0)
        be_the_child(ends[1], ends[0], parent, fn, arg);
    if (child < 0)
        err = -errno;
    close(ends[1]->fd); /* not shut down: the child has it */
    free(ends[1]);
    if (err) {
        fd_channel_close((struct channel *)ends[0]);
        return err;
    }
    ends[0]->child = child;
    ends[0]->look = look_at_child;
    snprintf(ends[0]->base.peer, sizeof(ends[0]->base.peer), "the other process (pid %d)",
             (int)child);
    *channel = (struct channel *)ends[0];
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Channels to children of this process, and signs of life over channels of any kind: see
 * channel.h. */
#include "core/group/channel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"

int group_fail(int err, char *error, size_t len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, len, format, args);
    va_end(args);
    return err;
}

/* ---- A channel to a child of this process: see channel_fork() in channel.h ---- */

#define REASON_NS 500000000u  /* from its socket's end to its own, at most */
#define GRACE_NS  1000000000u /* to end by itself, before it is killed */

/* Has it ended? Waits for so long. */
static bool child_ended(struct channel *c, uint64_t wait_ns)
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

static int look_at_child(struct channel *c, bool closed)
{
    char *text = c->error;
    size_t len = sizeof(c->error);
    int status;

    if (!child_ended(c, closed ? REASON_NS : 0))
        return 0;
    status = c->child_status;
    if (status == -1)
        snprintf(text, len, "'%s' has ended", c->peer);
    else if (WIFSIGNALED(status))
        snprintf(text, len, "'%s' was killed by signal %d (%s)", c->peer, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, len, "'%s' ended with exit status %d", c->peer, WEXITSTATUS(status));
    return -ECONNRESET;
}

static void end_child(struct channel *c)
{
    if (child_ended(c, GRACE_NS))
        return;
    kill(c->child, SIGKILL);
    while (waitpid(c->child, NULL, 0) < 0 && errno == EINTR) {
    }
}

pid_t channel_child(const struct channel *c)
{
    return c ? c->child : 0;
}

/* How many of them have not ended. */
static size_t count_children(struct channel *const *c, size_t n)
{
    size_t left = 0;

    for (size_t i = 0; i < n; i++)
        left += channel_child(c[i]) && !child_ended(c[i], 0);
    return left;
}

void channel_end_children(struct channel *const *c, size_t n)
{
    uint64_t until_ns = fd_until(GRACE_NS);

    for (size_t i = 0; i < n; i++)
        if (channel_child(c[i]))
            shutdown(c[i]->fd, SHUT_RDWR);
    while (count_children(c, n) && clock_now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    for (size_t i = 0; i < n; i++)
        if (channel_child(c[i]) && !c[i]->child_gone)
            kill(channel_child(c[i]), SIGKILL);
}

void channel_forget(struct channel *c)
{
    if (!c)
        return;
    close(c->fd); /* not shut down: the parent has it */
    free(c);
}

/* In the child, which does not return. `parents` is the other end of `fd`. */
static void be_the_child(int fd, struct channel *parents, pid_t parent, channel_child_fn *fn,
                         void *arg)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);            /* it died before the line above */
    signal(SIGINT, SIG_IGN); /* meant for the parent, which ends this process */
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    struct channel *c = channel_new(fd, NULL);
    memcpy(c->link.token, parents->link.token, sizeof(c->link.token));
    channel_forget(parents);
    snprintf(c->peer, sizeof(c->peer), "the process that started this one (pid %d)", (int)parent);
    int status = fn(c, arg);
    channel_close(c);
    fflush(NULL);
    _exit(status < 0 ? -status : status);
}

/* The parent's end, and the socket for the child's: that is made in the child, so that a parent of
 * many touches no more memory than it uses, and each fork has little to copy. */
static int make_pair(struct channel **parents, int *child_end)
{
    uint8_t key[SECRET_KEY_BYTES];
    int fds[2], err = secret_random(key, sizeof(key));

    if (err)
        return err;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
        return -errno;
    *child_end = fds[1];
    *parents = channel_new(fds[0], NULL);
    memcpy((*parents)->link.token, key, sizeof(key));
    return 0;
}

int channel_fork(struct channel **channel, channel_child_fn *fn, void *arg)
{
    struct channel *c = NULL;
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
        channel_close(c);
        return err;
    }
    c->child = child;
    c->look = look_at_child;
    c->end = end_child;
    snprintf(c->peer, sizeof(c->peer), "the other process (pid %d)", (int)child);
    *channel = c;
    return 0;
}

#define EVERY_MS 500
#define PAUSE_NS 1000000000u /* a turn that took longer: this process stood still */

struct beat {
    pthread_t thread;
    int over; /* an eventfd */
    void (*gone)(void *arg, unsigned i);
    void *arg;
    pthread_mutex_t lock; /* of gone, arg, and while that is called */
    uint64_t stood_ns;    /* atomic */
    uint64_t due_ns;      /* atomic: of the next signs */
    unsigned n;           /* channels that can */
    struct pollfd *ends;  /* their sockets, then `over` */
    struct {
        struct channel *c;
        unsigned number;
    } channels[];
};

static void beat_all(const struct beat *b)
{
    for (unsigned i = 0; i < b->n; i++)
        channel_beat(b->channels[i].c);
}

/* Nobody is woken for ends that nobody wants to know. */
static bool wait_until(struct beat *b, uint64_t until_ns)
{
    uint64_t now_ns = clock_now_ns();

    while (now_ns < until_ns) {
        bool tells = __atomic_load_n(&b->gone, __ATOMIC_RELAXED);
        struct pollfd *from = tells ? b->ends : b->ends + b->n;
        int n = poll(from, (tells ? b->n : 0) + 1, (int)((until_ns - now_ns) / 1000000) + 1);
        if (n > 0 && b->ends[b->n].revents)
            return false;
        if (n > 0) {
            /* Those whose socket has ended are told of, each once. */
            pthread_mutex_lock(&b->lock);
            for (unsigned i = 0; i < b->n && b->gone; i++)
                if (b->ends[i].fd >= 0 && b->ends[i].revents) {
                    b->ends[i].fd = -1;
                    b->gone(b->arg, b->channels[i].number);
                }
            pthread_mutex_unlock(&b->lock);
        }
        now_ns = clock_now_ns();
    }
    return true;
}

static void *live(void *arg)
{
    struct beat *b = arg;
    uint64_t now_ns;

    do {
        now_ns = clock_now_ns();
        __atomic_store_n(&b->stood_ns, beat_stood_ns(b), __ATOMIC_RELAXED);
        beat_all(b);
        __atomic_store_n(&b->due_ns, now_ns + EVERY_MS * 1000000ull, __ATOMIC_RELEASE);
    } while (wait_until(b, b->due_ns));
    return NULL;
}

static void release(struct beat *b)
{
    if (b->over >= 0)
        close(b->over);
    pthread_mutex_destroy(&b->lock);
    free(b->ends);
    free(b);
}

int beat_start(struct beat **out, struct channel *const *channels, unsigned n, uint64_t silent_ns)
{
    struct beat *b = xcalloc(1, sizeof(*b) + n * sizeof(b->channels[0]));
    sigset_t all, before;

    *out = NULL;
    pthread_mutex_init(&b->lock, NULL);
    b->ends = xcalloc(n + 1, sizeof(*b->ends));
    b->over = eventfd(0, EFD_CLOEXEC);
    if (b->over < 0) {
        int err = -errno;
        release(b);
        return err;
    }
    for (unsigned i = 0; i < n; i++) {
        struct channel *c = channels[i];
        if (!c)
            continue;
        channel_expect(c, silent_ns);
        b->ends[b->n] = (struct pollfd){.fd = c->fd, .events = POLLRDHUP};
        b->channels[b->n].c = c;
        b->channels[b->n++].number = i;
    }
    b->ends[b->n] = (struct pollfd){.fd = b->over, .events = POLLIN};
    b->due_ns = clock_now_ns();
    beat_all(b);      /* so that the other end has one before it hears anything else */
    sigfillset(&all); /* signals are for who waits */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = b->n ? -pthread_create(&b->thread, NULL, live, b) : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (b->n && !err)
        *out = b;
    else
        release(b);
    return err;
}

void beat_tell(struct beat *b, void (*gone)(void *arg, unsigned i), void *arg)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->arg = arg;
    __atomic_store_n(&b->gone, gone, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&b->lock);
}

/* Who asks may have woken up before the thread that should have given the signs: who reads that these
 * are on time again reads also how late they were. */
uint64_t beat_stood_ns(const struct beat *b)
{
    if (!b)
        return 0;
    uint64_t due_ns = __atomic_load_n(&b->due_ns, __ATOMIC_ACQUIRE), now_ns = clock_now_ns();
    uint64_t stood_ns = __atomic_load_n(&b->stood_ns, __ATOMIC_RELAXED);
    uint64_t late_ns = now_ns > due_ns ? now_ns - due_ns : 0;

    return late_ns > PAUSE_NS && late_ns > stood_ns ? late_ns : stood_ns;
}

void beat_end(struct beat *b)
{
    if (!b)
        return;
    eventfd_write(b->over, 1);
    pthread_join(b->thread, NULL);
    release(b);
}

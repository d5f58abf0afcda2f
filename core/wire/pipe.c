/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages through pipes, between processes of one machine. Each end makes a pipe for what comes in
 * on a link. The peer opens its write end by /proc/PID/fd, looks whether it is the right pipe, and
 * proves itself by the token that it writes first. Then the owner lets go of its own copy of the
 * write end: so a peer's death shows as the end of the stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hw/machine.h"
#include "core/wire/shm.h"

#define ALL_BYTES     (8 << 20) /* of all pipes of a worker */
#define LOOKS_A_TURN  1024u     /* of a worker that polls */
#define LOOKS_A_YIELD 8u
#define JOIN_MS       10 /* between two looks at what else may end a join */

struct pipe_address { /* sent as it is */
    int32_t pid, fd;
    uint64_t device, inode; /* so that nothing is written to another's pipe */
};

struct pipe_link {
    _Alignas(64) int out; /* the peer's write end; -1: closed, as the others */
    struct wire_posts out_posts;
    _Alignas(64) int in;
    struct wire_posts in_posts;
    int in_write; /* for the peer, until it has it */
    int pidfd;    /* until then */
};

struct pipe_worker {
    struct pollfd *polls[2]; /* of a side, or both: room for two of each link */
};

struct pipe_wire {
    int buffer_bytes;
    struct sigaction before;
};

static struct pipe_link *pipe_of(const struct wire_link *l)
{
    return l->state;
}

/* ---- Messages ---- */

static int pipe_send(struct wire_link *l, const void *at, size_t bytes)
{
    return wire_posts_add(l, &pipe_of(l)->out_posts, &l->out, at, bytes);
}

static int pipe_receive(struct wire_link *l, void *at, size_t bytes)
{
    return wire_posts_add(l, &pipe_of(l)->in_posts, &l->in, at, bytes);
}

static void pipe_retract(struct wire_link *l)
{
    wire_posts_retract(&pipe_of(l)->in_posts, &l->in);
}

/* What a read or write said that moved nothing: 0: none now; -errno. */
static ssize_t no_bytes(struct wire_link *l, ssize_t n)
{
    struct wire *w = l->worker->wire;
    char name[160];

    if (n == 0 || errno == EPIPE)
        return wire_shm_gone(l);
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    return wire_fail(w, -errno, "the pipe to %s failed: %s",
                     world_name(w->world, l->peer, name, sizeof(name)), strerror(errno));
}

static WIRE_INLINE ssize_t push(struct wire_link *l, struct pipe_link *pl)
{
    const struct wire_post *p = wire_posts_at(&pl->out_posts, 0);
    size_t done = pl->out_posts.done;
    ssize_t n = write(pl->out, p->at + done, p->bytes - done);

    if (n <= 0)
        return no_bytes(l, n);
    wire_went(l, (uint64_t)n, wire_posts_moved(&pl->out_posts, (size_t)n));
    return n;
}

static WIRE_INLINE ssize_t pull(struct wire_link *l, struct pipe_link *pl)
{
    const struct wire_post *p = wire_posts_at(&pl->in_posts, 0);
    size_t done = pl->in_posts.done;
    ssize_t n = read(pl->in, p->at + done, p->bytes - done);

    if (n <= 0)
        return no_bytes(l, n);
    wire_came(l, (uint64_t)n, wire_posts_moved(&pl->in_posts, (size_t)n));
    return n;
}

/* Something of each link. */
static WIRE_INLINE int look(struct wire_worker *k, enum wire_side sides)
{
    bool moved = false;

    for (unsigned i = 0; i < k->n_links; i++) {
        struct wire_link *l = &k->links[i];
        struct pipe_link *pl = pipe_of(l);
        ssize_t out = sides & WIRE_OUT && pl->out_posts.n ? push(l, pl) : 0;
        ssize_t in = out >= 0 && sides & WIRE_IN && pl->in_posts.n ? pull(l, pl) : 0;
        if (out < 0 || in < 0)
            return (int)(out < 0 ? out : in);
        moved |= out || in;
    }
    return moved;
}

static struct pollfd *polls_of(const struct wire_worker *k, enum wire_side sides)
{
    return ((struct pipe_worker *)k->state)->polls[sides == WIRE_IN];
}

/* What it waits for. */
static nfds_t list_waits(const struct wire_worker *k, enum wire_side sides)
{
    struct pollfd *polls = polls_of(k, sides);
    nfds_t n = 0;

    for (unsigned i = 0; i < k->n_links; i++) {
        const struct pipe_link *pl = pipe_of(&k->links[i]);
        if (sides & WIRE_OUT && pl->out_posts.n)
            polls[n++] = (struct pollfd){.fd = pl->out, .events = POLLOUT};
        if (sides & WIRE_IN && pl->in_posts.n)
            polls[n++] = (struct pollfd){.fd = pl->in, .events = POLLIN};
    }
    return n;
}

static int sleep_for(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    uint64_t ms = wait_ns / 1000000;
    nfds_t n = list_waits(k, sides);

    if (n)
        poll(polls_of(k, sides), n, ms < 1000 ? (int)ms + 1 : 1000);
    return look(k, sides);
}

/* A turn of a worker that never sleeps. */
static WIRE_INLINE int poll_turn(struct wire_worker *k, enum wire_side sides)
{
    int rc = 0;

    for (unsigned i = 0; i < LOOKS_A_TURN && !rc; i++) {
        cpu_pause();
        rc = look(k, sides);
    }
    if (!rc)
        sched_yield();
    return rc;
}

static int pipe_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    int rc = look(k, sides);

    if (rc || !wait_ns || k->way == WIRE_BLOCK)
        return rc;
    if (k->way == WIRE_POLL)
        return poll_turn(k, sides);
    uint64_t start_ns = clock_now_ns();
    rc = wire_spin(k, sides, look, LOOKS_A_YIELD, start_ns, wait_ns);
    uint64_t spent_ns = clock_now_ns() - start_ns;
    return rc || spent_ns >= wait_ns ? rc : sleep_for(k, sides, wait_ns - spent_ns);
}

/* ---- How a pipe comes to stand ---- */

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int largest_buffer(void)
{
    FILE *f = fopen("/proc/sys/fs/pipe-max-size", "re");
    int bytes = 1 << 20;

    if (f && fscanf(f, "%d", &bytes) != 1)
        bytes = 1 << 20;
    if (f)
        fclose(f);
    return bytes;
}

/* A peer's death is an error code, not a signal. */
static int pipe_open(struct wire *w)
{
    struct pipe_wire *s = calloc(1, sizeof(*s));
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    w->state = s;
    if (!s)
        return wire_fail(w, -ENOMEM, "out of memory");
    sigaction(SIGPIPE, &ignore, &s->before);
    return wire_shm_no_line(w);
}

static int pipe_link(struct wire_link *l)
{
    struct wire *w = l->worker->wire;
    int err = wire_shm_same_machine(l);

    if (!err && l->worker->way == WIRE_BLOCK && l->worker->n_links)
        err = wire_fail(w, -EOPNOTSUPP, "a worker that blocks has one link");
    if (err)
        return err;
    struct pipe_link *pl = aligned_alloc(_Alignof(struct pipe_link), sizeof(*pl));
    if (!pl)
        return wire_fail(w, -ENOMEM, "out of memory");
    *pl = (struct pipe_link){.out = -1, .in = -1, .in_write = -1, .pidfd = -1};
    l->state = pl;
    l->ahead = WIRE_SHM_CHUNK;
    return 0;
}

/* As large as the system allows, or less: as was asked for, and where there are many. */
static int make_pipe(struct wire_link *l)
{
    struct pipe_wire *s = l->worker->wire->state;
    struct pipe_link *pl = pipe_of(l);
    const struct wire_options *o = &l->worker->wire->options;
    int fds[2], bytes = largest_buffer();

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
        return wire_fail(l->worker->wire, -errno, "a pipe cannot be made: %s", strerror(errno));
    if (o->ring_bytes && o->ring_bytes < (uint64_t)bytes)
        bytes = (int)o->ring_bytes;
    while (!o->ring_bytes && (size_t)bytes * l->worker->n_links > ALL_BYTES)
        bytes /= 2;
    pl->in = fds[0];
    pl->in_write = fds[1];
    fcntl(pl->in, F_SETPIPE_SZ, bytes); /* refused: what it is is reported */
    s->buffer_bytes = fcntl(pl->in, F_GETPIPE_SZ);
    return 0;
}

static int pipe_address(struct wire_link *l, void *address, size_t *len)
{
    struct pipe_link *pl = pipe_of(l);
    int err = pl->in < 0 ? make_pipe(l) : 0;
    struct stat st = {0};

    if (!err && fstat(pl->in, &st))
        err = wire_fail(l->worker->wire, -errno, "a pipe cannot be named: %s", strerror(errno));
    struct pipe_address own = {.pid = getpid(),
                               .fd = pl->in_write,
                               .device = (uint64_t)st.st_dev,
                               .inode = (uint64_t)st.st_ino};
    memcpy(address, &own, sizeof(own));
    *len = sizeof(own);
    return err;
}

/* A number of another namespace of processes leads to nothing, or to something else. */
static int attach(struct wire_link *l, const void *address, size_t len)
{
    struct pipe_link *pl = pipe_of(l);
    struct wire *w = l->worker->wire;
    uint8_t token[CHANNEL_TOKEN_BYTES];
    struct pipe_address theirs;
    struct stat st;
    char name[160];

    world_name(w->world, l->peer, name, sizeof(name));
    if (len != sizeof(theirs))
        return wire_fail(w, -EPROTO, "%s did not say where its pipe is", name);
    memcpy(&theirs, address, sizeof(theirs));
    pl->pidfd = wire_shm_pidfd(theirs.pid);
    pl->out = wire_shm_open_fd(l, theirs.pid, theirs.fd, O_WRONLY, "pipe");
    if (pl->out < 0)
        return pl->out;
    if (fstat(pl->out, &st) || !S_ISFIFO(st.st_mode) || st.st_dev != theirs.device ||
        st.st_ino != theirs.inode) {
        close_end(&pl->out); /* nothing of it is ours to touch */
        return wire_fail(
            w, -EOPNOTSUPP,
            "what /proc shows of %s is not its pipe: are the two in different containers", name);
    }
    wire_shm_token(w, world_rank(w->world), token);
    ssize_t n = write(pl->out, token, sizeof(token));
    if (n != (ssize_t)sizeof(token))
        return wire_fail(w, -ECONNRESET, "%s does not take what is written to its pipe", name);
    return 0;
}

/* 1: the peer has proved itself; 0: it has written nothing yet; -errno. */
static int take_token(struct wire_link *l, const char *name)
{
    struct pipe_link *pl = pipe_of(l);
    struct wire *w = l->worker->wire;
    uint8_t right[CHANNEL_TOKEN_BYTES], token[CHANNEL_TOKEN_BYTES];
    ssize_t n = read(pl->in, token, sizeof(token));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    wire_shm_token(w, l->peer, right);
    if (n != (ssize_t)sizeof(token) || memcmp(token, right, sizeof(right)) != 0)
        return wire_fail(w, -EPROTO, "who writes to the pipe for %s is another", name);
    return 1;
}

static int wait_for_token(struct wire_link *l)
{
    struct pipe_link *pl = pipe_of(l);
    struct wire *w = l->worker->wire;
    uint64_t until_ns = clock_now_ns() + WIRE_JOIN_NS;
    char name[160];
    int rc = 0;

    world_name(w->world, l->peer, name, sizeof(name));
    while (!rc && (rc = take_token(l, name)) == 0) {
        struct pollfd polls[] = {{.fd = pl->in, .events = POLLIN},
                                 {.fd = pl->pidfd, .events = POLLIN},
                                 {.fd = pl->out, .events = 0}};
        poll(polls, 3, JOIN_MS);
        if (!polls[0].revents && (polls[1].revents || polls[2].revents))
            rc = wire_fail(w, -ECONNRESET, "%s ended before it opened this rank's pipe", name);
        else if (clock_now_ns() > until_ns)
            rc = wire_fail(w, -ETIMEDOUT, "%s has not opened this rank's pipe", name);
        else if ((rc = wire_attend(w)) != 0)
            rc = wire_fail(w, rc, "the wait for %s was ended", name);
    }
    return rc < 0 ? rc : 0;
}

static int stand(struct wire_link *l)
{
    struct pipe_link *pl = pipe_of(l);
    int err = wait_for_token(l);

    close_end(&pl->in_write);
    close_end(&pl->pidfd);
    if (err || l->worker->way != WIRE_BLOCK)
        return err;
    if (fcntl(pl->in, F_SETFL, 0) || fcntl(pl->out, F_SETFL, 0))
        return wire_fail(l->worker->wire, -errno, "a pipe cannot be made to wait: %s",
                         strerror(errno));
    return 0;
}

static int make_polls(struct wire_worker *k)
{
    struct pipe_worker *s = calloc(1, sizeof(*s));

    k->state = s;
    for (int i = 0; i < 2 && s; i++)
        s->polls[i] = calloc(2 * (size_t)k->n_links + 1, sizeof(*s->polls[i]));
    return s && s->polls[0] && s->polls[1] ? 0 : wire_fail(k->wire, -ENOMEM, "out of memory");
}

/* All that can be opened is, so that one that cannot holds nobody else up. */
static int pipe_join(struct wire *w, const void *const *addresses, const size_t *lens)
{
    int err = 0;

    for (unsigned i = 0; i < w->n_links; i++) {
        int now = attach(&w->links[i], addresses[i], lens[i]);
        err = err ? err : now;
        snprintf(w->links[i].device, sizeof(w->links[i].device), "%s", w->ops->name);
    }
    for (unsigned i = 0; i < w->n_links && !err; i++)
        err = stand(&w->links[i]);
    for (unsigned i = 0; i < w->n_workers && !err; i++)
        err = make_polls(&w->workers[i]);
    return err;
}

static void close_link(struct pipe_link *pl)
{
    close_end(&pl->out);
    close_end(&pl->in);
    close_end(&pl->in_write);
    close_end(&pl->pidfd);
    free(pl);
}

static void pipe_close(struct wire *w)
{
    struct pipe_wire *s = w->state;

    for (unsigned i = 0; i < w->n_links; i++)
        close_link(w->links[i].state);
    for (unsigned i = 0; i < w->n_workers; i++) {
        struct pipe_worker *k = w->workers[i].state;
        for (int side = 0; side < 2 && k; side++)
            free(k->polls[side]);
        free(k);
    }
    if (s)
        sigaction(SIGPIPE, &s->before, NULL);
    free(s);
}

static void describe(struct wire *w, char *text, size_t len)
{
    snprintf(text, len, "pipe buffer %d KiB", ((struct pipe_wire *)w->state)->buffer_bytes >> 10);
}

const struct wire_ops wire_pipe = {
    .name = "pipe",
    .help = "pipes between processes of one machine",
    .ways = WIRE_CAN(WIRE_YIELD) | WIRE_CAN(WIRE_POLL) | WIRE_CAN(WIRE_BLOCK),
    .streams = true,
    .backends = wire_shm_backends,
    .open = pipe_open,
    .link = pipe_link,
    .address = pipe_address,
    .join = pipe_join,
    .send = pipe_send,
    .receive = pipe_receive,
    .progress = pipe_progress,
    .retract = pipe_retract,
    .describe = describe,
    .rail = wire_shm_rail,
    .close = pipe_close,
};

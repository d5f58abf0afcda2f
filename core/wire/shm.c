/* SPDX-License-Identifier: Apache-2.0 */
/* The wire over shared memory: see shm.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/secret.h"
#include "core/hw/host_buffer.h"
#include "core/hw/machine.h"
#include "core/wire/shm.h"

/* Sent as it is. */
struct wire_shm_address {
    int32_t pid, fd;
    uint64_t map_bytes, ring_at, ring_bytes;
};

/* ---- What goes through the rings of shm.h ---- */

#define LOOKS_A_CLOCK 64u /* looks in vain between two readings of the clock */

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int wire_shm_send(struct wire *f, struct wire_link *l, const void *at, size_t bytes)
{
    int err = wire_posts_add(f, &wire_shm_link_of(l)->out_posts, at, bytes);

    if (!err)
        l->posted_out += bytes;
    return err;
}

static int wire_shm_receive(struct wire *f, struct wire_link *l, void *at, size_t bytes)
{
    int err = wire_posts_add(f, &wire_shm_link_of(l)->in_posts, at, bytes);

    if (!err)
        l->posted_in += bytes;
    return err;
}

/* A whole message that is short. Before its place in the stream is told anew, what the peer may be
 * copying is no longer valid. */
static void put_brief(struct wire_shm_ring *r, uint64_t end, const struct wire_post *p)
{
    uint64_t words[WIRE_SHM_BRIEF / 8] = {0};

    if (p->bytes > WIRE_SHM_BRIEF)
        return;
    memcpy(words, p->at, p->bytes);
    atomic_store_explicit(&r->brief_end, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i * 8 < p->bytes; i++)
        atomic_store_explicit(&r->brief[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&r->brief_end, end, memory_order_release);
}

/* The message that ends there in the stream, as the peer sent it whole. False: it is to be had from
 * the ring alone. */
static bool take_brief(const struct wire_shm_ring *r, uint64_t end, const struct wire_post *p)
{
    uint64_t words[WIRE_SHM_BRIEF / 8];

    if (p->bytes > WIRE_SHM_BRIEF ||
        atomic_load_explicit(&r->brief_end, memory_order_acquire) != end)
        return false;
    for (size_t i = 0; i * 8 < p->bytes; i++)
        words[i] = atomic_load_explicit(&r->brief[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&r->brief_end, memory_order_relaxed) != end)
        return false;
    memcpy(p->at, words, p->bytes);
    return true;
}

/* It, if it sleeps for that. */
static void wire_shm_wake(struct wire_shm_head *head, uint32_t what)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!(atomic_load_explicit(&head->sleeping, memory_order_relaxed) & what))
        return;
    atomic_store_explicit(&head->sleeping, 0, memory_order_relaxed);
    atomic_fetch_add(&head->events, 1);
    syscall(SYS_futex, &head->events, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The process has ended, as far as can be told. */
static bool wire_shm_dead(const struct wire_shm_link *sl)
{
    struct pollfd p = {.fd = sl->pidfd, .events = POLLIN};

    if (sl->pidfd >= 0)
        return poll(&p, 1, 0) > 0;
    return sl->pid > 0 && kill(sl->pid, 0) && errno == ESRCH;
}

/* A chunk, of one message or of several small ones, so that the peer works on it while the next is
 * copied. */
static bool push(struct wire_link *l, struct wire_shm_link *sl)
{
    struct wire_shm_ring *r = sl->out;
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    size_t moved = 0, n = 1;

    size_t most = least(WIRE_SHM_CHUNK, sl->out_bytes / 4);
    if (sl->out_bytes - (size_t)(written - sl->out_read) < most)
        sl->out_read = atomic_load_explicit(&r->read, memory_order_acquire);
    most = least(most, sl->out_bytes - (size_t)(written - sl->out_read));
    while (moved < most && sl->out_posts.n) {
        const struct wire_post *p = wire_posts_at(&sl->out_posts, 0);
        size_t at = (written + moved) & (sl->out_bytes - 1), done = sl->out_posts.done;
        n = least(least(p->bytes - done, most - moved), sl->out_bytes - at);
        memcpy(r->data + at, p->at + done, n);
        moved += n;
        if (n == p->bytes)
            put_brief(r, written + moved, p);
        wire_sent(l, &sl->out_posts, n);
    }
    if (!moved)
        return false;
    atomic_store_explicit(&r->written, written + moved, memory_order_release);
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA);
    return true;
}

static bool pull(const struct wire_shm *s, struct wire_link *l, struct wire_shm_link *sl)
{
    struct wire_shm_ring *r = sl->in;
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    size_t moved = 0, n = 1;

    if (sl->in_written == read)
        sl->in_written = atomic_load_explicit(&r->written, memory_order_acquire);
    size_t most = least(WIRE_SHM_CHUNK, s->ring_bytes / 4);
    most = least(most, (size_t)(sl->in_written - read));
    while (moved < most && sl->in_posts.n) {
        const struct wire_post *p = wire_posts_at(&sl->in_posts, 0);
        size_t at = (read + moved) & (s->ring_bytes - 1), done = sl->in_posts.done;
        n = least(least(p->bytes - done, most - moved), s->ring_bytes - at);
        if (n < p->bytes || !take_brief(r, read + moved + n, p))
            memcpy(p->at + done, r->data + at, n);
        moved += n;
        wire_received(l, &sl->in_posts, n);
    }
    if (!moved)
        return false;
    atomic_store_explicit(&r->read, read + moved, memory_order_release);
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_ROOM);
    return true;
}

/* Something of each link. */
static int look(struct wire *f)
{
    struct wire_shm *s = wire_shm_of(f);
    bool moved = false;

    for (unsigned i = 0; i < f->n_links; i++) {
        struct wire_link *l = &f->links[i];
        struct wire_shm_link *sl = wire_shm_link_of(l);
        if (sl->out_posts.n)
            moved |= push(l, sl);
        if (sl->in_posts.n)
            moved |= pull(s, l, sl);
    }
    if (moved)
        s->still_looks = 0;
    return moved;
}

/* Who is waited for, and has ended? What it left in the ring is taken first. */
static int look_after(struct wire *f, const struct wire_link *l, bool ask_kernel)
{
    const struct wire_shm_link *sl = wire_shm_link_of(l);
    char name[128];

    if (!sl->out_posts.n && !sl->in_posts.n)
        return 0;
    bool ended = (sl->in_posts.n && atomic_load(&sl->in->sender_ended)) ||
                 (sl->out_posts.n && atomic_load(&sl->out->receiver_ended)) ||
                 (ask_kernel && wire_shm_dead(sl));
    if (!ended || look(f))
        return 0;
    return wire_fail(f, -ECONNRESET, "%s is gone: it ended with %llu bytes outstanding",
                     world_name(f->world, l->peer, name, sizeof(name)),
                     (unsigned long long)(l->posted_out - l->sent + l->posted_in - l->received));
}

/* Nothing moves. The kernel is asked now and then, what peers say themselves each time. */
static int look_after_all(struct wire *f, uint64_t now_ns)
{
    struct wire_shm *s = wire_shm_of(f);
    bool ask_kernel = now_ns - s->look_ns >= WIRE_SHM_LOOK_NS;
    int err = 0;

    if (ask_kernel)
        s->look_ns = now_ns;
    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = look_after(f, &f->links[i], ask_kernel);
    return err;
}

/* What it waits for, of WIRE_SHM_FOR_...: 0: nothing. */
static uint32_t waits(const struct wire *f)
{
    uint32_t what = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct wire_shm_link *sl = wire_shm_link_of(&f->links[i]);
        what |=
            (sl->out_posts.n ? WIRE_SHM_FOR_ROOM : 0) | (sl->in_posts.n ? WIRE_SHM_FOR_DATA : 0);
    }
    return what;
}

static int sleep_once(struct wire *f, uint64_t wait_ns)
{
    struct wire_shm_head *head = wire_shm_of(f)->head;
    uint32_t events = atomic_load(&head->events);
    struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)wait_ns};

    atomic_store_explicit(&head->sleeping, waits(f), memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    int rc = look(f);
    if (!rc)
        syscall(SYS_futex, &head->events, FUTEX_WAIT, events, &wait, NULL, 0);
    atomic_store_explicit(&head->sleeping, 0, memory_order_relaxed);
    return rc ? rc : look(f);
}

static int sleep_until(struct wire *f, uint64_t start_ns, uint64_t wait_ns)
{
    uint64_t now_ns = clock_now_ns();
    int rc = 0;

    while (!rc && now_ns - start_ns < wait_ns) {
        uint64_t left_ns = wait_ns - (now_ns - start_ns);
        rc = sleep_once(f, left_ns < WIRE_SHM_LOOK_NS ? left_ns : WIRE_SHM_LOOK_NS);
        now_ns = clock_now_ns();
        rc = rc ? rc : look_after_all(f, now_ns);
    }
    return rc;
}

static int wire_shm_progress(struct wire *f, uint64_t wait_ns)
{
    struct wire_shm *s = wire_shm_of(f);
    int rc = look(f);

    if (rc)
        return rc;
    if (!wait_ns)
        return ++s->still_looks % LOOKS_A_CLOCK ? 0 : look_after_all(f, clock_now_ns());
    if (!waits(f))
        return 0;
    uint64_t start_ns = clock_now_ns();
    rc = wire_spin(f, look, LOOKS_A_CLOCK, start_ns, wait_ns);
    if (!rc)
        rc = look_after_all(f, clock_now_ns());
    return rc ? rc : sleep_until(f, start_ns, wait_ns);
}

static void backends(backend_say_fn *say, void *arg)
{
    say(arg, &(struct backend){.name = "shm",
                               .state = BACKEND_PRESENT,
                               .what = "between processes of this machine"});
}

static int shm_open_wire(struct wire *f)
{
    struct wire_shm *s = calloc(1, sizeof(*s));

    f->state = s;
    if (!s)
        return wire_fail(f, -ENOMEM, "out of memory");
    s->fd = -1;
    s->wait_ns = WIRE_JOIN_NS;
    if (f->options.device[0])
        return wire_fail(f, -EOPNOTSUPP, "shared memory uses no device: leave '%.60s' to others",
                         f->options.device);
    return 0;
}

/* Where it is not known which machine a rank is on, join finds out. */
static int shm_link(struct wire *f, struct wire_link *l)
{
    const struct world_member *own = world_member(f->world, world_rank(f->world));
    const struct world_member *peer = world_member(f->world, l->peer);
    char name[128];

    if (own->machine[0] && peer->machine[0] && !machine_same(own->machine, peer->machine))
        return wire_fail(f, -EOPNOTSUPP,
                         "shared memory is for ranks of one machine: %s is on another",
                         world_name(f->world, l->peer, name, sizeof(name)));
    struct wire_shm_link *sl = calloc(1, sizeof(*sl));
    if (!sl)
        return wire_fail(f, -ENOMEM, "out of memory");
    sl->pid = sl->pidfd = -1;
    l->state = sl;
    return 0;
}

/* Peers that wait for this rank are told that it will not come. */
static void leave(struct wire_shm_link *sl)
{
    if (sl->in)
        atomic_store(&sl->in->receiver_ended, 1);
    if (sl->out)
        atomic_store(&sl->out->sender_ended, 1);
    if (sl->peer_head) {
        wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA | WIRE_SHM_FOR_ROOM);
        munmap(sl->peer_head, sl->peer_map_bytes);
    }
    if (sl->pidfd >= 0)
        close(sl->pidfd);
    free(sl);
}

static void shm_close(struct wire *f)
{
    struct wire_shm *s = wire_shm_of(f);

    if (!s)
        return;
    for (unsigned i = 0; i < f->n_links; i++)
        leave(f->links[i].state);
    if (s->head)
        munmap(s->head, s->map_bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
    f->state = NULL;
}

static void describe(const struct wire *f, char *text, size_t len)
{
    size_t bytes = wire_shm_of(f)->ring_bytes;

    snprintf(text, len, "rings of %zu KiB", bytes >> 10);
}

static int rail(const struct wire *f, struct net_rail *rail)
{
    *rail = (struct net_rail){.name = "shm", .kind = "shm", .node = -1};
    describe(f, rail->text, sizeof(rail->text));
    snprintf(rail->line_source, sizeof(rail->line_source),
             "not known: two copies by the ranks' own CPUs, not a line");
    return 0;
}

/* ---- How ranks come to share memory ---- */

#define PAUSE_NS 500000

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static void make_token(const struct wire *f, unsigned rank, uint8_t *token)
{
    secret_token(token, world_key(f->world), "wire shm", rank);
}

static size_t power_of_2(size_t bytes)
{
    size_t power = 1;

    while (power < bytes)
        power *= 2;
    return power;
}

/* Room for two of the longest messages where that is little; less where there are many rings. */
static size_t choose_ring(const struct wire *f)
{
    size_t most = WIRE_SHM_RING_MOST, bytes;

    while (most > WIRE_SHM_RING_LEAST && most * f->n_links > WIRE_SHM_RINGS_BYTES)
        most /= 2;
    if (f->options.message_most >= most / 2)
        return most;
    bytes = power_of_2(2 * (size_t)f->options.message_most);
    return bytes > WIRE_SHM_RING_LEAST ? bytes : WIRE_SHM_RING_LEAST;
}

static struct wire_shm_ring *ring_at(struct wire_shm_head *head, uint64_t at)
{
    return (struct wire_shm_ring *)((char *)head + at);
}

static uint64_t own_ring_at(const struct wire_shm *s, unsigned link)
{
    return WIRE_SHM_PAGE + link * (sizeof(struct wire_shm_ring) + s->ring_bytes);
}

/* The receiver's pages lie where it runs, or where it was told: it touches them first. */
static void place(struct wire *f, struct wire_shm *s)
{
    unsigned long nodes[16] = {0};
    unsigned node = (unsigned)f->options.node, bits = 8 * sizeof(*nodes);

    if (f->options.node >= 0 && node < 16 * bits) {
        nodes[node / bits] = 1ul << node % bits;
        (void)syscall(SYS_mbind, s->head, s->map_bytes, MPOL_PREFERRED, nodes, 16 * bits, 0);
    }
    for (size_t at = 0; at < s->map_bytes; at += WIRE_SHM_PAGE)
        ((volatile char *)s->head)[at] = 0;
}

/* All ranks of the machine take as much. A fault on a machine that has no more would kill the
 * process. */
static int enough(struct wire *f, uint64_t bytes)
{
    uint64_t available = host_available();
    uint64_t ranks = world_member(f->world, world_rank(f->world))->machine_ranks;

    bytes *= ranks ? ranks : 1;
    if (available == UINT64_MAX || bytes <= available - available / 8)
        return 0;
    return wire_fail(
        f, -EOPNOTSUPP,
        "the rings of %llu ranks need %llu MiB of memory, %llu can be had: fewer ranks",
        (unsigned long long)ranks, (unsigned long long)(bytes >> 20),
        (unsigned long long)(available >> 20));
}

static int make_memory(struct wire *f)
{
    struct wire_shm *s = wire_shm_of(f);

    s->ring_bytes = choose_ring(f);
    s->map_bytes = own_ring_at(s, f->n_links);
    int err = enough(f, s->map_bytes);
    if (err)
        return err;
    s->fd = memfd_create("plumb-wire", MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->map_bytes))
        return wire_fail(f, -errno, "shared memory cannot be made: %s", strerror(errno));
    void *at = mmap(NULL, s->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return wire_fail(f, -errno, "%zu KiB of shared memory cannot be mapped: %s",
                         s->map_bytes >> 10, strerror(errno));
    s->head = at;
    place(f, s);
    make_token(f, world_rank(f->world), s->head->token);
    for (unsigned i = 0; i < f->n_links; i++)
        wire_shm_link_of(&f->links[i])->in = ring_at(s->head, own_ring_at(s, i));
    return 0;
}

static int wire_shm_address(struct wire *f, struct wire_link *l, void *address, size_t *len)
{
    struct wire_shm *s = wire_shm_of(f);
    int err = s->head ? 0 : make_memory(f);
    struct wire_shm_address own = {.pid = getpid(),
                                   .fd = s->fd,
                                   .map_bytes = s->map_bytes,
                                   .ring_at = own_ring_at(s, (unsigned)(l - f->links)),
                                   .ring_bytes = s->ring_bytes};

    memcpy(address, &own, sizeof(own));
    *len = sizeof(own);
    return err;
}

/* A number of another namespace of processes leads to nothing, or to something else. */
static int map_peer(struct wire *f, struct wire_link *l, const struct wire_shm_address *theirs,
                    int fd, const char *name)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);
    uint8_t right[CHANNEL_TOKEN_BYTES];
    struct stat st;

    if (fstat(fd, &st) || (uint64_t)st.st_size != theirs->map_bytes)
        return wire_fail(
            f, -EOPNOTSUPP,
            "what /proc shows of %s is not its memory: are the two in different containers", name);
    void *at = mmap(NULL, theirs->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return wire_fail(f, -errno, "the memory of %s cannot be mapped: %s", name, strerror(errno));
    sl->peer_head = at;
    sl->peer_map_bytes = theirs->map_bytes;
    make_token(f, l->peer, right);
    if (memcmp(sl->peer_head->token, right, sizeof(right)) != 0) {
        munmap(at, theirs->map_bytes); /* nothing of it is ours to touch */
        sl->peer_head = NULL;
        return wire_fail(f, -EPROTO, "the memory that /proc shows of %s is another's", name);
    }
    sl->out = ring_at(sl->peer_head, theirs->ring_at);
    sl->out_bytes = theirs->ring_bytes;
    atomic_store(&sl->out->attached, 1);
    return 0;
}

static bool sound(const struct wire_shm_address *c)
{
    uint64_t bytes = c->ring_bytes;

    return bytes >= WIRE_SHM_RING_LEAST && bytes <= WIRE_SHM_RING_MOST && !(bytes & (bytes - 1)) &&
           c->ring_at >= WIRE_SHM_PAGE && c->ring_at % WIRE_SHM_PAGE == 0 &&
           c->ring_at <= c->map_bytes &&
           c->map_bytes - c->ring_at >= sizeof(struct wire_shm_ring) + bytes;
}

/* The process first, then its memory: so the number is that of the one whose memory it is. */
static int attach(struct wire *f, struct wire_link *l, const void *address, size_t len)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);
    struct wire_shm_address theirs;
    char path[64], name[128];

    world_name(f->world, l->peer, name, sizeof(name));
    if (len == sizeof(theirs))
        memcpy(&theirs, address, sizeof(theirs));
    if (len != sizeof(theirs) || !sound(&theirs))
        return wire_fail(f, -EPROTO, "%s did not say where its memory is", name);
    sl->pid = theirs.pid;
    sl->pidfd = (int)syscall(SYS_pidfd_open, theirs.pid, 0); /* -1: kill() has to do */
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", theirs.pid, theirs.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return wire_fail(f, -EOPNOTSUPP,
                         "the memory of %s (%s) cannot be opened: %s; ranks must be one user's "
                         "and in one container",
                         name, path, strerror(errno));
    int err = map_peer(f, l, &theirs, fd, name);
    close(fd);
    return err;
}

/* Until the peer has this rank's memory, which it opens by this rank's fd. */
static int wait_attached(struct wire *f, struct wire_link *l)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t until_ns = clock_now_ns() + wire_shm_of(f)->wait_ns;
    char name[128];
    int err;

    world_name(f->world, l->peer, name, sizeof(name));
    while (!atomic_load(&sl->in->attached)) {
        if (wire_shm_dead(sl) || atomic_load(&sl->out->receiver_ended))
            return wire_fail(f, -ECONNRESET, "%s ended before it shared memory with this rank",
                             name);
        if (clock_now_ns() > until_ns)
            return wire_fail(f, -ETIMEDOUT, "%s has not taken this rank's shared memory", name);
        if ((err = wire_attend(f)) != 0)
            return wire_fail(f, err, "the wait for %s was ended", name);
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* All that can be attached is, so that one that cannot holds nobody else up. */
static int wire_shm_join(struct wire *f, const void *const *addresses, const size_t *lens)
{
    struct wire_shm *s = wire_shm_of(f);
    char error[WIRE_ERROR_BYTES];
    int err = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        int now = attach(f, &f->links[i], addresses[i], lens[i]);
        if (now && !err)
            memcpy(error, f->error, sizeof(error));
        err = err ? err : now;
        snprintf(f->links[i].device, sizeof(f->links[i].device), "shm");
    }
    if (err)
        return wire_fail(f, err, "%s", error);
    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = wait_attached(f, &f->links[i]);
    close(s->fd);
    s->fd = -1;
    s->look_ns = clock_now_ns();
    return err;
}

const struct wire_ops wire_shm = {
    .name = "shm",
    .help = "memory that ranks of one machine share",
    .backends = backends,
    .open = shm_open_wire,
    .link = shm_link,
    .address = wire_shm_address,
    .join = wire_shm_join,
    .send = wire_shm_send,
    .receive = wire_shm_receive,
    .progress = wire_shm_progress,
    .describe = describe,
    .rail = rail,
    .close = shm_close,
};

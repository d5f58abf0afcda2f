/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks come to share memory: see fabric_shm.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/group/secret.h"
#include "core/hw/host_buffer.h"
#include "core/wire/fabric_shm.h"

#define PAUSE_NS 500000

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static void make_token(const struct fabric *f, unsigned rank, uint8_t *token)
{
    secret_token(token, world_key(f->world), "fabric shm", rank);
}

void fabric_shm_wake(struct fabric_shm_head *head, uint32_t what)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!(atomic_load_explicit(&head->sleeping, memory_order_relaxed) & what))
        return;
    atomic_store_explicit(&head->sleeping, 0, memory_order_relaxed);
    atomic_fetch_add(&head->events, 1);
    syscall(SYS_futex, &head->events, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool fabric_shm_dead(const struct fabric_shm_link *sl)
{
    struct pollfd p = {.fd = sl->pidfd, .events = POLLIN};

    if (sl->pidfd >= 0)
        return poll(&p, 1, 0) > 0;
    return sl->pid > 0 && kill(sl->pid, 0) && errno == ESRCH;
}

static size_t power_of_2(size_t bytes)
{
    size_t power = 1;

    while (power < bytes)
        power *= 2;
    return power;
}

/* Room for two of the longest messages where that is little; less where there are many rings. */
static size_t choose_ring(const struct fabric *f)
{
    size_t most = FABRIC_SHM_RING_MOST, bytes;

    while (most > FABRIC_SHM_RING_LEAST && most * f->n_links > FABRIC_SHM_RINGS_BYTES)
        most /= 2;
    if (f->options.message_most >= most / 2)
        return most;
    bytes = power_of_2(2 * (size_t)f->options.message_most);
    return bytes > FABRIC_SHM_RING_LEAST ? bytes : FABRIC_SHM_RING_LEAST;
}

static struct fabric_shm_ring *ring_at(struct fabric_shm_head *head, uint64_t at)
{
    return (struct fabric_shm_ring *)((char *)head + at);
}

static uint64_t own_ring_at(const struct fabric_shm *s, unsigned link)
{
    return FABRIC_SHM_PAGE + link * (sizeof(struct fabric_shm_ring) + s->ring_bytes);
}

/* The receiver's pages lie where it runs, or where it was told: it touches them first. */
static void place(struct fabric *f, struct fabric_shm *s)
{
    unsigned long nodes[16] = {0};
    unsigned node = (unsigned)f->options.node, bits = 8 * sizeof(*nodes);

    if (f->options.node >= 0 && node < 16 * bits) {
        nodes[node / bits] = 1ul << node % bits;
        (void)syscall(SYS_mbind, s->head, s->map_bytes, MPOL_PREFERRED, nodes, 16 * bits, 0);
    }
    for (size_t at = 0; at < s->map_bytes; at += FABRIC_SHM_PAGE)
        ((volatile char *)s->head)[at] = 0;
}

/* All ranks of the machine take as much. A fault on a machine that has no more would kill the process. */
static int enough(struct fabric *f, uint64_t bytes)
{
    uint64_t available = host_available();
    uint64_t seats = world_member(f->world, world_rank(f->world))->seats;

    bytes *= seats ? seats : 1;
    if (available == UINT64_MAX || bytes <= available - available / 8)
        return 0;
    return fabric_fail(
        f, -EOPNOTSUPP,
        "the rings of %llu ranks need %llu MiB of memory, %llu can be had: fewer ranks",
        (unsigned long long)seats, (unsigned long long)(bytes >> 20),
        (unsigned long long)(available >> 20));
}

static int make_memory(struct fabric *f)
{
    struct fabric_shm *s = fabric_shm_of(f);

    s->ring_bytes = choose_ring(f);
    s->map_bytes = own_ring_at(s, f->n_links);
    int err = enough(f, s->map_bytes);
    if (err)
        return err;
    s->fd = memfd_create("plumb-fabric", MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->map_bytes))
        return fabric_fail(f, -errno, "shared memory cannot be made: %s", strerror(errno));
    void *at = mmap(NULL, s->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return fabric_fail(f, -errno, "%zu KiB of shared memory cannot be mapped: %s",
                           s->map_bytes >> 10, strerror(errno));
    s->head = at;
    place(f, s);
    make_token(f, world_rank(f->world), s->head->token);
    for (unsigned i = 0; i < f->n_links; i++)
        fabric_shm_link_of(&f->links[i])->in = ring_at(s->head, own_ring_at(s, i));
    return 0;
}

int fabric_shm_card(struct fabric *f, struct fabric_link *l, void *card, size_t *len)
{
    struct fabric_shm *s = fabric_shm_of(f);
    int err = s->head ? 0 : make_memory(f);
    struct fabric_shm_card own = {.pid = getpid(),
                                  .fd = s->fd,
                                  .map_bytes = s->map_bytes,
                                  .ring_at = own_ring_at(s, (unsigned)(l - f->links)),
                                  .ring_bytes = s->ring_bytes};

    memcpy(card, &own, sizeof(own));
    *len = sizeof(own);
    return err;
}

/* A number of another namespace of processes leads to nothing, or to something else. */
static int map_peer(struct fabric *f, struct fabric_link *l, const struct fabric_shm_card *theirs,
                    int fd, const char *name)
{
    struct fabric_shm_link *sl = fabric_shm_link_of(l);
    uint8_t right[CHANNEL_TOKEN_BYTES];
    struct stat st;

    if (fstat(fd, &st) || (uint64_t)st.st_size != theirs->map_bytes)
        return fabric_fail(
            f, -EOPNOTSUPP,
            "what /proc shows of %s is not its memory: are the two in different containers", name);
    void *at = mmap(NULL, theirs->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return fabric_fail(f, -errno, "the memory of %s cannot be mapped: %s", name,
                           strerror(errno));
    sl->peer_head = at;
    sl->peer_map_bytes = theirs->map_bytes;
    make_token(f, l->peer, right);
    if (memcmp(sl->peer_head->token, right, sizeof(right)) != 0) {
        munmap(at, theirs->map_bytes); /* nothing of it is ours to touch */
        sl->peer_head = NULL;
        return fabric_fail(f, -EPROTO, "the memory that /proc shows of %s is another's", name);
    }
    sl->out = ring_at(sl->peer_head, theirs->ring_at);
    sl->out_bytes = theirs->ring_bytes;
    atomic_store(&sl->out->attached, 1);
    return 0;
}

static bool sound(const struct fabric_shm_card *c)
{
    uint64_t bytes = c->ring_bytes;

    return bytes >= FABRIC_SHM_RING_LEAST && bytes <= FABRIC_SHM_RING_MOST &&
           !(bytes & (bytes - 1)) && c->ring_at >= FABRIC_SHM_PAGE &&
           c->ring_at % FABRIC_SHM_PAGE == 0 && c->ring_at <= c->map_bytes &&
           c->map_bytes - c->ring_at >= sizeof(struct fabric_shm_ring) + bytes;
}

/* The process first, then its memory: so the number is that of the one whose memory it is. */
static int attach(struct fabric *f, struct fabric_link *l, const void *card, size_t len)
{
    struct fabric_shm_link *sl = fabric_shm_link_of(l);
    struct fabric_shm_card theirs;
    char path[64], name[128];

    world_name(f->world, l->peer, name, sizeof(name));
    if (len == sizeof(theirs))
        memcpy(&theirs, card, sizeof(theirs));
    if (len != sizeof(theirs) || !sound(&theirs))
        return fabric_fail(f, -EPROTO, "%s did not say where its memory is", name);
    sl->pid = theirs.pid;
    sl->pidfd = (int)syscall(SYS_pidfd_open, theirs.pid, 0); /* -1: kill() has to do */
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", theirs.pid, theirs.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fabric_fail(f, -EOPNOTSUPP,
                           "the memory of %s (%s) cannot be opened: %s; ranks must be one user's "
                           "and in one container",
                           name, path, strerror(errno));
    int err = map_peer(f, l, &theirs, fd, name);
    close(fd);
    return err;
}

/* Until the peer has this rank's memory, which it opens by this rank's fd. */
static int wait_attached(struct fabric *f, struct fabric_link *l)
{
    struct fabric_shm_link *sl = fabric_shm_link_of(l);
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t until_ns = clock_now_ns() + fabric_shm_of(f)->wait_ns;
    char name[128];
    int err;

    world_name(f->world, l->peer, name, sizeof(name));
    while (!atomic_load(&sl->in->attached)) {
        if (fabric_shm_dead(sl) || atomic_load(&sl->out->receiver_ended))
            return fabric_fail(f, -ECONNRESET, "%s ended before it shared memory with this rank",
                               name);
        if (clock_now_ns() > until_ns)
            return fabric_fail(f, -ETIMEDOUT, "%s has not taken this rank's shared memory", name);
        if ((err = fabric_attend(f)) != 0)
            return fabric_fail(f, err, "the wait for %s was ended", name);
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* All that can be attached is, so that one that cannot holds nobody else up. */
int fabric_shm_join(struct fabric *f, const void *const *cards, const size_t *lens)
{
    struct fabric_shm *s = fabric_shm_of(f);
    char error[FABRIC_ERROR_BYTES];
    int err = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        int now = attach(f, &f->links[i], cards[i], lens[i]);
        if (now && !err)
            memcpy(error, f->error, sizeof(error));
        err = err ? err : now;
        snprintf(f->links[i].device, sizeof(f->links[i].device), "shm");
    }
    if (err)
        return fabric_fail(f, err, "%s", error);
    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = wait_attached(f, &f->links[i]);
    close(s->fd);
    s->fd = -1;
    s->look_ns = clock_now_ns();
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Messages through shared memory: see shm.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/group/secret.h"
#include "core/hw/host_buffer.h"
#include "core/hw/host_kernels.h"
#include "core/hw/machine.h"
#include "core/wire/shm.h"

/* ---- What goes through the rings of shm.h ---- */

#define AT_ONCE       2048u /* bytes of a message in turns that goes as it is posted */
#define LOOKS_A_CLOCK 64u   /* looks in vain between two readings of the clock */
#define TURNS_A_YIELD 64u   /* of a worker that polls */
#define TURNS_A_LOOK  1024u /* at clock and peers */

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* By reading, since the other end may be at work already. */
static void touch(const struct wire_shm_ring *r, size_t bytes)
{
    const volatile char *data = r->data;

    for (size_t at = 0; at < bytes; at += WIRE_SHM_PAGE)
        (void)data[at];
}

/* A whole message that is short. Before its place in the stream is told anew, what the peer may be
 * copying is no longer valid. */
static WIRE_INLINE void put_brief(struct wire_shm_ring *r, uint64_t end, const char *at,
                                  size_t bytes)
{
    atomic_store_explicit(&r->brief_end, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i * 8 < bytes; i++) {
        /* Up to 8 bytes. */
        uint64_t word = 0;
        if (bytes - i * 8 >= 8)
            memcpy(&word, at + i * 8, 8);
        else
            memcpy(&word, at + i * 8, bytes - i * 8);
        atomic_store_explicit(&r->brief[i], word, memory_order_relaxed);
    }
    atomic_store_explicit(&r->brief_end, WIRE_SHM_BRIEF_OF(end, bytes), memory_order_release);
}

/* The message that ends there in the stream, as the peer sent it whole. False: it is to be had from
 * the ring alone, as where the ends cut the bytes differently. */
static WIRE_INLINE bool take_brief(const struct wire_shm_ring *r, uint64_t end,
                                   const struct wire_post *p)
{
    uint64_t words[WIRE_SHM_BRIEF / 8], which = WIRE_SHM_BRIEF_OF(end, p->bytes);

    if (p->bytes > WIRE_SHM_BRIEF ||
        atomic_load_explicit(&r->brief_end, memory_order_acquire) != which)
        return false;
    for (size_t i = 0; i * 8 < p->bytes; i++)
        words[i] = atomic_load_explicit(&r->brief[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&r->brief_end, memory_order_relaxed) != which)
        return false;
    memcpy(p->at, words, p->bytes);
    return true;
}

void wire_shm_wake(struct wire_shm_head *head, uint32_t what)
{
    if (head->polls)
        return;
    atomic_thread_fence(memory_order_seq_cst);
    if (!(atomic_load_explicit(&head->sleeping, memory_order_relaxed) & what))
        return;
    atomic_fetch_and(&head->sleeping, ~what);
    atomic_fetch_add(&head->events, 1);
    syscall(SYS_futex, &head->events, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* A message in turns, at once: nothing is before it, and the peer waits for it. False: there is no
 * room for it in one piece. */
static bool push_at_once(struct wire_link *l, struct wire_shm_link *sl, const void *at,
                         size_t bytes)
{
    struct wire_shm_ring *r = sl->out;
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    size_t place = written & (sl->out_bytes - 1);

    if (sl->out_bytes - (size_t)(written - sl->out_read) < bytes || sl->out_bytes - place < bytes)
        return false;
    memcpy(r->data + place, at, bytes);
    if (bytes <= WIRE_SHM_BRIEF)
        put_brief(r, written + bytes, at, bytes);
    atomic_store_explicit(&r->written, written + bytes, memory_order_release);
    l->out.posted += bytes;
    wire_went(l, bytes, 1);
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA);
    return true;
}

/* The thread that sends and the one that receives touch the ring before the first byte of a link
 * with a window: no fault is in what is timed, and pages lie where the receiver runs. */
int wire_shm_send(struct wire_link *l, const void *at, size_t bytes)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);

    if (!l->out.posted && l->window.message_bytes)
        touch(sl->out, sl->out_bytes);
    return wire_posts_add(l, &sl->out_posts, &l->out, at, bytes);
}

static int send_bytes(struct wire_link *l, const void *at, size_t bytes)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);

    bool now = l->window.turns && bytes == l->window.message_bytes && bytes <= AT_ONCE;
    if (now && l->out.posted && !sl->out_posts.n && push_at_once(l, sl, at, bytes))
        return 0;
    return wire_shm_send(l, at, bytes);
}

int wire_shm_receive(struct wire_link *l, void *at, size_t bytes)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);

    if (!l->in.posted && l->window.message_bytes)
        touch(sl->in, wire_shm_of(l->worker)->ring_bytes);
    return wire_posts_add(l, &sl->in_posts, &l->in, at, bytes);
}

void wire_shm_retract(struct wire_link *l)
{
    wire_posts_retract(&wire_shm_link_of(l)->in_posts, &l->in);
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
static int push_bytes(struct wire_link *l, struct wire_shm_link *sl)
{
    struct wire_shm_ring *r = sl->out;
    unsigned whole = 0;
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
        if (n == p->bytes && n <= WIRE_SHM_BRIEF)
            put_brief(r, written + moved, p->at, n);
        whole += wire_posts_moved(&sl->out_posts, n);
    }
    if (!moved)
        return 0;
    atomic_store_explicit(&r->written, written + moved, memory_order_release);
    wire_went(l, moved, whole);
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA);
    return 1;
}

static WIRE_INLINE int pull_bytes(struct wire_link *l, struct wire_shm_link *sl)
{
    size_t ring_bytes = wire_shm_of(l->worker)->ring_bytes;
    struct wire_shm_ring *r = sl->in;
    unsigned whole = 0;
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    size_t moved = 0, n = 1;

    if (sl->in_written == read)
        sl->in_written = atomic_load_explicit(&r->written, memory_order_acquire);
    size_t most = least(WIRE_SHM_CHUNK, ring_bytes / 4);
    most = least(most, (size_t)(sl->in_written - read));
    while (moved < most && sl->in_posts.n) {
        const struct wire_post *p = wire_posts_at(&sl->in_posts, 0);
        size_t at = (read + moved) & (ring_bytes - 1), done = sl->in_posts.done;
        n = least(least(p->bytes - done, most - moved), ring_bytes - at);
        if (n < p->bytes || !take_brief(r, read + moved + n, p))
            memcpy(p->at + done, r->data + at, n);
        moved += n;
        whole += wire_posts_moved(&sl->in_posts, n);
    }
    if (!moved)
        return 0;
    atomic_store_explicit(&r->read, read + moved, memory_order_release);
    wire_came(l, moved, whole);
    wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_ROOM);
    return 1;
}

/* Something of each link. Where there is one, and a message is waited for, little lies between its
 * arrival and its count. */
static WIRE_INLINE int look(struct wire_worker *k, enum wire_side sides)
{
    const struct wire_shm_worker *s = wire_shm_of(k);
    int rc = 0;

    if (k->n_links == 1 && sides == WIRE_IN && s->pull == pull_bytes &&
        wire_shm_link_of(k->links)->in_posts.n)
        return pull_bytes(k->links, wire_shm_link_of(k->links));
    for (unsigned i = 0; i < k->n_links && rc >= 0; i++) {
        struct wire_link *l = &k->links[i];
        struct wire_shm_link *sl = wire_shm_link_of(l);
        int out = sides & WIRE_OUT && sl->out_posts.n ? s->push(l, sl) : 0;
        int in = out >= 0 && sides & WIRE_IN && sl->in_posts.n ? s->pull(l, sl) : 0;
        rc = out < 0 ? out : in < 0 ? in : rc | out | in;
    }
    return rc;
}

/* What it waits for, of WIRE_SHM_FOR_...: 0: nothing. */
static uint32_t waits(const struct wire_link *l, enum wire_side sides)
{
    const struct wire_shm_link *sl = wire_shm_link_of(l);

    return (sides & WIRE_OUT && sl->out_posts.n ? WIRE_SHM_FOR_ROOM : 0) |
           (sides & WIRE_IN && sl->in_posts.n ? WIRE_SHM_FOR_DATA : 0);
}

static uint32_t waits_any(const struct wire_worker *k, enum wire_side sides)
{
    uint32_t what = 0;

    for (unsigned i = 0; i < k->n_links; i++)
        what |= waits(&k->links[i], sides);
    return what;
}

int wire_shm_gone(struct wire_link *l)
{
    struct wire *w = l->worker->wire;
    char name[160];

    return wire_fail(
        w, -ECONNRESET, "%s is gone: it ended with %llu bytes outstanding",
        world_name(w->world, l->peer, name, sizeof(name)),
        (unsigned long long)(l->out.posted - l->out.through + l->in.posted - l->in.through));
}

/* Nothing moves. The kernel is asked now and then, what peers say themselves each time. */
static int look_after_all(struct wire_worker *k, enum wire_side sides, uint64_t now_ns)
{
    struct wire_shm_worker *s = wire_shm_of(k);
    bool ask_kernel = now_ns - atomic_load(&s->look_ns) >= WIRE_SHM_LOOK_NS;
    int err = 0;

    if (ask_kernel)
        atomic_store(&s->look_ns, now_ns);
    for (unsigned i = 0; i < k->n_links && !err; i++) {
        struct wire_link *l = &k->links[i];
        const struct wire_shm_link *sl = wire_shm_link_of(l);
        /* Who is waited for, and has ended? What it left in the ring is taken first. */
        uint32_t what = waits(l, sides);
        bool ended = (what & WIRE_SHM_FOR_DATA && atomic_load(&sl->in->sender_ended)) ||
                     (what & WIRE_SHM_FOR_ROOM && atomic_load(&sl->out->receiver_ended)) ||
                     (what && ask_kernel && wire_shm_dead(sl));
        if (ended)
            err = look(k, sides);
        if (ended && !err)
            err = wire_shm_gone(l);
    }
    return err;
}

static int sleep_once(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct wire_shm_head *head = wire_shm_of(k)->head;
    uint32_t events = atomic_load(&head->events), what = waits_any(k, sides);
    struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)wait_ns};

    atomic_fetch_or(&head->sleeping, what);
    atomic_thread_fence(memory_order_seq_cst);
    int rc = look(k, sides);
    if (!rc)
        syscall(SYS_futex, &head->events, FUTEX_WAIT, events, &wait, NULL, 0);
    atomic_fetch_and(&head->sleeping, ~what);
    return rc ? rc : look(k, sides);
}

static int sleep_until(struct wire_worker *k, enum wire_side sides, uint64_t start_ns,
                       uint64_t wait_ns)
{
    uint64_t now_ns = clock_now_ns();
    int rc = 0;

    while (!rc && now_ns - start_ns < wait_ns) {
        uint64_t left_ns = wait_ns - (now_ns - start_ns);
        rc = sleep_once(k, sides, left_ns < WIRE_SHM_LOOK_NS ? left_ns : WIRE_SHM_LOOK_NS);
        now_ns = clock_now_ns();
        rc = rc ? rc : look_after_all(k, sides, now_ns);
    }
    return rc;
}

/* A turn of a worker that never sleeps: now and then it lets others run. */
static WIRE_INLINE int poll_turn(struct wire_worker *k, enum wire_side sides)
{
    for (unsigned i = 1; i <= TURNS_A_LOOK; i++) {
        cpu_pause();
        int rc = look(k, sides);
        if (rc)
            return rc;
        if (i % TURNS_A_YIELD == 0)
            sched_yield();
    }
    return look_after_all(k, sides, clock_now_ns());
}

int wire_shm_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    _Atomic uint64_t *looks = &wire_shm_of(k)->still_looks;
    int rc = look(k, sides);

    if (rc)
        return rc;
    if (!wait_ns) {
        uint64_t n = atomic_load_explicit(looks, memory_order_relaxed) + 1;
        atomic_store_explicit(looks, n, memory_order_relaxed);
        return n % LOOKS_A_CLOCK ? 0 : look_after_all(k, sides, clock_now_ns());
    }
    if (!waits_any(k, sides))
        return 0;
    if (k->way == WIRE_POLL)
        return poll_turn(k, sides);
    uint64_t start_ns = clock_now_ns();
    rc = wire_spin(k, sides, look, LOOKS_A_CLOCK, start_ns, wait_ns);
    if (!rc)
        rc = look_after_all(k, sides, clock_now_ns());
    return rc ? rc : sleep_until(k, sides, start_ns, wait_ns);
}

static void backends(backend_say_fn *say, void *arg)
{
    say(arg, &(struct backend){.name = "shm",
                               .state = BACKEND_PRESENT,
                               .what = "between processes of this machine"});
}

int wire_shm_no_line(struct wire *w)
{
    w->n_rails = 1;
    w->rails[0] = (struct nic_rail){.name = "shm", .protocol = NIC_MEMORY, .node = -1};
    snprintf(w->rails[0].line_source, sizeof(w->rails[0].line_source),
             "not known: copies by the ranks' own CPUs, not a line");
    if (w->options.device[0])
        return wire_fail(w, -EOPNOTSUPP, "'%s' uses no device: leave '%.60s' to others",
                         w->ops->name, w->options.device);
    return 0;
}

void wire_shm_worker(struct wire_worker *k, wire_shm_move_fn *push, wire_shm_move_fn *pull)
{
    struct wire_shm_worker *s = k->state = xcalloc(1, sizeof(*s));

    s->push = push;
    s->pull = pull;
    s->fd = -1;
}

static void open_worker(struct wire_worker *k)
{
    wire_shm_worker(k, push_bytes, pull_bytes);
}

int wire_shm_link(struct wire_link *l)
{
    struct wire *w = l->worker->wire;
    const struct world_member *own = world_member(w->world, world_rank(w->world));
    const struct world_member *peer = world_member(w->world, l->peer);
    char name[160];

    /* Where it is not known which machine a rank is on, join finds out. */
    if (own->machine[0] && peer->machine[0] && !machine_same(own->machine, peer->machine))
        return wire_fail(w, -EOPNOTSUPP, "'%s' is for ranks of one machine: %s is on another",
                         w->ops->name, world_name(w->world, l->peer, name, sizeof(name)));
    struct wire_shm_link *sl = l->state = xaligned(_Alignof(struct wire_shm_link), sizeof(*sl));
    sl->pid = sl->pidfd = -1;
    l->ahead = WIRE_SHM_CHUNK;
    return 0;
}

/* Peers that wait for this rank are told that it will not come. */
static void leave(struct wire_shm_link *sl)
{
    if (sl->in)
        atomic_store(&sl->in->receiver_ended, 1);
    if (sl->out)
        atomic_store(&sl->out->sender_ended, 1);
    if (sl->peer_head)
        wire_shm_wake(sl->peer_head, WIRE_SHM_FOR_DATA | WIRE_SHM_FOR_ROOM);
    if (sl->pidfd >= 0)
        close(sl->pidfd);
}

void wire_shm_close(struct wire *w)
{
    for (unsigned i = 0; i < w->n_links; i++)
        leave(w->links[i].state);
    for (unsigned i = 0; i < w->n_links; i++) {
        struct wire_shm_link *sl = w->links[i].state;
        if (sl->peer_head && sl->owns_map)
            munmap(sl->peer_head, sl->peer_map_bytes);
        free(sl);
    }
    for (unsigned i = 0; i < w->n_workers; i++) {
        struct wire_shm_worker *s = w->workers[i].state;
        if (s->head)
            munmap(s->head, s->map_bytes);
        if (s->fd >= 0)
            close(s->fd);
        free(s);
    }
}

static void describe(struct wire *w, char *text, size_t len)
{
    size_t bytes = w->n_workers ? wire_shm_of(&w->workers[0])->ring_bytes : 0;

    snprintf(text, len, "rings of %zu KiB", bytes >> 10);
}

int wire_shm_rail(struct wire *w, struct nic_rail *rail)
{
    *rail = w->rails[0];
    return 0;
}

/* ---- How ranks come to share memory ---- */

#define PAUSE_NS 500000

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* What that rank proves itself with. */
static void token_of(const struct wire *w, unsigned rank, uint8_t token[CHANNEL_TOKEN_BYTES])
{
    secret_token(token, world_key(w->world), "wire shm", rank);
}

static size_t power_of_2(size_t bytes)
{
    size_t power = 1;

    while (power < bytes)
        power *= 2;
    return power;
}

/* As asked; else room for two of the longest messages where that is little, and less where there
 * are many rings. */
static size_t choose_ring(const struct wire_worker *k)
{
    const struct wire_options *o = &k->wire->options;
    size_t most = WIRE_SHM_RING_MOST, bytes;

    if (o->ring_bytes)
        return power_of_2(o->ring_bytes);
    while (most > WIRE_SHM_RING_LEAST && most * k->n_links > WIRE_SHM_RINGS_BYTES)
        most /= 2;
    if (o->message_most >= most / 2)
        return most;
    bytes = power_of_2(2 * (size_t)o->message_most);
    return bytes > WIRE_SHM_RING_LEAST ? bytes : WIRE_SHM_RING_LEAST;
}

static struct wire_shm_ring *ring_at(struct wire_shm_head *head, uint64_t at)
{
    return (struct wire_shm_ring *)((char *)head + at);
}

static uint64_t own_ring_at(const struct wire_shm_worker *s, unsigned link)
{
    return WIRE_SHM_PAGE + link * (sizeof(struct wire_shm_ring) + s->ring_bytes);
}

/* The receiver's pages lie where it runs, or where it was told: it touches them first. Of a link
 * with a window the thread that receives does, and where nothing comes in nobody. */
static void place(const struct wire_worker *k, struct wire_shm_worker *s)
{
    const struct wire *w = k->wire;
    unsigned long nodes[16] = {0};
    unsigned node = (unsigned)w->options.node, bits = 8 * sizeof(*nodes);

    if (w->options.node >= 0 && node < 16 * bits) {
        nodes[node / bits] = 1ul << node % bits;
        (void)syscall(SYS_mbind, s->head, s->map_bytes, MPOL_PREFERRED, nodes, 16 * bits, 0);
    }
    for (unsigned i = 0; i < k->n_links; i++)
        if (!k->links[i].window.message_bytes)
            for (size_t at = 0; at < s->ring_bytes; at += WIRE_SHM_PAGE)
                ((volatile char *)ring_at(s->head, own_ring_at(s, i))->data)[at] = 0;
}

/* All ranks of the machine take as much. A fault on a machine that has no more would kill the
 * process. */
static int enough(struct wire *w, uint64_t bytes)
{
    uint64_t available = host_available();
    uint64_t ranks = world_member(w->world, world_rank(w->world))->machine_ranks;

    bytes *= ranks ? ranks : 1;
    if (available == UINT64_MAX || bytes <= available - available / 8)
        return 0;
    return wire_fail(
        w, -EOPNOTSUPP,
        "the rings of %llu ranks need %llu MiB of memory, %llu can be had: fewer ranks",
        (unsigned long long)ranks, (unsigned long long)(bytes >> 20),
        (unsigned long long)(available >> 20));
}

/* No thread hands over more than it can copy: from a message's buffer into a ring, or out of it. */
static void measure_reference(struct wire_worker *k)
{
    struct nic_rail *r = &k->wire->rails[0];
    struct wire_link *l = &k->links[0];
    size_t bytes = least(l->window.message_bytes, wire_shm_of(k)->ring_bytes);

    if (!k->wire->options.reference || r->line_gbps > 0 || !l->window.out)
        return;
    char *data = wire_shm_link_of(l)->in->data;
    r->line_gbps = 8 * copy_ceiling(data, l->window.out, bytes);
    snprintf(r->line_source, sizeof(r->line_source),
             "reference: best copy of as much by one core, a thread each");
    memset(data, 0, bytes);
}

static int make_memory(struct wire_worker *k)
{
    struct wire_shm_worker *s = wire_shm_of(k);
    struct wire *w = k->wire;

    s->ring_bytes = choose_ring(k);
    s->map_bytes = own_ring_at(s, k->n_links);
    int err = enough(w, s->map_bytes * w->n_workers);
    if (err)
        return err;
    s->fd = memfd_create("plumb-wire", MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->map_bytes))
        return wire_fail(w, -errno, "shared memory cannot be made: %s", strerror(errno));
    void *at = mmap(NULL, s->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (at == MAP_FAILED)
        return wire_fail(w, -errno, "%zu KiB of shared memory cannot be mapped: %s",
                         s->map_bytes >> 10, strerror(errno));
    s->head = at;
    place(k, s);
    s->head->polls = k->way == WIRE_POLL;
    token_of(w, world_rank(w->world), s->head->token);
    for (unsigned i = 0; i < k->n_links; i++)
        wire_shm_link_of(&k->links[i])->in = ring_at(s->head, own_ring_at(s, i));
    measure_reference(k);
    snprintf(w->rails[0].text, sizeof(w->rails[0].text), "rings of %zu KiB", s->ring_bytes >> 10);
    return 0;
}

int wire_shm_address(struct wire_link *l, void *address, size_t *len)
{
    struct wire_shm_worker *s = wire_shm_of(l->worker);
    int err = s->head ? 0 : make_memory(l->worker);
    struct wire_shm_address own = {.pid = getpid(),
                                   .fd = s->fd,
                                   .map_bytes = s->map_bytes,
                                   .ring_at = own_ring_at(s, (unsigned)(l - l->worker->links)),
                                   .ring_bytes = s->ring_bytes};

    memcpy(address, &own, sizeof(own));
    *len = sizeof(own);
    return err;
}

/* A number of another namespace of processes leads to nothing, or to something else. */
static int map_peer(struct wire_link *l, const struct wire_shm_address *theirs, int fd,
                    const char *name)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);
    struct wire *w = l->worker->wire;
    uint8_t right[CHANNEL_TOKEN_BYTES];
    struct stat st;

    if (fstat(fd, &st) || (uint64_t)st.st_size != theirs->map_bytes)
        return wire_fail(
            w, -EOPNOTSUPP,
            "what /proc shows of %s is not its memory: are the two in different containers", name);
    void *at = mmap(NULL, theirs->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return wire_fail(w, -errno, "the memory of %s cannot be mapped: %s", name, strerror(errno));
    sl->peer_head = at;
    sl->peer_map_bytes = theirs->map_bytes;
    sl->owns_map = true;
    token_of(w, l->peer, right);
    if (memcmp(sl->peer_head->token, right, sizeof(right)) != 0) {
        munmap(at, theirs->map_bytes); /* nothing of it is ours to touch */
        sl->peer_head = NULL;
        return wire_fail(w, -EPROTO, "the memory that /proc shows of %s is another's", name);
    }
    return 0;
}

/* Links of one worker whose rings are in the same memory share what one of them has mapped. */
static struct wire_shm_head *mapped(const struct wire_link *l,
                                    const struct wire_shm_address *theirs)
{
    for (const struct wire_link *o = l->worker->links; o < l; o++) {
        const struct wire_shm_link *ol = wire_shm_link_of(o);
        if (o->peer == l->peer && ol->pid == theirs->pid && ol->peer_fd == theirs->fd &&
            ol->peer_map_bytes == theirs->map_bytes && ol->peer_head)
            return ol->peer_head;
    }
    return NULL;
}

static bool sound(const struct wire_shm_address *c)
{
    uint64_t bytes = c->ring_bytes;

    return bytes >= WIRE_SHM_RING_LEAST && bytes <= WIRE_SHM_RING_ASKED && !(bytes & (bytes - 1)) &&
           c->ring_at >= WIRE_SHM_PAGE && c->ring_at % WIRE_SHM_PAGE == 0 &&
           c->ring_at <= c->map_bytes &&
           c->map_bytes - c->ring_at >= sizeof(struct wire_shm_ring) + bytes;
}

/* The memory that the peer has open under that number: a file descriptor, or -errno. */
static int open_memory(struct wire_link *l, int pid, int fd)
{
    struct wire *w = l->worker->wire;
    char path[64], name[160];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    int mine = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (mine >= 0)
        return mine;
    return wire_fail(w, -EOPNOTSUPP,
                     "the memory of %s (%s) cannot be opened: %s; ranks must be one user's and in "
                     "one container",
                     world_name(w->world, l->peer, name, sizeof(name)), path, strerror(errno));
}

/* The process first, then its memory: so the number is that of the one whose memory it is. */
static int attach(struct wire_link *l, const void *address, size_t len)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);
    struct wire *w = l->worker->wire;
    struct wire_shm_address theirs;
    char name[160];

    world_name(w->world, l->peer, name, sizeof(name));
    if (len == sizeof(theirs))
        memcpy(&theirs, address, sizeof(theirs));
    if (len != sizeof(theirs) || !sound(&theirs))
        return wire_fail(w, -EPROTO, "%s did not say where its memory is", name);
    sl->pid = theirs.pid;
    sl->pidfd = (int)syscall(SYS_pidfd_open, theirs.pid, 0); /* -1: kill() has to do */
    sl->peer_fd = theirs.fd;
    sl->peer_map_bytes = theirs.map_bytes;
    sl->peer_head = mapped(l, &theirs);
    int fd = sl->peer_head ? -1 : open_memory(l, theirs.pid, theirs.fd);
    if (fd < 0 && !sl->peer_head)
        return fd;
    int err = fd < 0 ? 0 : map_peer(l, &theirs, fd, name);
    if (fd >= 0)
        close(fd);
    if (err)
        return err;
    sl->out = ring_at(sl->peer_head, theirs.ring_at);
    sl->out_bytes = theirs.ring_bytes;
    atomic_store(&sl->out->attached, 1);
    return 0;
}

/* Until the peer has this rank's memory, which it opens by this rank's fd. */
static int wait_attached(struct wire_link *l)
{
    struct wire_shm_link *sl = wire_shm_link_of(l);
    struct wire *w = l->worker->wire;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t until_ns = clock_now_ns() + WIRE_JOIN_NS;
    char name[160];
    int err;

    world_name(w->world, l->peer, name, sizeof(name));
    while (!atomic_load(&sl->in->attached)) {
        bool ended = wire_shm_dead(sl) || atomic_load(&sl->out->receiver_ended);
        if (ended && !atomic_load(&sl->in->attached)) /* a peer may attach, and end at once */
            return wire_fail(w, -ECONNRESET, "%s ended before it shared memory with this rank",
                             name);
        if (clock_now_ns() > until_ns)
            return wire_fail(w, -ETIMEDOUT, "%s has not taken this rank's shared memory", name);
        if ((err = wire_attend(w)) != 0)
            return wire_fail(w, err, "the wait for %s was ended", name);
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* All that can be attached is, so that one that cannot holds nobody else up. */
int wire_shm_join(struct wire *w, const void *const *addresses, const size_t *lens)
{
    int err = 0;

    for (unsigned i = 0; i < w->n_links; i++) {
        int now = attach(&w->links[i], addresses[i], lens[i]);
        err = err ? err : now;
        snprintf(w->links[i].device, sizeof(w->links[i].device), "shm");
    }
    for (unsigned i = 0; i < w->n_links && !err; i++)
        err = wait_attached(&w->links[i]);
    for (unsigned i = 0; i < w->n_workers && !err; i++) {
        struct wire_shm_worker *s = wire_shm_of(&w->workers[i]);
        if (s->fd >= 0)
            close(s->fd);
        s->fd = -1;
        s->look_ns = clock_now_ns();
    }
    return err;
}

const struct wire_ops wire_shm = {
    WIRE_SHM_HOOKS,          .name = "shm",         .send = send_bytes,
    .streams = true,         .backends = backends,  .open = wire_shm_no_line,
    .worker = open_worker,   .join = wire_shm_join, .describe = describe,
    .close = wire_shm_close,
};

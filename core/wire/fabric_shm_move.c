/* SPDX-License-Identifier: Apache-2.0 */
/* What goes through the rings of fabric_shm.h. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/wire/fabric_shm.h"

#define LOOKS_A_CLOCK 64u /* looks in vain between two readings of the clock */

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

int fabric_shm_send(struct fabric *f, struct fabric_link *l, const void *at, size_t bytes)
{
    int err = fabric_posts_add(f, &fabric_shm_link_of(l)->out_posts, at, bytes);

    if (!err)
        l->posted_out += bytes;
    return err;
}

int fabric_shm_receive(struct fabric *f, struct fabric_link *l, void *at, size_t bytes)
{
    int err = fabric_posts_add(f, &fabric_shm_link_of(l)->in_posts, at, bytes);

    if (!err)
        l->posted_in += bytes;
    return err;
}

/* A whole message that is short. Before its place in the stream is told anew, what the peer may be copying is no longer valid. */
static void put_brief(struct fabric_shm_ring *r, uint64_t end, const struct fabric_post *p)
{
    uint64_t words[FABRIC_SHM_BRIEF / 8] = {0};

    if (p->bytes > FABRIC_SHM_BRIEF)
        return;
    memcpy(words, p->at, p->bytes);
    atomic_store_explicit(&r->brief_end, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i * 8 < p->bytes; i++)
        atomic_store_explicit(&r->brief[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&r->brief_end, end, memory_order_release);
}

/* The message that ends there in the stream, as the peer sent it whole. False: it is to be had from the ring alone. */
static bool take_brief(const struct fabric_shm_ring *r, uint64_t end, const struct fabric_post *p)
{
    uint64_t words[FABRIC_SHM_BRIEF / 8];

    if (p->bytes > FABRIC_SHM_BRIEF ||
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

/* A chunk, of one message or of several small ones, so that the peer works on it while the next is copied. */
static bool push(struct fabric_link *l, struct fabric_shm_link *sl)
{
    struct fabric_shm_ring *r = sl->out;
    uint64_t written = atomic_load_explicit(&r->written, memory_order_relaxed);
    size_t moved = 0, n = 1;

    size_t most = least(FABRIC_SHM_CHUNK, sl->out_bytes / 4);
    if (sl->out_bytes - (size_t)(written - sl->out_read) < most)
        sl->out_read = atomic_load_explicit(&r->read, memory_order_acquire);
    most = least(most, sl->out_bytes - (size_t)(written - sl->out_read));
    while (moved < most && sl->out_posts.n) {
        const struct fabric_post *p = fabric_posts_at(&sl->out_posts, 0);
        size_t at = (written + moved) & (sl->out_bytes - 1), done = sl->out_posts.done;
        n = least(least(p->bytes - done, most - moved), sl->out_bytes - at);
        memcpy(r->data + at, p->at + done, n);
        moved += n;
        if (n == p->bytes)
            put_brief(r, written + moved, p);
        fabric_sent(l, &sl->out_posts, n);
    }
    if (!moved)
        return false;
    atomic_store_explicit(&r->written, written + moved, memory_order_release);
    fabric_shm_wake(sl->peer_head, FABRIC_SHM_FOR_DATA);
    return true;
}

static bool pull(const struct fabric_shm *s, struct fabric_link *l, struct fabric_shm_link *sl)
{
    struct fabric_shm_ring *r = sl->in;
    uint64_t read = atomic_load_explicit(&r->read, memory_order_relaxed);
    size_t moved = 0, n = 1;

    if (sl->in_written == read)
        sl->in_written = atomic_load_explicit(&r->written, memory_order_acquire);
    size_t most = least(FABRIC_SHM_CHUNK, s->ring_bytes / 4);
    most = least(most, (size_t)(sl->in_written - read));
    while (moved < most && sl->in_posts.n) {
        const struct fabric_post *p = fabric_posts_at(&sl->in_posts, 0);
        size_t at = (read + moved) & (s->ring_bytes - 1), done = sl->in_posts.done;
        n = least(least(p->bytes - done, most - moved), s->ring_bytes - at);
        if (n < p->bytes || !take_brief(r, read + moved + n, p))
            memcpy(p->at + done, r->data + at, n);
        moved += n;
        fabric_received(l, &sl->in_posts, n);
    }
    if (!moved)
        return false;
    atomic_store_explicit(&r->read, read + moved, memory_order_release);
    fabric_shm_wake(sl->peer_head, FABRIC_SHM_FOR_ROOM);
    return true;
}

/* Something of each link. */
static int look(struct fabric *f)
{
    struct fabric_shm *s = fabric_shm_of(f);
    bool moved = false;

    for (unsigned i = 0; i < f->n_links; i++) {
        struct fabric_link *l = &f->links[i];
        struct fabric_shm_link *sl = fabric_shm_link_of(l);
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
static int look_after(struct fabric *f, const struct fabric_link *l, bool ask_kernel)
{
    const struct fabric_shm_link *sl = fabric_shm_link_of(l);
    char name[128];

    if (!sl->out_posts.n && !sl->in_posts.n)
        return 0;
    bool ended = (sl->in_posts.n && atomic_load(&sl->in->sender_ended)) ||
                 (sl->out_posts.n && atomic_load(&sl->out->receiver_ended)) ||
                 (ask_kernel && fabric_shm_dead(sl));
    if (!ended || look(f))
        return 0;
    return fabric_fail(f, -ECONNRESET, "%s is gone: it ended with %llu bytes outstanding",
                       world_name(f->world, l->peer, name, sizeof(name)),
                       (unsigned long long)(l->posted_out - l->sent + l->posted_in - l->received));
}

/* Nothing moves. The kernel is asked now and then, what peers say themselves each time. */
static int look_after_all(struct fabric *f, uint64_t now_ns)
{
    struct fabric_shm *s = fabric_shm_of(f);
    bool ask_kernel = now_ns - s->look_ns >= FABRIC_SHM_LOOK_NS;
    int err = 0;

    if (ask_kernel)
        s->look_ns = now_ns;
    for (unsigned i = 0; i < f->n_links && !err; i++)
        err = look_after(f, &f->links[i], ask_kernel);
    return err;
}

/* What it waits for, of FABRIC_SHM_FOR_...: 0: nothing. */
static uint32_t waits(const struct fabric *f)
{
    uint32_t what = 0;

    for (unsigned i = 0; i < f->n_links; i++) {
        const struct fabric_shm_link *sl = fabric_shm_link_of(&f->links[i]);
        what |= (sl->out_posts.n ? FABRIC_SHM_FOR_ROOM : 0) |
                (sl->in_posts.n ? FABRIC_SHM_FOR_DATA : 0);
    }
    return what;
}

static int sleep_once(struct fabric *f, uint64_t wait_ns)
{
    struct fabric_shm_head *head = fabric_shm_of(f)->head;
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

static int sleep_until(struct fabric *f, uint64_t start_ns, uint64_t wait_ns)
{
    uint64_t now_ns = clock_now_ns();
    int rc = 0;

    while (!rc && now_ns - start_ns < wait_ns) {
        uint64_t left_ns = wait_ns - (now_ns - start_ns);
        rc = sleep_once(f, left_ns < FABRIC_SHM_LOOK_NS ? left_ns : FABRIC_SHM_LOOK_NS);
        now_ns = clock_now_ns();
        rc = rc ? rc : look_after_all(f, now_ns);
    }
    return rc;
}

int fabric_shm_progress(struct fabric *f, uint64_t wait_ns)
{
    struct fabric_shm *s = fabric_shm_of(f);
    int rc = look(f);

    if (rc)
        return rc;
    if (!wait_ns)
        return ++s->still_looks % LOOKS_A_CLOCK ? 0 : look_after_all(f, clock_now_ns());
    if (!waits(f))
        return 0;
    uint64_t start_ns = clock_now_ns();
    rc = fabric_spin(f, look, LOOKS_A_CLOCK, start_ns, wait_ns);
    if (!rc)
        rc = look_after_all(f, clock_now_ns());
    return rc ? rc : sleep_until(f, start_ns, wait_ns);
}

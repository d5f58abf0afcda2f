/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that both ends share, and the transport's table: see shm.h. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/hw/host_kernels.h"
#include "core/hw/machine.h"
#include "core/rng.h"
#include "core/wire/shm.h"

#define SHM_RECEIVE_LEAST SHM_CHUNK_BYTES /* a receive buffer has so many bytes, or one message */

static inline bool shm_sends(const struct net_end *e, enum net_direction d)
{
    return (d == NET_FORWARD) == e->leader;
}

/* Does anything go that way on that connection? */
static inline bool shm_goes(const struct net_end *e, unsigned number, enum net_direction d)
{
    return number == e->point->connections ? e->point->ping : e->point->stream[d];
}

/* ---- What goes through the memory that both ends share ---- */

#define TURNS_A_YIELD 64u
#define TURNS_A_LOOK  1024u /* at clock and flags */

struct idle {
    unsigned turns;
    uint64_t since_ns;
};

static int look(struct net_end *e, struct idle *idle)
{
    uint64_t now_ns = clock_now_ns();

    if (net_over(e))
        return -ECANCELED;
    if (!idle->since_ns)
        idle->since_ns = now_ns;
    if (now_ns - idle->since_ns < shm_of(e)->still_ns)
        return 0;
    return net_fail(
        e, -ETIMEDOUT,
        "nothing moved between here and %s for %.3g s in shared memory: its process was "
        "stopped or hangs",
        channel_peer(e->channel), (double)shm_of(e)->still_ns / 1e9);
}

/* Nothing can move now. */
static inline int wait_a_turn(struct net_end *e, struct idle *idle)
{
    cpu_pause();
    if (++idle->turns % TURNS_A_YIELD)
        return 0;
    sched_yield();
    return idle->turns % TURNS_A_LOOK ? 0 : look(e, idle);
}

static void count(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static size_t push(struct net_end *e, unsigned number)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    size_t n = shm_ring_push(c->out_ring, c->out + c->out_at, c->message_bytes - c->out_at);

    c->out_at += n;
    if (c->out_at == c->message_bytes) {
        c->out_at = 0;
        count(&e->counts[number].sent, 1);
    }
    return n;
}

static size_t pull(struct net_end *e, unsigned number, uint64_t *messages)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    size_t n = shm_ring_pull(c->in_ring, c->in + c->in_at, c->in_bytes - c->in_at);

    *messages = (c->in_at + n) / c->message_bytes - c->in_at / c->message_bytes;
    c->in_at += n;
    if (c->in_at == c->in_bytes)
        c->in_at = 0;
    c->in_total += n;
    if (*messages)
        count(&e->counts[number].received, *messages);
    return n;
}

/* A chunk of each connection in turn. Returns how many bytes; *busy: some connection is not
 * done. */
static size_t send_round(struct net_worker *w, bool *busy)
{
    struct net_end *e = w->end;
    size_t moved = 0;

    *busy = false;
    for (unsigned i = w->first; i < w->first + w->n; i++)
        if (shm_of(e)->connections[i].out_at || !net_stop(e)) {
            *busy = true;
            moved += push(e, i);
        }
    return moved;
}

static size_t receive_round(struct net_worker *w, bool *busy)
{
    struct net_end *e = w->end;
    size_t moved = 0;

    *busy = false;
    for (unsigned i = w->first; i < w->first + w->n; i++)
        if (!net_drained(e, i)) {
            uint64_t messages;
            size_t n = pull(e, i, &messages);
            *busy = true;
            moved += n;
            if (n)
                net_tally_add(&w->tally, n, messages);
        }
    return moved;
}

static void ready_out(struct net_end *e, unsigned number, enum net_direction d)
{
    struct shm_connection *c = &shm_of(e)->connections[number];

    if (!c->out_ready)
        pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, 0));
    c->out_ready = true;
}

/* Touched by the thread that will write it; the ring by reading, since the sender may be at work.
 * So both lie where the receiver runs. */
static void ready_in(struct shm_connection *c)
{
    const volatile char *data = c->in_ring->data;

    if (!c->in_ready) {
        memset(c->in, 0, c->in_bytes);
        for (size_t i = 0; i < SHM_RING_BYTES; i += SHM_PAGE_BYTES)
            (void)data[i];
    }
    c->in_ready = true;
}

static int shm_work(struct net_worker *w)
{
    struct net_end *e = w->end;
    struct idle idle = {0};
    bool busy = true;
    int err = 0;

    for (unsigned i = w->first; i < w->first + w->n; i++) {
        if (w->sends)
            ready_out(e, i, w->direction);
        else
            ready_in(&shm_of(e)->connections[i]);
    }
    while (busy && !err && !net_over(e)) {
        if (w->sends ? send_round(w, &busy) : receive_round(w, &busy))
            idle = (struct idle){0};
        else if (busy)
            err = wait_a_turn(e, &idle);
    }
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

/* One whole message. */
static int push_all(struct net_end *e, unsigned number)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    struct idle idle = {0};
    int err = 0;

    for (size_t done = 0; done < c->message_bytes && !err;) {
        size_t n = shm_ring_push(c->out_ring, c->out + done, c->message_bytes - done);
        done += n;
        if (n)
            idle = (struct idle){0};
        else
            err = wait_a_turn(e, &idle);
    }
    return err;
}

static int pull_all(struct net_end *e, unsigned number)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    struct idle idle = {0};
    int err = 0;

    for (size_t done = 0; done < c->message_bytes && !err;) {
        size_t n = shm_ring_pull(c->in_ring, c->in + done, c->message_bytes - done);
        done += n;
        if (n)
            idle = (struct idle){0};
        else
            err = wait_a_turn(e, &idle);
    }
    return err;
}

static void count_ping(struct net_end *e)
{
    unsigned number = e->point->connections;

    count(&e->counts[number].sent, 1);
    count(&e->counts[number].received, 1);
    shm_of(e)->connections[number].in_total += e->point->ping_bytes;
}

/* The first byte of the leader's message says whether it is the
 * last. */
static int shm_ping(struct net_end *e, bool last, uint64_t *ns)
{
    unsigned number = e->point->connections;
    struct shm_connection *c = &shm_of(e)->connections[number];

    ready_out(e, number, NET_FORWARD);
    ready_in(c);
    c->out[0] = last;
    uint64_t start_ns = clock_now_ns();
    int err = push_all(e, number);
    err = err ? err : pull_all(e, number);
    *ns = clock_now_ns() - start_ns;
    if (!err)
        count_ping(e);
    return err;
}

static int shm_pong(struct net_end *e)
{
    unsigned number = e->point->connections;
    struct shm_connection *c = &shm_of(e)->connections[number];
    bool last = false;
    int err = 0;

    ready_out(e, number, NET_REVERSE);
    ready_in(c);
    while (!last && !err) {
        err = pull_all(e, number);
        last = c->in[0];
        c->out[0] = c->in[0];
        err = err ? err : push_all(e, number);
        if (!err)
            count_ping(e);
    }
    return net_over(e) ? atomic_load(&e->error_code) : err;
}

static int compare(struct net_end *e, unsigned number, enum net_direction d, unsigned round,
                   size_t at)
{
    const struct shm_connection *c = &shm_of(e)->connections[number];
    size_t wrong =
        pattern_check(c->in + at, c->message_bytes, net_seed(e->point, d, number, round));

    if (wrong == PATTERN_RIGHT)
        return 0;
    return net_fail(
        e, -EBADMSG,
        "wrong data: byte %zu of %zu of %s message from %s on connection %u is not what "
        "was sent",
        wrong, c->message_bytes, round ? "a fresh" : "the last", channel_peer(e->channel), number);
}

/* As many of the last messages as the buffer held; a ping's flag is put back to what it covers. */
static int check_last(struct net_end *e, unsigned number, enum net_direction d)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    size_t held = c->in_total < c->in_bytes ? (size_t)c->in_total : c->in_bytes;
    int err = 0;

    if (held && number == e->point->connections)
        pattern_fill(c->in, 1, net_seed(e->point, d, number, 0));
    for (size_t at = 0; at < held && !err; at += c->message_bytes)
        err = compare(e, number, d, 0, at);
    return err;
}

static int send_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct shm_connection *c = &shm_of(e)->connections[number];

    pattern_fill(c->out, c->message_bytes, net_seed(e->point, d, number, 1));
    c->out_ready = false;
    return push_all(e, number);
}

static int receive_fresh(struct net_end *e, unsigned number, enum net_direction d)
{
    struct shm_connection *c = &shm_of(e)->connections[number];
    int err = check_last(e, number, d);

    if (err)
        return err;
    memset(c->in, 0, c->in_bytes);
    err = pull_all(e, number);
    c->in_total = c->in_at = 0;
    return err ? err : compare(e, number, d, 1, 0);
}

/* One direction of one connection after the other, at both ends. */
static int shm_check(struct net_end *e)
{
    int err = 0;

    for (unsigned i = 0; i < shm_of(e)->n; i++)
        for (int k = 0; k < NET_DIRECTIONS && !err; k++) {
            enum net_direction d = (enum net_direction)k;
            if (shm_goes(e, i, d))
                err = shm_sends(e, d) ? send_fresh(e, i, d) : receive_fresh(e, i, d);
        }
    return err;
}

/* How the peer finds the leader's memory. The token proves that it is this memory. */
struct shm_address {
    int32_t pid, fd;
    uint64_t bytes;
};

/* The first page of the memory; rings follow, two to a connection. */
struct shm_head {
    uint8_t token[CHANNEL_TOKEN_BYTES];
};

static bool counted_by_sender(const struct net_point *p, enum net_direction d)
{
    (void)p;
    (void)d;
    return false;
}

static bool needs_worker(const struct net_point *p, enum net_direction d, bool sends)
{
    (void)p;
    (void)d;
    (void)sends;
    return true;
}

static bool polls(const struct net_point *p)
{
    (void)p;
    return true;
}

static void backends(backend_say_fn *say, void *arg)
{
    say(arg, &(struct backend){.name = "shm",
                               .state = BACKEND_PRESENT,
                               .what = "between two processes of this machine"});
}

static size_t rounded(size_t bytes)
{
    return (bytes + SHM_PAGE_BYTES - 1) / SHM_PAGE_BYTES * SHM_PAGE_BYTES;
}

static int shm_open_end(struct net_end *e)
{
    struct shm_net *s = calloc(1, sizeof(*s));

    e->state = s;
    if (!s)
        return net_fail(e, -ENOMEM, "out of memory");
    s->fd = -1;
    s->still_ns = NET_STILL_NS;
    if (!e->same_machine)
        return net_fail(e, -EOPNOTSUPP, "shared memory is for two ends on one machine");
    if (e->local->devices[0])
        return net_fail(e, -EOPNOTSUPP, "shared memory uses no device: leave '%.60s' to others",
                        e->local->devices);
    s->n = e->point->connections + (e->point->ping ? 1 : 0);
    s->map_bytes = SHM_PAGE_BYTES + 2 * s->n * sizeof(struct shm_ring);
    size_t bytes = (e->point->connections + 1u) * sizeof(*s->connections);
    s->connections = aligned_alloc(_Alignof(struct shm_connection), bytes);
    if (!s->connections)
        return net_fail(e, -ENOMEM, "out of memory");
    memset(s->connections, 0, bytes);
    e->n_rails = 1;
    e->rails[0] = (struct net_rail){.name = "shm", .kind = "shm", .node = -1};
    snprintf(e->rails[0].text, sizeof(e->rails[0].text), "ring of %u KiB, %u KiB at once",
             SHM_RING_BYTES >> 10, SHM_CHUNK_BYTES >> 10);
    return 0;
}

/* Small messages are taken many at once, into a buffer that holds whole ones. */
static uint64_t set_sizes(struct net_end *e)
{
    struct shm_net *s = shm_of(e);
    uint64_t bytes = 0;

    for (unsigned i = 0; i < s->n; i++) {
        struct shm_connection *c = &s->connections[i];
        bool ping = i == e->point->connections;
        c->message_bytes = ping ? e->point->ping_bytes : e->point->message_bytes;
        uint64_t at_once = ping || c->message_bytes >= SHM_RECEIVE_LEAST
                               ? 1
                               : SHM_RECEIVE_LEAST / c->message_bytes;
        for (int d = 0; d < NET_DIRECTIONS; d++) {
            if (shm_goes(e, i, (enum net_direction)d) && shm_sends(e, (enum net_direction)d))
                c->out_bytes = c->message_bytes;
            else if (shm_goes(e, i, (enum net_direction)d))
                c->in_bytes = c->message_bytes * at_once;
        }
        bytes += rounded(c->out_bytes) + rounded(c->in_bytes);
    }
    return bytes;
}

/* Both ends' buffers and half of the rings each, of one memory. */
static int refuse_size(struct net_end *e, uint64_t buffers)
{
    uint64_t need = buffers + shm_of(e)->map_bytes / 2, available = host_available();

    if (available == UINT64_MAX || need <= (available - available / 8) / 2)
        return 0;
    return net_fail(
        e, -EOPNOTSUPP,
        "buffers and rings of all connections need %llu MiB of memory, %llu can be had: "
        "smaller messages or fewer connections",
        (unsigned long long)(need >> 20),
        (unsigned long long)((available - available / 8) / 2 >> 20));
}

static int make_buffers(struct net_end *e)
{
    struct shm_net *s = shm_of(e);
    uint64_t bytes = set_sizes(e);
    char error[160] = "";

    int err = refuse_size(e, bytes);
    if (err)
        return err;
    err = host_alloc(&s->buffer, e->topo, bytes + SHM_PAGE_BYTES, HOST_PAGES_THP, e->memory_node,
                     error, sizeof(error));
    if (err)
        return net_fail(e, err, "%s", error);
    char *at = s->buffer.at;
    for (unsigned i = 0; i < s->n; i++) {
        struct shm_connection *c = &s->connections[i];
        c->out = at;
        c->in = at + rounded(c->out_bytes);
        at = c->in + rounded(c->in_bytes);
    }
    return 0;
}

static int map_memory(struct net_end *e, int fd)
{
    struct shm_net *s = shm_of(e);
    void *at = mmap(NULL, s->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        return net_fail(e, -errno, "%zu MiB of shared memory cannot be mapped: %m",
                        s->map_bytes >> 20);
    s->map = at;
    struct shm_ring *rings = (struct shm_ring *)((char *)at + SHM_PAGE_BYTES);
    for (unsigned i = 0; i < s->n; i++) {
        s->connections[i].out_ring = &rings[2 * i + (e->leader ? NET_FORWARD : NET_REVERSE)];
        s->connections[i].in_ring = &rings[2 * i + (e->leader ? NET_REVERSE : NET_FORWARD)];
    }
    return 0;
}

static int make_memory(struct net_end *e)
{
    struct shm_net *s = shm_of(e);

    s->fd = memfd_create("plumb-shm", MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->map_bytes))
        return net_fail(e, -errno, "shared memory cannot be made: %m");
    int err = map_memory(e, s->fd);
    if (err)
        return err;
    err = channel_token(e->channel, "shm", 0, ((struct shm_head *)s->map)->token);
    return err ? net_fail(e, err, "no token for shared memory: %s", channel_error(e->channel)) : 0;
}

/* No thread hands over more than it can copy: from a message's buffer into the ring, or out of
 * it. */
static void measure_limit(struct net_end *e)
{
    struct shm_connection *c = &shm_of(e)->connections[0];
    struct net_rail *rail = &e->rails[0];
    size_t bytes = e->point->message_bytes;

    if (!e->point->connections || !c->out_bytes || topo_bind_self(e->topo, e->cpus[0]))
        return;
    bytes = bytes < SHM_RING_BYTES ? bytes : SHM_RING_BYTES;
    rail->line_gbps = 8 * copy_ceiling(c->out_ring->data, c->out, bytes);
    snprintf(rail->line_source, sizeof(rail->line_source),
             "reference: best copy of as much by one core, a thread each");
    memset(c->out_ring->data, 0, bytes);
    topo_unbind_self(e->topo);
}

static int shm_address(struct net_end *e, void *address, size_t *len)
{
    struct shm_net *s = shm_of(e);
    int err = make_buffers(e);

    if (!err && e->leader)
        err = make_memory(e);
    if (!err && e->leader)
        measure_limit(e);
    struct shm_address own = {.pid = getpid(), .fd = s->fd, .bytes = s->map_bytes};
    memcpy(address, &own, sizeof(own));
    *len = sizeof(own);
    return err;
}

/* A number of another namespace of processes leads to nothing, or to something else. */
static int is_it(struct net_end *e, int fd)
{
    struct shm_net *s = shm_of(e);
    uint8_t right[CHANNEL_TOKEN_BYTES];
    struct stat st;

    if (fstat(fd, &st) || (size_t)st.st_size != s->map_bytes)
        return net_fail(e, -EOPNOTSUPP,
                        "what /proc shows of %s is not its memory: are the two in different "
                        "containers",
                        channel_peer(e->channel));
    int err = map_memory(e, fd);
    err = err ? err : channel_token(e->channel, "shm", 0, right);
    if (!err && memcmp(((struct shm_head *)s->map)->token, right, sizeof(right)) != 0)
        err = net_fail(e, -EPROTO, "the memory that /proc shows of %s is another's",
                       channel_peer(e->channel));
    return err;
}

/* The leader's memory is there before its address is. */
static int shm_join(struct net_end *e, const void *address, size_t len)
{
    struct shm_address theirs;
    char path[64];

    if (len != sizeof(theirs))
        return net_fail(e, -EPROTO, "%s did not say where its memory is", channel_peer(e->channel));
    if (e->leader)
        return 0;
    memcpy(&theirs, address, sizeof(theirs));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", theirs.pid, theirs.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return net_fail(e, -EOPNOTSUPP,
                        "the memory of %s (%s) cannot be opened: %m; both ends must be one user's "
                        "and in one container",
                        channel_peer(e->channel), path);
    int err = is_it(e, fd);
    close(fd);
    return err;
}

static void shm_close_end(struct net_end *e)
{
    struct shm_net *s = shm_of(e);

    if (!s)
        return;
    if (s->map)
        munmap(s->map, s->map_bytes);
    if (s->fd >= 0)
        close(s->fd);
    host_free(&s->buffer);
    free(s->connections);
    free(s);
    e->state = NULL;
}

const struct net_ops net_shm = {
    .name = "shm",
    .help = "memory that two processes of one machine share",
    .backends = backends,
    .counted_by_sender = counted_by_sender,
    .needs_worker = needs_worker,
    .polls = polls,
    .open = shm_open_end,
    .address = shm_address,
    .join = shm_join,
    .work = shm_work,
    .ping = shm_ping,
    .pong = shm_pong,
    .check = shm_check,
    .close = shm_close_end,
};

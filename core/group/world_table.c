/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other of the world: see world_parts.h. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "core/group/bytes.h"
#include "core/group/fd_channel.h"
#include "core/group/handshake.h"
#include "core/group/world_parts.h"

/* Of a member: host[64], machine[64], network u64, address, pid, node, local, seat, seats
 * address: family u32 (4, 6, 0: not known), 16 bytes, scope u32 */
enum {
    AT_MACHINE = WORLD_NAME_MAX,
    AT_NETWORK = 2 * WORLD_NAME_MAX,
    AT_ADDRESS = AT_NETWORK + 8,
    AT_PID = AT_ADDRESS + 24,
    AT_NODE = AT_PID + 4,
    AT_LOCAL = AT_NODE + 4,
    AT_SEAT = AT_LOCAL + 4,
    AT_SEATS = AT_SEAT + 4,
};
_Static_assert(AT_SEATS + 4 == WORLD_MEMBER_BYTES, "layout");
_Static_assert(WORLD_CHUNK *WORLD_MEMBER_BYTES <= CHANNEL_FRAME_MAX, "a chunk is a frame");

#define HEAD_BYTES   (8 + WORLD_KEY_BYTES)
#define REASON_BYTES 256

static void address_put(uint8_t to[24], const struct sockaddr_storage *a)
{
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    memset(to, 0, 24);
    if (a->ss_family == AF_INET) {
        memcpy(&four, a, sizeof(four));
        bytes_put32(to, 4);
        memcpy(to + 4, &four.sin_addr, 4);
    } else if (a->ss_family == AF_INET6) {
        memcpy(&six, a, sizeof(six));
        bytes_put32(to, 6);
        memcpy(to + 4, &six.sin6_addr, 16);
        bytes_put32(to + 20, six.sin6_scope_id);
    }
}

static void address_get(const uint8_t from[24], struct sockaddr_storage *a)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_scope_id = bytes_get32(from + 20)};
    struct sockaddr_in four = {.sin_family = AF_INET};

    memset(a, 0, sizeof(*a));
    memcpy(&four.sin_addr, from + 4, 4);
    memcpy(&six.sin6_addr, from + 4, 16);
    if (bytes_get32(from) == 4)
        memcpy(a, &four, sizeof(four));
    else if (bytes_get32(from) == 6)
        memcpy(a, &six, sizeof(six));
}

void world_member_put(uint8_t to[WORLD_MEMBER_BYTES], const struct world_member *m)
{
    memcpy(to, m->host, WORLD_NAME_MAX);
    memcpy(to + AT_MACHINE, m->machine, WORLD_NAME_MAX);
    bytes_put64(to + AT_NETWORK, m->network);
    address_put(to + AT_ADDRESS, &m->address);
    bytes_put32(to + AT_PID, (uint32_t)m->pid);
    bytes_put32(to + AT_NODE, m->node);
    bytes_put32(to + AT_LOCAL, m->local);
    bytes_put32(to + AT_SEAT, m->seat);
    bytes_put32(to + AT_SEATS, m->seats);
}

void world_member_get(const uint8_t from[WORLD_MEMBER_BYTES], struct world_member *m)
{
    memset(m, 0, sizeof(*m));
    shake_text(m->host, sizeof(m->host), from, WORLD_NAME_MAX);
    shake_text(m->machine, sizeof(m->machine), from + AT_MACHINE, WORLD_NAME_MAX);
    m->network = bytes_get64(from + AT_NETWORK);
    address_get(from + AT_ADDRESS, &m->address);
    m->pid = (int32_t)bytes_get32(from + AT_PID);
    m->node = bytes_get32(from + AT_NODE);
    m->local = bytes_get32(from + AT_LOCAL);
    m->seat = bytes_get32(from + AT_SEAT);
    m->seats = bytes_get32(from + AT_SEATS);
}

int world_hello_send(struct channel *c, const struct world_hello *h)
{
    uint8_t bytes[WORLD_HELLO_BYTES];

    bytes_put32(bytes, h->rank);
    bytes_put32(bytes + 4, h->size);
    world_member_put(bytes + 8, &h->member);
    return channel_send(c, WORLD_HELLO, bytes, sizeof(bytes));
}

int world_hello_recv(struct channel *c, struct world_hello *h, uint64_t wait_ns)
{
    uint8_t bytes[WORLD_HELLO_BYTES];
    uint16_t type = 0;
    size_t n = 0;
    int err = channel_recv(c, &type, bytes, sizeof(bytes), &n, wait_ns);

    if (err)
        return err;
    if (type != WORLD_HELLO || n != sizeof(bytes))
        return -EPROTO;
    h->rank = bytes_get32(bytes);
    h->size = bytes_get32(bytes + 4);
    world_member_get(bytes + 8, &h->member);
    return 0;
}

int world_tell(struct world *w, unsigned rank, const uint8_t mix[WORLD_KEY_BYTES], char *error,
               size_t len)
{
    uint8_t head[HEAD_BYTES], chunk[WORLD_CHUNK * WORLD_MEMBER_BYTES];
    struct channel *c = w->channels[rank];

    bytes_put32(head, w->size);
    bytes_put32(head + 4, w->nodes);
    memcpy(head + 8, mix, WORLD_KEY_BYTES);
    int err = channel_send(c, WORLD_HEAD, head, sizeof(head));
    for (unsigned i = 0; i < w->size && !err; i += WORLD_CHUNK) {
        unsigned n = w->size - i < WORLD_CHUNK ? w->size - i : WORLD_CHUNK;
        for (unsigned k = 0; k < n; k++)
            world_member_put(chunk + (size_t)k * WORLD_MEMBER_BYTES, &w->members[i + k]);
        err = channel_send(c, WORLD_MEMBERS, chunk, (size_t)n * WORLD_MEMBER_BYTES);
    }
    return err ? world_fail(err, error, len, "%s", channel_error(c)) : 0;
}

void world_refuse(struct channel *c, int err, const char *why)
{
    uint8_t bytes[4 + REASON_BYTES];
    size_t n = strnlen(why, REASON_BYTES);

    bytes_put32(bytes, (uint32_t)-err);
    memcpy(bytes + 4, why, n);
    channel_send(c, WORLD_REFUSED, bytes, 4 + n);
}

static int hear_refusal(struct channel *c, const uint8_t *data, size_t n, char *error, size_t len)
{
    uint32_t err = n >= 4 ? bytes_get32(data) : 0;
    char why[REASON_BYTES + 1] = "it does not say why";

    if (n > 4)
        shake_text(why, sizeof(why), data + 4, n - 4);
    return world_fail(err > 0 && err < 4096 ? -(int)err : -EPROTO, error, len,
                      "'%s' turned this process away: %s", channel_peer(c), why);
}

/* A frame, while nobody cancels. */
static int recv_slices(struct channel *c, uint16_t *type, void *data, size_t size, size_t *n,
                       uint64_t wait_ns, const volatile int *cancel)
{
    const uint64_t slice_ns = FD_SLICE_MS * 1000000u;
    int err = -ETIMEDOUT;

    while (err == -ETIMEDOUT && wait_ns && !(cancel && *cancel)) {
        uint64_t now_ns = cancel && wait_ns > slice_ns ? slice_ns : wait_ns;
        err = channel_recv(c, type, data, size, n, now_ns);
        wait_ns -= now_ns;
    }
    return err == -ETIMEDOUT && cancel && *cancel ? -EINTR : err;
}

int world_expect(struct channel *c, uint16_t type, void *data, size_t size, uint64_t wait_ns,
                 const volatile int *cancel, char *error, size_t len)
{
    uint8_t bytes[WORLD_CHUNK * WORLD_MEMBER_BYTES];
    uint16_t got = 0;
    size_t n = 0;
    int err = recv_slices(c, &got, bytes, sizeof(bytes), &n, wait_ns, cancel);

    if (err == -EINTR)
        return world_fail(err, error, len, "stopped while waiting for '%s'", channel_peer(c));
    if (err == -ETIMEDOUT)
        return world_fail(err, error, len, "'%s' sent nothing for %.3g s: it hangs, or is cut off",
                          channel_peer(c), (double)wait_ns / 1e9);
    if (err)
        return world_fail(err, error, len, "%s", channel_error(c));
    if (got == WORLD_REFUSED)
        return hear_refusal(c, bytes, n, error, len);
    if (got != type || n != size)
        return world_fail(-EPROTO, error, len,
                          "'%s' sent a message out of turn: is it another program, or another "
                          "version?",
                          channel_peer(c));
    memcpy(data, bytes, n);
    return 0;
}

/* Callers count nodes and seats in arrays of as many as there are ranks. */
static int is_possible(const struct world *w, const struct world_member *m)
{
    return m->node < w->nodes && m->local < w->size && m->seat < m->seats && m->seats <= w->size;
}

static int hear_members(struct world *w, struct channel *c, const volatile int *cancel, char *error,
                        size_t len)
{
    uint8_t chunk[WORLD_CHUNK * WORLD_MEMBER_BYTES];
    int err = 0;

    for (unsigned i = 0; i < w->size && !err; i += WORLD_CHUNK) {
        unsigned n = w->size - i < WORLD_CHUNK ? w->size - i : WORLD_CHUNK;
        err = world_expect(c, WORLD_MEMBERS, chunk, (size_t)n * WORLD_MEMBER_BYTES, CHANNEL_WAIT_NS,
                           cancel, error, len);
        for (unsigned k = 0; k < n && !err; k++) {
            world_member_get(chunk + (size_t)k * WORLD_MEMBER_BYTES, &w->members[i + k]);
            if (!is_possible(w, &w->members[i + k]))
                err = world_fail(-EPROTO, error, len, "'%s' tells of a rank %u that cannot be",
                                 channel_peer(c), i + k);
        }
    }
    return err;
}

int world_hear(struct world *w, struct channel *c, uint8_t mix[WORLD_KEY_BYTES], uint64_t wait_ns,
               const volatile int *cancel, char *error, size_t len)
{
    uint8_t head[HEAD_BYTES];
    int err = world_expect(c, WORLD_HEAD, head, sizeof(head), wait_ns, cancel, error, len);

    if (!err && bytes_get32(head) != w->size)
        err = world_fail(-EPROTO, error, len, "'%s' has %u processes, this one was told of %u",
                         channel_peer(c), bytes_get32(head), w->size);
    if (err)
        return err;
    w->nodes = bytes_get32(head + 4);
    if (w->nodes < 1 || w->nodes > w->size)
        return world_fail(-EPROTO, error, len, "'%s' tells of %u nodes of %u processes",
                          channel_peer(c), w->nodes, w->size);
    memcpy(mix, head + 8, WORLD_KEY_BYTES);
    return hear_members(w, c, cancel, error, len);
}

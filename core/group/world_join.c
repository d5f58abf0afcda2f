/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that comes to rank 0 over a socket: see world.h. */
#include <errno.h>
#include <string.h>

#include "core/group/bytes.h"
#include "core/group/secret.h"
#include "core/group/world_sock.h"

#define TELL_NS 60000000000u /* rank 0 tells one after the other, and many they may be */

void world_sock_key(struct world *w, const struct meet_secret *secret,
                    const uint8_t nonce[WORLD_KEY_BYTES])
{
    static const char what[] = "plumb world";
    struct secret_part parts[] = {{what, sizeof(what)}, {nonce, WORLD_KEY_BYTES}};

    _Static_assert(WORLD_KEY_BYTES == SECRET_MAC_BYTES, "a world's key is a MAC");
    secret_mac(w->key, secret->bytes, parts, 2);
}

/* Rank 0, and who shares its network, are where this process has found it: rank 0 may have an address for each network
 * that it is in, and tells everybody one. */
static void correct_addresses(struct world *w, struct channel *c)
{
    struct sockaddr_storage own, peer;
    const uint64_t here = w->members[w->rank].network, there = w->members[0].network;

    if ((here && here == there) || channel_address(c, &own, &peer))
        return;
    for (unsigned i = 0; i < w->size; i++)
        if (i == 0 || (there && w->members[i].network == there))
            w->members[i].address = peer;
}

static int enter(struct channel *c, const struct world_meeting *m, uint64_t *left_ns, char *error,
                 size_t len)
{
    struct world_hello h = {.rank = m->rank, .size = m->size};
    uint8_t bytes[8];

    world_self(&h.member);
    int err = world_hello_send(c, &h);
    if (err)
        return world_fail(err, error, len, "%s", channel_error(c));
    err = world_expect(c, WORLD_ACCEPTED, bytes, sizeof(bytes), CHANNEL_WAIT_NS, m->cancel, error,
                       len);
    if (!err)
        *left_ns = bytes_get64(bytes);
    return err;
}

int world_join(struct world **world, const struct world_meeting *m, char *error, size_t len)
{
    struct meet_connect to = {.host = m->address,
                              .port = m->port,
                              .secret = m->secret,
                              .protocol = m->protocol,
                              .wait_ns = m->wait_ns,
                              .cancel = m->cancel};
    struct channel *c = NULL;
    struct world *w = NULL;
    uint8_t nonce[WORLD_KEY_BYTES];
    uint64_t left_ns = 0;

    int err = meet_connect(&to, &c, error, len);
    if (err && m->cancel && *m->cancel)
        err =
            world_fail(-EINTR, error, len, "stopped while looking for rank 0 at '%s'", m->address);
    if (err)
        return err;
    /* A number that cannot be is rank 0's to refuse: so both ends are told. */
    err = enter(c, m, &left_ns, error, len);
    if (!err)
        err = world_new(&w, "sock", m->rank, m->size, error, len);
    if (!err)
        err = world_hear(w, c, nonce, left_ns > UINT64_MAX - TELL_NS ? left_ns : left_ns + TELL_NS,
                         m->cancel, error, len);
    if (err) {
        world_free(w);
        channel_close(c);
        return err;
    }
    world_sock_key(w, m->secret, nonce);
    correct_addresses(w, c);
    world_adopt(w, 0, c);
    *world = w;
    return 0;
}

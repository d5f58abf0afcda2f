/* SPDX-License-Identifier: Apache-2.0 */
/* Handshakes without sockets, for tests: two ends with known seeds, and the bytes that each would send. */
#ifndef PLUMB_TESTS_HANDSHAKES_H
#define PLUMB_TESTS_HANDSHAKES_H

#include <string.h>

#include "core/group/meet.h"

#define TALK_PROTOCOL 0x01020304u
#define TALK_VERSION  "0.1.0"

static const struct meet_secret talk_secret = {.bytes = "what only the two ends know"};

/* One end, with a seed made of this byte. */
static inline void talk_begin(struct shake *s, bool server, const struct meet_secret *secret,
                              uint32_t protocol, const char *version, uint8_t seed)
{
    struct shake_self self = {.secret = secret,
                              .protocol = protocol,
                              .version = version,
                              .name = server ? "server-host" : "client-host"};

    memset(self.seed, seed, sizeof(self.seed));
    shake_begin(s, server, &self);
}

static inline void talk_good(struct shake *s, bool server)
{
    talk_begin(s, server, &talk_secret, TALK_PROTOCOL, TALK_VERSION, server ? 0x55 : 0xcc);
}

/* What this end has to say, as it would come from a stream: in pieces that the other asks for. Returns how many
 * bytes the other end took. */
static inline size_t talk_feed(struct shake *to, const uint8_t *bytes, size_t n)
{
    size_t took = 0, want;

    while (took < n && (want = shake_wants(to)) > 0) {
        if (want > n - took)
            want = n - took;
        shake_feed(to, bytes + took, want);
        took += want;
    }
    return took;
}

/* Hands over what `from` has to say; keeps a copy in `record`, where that is asked for. */
static inline void talk_pass(struct shake *from, struct shake *to, uint8_t *record, size_t *n)
{
    uint8_t bytes[SHAKE_BYTES_MAX];
    size_t len = from->n_out;

    memcpy(bytes, from->out, len);
    shake_sent(from);
    if (record) {
        memcpy(record + *n, bytes, len);
        *n += len;
    }
    talk_feed(to, bytes, len);
}

/* A whole handshake. What the client said, and the server, where that is asked for. */
static inline void talk(struct shake *client, struct shake *server, uint8_t *client_said,
                        uint8_t *server_said)
{
    size_t c = 0, s = 0;

    for (int turns = 0; turns < 4; turns++) {
        talk_pass(client, server, client_said, &c);
        if (server->state == SHAKE_PROVED)
            shake_answer(server, NULL);
        talk_pass(server, client, server_said, &s);
    }
}

#define TALK_CLIENT_BYTES (SHAKE_HELLO_BYTES + SHAKE_PROOF_BYTES)
#define TALK_SERVER_BYTES (SHAKE_HELLO_BYTES + SHAKE_ANSWER_BYTES)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake of two ends that meet over a socket, as a state machine over bytes: it owns no
 * socket, waits for nothing and allocates nothing.
 *
 *   client                                        server
 *   HELLO  role, version, protocol, nonce   ->
 *                                           <-    HELLO  the same
 *   PROOF  name, HMAC                       ->
 *                                           <-    ANSWER welcome or busy, name, HMAC; or refused
 *
 * Each HMAC-SHA256 is by the session's secret over what it is for, both HELLOs whole and the rest
 * of its message: so it holds for this connection, this direction and this text alone. The server
 * proves itself after the client did: a stranger gets no HMAC from it. Both work out the key of the
 * session from secret and HELLOs. Every message has a fixed size, which its header must name.
 *
 * Each message begins with 8 bytes that stay as they are in all versions, and a server answers a
 * HELLO of another version, too, so that both ends can say which ones met.
 */
#ifndef PLUMB_CORE_GROUP_HANDSHAKE_H
#define PLUMB_CORE_GROUP_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/group/fd_channel.h"
#include "core/group/meet.h"
#include "core/group/secret.h"

#define SHAKE_NONCE_BYTES   32
#define SHAKE_NAME_BYTES    64 /* with its end */
#define SHAKE_VERSION_BYTES 32
#define SHAKE_HELLO_BYTES   80
#define SHAKE_PROOF_BYTES   (8 + SHAKE_NAME_BYTES + SECRET_MAC_BYTES)
#define SHAKE_ANSWER_BYTES  (16 + SHAKE_NAME_BYTES + SECRET_MAC_BYTES)
#define SHAKE_BYTES_MAX     SHAKE_ANSWER_BYTES /* of the longest message */

enum shake_state {
    SHAKE_HELLO,  /* waits for the other's HELLO */
    SHAKE_PROOF,  /* server: waits for the proof */
    SHAKE_PROVED, /* server: the client knows the secret: shake_answer() is due */
    SHAKE_ANSWER, /* client: waits for the answer */
    SHAKE_DONE,   /* both know: `key` holds */
    SHAKE_FAILED, /* `err` and `error` say why; what is in `out` is still to be sent */
};

struct shake {
    enum shake_state state;
    bool server;
    int err;                     /* -EPROTO, -EACCES, -EBUSY: as meet_connect() */
    char error[192];             /* of the other end: "is plumbline 0.2 ..." */
    char name[SHAKE_NAME_BYTES]; /* what the other end calls itself; when -EBUSY: whom it serves */
    uint8_t key[SECRET_KEY_BYTES];   /* of the session */
    uint8_t out[SHAKE_ANSWER_BYTES]; /* to be sent now, n_out bytes; then shake_sent() */
    size_t n_out;

    char own_name[SHAKE_NAME_BYTES];
    uint8_t secret[SECRET_KEY_BYTES];
    uint8_t own[SHAKE_HELLO_BYTES], peer[SHAKE_HELLO_BYTES];
    uint8_t in[SHAKE_BYTES_MAX];
    size_t n_in;
};

struct shake_self {
    const struct meet_secret *secret;
    uint32_t protocol;
    const char *version;              /* PLUMB_VERSION */
    const char *name;                 /* of this machine */
    uint8_t nonce[SHAKE_NONCE_BYTES]; /* random, never used before */
};

void shake_begin(struct shake *s, bool server, const struct shake_self *self);

/* How many bytes more are to be read before anything else can happen; 0: none. Never more than the
 * other end sends before it waits for an answer, so that what follows the handshake stays in the
 * socket. */
size_t shake_wants(const struct shake *s);

/* Up to so many bytes have come. */
void shake_feed(struct shake *s, const void *bytes, size_t n);

/* What was in `out` has been sent. */
void shake_sent(struct shake *s);

/* In SHAKE_PROVED: welcome (name NULL: this end's own), or busy with whom (a name). */
void shake_answer(struct shake *s, const char *busy_with);

void shake_end(struct shake *s); /* wipes it */

/* At most len - 1 characters that can be shown, from a text that need not have an end. */
void shake_text(char *to, size_t len, const void *from, size_t n);

/* ---- Sockets and names that both ends of a meeting need: see meet.h ---- */

#define MEET_ADDRESS_BYTES 80
#define MEET_LISTENERS_MAX 8

/* "10.77.0.2 port 18515" */
void meet_address_text(const struct sockaddr_storage *a, char *text, size_t len);

/* Who this end is, and a fresh nonce. 0 or -errno. */
int meet_self(struct shake_self *self, const struct meet_secret *secret, uint32_t protocol,
              char name[SHAKE_NAME_BYTES]);

/* After the handshake: takes over the socket. 0 or -errno, and the socket is closed. */
int meet_channel(struct channel **c, int fd, const struct shake *s, const char *name,
                 const struct sockaddr_storage *address);

/* Sends what the handshake has to say. It is short, and nothing else is on its way: what does not
 * go out at once goes to nobody. 0 or -errno. */
int meet_say(int fd, struct shake *s);
/* Hears what has come, without waiting: 0, -EAGAIN when nothing has, -ECONNRESET at the end, or
 * -errno. */
int meet_hear(int fd, struct shake *s);

/* Opens up to MEET_LISTENERS_MAX sockets; *port is the one that was asked for, or found. 0 or
 * -errno with error. */
int meet_open_listeners(const char *address, uint16_t *port, int fds[MEET_LISTENERS_MAX], size_t *n,
                        char *error, size_t len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Channels over a stream socket: what channel.c and meet.c build theirs from. */
#ifndef PLUMB_CORE_GROUP_FD_CHANNEL_H
#define PLUMB_CORE_GROUP_FD_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/group/channel.h"
#include "core/group/secret.h"

/*
 * Frames of a channel as bytes: pure functions over a buffer.
 *
 *   length u32 | type u16 | 0 u16 | sequence u64 | payload | tag 16 bytes       big-endian
 *
 * The tag is HMAC-SHA256, cut to 16 bytes, over all that goes before it, with a key of its own for
 * each direction, so that a frame cannot be made up, changed or sent back; the sequence number
 * counts a direction's frames from 0, so that none can be repeated or left out. A link without a
 * key (between a process and its child) has a tag of zeros.
 */

#define FRAME_HEADER_BYTES 16u
#define FRAME_TAG_BYTES    16u
#define FRAME_BYTES_MAX    (FRAME_HEADER_BYTES + CHANNEL_FRAME_MAX + FRAME_TAG_BYTES)

/* One direction, at one end. */
struct frame_link {
    bool keyed;
    uint8_t key[SECRET_KEY_BYTES];
    uint64_t sequence; /* of the next frame */
};

struct frame {
    uint16_t type;
    const uint8_t *data; /* in the buffer that was parsed */
    size_t len;
};

/* Writes one frame to `to`, which holds FRAME_BYTES_MAX. Its size; -EMSGSIZE: more than
 * CHANNEL_FRAME_MAX. */
long frame_encode(struct frame_link *l, uint16_t type, const void *data, size_t len, uint8_t *to);

/* How many bytes the frame that begins with these n has: FRAME_HEADER_BYTES while there are fewer;
 * -EPROTO: none begins so. Never more than FRAME_BYTES_MAX. */
long frame_size(const uint8_t *bytes, size_t n);

/* A whole frame of n bytes, as frame_size() says, is taken: 0, or -EPROTO: damaged, repeated, out
 * of turn or not from the other end; then the link is of no more use. */
int frame_take(struct frame_link *l, const uint8_t *bytes, size_t n, struct frame *f);

struct fd_channel {
    struct channel_base base;
    int fd;
    int in_err, out_err;      /* set when that direction is of no more use */
    pthread_mutex_t out_lock; /* of what is sent: by the one who uses it, and by beat() */
    bool beaten;              /* the peer has sent a sign of life */
    uint64_t heard_ns, looked_ns, silent_ns; /* silent_ns 0: it may be silent for good */
    struct frame_link in_link, out_link;
    uint8_t key[SECRET_KEY_BYTES]; /* of tokens */
    /* Is the peer there, by other means than the socket? 0, or -ECONNRESET with base.error. NULL:
     * there is no other means. `closed`: the socket has just ended, so that it is worth to wait for
     * the reason. */
    int (*look)(struct fd_channel *c, bool closed);
    pid_t child; /* channel.c's: 0 in the child, which has none */
    bool child_gone;
    int child_status; /* of waitpid(), or -1 */
    size_t n_in;
    uint8_t in[FRAME_BYTES_MAX], out[FRAME_BYTES_MAX];
};

/* Takes over a connected socket. `key`: of the session, from a handshake; it makes the frames'
 * keys, `server` says which end this is; NULL: frames are not signed. NULL: no memory, and the
 * socket is as it was. */
struct fd_channel *fd_channel_new(const struct channel_ops *ops, int fd, const uint8_t *key,
                                  bool server);

int fd_channel_send(struct channel *c, uint16_t type, const void *data, size_t len,
                    uint64_t wait_ns);
int fd_channel_recv(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                    uint64_t wait_ns);
int fd_channel_alive(struct channel *c);
void fd_channel_beat(struct channel *c);
void fd_channel_expect(struct channel *c, uint64_t silent_ns);
uint64_t fd_channel_quiet_ns(struct channel *c);
int fd_channel_address(struct channel *c, struct sockaddr_storage *own,
                       struct sockaddr_storage *peer);
int fd_channel_token(struct channel *c, const char *purpose, uint32_t number,
                     uint8_t token[CHANNEL_TOKEN_BYTES]);
void fd_channel_close(struct channel *c); /* tells the peer, frees; waits for nobody */

/* Over TCP: a peer that is cut off is found out within 10 s, small frames are not held back. 0 or
 * -errno. */
int fd_channel_tcp_options(int fd);

/* Poll for `events` until a time: 0 when something is there, -ETIMEDOUT; -EINTR when *cancel was
 * set (NULL: never). */
int fd_wait(int fd, short events, uint64_t until_ns, const volatile int *cancel);

/* Now and this much later, without going round. */
uint64_t fd_until(uint64_t wait_ns);

#define FD_BEAT     0xffffu /* type of a frame that says no more than that its sender is there */
#define FD_SLICE_MS 100     /* how often a wait looks at other things than the socket */

extern const struct channel_ops fd_channel_sock_ops;

#endif

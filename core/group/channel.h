/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel: ordered frames between this process and one other, for control, never for what is
 * measured. It is opened by a fork (the other is a child of this one) or by a socket (the other is on
 * another machine, or was started by somebody else).
 *
 * A frame is a type and up to CHANNEL_FRAME_MAX bytes. Over a socket each is encrypted, so that
 * nobody on the way can read one, make one up, change, repeat or leave out one.
 *
 * Every wait has a deadline: a peer that died, hangs or was cut off ends it with an error that
 * names it. Errors: 0 or -errno; channel_error() is a sentence for people. One thread uses a
 * channel at a time; signs of life may come from another.
 */
#ifndef PLUMB_CORE_GROUP_CHANNEL_H
#define PLUMB_CORE_GROUP_CHANNEL_H

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/group/secret.h"

#define CHANNEL_FRAME_MAX   65536u
#define CHANNEL_WAIT_NS     10000000000u /* what a peer is given before it counts as hanging */
#define CHANNEL_TOKEN_BYTES SECRET_TOKEN_BYTES
#define CHANNEL_ERROR_BYTES 384

/* Writes a sentence and returns err. */
int group_fail(int err, char *error, size_t len, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

struct channel;

/* Ends it; a forked child is waited for (and killed where it does not end by itself). NULL is left
 * alone. */
void channel_close(struct channel *c);
/* Is the peer still there, as far as can be told without a frame? 0; -ECONNRESET: it has ended;
 * -EHOSTUNREACH: it is silent. Cheap. */
int channel_alive(struct channel *c);
/* A sign of life, which the other end's recv() takes and does not hand on. One thread may send
 * these while another uses the channel. Left out where the peer takes nothing. */
void channel_beat(struct channel *c);
/* From now on a peer that has sent a sign of life, and then nothing for so long, is gone:
 * -EHOSTUNREACH from alive() and recv(). Time in which neither was called does not count. */
void channel_expect(struct channel *c, uint64_t silent_ns);
/* For how long nothing has come, of time in which it was looked at, and nothing waits to be
 * read. */
uint64_t channel_quiet_ns(struct channel *c);
/* This end's and the peer's address as the other one reaches it, port 0 (a local channel says
 * 127.0.0.1). 0 or -errno. */
int channel_address(struct channel *c, struct sockaddr_storage *own, struct sockaddr_storage *peer);
/* What proves to the other end that a further connection belongs to this channel: the same
 * bytes at both ends, others for each purpose and number; secret. */
void channel_token(struct channel *c, const char *purpose, uint32_t number,
                   uint8_t token[CHANNEL_TOKEN_BYTES]);

/* Forks a child that runs fn(channel to this process, arg) and exits with what it returns. The
 * child dies with its parent, however that comes about. 0 or -errno. */
typedef int channel_child_fn(struct channel *c, void *arg);
int channel_fork(struct channel **c, channel_child_fn *fn, void *arg);
pid_t channel_child(const struct channel *c); /* whom channel_fork() made here; 0: nobody */

/* Ends many children in the time of one: all are told first, and those that have not ended by
 * themselves after it are killed. Channels that have no child here, and NULL, are left alone; all are still
 * to be closed. */
void channel_end_children(struct channel *const *c, size_t n);
/* In a child: lets go of a channel that its parent has to another child, and that stays as it is.
 * NULL is left alone. */
void channel_forget(struct channel *c);

/* Signs of life over channels: a thread sends one over each, twice a second, whatever the process
 * is at. So the other end knows within seconds who was stopped, hangs whole or was cut off, and
 * need not wait for an answer that takes long. */

/* Whoever is lost, stopped, hangs or is late is named within so long, by whoever is left: what each
 * waits for adds up to less. */
#define BEAT_NAMED_NS 10000000000u

/* Without a sign of life for so long: of a peer that is led, and of the one who leads, whose word
 * goes first. TCP sends again what was lost after 0.2, 0.6, 1.4, 3.0 and 6.2 s: the one who leads
 * is given the last of these. */
#define BEAT_LED_NS     5000000000u
#define BEAT_LEADING_NS 6500000000u

struct beat;

/* Over these, until beat_end(), which goes before they are closed; `silent_ns`: what is expected of
 * the others. NULL is left out; of none but these there is no beat. 0 or -errno. */
int beat_start(struct beat **b, struct channel *const *channels, unsigned n, uint64_t silent_ns);
void beat_end(struct beat *b); /* NULL is left alone */
/* From now on gone(arg, i) is called by that thread, at once and once for each, where the socket of
 * channels[i] has ended. gone NULL: not any more; b NULL: never. */
void beat_tell(struct beat *b, void (*gone)(void *arg, unsigned i), void *arg);
/* The longest time for which this process did nothing, while it should have given signs of life: it
 * was stopped, and what it says of others' silence proves nothing. b NULL: 0. */
uint64_t beat_stood_ns(const struct beat *b);

/* ---- Numbers in the order of the network: big-endian ---- */

static inline void bytes_put16(uint8_t *to, uint16_t value)
{
    value = htobe16(value);
    memcpy(to, &value, sizeof(value));
}

static inline void bytes_put32(uint8_t *to, uint32_t value)
{
    value = htobe32(value);
    memcpy(to, &value, sizeof(value));
}

static inline uint16_t bytes_get16(const uint8_t *from)
{
    uint16_t value;

    memcpy(&value, from, sizeof(value));
    return be16toh(value);
}

static inline uint32_t bytes_get32(const uint8_t *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof(value));
    return be32toh(value);
}

static inline uint64_t bytes_get64(const uint8_t *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof(value));
    return be64toh(value);
}

/*
 * Frames of a channel as bytes: pure functions over a buffer.
 *
 *   length u32 | type u16 | 0 u16 | payload       big-endian
 *
 * Where the link has keys the payload is sealed, with the header beside it (secret.h): who is on
 * the way sees lengths and types, and a frame opens once, in its turn, at the other end. Between a
 * process and its child there are no keys.
 */

#define FRAME_HEADER_BYTES 8u
#define FRAME_BYTES_MAX    (FRAME_HEADER_BYTES + CHANNEL_FRAME_MAX + SECRET_SEAL_BYTES)

/* What a handshake leaves to both ends. */
struct channel_link {
    struct secret_stream in, out;
    uint8_t token[SECRET_KEY_BYTES]; /* the key of tokens */
};

struct frame {
    uint16_t type;
    const uint8_t *data; /* in the buffer that was parsed, or in `plain` */
    size_t len;
};

/* Writes one frame to `to`, which holds FRAME_BYTES_MAX; `out` NULL: not sealed. Its size;
 * -EMSGSIZE: more than CHANNEL_FRAME_MAX. */
long frame_encode(struct secret_stream *out, uint16_t type, const void *data, size_t len,
                  uint8_t *to);

/* How many bytes the frame that begins with these n has: FRAME_HEADER_BYTES while there are fewer;
 * -EPROTO: none begins so. Never more than FRAME_BYTES_MAX. */
long frame_size(bool sealed, const uint8_t *bytes, size_t n);

/* A whole frame of n bytes, as frame_size() says, is taken; `plain` holds CHANNEL_FRAME_MAX. 0, or
 * -EPROTO: damaged, repeated, out of turn or not from the other end; then the link is of no more
 * use. */
int frame_take(struct secret_stream *in, const uint8_t *bytes, size_t n, uint8_t *plain,
               struct frame *f);

/* What the kernel counts of a TCP connection, while both ends give signs of life. */
struct link_counts {
    uint32_t unheard_ms; /* since the last new data of the peer */
    uint32_t segments;   /* that have come, sent again or not */
    bool owed;           /* what this end sent was sent again, and is not acknowledged yet */
    bool late;           /* they were not looked at for a while: this process stood still */
    bool acked;          /* an acknowledgement has come since the last sign of life but one */
};

/* What that says of the way to a peer that is silent. */
enum link_sign {
    LINK_UNKNOWN,
    LINK_ACKNOWLEDGES, /* its machine does: so it is its process that is silent */
    LINK_ONE_WAY,      /* what it sends comes, and what this end sends does not reach it */
    LINK_DEAD          /* nothing comes: whose end is to blame cannot be known here */
};

/* `segments`: how many had come when the peer fell silent, which this keeps. */
enum link_sign link_sign(const struct link_counts *now, uint32_t *segments);
/* For how long the peer has been silent, of the time in which this process looked: the last look was
 * so long ago. *away_ms: of its silence the rest, which this keeps. */
uint32_t link_silent_ms(const struct link_counts *now, uint32_t gap_ms, uint32_t *away_ms);

/* Those of every channel; a test has others. */
struct channel_ops {
    /* 0; -ETIMEDOUT: the peer did not take it in time; -ECONNRESET: it is gone; -EHOSTUNREACH: cut
     * off, or silent. */
    int (*send)(struct channel *c, uint16_t type, const void *data, size_t len, uint64_t wait_ns);
    /* 0 with *type and *len; -ETIMEDOUT; -ECONNRESET; -EHOSTUNREACH; -EMSGSIZE: longer than `size`;
     * -EPROTO: damaged or not from the peer. wait_ns 0: only what is there already (-EAGAIN:
     * nothing). */
    int (*recv)(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                uint64_t wait_ns);
    /* From any thread: the kernel has had nothing of the peer for so long, with the sentence on it.
     * False also where that cannot be known. */
    bool (*unheard)(struct channel *c, uint64_t for_ns, char *text, size_t len);
};

struct channel {
    const struct channel_ops *ops;
    /* for messages: "node1 (10.77.0.2 port 18515)", "the other process (pid 123)" */
    char peer[160];
    char own[96];                    /* this end, in messages that name both */
    char error[CHANNEL_ERROR_BYTES]; /* of the call that failed last */
    int fd;
    int in_err, out_err;      /* set when that direction is of no more use */
    pthread_mutex_t out_lock; /* of what is sent: by the one who uses it, and by beat() */
    bool beaten;              /* the peer has sent a sign of life */
    uint64_t heard_ns, looked_ns, silent_ns; /* silent_ns 0: it may be silent for good */
    uint32_t segments, away_ms;              /* beat()'s, for link_sign(), link_silent_ms() */
    uint64_t counted_ns;
    enum link_sign sign; /* atomic, as the next */
    uint64_t unheard_ns;
    bool sealed; /* frames are, by `link` */
    struct channel_link link;
    /* Is the peer there, by other means than the socket? 0, or -ECONNRESET with error. NULL:
     * there is no other means. `closed`: the socket has just ended, so that it is worth to wait for
     * the reason. */
    int (*look)(struct channel *c, bool closed);
    void (*end)(struct channel *c); /* before it is freed, when it is closed; NULL: nothing */
    pid_t child;                    /* channel.c's: 0 in the child, which has none */
    bool child_gone;
    int child_status; /* of waitpid(), or -1 */
    size_t n_in;
    uint8_t in[FRAME_BYTES_MAX], out[FRAME_BYTES_MAX], plain[CHANNEL_FRAME_MAX];
};

/* Takes over a connected socket. `link`: of a handshake; NULL: frames are not sealed. */
struct channel *channel_new(int fd, const struct channel_link *link);

static inline const char *channel_peer(const struct channel *c)
{
    return c->peer;
}

static inline const char *channel_error(const struct channel *c)
{
    return c->error;
}

static inline int channel_send(struct channel *c, uint16_t type, const void *data, size_t len)
{
    return c->ops->send(c, type, data, len, CHANNEL_WAIT_NS);
}

static inline int channel_recv(struct channel *c, uint16_t *type, void *data, size_t size,
                               size_t *len, uint64_t wait_ns)
{
    return c->ops->recv(c, type, data, size, len, wait_ns);
}

static inline bool channel_unheard(struct channel *c, uint64_t for_ns, char *text, size_t len)
{
    return c->ops->unheard(c, for_ns, text, len);
}

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

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One conversation: a process leads others over channels (channel.h). It asks one or all of them
 * something at the same time, does its own part, and takes their replies.
 *
 * - A request is a number and bytes, a reply an error with its sentence, or bytes. Either may be
 *   longer than a frame. Both ends have the same table of requests.
 * - Each request builds on those before: it is taken in some states alone, and leads to one.
 * - A peer gives signs of life over its channel all the time (beat_start()). While it is at work it
 *   answers echoes too, if it can look at its channel then, and says how long nothing has moved.
 * - A peer fails in one of four ways: it is gone (its process has ended), cut off (no signs of
 *   life), silent (it answers no echo: it hangs), or late. Who failed is named within BEAT_NAMED_NS.
 *
 * Errors: 0 or -errno. One thread of each end uses a conversation at a time.
 */
#ifndef PLUMB_CORE_GROUP_TALK_H
#define PLUMB_CORE_GROUP_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/group/channel.h"

#define TALK_ERROR_BYTES 384
#define TALK_ANY         UINT32_MAX /* bytes, as many as there are: the one who takes them looks */
#define TALK_BYTES_MAX   (64u << 20)
#define TALK_STAYS       UINT8_MAX /* of a request that leads to no other state */

/* The type of a frame is the request, and these. */
#define TALK_REPLY 0x8000u
#define TALK_MORE  0x4000u /* the next frame goes on with it */

/* Of every conversation, at any time; a table's own begin at 1. */
enum talk_word {
    TALK_ECHO = 0x3f00, /* uint32_t; struct talk_echo */
    TALK_GIVE_UP,       /* what is being worked on; no reply of its own */
    TALK_ASIDE,         /* a question that a table's owner has, to a peer at work */
    TALK_BYE,           /* it is over; no reply */
};

/* A reply: this, then a sentence (err < 0) or what was asked for (err 0). */
struct talk_head {
    int32_t err;
    uint32_t reserved; /* so that what follows may hold numbers of 8 bytes */
};

struct talk_echo {
    uint32_t number;   /* of the echo that was asked for */
    uint32_t still_ms; /* nothing has moved at this end for so long */
};

struct talk_bytes {
    uint8_t *bytes;
    size_t len, room;
};

/* 0, or -EMSGSIZE: more than TALK_BYTES_MAX. */
int talk_add(struct talk_bytes *b, const void *data, size_t len);
void talk_free(struct talk_bytes *b); /* leaves none */

/* Does a peer look at its channel (talk_look()) while it is at a request? */
enum talk_looks { TALK_NEVER, TALK_SOMETIMES, TALK_ALWAYS };

struct talk_server;

struct talk_request {
    uint32_t size, reply;   /* bytes of what is asked and answered */
    uint8_t from, to, then; /* taken in states from..to, which it leads to `then` */
    enum talk_looks looks;
    /* Of what is asked, s->in: 0: s->body holds the reply; -errno with s->error, or "". */
    int (*answer)(struct talk_server *s);
};

/* ---- The end that is led ---- */

struct talk_server {
    struct channel *channel;
    const struct talk_request *requests;
    unsigned n_requests;
    void *arg;
    /* Before a request is worked on: not 0 is the answer to it, as what has failed while nothing
     * was asked. NULL: nothing can. */
    int (*before)(struct talk_server *s, const struct talk_request *r);
    /* Writes s->error, where a request has failed. NULL: answer() does. */
    void (*failed)(struct talk_server *s);
    /* A question aside, while a request is worked on: answered by talk_send_aside(). NULL: not. */
    void (*aside)(struct talk_server *s, const void *data, size_t len);
    const uint64_t *moved_ns; /* when something last moved here; NULL: nobody asks */
    /* The leader is lost, or takes no answer: as talk_serve() will return. NULL: not called. */
    void (*lost)(struct talk_server *s, int err);

    struct beat *beat; /* NULL: talk_serve() has ended */
    unsigned state;
    bool given_up;     /* the leader has, of the request that is being worked on */
    uint64_t asked_ns; /* the leader has last asked something, or for an echo */
    void *body;        /* of the reply: as many zeros as the table says */
    char error[TALK_ERROR_BYTES];
    struct talk_bytes in, out;
    char frame[CHANNEL_FRAME_MAX];
};

/* Gives signs of life, and serves until the leader says goodbye: 0. -ETIMEDOUT: it took no answer;
 * -errno: the channel's, with channel_error(). */
int talk_serve(struct talk_server *s);
/* Writes s->error and returns err. */
#define talk_fail(s, err, ...) group_fail((err), (s)->error, sizeof((s)->error), __VA_ARGS__)
/* A body of as many bytes, where the table says TALK_ANY. NULL: more than TALK_BYTES_MAX. */
void *talk_body(struct talk_server *s, size_t len);
/* Looks at the channel while a request is worked on. 0; -ECANCELED: the leader has given up;
 * -ECONNRESET, -EPROTO; each with s->error. */
int talk_look(struct talk_server *s);
int talk_send_aside(struct channel *c, bool reply, const void *data, size_t len);
/* Answers nothing, not even echoes, until the leader gives up: as talk_look(). A fault of tests. */
int talk_be_absent(struct talk_server *s);

/* ---- The end that leads ---- */

struct talk_peer {
    struct channel *channel; /* NULL: there is none, as for this process itself */
    uint16_t pending;        /* the request whose reply has not come; 0 */
    bool gone;               /* nothing can be asked of it any more */
    bool cut;                /* for its silence: its process may be there */
    bool silent;             /* it answered nothing, the last time that all were asked */
    bool sure;               /* of that: it had been silent for long when all were asked */
    uint32_t echoed;         /* number of the last echo that it answered */
    uint64_t heard_ns;
    uint64_t still_ns; /* nothing had moved in it for so long, as it said then */
    int err;           /* of its last reply, or of its loss */
    char error[TALK_ERROR_BYTES];
    struct talk_bytes reply; /* head and body */
};

struct talk {
    struct talk_peer *peers; /* n of them, by number */
    unsigned n;
    const struct talk_request *requests;
    unsigned n_requests;
    struct beat *beat; /* NULL: there is no peer */
    /* What a peer has answered aside. NULL: nobody asks. */
    void (*aside)(void *arg, unsigned peer, const void *data, size_t len);
    void *arg;
    bool broken;                       /* a peer is lost for good */
    char loss[TALK_ERROR_BYTES];       /* the first of them */
    char said[TALK_ERROR_BYTES + 160]; /* by talk_take() */
    uint32_t echo;                     /* the last one's number */
    uint64_t echoed_ns, listened_ns, watched_ns;
    uint64_t posted_ns; /* when the last request was sent */
    char frame[CHANNEL_FRAME_MAX];
};

/* The channels are the caller's. 0 or -errno. */
int talk_open(struct talk *t, struct channel *const *channels, unsigned n,
              const struct talk_request *requests, unsigned n_requests);
void talk_close(struct talk *t); /* says goodbye to those that are there */

static inline const void *talk_reply(const struct talk *t, unsigned peer)
{
    return t->peers[peer].reply.bytes + sizeof(struct talk_head);
}

static inline size_t talk_reply_len(const struct talk *t, unsigned peer)
{
    return t->peers[peer].reply.len - sizeof(struct talk_head);
}

/* Sends a request, whose reply is awaited from then on. A peer that does not take it is lost. */
int talk_post(struct talk *t, unsigned peer, uint16_t request, const void *data, size_t len);
/* Takes what has come from peers whose reply is awaited; waits so long for something. Returns
 * whether one has failed since it was asked. */
bool talk_receive(struct talk *t, uint64_t wait_ns);
/* To be called while replies are awaited: asks for echoes from time to time. True: a peer that
 * always looks at its channel has not answered for TALK_STILL_NS. */
bool talk_listen(struct talk *t);
/* Takes the signs of life of peers of which nothing is awaited, twice a second. The first that is
 * lost by now; 0: none. */
unsigned talk_watch(struct talk *t);
/* How long nothing has moved in any peer whose reply is awaited; UINT64_MAX: there is none. */
uint64_t talk_still_ns(const struct talk *t);

/* Where nothing moves for so long in any, or a peer that looks answers no echo, one is to blame. */
#define TALK_STILL_NS 6500000000u

struct talk_patience {
    uint64_t quiet_ns; /* without a word from a peer, at this request */
    uint64_t still_ns; /* in which nothing moves in any, of peers that always look; 0: for ever */
    bool (*heed)(void *arg); /* has one failed, as is known by other means? NULL: no */
    void *arg;
};
/* Waits for all replies that are awaited. False: one has failed, or has used up its patience. */
bool talk_settle(struct talk *t, const struct talk_patience *p);

/* The reply of one peer, which is lost where it does not come within p's patience: `*len` bytes, of
 * at most `size`; len NULL: exactly as many. 0, or -errno with t->said, which names the peer. */
int talk_take(struct talk *t, unsigned peer, const struct talk_patience *p, void *data, size_t size,
              size_t *len);
/* Asks one peer and takes its reply, of exactly `size` bytes: as talk_take(). */
int talk_call(struct talk *t, unsigned peer, uint16_t request, const void *data, size_t len,
              void *reply, size_t size, uint64_t wait_ns);

/* One has failed: all whose reply is awaited give up what they are at. Who answers nothing any more
 * is `silent`; who does not give up, too, is lost. `deaf_ns`: what they are at may take so long,
 * from when it was asked, in which they do not look. Who answered until shortly before may only stand
 * still for a moment: it has all the time, is not `sure` to be the one, and is lost after those that
 * are. */
void talk_give_up(struct talk *t, uint64_t deaf_ns);
/* Waits for replies alone, as long: who has not answered then is `silent`, and lost. */
void talk_hurry(struct talk *t, uint64_t wait_ns);

void talk_lose(struct talk *t, unsigned peer, int err, const char *text);
/* Something is lost for good: why, unless an earlier loss has been told. */
void talk_break(struct talk *t, const char *text);

/* How much an error tells: one that says more goes before one that follows from it. 0: nothing. */
int talk_weight(int err);

#endif

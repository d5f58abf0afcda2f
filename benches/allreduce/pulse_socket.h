/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of heartbeats, and what pulse.c (the thread, and who is lost) knows of them. */
#ifndef PLUMB_BENCHES_ALLREDUCE_PULSE_SOCKET_H
#define PLUMB_BENCHES_ALLREDUCE_PULSE_SOCKET_H

#include <poll.h>
#include <pthread.h>

#include "benches/allreduce/pulse.h"
#include "core/group/handshake.h"

#define PULSE_NEW_MAX    16 /* connections that have not said who they are */
#define PULSE_TRIALS_MAX 64 /* other hosts that a rank tries to reach */

/* From rank 0, with a rank: try to reach that one, at this port. Back: of the rank that was tried,
 * what came of it (enum pulse_way). */
struct pulse_beat {
    uint64_t come; /* to this request */
    uint32_t rank; /* 0: nothing more is said */
    uint32_t port;
};

enum pulse_way {
    PULSE_ASKED = 1, /* no answer yet */
    PULSE_PASSES,
    PULSE_CLOSED,  /* no connection can be made */
    PULSE_UNKNOWN, /* it could not be tried */
};

struct pulse_hello {
    uint32_t rank;
    uint32_t port; /* where it can be reached by the others; 0: nowhere */
    uint8_t token[CHANNEL_TOKEN_BYTES];
};

struct pulse_peer {
    int fd; /* -1: none */
    bool heard, gone;
    uint32_t port; /* from its hello */
    uint64_t heard_ns;
    struct pulse_beat last;
    size_t have; /* bytes of the next one */
    char in[sizeof(struct pulse_beat)];
};

struct pulse {
    struct world *world;
    bool leads, started;
    bool over; /* atomic */
    pthread_t thread;
    pthread_mutex_t lock;
    int listeners[MEET_LISTENERS_MAX];
    size_t n_listeners;
    bool quiet; /* who is gone is not said any more: it has been, or they are let go */
    bool at;    /* the last request, still, since then */
    uint64_t come, since_ns, beat_ns, turn_ns;
    uint64_t stood_ns;        /* how long this process itself did nothing, the longest */
    struct pulse_peer *peers; /* rank 0: of every rank; others: rank 0 */
    struct pollfd *fds;
    unsigned n;
    struct {
        int fd;
        size_t have;
        struct pulse_hello hello;
    } fresh[PULSE_NEW_MAX];
    unsigned n_fresh;
    struct pulse_trial { /* not rank 0: on their way */
        int fd;
        uint32_t rank;
        uint64_t until_ns;
    } trials[PULSE_TRIALS_MAX];
    unsigned n_trials;
    struct pulse_pair { /* rank 0: a is asked to reach b */
        unsigned a, b;
        enum pulse_way way;
    } * pairs; /* NULL: nobody was asked */
    size_t n_pairs;
    uint64_t asked_ns;
};

int pulse_start(struct pulse *p);

/* Those that connect, and those of them that have said who they are; not rank 0: they only try
 * whether they can. */
void pulse_welcome(struct pulse *p);
void pulse_hear(struct pulse *p, unsigned number, uint64_t now_ns);
/* It is short, and what does not go out at once is not said: the next one will be. */
void pulse_say(struct pulse_peer *peer, const struct pulse_beat *b);
/* A TCP connection that is being made to there. The socket or -errno. */
int pulse_reach(const struct sockaddr_storage *to);
/* So that it is at this port of the address, which is of a machine that `own` reaches it from. 0 or
 * -EAFNOSUPPORT. */
int pulse_aim(struct sockaddr_storage *to, const struct sockaddr_storage *own, uint16_t port);

/* pulse.c. What a beat says of ways between ranks. */
void pulse_note(struct pulse *p, unsigned number, const struct pulse_beat *b, uint64_t now_ns);

#endif

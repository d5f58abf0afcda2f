/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of life beside the channels, for worlds whose channels are a library's: while a rank waits
 * inside of that, nobody can ask it anything. A thread in each rank keeps a TCP connection to rank
 * 0's and says twice a second that it is there, and which request it has come to; rank 0's answers
 * alike.
 *
 * So it is known who was killed (the connection ends), who hangs or was cut off (nothing comes any
 * more) and who has not come (to the request that rank 0 is at). A rank of which nothing was ever
 * heard is not judged: perhaps a firewall is between them. Where all are there and yet nothing
 * moves, they try to reach each other: so it is known between which hosts the network is dead.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_HEARTBEAT_H
#define PLUMB_BENCHES_ALLREDUCE_HEARTBEAT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

#include "core/group/meet.h"
#include "core/group/notice.h"
#include "core/group/world.h"

#define HEARTBEAT_EVERY_NS  500000000u
#define HEARTBEAT_SILENT_NS 5000000000u /* of a rank that was heard before */
#define HEARTBEAT_LEADER_NS 7000000000u /* of rank 0: it is to judge first */
#define HEARTBEAT_ABSENT_NS                                                                        \
    7500000000u /* rank 0 is at a request that the other one has not come to */

struct heartbeat;

/* Rank 0: listens; *port is for the others. By loopback where all share this one's network. IPv4
 * and IPv6. 0 or -errno. */
int heartbeat_lead(struct heartbeat **p, struct world *w, uint16_t *port);
/* The others: connects, for at most three seconds. 0 or -errno: then there is none. */
int heartbeat_follow(struct heartbeat **p, struct world *w, uint16_t port);
void heartbeat_close(struct heartbeat *p); /* NULL is left alone */
/* Rank 0, before it lets the others go: until then who is gone, the first, is said on stderr at
 * once. NULL is left alone. */
void heartbeat_part(struct heartbeat *p);

/* From here on this rank is at this request, which is numbered alike in all ranks, upwards; 0: it
 * is done. NULL is left alone. */
void heartbeat_at(struct heartbeat *p, uint64_t request);
/* Rank 0: has this one been heard? */
bool heartbeat_hears(struct heartbeat *p, unsigned rank);
/* The first of these ranks that is lost, with the sentence that names it: -ECONNRESET: it is gone;
 * -ETIMEDOUT: it is silent, or has not come; 0: none is. The caller is not among them. NULL:
 * none. */
int heartbeat_lost(struct heartbeat *p, const unsigned *ranks, unsigned n, unsigned *rank,
                   char *text, size_t len);
/* The fact that goes with heartbeat_lost(), for the launcher. */
struct notice heartbeat_notice(const struct heartbeat *p, unsigned rank, int err);
/* Did this process stop for longer than a rank may be silent? Then what it says of others proves
 * nothing. */
bool heartbeat_stood_still(struct heartbeat *p);
/* Rank 0: the first of all that is gone. A launcher of MPI ends all ranks then, whether they need
 * it or not. */
int heartbeat_gone(struct heartbeat *p, unsigned *rank, char *text, size_t len);
/* Rank 0, where these, the caller not among them, are alive and yet nothing moves: can TCP
 * connections be made between their hosts? Each call looks; true: it is known, and text is a
 * clause, or "": nothing could be tried. NULL: true. */
bool heartbeat_between(struct heartbeat *p, const unsigned *ranks, unsigned n, char *text,
                       size_t len);

/* The connections of heartbeats, and what heartbeat.c (the thread, and who is lost) knows of
 * them. */

#define HEARTBEAT_NEW_MAX    16 /* connections that have not said who they are */
#define HEARTBEAT_TRIALS_MAX 64 /* other hosts that a rank tries to reach */

/* From rank 0, with a rank: try to reach that one, at this port. Back: of the rank that was tried,
 * what came of it (enum heartbeat_way). */
struct heartbeat_message {
    uint64_t come; /* to this request */
    uint32_t rank; /* 0: nothing more is said */
    uint32_t port;
};

enum heartbeat_way {
    HEARTBEAT_ASKED = 1, /* no answer yet */
    HEARTBEAT_PASSES,
    HEARTBEAT_CLOSED,  /* no connection can be made */
    HEARTBEAT_UNKNOWN, /* it could not be tried */
};

struct heartbeat_hello {
    uint32_t rank;
    uint32_t port; /* where it can be reached by the others; 0: nowhere */
    uint8_t token[CHANNEL_TOKEN_BYTES];
};

struct heartbeat_peer {
    int fd; /* -1: none */
    bool heard, gone;
    uint32_t port; /* from its hello */
    uint64_t heard_ns;
    struct heartbeat_message last;
    size_t have; /* bytes of the next one */
    char in[sizeof(struct heartbeat_message)];
};

struct heartbeat {
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
    uint64_t stood_ns;            /* how long this process itself did nothing, the longest */
    struct heartbeat_peer *peers; /* rank 0: of every rank; others: rank 0 */
    struct pollfd *fds;
    unsigned n;
    struct {
        int fd;
        size_t have;
        struct heartbeat_hello hello;
    } fresh[HEARTBEAT_NEW_MAX];
    unsigned n_fresh;
    struct heartbeat_trial { /* not rank 0: on their way */
        int fd;
        uint32_t rank;
        uint64_t until_ns;
    } trials[HEARTBEAT_TRIALS_MAX];
    unsigned n_trials;
    struct heartbeat_pair { /* rank 0: a is asked to reach b */
        unsigned a, b;
        enum heartbeat_way way;
    } * pairs; /* NULL: nobody was asked */
    size_t n_pairs;
    uint64_t asked_ns;
};

int heartbeat_start(struct heartbeat *p);

/* Those that connect, and those of them that have said who they are; not rank 0: they only try
 * whether they can. */
void heartbeat_welcome(struct heartbeat *p);
void heartbeat_hear(struct heartbeat *p, unsigned number, uint64_t now_ns);
/* It is short, and what does not go out at once is not said: the next one will be. */
void heartbeat_say(struct heartbeat_peer *peer, const struct heartbeat_message *b);
/* A TCP connection that is being made to there. The socket or -errno. */
int heartbeat_reach(const struct sockaddr_storage *to);
/* So that it is at this port of the address, which is of a machine that `own` reaches it from. 0 or
 * -EAFNOSUPPORT. */
int heartbeat_aim(struct sockaddr_storage *to, const struct sockaddr_storage *own, uint16_t port);

/* heartbeat.c. What a beat says of ways between ranks. */
void heartbeat_note(struct heartbeat *p, unsigned number, const struct heartbeat_message *b,
                    uint64_t now_ns);

#endif

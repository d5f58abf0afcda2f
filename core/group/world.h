/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world: processes numbered from 0, on one machine or on many, that act together. Rank 0 leads:
 * it has a channel (channel.h) to each of the others, for control, and they have one to it. What is
 * measured goes another way: core/wire/wire.h.
 *
 *   world_fork    children of this process, on this machine
 *   world_gather  rank 0 listens until all have come; world_join: the others connect, each knowing
 *                 its number. Each proves that it knows the secret before anything else (meet.h)
 *   world_mpi     what mpirun or srun started together
 *
 * All of them know the whole world when these return. A rank that does not come, dies, hangs or is
 * cut off ends a wait with an error that names it: "rank 3 (node2)". Errors: 0 or -errno with
 * `error`, a sentence for people. One thread uses a world at a time.
 */
#ifndef PLUMB_CORE_GROUP_WORLD_H
#define PLUMB_CORE_GROUP_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/group/channel.h"
#include "core/group/meet.h"

#define WORLD_RANKS_MAX 1024
#define WORLD_KEY_BYTES 32
#define WORLD_NAME_MAX  64

struct world_member {
    char host[WORLD_NAME_MAX];    /* as it calls itself */
    char name[WORLD_NAME_MAX];    /* as the launch calls that host, for messages; "": not told */
    char machine[WORLD_NAME_MAX]; /* of the running kernel: core/hw/machine.h; "": not known */
    uint64_t network;             /* of its network namespace and boot; 0: not known */
    struct sockaddr_storage
        address;    /* where other networks reach it for data, port 0; AF_UNSPEC: not known */
    int32_t pid;    /* in its own pid namespace */
    uint32_t node;  /* from 0, by first appearance: ranks of one machine, host name and network */
    uint32_t local; /* its number among those of its node */
    /* its number among those of its machine, whatever they call themselves: for CPUs */
    uint32_t machine_rank;
    uint32_t machine_ranks; /* how many those are */
};

struct world;

/* What a child or joined rank runs; returns its exit status. In a child the world is closed for
 * it. */
typedef int world_fn(struct world *w, void *arg);

/* size >= 1. Children run fn and exit; they die with this process, however that comes about. To be
 * called before there are threads. */
int world_fork(struct world **w, unsigned size, world_fn *fn, void *arg, char *error, size_t len);

struct world_meeting {
    const char *address; /* gather: where to listen, as meet_listen; join: rank 0's host */
    uint16_t port;       /* gather, 0: any, told by `ready` */
    unsigned rank, size;
    const struct meet_secret *secret;
    uint32_t protocol; /* the same in all ranks */
    uint64_t wait_ns;  /* for all to come; join: for a listener */
    const volatile int *cancel;
    void (*ready)(void *arg, const char *address, uint16_t port); /* gather: it listens; or NULL */
    void *arg;
};
/* -ETIMEDOUT names who has not come: "ranks 2 and 3 of 4 have not come in 60 s"; a number that
 * comes twice, is out of range, or means another size is turned away and told so at both ends; one
 * that came and left may come again. -EINTR: cancelled. Addresses are those that rank 0 is reached
 * by, and that it sees the others come from; who shares rank 0's network namespace has its address.
 * Says on stderr who was turned away (at most some lines a second). join, besides what
 * meet_connect() returns: -EEXIST, -ERANGE, -EINVAL: turned away; what rank 0 gave up with,
 * -ECANCELED where that was stopped. */
int world_gather(struct world **w, const struct world_meeting *m, char *error, size_t len);
int world_join(struct world **w, const struct world_meeting *m, char *error, size_t len);

/* All ranks that the launcher started: MPI tells them where rank 0 gathers them. */
int world_mpi(struct world **w, char *error, size_t len);

/* The two ends of a channel, which stays the caller's: who leads is rank 1, the other one rank 0,
 * where ranks of a world meet. Each is reached by the address that the channel has of it. Ends it
 * with world_free(). */
int world_pair(struct world **w, struct channel *c, bool leads, bool same_machine, char *error,
               size_t len);

void world_close(
    struct world *w); /* NULL is left alone; ends children; leaves MPI as it is: mpi_end() */

unsigned world_rank(const struct world *w);
unsigned world_size(const struct world *w);
const struct world_member *world_member(const struct world *w, unsigned rank);
unsigned world_nodes(const struct world *w);
const char *world_group(const struct world *w); /* local sock mpi */
/* The same secret bytes in all ranks, of this world alone: what a connection between two ranks
 * proves itself with. */
const uint8_t *world_key(const struct world *w);
/* Rank 0: to `rank`; others: rank must be 0. */
struct channel *world_channel(struct world *w, unsigned rank);
/* "rank 3 (node2)". Returns text. */
const char *world_name(const struct world *w, unsigned rank, char *text, size_t len);
/* "node2" */
const char *world_host(const struct world *w, unsigned rank);
/* Is somebody gone, as far as can be told without a message? 0, or -ECONNRESET with *rank and
 * error. Rank 0 looks at all, others at rank 0. Cheap enough for ten times a second. */
int world_alive(struct world *w, unsigned *rank, char *error, size_t len);

/* ---- The inside of a world: who writes to it is world.c, world_sock.c and mpi.c alone ---- */

struct world {
    unsigned rank, size, nodes;
    const char *group;
    uint8_t key[WORLD_KEY_BYTES];
    struct world_member *members; /* mapped, shared with forked children */
    struct channel *channels[];   /* by rank; NULL: this process itself, or none */
};

/* A world without channels, of which nobody is known; makes room for as many open files. 0;
 * -EINVAL: too many ranks, or rank is out of range; with error. */
int world_new(struct world **w, const char *group, unsigned rank, unsigned size, char *error,
              size_t len);
void world_free(struct world *w); /* not its channels; NULL is left alone */

/* The channel's messages name the rank, as its member calls itself. */
void world_adopt(struct world *w, unsigned rank, struct channel *c);

/* This process, with no address. */
void world_self(struct world_member *m);

/* Numbers nodes and the ranks of each machine, once all members are known. */
void world_number(struct world *w);

/* What ranks that are no children tell each other before the world stands. */
enum world_frame {
    WORLD_HELLO = 1, /* a rank to rank 0: its number, its size, itself */
    WORLD_ACCEPTED,  /* rank 0's answer: u64, how many ns it will wait for the others */
    WORLD_REFUSED,   /* or this, also later: u32 errno, a sentence */
    WORLD_HEAD,      /* rank 0 to all: size, nodes, the world's key */
    WORLD_MEMBERS,   /* the next ones, WORLD_CHUNK at most */
};
#define WORLD_CHUNK 64

struct world_hello {
    uint32_t rank, size;
    struct world_member member;
};

/* What another rank says of itself: texts end and can be shown, its address is one of IP. */
void world_member_clean(struct world_member *m);

int world_hello_recv(struct channel *c, struct world_hello *h, uint64_t wait_ns);

/* Rank 0: tells a rank all that it knows. 0 or -errno with error. */
int world_tell(struct world *w, unsigned rank, char *error, size_t len);
/* The other end, within wait_ns for the head. -EINTR: cancelled; what rank 0 says when it gives
 * up. */
int world_hear(struct world *w, struct channel *c, uint64_t wait_ns, const volatile int *cancel,
               char *error, size_t len);

/* A frame of this type and size. -EINTR, what rank 0 refuses with, or -errno, with error. */
int world_expect(struct channel *c, uint16_t type, void *data, size_t size, uint64_t wait_ns,
                 const volatile int *cancel, char *error, size_t len);
/* Rank 0 to one that it turns away, or all when it gives up. */
void world_refuse(struct channel *c, int err, const char *why);

/* ---- Where in the network this process is ---- */

/* For messages: what the launch of this process calls its host (NOTICE_HOST), else what that calls
 * itself. */
void host_known_as(char *text, size_t len);

/* The network namespace and the boot, mixed; 0 where one of them cannot be known. Two processes for
 * which it is the same reach each other by loopback. */
uint64_t host_network(void);

/* Those of interfaces that are up and not loopback, port 0: IPv4, then IPv6, of one link alone last. How
 * many, `most` at most; `all` is zeros before. */
unsigned host_addresses(struct sockaddr_storage *all, unsigned most);

#endif

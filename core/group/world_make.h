/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a world, for those that make one: world.c, world_sock.c, mpi.c. Others use
 * world.h. */
#ifndef PLUMB_CORE_GROUP_WORLD_MAKE_H
#define PLUMB_CORE_GROUP_WORLD_MAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/group/world.h"

struct world {
    unsigned rank, size, nodes;
    const char *group;
    uint8_t key[WORLD_KEY_BYTES];
    struct world_member *members; /* mapped, shared with forked children */
    struct channel *channels[];   /* by rank; NULL: this process itself, or none */
};

/* A world without channels, of which nobody is known; makes room for as many open files. 0;
 * -EINVAL: too many ranks, or rank is out of range; -ENOMEM; with error. */
int world_new(struct world **w, const char *group, unsigned rank, unsigned size, char *error,
              size_t len);
void world_free(struct world *w); /* not its channels; NULL is left alone */

/* The channel's messages name the rank, as its member calls itself. */
void world_adopt(struct world *w, unsigned rank, struct channel *c);

/* This process, with no address. */
void world_self(struct world_member *m);

/* Numbers nodes and seats, once all members are known. */
void world_number(struct world *w);

/* What ranks that are no children tell each other before the world stands. */
enum world_frame {
    WORLD_HELLO = 1, /* a rank to rank 0: its number, its size, itself */
    WORLD_ACCEPTED,  /* rank 0's answer: u64, how many ns it will wait for the others */
    WORLD_REFUSED,   /* or this, also later: u32 errno, a sentence */
    WORLD_HEAD,      /* rank 0 to all: size, nodes, 32 bytes of which all make the world's key */
    WORLD_MEMBERS,   /* the next ones, WORLD_CHUNK at most */
};
#define WORLD_CHUNK        64
#define WORLD_MEMBER_BYTES (2 * WORLD_NAME_MAX + 8 + 24 + 4 + 4 * 4)
#define WORLD_HELLO_BYTES  (8 + WORLD_MEMBER_BYTES)

struct world_hello {
    uint32_t rank, size;
    struct world_member member;
};

void world_member_put(uint8_t to[WORLD_MEMBER_BYTES], const struct world_member *m);
void world_member_get(const uint8_t from[WORLD_MEMBER_BYTES], struct world_member *m);

int world_hello_send(struct channel *c, const struct world_hello *h);
int world_hello_recv(struct channel *c, struct world_hello *h, uint64_t wait_ns);

/* Rank 0: tells a rank all that it knows. 0 or -errno with error. */
int world_tell(struct world *w, unsigned rank, const uint8_t mix[WORLD_KEY_BYTES], char *error,
               size_t len);
/* The other end, within wait_ns for the head. -EINTR: cancelled; what rank 0 says when it gives
 * up. */
int world_hear(struct world *w, struct channel *c, uint8_t mix[WORLD_KEY_BYTES], uint64_t wait_ns,
               const volatile int *cancel, char *error, size_t len);

/* A frame of this type and size. -EINTR, what rank 0 refuses with, or -errno, with error. */
int world_expect(struct channel *c, uint16_t type, void *data, size_t size, uint64_t wait_ns,
                 const volatile int *cancel, char *error, size_t len);
/* Rank 0 to one that it turns away, or all when it gives up. */
void world_refuse(struct channel *c, int err, const char *why);

/* Writes a sentence and returns err. */
int world_fail(int err, char *error, size_t len, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- Where in the network this process is ---- */

/* The network namespace and the boot, mixed; 0 where one of them cannot be known. Two processes for
 * which it is the same reach each other by loopback. */
uint64_t host_network(void);

/* Port 0, of the first interface that is up and not loopback: IPv4, else IPv6, a link's own address
 * last; AF_UNSPEC: there is none. */
void host_first_address(struct sockaddr_storage *address);

/* ---- A world over sockets, inside: see world.h ---- */

/* "ranks 1, 4-6 and 9 of 12" */
void gather_missing(const struct world *w, char *text, size_t len);

#endif

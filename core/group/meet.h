/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two ends of a benchmark meet when neither is a child of the other.
 *
 * Over a socket: one listens, the other connects. Before anything else each proves that it knows
 * the session's secret, without telling it: both send 32 random bytes and their version, then each
 * an HMAC-SHA256 over all of that, its role and the program's parameters' layout, compared in
 * constant time. Without the proof nothing is allocated, registered or exposed for the peer: a
 * listener has a fixed number of places for connections that are still to prove themselves, each
 * with a short deadline; the oldest makes way.
 *
 * Under mpirun or srun: ranks 0 and 1 of MPI's world (see mpi.h).
 */
#ifndef PLUMB_CORE_GROUP_MEET_H
#define PLUMB_CORE_GROUP_MEET_H

#include <stddef.h>
#include <stdint.h>

#include "core/group/channel.h"

#define MEET_PORT         18515 /* as perftest's */
#define MEET_SECRET_BYTES 32
#define MEET_ERROR_BYTES  384

struct meet_secret {
    uint8_t bytes[MEET_SECRET_BYTES];
};

/* The first line of a file, "-": stdin; at least 16 characters, hashed to the key. A file that
 * others may read is refused. 0 or -errno with error. */
int meet_secret_load(const char *path, struct meet_secret *secret, char *error, size_t len);
/* The same; path NULL or "": of the file that $PLUMB_SECRET_FILE names. -EINVAL where that is
 * unset, too, with how to make one. */
int meet_secret_need(const char *path, struct meet_secret *secret, char *error, size_t len);
/* Writes 64 random hexadecimal digits and a newline; text needs 66 bytes. 0 or -errno. */
int meet_secret_make(char *text, size_t len);
/* Is there a library to prove a secret with? 0, or -EOPNOTSUPP with the remedy. */
int meet_supported(char *error, size_t len);

struct meet_listen {
    const char *address; /* NULL: loopback; "0.0.0.0", "::" or a name of this machine */
    uint16_t port;       /* 0: any, told by `ready` */
    const struct meet_secret *secret;
    uint32_t protocol; /* of the caller: both ends must have the same, see net_protocol() */
    uint64_t runs;     /* ends after so many; 0: serves until cancelled */
    uint64_t idle_ns;  /* ends when nobody came for so long; 0: never */
    const volatile int *cancel;
    /* Called when it listens: what to tell people. */
    void (*ready)(void *arg, const char *address, uint16_t port);
    void *arg;
};

/* Serves: each peer that proved itself gets a child of its own that runs fn(channel, arg); one at a
 * time, further ones are told that this end is busy, and with whom. Strangers cost nothing but a
 * place. Says on stderr who came, and why somebody was turned away (at most some lines a second). 0
 * when its runs are done, -EINTR when cancelled, -EHOSTUNREACH: the only run's peer fell silent (fn
 * returned that), -ETIMEDOUT when idle, or -errno with error (-EADDRINUSE: the port is taken). */
int meet_serve(const struct meet_listen *l, channel_child_fn *fn, void *arg, char *error,
               size_t len);

struct meet_connect {
    const char *host;
    uint16_t port;
    const struct meet_secret *secret;
    uint32_t protocol;
    uint64_t wait_ns; /* tries again for so long while nobody listens or the listener is busy */
    const volatile int *cancel;
};

/* 0 and the channel; -ECONNREFUSED: nobody listens; -EACCES: another secret; -EPROTO: no plumbline,
 * or another version (the error says which); -EBUSY; -ETIMEDOUT; each with error. */
int meet_connect(const struct meet_connect *m, struct channel **c, char *error, size_t len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two ends of a benchmark meet when neither is a child of the other.
 *
 * Over a socket: one listens, the other connects. Before anything else each proves that it knows
 * the session's secret, without telling it, and both have the keys of what they say from then on.
 * Without the proof nothing is allocated, registered or exposed for the peer: a listener has a
 * fixed number of places for connections that are still to prove themselves, each with a short
 * deadline; the oldest makes way.
 *
 * Under mpirun or srun: ranks 0 and 1 of MPI's world (see mpi.h).
 */
#ifndef PLUMB_CORE_GROUP_MEET_H
#define PLUMB_CORE_GROUP_MEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "core/group/channel.h"
#include "core/group/secret.h"

#define MEET_PORT         18515 /* as perftest's */
#define MEET_SECRET_BYTES 32
#define MEET_ERROR_BYTES  384

struct meet_secret {
    uint8_t bytes[MEET_SECRET_BYTES];
    bool known; /* meet_secret_need() has loaded it */
};

/* The first line of a file, "-": stdin; at least 16 characters, hashed to the key. A file that
 * others may read is refused. 0 or -errno with error. */
int meet_secret_load(const char *path, struct meet_secret *secret, char *error, size_t len);
/* The same, once; path NULL or "": of the file that $PLUMB_SECRET_FILE names. -EINVAL where that is
 * unset, too, with how to make one. */
int meet_secret_need(const char *path, struct meet_secret *secret, char *error, size_t len);
/* Writes 64 random hexadecimal digits and a newline; text needs 66 bytes. 0 or -errno. */
int meet_secret_make(char *text, size_t len);

/* The number of a protocol, of all that decides the layout of what is sent as it is: its own number
 * and sizes (FNV-1a), and the order and width of the machine's bytes. */
uint32_t meet_protocol(const uint32_t *layout, size_t n);

struct meet_listen {
    const char *address; /* NULL: loopback; "0.0.0.0", "::" or a name of this machine */
    uint16_t port;       /* 0: any, told by `ready` */
    const struct meet_secret *secret;
    uint32_t protocol; /* of the caller: both ends must have the same: meet_protocol() */
    uint64_t runs;     /* ends after so many; 0: serves until cancelled */
    const volatile int *cancel;
    /* Called when it listens: what to tell people. */
    void (*ready)(void *arg, const char *address, uint16_t port);
    void *arg;
};

/* Serves: each peer that proved itself gets a child of its own that runs fn(channel, arg); one at a
 * time, further ones are told that this end is busy, and with whom. Strangers cost nothing but a
 * place. Says on stderr who came, and why somebody was turned away (at most some lines a second). 0
 * when its runs are done, -EINTR when cancelled, -EHOSTUNREACH: the only run's peer fell silent (fn
 * returned that), or -errno with error (-EADDRINUSE: the port is taken). */
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

/*
 * The handshake of two ends that meet over a socket, as a state machine over bytes: it owns no
 * socket, waits for nothing and allocates nothing.
 *
 *   client                                        server
 *   HELLO  role, version, protocol, key     ->
 *                                           <-    HELLO  the same
 *   PROOF  name                             ->
 *                                           <-    ANSWER welcome or busy, name; or refused
 *
 * The keys are drawn for this connection alone. Both ends work out the session's keys from them,
 * from the secret and from both HELLOs whole. The name of a PROOF or an ANSWER is sealed with them:
 * so who can open it knows that the other end knows the secret, and that nobody changed a byte. It
 * is the first frame of its direction of the channel. The server proves itself after the client
 * did: a stranger gets nothing sealed from it. Every message has a fixed size, which its header
 * must name.
 *
 * Each message begins with 8 bytes that stay as they are in all versions, and a server answers a
 * HELLO of another version, too, so that both ends can say which ones met.
 */

#define SHAKE_NAME_BYTES    64 /* with its end */
#define SHAKE_VERSION_BYTES 32
#define SHAKE_HELLO_BYTES   80
#define SHAKE_SEALED_BYTES  (SECRET_HEADER_BYTES + SHAKE_NAME_BYTES + SECRET_SEAL_BYTES)
#define SHAKE_PROOF_BYTES   (8 + SHAKE_SEALED_BYTES)
#define SHAKE_ANSWER_BYTES  (16 + SHAKE_SEALED_BYTES)
#define SHAKE_BYTES_MAX     SHAKE_ANSWER_BYTES /* of the longest message */

enum shake_state {
    SHAKE_HELLO,  /* waits for the other's HELLO */
    SHAKE_PROOF,  /* server: waits for the proof */
    SHAKE_PROVED, /* server: the client knows the secret: shake_answer() is due */
    SHAKE_ANSWER, /* client: waits for the answer */
    SHAKE_DONE,   /* both know: `link` holds */
    SHAKE_FAILED, /* `err` and `error` say why; what is in `out` is still to be sent */
};

struct shake {
    enum shake_state state;
    bool server;
    int err;                     /* -EPROTO, -EACCES, -EBUSY: as meet_connect() */
    char error[192];             /* of the other end: "is plumbline 0.2 ..." */
    char name[SHAKE_NAME_BYTES]; /* what the other end calls itself; when -EBUSY: whom it serves */
    struct channel_link link;    /* of the session */
    uint8_t out[SHAKE_ANSWER_BYTES]; /* to be sent now, n_out bytes; then shake_sent() */
    size_t n_out;

    char own_name[SHAKE_NAME_BYTES];
    uint8_t secret[SECRET_KEY_BYTES];
    struct secret_pair pair;
    struct secret_keys keys;
    uint8_t own[SHAKE_HELLO_BYTES], peer[SHAKE_HELLO_BYTES];
    uint8_t in[SHAKE_BYTES_MAX];
    size_t n_in;
};

struct shake_self {
    const struct meet_secret *secret;
    uint32_t protocol;
    const char *version;            /* PLUMB_VERSION */
    const char *name;               /* of this machine */
    uint8_t seed[SECRET_KEY_BYTES]; /* random, never used before */
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

/* ---- Sockets and names that both ends of a meeting need ---- */

#define MEET_ADDRESS_BYTES 80
#define MEET_LISTENERS_MAX 8

/* "10.77.0.2 port 18515" */
void meet_address_text(const struct sockaddr_storage *a, char *text, size_t len);

/* Who this end is, and a fresh seed. 0 or -errno. */
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

/* What is wrong with it, to be read behind the name; NULL: nothing. "0131" and "10.1" are refused:
 * the resolver reads them as the addresses 0.0.0.89 and 10.0.0.1, whatever hosts are called so. */
const char *meet_refuse_host(const char *name);
/* Opens up to MEET_LISTENERS_MAX sockets; *port is the one that was asked for, or found. 0 or
 * -errno with error. */
int meet_open_listeners(const char *address, uint16_t *port, int fds[MEET_LISTENERS_MAX], size_t *n,
                        char *error, size_t len);

/* ---- Where those wait that are still to prove themselves ---- */

#define DOOR_PLACES   64
#define DOOR_PROVE_NS 2000000000u /* to prove oneself */
#define DOOR_KEEP_NS  250000000u  /* nobody has to make way for others before that */
#define DOOR_SLICE_MS 100

/* One that connected. */
struct meet_place {
    bool taken;
    int fd;
    uint64_t since_ns;
    uint64_t proved_ns; /* 0: not yet */
    struct sockaddr_storage address;
    struct shake shake;
    struct channel *c; /* door_let_in(): owns fd */
};

/* Complaints about strangers on stderr: a few a second, the rest is counted. */
struct meet_log {
    uint64_t second_ns;
    unsigned said;
    uint64_t left_out;
};

struct meet_door {
    const struct meet_secret *secret;
    uint32_t protocol;
    int listeners[MEET_LISTENERS_MAX];
    size_t n_listeners;
    struct meet_log log;
    struct meet_place places[DOOR_PLACES];
};

/* As meet_open_listeners(). */
int door_open(struct meet_door *d, const char *address, uint16_t *port,
              const struct meet_secret *secret, uint32_t protocol, char *error, size_t len);
void door_close(struct meet_door *d);
/* Waits for a slice at most, takes in who connects, and hears what they prove. hear(arg, p): of one
 * that has proved itself, just now, or from which something has come since. 0 or -errno. */
int door_turn(struct meet_door *d, void (*hear)(void *arg, struct meet_place *p), void *arg);
/* The place is free afterwards, and the connection ended. */
void door_turn_away(struct meet_door *d, struct meet_place *p, const char *why);
/* The place is free afterwards; the connection is the caller's. */
void door_free(struct meet_place *p);
/* Welcomes one that has proved itself: p->c. 0 or -errno, and the socket may be closed: p->fd -1. */
int door_let_in(struct meet_place *p);
/* A line on stderr, or counted. */
void door_complain(struct meet_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- The inside of a server ---- */

#define SERVE_HOLD_NS   1000000000u /* one that has proved itself waits so long for the run before */
#define SERVE_ORPHAN_NS 15000000000u /* a session's child ends so long after its peer is gone */

/* The run that is on. */
struct serve_session {
    pid_t child; /* 0: none */
    int fd;      /* the child's connection, to see when its peer is gone */
    uint64_t gone_ns;
    char name[SHAKE_NAME_BYTES];
    char peer[SHAKE_NAME_BYTES + MEET_ADDRESS_BYTES + 4];
};

struct serve {
    const struct meet_listen *l;
    channel_child_fn *fn;
    void *arg;
    bool silent;   /* the peer of the last run fell silent: fn() returned -EHOSTUNREACH */
    char *said;    /* shared with the runs: the sentence on that */
    uint64_t runs; /* that have ended */
    struct serve_session session;
    struct meet_door door;
};

/* Has the run ended? Looks after one that hangs. */
void serve_watch(struct serve *s);

/* The exit status of a program whose meeting ended so: wrong usage where its command line or its files are to
 * blame. */
int meet_exit(int err);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a server: see meet.h. */
#ifndef PLUMB_CORE_GROUP_MEET_SERVE_H
#define PLUMB_CORE_GROUP_MEET_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/group/handshake.h"

#define SERVE_PLACES    64
#define SERVE_PLACE_NS  2000000000u  /* to prove oneself */
#define SERVE_HOLD_NS   1000000000u  /* one that has, waits so long for the run before to end */
#define SERVE_ORPHAN_NS 15000000000u /* a session's child ends so long after its peer is gone */
#define SERVE_SLICE_MS  100

/* One that is still to prove itself. */
struct serve_place {
    bool taken;
    int fd;
    uint64_t since_ns;
    uint64_t proved_ns; /* 0: not yet */
    struct sockaddr_storage address;
    struct shake shake;
};

/* The run that is on. */
struct serve_session {
    pid_t child; /* 0: none */
    int fd;      /* the child's connection, to see when its peer is gone */
    uint64_t gone_ns;
    char name[SHAKE_NAME_BYTES];
    char peer[SHAKE_NAME_BYTES + MEET_ADDRESS_BYTES + 4];
};

/* Complaints about strangers on stderr: a few a second, the rest is counted. */
struct serve_log {
    uint64_t second_ns;
    unsigned said;
    uint64_t left_out;
};

struct serve {
    const struct meet_listen *l;
    channel_child_fn *fn;
    void *arg;
    int listeners[MEET_LISTENERS_MAX];
    size_t n_listeners;
    bool silent;            /* the peer of the last run fell silent: fn() returned -EHOSTUNREACH */
    uint64_t runs, last_ns; /* runs that have ended; when somebody was here last */
    struct serve_log log;
    struct serve_session session;
    struct serve_place places[SERVE_PLACES];
};

/* Lines on stderr: of runs, always; about those that are turned away, some. */
void serve_complain(struct serve_log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void serve_tell_left_out(struct serve_log *log);

/* Has the run ended? Looks after one that hangs. */
void serve_watch(struct serve *s);

#endif

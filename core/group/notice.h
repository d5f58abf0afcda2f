/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts for the program that launched this process, as typed lines on standard error. Only there
 * they reach it from other hosts.
 *
 * A notice has a sentence for people. Where NOTICE_LAUNCHED is in the environment, these words
 * stand in front of it:
 *
 *   plumb-notice listening
 *   plumb-notice port-taken
 *   plumb-notice lost               rank 0 has lost a rank and goes on without it
 *   plumb-notice gone RANK HOST|    this rank lost RANK: its process has ended
 *   plumb-notice silent RANK HOST|  this rank lost RANK: it does not answer
 */
#ifndef PLUMB_CORE_GROUP_NOTICE_H
#define PLUMB_CORE_GROUP_NOTICE_H

#include <stdint.h>

#define NOTICE_LAUNCHED "PLUMB_LAUNCHED"
#define NOTICE_HOST     "PLUMB_HOST_NAME" /* what the launch calls this process' host */
#define NOTICE_HOST_MAX 64

enum notice_kind {
    NOTICE_NONE,
    NOTICE_LISTENING,
    NOTICE_PORT_TAKEN,
    NOTICE_LOST,
    NOTICE_GONE,
    NOTICE_SILENT
};

struct notice {
    enum notice_kind kind;
    unsigned rank;              /* of NOTICE_GONE and NOTICE_SILENT: who was lost, */
    char host[NOTICE_HOST_MAX]; /* and where that was */
};

/* Writes one line. `rank` and `host` count for NOTICE_GONE and NOTICE_SILENT alone. */
void notice_send(const struct notice *notice, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes "PROGRAM: TEXT", as NOTICE_PORT_TAKEN where `err` is -EADDRINUSE, else for people
 * alone. */
void notice_error(int err, const char *text);

/* "PROGRAM: listening on ADDRESS port PORT": as `ready` of who listens; arg is left alone. */
void notice_listening(void *arg, const char *address, uint16_t port);

/* Reads what stands in front of a line. Returns the sentence, which is the whole line where there
 * is no notice: then kind is NOTICE_NONE. */
const char *notice_read(const char *line, struct notice *notice);

/* "is gone: it was killed, or has ended", "does not answer: it hangs or was cut off"; "" of
 * others. */
const char *notice_words(enum notice_kind kind);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch on other hosts knows of itself, and its words for what goes wrong there; between talk.c,
 * host_launch.c and check_ask.c. */
#ifndef PLUMB_HARNESS_TALK_H
#define PLUMB_HARNESS_TALK_H

#include "harness/hosts/end.h"
#include "harness/hosts/launcher.h"
#include "harness/hosts/stream.h"

struct talk {
    const struct hosts_run *run;
    const char *program; /* on this machine */
    const char *where;   /* "'a' and 'b'": of a launcher that starts all at once */
    char token[HOSTS_TOKEN_SIZE], secret[80];
    char version[STREAM_TEXT_MAX]; /* this machine's, which the ends must have, too */
    char reason[768];
};

/* All that return an int: 0, or HOST_LAUNCH_FAILED with the reason set. */

/* Makes token and secret, and asks this machine's version. */
int talk_begin(struct talk *t);
void talk_end(struct talk *t); /* wipes the secret */

int talk_give_up(struct talk *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Why an end stopped before its time, as far as it says. */
int talk_stopped(struct talk *t, const struct end *e, const char *program);
/* Nothing came from it. */
int talk_mute(struct talk *t, const struct end *e);
/* That of a host, by name, against ours. */
int talk_check_version(struct talk *t, const char *name, const char *version);
/* Hands the rows and samples of an end on to our own standard output and CHILD_SAMPLES_FD. Returns the benchmark's exit
 * status, or HOST_LAUNCH_FAILED. */
int talk_take_parts(struct talk *t, const struct end *e, const char *program);

/* "cannot reach 'node2' by ssh: why; what to do", of an end that said nothing of its own. */
void talk_say_unreached(const struct hosts_run *run, const struct end *e, char *text, size_t len);
/* "'PATH' does not start on 'node2' (name): why; what to do" */
void talk_say_missing(const char *program, const char *host, const struct stream_hello *missing,
                      char *text, size_t len);
void talk_say_other_build(const char *host, const char *theirs, const char *ours, char *text,
                          size_t len);

#endif

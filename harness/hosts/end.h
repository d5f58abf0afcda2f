/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, many at once: here those that hold the connections to agents (agent.h), on a host those
 * that the agent there has started; the messages of both sides; and sentences on them. */
#ifndef PLUMB_HARNESS_END_H
#define PLUMB_HARNESS_END_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/group/notice.h"
#include "harness/child.h"
#include "harness/hosts/hosts.h"
#include "harness/text.h"

/* Which rank was lost first, as the ranks behind one end report it. The first report of rank 0
 * counts, since it leads and judges first; else the first of any other rank. A rank's report of
 * itself does not count. It stays after ends_stop(). */
struct end_cause {
    struct notice lost; /* kind NOTICE_NONE: nobody is named */
    unsigned speaker;
};

/* One process. Each line of its standard error is printed after `name`, and after the rank if the
 * line begins with "plumb-rank R ". */
struct end {
    const char *name;
    const char *mark; /* of an agent's: lines are passed on as they are, with this in front */
    bool silent;      /* its lines are kept, and not printed */
    bool talks;       /* its standard output has messages: end_answer(); else it is in p.texts */
    bool has_samples; /* it gets a pipe as CHILD_SAMPLES_FD */
    struct argv command;
    struct process p;
    json_t *answers;            /* messages that came and were not taken yet */
    size_t n_read;              /* bytes of its output in which no line ends */
    char *stray;                /* the first whole line of it that is no message; NULL */
    char first[512], last[512]; /* the first and the last line with a letter: "rank 3: what" */
    char loss[512];             /* NOTICE_LOST: its sentence; "": none came */
    struct end_cause cause;
    uint64_t said_ns;      /* of its last line other than NOTICE_LISTENING; 0: there is none */
    bool listening, taken; /* NOTICE_LISTENING and NOTICE_PORT_TAKEN came */
    uint64_t stopped_ns;   /* when it was seen to be stopped (SIGSTOP); 0: it is not */
};

/* Without a process. */
#define END_NONE .p = {PROCESS_NONE}

/* Starts its command. It dies with this process. 0 or -errno. */
int end_start(struct end *e);
void end_tell(struct end *e, const char *text); /* on its standard input */
void end_hang_up(struct end *e);                /* closes that: what runs on the host ends */

static inline bool end_is_over(const struct end *e)
{
    return process_is_over(&e->p);
}

/* Reads their output, until some came or `ms` have passed. 0 or -errno. */
int ends_attend(struct end *ends, unsigned n, int ms);

/* For so many at once: each has four or five files open. */
void ends_allow(unsigned n);

/* Until all have ended, or for so long. */
void ends_wait(struct end *ends, unsigned n, uint64_t for_ns);

/* Hangs up, waits, and kills those that still run. Only their causes stay. */
void ends_stop(struct end *ends, unsigned n, uint64_t grace_ns);

/* ---- Messages: one JSON object a line ---- */

/* The next one, which is the caller's; NULL: none has come yet. */
json_t *end_answer(struct end *e);
/* Writes one, which is taken over. 0 or -errno; NULL, of a text that is no UTF-8, is -EILSEQ. */
int message_send(int fd, json_t *message);
/* Text of any bytes: those that are no UTF-8 become '?'. */
json_t *message_text(const char *text);
/* A text of a message that came, without control characters; "": it has none. Returns text. */
const char *message_line(const json_t *message, const char *key, char *text, size_t len);
/* Control characters become '?'. Returns text. */
char *text_printable(char *text);

/* ---- Sentences on hosts, for people ---- */

/* The reason of an end that stopped: the last line of ssh, the first of mpirun and srun. */
const char *host_why(const struct hosts_run *run, const struct end *e);
/* "cannot reach 'node2' by ssh: why; what to do", of an end that ended and reported nothing; or that
 * the agent is not there, which was to be at this path. */
void host_say_unreached(const struct hosts_run *run, const struct end *e, const char *agent,
                        char *text, size_t len);
/* "'node2' does not answer: nothing came from it by ssh in 20 s" */
void host_say_mute(const struct hosts_run *run, const struct end *e, char *text, size_t len);
/* "'PATH' does not start on 'node2' (what it calls itself): why; what to do". calls: "" unknown. */
void host_say_missing(const char *program, const char *host, const char *calls, const char *why,
                      char *text, size_t len);

#define HOST_VERSION_MAX 256
/* The first line of `PROGRAM --version` on this machine. 0, or -errno with a reason in its place. */
int host_version(const char *program, uint64_t wait_ns, char version[HOST_VERSION_MAX]);
/* Version and commit of "plumb-net 0.1.0 (COMMIT, compiler, flags)" alone. Returns text. */
const char *host_build(const char *version, char *text, size_t len);
/* Is the build on a host ours? If not, with a sentence on both. */
bool host_same_build(const char *host, const char *theirs, const char *ours, char *text,
                     size_t len);

#endif

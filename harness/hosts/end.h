/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of a launch on other hosts: the processes here that hold them, the stream that comes
 * from there, and sentences on both. */
#ifndef PLUMB_HARNESS_END_H
#define PLUMB_HARNESS_END_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/group/notice.h"
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
    bool silent; /* its lines are kept, and not printed */
    struct argv command;
    pid_t pid;        /* 0: none */
    int in, out, err; /* -1: closed */
    struct buffer output;
    char line[512]; /* of its standard error, as far as it has come */
    size_t line_len;
    char first[512], last[512]; /* the first and the last line with a letter: "rank 3: what" */
    char loss[512];             /* NOTICE_LOST: its sentence; "": none came */
    struct end_cause cause;
    uint64_t said_ns;      /* of its last line other than NOTICE_LISTENING; 0: there is none */
    bool listening, taken; /* NOTICE_LISTENING and NOTICE_PORT_TAKEN came */
    uint64_t stopped_ns;   /* when it was seen to be stopped (SIGSTOP); 0: it is not */
    bool ended;
    int status; /* once it has ended; 128 + signal */
    uint64_t ended_ns;
};

/* Starts its command. It dies with this process. 0 or -errno. */
int end_start(struct end *e);
void end_tell(struct end *e, const char *text); /* on its standard input */
void end_hang_up(struct end *e);                /* closes that: what runs on the host ends */

/* Has it ended, and is all of its output read? Another process that holds its pipes open delays
 * this by a second at most. */
bool end_is_over(const struct end *e);

/* Reads their output, until some came or about `ms` have passed. 0 or -errno. */
int ends_attend(struct end *ends, unsigned n, int ms);

/* For so many at once: each has three files open. */
void ends_allow(unsigned n);

/* Until all have ended, or for so long. */
void ends_wait(struct end *ends, unsigned n, uint64_t for_ns);

/* Hangs up, waits, and kills those that still run. Only their causes stay. */
void ends_stop(struct end *ends, unsigned n, uint64_t grace_ns);

/* ---- The stream of a host ---- */

/*
 * The script on a host writes lines to its standard output that begin with "plumb-WORD TOKEN". Each
 * launch has its own token, so that no banner of a login shell looks like one.
 *
 *   plumb-begin TOKEN NAME|VERSION    it is there; NAME as the host calls itself
 *   plumb-peer TOKEN NAME|VERSION     so is the second rank
 *   plumb-missing TOKEN NAME|WHY      the program does not start there
 *   plumb-r TOKEN BYTES               rows: so many bytes follow
 *   plumb-s TOKEN BYTES               samples
 *   plumb-end TOKEN STATUS            the last line; the benchmark ended with this status
 *
 * and in answer to the questions before anything is measured (check.h):
 *
 *   plumb-begin TOKEN NAME|SECONDS    its clock
 *   plumb-build TOKEN STATUS|VERSION  of each program that was asked for, in this order
 *   plumb-net TOKEN NAME|SPEED|ADDRESS ...   Mb/s, or Gb/s with a G behind it
 *   plumb-done TOKEN |
 */

#define STREAM_TEXT_MAX 256

struct stream_hello {
    bool there;
    char name[STREAM_TEXT_MAX], version[STREAM_TEXT_MAX];
};

/* A whole line "plumb-WORD TOKEN NAME|VERSION" of the text so far. Control characters are
 * replaced. */
struct stream_hello stream_hello(const char *text, const char *word, const char *token);

/* The place behind "plumb-WORD TOKEN " in the next such line; NULL: there is none. `text` is the
 * whole text, or an end of a line in it. */
const char *stream_find(const char *text, const char *word, const char *token);

struct stream_parts {
    const char *rows, *samples; /* within the text */
    size_t n_rows, n_samples;
    int status;
};

/* 0, or -EBADMSG: it is not whole. */
int stream_parts(const char *text, size_t size, const char *token, struct stream_parts *parts);

/* Has its last line come? Cheap, to be asked often. */
bool stream_is_whole(const char *text, size_t size, const char *token);

/* Control characters become '?'. Returns text. */
char *stream_printable(char *text);

/* ---- Sentences on hosts, for people ---- */

/* The reason of an end that stopped: the last line of ssh, the first of mpirun and srun. */
const char *host_why(const struct hosts_run *run, const struct end *e);
/* "cannot reach 'node2' by ssh: why; what to do", of an end that reported nothing. */
void host_say_unreached(const struct hosts_run *run, const struct end *e, char *text, size_t len);
/* "'node2' does not answer: nothing came from it by ssh in 20 s" */
void host_say_mute(const struct hosts_run *run, const struct end *e, char *text, size_t len);
/* "'PATH' does not start on 'node2' (name): why; what to do" */
void host_say_missing(const char *program, const char *host, const struct stream_hello *missing,
                      char *text, size_t len);

/* The first line of `PROGRAM --version` on this machine. 0 or -errno. */
int host_own_version(const char *program, uint64_t wait_ns, char version[STREAM_TEXT_MAX]);
/* Version and commit of "plumb-net 0.1.0 (COMMIT, compiler, flags)" alone. Returns text. */
const char *host_build(const char *version, char *text, size_t len);
/* Is the build on a host ours? If not, with a sentence on both. */
bool host_same_build(const char *host, const char *theirs, const char *ours, char *text,
                     size_t len);

#endif

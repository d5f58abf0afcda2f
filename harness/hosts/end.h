/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that hold the ends of a launch on other hosts: started, listened to, ended; between end.c, host_launch.c
 * and check_ask.c. */
#ifndef PLUMB_HARNESS_END_H
#define PLUMB_HARNESS_END_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/group/notice.h"
#include "harness/hosts/words.h"
#include "harness/text.h"

/* How long a launch waits for its other ends, after the one that has the rows; where a case failed its name is to be seen soon. */
#define END_GRACE_NS 3000000000ull
#define END_LOST_NS  500000000ull
/* What runs on a host notices that we have hung up; where we are to end ourselves (child.c gives us 2 s), or a launch failed, it does so without us. */
#define END_STOP_NS   5000000000ull
#define END_TERM_NS   1500000000ull
#define END_FAILED_NS 700000000ull
/* How long ends_stop() is to wait: `told` to end ourselves, after this status, of a job of mpirun or srun. Such a job ends by itself where a rank is
 * lost, and its other ranks say meanwhile who that was. */
static inline uint64_t end_grace_ns(bool told, int status, bool job)
{
    return told ? END_TERM_NS : status && !job ? END_FAILED_NS : END_STOP_NS;
}

/* Which rank was lost first, as the ranks behind one end report it. Rank 0 leads and judges first: its first word counts, else the first of any other
 * rank. What a rank reports of itself counts for nothing. It stays after ends_stop(). */
struct end_cause {
    struct notice lost; /* kind NOTICE_NONE: nobody is named */
    unsigned speaker;
};

/* One of them. `name` is told before each line that it writes to standard error, and the rank where the line begins with
 * "plumb-rank R ". */
struct end {
    const char *name;
    bool silent; /* its lines are kept, and not told */
    struct words command;
    pid_t pid;        /* 0: none */
    int in, out, err; /* -1: closed */
    struct buffer output;
    char line[512]; /* of its standard error, as far as it has come */
    size_t line_len;
    char first[512],
        last[512];  /* the first line that says anything, and the last: "rank 3: what" */
    char loss[512]; /* NOTICE_LOST: its sentence; "": none came */
    struct end_cause cause;
    uint64_t
        said_ns; /* when it wrote its last line there, but for the one that it listens; 0: it has not */
    bool listening, taken; /* NOTICE_LISTENING and NOTICE_PORT_TAKEN came */
    bool ended;
    int status; /* once it has ended; 128 + signal */
    uint64_t ended_ns;
};

/* Starts its command. It dies with this process. 0 or -errno. */
int end_start(struct end *e);
void end_tell(struct end *e, const char *text); /* on its standard input */
void end_hang_up(struct end *e);                /* closes that: what runs on the host ends */

/* Has it ended, and is all read that it said? What still holds its pipes open is not waited for long. */
bool end_is_over(const struct end *e);

/* Reads what they say, until something came or about `ms` have passed. 0 or -errno. */
int ends_attend(struct end *ends, unsigned n, int ms);

/* For so many at once: each has three files open. */
void ends_allow(unsigned n);

/* Until all have ended, or for so long. */
void ends_wait(struct end *ends, unsigned n, uint64_t for_ns);

/* Hangs up, waits, and kills what is left. Forgets all but their causes. */
void ends_stop(struct end *ends, unsigned n, uint64_t grace_ns);

#endif

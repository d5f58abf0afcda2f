/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a program: collects its output, keeps a deadline, and leaves no process behind. The child
 * leads a process group of its own, and dies with this process even when this one is killed.
 */
#ifndef PLUMB_HARNESS_CHILD_H
#define PLUMB_HARNESS_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/text.h"

#define CHILD_OUTPUT_MAX (256u << 20) /* of stdout, stderr and samples each */
#define CHILD_SAMPLES_FD 3            /* where the child finds its third pipe */
#define CHILD_MARKS_FD   4            /* and a server the one for its marks */

struct child_spec {
    const char *const *argv; /* argv[0] is the path */
    int (*body)(
        void *arg); /* instead of a program: the child runs it, and ends with what it returns */
    void *body_arg;
    uint64_t timeout_ns;
    bool samples;               /* give it a third pipe as CHILD_SAMPLES_FD */
    const volatile int *cancel; /* non-zero: stop it; NULL: never */
    void (*tick)(void *arg);    /* called about five times a second meanwhile; NULL: not */
    void *tick_arg;
};

struct child_result {
    struct buffer out, err, samples;    /* texts are never NULL after a run */
    int status;                         /* exit status; 128 + signal when killed by one */
    int signal;                         /* that signal, or 0 */
    bool timed_out, cancelled, flooded; /* flooded: over CHILD_OUTPUT_MAX, stopped */
    bool ended; /* the process is gone, or is to be ended: always after child_run() */
    uint64_t elapsed_ns;
};

/* Runs it to its end. 0, or -errno when it could not be started or read. Release *result in any
 * case. */
int child_run(const struct child_spec *spec, struct child_result *result);
void child_result_release(struct child_result *result);

/*
 * A server is a program that does one thing after another. It reads a line of its stdin for each,
 * and writes to CHILD_MARKS_FD "begin" when it has read one, and "end STATUS" when all that it has
 * to say of it is written. It ends when its stdin does.
 */
struct child_server;

/* spec->timeout_ns is not used; what spec points at must outlive the server, but for argv. 0 with
 * *server, or -errno. */
int child_server_start(const struct child_spec *spec, struct child_server **server);

/* One thing: `line` has no line end. *result has its status, and what was written meanwhile. Where
 * result->ended, the process ended, or was stopped as child_run() does: it takes no further line. 0;
 * -ESRCH: the process was gone before it began with the line; or another -errno. Release *result in
 * any case. */
int child_server_ask(struct child_server *server, const char *line, uint64_t timeout_ns,
                     struct child_result *result);

/* Lets it end, or makes it. NULL is left alone. */
void child_server_end(struct child_server *server);

/* ---- A process with pipes, under child_run() and harness/hosts/end.h ---- */

enum process_pipe { PIPE_OUT, PIPE_ERR, PIPE_SAMPLES, PIPE_MARKS, PROCESS_PIPES };

struct process {
    pid_t pid; /* 0: none. A zombie until process_release(), so that its number is nobody else's */
    int pidfd; /* readable when it has ended; -1: kernels before 5.3 */
    int in;    /* its standard input; -1: closed */
    int fds[PROCESS_PIPES];             /* -1: closed, or there is none */
    struct buffer texts[PROCESS_PIPES]; /* what came, never NULL once it was started */
    bool flooded;                       /* more than CHILD_OUTPUT_MAX came, and was dropped */
    bool ended;
    int status, signal; /* once it has ended; 128 + signal */
    uint64_t ended_ns;
};

#define PROCESS_NONE .pidfd = -1, .in = -1, .fds = {-1, -1, -1, -1}

enum process_kind {
    PROCESS_SILENT, /* nothing is on its standard input; it leads a process group */
    PROCESS_SERVER, /* a socket is, and it writes marks; it leads a group, too */
    PROCESS_END     /* a pipe is */
};

/* Starts argv (searched in $PATH) or body of the spec, which dies with this process. 0 or -errno. */
int process_start(struct process *p, const struct child_spec *spec, enum process_kind kind);
/* Reads what has come of each, until some came, one ended, or ms have passed. 0 or -errno. */
int processes_read(struct process *const *all, unsigned n, int ms);
/* Ended, and all its pipes at their end or, a second later, still held by another process. */
bool process_is_over(const struct process *p);
/* One that still runs is killed first. */
void process_release(struct process *p);

/* Calls fn for each folder of $PATH (or of the system's default) until it returns non-zero. Returns
 * that, or 0. Empty folders are skipped. */
int path_folders(int (*fn)(const char *folder, void *arg), void *arg);
/* The program that a shell would start: an executable file in a folder of $PATH, or at that
 * place if the name has a '/'. An absolute path that the caller frees, or NULL. */
char *path_program(const char *name);

/* For `cancel`: SIGINT, SIGTERM and SIGHUP set it from now on; 0 until then. It lives as long as
 * the process. An ignored SIGHUP (nohup) stays ignored. */
const volatile int *cancel_on_signals(void);

#endif

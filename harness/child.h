/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a program: collects its output, keeps a deadline, and leaves no process behind. The child
 * leads a process group of its own, and dies with this process even when this one is killed.
 */
#ifndef PLUMB_HARNESS_CHILD_H
#define PLUMB_HARNESS_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/text.h"

#define CHILD_OUTPUT_MAX (256u << 20) /* of stdout, stderr and samples each */
#define CHILD_SAMPLES_FD 3            /* where the child finds its third pipe */

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
    uint64_t elapsed_ns;
};

/* Runs it to its end. 0, or -errno when it could not be started or read. Release *result in any
 * case. */
int child_run(const struct child_spec *spec, struct child_result *result);
void child_result_release(struct child_result *result);

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

/* SPDX-License-Identifier: Apache-2.0 */
/* How every program of the suite begins and ends, and its exit status. */
#ifndef PLUMB_CORE_PROGRAM_H
#define PLUMB_CORE_PROGRAM_H

#include <stdbool.h>

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_BAD = 1,        /* judged bad: a regression, not equivalent, wrong data */
    EXIT_USAGE = 2,      /* the command line or a configuration file is wrong */
    EXIT_UNDECIDED = 3,  /* more runs would decide */
    EXIT_INCOMPLETE = 4, /* something could not be measured, or was interrupted */
    EXIT_DAMAGED = 5     /* a file is damaged */
};

/* First of all: whoever started it may have left it without a standard stream (the next file that is
 * opened would take its place), with signals blocked, children that nobody can wait for, a umask
 * that keeps its own files from it, or a signal in place of an error where a file grows too
 * large. */
void program_begin(void);
/* Last of all: status, or EXIT_INCOMPLETE with a sentence where not all of stdout could be
 * written. From then on the process has some seconds to end. */
int program_end(const char *program, int status);

/* Has a benchmark that ended so printed all its rows? */
static inline bool exit_has_rows(int status)
{
    return status == EXIT_GOOD || status == EXIT_BAD || status == EXIT_INCOMPLETE;
}

/* ---- What this program was built from and with. Texts that live as long as the process. ---- */

#define PLUMB_VERSION "0.1.0"

/* `git describe` of the checkout, with "-dirty" when it had changes; "" when it was no checkout. */
const char *build_commit(void);

const char *build_compiler(void); /* "gcc 12.2.0", "clang 14.0.6" */
const char *build_flags(void);    /* the flags that were asked for: "-O2 -g" */

#endif

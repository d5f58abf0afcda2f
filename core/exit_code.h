/* SPDX-License-Identifier: Apache-2.0 */
/* The exit status of every program of the suite. */
#ifndef PLUMB_CORE_EXIT_CODE_H
#define PLUMB_CORE_EXIT_CODE_H

#include <stdbool.h>

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_BAD = 1,        /* judged bad: a regression, not equivalent, wrong data */
    EXIT_USAGE = 2,      /* the command line or a configuration file is wrong */
    EXIT_UNDECIDED = 3,  /* more runs would decide */
    EXIT_INCOMPLETE = 4, /* something could not be measured, or was interrupted */
    EXIT_DAMAGED = 5     /* a file is damaged */
};

/* Has a benchmark that ended so printed all its rows? */
static inline bool exit_has_rows(int status)
{
    return status == EXIT_GOOD || status == EXIT_BAD || status == EXIT_INCOMPLETE;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What launches that shared a process saved, by what was measured (columns launch_s and
 * process_cases of a run's rows).
 *
 *   overhead  of a launch: its whole time without warm-up and samples (launch_s - elapsed_s)
 *   start     of a benchmark's process: the overhead of a case's launch that was the first of its
 *             process, less that of the same case's launches that were not. The median over all
 *             such cases. Launches that searched are not held against those that did not
 *   saved     the start, times the launches that were not the first of their process
 *
 * A start counts as 0 where any of its cases had no more overhead as the first. A benchmark none of
 * whose cases ran both ways is not known.
 */
#ifndef PLUMB_REPORT_PROCESSES_H
#define PLUMB_REPORT_PROCESSES_H

#include <stddef.h>

#include "harness/store/run_folder.h"

struct process_use {
    size_t launches;  /* that shared a process with others, or could */
    size_t processes; /* of these */
    size_t later;     /* launches that were not the first of their process */
    size_t known;     /* of these, launches whose saving is known */
    double saved_s;   /* by the known ones; NaN: there are none */
};

struct process_use process_use_of(const struct run_folder *run);

#define PROCESS_USE_BYTES 160
/* Of launches: "875 shared 14 processes, which saved about 12 min"; "" if none shared one. */
const char *process_use_text(const struct process_use *use, char text[PROCESS_USE_BYTES]);

#endif

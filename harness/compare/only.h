/* SPDX-License-Identifier: Apache-2.0 */
/* --only of the commands that judge: given several times, each counts, and a pattern may hold a comma, as labels do. */
#ifndef PLUMB_COMPARE_ONLY_H
#define PLUMB_COMPARE_ONLY_H

/* The patterns, NULL-ended; they stay the command line's, the array is the caller's to free. To be called after opts_parse(), which
 * has found a value for each option that asks for one. NULL: no memory. */
const char **only_of(int argc, char **argv);

#endif

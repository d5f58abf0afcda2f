/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: our figures against those of outside programs, in turn on the same machine. The
 * method is in docs/crosscheck.md. */
#ifndef PLUMB_HARNESS_CROSSCHECK_H
#define PLUMB_HARNESS_CROSSCHECK_H

int cmd_crosscheck(int argc, char **argv); /* the exit status */

#endif

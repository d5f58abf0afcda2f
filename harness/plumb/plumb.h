/* SPDX-License-Identifier: Apache-2.0 */
/* The program: the table of its commands, plumb list, and the command line of plumb run. The other
 * commands are in the folders that do their work. */
#ifndef PLUMB_HARNESS_PLUMB_H
#define PLUMB_HARNESS_PLUMB_H

int cmd_run(int argc, char **argv); /* argv[0] is "run"; returns the exit code */

#endif

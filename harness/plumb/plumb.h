/* SPDX-License-Identifier: Apache-2.0 */
/* The program: the table of its commands, plumb list, and the command line of plumb run. The other
 * commands are in the folders that do their work. */
#ifndef PLUMB_HARNESS_PLUMB_H
#define PLUMB_HARNESS_PLUMB_H

/* argv[0] is the command's name; each returns the exit code. */
int cmd_run(int argc, char **argv);
int cmd_list(int argc, char **argv);

#endif

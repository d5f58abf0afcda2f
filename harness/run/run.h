/* SPDX-License-Identifier: Apache-2.0 */
/* plumb run SUITE: plan, launch, store, report. */
#ifndef PLUMB_HARNESS_RUN_H
#define PLUMB_HARNESS_RUN_H

int cmd_run(int argc, char **argv);  /* argv[0] is "run"; returns the exit code */
int cmd_list(int argc, char **argv); /* argv[0] is "list" */

#endif

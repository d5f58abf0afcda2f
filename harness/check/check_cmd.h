/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check: the gate for CI. */
#ifndef PLUMB_CHECK_CMD_H
#define PLUMB_CHECK_CMD_H

int cmd_check(int argc, char **argv);

#endif

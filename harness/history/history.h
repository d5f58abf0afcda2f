/* SPDX-License-Identifier: Apache-2.0 */
/* plumb history: where the levels of cases moved, over many runs. */
#ifndef PLUMB_HISTORY_H
#define PLUMB_HISTORY_H

int cmd_history(int argc, char **argv);

#endif

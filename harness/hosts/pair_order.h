/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of a pair; between pair_order.c and pair.c. */
#ifndef PLUMB_HARNESS_PAIR_ORDER_H
#define PLUMB_HARNESS_PAIR_ORDER_H

#include "harness/hosts/pair.h"

/* Where the program is on a host. */
void pair_program(const struct hosts_run *run, const struct host *host, const char *program,
                  char *path, size_t len);
int pair_token(char token[HOSTS_TOKEN_SIZE]); /* 0 or -errno */
/* The port that a launch tries as its first, second, ... */
unsigned pair_port(const struct pair *p, unsigned attempt);
/* The words of one end; with ranks, of both. */
void pair_order(const struct pair *p, enum hosts_task task, const char *token, unsigned port,
                bool shown, struct words *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences for a row's `evidence`: what really carried the bytes. */
#ifndef PLUMB_CORE_EVIDENCE_H
#define PLUMB_CORE_EVIDENCE_H

#include <stddef.h>

/* The kinds of path that carried a row's bytes: the column carrier, as words with '+' between them. 0: not told. */
enum {
    CARRIER_RDMA = 1,          /* "rdma" */
    CARRIER_SOCKETS = 2,       /* "sockets" */
    CARRIER_LOOPBACK = 4,      /* "loopback" */
    CARRIER_SHARED_MEMORY = 8, /* "shm" */
    CARRIER_PEER = 16,         /* "peer": access between GPUs */
    CARRIER_ALL = 31
};
#define CARRIERS_BYTES 40            /* of the words of all of them, and the 0 */
extern const char *const carriers[]; /* by bit; ends with NULL */
const char *carriers_print(unsigned kinds, char text[CARRIERS_BYTES]); /* returns text */
unsigned carriers_read(const char *text); /* 0 where a word is none of them */

/* Adds a remark to a text that holds others: ", " between them; cut when it is too long. */
void evidence_add(char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A backend for tests of the session: it reduces through memory that all ranks of world_fork() share, and fails as it is told. */
#ifndef PLUMB_TESTS_FAKE_COLLECTIVE_H
#define PLUMB_TESTS_FAKE_COLLECTIVE_H

#include <time.h>

#include "core/collective/collective.h"

#define FAKE_RANKS 64
#define FAKE_BYTES (1u << 18) /* of a vector, at most */

enum fake_fault {
    FAKE_SOUND,
    FAKE_KILLED,  /* the rank kills itself */
    FAKE_STOPPED, /* it stops itself, as a debugger would */
    FAKE_STUCK,   /* it stops itself while it connects */
    FAKE_STILL,   /* it answers, but nothing moves in it */
    FAKE_WRONG,   /* one element of its result is wrong */
    FAKE_LAZY,    /* from this call on it leaves its result as it is */
    FAKE_FAILS,   /* the call fails, with a sentence */
    FAKE_NO_OPEN, /* it has no device */
    FAKE_LEAVES,  /* it does less than its part, says that it is done, and gets fault_signal */
};

struct fake_shared {
    _Atomic unsigned arrived, generation;
    unsigned fault, fault_rank, fault_run; /* in this call of that rank, counted from open */
    int fault_signal;
    time_t fault_after_s;
    unsigned bound[FAKE_RANKS]; /* the CPU of each, at its last run; ~0: not bound */
    unsigned crowded[FAKE_RANKS];
    unsigned addresses[FAKE_RANKS]; /* that came */
    uint64_t first_test_ns;         /* after start(), the longest of rank 0 */
    uint64_t loopback_bytes;        /* that each call of rank 0 moves over lo */
    char device[64];                /* of its flow; "": it has none */
    double flow_bytes;              /* of each call */
    char gpu[24];                   /* that all ranks share; "": they have none */
    unsigned other_node;
    char vectors[FAKE_RANKS][FAKE_BYTES];
};

/* Before the fork. fake_find: "fake", "fake-blocking" (without start and test), "fake-far" (its buffers by write and read), "fake-library", "fake-deaf" (it waits for good). */
extern struct fake_shared *fake;
void fake_setup(void);
const struct collective_ops *fake_find(const char *name);

#endif

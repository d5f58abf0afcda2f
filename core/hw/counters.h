/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system's counters of all network interfaces and RDMA ports, at one moment: see path.h for where they are from. `root`: NULL is this
 * machine, else a recorded tree.
 *
 * Ports: counters/port_xmit_data and port_rcv_data count units of 4 bytes, in 64 bits or, on old adapters, in 32 bits, which stop at their
 * end (as InfiniBand has it) or begin again. Bytes of hw_counters, where counters/ has none, by the names that drivers give
 * them; else there may be packets only (rxe) or nothing at all (siw, PVRDMA). The kernel hands out hw_counters that it read up to `lifespan`
 * ms ago (10 by default) and up to two jiffies more: so long is waited, then they are read again, so that what just moved is in them. So with a recorded tree.
 */
#ifndef PLUMB_CORE_HW_COUNTERS_H
#define PLUMB_CORE_HW_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNTER_OUT, COUNTER_IN, COUNTER_WAYS };

struct counter {
    char name[64]; /* "eth0", "mlx5_0:1" */
    bool port;     /* an RDMA port */
    bool has_data, has_packets;
    unsigned unit; /* bytes of one count of data */
    uint64_t data[COUNTER_WAYS], packets[COUNTER_WAYS];
};

struct counters {
    struct counter *list;
    size_t n;
};

int counters_read(struct counters *c, const char *root); /* 0 or -ENOMEM */
void counters_free(struct counters *c);
const struct counter *counters_find(const struct counters *c, const char *name); /* or NULL */

/* What went through between two moments. */
struct moved {
    bool known, packets_known;
    bool at_least; /* a counter of 32 bits came to its end: what it says may be too little */
    bool
        narrow; /* a counter that never was beyond 32 bits, so that it may have gone round unnoticed */
    double bytes[COUNTER_WAYS], packets[COUNTER_WAYS];
};

/* Either may be NULL: then nothing is known. */
struct moved counters_moved(const struct counter *before, const struct counter *after);

#endif

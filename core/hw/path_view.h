/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of a machine as path.c and path_judge.c see them: what the system's counters say that
 * each moved, what is claimed of it, and which of them count the same bytes. Others use path.h.
 */
#ifndef PLUMB_CORE_HW_PATH_VIEW_H
#define PLUMB_CORE_HW_PATH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hw/nic.h"
#include "core/hw/path.h"

/*
 * The system's counters of all network interfaces and RDMA ports, at one moment: see path.h for
 * where they are from. `root`: NULL is this machine, else a recorded tree.
 *
 * Ports: counters/port_xmit_data and port_rcv_data count units of 4 bytes, in 64 bits or, on old
 * adapters, in 32 bits, which stop at their end (as InfiniBand has it) or begin again. Bytes of
 * hw_counters, where counters/ has none, by the names that drivers give them; else there may be
 * packets only (rxe) or nothing at all (siw, PVRDMA). The kernel hands out hw_counters that it read
 * up to `lifespan` ms ago (10 by default) and up to two jiffies more: so long is waited, then they
 * are read again, so that what just moved is in them. So with a recorded tree.
 */

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

#define PATH_MET           0.98 /* of a claim: it is met */
#define PATH_TOO_FEW_BYTES 1e6  /* tell nothing */

/* What is judged by: claims in bytes, or in messages that took a packet each. */
enum path_measure { PATH_BYTES, PATH_PACKETS, PATH_MEASURES };

struct path_device {
    char name[64];
    bool claimed, port, at_least;
    bool in_set;     /* claimed, but with others: see path_view.set */
    bool same_bytes; /* moves bytes that another device of the list counts: never "elsewhere" */
    struct nic_port facts; /* of a port */
    struct moved moved;
    double claim[PATH_MEASURES][COUNTER_WAYS];
    double message_bytes, mtu_bytes;
    /* Of a claimed device: what is held to have gone through it; NAN: nothing tells. */
    double got[PATH_MEASURES][COUNTER_WAYS];
};

struct path_view {
    const char *root;
    struct path_device *list;
    size_t n;
    enum path_measure by; /* the one that is being judged by */
    /* What is claimed of all devices together that are in_set: `claim`, and by path_carry() `got`;
     * name "": nothing. Not in the list. */
    struct path_device set;
};

struct path_words;

struct path_device *path_find(const struct path_view *v, const char *name); /* or NULL */

/* Looks at the counters: fills in `moved`. The first time, when *v is zeroed, it also makes the
 * list, of all devices that are there and those that are claimed. 0 or -errno. The caller frees
 * v->list. */
int path_look(struct path_view *v, const char *root, const struct counters *before,
              const struct path_claim *claims, size_t n);

/* Fills in `got` of all claimed devices. */
void path_carry(struct path_view *v);
bool path_is_none(const struct path_device *d);         /* no device is named: shared memory */
double path_segment_bytes(const struct path_device *d); /* payload of a full packet of a claim */

/* The verdict over all claimed devices. *lacking: some is missing, so that it may be worth to look
 * again. */
void path_judge(struct path_view *v, struct path_proof *proof, bool *lacking);

static inline double path_sum(const double ways[COUNTER_WAYS])
{
    return ways[COUNTER_OUT] + ways[COUNTER_IN];
}

/* A text that grows, and of what kind the first device is that it says moved something. */
struct path_words {
    char *text;
    size_t len, used;
    unsigned carriers;
};

/* The text says that this device moved something: the first one counts. */
void path_carried_by(struct path_words *w, const struct path_device *d);

void path_say(struct path_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct path_amount {
    char text[32];
};

/* "12.4 GB", "10000 packets". */
struct path_amount path_amount(const struct path_view *v, double amount);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof of the path: the system's byte counters of every network interface and RDMA port, before and
 * after, against the payload that a benchmark says it moved through a device. The rule is
 * path_rule() in path_judge.c.
 *
 *   interfaces  /proc/net/dev: of this process' network namespace, bytes as on the wire less
 *               preamble and FCS. lo counts all that goes through it as sent and as received
 *   RDMA ports  /sys/class/infiniband/DEVICE/ports/N/counters (port_xmit_data, port_rcv_data: units
 *               of 4 bytes) and hw_counters (by the names that drivers give bytes). rxe counts
 *               packets only, siw and PVRDMA nothing: their path is unknown
 *
 * A bond, bridge or VLAN and what is below it move the same bytes. So do an InfiniBand port and its
 * IPoIB, which is subtracted from the port; and an Ethernet port and its interface, unless its
 * driver is known to count them apart: nic_counts_apart().
 */
#ifndef PLUMB_CORE_HW_PATH_H
#define PLUMB_CORE_HW_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hw/nic.h"

#define PATH_TEXT_BYTES    256
#define PATH_SETTLE_NS     2500000000u
#define PATH_DEVICES_BYTES 192

/* For fault injection: a device that no machine has. It counts bytes, and counted none. */
#define PATH_NOWHERE "nowhere0"

/* What should have gone through a device of this end: payload; of a library the least that can
 * have. */
struct path_claim {
    /* A rail's name: "eth0", "mlx5_0:1"; "" or "shm": shared memory, no device; "eth0+eth1": all of
     * them together, however it is shared among them. */
    char device[PATH_DEVICES_BYTES];
    double out_bytes, in_bytes;
};

enum path_verdict {
    PATH_PROVED,    /* the claimed devices carried them */
    PATH_ELSEWHERE, /* another device carried them: the row is wrong */
    PATH_UNKNOWN,   /* the counters do not tell: said in the text */
};

struct path_proof {
    enum path_verdict verdict;
    char text[PATH_TEXT_BYTES]; /* for `evidence`: "eth0 sent 12.4 GB, 99.9 % of the bytes" */
    /* What kind of path the first claim is that is proved: one of row.h; 0: none is. */
    uint32_t carriers;
};

struct path; /* counters as they were */

struct path *path_begin(void);
/* For tests: of a recorded tree (root outlives it), with another time than PATH_SETTLE_NS. */
struct path *path_begin_at(const char *root, uint64_t settle_ns);
/* The counters again; judges. Some drivers count a second late: where bytes are missing it looks
 * again for up to PATH_SETTLE_NS before it says so. May be called again. */
void path_end(struct path *p, const struct path_claim *claims, size_t n, struct path_proof *proof);
/* Where nobody can say which device should have carried anything: names those that moved most since
 * path_begin(), "eth0 sent 1.2 GB, received 1.2 GB; lo 0 B". PATH_UNKNOWN: it proves nothing. */
void path_tell(struct path *p, struct path_proof *proof);

#define PATH_WIRES_MAX 8

/* The links that carried what went to and came from other machines, by the counters alone. An
 * interface and the RDMA port on it are one link, and so are a bond, bridge or VLAN and what is
 * below it. */
struct path_wires {
    unsigned n;                       /* 0: the counters do not decide */
    char devices[PATH_WIRES_MAX][64]; /* "eth0", "mlx5_0:1"; of several, each carried its share */
    char why[PATH_TEXT_BYTES];        /* they do not decide */
    /* Sockets carried the bytes, though an RDMA port in hardware is up; "": not so, or the counters
     * do not tell. Whether n is 0 or not. */
    char sockets[PATH_TEXT_BYTES];
    char carriers[64]; /* those interfaces: "eth0+eth1" */
    bool fell_back;    /* and no such port is known to be slower than they are */
    /* that port is; else Ethernet, where "up" says no more than that there is a cable */
    bool infiniband;
    bool guest; /* this machine is one: what its cards can do its host's network may not */
};
/*
 * Since path_begin(). least_*: payload that must have gone out of this machine and come in; a way
 * with 0 is not looked at. They decide where all links together moved at least that, one of them
 * did or k, each of these at least half of an equal share, the same ones out and in, and the others
 * moved less than 0.5 % of it. With less than 1 MB, and where lo or nothing moved as much, they do
 * not; before that is said it looks again for up to PATH_SETTLE_NS, where path_end() has not done
 * so.
 *
 * An InfiniBand port counts its IPoIB's bytes: it is called by the interface where that moved more
 * than half of them.
 *
 * `sockets`: interfaces alone moved the least, and the RDMA ports, less their IPoIB, not 1 % of it
 * (IPoIB's headers left out). Not told where a port's driver may count its data in the interface
 * alone. A port that is up: the system calls it ACTIVE. It is slower where the lines of all such
 * ports together are, and known.
 */
void path_wires(struct path *p, double least_out, double least_in, struct path_wires *wires);
/* Is each of "eth0+eth1" something else than an RDMA port? Not where there is none at all. */
bool path_is_interfaces(const struct path *p, const char *devices);
void path_close(struct path *p); /* NULL is left alone */

/*
 * The system's counters of all network interfaces and RDMA ports, at one moment: see above for
 * where they are from. `root`: NULL is this machine, else a recorded tree.
 *
 * Bytes of a port's hw_counters are taken where counters/ has none. The kernel hands out hw_counters
 * that it read up to `lifespan` ms ago (10 by default) and up to two jiffies more: so long is waited,
 * then they are read again, so that what just moved is in them. So with a recorded tree.
 */

enum { COUNTER_OUT, COUNTER_IN, COUNTER_WAYS };

struct counter {
    char name[64]; /* "eth0", "mlx5_0:1" */
    bool known;
    unsigned unit; /* bytes of one count */
    uint64_t data[COUNTER_WAYS];
};

struct counters {
    struct counter *list;
    size_t n;
};

struct counters counters_read(const char *root);
void counters_free(struct counters *c);

/* What went through between two moments. */
struct moved {
    bool known;
    double bytes[COUNTER_WAYS];
};

/* Not known: either is NULL or counts nothing; or it went back, as one of 32 bits does that goes
 * round, or stands at the end of its 32 bits, as InfiniBand has it. */
struct moved counters_moved(const struct counter *before, const struct counter *after);

#define PATH_MET           0.98 /* of a payload: it is there */
#define PATH_TOO_FEW_BYTES 1e6  /* tell nothing */

struct path_device {
    char name[64];
    bool port;
    bool same_bytes;       /* moves bytes that another device of the list counts: left out */
    int claim;             /* which of the view's claims it has a part in; -1: none */
    struct nic_port facts; /* of a port */
    struct moved moved;
};

struct path_view {
    const char *root;
    struct path_device *list;
    size_t n;
    struct path_claim *claims; /* those on one device are one */
    size_t n_claims;
    bool asked[COUNTER_WAYS]; /* the ways that any claim is made of */
};

struct path_device *path_find(const struct path_view *v, const char *name); /* or NULL */

/* Looks at the counters: fills in `moved`. The first time, when *v is zeroed, it also makes the
 * list, of all devices that are there and those that are claimed. */
void path_look(struct path_view *v, const char *root, const struct counters *before,
               const struct path_claim *claims, size_t n);
void path_view_free(struct path_view *v);

bool path_is_infiniband(const struct path_device *d);
/* The interface whose bytes this port counts, too; NULL. */
const struct path_device *path_ipoib(const struct path_view *v, const struct path_device *d);
/* What it counted, without IPoIB; NAN: not known. */
double path_counted(const struct path_view *v, const struct path_device *d, int way);
bool path_is_none(const struct path_claim *claim); /* no device is named: shared memory */

/* The verdict over all claims. *lacking: some device has counted less than its payload, so that it
 * may be worth to look again. */
void path_judge(const struct path_view *v, struct path_proof *proof, bool *lacking);

static inline double path_sum(const double ways[COUNTER_WAYS])
{
    return ways[COUNTER_OUT] + ways[COUNTER_IN];
}

unsigned path_carrier(const struct path_device *d); /* one of row.h */

struct path_words { /* a text that grows */
    char *text;
    size_t len, used;
};

void path_say(struct path_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct path_amount {
    char text[32];
};

struct path_amount path_amount(double bytes); /* "12.4 GB" */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof of the path: the system's own counters of every network interface and RDMA port, before and
 * after, against what a benchmark says that it moved. Asked for one device and another one carried
 * the bytes: wrong.
 *
 *   interfaces  /proc/net/dev: of this process' network namespace, bytes as on the wire less
 *               preamble and FCS
 *   RDMA ports  /sys/class/infiniband/DEVICE/ports/N/counters (port_xmit_data, port_rcv_data: units
 *               of 4 bytes) and hw_counters (by the names that drivers give bytes; rxe has packets
 *               only, siw and PVRDMA nothing)
 *
 * Soft-RoCE and soft-iWARP go over their interface, whose counters are taken as well. A bond,
 * bridge or VLAN and what is below it move the same bytes; so do an InfiniBand port and its IPoIB.
 * lo counts all that goes through it as sent and as received.
 *
 * A claim is held to be met from 98 % on. It went elsewhere when at least 10 % of it are missing
 * and other devices, all together, moved what is missing: at least 90 % of it, and not more than
 * 1.3 times as much, which somebody else's traffic would be. Of a device that is claimed as well,
 * another rail, what it moved beyond its own claim counts, unless half of that may be headers.
 *
 * Of a claim that is only the least, where less than a tenth went through the claimed device,
 * others may have moved any more.
 *
 * A claim that is met is proved only where its bytes cannot have gone another way unseen: other
 * devices together moved less than 90 % of it the same way, and what the claimed device moved
 * beside it, and its headers, is less than it. Devices that move the same bytes do not count as
 * others. On a busy machine much is unknown, and nothing elsewhere that was not.
 *
 * Less than 1 MB tells nothing by bytes. Where messages are told that took a packet each (1000 at
 * least, that fit one), packets are judged instead, by the same rules: also where bytes leave it
 * unknown. A packet of each message's acknowledgements is let pass.
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

/* What should have gone through a device of this end: payload. */
struct path_claim {
    /* A rail's name: "eth0", "mlx5_0:1"; "" or "shm": no device is claimed; "eth0+eth1": all of
     * them together, however it is shared among them. One such claim at most, and none beside
     * it. */
    char device[PATH_DEVICES_BYTES];
    double out_bytes, in_bytes;
    double message_bytes, mtu_bytes; /* for ports that count packets only */
    /* How many messages took a packet of their own, at the least: those of a ping, and all of RDMA
     * but iWARP's streams; none of a TCP stream, which packs them. 0: not told. */
    double out_messages, in_messages;
    /* the bytes are the fewest that can have gone, not what did: a library moved them */
    bool at_least;
};

enum path_verdict {
    PATH_PROVED,    /* the claimed devices carried them, and no other can have */
    PATH_ELSEWHERE, /* another device carried them: the row is wrong */
    /* no counter tells (hidden in a guest, too few bytes, too much else): said in the text */
    PATH_UNKNOWN,
};

struct path_proof {
    enum path_verdict verdict;
    char text
        [PATH_TEXT_BYTES]; /* for `evidence`: "eth0 sent 12.4 GB, 100 % of the bytes; lo 0.0 %" */
    /* What kind of path the first device of `text` is that moved something: one of row.h; 0:
     * none did. */
    uint32_t carriers;
};

struct path; /* counters as they were */

int path_begin(struct path **p); /* 0 or -ENOMEM; what cannot be read is unknown */
/* For tests: of a recorded tree (root outlives p), with another time than PATH_SETTLE_NS. */
int path_begin_at(struct path **p, const char *root, uint64_t settle_ns);
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
    /* a counter that never was beyond 32 bits, so that it may have gone round unnoticed */
    bool narrow;
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

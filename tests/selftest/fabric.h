/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made-up clusters, stepped through event by event: hosts with a processor, memory and a link each, switches with a wire to the core,
 * collectives as they are sent, and compute beside them. No formula of a forecast is in here: times come from events alone. Nobody
 * says how fast compute and messages are beside each other. It follows from what they share:
 *
 *   link        messages that leave or reach a host at the same time have equal parts of its link
 *   memory      compute and messages move bytes through it; where they want more than it has, all of them slow down alike
 *   processor   what takes in a message takes a share of it
 *   attention   a rank that computes is slower to begin a message
 */
#ifndef PLUMB_SELFTEST_FABRIC_H
#define PLUMB_SELFTEST_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng.h"

#define FABRIC_HOSTS 64
#define FABRIC_RANKS 64
#define FABRIC_RAILS 2

enum fabric_way { WAY_RING, WAY_HALVING, WAY_DOUBLING };

struct fabric {
    double latency_us, jitter;  /* of a message; the deviation of its logarithm */
    double rate[FABRIC_HOSTS];  /* bytes a us, of a host's link, each way */
    double work[FABRIC_HOSTS];  /* times the nominal time of compute */
    size_t place[FABRIC_HOSTS]; /* where the i-th rank is; of several on a host, the i-th so many */
    size_t per_host;            /* ranks of a host; 0: 1 */
    double inside_us, inside;   /* latency, and bytes a us of a rank, to others of its host */
    double second; /* each host has a second link, this many times as fast, and pairs of
                                 * hosts have one of both, by chance; 0: none */
    uint64_t chance;
    size_t leaf;        /* hosts of a switch; 0: one switch */
    double uplink;      /* bytes a us, between a switch and the core, each way */
    double work_jitter; /* of each piece of compute */
    double memory;      /* bytes a us, of a rank */
    double steals;      /* the share of a rank's processor that an arriving message takes */
    double lag;         /* times the latency of a message from a rank that computes */
    bool meets;         /* a message begins when its receiver asks for it, too */
    enum fabric_way way, way_later; /* ... of collectives of `later` ranks and more */
    size_t later;
    double small; /* bytes up to which a sum's way is WAY_DOUBLING */
};

/* ---- what ranks do ---- */

/* A message goes from each rank to the next, in a ring. Of two, one goes there, from the first to the second, or back. */
enum fabric_what {
    FABRIC_SUM,
    FABRIC_SCATTER,
    FABRIC_GATHER,
    FABRIC_EXCHANGE,
    FABRIC_MESSAGE,
    FABRIC_THERE,
    FABRIC_BACK
};

/* A rank does the operations of a lane in order, and those of different lanes at the same time. */
enum fabric_lane {
    LANE_WORK,
    LANE_DATA,
    LANE_GROUP,
    LANE_TO_NEXT,
    LANE_FROM_PREVIOUS,
    LANE_TO_PREVIOUS,
    LANE_FROM_NEXT,
    LANES
};

/* Ranks first, first + stride ...: `tag` and `first` say which calls are the same. Its members call
 * them in the same order. */
struct fabric_group {
    size_t tag, first, stride, n;
};
#define FABRIC_TAGS 8

#define FABRIC_NONE  ((size_t)-1)
#define FABRIC_AFTER 4

struct fabric_plan;

/* NULL: no memory. appetite: the share of a rank's memory that compute alone takes. */
struct fabric_plan *fabric_plan_new(size_t ranks, double appetite);
void fabric_plan_free(struct fabric_plan *plan);
/* The rank's next operation also waits for this one of its own. */
void fabric_wait(struct fabric_plan *plan, size_t rank, size_t op);
/* Both return the operation. */
size_t fabric_work(struct fabric_plan *plan, size_t rank, double us);
size_t fabric_call(struct fabric_plan *plan, size_t rank, enum fabric_lane lane,
                   const struct fabric_group *group, enum fabric_what what, double bytes);

/* From a common start until all have ended. `slower`: times the latency and per byte, of this launch.
 * NaN: no memory, or something waits forever. */
double fabric_run_us(const struct fabric *f, struct rng *rng, struct fabric_plan *plan,
                     double slower);

/* ---- what is measured ---- */

/* One collective of the first n ranks, alone, from a common start: the time until the last has ended. */
double fabric_collective_us(const struct fabric *f, struct rng *rng, enum fabric_what what,
                            size_t n, double bytes, double slower);

/* The share that an overlap benchmark finds: a sum alone, compute alone that nominally lasts as long, and both from a common start.
 * The slowest rank's times; what both save of their sum, as a share of the shorter. */
double fabric_hidden(const struct fabric *f, struct rng *rng, size_t n, double bytes,
                     double appetite, double slower);

#endif

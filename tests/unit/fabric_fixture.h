/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N processes of a world with a fabric that links each two of them, for tests of any fabric:
 *
 *   struct fabric_fixture x = {.ops = &fabric_tcp, .size = 3, .options = fabric_options(), .run = all_to_all, .arg = &plan};
 *   struct fabric_outcome outcomes[3];
 *   fabric_fixture_run(&x, outcomes);
 *   assert_string_equal(fabric_first_fault(outcomes, 3), "");
 *
 * Rank 0 is the test itself, the others are its children, where no assert may be used: run() returns 0 or fabric_fault().
 */
#ifndef PLUMB_TESTS_UNIT_FABRIC_FIXTURE_H
#define PLUMB_TESTS_UNIT_FABRIC_FIXTURE_H

#include "core/wire/fabric.h"

struct fabric_outcome {
    int rc;
    char text[FABRIC_ERROR_BYTES];
};

struct fabric_party {
    struct world *world;
    struct fabric *fabric;
    unsigned rank, size;
    void *arg;
    struct fabric_outcome outcome;
};

struct fabric_fixture {
    const struct fabric_ops *ops;
    unsigned size;
    struct fabric_options options;
    int (*prepare)(
        struct fabric_party *p);        /* after open, before links: registers memory; or NULL */
    int (*run)(struct fabric_party *p); /* after join; NULL: that is all */
    void *arg;
};

/* Messages of up to 3 MiB, nothing special; crowded where there are more ranks than CPUs. */
struct fabric_options fabric_options(unsigned ranks);

/* 0 where every rank's outcome is; else the first fault's rc. An outcome of a rank that died says so. */
int fabric_fixture_run(const struct fabric_fixture *x, struct fabric_outcome *outcomes);
/* "": none; else "rank 2: ..." */
const char *fabric_first_fault(const struct fabric_outcome *outcomes, unsigned size);

/* Keeps the sentence and returns err. */
int fabric_fault(struct fabric_party *p, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct fabric_link *fabric_link_to(struct fabric_party *p, unsigned rank);

/* Progress until so much is through on that link, at most 20 s. */
int fabric_until(struct fabric_party *p, const struct fabric_link *l, uint64_t sent,
                 uint64_t received);

/* All ranks wait for each other, not over the fabric. */
int fabric_barrier(struct fabric_party *p);

/* All to all: `messages` to and from each peer, of 1 byte to `most`, up to `depth` posted at once; all data compared, all counters checked. A
 * run(); arg: struct fabric_traffic. */
struct fabric_traffic {
    unsigned messages, depth;
    uint64_t most;
    uint64_t seed;
    uint64_t wait_ns; /* of each progress() */
};
int fabric_all_to_all(struct fabric_party *p);

#endif

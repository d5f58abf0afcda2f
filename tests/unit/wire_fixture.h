/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N processes of a world with a wire that links each two of them, for tests of any wire:
 *
 *   struct wire_fixture x = {.ops = &wire_tcp, .size = 3, .options = wire_options(), .run = all_to_all, .arg = &plan};
 *   assert_string_equal(wire_fixture_fault(&x), "");
 *
 * Rank 0 is the test itself, the others are its children, where no assert may be used: run() returns 0 or wire_fault().
 */
#ifndef PLUMB_TESTS_UNIT_WIRE_FIXTURE_H
#define PLUMB_TESTS_UNIT_WIRE_FIXTURE_H

#include "core/wire/wire.h"

struct wire_outcome {
    int rc;
    char text[WIRE_ERROR_BYTES];
};

struct wire_party {
    struct world *world;
    struct wire *wire;
    unsigned rank, size;
    void *arg;
    struct wire_outcome outcome;
};

struct wire_fixture {
    const struct wire_ops *ops;
    unsigned size;
    struct wire_options options;
    int (*prepare)(struct wire_party *p); /* after open, before links: registers memory; or NULL */
    int (*run)(struct wire_party *p);     /* after join; NULL: that is all */
    void *arg;
};

/* Messages of up to 3 MiB, nothing special; crowded where there are more ranks than CPUs. */
struct wire_options wire_options(unsigned ranks);

/* 0 where every rank's outcome is; else the first fault's rc. An outcome of a rank that died says so. */
int wire_fixture_run(const struct wire_fixture *x, struct wire_outcome *outcomes);
/* The same: "", or the first fault, "rank 2: ...", as wire_first_fault() tells it of outcomes. */
const char *wire_fixture_fault(const struct wire_fixture *x);
const char *wire_first_fault(const struct wire_outcome *outcomes, unsigned size);

/* Keeps the sentence and returns err. */
int wire_fault(struct wire_party *p, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct wire_link *wire_link_to(struct wire_party *p, unsigned rank);

/* Progress until so much is through on that link, at most 20 s. */
int wire_until(struct wire_party *p, const struct wire_link *l, uint64_t sent, uint64_t received);

/* All ranks wait for each other, not over the wire. */
int wire_barrier(struct wire_party *p);

/* All wires that need no device, but those that this system refuses; how many. */
#define WIRES_MAX 3
unsigned wire_fixture_wires(const struct wire_ops *wires[WIRES_MAX]);

/* All to all: `messages` to and from each peer, of 1 byte to `most`, up to `depth` posted at once; all data compared, all counters checked. A
 * run(); arg: struct wire_traffic. */
struct wire_traffic {
    unsigned messages, depth;
    uint64_t most;
    uint64_t seed;
    uint64_t wait_ns; /* of each progress() */
};
int wire_all_to_all(struct wire_party *p);

#endif

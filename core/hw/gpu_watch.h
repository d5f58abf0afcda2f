/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU's management library says while a case runs: clocks, temperature, power, why it runs
 * slower than it could. Only read, by the PCI address of the device; where there is no such library
 * nothing is known. A look costs up to a few ms, so that timed code looks only while it waits for
 * the device anyway, and not more often than GPU_WATCH_EVERY_NS.
 */
#ifndef PLUMB_CORE_HW_GPU_WATCH_H
#define PLUMB_CORE_HW_GPU_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/ledger.h"

#define GPU_WATCH_EVERY_NS 100000000u
#define GPU_WATCH_MAX      16  /* devices of one case */
#define GPU_POWER_UPDATE_S 0.1 /* between two updates of a counter of energy, about */
#define GPU_POWER_LEAST_S  (3 * GPU_POWER_UPDATE_S) /* of less time no mean power is told */

struct gpu_watch;

struct nvml;

struct gpu_watch *gpu_watch_open(void);
/* Asks this one, which stays the caller's (nvml.h). */
struct gpu_watch *gpu_watch_open_on(const struct nvml *nvml);
void gpu_watch_close(struct gpu_watch *watch);
void gpu_watch_clear(struct gpu_watch *watch);                    /* forgets the devices */
void gpu_watch_add(struct gpu_watch *watch, const char *address); /* a PCI address */

bool gpu_watch_simulated(struct gpu_watch *watch); /* the library is a stand-in */
/* Why a device is not watched; "" where all are. */
const char *gpu_watch_blind(const struct gpu_watch *watch);

void gpu_watch_begin(struct gpu_watch *watch); /* sampling begins: what counts up is read */
/* Now, if the last look is long enough ago; returns whether it did. */
bool gpu_watch_look(struct gpu_watch *watch);
/* Sampling ended. */
void gpu_watch_end(struct gpu_watch *watch, struct gpu_ledger *out);
/* Why a device was held back at some time from `from_ns` to `to_ns` (clock_now_ns(), since the last
 * begin), as bits; 0: not seen to be. Two looks tell nothing of the time between them: what either
 * found, or a counter that grew, holds for all of it. After the last look, what that one found. */
unsigned gpu_watch_held(const struct gpu_watch *watch, uint64_t from_ns, uint64_t to_ns);
/* Such bits in words; "" for none, and of those of settings. Returns text. */
const char *gpu_watch_reasons(unsigned seen, char *text, size_t len);
void gpu_ledger_none(struct gpu_ledger *out);
/* Adds what was seen of other devices, by another process it may be: their lowest and highest,
 * looks and errors in sum. Samples stay. */
void gpu_ledger_add(struct gpu_ledger *l, const struct gpu_ledger *more);
/* The same, seen of the same devices: each process reads the same counters of errors, so the most
 * that one saw counts. */
void gpu_ledger_add_same(struct gpu_ledger *l, const struct gpu_ledger *more);

/* What one process saw of its GPU. */
struct gpu_sight {
    unsigned machine;    /* equal where it is the same one */
    const char *address; /* PCI address; "": it has none */
    const struct gpu_ledger *ledger;
};

/* What all but sights[0] saw: *same of its GPU, *others of other GPUs, each GPU's errors counted
 * once. sights[0] needs no ledger. */
void gpu_ledger_join(const struct gpu_sight *sights, size_t n, struct gpu_ledger *same,
                     struct gpu_ledger *others);
/* What another process told can be: texts end, counts are none below 0. */
bool gpu_ledger_sound(struct gpu_ledger *l);
/* The sentence for a row that was disturbed: "GPU held back in 12 of 30 looks (power cap), 37 of
 * 200 samples"; "" when
 * it was not. */
const char *gpu_ledger_disturbance(const struct gpu_ledger *l, char *text, size_t len);

/* When the GPUs of a case were held back, and by what: what gpu_watch.c found out, for each
 * sample. */

#define GPU_HELD_WINDOWS 512

struct gpu_held {
    struct {
        uint64_t from_ns, to_ns;
        unsigned reasons;
    } windows[GPU_HELD_WINDOWS]; /* in order of both ends; they may overlap */
    size_t n;
    unsigned always;
};

/* Held back at some time between these, neither of which is before the one added last. When there
 * are too many, the last one becomes longer: it may say too much, never too little. 0: nothing is
 * added. */
void gpu_held_add(struct gpu_held *held, uint64_t from_ns, uint64_t to_ns, unsigned reasons);
unsigned gpu_held_between(const struct gpu_held *held, uint64_t from_ns, uint64_t to_ns);

#endif

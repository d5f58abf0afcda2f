/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is shown of a machine, and of the program that measured on it: one table for the page of a
 * report, for what differs between runs (compare, history), and for how near a reference machine is.
 *
 * Whatever a run.json holds, the texts are facts, or "" where it does not tell. They live in the
 * pool, or in run.json.
 */
#ifndef PLUMB_REPORT_FACTS_H
#define PLUMB_REPORT_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/document/pool.h"
#include "harness/machine/fact.h"

#define ON_NETWORK "Network, Collectives" /* what adapters weigh on */

struct shown_fact {
    const char *what;  /* "CPU model" */
    const char *path;  /* in run.json: "machine.cpu.model"; of each device of a list:
                         "machine.gpus.devices[].ecc" */
    const char *unit;  /* " MHz": after a number; "B": it is a size in bytes; NULL: none */
    const char *pipes; /* components that it may weigh on, ", " between; "": all of them */
    /* Of the value, or of one device; NULL: as shown_value(). */
    const char *(*text)(struct pool *pool, const json_t *value);
    /* Of an object: name, `is`, value, with `between` between; NULL: it is no object. Of flags, "",
     * the names of those that are true. */
    const char *is, *between;
    /* On the page; not of what the program was measured in, or it moves by itself; one fact for each
     * model of a list of PCI devices. */
    bool page, aside, models;
    double weight; /* of nearness: of a text that differs, the most of a number; 0: none */
};

extern const struct shown_fact shown_facts[]; /* ends with a NULL `what` */

/* meta: run.json. Of an object, of n other runs, those members alone that are otherwise in one of
 * them; n 0: all. */
const char *shown_text(struct pool *pool, const struct shown_fact *fact, const json_t *meta,
                       const json_t *const *others, size_t n);
/* A value of JSON as people write it: a list's different members each once, true as "on"; "" for
 * null. */
const char *shown_value(struct pool *pool, const json_t *value);
/* "2 x a; b": each text once, with how often; not those that are "". */
const char *shown_counted(struct pool *pool, const char *const *texts, size_t n);
/* Of a PCI device: "PCIe 5.0 x16"; "" where it is not known. */
const char *shown_link(struct pool *pool, const json_t *device);
/* "bare metal", "KVM guest", "docker on bare metal"; "" where it is not known. */
const char *shown_nature(struct pool *pool, const json_t *machine);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine is, from the probe's JSON, as sentences for a page. Every text is in the pool; ""
 * where the JSON says nothing. Keys that lack or are of another type are passed over. */
#ifndef PLUMB_REPORT_FACTS_H
#define PLUMB_REPORT_FACTS_H

#include <jansson.h>

#include "harness/document/pool.h"

struct machine_fact {
    const char *name;
    const char *(*text)(struct pool *pool, const json_t *machine);
};

extern const struct machine_fact machine_facts[]; /* ends with a NULL name */

/* The reasons for "virtual or bare metal" and for the container, as the probe gives them. */
const json_t *machine_because(const json_t *machine, const char *key);

#endif

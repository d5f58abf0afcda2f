/* SPDX-License-Identifier: Apache-2.0 */
/* Joining limits to rows: see join.h. */
#include "harness/run/join.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "harness/run/join_gpu.h"

#define CONDITIONS_MAX 4

struct rule {
    const char *bench, *unit;
    struct {
        const char *column, *value;
    } where[CONDITIONS_MAX];
    bool whole_machine; /* only for rows whose threads fill all cores of the machine, allowed or not
                         */
    const char *key;    /* of the limit */
};

static const struct rule rules[] = {
    /* Threads on every core of all nodes, each with its own memory: all channels of the machine may
       serve them. */
    {"memory",
     "GB/s",
     {{"level", "DRAM"}, {"node", "any"}, {"memory_node", "local"}, {"address", ""}},
     true,
     "dram.gbytes_per_s"},
};

static int applies(const struct rule *r, double cores, const char *bench, const struct table *rows,
                   size_t row)
{
    if (strcmp(r->bench, bench) || strcmp(r->unit, table_text(rows, row, "unit")))
        return 0;
    for (size_t i = 0; i < CONDITIONS_MAX && r->where[i].column; i++)
        if (strcmp(table_text(rows, row, r->where[i].column), r->where[i].value))
            return 0;
    return !r->whole_machine || (cores > 0 && table_number(rows, row, "threads") >= cores);
}

static const json_t *find_limit(const json_t *limits, const char *key)
{
    size_t i;
    const json_t *limit;

    json_array_foreach (limits, i, limit) {
        const char *name = json_string_value(json_object_get(limit, "key"));
        if (name && !strcmp(name, key))
            return limit;
    }
    return NULL;
}

int join_limit(const json_t *limits, double cores, const char *bench, const struct table *rows,
               size_t row, struct joined_limit *out)
{
    if (join_gpu_limit(limits, bench, rows, row, out))
        return 1;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const json_t *limit =
            applies(&rules[i], cores, bench, rows, row) ? find_limit(limits, rules[i].key) : NULL;
        double value = json_number_value(json_object_get(limit, "value"));
        if (!(value > 0))
            continue;
        const char *source = json_string_value(json_object_get(limit, "source"));
        const char *detail = json_string_value(json_object_get(limit, "detail"));
        out->value = value;
        out->percent = 100 * table_number(rows, row, "value") / value;
        snprintf(out->source, sizeof(out->source), "%s%s%s", source ? source : "unknown",
                 detail ? ": " : "", detail ? detail : "");
        return 1;
    }
    return 0;
}

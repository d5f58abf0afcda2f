/* SPDX-License-Identifier: Apache-2.0 */
/* What all backends share: names and sizes, errors, host memory; and their table. */
#include "core/collective/collective.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/group/world.h"
#include "core/hw/host_buffer.h"
#include "core/units.h"

const char *const collective_ops_names[] = {
    "allreduce",    "reduce-scatter", "all-gather", "broadcast", "all-to-all",
    "send-receive", "reduce",         "gather",     "scatter",   NULL};
const char *const collective_type_names[] = {"f32", "f16", "bf16", "f64",  "i32",
                                             "i8",  "i64", "e4m3", "e5m2", NULL};
const char *const collective_register_names[] = {"none", "local", "symmetric", NULL};
const char *const collective_sum_names[] = {"sum", "max", "min", "prod", "avg", NULL};

size_t collective_type_bytes(enum collective_type type)
{
    static const uint8_t bytes[COLLECTIVE_TYPES] = {
        [COLLECTIVE_F32] = 4, [COLLECTIVE_F16] = 2,  [COLLECTIVE_BF16] = 2,
        [COLLECTIVE_F64] = 8, [COLLECTIVE_I32] = 4,  [COLLECTIVE_I8] = 1,
        [COLLECTIVE_I64] = 8, [COLLECTIVE_E4M3] = 1, [COLLECTIVE_E5M2] = 1};

    return bytes[type];
}

uint64_t collective_batch(const struct collective_point *p)
{
    uint64_t pipelined = p->pipelined ? p->pipelined : 1;
    uint64_t aggregated = p->aggregated ? p->aggregated : 1;

    return pipelined * aggregated * (p->graphs ? p->graphs : 1);
}

unsigned collective_each(const struct collective_point *p)
{
    return p->per_process ? p->per_process : 1;
}

bool collective_reduces(enum collective_op op)
{
    return op == COLLECTIVE_ALLREDUCE || op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_REDUCE;
}

bool collective_has_blocks(enum collective_op op)
{
    return op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_ALL_GATHER ||
           op == COLLECTIVE_ALL_TO_ALL || op == COLLECTIVE_GATHER || op == COLLECTIVE_SCATTER;
}

bool collective_has_root(enum collective_op op)
{
    return op == COLLECTIVE_BROADCAST || op == COLLECTIVE_REDUCE || op == COLLECTIVE_GATHER ||
           op == COLLECTIVE_SCATTER;
}

bool collective_has_result(const struct collective_point *p, unsigned me)
{
    return me == p->root || (p->op != COLLECTIVE_REDUCE && p->op != COLLECTIVE_GATHER);
}

double collective_bus_factor(enum collective_op op, unsigned n)
{
    double others = n > 1 ? (double)(n - 1) / n : 0;

    if (op == COLLECTIVE_ALLREDUCE)
        return 2 * others;
    if (op == COLLECTIVE_BROADCAST || op == COLLECTIVE_SEND_RECEIVE || op == COLLECTIVE_REDUCE)
        return n > 1 ? 1 : 0;
    return others;
}

uint64_t collective_input_count(enum collective_op op, uint64_t count, unsigned n)
{
    return op == COLLECTIVE_ALL_GATHER || op == COLLECTIVE_GATHER ? count / n : count;
}

uint64_t collective_result_count(enum collective_op op, uint64_t count, unsigned n)
{
    return op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_SCATTER ? count / n : count;
}

struct collective_load collective_load(const struct world *w, enum collective_op op,
                                       const unsigned *members, unsigned n, unsigned root,
                                       unsigned node)
{
    bool at_root = world_member(w, members[root])->node == node;
    double all = n, here = 0, out = 0, in = 0; /* of a ring's neighbours, who crosses */

    for (unsigned i = 0; i < n; i++) {
        bool is_here = world_member(w, members[i])->node == node;
        bool next = world_member(w, members[(i + 1) % n])->node == node;
        here += is_here;
        out += is_here && !next;
        in += !is_here && next;
    }
    double there = all - here;
    if (!(here > 0 && there > 0))
        return (struct collective_load){0};
    switch (op) {
    case COLLECTIVE_REDUCE_SCATTER: /* what it adds to the others' blocks; its own from them */
        return (struct collective_load){there / all, here / all};
    case COLLECTIVE_ALL_GATHER:
        return (struct collective_load){here / all, there / all};
    case COLLECTIVE_ALL_TO_ALL:
        return (struct collective_load){here * there / all, here * there / all};
    case COLLECTIVE_GATHER: /* all to the root's node */
        return at_root ? (struct collective_load){0, there / all}
                       : (struct collective_load){here / all, 0};
    case COLLECTIVE_SCATTER:
        return at_root ? (struct collective_load){there / all, 0}
                       : (struct collective_load){0, here / all};
    case COLLECTIVE_BROADCAST:
        return at_root ? (struct collective_load){1, 0} : (struct collective_load){0, 1};
    case COLLECTIVE_REDUCE:
        return at_root ? (struct collective_load){0, 1} : (struct collective_load){1, 0};
    case COLLECTIVE_SEND_RECEIVE:
        return (struct collective_load){out, in};
    default: /* the others' sum comes in, this node's goes out */
        return (struct collective_load){1, 1};
    }
}

int collective_fail(struct collective *c, int err, const char *format, ...)
{
    va_list args;

    if (c->error[0])
        return err;
    va_start(args, format);
    vsnprintf(c->error, sizeof(c->error), format, args);
    va_end(args);
    return err;
}

#define HUGE_MOST 0.95 /* of the pages: then it is said of all */

struct held {
    struct host_buffer input, result;
};

/* The kernel promises more than it has, and ends processes when they ask for it. */
static int check_room(struct collective *c, uint64_t bytes)
{
    uint64_t available = host_available();
    const struct world_member *me = world_member(c->world, c->members[c->me]);
    unsigned here = 0;
    char needs[24], has[24];

    for (unsigned i = 0; i < c->n; i++)
        here += world_member(c->world, c->members[i])->node == me->node;
    if (!here || bytes <= available / here)
        return 0;
    units_format_size(bytes * here, needs, sizeof(needs));
    units_format_size(available, has, sizeof(has));
    return collective_fail(c, -ENOMEM,
                           "the buffers of %u ranks on '%s' need %s bytes, and %s are free: take a "
                           "smaller size",
                           here, me->host, needs, has);
}

int collective_host_alloc(struct collective *c)
{
    const struct collective_point *p = c->point;
    size_t size = collective_type_bytes(p->type);
    uint64_t input = collective_input_count(p->op, p->count, c->n) * size;
    uint64_t result = collective_result_count(p->op, p->count, c->n) * size;
    char error[160] = "";

    if (p->in_place) { /* the vector, whatever part of it is whose */
        result = p->count * size;
        input = 0;
    }
    int err = check_room(c, input + result);
    if (err)
        return err;
    struct held *h = c->held = xcalloc(1, sizeof(*h));
    err = host_alloc(&h->result, c->topo, result, HOST_PAGES_THP, -1, error, sizeof(error));
    if (!err && input)
        err = host_alloc(&h->input, c->topo, input, HOST_PAGES_THP, -1, error, sizeof(error));
    if (err) {
        collective_host_free(c);
        return collective_fail(c, err, "%s", error);
    }
    c->result = h->result.at;
    c->input = input ? h->input.at : h->result.at;
    return 0;
}

void collective_host_free(struct collective *c)
{
    struct held *h = c->held;

    if (!h)
        return;
    host_free(&h->input);
    host_free(&h->result);
    free(h);
    c->held = NULL;
    c->input = c->result = NULL;
}

const char *collective_host_pages(const struct collective *c)
{
    const struct held *h = c->held;
    struct host_where where;

    if (!h)
        return "";
    const struct host_buffer buffers[] = {h->result, h->input};
    host_where(buffers, h->input.at ? 2 : 1, &where);
    double share = host_huge_share(&where);
    if (isnan(share))
        return "";
    return share >= HUGE_MOST ? "thp" : share <= 1 - HUGE_MOST ? "base" : "base+thp";
}

/* --- the table of backends --- */

#define COLLECTIVE_OPS(symbol, name)  &collective_##symbol,
#define COLLECTIVE_NAME(symbol, name) name,

static const struct collective_ops *const backends[] = {COLLECTIVE_BACKENDS(COLLECTIVE_OPS)};
const char *const collective_names[] = {COLLECTIVE_BACKENDS(COLLECTIVE_NAME) NULL};

const struct collective_ops *collective_find(const char *name)
{
    for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++)
        if (!strcmp(name, backends[i]->name))
            return backends[i];
    return NULL;
}

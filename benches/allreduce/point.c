/* SPDX-License-Identifier: Apache-2.0 */
/* The point that parameters mean: see work.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "benches/allreduce/buckets.h"
#include "benches/allreduce/work.h"
#include "core/wire/fabric.h"

/* Elements that each of n members has a block of, where the operation has blocks. */
static uint64_t whole_blocks(enum collective_op op, uint64_t count, unsigned n)
{
    bool blocks = op == COLLECTIVE_REDUCE_SCATTER || op == COLLECTIVE_ALL_GATHER ||
                  op == COLLECTIVE_ALL_TO_ALL;

    return blocks ? count - count % n : count;
}

static void fill_transport(const struct collective_params *p, struct collective_point *c)
{
    snprintf(c->transport, sizeof(c->transport), "%s", fabric_names[p->transport]);
    c->tcp = (struct net_tcp){.busy_poll_us = (uint32_t)p->busy_poll_us,
                              .buffer_bytes = p->buffer_bytes,
                              .data_port = (uint32_t)p->data_port};
    snprintf(c->tcp.congestion, sizeof(c->tcp.congestion), "%s",
             p->congestion ? p->congestion : "");
    c->rdma = (struct net_rdma){.events = p->completion == 1,
                                .mtu = (uint32_t)p->mtu,
                                .gid_index = p->gid_index,
                                .inline_bytes = -1};
}

static void fill(struct point *pt, const struct collective_params *p, struct collective_point *c)
{
    const struct collective_ops *ops = collective_find(collective_names[p->backend]);

    *c = (struct collective_point){.op = (uint32_t)p->op,
                                   .type = (uint32_t)p->dtype,
                                   .sum = (uint32_t)p->redop,
                                   .inject = (uint32_t)p->inject,
                                   .in_place = p->in_place,
                                   .segment_bytes = p->segment,
                                   .seed = pt->common->seed};
    snprintf(c->backend, sizeof(c->backend), "%s", ops->name);
    snprintf(c->device, sizeof(c->device), "%s", p->device ? p->device : "");
    snprintf(c->algorithm, sizeof(c->algorithm), "%s", p->algorithm ? p->algorithm : "");
    if (ops->own)
        fill_transport(p, c);
}

static int fuse(struct point *pt, const struct collective_params *p, struct collective_call *calls,
                unsigned *n_calls)
{
    struct model model = {0};
    char error[512] = "";
    size_t n = 0;
    int err = buckets_load(p->model, &model, error, sizeof(error));

    if (!err)
        err = buckets_fuse(&model, collective_type_bytes(p->dtype), p->bucket, calls,
                           COLLECTIVE_CALLS_MAX, &n);
    if (err && !error[0])
        snprintf(error, sizeof(error),
                 "'%s' makes more than %d buckets of %llu bytes: give a larger --bucket", p->model,
                 COLLECTIVE_CALLS_MAX, (unsigned long long)p->bucket);
    buckets_release(&model);
    *n_calls = (unsigned)n;
    return err ? point_reason(pt, err == -E2BIG ? -EOPNOTSUPP : err, "%s", error) : 0;
}

int collective_point_of(struct point *pt, unsigned n, struct collective_point *c,
                        struct collective_call *calls, unsigned *n_calls)
{
    const struct collective_params *p = pt->params;
    uint64_t bytes = p->scaling == COLLECTIVE_STRONG ? p->size / n : p->size;
    uint64_t elements = bytes / collective_type_bytes(p->dtype);

    fill(pt, p, c);
    if (p->device && strlen(p->device) >= sizeof(c->device))
        return point_reason(pt, -EOPNOTSUPP, "'%.60s...' names more devices than can be told",
                            p->device);
    if (p->model && p->model[0]) {
        int err = fuse(pt, p, calls, n_calls);
        for (unsigned i = 0; !err && i < *n_calls; i++) {
            uint64_t end = calls[i].first + calls[i].count;
            c->count = end > c->count ? end : c->count;
        }
        return err;
    }
    c->count = whole_blocks(p->op, elements, n);
    calls[0] = (struct collective_call){.first = 0, .count = c->count};
    *n_calls = 1;
    if (!c->count)
        return point_reason(pt, -EOPNOTSUPP,
                            "%llu bytes are less than one element (%zu bytes) for each of %u ranks",
                            (unsigned long long)bytes, collective_type_bytes(p->dtype), n);
    if (p->in_place && (p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE))
        return point_reason(pt, -EOPNOTSUPP, "%s is not done in place: leave --in-place out",
                            collective_ops_names[p->op]);
    return 0;
}

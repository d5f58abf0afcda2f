/* SPDX-License-Identifier: Apache-2.0 */
/* What the ports' own counters say since the ends joined: of the whole port, whoever else uses it. */
#include <stdio.h>

#include "core/wire/rdma/rdma.h"

void rdma_facts_begin(struct rdma_end *r)
{
    for (unsigned i = 0; i < r->n_rails; i++)
        rdma_sysfs_counters(&r->rails[i], r->rails[i].counters);
}

size_t rdma_facts(struct net_end *e, struct net_fact *facts)
{
    const struct rdma_end *r = rdma_of(e);
    uint64_t sums[RDMA_COUNTERS] = {0};
    bool told[RDMA_COUNTERS] = {false};
    size_t n = 0;

    for (unsigned i = 0; i < r->n_rails; i++) {
        uint64_t now[RDMA_COUNTERS];
        rdma_sysfs_counters(&r->rails[i], now);
        for (int c = 0; c < RDMA_COUNTERS; c++)
            if (now[c] != UINT64_MAX && r->rails[i].counters[c] != UINT64_MAX) {
                sums[c] += now[c] - r->rails[i].counters[c];
                told[c] = true;
            }
    }
    for (int c = 0; c < RDMA_COUNTERS; c++) {
        if (!told[c])
            continue;
        facts[n] = (struct net_fact){.unit = "count", .value = (double)sums[c]};
        snprintf(facts[n++].metric, sizeof(facts->metric), "%s", rdma_counter_names[c]);
    }
    return n;
}

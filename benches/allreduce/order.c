/* SPDX-License-Identifier: Apache-2.0 */
/* Orders as they come from rank 0, which proved who it is, not that what it says is sound. */
#include "benches/allreduce/order.h"

#define END(text) ((text)[sizeof(text) - 1] = 0)

bool order_sound(struct collective_order *order, unsigned world_size)
{
    struct collective_point *p = &order->point;

    END(p->backend);
    END(p->transport);
    END(p->device);
    END(p->algorithm);
    END(p->tcp.congestion);
    return p->op < COLLECTIVE_OPS && p->type < COLLECTIVE_TYPES && p->sum <= COLLECTIVE_MAX &&
           p->inject <= COLLECTIVE_ABSENT && p->count &&
           p->count <= COLLECTIVE_BYTES_MAX / collective_type_bytes(p->type) && order->n &&
           order->n <= world_size && order->me < order->n && order->n_calls &&
           order->n_calls <= COLLECTIVE_CALLS_MAX && order->seat < order->seats &&
           order->seats <= WORLD_RANKS_MAX;
}

bool members_sound(const struct collective_order *order, const uint32_t *members, unsigned rank,
                   unsigned world_size)
{
    bool seen[WORLD_RANKS_MAX] = {false}, sound = members[0] == 0 && members[order->me] == rank;

    for (unsigned i = 0; sound && i < order->n; i++) {
        sound = members[i] < world_size && !seen[members[i]];
        if (sound)
            seen[members[i]] = true;
    }
    return sound;
}

bool calls_sound(const struct collective_point *p, const struct collective_call *calls, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!calls[i].count || calls[i].count > p->count ||
            calls[i].first > p->count - calls[i].count)
            return false;
    return true;
}

/* FNV-1a over what decides the layout. */
uint32_t session_protocol(void)
{
    static const uint32_t layout[] = {
        5, /* of the requests: raise it when their order or meaning changes */
        sizeof(struct world_member),
        sizeof(struct collective_echo),
        sizeof(struct collective_hello),
        sizeof(struct collective_order),
        sizeof(struct collective_call),
        sizeof(struct collective_times),
        sizeof(struct collective_account),
        sizeof(struct collective_claims),
        sizeof(struct collective_proof),
        sizeof(struct session_run),
        sizeof(struct collective_reply),
        __BYTE_ORDER__,
        sizeof(long)};
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof(layout); i++)
        hash = (hash ^ ((const unsigned char *)layout)[i]) * 16777619u;
    return hash;
}

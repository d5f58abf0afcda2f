/* SPDX-License-Identifier: Apache-2.0 */
/* Orders as they come from rank 0, which proved who it is, not that what it says is sound. */
#include "benches/allreduce/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* --- lists of addresses, packed --- */

struct head {
    uint32_t member, len;
};

static int make_room(struct card_list *l, size_t more)
{
    size_t room = l->room ? l->room : 1024;

    if (l->len + more <= l->room)
        return 0;
    while (room < l->len + more)
        room *= 2;
    void *bytes = realloc(l->bytes, room);
    if (!bytes)
        return -ENOMEM;
    l->bytes = bytes;
    l->room = room;
    return 0;
}

int cards_add(struct card_list *l, unsigned member, const void *card, size_t len)
{
    struct head h = {member, (uint32_t)len};

    if (len > COLLECTIVE_CARD_MAX)
        return -EMSGSIZE;
    int err = make_room(l, sizeof(h) + len);
    if (err)
        return err;
    memcpy(l->bytes + l->len, &h, sizeof(h));
    if (len)
        memcpy(l->bytes + l->len + sizeof(h), card, len);
    l->len += sizeof(h) + len;
    l->n++;
    return 0;
}

/* The size of the card that begins here, head and all; 0: none does. */
static size_t card_size(const uint8_t *bytes, size_t left, struct head *h)
{
    if (left < sizeof(*h))
        return 0;
    memcpy(h, bytes, sizeof(*h));
    if (h->len > COLLECTIVE_CARD_MAX || h->len > left - sizeof(*h))
        return 0;
    return sizeof(*h) + h->len;
}

int cards_take(struct card_list *l, const void *frame, size_t len, unsigned members)
{
    const uint8_t *bytes = frame;
    unsigned n = 0;
    struct head h;

    for (size_t at = 0, size; at < len; at += size, n++) {
        size = card_size(bytes + at, len - at, &h);
        if (!size || h.member >= members || l->n + n >= members)
            return -EPROTO;
    }
    int err = make_room(l, len);
    if (err || !len)
        return err;
    memcpy(l->bytes + l->len, frame, len);
    l->len += len;
    l->n += n;
    return 0;
}

bool cards_next(const struct card_list *l, size_t *at, unsigned *member, const uint8_t **card,
                size_t *len)
{
    struct head h;
    size_t size = *at < l->len ? card_size(l->bytes + *at, l->len - *at, &h) : 0;

    if (!size)
        return false;
    *member = h.member;
    *card = l->bytes + *at + sizeof(h);
    *len = h.len;
    *at += size;
    return true;
}

int cards_send(struct channel *c, uint16_t type, const struct card_list *l)
{
    const uint8_t *card;
    size_t begin = 0, at = 0, len;
    unsigned member;
    int err = 0;

    while (!err && begin < l->len) {
        size_t end = begin;
        while (cards_next(l, &at, &member, &card, &len) && at - begin <= CHANNEL_FRAME_MAX)
            end = at;
        err = channel_send(c, type, l->bytes + begin, end - begin);
        begin = at = end;
    }
    return err;
}

void cards_free(struct card_list *l)
{
    free(l->bytes);
    *l = (struct card_list){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What is held to have gone through a claimed device, by what its driver counts. */
#include <math.h>
#include <string.h>

#include "core/net/path_parts.h"

#define DEFAULT_SEGMENT 1400.0
#define NARROW_BYTES    (4 * 4294967296.0)

bool path_is_none(const struct path_device *d)
{
    return !d->name[0] || !strcmp(d->name, "shm");
}

double path_segment_bytes(const struct path_device *d)
{
    double segment = d->mtu_bytes > 0 ? d->mtu_bytes : DEFAULT_SEGMENT;

    return d->message_bytes > 0 && d->message_bytes < segment ? d->message_bytes : segment;
}

/* Payload of packets that are full but for the last of each message: the most that so many can have carried. */
static double of_packets(const struct path_device *d, double packets)
{
    double message = d->message_bytes > 0 ? d->message_bytes : path_segment_bytes(d);

    return packets * message / ceil(message / path_segment_bytes(d));
}

static const struct path_device *own_interface(const struct path_view *v,
                                               const struct path_device *d)
{
    return d->port && d->facts.interface[0] ? path_find(v, d->facts.interface) : NULL;
}

static const struct moved *own_bytes(const struct path_view *v, const struct path_device *d)
{
    const struct path_device *i = own_interface(v, d);

    return i && i->moved.known ? &i->moved : NULL;
}

static bool is_infiniband(const struct path_device *d)
{
    return d->port && !strcmp(d->facts.link_layer, "InfiniBand");
}

static double carried_bytes(const struct path_view *v, const struct path_device *d, int way)
{
    const struct moved *m = &d->moved, *interface = own_bytes(v, d);
    double claim = d->claim[PATH_BYTES][way];
    double packets = m->packets_known ? of_packets(d, m->packets[way]) : NAN;

    if (m->known && is_infiniband(d) && interface)
        return fmax(0, m->bytes[way] - interface->bytes[way]); /* less IPoIB */
    if (m->known && m->narrow && claim >= NARROW_BYTES && packets >= m->bytes[way])
        return packets;
    if (m->known)
        return m->bytes[way];
    /* rxe: packets say that it was rxe, the interface how many bytes. Between two of its own queue pairs there is none. */
    if (m->packets_known && interface && packets >= PATH_MET * claim &&
        interface->bytes[way] >= PATH_MET * claim)
        return interface->bytes[way];
    if (m->packets_known)
        return packets;
    return d->facts.software && interface ? interface->bytes[way] : NAN;
}

static double carried_packets(const struct path_view *v, const struct path_device *d, int way)
{
    const struct path_device *i = own_interface(v, d);
    const struct moved *interface = i && i->moved.packets_known ? &i->moved : NULL;

    if (d->moved.packets_known && is_infiniband(d) && interface)
        return fmax(0, d->moved.packets[way] - interface->packets[way]);
    if (d->moved.packets_known)
        return d->moved.packets[way];
    return d->facts.software && interface ? interface->packets[way] : NAN;
}

/* Soft-iWARP is TCP: between two ends on one machine the kernel takes lo, whatever interface the device is on. */
static void take_lo(struct path_view *v, struct path_device *d)
{
    const struct moved *own = own_bytes(v, d);
    struct path_device *lo = path_find(v, "lo");
    bool met = true, by_lo = true;

    if (strcmp(d->facts.driver, "siw") != 0 || !lo || !lo->moved.known || !own)
        return;
    for (int way = 0; way < COUNTER_WAYS; way++) {
        met &= own->bytes[way] >= PATH_MET * d->claim[PATH_BYTES][way];
        by_lo &= lo->moved.bytes[way] >= PATH_MET * d->claim[PATH_BYTES][way];
    }
    if (met || !by_lo)
        return;
    strcpy(d->facts.interface, "lo");
    lo->same_bytes = true;
}

/* All of them together. A device in software counts nothing that tells without a claim of its own. */
static void carry_set(struct path_view *v)
{
    struct path_device *set = &v->set;

    memset(set->got, 0, sizeof(set->got));
    set->moved = (struct moved){.known = true};
    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *d = &v->list[i];
        for (int by = 0; by < PATH_MEASURES && d->in_set; by++)
            for (int way = 0; way < COUNTER_WAYS; way++)
                set->got[by][way] += d->facts.software ? NAN : d->got[by][way];
        set->moved.at_least |= d->in_set && d->moved.at_least;
    }
}

void path_carry(struct path_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->list[i].claimed)
            take_lo(v, &v->list[i]);
    for (size_t i = 0; i < v->n; i++) {
        struct path_device *d = &v->list[i];
        for (int way = 0; way < COUNTER_WAYS && d->claimed; way++) {
            d->got[PATH_BYTES][way] = path_is_none(d) ? 0 : carried_bytes(v, d, way);
            d->got[PATH_PACKETS][way] = path_is_none(d) ? 0 : carried_packets(v, d, way);
        }
    }
    if (v->set.name[0])
        carry_set(v);
}

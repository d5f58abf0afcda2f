/* SPDX-License-Identifier: Apache-2.0 */
/* What moved, and which devices moved it: see path.h. */
#include "core/hw/path.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/evidence.h"
#include "core/hw/nic_sys.h"
#include "core/hw/path_parts.h"

/* ---- The words of a proof. ---- */

#define MOST_DEVICES 3
#define WORTH_SAYING 0.01 /* of what the first one moved */

void path_say(struct path_words *w, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(w->text + w->used, w->len - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used += (size_t)n < w->len - w->used ? (size_t)n : w->len - w->used - 1;
}

void path_carried_by(struct path_words *w, const struct path_device *d)
{
    if (w->carriers)
        return;
    if (strchr(d->name, ':')) /* of a port, or several of them together */
        w->carriers = CARRIER_RDMA;
    else
        w->carriers = strcmp(d->name, "lo") ? CARRIER_SOCKETS : CARRIER_LOOPBACK;
}

struct path_amount path_amount(const struct path_view *v, double amount)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    struct path_amount a;
    size_t i = 0;

    if (v->by == PATH_PACKETS) {
        snprintf(a.text, sizeof(a.text), "%.0f packets", amount);
        return a;
    }
    for (; amount >= 999.5 && i < 4; i++)
        amount /= 1e3;
    snprintf(a.text, sizeof(a.text), amount >= 100 ? "%.0f %s" : "%.3g %s", amount, units[i]);
    return a;
}

static bool is_before(const struct path_device *a, const struct path_device *b)
{
    double moved_a = path_sum(a->moved.bytes), moved_b = path_sum(b->moved.bytes);

    return moved_a > moved_b || (moved_a == moved_b && a < b);
}

/* The one that comes after `last` in order of bytes; NULL: the first of all. */
static const struct path_device *next_most(const struct path_view *v,
                                           const struct path_device *last)
{
    const struct path_device *most = NULL;

    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *d = &v->list[i];
        bool counts = d->moved.known && !d->same_bytes && d != last;
        if (counts && (!last || is_before(last, d)) && (!most || is_before(d, most)))
            most = d;
    }
    return most;
}

/* The devices that moved most, most first. */
static void path_say_most(const struct path_view *v, struct path_words *w)
{
    const struct path_device *first = next_most(v, NULL), *d = first;

    for (int i = 0; d && i < MOST_DEVICES; i++, d = next_most(v, d)) {
        double moved = path_sum(d->moved.bytes);
        bool worth = d == first || moved >= WORTH_SAYING * path_sum(first->moved.bytes);
        if (worth && moved > 0) {
            path_carried_by(w, d);
            path_say(w, "%s%s sent %s, received %s", w->used ? "; " : "", d->name,
                     path_amount(v, d->moved.bytes[COUNTER_OUT]).text,
                     path_amount(v, d->moved.bytes[COUNTER_IN]).text);
        } else if (worth || !strcmp(d->name, "lo"))
            path_say(w, "%s%s %s", w->used ? "; " : "", d->name, path_amount(v, moved).text);
    }
    if (!w->used)
        path_say(w, "no device's counters can be read");
}

/* ---- Which devices move the same bytes: by the links that the system shows between interfaces. ---- */

enum { DEPTH_MAX = 6 };

struct descent {
    const char *root, *below;
    unsigned depth;
};

static bool is_above(const char *root, const char *upper, const char *below, unsigned depth);

static int step_down(void *arg, const char *entry)
{
    struct descent *d = arg;

    return !strncmp(entry, "lower_", 6) && is_above(d->root, entry + 6, d->below, d->depth + 1);
}

/* A bond, bridge or VLAN `upper` that stands, over whatever is between, on `below`. */
static bool is_above(const char *root, const char *upper, const char *below, unsigned depth)
{
    struct descent d = {root, below, depth};

    if (sys_exists(root, "sys/class/net/%s/lower_%s", upper, below))
        return true;
    return depth < DEPTH_MAX && sys_list(root, step_down, &d, "sys/class/net/%s", upper) != 0;
}

/* Does `d` move what the claimed device `c` moves? */
static bool moves_same(const struct path_view *v, const struct path_device *d,
                       const struct path_device *c)
{
    if (c->port)
        return !d->port && c->facts.software && !strcmp(c->facts.interface, d->name);
    if (d->port)
        return !strcmp(d->facts.link_layer, "InfiniBand") && !strcmp(d->facts.interface, c->name);
    return is_above(v->root, d->name, c->name, 0) || is_above(v->root, c->name, d->name, 0);
}

/* Over another interface of the list, which counts the bytes already. */
static bool is_stacked(const struct path_view *v, const struct path_device *d)
{
    for (size_t i = 0; i < v->n && !d->port; i++)
        if (!v->list[i].port && &v->list[i] != d && is_above(v->root, d->name, v->list[i].name, 0))
            return true;
    return false;
}

/* Marks the devices that move the same bytes as another. */
static void path_relate(struct path_view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct path_device *d = &v->list[i];
        if (d->claimed)
            continue;
        d->same_bytes = is_stacked(v, d);
        for (size_t k = 0; k < v->n && !d->same_bytes; k++)
            d->same_bytes = v->list[k].claimed && moves_same(v, d, &v->list[k]);
    }
}

/* ---- What is held to have gone through a claimed device, by what its driver counts. ---- */

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

/* ---- Proof of the path: see path.h. Here the counters become a list of devices with what they moved and what is claimed of them. ---- */

#define LOOK_AGAIN_NS 100000000

struct path {
    const char *root;
    uint64_t settle_ns;
    bool settled; /* so long has been waited, and bytes were missing still */
    struct counters before;
};

int path_begin_at(struct path **p, const char *root, uint64_t settle_ns)
{
    struct path *new = calloc(1, sizeof(*new));
    int rc = new ? counters_read(&new->before, root) : -ENOMEM;

    if (rc) {
        free(new);
        return rc;
    }
    new->root = root;
    new->settle_ns = settle_ns;
    *p = new;
    return 0;
}

int path_begin(struct path **p)
{
    return path_begin_at(p, NULL, PATH_SETTLE_NS);
}

void path_close(struct path *p)
{
    if (p)
        counters_free(&p->before);
    free(p);
}

struct path_device *path_find(const struct path_view *v, const char *name)
{
    for (size_t i = 0; i < v->n; i++)
        if (!strcmp(v->list[i].name, name))
            return &v->list[i];
    return NULL;
}

bool path_is_interfaces(const struct path *p, const char *devices)
{
    char name[PATH_DEVICES_BYTES], device[NIC_NAME];
    unsigned port;

    for (const char *at = devices; *at; at += *at == '+') {
        size_t n = strcspn(at, "+");
        snprintf(name, sizeof(name), "%.*s", (int)n, at);
        if (!nic_parse_port(p->root, name, device, &port))
            return false;
        at += n;
    }
    return devices[0];
}

static struct path_device *add_device(struct path_view *v, const char *name)
{
    struct path_device *d = &v->list[v->n++];
    char device[NIC_NAME];
    unsigned port;

    *d = (struct path_device){0};
    snprintf(d->name, sizeof(d->name), "%s", name);
    d->port = strchr(name, ':') && !nic_parse_port(v->root, name, device, &port);
    if (d->port)
        nic_read_port(v->root, device, port, &d->facts);
    return d;
}

/* By any of its names. */
static struct path_device *find_or_add(struct path_view *v, const char *claimed, size_t len)
{
    char name[sizeof(v->list->name)], device[NIC_NAME];
    struct path_device *d;
    unsigned port;

    snprintf(name, sizeof(name), "%.*s", (int)(len < 61 ? len : 61), claimed);
    /* "mlx5_0" is its first port. */
    if (!path_find(v, name) && !strchr(name, ':') && !nic_parse_port(v->root, name, device, &port))
        strcat(name, ":1");
    d = path_find(v, name);
    if (!d)
        d = add_device(v, name);
    d->claimed = true;
    return d;
}

static unsigned devices_of(const struct path_claim *claim)
{
    unsigned n = 1;

    for (const char *at = claim->device; (at = strchr(at, '+')); at++)
        n++;
    return n;
}

/* Of devices that are claimed together none is claimed alone. */
static struct path_device *add_set(struct path_view *v, const struct path_claim *claim)
{
    for (const char *at = claim->device; *at; at += *at == '+') {
        size_t n = strcspn(at, "+");
        find_or_add(v, at, n)->in_set = true;
        at += n;
    }
    snprintf(v->set.name, sizeof(v->set.name), "%.63s", claim->device);
    v->set.claimed = true;
    return &v->set;
}

/* Of several claims on one device the messages of the last one count; they are of one point, so of one size. */
static void add_claim(struct path_view *v, const struct path_claim *claim)
{
    struct path_device *d = devices_of(claim) > 1
                                ? add_set(v, claim)
                                : find_or_add(v, claim->device, strlen(claim->device));

    d->at_least |= claim->at_least;
    d->claim[PATH_BYTES][COUNTER_OUT] += claim->out_bytes;
    d->claim[PATH_BYTES][COUNTER_IN] += claim->in_bytes;
    d->claim[PATH_PACKETS][COUNTER_OUT] += claim->out_messages;
    d->claim[PATH_PACKETS][COUNTER_IN] += claim->in_messages;
    d->message_bytes = claim->message_bytes;
    d->mtu_bytes = claim->mtu_bytes;
}

static int make_view(struct path_view *v, const char *root, const struct counters *now,
                     const struct path_claim *claims, size_t n)
{
    size_t more = 1;

    for (size_t i = 0; i < n; i++)
        more += devices_of(&claims[i]);
    *v = (struct path_view){.root = root, .list = calloc(now->n + more, sizeof(*v->list))};
    if (!v->list)
        return -ENOMEM;
    for (size_t i = 0; i < now->n; i++)
        add_device(v, now->list[i].name);
    for (size_t i = 0; i < n; i++)
        add_claim(v, &claims[i]);
    path_relate(v);
    return 0;
}

static int look(const struct path *p, struct path_view *v, const struct path_claim *claims,
                size_t n)
{
    struct counters now;
    int rc = counters_read(&now, p->root);

    if (rc)
        return rc;
    if (!v->list)
        rc = make_view(v, p->root, &now, claims, n);
    for (size_t i = 0; !rc && i < v->n; i++)
        v->list[i].moved = counters_moved(counters_find(&p->before, v->list[i].name),
                                          counters_find(&now, v->list[i].name));
    counters_free(&now);
    return rc;
}

static bool look_again(struct path *p, uint64_t begin_ns)
{
    static const struct timespec rest = {.tv_nsec = LOOK_AGAIN_NS};

    p->settled |= clock_now_ns() - begin_ns >= p->settle_ns;
    if (!p->settled)
        nanosleep(&rest, NULL);
    return !p->settled;
}

void path_end(struct path *p, const struct path_claim *claims, size_t n, struct path_proof *proof)
{
    uint64_t begin_ns = clock_now_ns();
    struct path_view v = {0};
    bool lacking = false;
    int rc;

    p->settled = false;
    do {
        rc = look(p, &v, claims, n);
        if (!rc)
            path_judge(&v, proof, &lacking);
    } while (!rc && lacking && look_again(p, begin_ns));
    if (rc) {
        proof->verdict = PATH_UNKNOWN;
        proof->carriers = 0;
        snprintf(proof->text, sizeof(proof->text), "the counters could not be read: %s",
                 strerror(-rc));
    }
    free(v.list);
}

void path_wires(struct path *p, double least_out, double least_in, struct path_wires *wires)
{
    const double least[COUNTER_WAYS] = {least_out, least_in};
    uint64_t begin_ns = clock_now_ns();
    struct path_view v = {0};
    bool lacking = false;
    int rc;

    do {
        rc = look(p, &v, NULL, 0);
        if (!rc)
            path_find_wires(&v, least, wires, &lacking);
    } while (!rc && lacking && !p->settled && look_again(p, begin_ns));
    if (rc) {
        *wires = (struct path_wires){0};
        snprintf(wires->why, sizeof(wires->why), "the counters could not be read: %s",
                 strerror(-rc));
    }
    free(v.list);
}

void path_tell(struct path *p, struct path_proof *proof)
{
    struct path_words w = {proof->text, sizeof(proof->text), 0, 0};
    struct path_view v = {0};
    int rc = look(p, &v, NULL, 0);

    proof->verdict = PATH_UNKNOWN;
    proof->text[0] = '\0';
    if (rc)
        path_say(&w, "the counters could not be read: %s", strerror(-rc));
    else
        path_say_most(&v, &w);
    proof->carriers = w.carriers;
    free(v.list);
}

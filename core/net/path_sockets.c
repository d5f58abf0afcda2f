/* SPDX-License-Identifier: Apache-2.0 */
/* Did sockets carry what an RDMA port could have carried? By the counters alone: see path_wires() in path.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/net/nic_sys.h"
#include "core/net/path_parts.h"

#define PORTS_MOST    0.01   /* of the least: more, and RDMA had a part in it */
#define IPOIB_HEADERS 0.15   /* of an interface's bytes: what its port counts beside them */
#define IPOIB_MOST    0.5    /* of the least: so much are no headers */
#define CARRIER_SHARE 0.1    /* of all that interfaces moved: less is of others */
#define PACKET_MOST   4096.0 /* bytes of RDMA in one */
#define SLOWER        0.95   /* of the line of what carried them */
#define NAMES_BYTES   64

struct sockets {
    const struct path_view *v;
    const double *least;
    double due, moved, line; /* bytes that must have gone; that interfaces moved; Gb/s, NAN */
    char names[NAMES_BYTES];
};

static double asked(const struct sockets *s, const double ways[COUNTER_WAYS])
{
    double sum = 0;

    for (int way = 0; way < COUNTER_WAYS; way++)
        sum += s->least[way] > 0 ? ways[way] : 0;
    return sum;
}

static bool is_interface(const struct path_device *d)
{
    return !d->port && d->moved.known && !d->same_bytes && strcmp(d->name, "lo") != 0;
}

static bool is_hardware(const struct path_device *d)
{
    return d->port && !d->facts.software;
}

static const struct path_device *ipoib_of(const struct path_view *v, const struct path_device *d)
{
    const struct path_device *i = path_find(v, d->facts.interface);

    return !strcmp(d->facts.link_layer, "InfiniBand") && i && i->moved.known ? i : NULL;
}

/* Interfaces alone moved what must have gone, each way. */
static bool interfaces_met(struct sockets *s)
{
    double all[COUNTER_WAYS] = {0};
    bool met = true;

    for (size_t i = 0; i < s->v->n; i++)
        for (int way = 0; way < COUNTER_WAYS; way++)
            all[way] += is_interface(&s->v->list[i]) ? s->v->list[i].moved.bytes[way] : 0;
    for (int way = 0; way < COUNTER_WAYS; way++)
        met &= all[way] >= PATH_MET * s->least[way];
    s->moved = asked(s, all);
    return met;
}

/* A port whose data may show in its interface's counters alone, or a device in software that sent packets: it may have been RDMA. */
static bool may_be_rdma(const struct sockets *s, const struct path_device *d)
{
    const struct path_device *i = path_find(s->v, d->facts.interface);

    if (d->facts.software)
        return d->moved.packets_known &&
               asked(s, d->moved.packets) * PACKET_MOST >= IPOIB_MOST * s->due;
    return d->moved.at_least || (i && is_interface(i) && !nic_counts_apart(d->facts.driver) &&
                                 asked(s, i->moved.bytes) > PORTS_MOST * s->due);
}

static bool is_up(const struct path_view *v, const struct path_device *d)
{
    char state[32] = "";

    sys_line(v->root, state, sizeof(state), "sys/class/infiniband/%s/ports/%u/state",
             d->facts.device, d->facts.port);
    return !strncmp(state, "4:", 2); /* "4: ACTIVE" */
}

/* What ports moved beside IPoIB is nothing, or headers of it. */
static bool ports_are_idle(const struct sockets *s)
{
    double most = PORTS_MOST * s->due, moved = 0, headers = 0;

    for (size_t i = 0; i < s->v->n; i++) {
        const struct path_device *d = &s->v->list[i];
        const struct path_device *within = is_hardware(d) ? ipoib_of(s->v, d) : NULL;
        if (d->port && (may_be_rdma(s, d) || (is_hardware(d) && !d->moved.known && is_up(s->v, d))))
            return false;
        if (!is_hardware(d) || !d->moved.known)
            continue;
        moved += asked(s, d->moved.bytes);
        moved -= within ? fmin(asked(s, within->moved.bytes), asked(s, d->moved.bytes)) : 0;
        headers += within ? IPOIB_HEADERS * asked(s, within->moved.bytes) : 0;
    }
    return moved < most + fmin(headers, IPOIB_MOST * s->due);
}

/* Those that carried the bytes: their names, and the sum of their lines. */
static void find_carriers(struct sockets *s)
{
    struct path_words names = {s->names, sizeof(s->names), 0};

    for (size_t i = 0; i < s->v->n; i++) {
        const struct path_device *d = &s->v->list[i];
        struct nic nic;
        if (!is_interface(d) || !(asked(s, d->moved.bytes) > CARRIER_SHARE * s->moved))
            continue;
        path_say(&names, "%s%s", names.used ? "+" : "", d->name);
        s->line += !nic_read(s->v->root, d->name, &nic) && nic.line_gbps > 0 ? nic.line_gbps : NAN;
    }
}

/* The first port that is up; the sum of all their lines. */
static const struct path_device *find_port(const struct sockets *s, double *line)
{
    const struct path_device *first = NULL;

    *line = 0;
    for (size_t i = 0; i < s->v->n; i++) {
        const struct path_device *d = &s->v->list[i];
        if (!is_hardware(d) || !d->moved.known || !is_up(s->v, d))
            continue;
        first = first ? first : d;
        *line += d->facts.line_gbps > 0 ? d->facts.line_gbps : NAN;
    }
    return first;
}

/* Does the processor say that a hypervisor runs it? x86 does. */
static bool is_guest(const char *root)
{
    char path[256], line[8192];
    bool guest = false;

    snprintf(path, sizeof(path), "%s/proc/cpuinfo", root ? root : "");
    FILE *in = fopen(path, "re");
    if (!in)
        return false;
    while (!guest && fgets(line, sizeof(line), in))
        guest = !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
    fclose(in);
    return guest;
}

void path_find_sockets(const struct path_view *v, const double least[COUNTER_WAYS],
                       struct path_wires *wires)
{
    struct path_words say = {wires->sockets, sizeof(wires->sockets), 0};
    struct sockets s = {.v = v, .least = least, .due = path_sum(least)};
    const struct path_device *port;
    double line;

    if (!interfaces_met(&s) || !ports_are_idle(&s))
        return;
    port = find_port(&s, &line);
    if (!port)
        return;
    find_carriers(&s);
    wires->fell_back = !(line < SLOWER * s.line);
    wires->infiniband = !strcmp(port->facts.link_layer, "InfiniBand");
    wires->guest = is_guest(v->root);
    path_say(&say, "sockets of %s carried the bytes (%s), not RDMA, though %s is up%s", s.names,
             path_amount(v, s.moved).text, port->name, wires->fell_back ? "" : ", which is slower");
    memcpy(wires->carriers, s.names, sizeof(s.names));
}

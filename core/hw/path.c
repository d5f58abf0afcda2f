/* SPDX-License-Identifier: Apache-2.0 */
/* What moved, and which devices moved it: see path.h. */
#include "core/hw/path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/sys.h"
#include "core/row.h"

/* ---- Did sockets carry what an RDMA port could have carried? By the counters alone: see
 * path_wires() in path.h. ---- */

#define PORTS_MOST    0.01 /* of the least: more, and RDMA had a part in it */
#define IPOIB_HEADERS 0.15 /* of an interface's bytes: what its port counts beside them */
#define IPOIB_MOST    0.5  /* of the least: more than headers can be */
#define CARRIER_SHARE 0.1  /* of all that interfaces moved: less is of others */
#define SLOWER        0.95 /* of the line of what carried them */
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

/* Devices in software count none: their interface does. */
static bool counts(const struct path_device *d)
{
    return d->moved.known && !d->same_bytes && strcmp(d->name, "lo") != 0;
}

static bool is_interface(const struct path_device *d)
{
    return !d->port && counts(d);
}

static bool is_hardware(const struct path_device *d)
{
    return d->port && !d->facts.software;
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

/* A port whose data may show in its interface's counters alone, one in software or of a driver of
 * which nobody knows: it may have been RDMA. */
static bool may_be_rdma(const struct sockets *s, const struct path_device *d)
{
    const struct path_device *i = path_find(s->v, d->facts.interface);

    return i && is_interface(i) && !nic_counts_apart(d->facts.driver) &&
           asked(s, i->moved.bytes) > PORTS_MOST * s->due;
}

/* What ports moved beside IPoIB is nothing, or headers of it. */
static bool ports_are_idle(const struct sockets *s)
{
    double most = PORTS_MOST * s->due, moved = 0, headers = 0;

    for (size_t i = 0; i < s->v->n; i++) {
        const struct path_device *d = &s->v->list[i], *ipoib = path_ipoib(s->v, d);
        if (d->port && (may_be_rdma(s, d) || (is_hardware(d) && !d->moved.known && d->facts.up)))
            return false;
        if (!is_hardware(d) || !d->moved.known)
            continue;
        moved += asked(s, (const double[]){path_counted(s->v, d, 0), path_counted(s->v, d, 1)});
        headers += ipoib ? IPOIB_HEADERS * asked(s, ipoib->moved.bytes) : 0;
    }
    return moved < most + fmin(headers, IPOIB_MOST * s->due);
}

/* Those that carried the bytes: their names, and the sum of their lines. */
static void name_interfaces(struct sockets *s)
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
        if (!is_hardware(d) || !d->moved.known || !d->facts.up)
            continue;
        first = first ? first : d;
        *line += d->facts.line_gbps > 0 ? d->facts.line_gbps : NAN;
    }
    return first;
}

/* Does the processor say that a hypervisor runs it? x86 does. */
static bool is_guest(const char *root)
{
    FILE *f = sys_open(root, "proc/cpuinfo");
    char line[8192];
    bool guest = false;

    while (f && !guest && fgets(line, sizeof(line), f))
        guest = !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
    if (f)
        fclose(f);
    return guest;
}

static void find_sockets(const struct path_view *v, const double least[COUNTER_WAYS],
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
    name_interfaces(&s);
    wires->fell_back = !(line < SLOWER * s.line);
    wires->infiniband = path_is_infiniband(port);
    wires->guest = is_guest(v->root);
    path_say(&say, "sockets of %s carried the bytes (%s), not RDMA, though %s is up%s", s.names,
             path_amount(s.moved).text, port->name, wires->fell_back ? "" : ", which is slower");
    memcpy(wires->carriers, s.names, sizeof(s.names));
}

/* Which links carried what went between machines, where nothing is claimed of any: see path_wires()
 * in path.h. */

/* Of a way, what links besides moved: a limit holds to no more than that. */
#define OTHERS_MOST 0.005
#define SHARE_LEAST 0.5 /* of an equal share */
#define SHOWN       3

struct wire {
    const struct path_device *device; /* that it is called by: what moved more */
    double moved[COUNTER_WAYS];
    bool carried[COUNTER_WAYS];
};

struct wires {
    const struct path_view *v;
    struct wire *list;
    size_t n;
};

/* The RDMA port that is on this interface. */
static const struct path_device *port_on(const struct path_view *v, const struct path_device *i)
{
    for (size_t k = 0; k < v->n && !i->port; k++)
        if (v->list[k].port && counts(&v->list[k]) && !strcmp(v->list[k].facts.interface, i->name))
            return &v->list[k];
    return NULL;
}

static struct wire wire_of(const struct path_view *v, const struct path_device *d)
{
    const struct path_device *i = d->port ? path_find(v, d->facts.interface) : NULL;
    bool apart = nic_counts_apart(d->facts.driver);
    struct wire w = {d, {d->moved.bytes[0], d->moved.bytes[1]}, {false}};

    if (!i || !counts(i))
        return w;
    /* An InfiniBand port counts its IPoIB's bytes, too. */
    if (path_is_infiniband(d)) {
        if (path_sum(i->moved.bytes) > path_sum(d->moved.bytes) / 2)
            w.device = i;
        return w;
    }
    for (int way = 0; way < COUNTER_WAYS; way++) {
        double beside = i->moved.bytes[way];
        w.moved[way] = apart ? w.moved[way] + beside : fmax(w.moved[way], beside);
    }
    if (path_sum(i->moved.bytes) > path_sum(d->moved.bytes))
        w.device = i;
    return w;
}

static double all_moved(const struct wires *w, int way)
{
    double all = 0;

    for (size_t i = 0; i < w->n; i++)
        all += w->list[i].moved[way];
    return all;
}

/* Did they all together move what must have gone? Said where not. */
static bool is_met(const struct wires *w, const double least[COUNTER_WAYS], struct path_words *say)
{
    const struct path_device *lo = path_find(w->v, "lo");
    double all = 0, due = 0;
    bool met = true, by_lo = lo && lo->moved.known;

    for (int way = 0; way < COUNTER_WAYS; way++) {
        double moved = least[way] > 0 ? all_moved(w, way) : 0;
        all += moved;
        due += least[way];
        met &= moved >= PATH_MET * least[way];
        by_lo = by_lo && lo->moved.bytes[way] >= PATH_MET * least[way];
    }
    if (!met)
        path_say(say, "of at least %s that went between machines, all links that count moved %s",
                 path_amount(due).text, path_amount(all).text);
    if (!met && by_lo)
        path_say(say, ", lo %s", path_amount(path_sum(lo->moved.bytes)).text);
    return met;
}

/* Marks those that carried that way's bytes. False: their shares do not tell. */
static bool find_carriers(struct wires *w, int way)
{
    double all = all_moved(w, way), rest = all;
    unsigned k = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct wire *one = &w->list[i];
        one->carried[way] = one->moved[way] > OTHERS_MOST * all;
        k += one->carried[way];
        rest -= one->carried[way] ? one->moved[way] : 0;
    }
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].carried[way] && w->list[i].moved[way] < SHARE_LEAST * all / k)
            return false;
    return rest <= OTHERS_MOST * all && k <= PATH_WIRES_MAX;
}

static int by_bytes(const void *a, const void *b)
{
    double x = path_sum(((const struct wire *)a)->moved);
    double y = path_sum(((const struct wire *)b)->moved);

    return (x < y) - (x > y);
}

/* "eth0 60 % out, 61 % in; eth1 ...", of those that moved most. */
static void say_shares(struct wires *w, const double least[COUNTER_WAYS], struct path_words *say)
{
    static const char *const names[] = {"out", "in"};

    qsort(w->list, w->n, sizeof(*w->list), by_bytes);
    path_say(say, "which links carried the bytes is not sure:");
    for (size_t i = 0; i < w->n && i < SHOWN; i++) {
        path_say(say, "%s %s", i ? ";" : "", w->list[i].device->name);
        for (int way = 0; way < COUNTER_WAYS; way++)
            if (least[way] > 0)
                path_say(say, "%s %.3g %% %s", way && least[0] > 0 ? "," : "",
                         100 * w->list[i].moved[way] / all_moved(w, way), names[way]);
    }
}

/* The same links both ways, where both ways had to be gone. */
static bool choose(struct wires *w, const double least[COUNTER_WAYS], struct path_wires *wires)
{
    int first = least[COUNTER_OUT] > 0 ? COUNTER_OUT : COUNTER_IN;

    for (int way = 0; way < COUNTER_WAYS; way++)
        if (least[way] > 0 && !find_carriers(w, way))
            return false;
    for (size_t i = 0; i < w->n; i++) {
        const struct wire *one = &w->list[i];
        for (int way = 0; way < COUNTER_WAYS; way++)
            if (least[way] > 0 && one->carried[way] != one->carried[first])
                return false;
    }
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].carried[first])
            memcpy(wires->devices[wires->n++], w->list[i].device->name, sizeof(*wires->devices));
    return true;
}

static void find_wires(const struct path_view *v, const double least[COUNTER_WAYS],
                       struct path_wires *wires, bool *lacking)
{
    struct path_words say = {wires->why, sizeof(wires->why), 0};

    *wires = (struct path_wires){0};
    *lacking = false;
    if (path_sum(least) < PATH_TOO_FEW_BYTES) {
        path_say(&say, "%s between machines are too few to tell",
                 path_amount(path_sum(least)).text);
        return;
    }
    struct wires w = {.v = v, .list = xcalloc(v->n, sizeof(*w.list))};
    for (size_t i = 0; i < v->n; i++)
        if (counts(&v->list[i]) && !port_on(v, &v->list[i]))
            w.list[w.n++] = wire_of(v, &v->list[i]);
    *lacking = !is_met(&w, least, &say);
    if (!*lacking) {
        find_sockets(v, least, wires);
        if (!choose(&w, least, wires))
            say_shares(&w, least, &say);
    }
    free(w.list);
}

/* ---- The devices that moved most. ---- */

#define MOST_DEVICES 3
#define WORTH_SAYING 0.01 /* of what the first one moved */

static struct path_device *moved_most(const struct path_view *v)
{
    struct path_device *most = NULL;

    for (struct path_device *d = v->list; d < v->list + v->n; d++)
        if (d->moved.known && !d->same_bytes &&
            (!most || path_sum(d->moved.bytes) > path_sum(most->moved.bytes)))
            most = d;
    return most;
}

/* Most first; each is left out then. */
static void tell_most(const struct path_view *v, struct path_proof *proof)
{
    struct path_words w = {proof->text, sizeof(proof->text), 0};
    struct path_device *d;
    double first = 0;

    for (int i = 0; i < MOST_DEVICES && (d = moved_most(v)); i++, d->same_bytes = true) {
        double moved = path_sum(d->moved.bytes);
        const char *separator = i ? "; " : "";
        first = i ? first : moved;
        if (moved > 0 && moved >= WORTH_SAYING * first) {
            proof->carriers = i ? proof->carriers : path_carrier(d);
            path_say(&w, "%s%s sent %s, received %s", separator, d->name,
                     path_amount(d->moved.bytes[COUNTER_OUT]).text,
                     path_amount(d->moved.bytes[COUNTER_IN]).text);
        } else if (!i || !strcmp(d->name, "lo"))
            path_say(&w, "%s%s %s", separator, d->name, path_amount(moved).text);
    }
    if (!w.used)
        path_say(&w, "no device's counters can be read");
}

/* ---- Counters before and after. ---- */

#define LOOK_AGAIN_NS 100000000

struct path {
    const char *root;
    uint64_t settle_ns;
    bool settled; /* so long has been waited, and bytes were missing still */
    struct counters before;
};

struct path *path_begin_at(const char *root, uint64_t settle_ns)
{
    struct path *p = xcalloc(1, sizeof(*p));

    *p = (struct path){.root = root, .settle_ns = settle_ns, .before = counters_read(root)};
    return p;
}

struct path *path_begin(void)
{
    return path_begin_at(NULL, PATH_SETTLE_NS);
}

void path_close(struct path *p)
{
    if (p)
        counters_free(&p->before);
    free(p);
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
    bool lacking;

    p->settled = false;
    do {
        path_look(&v, p->root, &p->before, claims, n);
        path_judge(&v, proof, &lacking);
    } while (lacking && look_again(p, begin_ns));
    path_view_free(&v);
}

void path_wires(struct path *p, double least_out, double least_in, struct path_wires *wires)
{
    const double least[COUNTER_WAYS] = {least_out, least_in};
    uint64_t begin_ns = clock_now_ns();
    struct path_view v = {0};
    bool lacking;

    do {
        path_look(&v, p->root, &p->before, NULL, 0);
        find_wires(&v, least, wires, &lacking);
    } while (lacking && !p->settled && look_again(p, begin_ns));
    path_view_free(&v);
}

void path_tell(struct path *p, struct path_proof *proof)
{
    struct path_view v = {0};

    *proof = (struct path_proof){.verdict = PATH_UNKNOWN};
    path_look(&v, p->root, &p->before, NULL, 0);
    tell_most(&v, proof);
    path_view_free(&v);
}

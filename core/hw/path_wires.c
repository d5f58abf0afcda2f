/* SPDX-License-Identifier: Apache-2.0 */
/* Which links carried what went between machines, where nothing is claimed of any: see path_wires() in path.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/path_parts.h"

/* Of a way, what links besides moved: a limit holds to no more than that. */
#define OTHERS_MOST 0.005
#define SHARE_LEAST 0.5 /* of an equal share */
#define SHOWN       3

struct wire {
    const struct path_device *device; /* that it is called by: what moved more */
    double moved[COUNTER_WAYS];
    bool at_least, carried[COUNTER_WAYS];
};

struct wires {
    const struct path_view *v;
    struct wire *list;
    size_t n;
};

/* Devices in software count none: their interface does. */
static bool counts(const struct path_device *d)
{
    return d->moved.known && !d->same_bytes && strcmp(d->name, "lo") != 0;
}

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
    struct wire w = {d, {d->moved.bytes[0], d->moved.bytes[1]}, d->moved.at_least, {false}};

    if (!i || !counts(i))
        return w;
    /* An InfiniBand port counts its IPoIB's bytes, too. */
    if (!strcmp(d->facts.link_layer, "InfiniBand")) {
        if (path_sum(i->moved.bytes) > path_sum(d->moved.bytes) / 2)
            w.device = i;
        return w;
    }
    for (int way = 0; way < COUNTER_WAYS; way++) {
        double beside = i->moved.bytes[way];
        w.moved[way] = apart ? w.moved[way] + beside : fmax(w.moved[way], beside);
    }
    w.at_least |= i->moved.at_least;
    if (path_sum(i->moved.bytes) > path_sum(d->moved.bytes))
        w.device = i;
    return w;
}

static int find_links(struct wires *w, const struct path_view *v)
{
    *w = (struct wires){.v = v, .list = calloc(v->n + 1, sizeof(*w->list))};
    for (size_t i = 0; i < v->n && w->list; i++)
        if (counts(&v->list[i]) && !port_on(v, &v->list[i]))
            w->list[w->n++] = wire_of(v, &v->list[i]);
    return w->list ? 0 : -1;
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
                 path_amount(w->v, due).text, path_amount(w->v, all).text);
    if (!met && by_lo)
        path_say(say, ", lo %s", path_amount(w->v, path_sum(lo->moved.bytes)).text);
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
            if (least[way] > 0 &&
                (one->carried[way] != one->carried[first] || (one->carried[way] && one->at_least)))
                return false;
    }
    for (size_t i = 0; i < w->n; i++)
        if (w->list[i].carried[first])
            memcpy(wires->devices[wires->n++], w->list[i].device->name, sizeof(*wires->devices));
    return true;
}

void path_find_wires(const struct path_view *v, const double least[COUNTER_WAYS],
                     struct path_wires *wires, bool *lacking)
{
    struct path_words say = {wires->why, sizeof(wires->why), 0, 0};
    struct wires w;

    *wires = (struct path_wires){0};
    *lacking = false;
    if (path_sum(least) < PATH_TOO_FEW_BYTES) {
        path_say(&say, "%s between machines are too few to tell",
                 path_amount(v, path_sum(least)).text);
        return;
    }
    if (find_links(&w, v))
        path_say(&say, "out of memory");
    else if (!is_met(&w, least, &say))
        *lacking = true;
    else {
        path_find_sockets(v, least, wires);
        if (!choose(&w, least, wires))
            say_shares(&w, least, &say);
    }
    free(w.list);
}

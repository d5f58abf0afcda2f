/* SPDX-License-Identifier: Apache-2.0 */
/* Proof of the path: see path.h. Here the counters become a list of devices with what they moved and what is claimed of them. */
#include "core/net/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/net/path_parts.h"

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
    struct path_words w = {proof->text, sizeof(proof->text), 0};
    struct path_view v = {0};
    int rc = look(p, &v, NULL, 0);

    proof->verdict = PATH_UNKNOWN;
    proof->text[0] = '\0';
    if (rc)
        path_say(&w, "the counters could not be read: %s", strerror(-rc));
    else
        path_say_most(&v, &w);
    free(v.list);
}

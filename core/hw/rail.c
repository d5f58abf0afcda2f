/* SPDX-License-Identifier: Apache-2.0 */
/* Which RDMA port is near which GPU: see rail.h. */
#include "core/hw/rail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/hw/place.h"
#include "core/hw/sys.h"
#include "core/units.h"

#define PORTS_MAX 128

struct port {
    char name[NIC_NAME + 12];
    char adapter[NIC_NAME]; /* what its ports have in common */
    char link_layer[24];
    double gbps; /* 0: not known; of one that is down it says nothing */
    bool up;
    bool usual;     /* of the kind that most have, or there is none such */
    unsigned rails; /* that have it */
};

struct ports {
    const char *root;
    struct port all[PORTS_MAX];
    unsigned n;
};

/* ---- The ports of a machine ---- */

static void add_port(struct ports *ports, const char *name)
{
    struct nic_port np;
    char device[NIC_NAME];
    unsigned port;

    if (ports->n == PORTS_MAX || nic_parse_port(ports->root, name, device, &port) ||
        nic_read_port(ports->root, device, port, &np))
        return;
    struct port *p = &ports->all[ports->n++];
    *p = (struct port){.up = false};
    snprintf(p->name, sizeof(p->name), "%.63s:%u", np.device, np.port);
    /* Functions of one PCI device are one adapter; what has no address is one of its own. */
    snprintf(p->adapter, sizeof(p->adapter), "%.*s",
             (int)(np.address[0] ? strcspn(np.address, ".") : strlen(np.device)),
             np.address[0] ? np.address : np.device);
    p->up = np.up;
    snprintf(p->link_layer, sizeof(p->link_layer), "%s", np.link_layer);
    p->gbps = p->up ? np.line_gbps : 0;
}

/* Of an adapter with a port that is up, a port that is down is not in use; where all are down, all
 * but the first are left out. */
static bool is_unused(const struct ports *ports, unsigned i)
{
    bool first = true, up = false;

    for (unsigned k = 0; k < ports->n; k++) {
        if (k == i || strcmp(ports->all[k].adapter, ports->all[i].adapter) != 0)
            continue;
        up |= ports->all[k].up;
        first &= k > i;
    }
    return !ports->all[i].up && (up || !first);
}

static void find_ports(struct ports *ports)
{
    struct names names = nic_ports(ports->root);
    bool unused[PORTS_MAX];
    unsigned kept = 0;

    for (size_t i = 0; i < names.count; i++)
        add_port(ports, names.name[i]);
    names_free(&names);
    for (unsigned i = 0; i < ports->n; i++)
        unused[i] = is_unused(ports, i);
    for (unsigned i = 0; i < ports->n; i++)
        if (!unused[i])
            ports->all[kept++] = ports->all[i];
    ports->n = kept;
}

/* ---- Which GPU takes which ---- */

static bool same_kind(const struct port *a, const struct port *b)
{
    return !strcmp(a->link_layer, b->link_layer) &&
           (!(a->gbps > 0) || !(b->gbps > 0) || a->gbps == b->gbps);
}

/* Where no kind is that of over half, all are usual. */
static void find_usual(struct ports *ports)
{
    for (unsigned i = 0; i < ports->n; i++) {
        unsigned like = 0;
        for (unsigned k = 0; k < ports->n; k++)
            like += same_kind(&ports->all[i], &ports->all[k]);
        ports->all[i].usual = 2 * like > ports->n;
    }
    for (unsigned i = 0; i < ports->n; i++)
        if (ports->all[i].usual)
            return;
    for (unsigned i = 0; i < ports->n; i++)
        ports->all[i].usual = true;
}

static unsigned distance(const char *way)
{
    static const char *const ways[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    unsigned i = 0;

    while (i < sizeof(ways) / sizeof(*ways) && strcmp(way, ways[i]) != 0)
        i++;
    return i;
}

/* Is port a better for this rail than b? Of equal ones the first stays. */
static bool is_better(const struct port *a, unsigned far_a, const struct port *b, unsigned far_b)
{
    if (far_a != far_b)
        return far_a < far_b;
    if (a->usual != b->usual)
        return a->usual;
    return a->rails != b->rails ? a->rails < b->rails : a->up && !b->up;
}

static void choose(struct ports *ports, struct rail *rail)
{
    struct port *best = NULL;
    unsigned far_best = 0;

    for (unsigned i = 0; i < ports->n; i++) {
        struct port *p = &ports->all[i];
        unsigned far = distance(nic_way(ports->root, p->name, rail->address));

        if (!best || is_better(p, far, best, far_best)) {
            best = p;
            far_best = far;
        }
    }
    if (!best)
        return;
    best->rails++;
    memcpy(rail->port, best->name, sizeof(rail->port));
    rail->way = nic_way(ports->root, best->name, rail->address);
    rail->up = best->up;
}

/* ---- Which of the machine's GPUs, hidden ones included ---- */

struct seats {
    struct {
        char address[24], vendor[16];
    } all[2 * RAILS_MAX];
    unsigned n;
};

static void find_seats(const char *root, struct seats *s)
{
    struct names names;
    char class[16];

    sys_list(root, &names, "sys/bus/pci/devices");
    for (size_t i = 0; i < names.count && s->n < 2 * RAILS_MAX; i++)
        if (!sys_line(root, class, sizeof(class), "sys/bus/pci/devices/%s/class", names.name[i]) &&
            !strncmp(class, "0x03", 4) &&
            !sys_line(root, s->all[s->n].vendor, sizeof(s->all[s->n].vendor),
                      "sys/bus/pci/devices/%s/vendor", names.name[i]))
            snprintf(s->all[s->n++].address, sizeof(s->all[0].address), "%s", names.name[i]);
    names_free(&names);
}

/* Domains have four digits or more. */
static int before(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);

    return na != nb ? (na > nb) - (na < nb) : strcasecmp(a, b);
}

static void find_seat(const struct seats *s, struct rail *rail)
{
    unsigned own = 0;

    while (own < s->n && strcasecmp(s->all[own].address, rail->address) != 0)
        own++;
    for (unsigned i = 0; own < s->n && i < s->n; i++) {
        if (strcmp(s->all[i].vendor, s->all[own].vendor) != 0)
            continue;
        rail->seats++;
        rail->seat += before(s->all[i].address, rail->address) <= 0;
    }
}

unsigned rails_find(const char *root, const char (*addresses)[24], unsigned n_gpus,
                    struct rail rails[RAILS_MAX])
{
    struct ports ports = {.root = root};
    unsigned far[RAILS_MAX], n;

    find_ports(&ports);
    find_usual(&ports);
    for (unsigned i = 0; i < ports.n && !n_gpus; i++)
        ports.all[i].usual = true; /* each is a rail */
    n = n_gpus ? n_gpus : ports.n;
    n = n < RAILS_MAX ? n : RAILS_MAX;
    for (unsigned i = 0; i < n; i++) {
        rails[i] = (struct rail){.gpu = n_gpus ? (int)i : -1, .way = "", .of = n};
        if (n_gpus)
            snprintf(rails[i].address, sizeof(rails[i].address), "%s", addresses[i]);
        far[i] = distance("");
        for (unsigned k = 0; k < ports.n; k++) {
            unsigned one = distance(nic_way(ports.root, ports.all[k].name, rails[i].address));
            far[i] = one < far[i] ? one : far[i];
        }
    }
    for (unsigned at = 0; at <= distance(""); at++)
        for (unsigned i = 0; i < n; i++)
            if (far[i] == at)
                choose(&ports, &rails[i]);
    if (n_gpus) {
        struct seats seats = {.n = 0};

        find_seats(root, &seats);
        for (unsigned i = 0; i < n; i++)
            find_seat(&seats, &rails[i]);
    }
    return n;
}

static bool has_rail(const struct rail *rails, unsigned n, const struct port *p)
{
    for (unsigned i = 0; i < n; i++)
        if (!strcmp(rails[i].port, p->name))
            return true;
    return false;
}

void rails_unused(const char *root, const struct rail *rails, unsigned n, char *text, size_t len)
{
    struct ports ports = {.root = root};
    size_t at = 0;

    text[0] = 0;
    find_ports(&ports);
    for (unsigned i = 0; i < ports.n && at < len; i++) {
        const struct port *p = &ports.all[i];
        char rate[32] = "";

        if (has_rail(rails, n, p))
            continue;
        if (p->gbps > 0)
            snprintf(rate, sizeof(rate), ", %g Gb/s", p->gbps);
        at += (size_t)snprintf(text + at, len - at, "%s%s (%s%s)", at ? ", " : "", p->name,
                               p->link_layer[0] ? p->link_layer : "link layer not known",
                               p->up ? rate : ", down");
    }
}

/* ---- Those of this machine ---- */

/* It starts the GPUs' driver. */
static unsigned rails_here(struct gpus *gpus, struct rail rails[RAILS_MAX])
{
    const char *why;
    const struct gpu_ops *ops = gpus_module(gpus, &why);
    char addresses[RAILS_MAX][24] = {""};
    unsigned n = ops ? ops->count() : 0;

    n = n < RAILS_MAX ? n : RAILS_MAX;
    for (unsigned i = 0; i < n; i++) {
        struct gpu_facts facts;
        if (!ops->facts(i, &facts))
            memcpy(addresses[i], facts.address, sizeof(addresses[i]));
    }
    return rails_find(NULL, (const char(*)[24])addresses, n, rails);
}

int rail_get(struct gpus *gpus, unsigned number, struct rail *rail, char *error, size_t len)
{
    struct rail rails[RAILS_MAX];
    unsigned n = rails_here(gpus, rails);

    if (!n)
        snprintf(error, len, "this machine has no rail: it shows no GPU and no RDMA device");
    else if (number >= n)
        snprintf(error, len, "this machine has no rail %u: it has 0 to %u", number, n - 1);
    else if (!rails[number].port[0])
        snprintf(error, len, "rail %u has no adapter: this machine shows no RDMA device", number);
    else
        *rail = rails[number];
    return n && number < n && rails[number].port[0] ? 0 : -ENODEV;
}

static void say_rail(const struct rail *rail, unsigned number, backend_say_fn *say, void *arg)
{
    char name[24], what[160], gpu[32] = "";

    snprintf(name, sizeof(name), RAIL_PREFIX "%u", number);
    if (rail->gpu >= 0)
        snprintf(gpu, sizeof(gpu), PLACE_GPU_PREFIX "%d%s", rail->gpu,
                 rail->port[0] ? " with " : "");
    snprintf(what, sizeof(what), "%s%s%s%s", gpu, rail->port, *rail->way ? ", " : "", rail->way);
    say(arg, &(struct backend){.name = name,
                               .state = !rail->port[0] ? BACKEND_ABSENT
                                        : rail->up     ? BACKEND_PRESENT
                                                       : BACKEND_DOWN,
                               .what = rail->port[0] ? what : NULL,
                               .why = rail->port[0] ? NULL : "this machine shows no RDMA device"});
}

void rails_say(backend_say_fn *say, void *arg)
{
    struct gpus *gpus = gpus_open();
    struct rail rails[RAILS_MAX];
    unsigned n = rails_here(gpus, rails);

    for (unsigned i = 0; i < n; i++)
        say_rail(&rails[i], i, say, arg);
    char unused[512] = "", what[600];
    if (n)
        rails_unused(NULL, rails, n, unused, sizeof(unused));
    snprintf(what, sizeof(what), "no rail has %s", unused);
    if (unused[0])
        say(arg, &(struct backend){.name = "unused", .state = BACKEND_PRESENT, .what = what});
    gpus_close(gpus);
}

int rail_read(const char *text, void *value, char *error, size_t len)
{
    uint64_t number;

    *(const char **)value = text;
    if (!units_parse_u64(text, &number) && number < RAILS_MAX && (*text != '0' || !text[1]))
        return 0;
    snprintf(error, len, "'%.40s' is no rail: 0 to %d, or rails for all of this machine", text,
             RAILS_MAX - 1);
    return -EINVAL;
}

/* Asked apart: the process may fork its peer later, which then is to use GPUs. */
bool rail_words(const char *word, char *list, size_t len)
{
    struct rail rails[RAILS_MAX];
    size_t at = 0;

    if (strcmp(word, "rails") != 0)
        return false;
    unsigned n = gpus_count_apart();
    n = n < RAILS_MAX ? n : RAILS_MAX;
    n = n ? n : rails_find(NULL, NULL, 0, rails);
    snprintf(list, len, "0");
    for (unsigned i = 0; i < n && at + 8 < len; i++)
        at += (size_t)snprintf(list + at, len - at, "%s%u", at ? "," : "", i);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the system says of a device beside verbs, and a wire's life. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/wire/rdma/rdma.h"

/* ---- What the system says of a device beside verbs: driver, node, counters ---- */

#define CLASS            "/sys/class/infiniband"
#define LIFESPAN_MOST_MS 200

/* The first line of a file below the device's folder, without its end; "" where there is none. */
static const char *read_line(const struct rdma_rail *rail, const char *name, char *text, size_t len)
{
    char path[256];

    text[0] = 0;
    snprintf(path, sizeof(path), CLASS "/%s/%s", rail->device, name);
    FILE *f = fopen(path, "re");
    if (f && !fgets(text, (int)len, f))
        text[0] = 0;
    if (f)
        fclose(f);
    text[strcspn(text, "\n")] = 0;
    return text;
}

static bool exists(const struct rdma_rail *rail, const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), CLASS "/%s/%s", rail->device, name);
    return !access(path, F_OK);
}

/* Software devices have no driver of a bus: rxe's has a file "parent", siw's speaks iWARP. */
void rdma_sysfs_driver(struct rdma_rail *rail)
{
    char path[256], target[PATH_MAX];

    snprintf(path, sizeof(path), CLASS "/%s/device/driver", rail->device);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (exists(rail, "parent"))
        rail->software = "rxe";
    else if (n <= 0 && rail->own->device->transport_type == IBV_TRANSPORT_IWARP)
        rail->software = "siw";
    rail->is_function = exists(rail, "device/physfn");
    if (rail->software) {
        snprintf(rail->driver, sizeof(rail->driver), "%s", rail->software);
    } else if (n > 0) {
        target[n] = 0;
        const char *name = strrchr(target, '/');
        snprintf(rail->driver, sizeof(rail->driver), "%.23s", name ? name + 1 : target);
    }
}

int rdma_sysfs_node(const struct rdma_rail *rail)
{
    char text[32];

    return *read_line(rail, "device/numa_node", text, sizeof(text)) ? atoi(text) : -1;
}

static const char *const rdma_counter_names[RDMA_COUNTERS] = {
    "retransmits", "rnr naks", "out of sequence", "congestion notices"};

/* The drivers' names: mlx5, rxe, bnxt_re, irdma, efa, hns. */
static const char *const counter_files[RDMA_COUNTERS][8] = {
    {"local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err", "completer_retry_err",
     "to_retransmits", "seq_err_naks_rcvd", "RetransSegs", "retrans_pkts"},
    {"rnr_nak_retry_err", "rcvd_rnr_err", "rnr_naks_rcvd"},
    {"out_of_sequence", "out_of_seq_request", "oos_drop_count"},
    {"rp_cnp_handled", "rx_cnp_pkts", "cnpHandled"},
};

/* The kernel asks a driver for its counters once in so many ms (10 unless somebody wrote another
 * number), and hands out what it was told. What is read after so long is of a moment after now.
 * False: that would take too long. */
static bool wait_out(const struct rdma_rail *rail)
{
    char name[64], text[40];
    struct timespec t = {0};

    snprintf(name, sizeof(name), "ports/%u/hw_counters/lifespan", rail->port);
    unsigned long ms = strtoul(read_line(rail, name, text, sizeof(text)), NULL, 10);
    if (ms > LIFESPAN_MOST_MS)
        return false;
    t.tv_sec = (time_t)(ms / 1000);
    t.tv_nsec = (long)(ms % 1000) * 1000000;
    if (ms)
        nanosleep(&t, NULL);
    return true;
}

/* Sums of hw_counters by rdma_counter_names, of the port, whoever uses it; UINT64_MAX: not told,
 * or told too seldom. Waits for figures of now, 10 ms where the kernel is as it comes, 200 ms at
 * most. */
static void rdma_sysfs_counters(const struct rdma_rail *rail, uint64_t counters[RDMA_COUNTERS])
{
    if (!wait_out(rail)) {
        memset(counters, 0xff, RDMA_COUNTERS * sizeof(*counters));
        return;
    }
    for (int c = 0; c < RDMA_COUNTERS; c++) {
        counters[c] = UINT64_MAX;
        for (int i = 0; i < 8 && counter_files[c][i]; i++) {
            char name[96], text[40];
            snprintf(name, sizeof(name), "ports/%u/hw_counters/%s", rail->port,
                     counter_files[c][i]);
            if (!isdigit((unsigned char)*read_line(rail, name, text, sizeof(text))))
                continue;
            counters[c] = (counters[c] == UINT64_MAX ? 0 : counters[c]) + strtoull(text, NULL, 10);
        }
    }
}

/* What the ports' own counters say since the ends joined: of the whole port, whoever else uses
 * it. */

void rdma_facts_begin(struct rdma *r)
{
    for (unsigned i = 0; i < r->n_rails; i++)
        rdma_sysfs_counters(&r->rails[i], r->rails[i].counters);
}

size_t rdma_facts(struct wire *w, struct wire_fact *facts)
{
    const struct rdma *r = rdma_of(w);
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
        facts[n] = (struct wire_fact){.unit = "count", .value = (double)sums[c]};
        snprintf(facts[n++].metric, sizeof(facts->metric), "%s", rdma_counter_names[c]);
    }
    return n;
}

void rdma_describe(struct wire *w, char *text, size_t len)
{
    const struct rdma_rail *rail = &rdma_of(w)->rails[0];
    bool lid = rail->protocol == NIC_INFINIBAND && rail->port_attr.lid;
    const char *what = rail->software                        ? rail->software
                       : !strcmp(rail->driver, "vmw_pvrdma") ? "PVRDMA"
                       : rail->is_function                   ? "SR-IOV function"
                                                             : "";

    snprintf(text, len, "%s%s%s, %s %u, MTU %u", nic_protocol_name(rail->protocol),
             *what ? ", " : "", what, lid ? "LID" : "GID",
             lid ? rail->port_attr.lid : rail->gid_index, w->rails[0].mtu_bytes);
}

/* Links may lead to other machines. */
int rdma_rail(struct wire *w, struct nic_rail *out)
{
    *out = w->rails[0];
    rdma_of(w)->core->fill(NULL, out, false);
    return 0;
}

/* ---- A wire's life ---- */

/* rxe takes 7 for without end, and a peer that is gone would not be missed */
#define MESSAGE_RETRY 6
#define SOFT_TIMEOUT  17 /* who answers for a software device may have to wait for a CPU */

/* What cannot be, whatever the device is. */
static int check_options(struct wire *w)
{
    const struct wire_rdma_options *p = &w->options.rdma;

    if (p->verb > RDMA_SEND || p->connect > WIRE_CONNECT_CM || !p->depth)
        return rdma_fail(w, -EINVAL, "the RDMA part of the point is damaged");
    if (p->connect == WIRE_CONNECT_CM && p->mtu)
        return rdma_fail(w, -EOPNOTSUPP,
                         "RDMA CM chooses the path MTU itself: leave it out, or connect by "
                         "exchange");
    return 0;
}

static int open_messages(struct wire *w)
{
    struct wire_rdma_options *p = &w->options.rdma;

    p->verb = RDMA_WRITE_IMM;
    p->connect = WIRE_CONNECT_EXCHANGE;
    p->inline_bytes = -1;
    p->retry = p->retry ? p->retry : MESSAGE_RETRY;
    int err = rdma_devices_open(w);
    if (!err && rdma_of(w)->rails[0].software && !p->timeout)
        p->timeout = SOFT_TIMEOUT;
    return err;
}

static int open_wire(struct wire *w, const struct rdma_core *core)
{
    struct rdma *r = w->state = xcalloc(1, sizeof(*r));

    w->ops = w->options.windows ? &rdma_window_ops : &rdma_message_ops;
    r->core = core;
    r->own = w->world->members[w->world->rank].address;
    r->queues = xcalloc(w->options.links_most, sizeof(*r->queues));
    if (!w->options.windows)
        return open_messages(w);
    r->by_cm = w->options.rdma.connect == WIRE_CONNECT_CM;
    int err = check_options(w);
    return err ? err : rdma_devices_open(w);
}

int rdma_link(struct wire_link *l)
{
    struct wire *w = l->worker->wire;
    struct rdma *r = rdma_of(w);
    struct rdma_queue *q = &r->queues[l->index];

    if (r->made)
        return rdma_fail(w, -EINVAL, "a link after the first address was made");
    if (w->options.windows != (l->window.message_bytes > 0))
        return rdma_fail(w, -EINVAL, "either all links have a window or none has");
    if (l->worker->rail >= r->n_rails)
        return rdma_fail(w, -ENODEV, "no device to make queues on");
    l->state = q;
    q->link = l;
    q->rail = &r->rails[l->worker->rail];
    q->psn = (uint32_t)(clock_now_ns() / 64 + l->index * 7919u) & 0xffffff;
    r->core->name(w->world, l->peer, q->peer, sizeof(q->peer));
    snprintf(l->device, sizeof(l->device), "%s", w->rails[l->worker->rail].name);
    if (w->options.windows)
        return rdma_window_link(l);
    rdma_messages_link(q);
    return 0;
}

void rdma_close(struct wire *w)
{
    struct rdma *r = rdma_of(w);

    rdma_queues_close(w);
    rdma_regions_close(r);
    rdma_devices_close(r);
    if (r->cm_events)
        rdma_destroy_event_channel(r->cm_events);
    free(r);
    w->state = NULL;
}

__attribute__((visibility("default"))) const struct rdma_module plumb_rdma_module = {
    .abi = RDMA_MODULE_ABI,
    .layout = RDMA_LAYOUT,
    .backends = rdma_devices_say,
    .open = open_wire,
};

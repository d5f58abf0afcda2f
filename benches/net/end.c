/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a point: made, told about, taken down. See net.h and order.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benches/net/order.h"
#include "core/hw/machine.h"
#include "core/hw/nic.h"
#include "core/units.h"

/* Bounds of what came from the other end: it proved who it is, not that it is sound. */
static int check_point(struct net_end *e, const struct net_point *p)
{
    bool streams = p->stream[NET_FORWARD] || p->stream[NET_REVERSE];

    if (p->message_bytes > NET_BYTES_MAX || p->ping_bytes > NET_BYTES_MAX)
        return net_fail(e, -EINVAL, "messages of more than %llu bytes are out of bounds",
                        (unsigned long long)NET_BYTES_MAX);
    if (p->connections > NET_CONNECTIONS_MAX || p->threads > NET_WORKERS_MAX / 2 ||
        (streams && (!p->connections || !p->threads || !p->message_bytes)) ||
        (p->ping && !p->ping_bytes) || (!streams && !p->ping))
        return net_fail(
            e, -EINVAL,
            "%u connections over %u threads with messages of %llu bytes are out of bounds: "
            "at most %d over %d, of 1 byte or more",
            p->connections, p->threads, (unsigned long long)p->message_bytes, NET_CONNECTIONS_MAX,
            NET_WORKERS_MAX / 2);
    return 0;
}

/* By two names, it may be: an interface's and its address. Its rate would count twice in the sum's limit, and the rows be one case. */
static int check_rails(struct net_end *e)
{
    for (unsigned i = 0; i < e->n_rails; i++)
        for (unsigned k = 0; k < i; k++)
            if (!strcmp(e->rails[i].name, e->rails[k].name))
                return net_fail(e, -EINVAL, "'%.64s' is '%s' twice: each device once",
                                e->local->devices, e->rails[i].name);
    return 0;
}

int net_end_open(struct net_end *e, const struct net_order *order, struct channel *c,
                 const struct topo *topo, bool leader, bool same_machine)
{
    *e = (struct net_end){.point = &order->point,
                          .local = &order->local,
                          .topo = topo,
                          .channel = c,
                          .leader = leader,
                          .same_machine = same_machine,
                          .memory_node = -1};
    pthread_mutex_init(&e->error_lock, NULL);
    int err = check_point(e, e->point);
    if (err)
        return err;
    e->ops = net_find(e->point->transport);
    if (!e->ops)
        return net_fail(e, -EOPNOTSUPP, "this build knows no transport '%.15s'",
                        e->point->transport);
    size_t n = e->point->connections + 1u;
    e->counts = aligned_alloc(_Alignof(struct net_count), n * sizeof(*e->counts));
    e->expect = calloc(n, sizeof(*e->expect));
    if (!e->counts || !e->expect)
        return net_fail(e, -ENOMEM, "out of memory");
    memset(e->counts, 0, n * sizeof(*e->counts));
    err = e->ops->open(e);
    if (err)
        return net_fail(e, err, "%s: %s", e->ops->name, strerror(-err));
    err = check_rails(e);
    if (err)
        return err;
    if (e->point->connections && e->point->connections < e->n_rails)
        return net_fail(e, -EINVAL, "%u devices want a stream each: --streams %u or more",
                        e->n_rails, e->n_rails);
    for (unsigned i = 0; i < e->n_rails; i++)
        if (!strcmp(e->rails[i].kind, "tcp"))
            nic_fill(&e->rails[i], e->rails[i].name);
    return net_seat(e, order->cpus, order->n_cpus);
}

void net_end_close(struct net_end *e)
{
    net_workers_end(e);
    path_close(e->path);
    if (e->ops)
        e->ops->close(e);
    free(e->workers);
    free(e->counts);
    free(e->expect);
    pthread_mutex_destroy(&e->error_lock);
    *e = (struct net_end){0};
}

void net_end_rails(const struct net_end *e, struct net_rails *rails)
{
    *rails =
        (struct net_rails){.n = e->n_rails, .n_cpus = e->n_cpus, .memory_node = e->memory_node};
    memcpy(rails->rails, e->rails, sizeof(rails->rails));
    for (unsigned i = 0; i < e->n_cpus; i++)
        rails->cpus[i] = e->cpus[i];
}

/* Where the kernel's counters cannot be read there is no proof, and the row says so. */
void net_prove_begin(struct net_end *e)
{
    if (path_begin(&e->path))
        e->path = NULL;
}

void net_received(const struct net_end *e, uint64_t *received)
{
    for (unsigned i = 0; i <= e->point->connections; i++)
        received[i] = atomic_load(&e->counts[i].received);
}

static double larger(uint64_t a, uint64_t b)
{
    return (double)(a > b ? a : b);
}

/* A message of its own is a packet at least; TCP puts many of a stream into one. */
static bool tells_messages(const struct net_end *e, unsigned connection)
{
    return connection == e->point->connections ||
           (e->ops->counts_whole && strncmp(e->rails[net_rail_of(e, connection)].kind, "iwarp", 5));
}

/* Whose memory is written or read by the other end's NIC counts nothing itself: the other end knows. */
static void add_claims(const struct net_end *e, const uint64_t *others_received,
                       struct path_claim *claims)
{
    const struct net_point *p = e->point;

    for (unsigned i = 0; i <= p->connections; i++) {
        struct path_claim *claim = &claims[net_rail_of(e, i)];
        double bytes = (double)(i == p->connections ? p->ping_bytes : p->message_bytes);
        double sent = larger(atomic_load(&e->counts[i].sent), others_received[i]);
        double received = larger(atomic_load(&e->counts[i].received), e->expect[i]);
        claim->out_bytes += bytes * sent;
        claim->in_bytes += bytes * received;
        if (tells_messages(e, i)) {
            claim->out_messages += sent;
            claim->in_messages += received;
        }
    }
}

void net_prove_end(struct net_end *e, const uint64_t *others_received)
{
    struct path_claim claims[NET_RAILS_MAX] = {0};

    if (!e->path)
        return;
    for (unsigned i = 0; i < e->n_rails; i++) {
        snprintf(claims[i].device, sizeof(claims[i].device), "%s",
                 e->leader && e->point->inject == NET_ELSEWHERE ? "nowhere0" : e->rails[i].name);
        claims[i].message_bytes =
            (double)(e->point->message_bytes ? e->point->message_bytes : e->point->ping_bytes);
        claims[i].mtu_bytes = e->rails[i].mtu_bytes;
    }
    add_claims(e, others_received, claims);
    path_end(e->path, claims, e->n_rails, &e->proof);
    path_close(e->path);
    e->path = NULL;
}

static void less_mark(const struct net_end *e, struct net_fact *fact)
{
    for (size_t i = 0; i < e->n_mark_facts; i++)
        if (!strcmp(fact->unit, "count") && !strcmp(fact->metric, e->mark_facts[i].metric))
            fact->value -= e->mark_facts[i].value;
}

void net_facts_take(struct net_end *e)
{
    e->n_facts = e->ops->facts ? e->ops->facts(e, e->facts) : 0;
    for (size_t i = 0; i < e->n_facts; i++)
        less_mark(e, &e->facts[i]);
}

void net_tell(struct net_end *e, struct net_told *told)
{
    *told = (struct net_told){.proof = e->proof, .n_facts = (uint32_t)e->n_facts};
    memcpy(told->facts, e->facts, sizeof(told->facts));
    net_end_rails(e, &told->rails);
}

#define END(text) ((text)[sizeof(text) - 1] = 0)

bool net_rails_sound(struct net_rails *rails)
{
    if (!rails->n || rails->n > NET_RAILS_MAX || rails->n_cpus > NET_WORKERS_MAX)
        return false;
    for (unsigned i = 0; i < rails->n; i++) {
        struct net_rail *r = &rails->rails[i];
        END(r->name);
        END(r->kind);
        END(r->text);
        END(r->line_source);
    }
    return true;
}

bool net_told_sound(struct net_told *told)
{
    END(told->proof.text);
    if (told->n_facts > NET_FACTS_MAX || !net_rails_sound(&told->rails))
        return false;
    for (unsigned i = 0; i < told->n_facts; i++) {
        END(told->facts[i].metric);
        END(told->facts[i].unit);
        if (!units_find(told->facts[i].unit))
            return false;
    }
    return true;
}

bool net_beats(struct channel *c)
{
    return strcmp(channel_base(c)->ops->name, "mpi") != 0;
}

void net_watch_idle(uint64_t ns, struct net_hello *hello)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    struct cpu_reading before, after;
    bool known = !cpu_read(&before);

    while (nanosleep(&t, &t) && errno == EINTR) {
    }
    known = known && !cpu_read(&after);
    hello->idle_cores = known ? cpu_busy(&before, &after) : NAN;
    hello->idle_softirq = known ? cpu_softirq(&before, &after) : NAN;
}

/* FNV-1a over what decides the layout. */
uint32_t net_protocol(void)
{
    static const uint32_t layout[] = {
        7, /* of the requests: raise it when their order or meaning changes */
        sizeof(struct net_hello),
        sizeof(struct net_order),
        sizeof(struct net_rails),
        sizeof(struct net_told),
        sizeof(struct net_reading),
        sizeof(struct net_reply),
        __BYTE_ORDER__,
        sizeof(long)};
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof(layout); i++)
        hash = (hash ^ ((const unsigned char *)layout)[i]) * 16777619u;
    return hash;
}

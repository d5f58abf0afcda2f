/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of the benchmark `net`: from options to a point that runs. See
 * net_work.h; rows: net_rows.c. */
#include "benches/net/net_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hw/gpu_watch.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"

/* "mlx5_0" is its port 1. */
static size_t device_chars(const char *name)
{
    size_t n = strcspn(name, "+"), port = strcspn(name, ":+");

    return n == port + 2 && !strncmp(name + port, ":1", 2) ? port : n;
}

int net_parse_devices(const char *text, void *value, char *error, size_t len)
{
    const char *next;

    *(const char **)value = text;
    if (strlen(text) >= sizeof(((struct net_local *)NULL)->devices)) {
        snprintf(error, len, "'%.40s...' is too long a list of devices", text);
        return -EINVAL;
    }
    for (const char *one = text; *one; one = next + (*next == '+')) {
        next = one + strcspn(one, "+");
        for (const char *other = next; *other; other += strcspn(other, "+")) {
            size_t n = device_chars(one);
            if (n != device_chars(++other) || strncmp(one, other, n) != 0)
                continue;
            snprintf(error, len, "'%s' names '%.*s' twice: each device once", text, (int)n, one);
            return -EINVAL;
        }
    }
    return 0;
}

#define WINDOW_NS       20000000u   /* of a stream's sample */
#define IDLE_NS         1000000000u /* how long the idle machines are watched */
#define LATENCY_SAMPLES 10000       /* for a percentile to p99.9 */

static bool is_latency(const struct net_params *p)
{
    return p->pattern == NET_LATENCY || p->pattern == NET_LOADED_LATENCY;
}

int net_bench_open(struct point *ctx)
{
    ctx->bench_state = calloc(1, sizeof(struct net_session));
    return ctx->bench_state ? 0 : -ENOMEM;
}

void net_bench_close(struct point *ctx)
{
    struct net_session *s = ctx->bench_state;

    bool broken = s->lead && net_lead_broken(s->lead);
    net_lead_close(s->lead);
    if (!broken) /* a rank that hangs would be waited for without end: the launcher ends it */
        net_peer_end();
    free(s->windows.ns);
    free(s);
}

/* One peer for all points; another one where it was lost. */
static int need_lead(struct point *pt, struct net_session *s)
{
    const struct net_params *p = pt->params;
    struct channel *c = NULL;
    char error[512] = "";

    if (s->lead && net_lead_broken(s->lead)) {
        net_lead_close(s->lead);
        s->lead = NULL;
    }
    if (s->lead)
        return 0;
    if (s->unreachable) /* as often as it was given time for */
        return point_reason(pt, s->unreachable, "%s", s->why_unreachable);
    int err = net_peer_open(&c, p, &s->secret, pt->cancel, error, sizeof(error));
    if (err && net_peer_kind(p) == NET_GROUP_LOCAL)
        return point_reason(pt, err, "%s", error); /* nothing was waited for */
    if (err) {
        s->unreachable = err;
        snprintf(s->why_unreachable, sizeof(s->why_unreachable), "%s", error);
        return point_reason(pt, err, "%s", error);
    }
    err = net_lead_open(&s->lead, c, point_topo(pt), p->no_cpu ? 0 : IDLE_NS);
    if (err)
        point_reason(pt, err, "%s", s->lead ? net_lead_error(s->lead) : strerror(-err));
    if (err) {
        net_lead_close(s->lead);
        s->lead = NULL;
    }
    return err;
}

static void fill_tcp(const struct net_params *p, struct net_tcp *tcp)
{
    *tcp = (struct net_tcp){.mode = (uint32_t)p->mode,
                            .zerocopy = p->zerocopy,
                            .spin = p->wait == 1,
                            .busy_poll_us = (uint32_t)p->busy_poll_us,
                            .buffer_bytes = p->buffer_bytes,
                            .data_port = (uint32_t)p->data_port};
    snprintf(tcp->congestion, sizeof(tcp->congestion), "%s", p->congestion ? p->congestion : "");
}

static void fill_rdma(const struct net_params *p, struct net_rdma *rdma)
{
    *rdma = (struct net_rdma){.verb = (uint32_t)p->verb,
                              .connect = (uint32_t)p->connect,
                              .depth = (uint32_t)p->depth,
                              .signal_every = (uint32_t)p->signal_every,
                              .inline_bytes = p->inline_bytes,
                              .events = p->completion == 1,
                              .mtu = (uint32_t)p->mtu,
                              .gid_index = p->gid_index,
                              .timeout = (uint32_t)p->timeout,
                              .retry = (uint32_t)p->retry};
}

void net_point_of(const struct net_params *p, uint64_t seed, struct net_point *point)
{
    bool streams = p->pattern != NET_LATENCY;

    *point = (struct net_point){.ping = is_latency(p),
                                .count_messages = p->pattern == NET_MESSAGE_RATE,
                                .inject = (uint8_t)p->inject,
                                .seed = seed};
    snprintf(point->transport, sizeof(point->transport), "%s", net_names[p->transport]);
    point->stream[NET_FORWARD] = streams && p->way != NET_WAY_REVERSE;
    point->stream[NET_REVERSE] = streams && p->way != NET_WAY_FORWARD;
    if (streams) {
        point->connections = (uint32_t)p->streams;
        point->threads = (uint32_t)(p->threads ? p->threads : 1);
        point->message_bytes = p->pattern == NET_LOADED_LATENCY ? p->load_size : p->size;
    }
    if (point->ping)
        point->ping_bytes = p->size;
    fill_tcp(p, &point->tcp);
    fill_rdma(p, &point->rdma);
    if (!strcmp(point->transport, "tcp") && p->mode == NET_TCP_BLOCKING && !p->threads)
        point->threads = point->connections;
}

/* What the columns show where it is not what was asked for. */
static void show_point(struct point *pt, const struct net_point *point)
{
    const struct net_params *p = pt->params;

    if (point->connections)
        point_option(pt, "threads", "%u", point->threads);
    if (p->pattern == NET_LATENCY && p->samples_chosen)
        pt->max_samples = 10 * LATENCY_SAMPLES;
}

/* The thread that pings stays where it is: near the other end or far from it makes a latency
 * of its own. */
static int bind_leader(struct point *pt, struct net_session *s)
{
    const struct net_rails *rails = &net_lead_report(s->lead, NET_OWN)->rails;
    unsigned cpu =
        rails->cpus[rails->n_cpus - 1]; /* beside streams: not a worker's, if there is another */
    int err = topo_bind_self(point_topo(pt), cpu);

    if (err)
        return point_reason(pt, err, "cannot bind this thread to CPU %u: %s", cpu, strerror(-err));
    s->bound = true;
    return 0;
}

/* The GPU that this end's buffers are on: is it there, is it a stand-in; and its clocks are
 * watched. The end opens it by itself. */
static int need_gpu(struct point *pt, const struct net_params *p)
{
    char error[256] = "";
    struct place place;
    struct gpu *gpu;

    if (strcmp(net_names[p->transport], "rdma") != 0 || !p->memory || !*p->memory)
        return 0;
    int err = place_parse(p->memory, PLACE_WHOLE | PLACE_GPU, &place, error, sizeof(error));
    if (err)
        return point_reason(pt, err, "%s", error);
    return place.gpu ? point_gpu(pt, place.index, &gpu) : 0;
}

int net_bench_setup(struct point *pt)
{
    const struct net_params *p = pt->params;
    struct net_session *s = pt->bench_state;
    struct net_local own, peers;

    if (!point_topo(pt))
        return -EIO;
    pt->sample_ns = 0; /* one operation, or one window, a sample */
    if (is_latency(p) && pt->min_samples < LATENCY_SAMPLES)
        pt->min_samples = LATENCY_SAMPLES;
    s->begun = false;
    s->samples = s->windows.n = 0;
    net_point_of(p, pt->common->seed, &s->point);
    if (!strcmp(s->point.transport, "tcp") && s->point.tcp.mode == NET_TCP_BLOCKING &&
        s->point.connections && s->point.threads != s->point.connections)
        return point_reason(pt, -EOPNOTSUPP,
                            "with --mode blocking each of the %u streams has a thread: leave "
                            "--threads out, or take --mode epoll",
                            s->point.connections);
    if (s->point.threads > NET_WORKERS_MAX / 2)
        return point_reason(pt, -EOPNOTSUPP,
                            "%u streams want as many threads, there are %d at most: --mode epoll "
                            "--threads 2, say",
                            s->point.connections, NET_WORKERS_MAX / 2);
    show_point(pt, &s->point);
    net_rows_series_of(pt, s, NULL, 0); /* so that a row that fails says what it was to measure */
    int err = need_lead(pt, s);         /* which may fork: before a driver is started here */
    if (!err)
        err = need_gpu(pt, p);
    if (err)
        return err;
    net_peer_locals(p, &own, &peers);
    err = net_lead_begin(s->lead, &s->point, &own, &peers);
    if (err)
        return point_reason(pt, err, "%s", net_lead_error(s->lead));
    net_rows_series(pt, s);
    if (s->point.connections)
        point_option(pt, "threads", "%u", net_lead_thread_count(s->lead));
    return s->point.ping ? bind_leader(pt, s) : 0;
}

/* The warm-up is over. */
int net_bench_begin(struct point *pt)
{
    struct net_session *s = pt->bench_state;
    int err = net_lead_mark(s->lead);

    s->begun = true;
    return err ? point_reason(pt, err, "%s", net_lead_error(s->lead)) : 0;
}

static int windows_add(struct net_windows *w, uint64_t ns)
{
    if (w->n == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 1024;
        double *more = realloc(w->ns, capacity * sizeof(*more));
        if (!more)
            return -ENOMEM;
        w->ns = more;
        w->capacity = capacity;
    }
    w->ns[w->n++] = (double)ns;
    return 0;
}

int net_bench_sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    const struct net_params *p = pt->params;
    struct net_session *s = pt->bench_state;
    int err = 0;

    if (!s->point.ping)
        err = net_lead_stream(s->lead, WINDOW_NS, pt->cancel, ns);
    if (!s->point.ping && pt->watch)
        gpu_watch_look(pt->watch); /* the workers go on meanwhile */
    for (uint64_t i = 0, one; s->point.ping && i < inner && !err; i++) {
        err = net_lead_ping(s->lead, &one);
        ns[0] = i ? ns[0] + one : one;
    }
    if (!s->point.ping && s->begun && !err)
        err = windows_add(&s->windows, ns[pt->n_series - 1]);
    s->samples += s->begun;
    if (p->iterations && s->begun)
        pt->enough = (s->point.ping ? s->samples : net_lead_messages(s->lead)) >= p->iterations;
    return err ? point_reason(pt, err, "%s", net_lead_error(s->lead)) : 0;
}

/* Samples are kept in memory: a time or a number may be asked for that takes more than there
 * is room for. */
static void tell_cut(struct point *pt, const struct net_session *s)
{
    const struct net_params *p = pt->params;

    if ((p->duration_ns || p->iterations) && !pt->enough && s->samples >= pt->max_samples)
        point_reason(pt, 0,
                     "it ended at %llu samples (--max-samples), before the %s that was asked for",
                     (unsigned long long)s->samples, p->iterations ? "number" : "time");
}

int net_bench_check(struct point *pt)
{
    struct net_session *s = pt->bench_state;
    int err = net_lead_end(s->lead);

    if (err)
        return point_reason(pt, err, "%s", net_lead_error(s->lead));
    tell_cut(pt, s);
    net_rows_figures(pt, s);
    net_rows_judge(pt, s);
    return 0;
}

int net_bench_evidence(struct point *pt)
{
    net_rows_evidence(pt, pt->bench_state);
    return 0;
}

void net_bench_teardown(struct point *pt)
{
    struct net_session *s = pt->bench_state;

    if (s->lead)
        net_lead_finish(s->lead);
    if (s->bound)
        topo_unbind_self(point_topo(pt));
    s->bound = false;
}

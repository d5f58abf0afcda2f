/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the plateau: see net_work.h. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "benches/net/net_work.h"
#include "core/units.h"
#include "core/wire/wires.h"

#define STEPS_MAX  24
#define WINDOW_NS  50000000u
#define WARM_UPS   6  /* windows */
#define WINDOWS    10 /* that count */
#define START_SIZE 1048576u

struct tune {
    struct net_params params; /* as found so far */
    struct topo *topo;
    struct net_lead *lead;
    const volatile int *cancel;
    char *error;
    size_t len;
};

const struct search_policy tune_policy = {
    .gain = 0.02, .patience = 2, .favoured = UINT_MAX, .tie = 1 / TUNE_SHARE - 1};

static int keep_error(struct tune *t, int err)
{
    snprintf(t->error, t->len, "%s", net_lead_error(t->lead));
    return err;
}

/* Bytes over time, stalls and all, of half a second in the steady state. */
static int measure(struct tune *t, double *gbps)
{
    struct net_point point;
    struct net_local own, peers;
    uint64_t ns[NET_RATES_MAX];

    net_point_of(&t->params, 1, &point);
    net_peer_locals(&t->params, &own, &peers);
    int err = net_lead_begin(t->lead, &point, &own, &peers);
    for (int i = 0; !err && i < WARM_UPS + WINDOWS && !*t->cancel; i++) {
        err = i == WARM_UPS ? net_lead_mark(t->lead) : 0;
        err = err ? err : net_lead_stream(t->lead, WINDOW_NS, t->cancel, ns);
    }
    if (!err)
        err = *t->cancel ? -EINTR : net_lead_end(t->lead);
    if (err)
        keep_error(t, err);
    *gbps = err ? 0 : net_lead_average(t->lead);
    net_lead_finish(t->lead);
    return err;
}

/* A value that is doubled from `first` to `last`. */
struct doubling {
    struct tune *tune;
    const char *what;
    uint64_t *value, first, last;
};

static bool double_value(void *arg, unsigned i, const struct search_result *so_far)
{
    struct doubling *d = arg;

    (void)so_far;
    *d->value = d->first << i;
    return *d->value <= d->last;
}

/* A run of a search. Its unit of work is a byte. */
static int measure_value(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct doubling *d = arg;
    double gbps;
    int err = measure(d->tune, &gbps);

    (void)i;
    (void)passes;
    if (!err)
        fprintf(stderr, "%s: tune: %s %" PRIu64 ": %.4g GB/s\n", program_invocation_short_name,
                d->what, *d->value, gbps);
    *run = (struct search_run){.cost = 1 / gbps};
    return err;
}

/* Leaves the least value that is on the plateau in *value. */
static int search(struct tune *t, const char *what, uint64_t *value, uint64_t first, uint64_t last)
{
    struct doubling d = {t, what, value, first, last};
    const struct search search = {.policy = &tune_policy,
                                  .n = STEPS_MAX,
                                  .run = measure_value,
                                  .next = double_value,
                                  .arg = &d};
    struct search_result found;
    int err = search_run(&search, &found);

    *value = first << found.best;
    return err;
}

static int search_all(struct tune *t, bool has_depth)
{
    uint64_t rails = 1;

    for (const char *p = t->params.device; p && *p; p++)
        rails += *p == '+';
    t->params.pattern = NET_BANDWIDTH;
    t->params.size = START_SIZE;
    int err = search(t, "streams", &t->params.streams, rails, rails * 16);
    if (!err && has_depth)
        err = search(t, "depth", &t->params.depth, 1, 1024);
    return err ? err : search(t, "size", &t->params.size, 4096, 16u << 20);
}

static int set_number(struct opts *o, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    return opts_set(o, name, text);
}

/* What was found is what the sweep then is. */
static int keep_found(struct tune *t, struct opts *o, bool has_depth)
{
    char size[24];
    int err = set_number(o, "streams", t->params.streams);

    if (!err && has_depth)
        err = set_number(o, "depth", t->params.depth);
    if (!err)
        err = set_number(o, "size", t->params.size);
    if (!err)
        err = opts_set(o, "pattern", "bandwidth");
    if (err) {
        snprintf(t->error, t->len, "%.200s", o->error);
        return err;
    }
    fprintf(stderr, "%s: tune: the plateau begins at %" PRIu64 " stream%s",
            program_invocation_short_name, t->params.streams, t->params.streams == 1 ? "" : "s");
    if (has_depth)
        fprintf(stderr, ", depth %" PRIu64, t->params.depth);
    fprintf(stderr, ", size %s (within %.0f %% of the best)\n",
            units_format_size(t->params.size, size, sizeof(size)), 100 * (1 - TUNE_SHARE));
    return 0;
}

static int refuse(const struct opts *o, const struct net_params *p, char *error, size_t len)
{
    if (opts_values(o, "transport")->n != 1)
        snprintf(error, len, "--tune looks for one transport's plateau: --transport tcp, say");
    else if (pair_kind(&p->meet) == PAIR_MPI)
        snprintf(error, len, "--tune takes a listener or a process here as its peer, not ranks");
    else if (p->meet.secret_file && !strcmp(p->meet.secret_file, "-"))
        snprintf(error, len,
                 "--tune meets the peer twice, and stdin tells the secret but once: give "
                 "--secret-file a file");
    else if (pair_kind(&p->meet) == PAIR_NONE && net_peer_gpu(p->peer_memory))
        snprintf(
            error, len,
            "--tune forks a peer, and after it another one, which could use no GPU by then: for "
            "--peer-memory %s start a listener (%s --listen) and give its host",
            p->peer_memory, program_invocation_short_name);
    else if (p->rail && *p->rail)
        snprintf(error, len, "--tune takes no --rail: give its adapter with --device");
    else if (opts_values(o, "size")->given || opts_values(o, "streams")->given ||
             opts_values(o, "depth")->given)
        snprintf(error, len, "--tune finds --streams, --depth and --size: leave them out");
    else
        return 0;
    return -EINVAL;
}

int net_tune(struct opts *o, const struct net_params *p, const volatile int *cancel, char *error,
             size_t len)
{
    struct tune t = {.params = *p, .cancel = cancel, .error = error, .len = len};
    struct meet_secret secret = {0};
    struct channel *c = NULL;
    bool has_depth = wire_find(wire_names[p->transport])->windows;

    t.params.sizes_chosen = false;
    int err = refuse(o, p, error, len);
    if (!err && (err = topo_open(&t.topo)))
        snprintf(error, len, "hwloc cannot read this machine's topology: %s", strerror(-err));
    if (err)
        return err;
    err = net_peer_open(&c, p, &secret, cancel, error, len);
    if (!err) {
        err = net_lead_open(&t.lead, c, t.topo, 0);
        if (err && t.lead)
            keep_error(&t, err);
    }
    if (!err)
        err = search_all(&t, has_depth);
    net_lead_close(t.lead);
    topo_close(t.topo);
    return err ? err : keep_found(&t, o, has_depth);
}

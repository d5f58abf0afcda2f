/* SPDX-License-Identifier: Apache-2.0 */
/* The runner: see runner.h. */
#include "core/bench/runner.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"
#include "core/option.h"
#include "core/rng.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/text.h"
#include "core/units.h"

#define TOLD_SAMPLES 1000u

static size_t count_points(const struct runner *r)
{
    size_t n = 1;

    for (size_t i = 0; i < r->n_own; i++) {
        size_t values = r->o->values[r->first_own + i].n;
        if (values && n > OPT_LIST_MAX * (size_t)64 / values)
            return SIZE_MAX;
        n *= values ? values : 1;
    }
    return n;
}

/* Number `index` of the sweep as a choice of one value for each option; the last option varies
 * fastest. */
static void pick_values(const struct runner *r, size_t index, size_t *pick)
{
    for (size_t i = r->n_own; i-- > 0;) {
        size_t values = r->o->values[r->first_own + i].n;
        pick[i] = values ? index % values : 0;
        index /= values ? values : 1;
    }
}

static int sample_point(void *arg, uint64_t inner, uint64_t *ns)
{
    struct point *pt = arg;

    return pt->work->sample(pt, inner, ns);
}

/* The warm-up is over: a GPU is watched from here, as other processes watch theirs. */
static int begin_point(void *arg)
{
    struct point *pt = arg;

    if (pt->watch)
        gpu_watch_begin(pt->watch);
    return pt->bench->begin ? pt->bench->begin(pt) : 0;
}

/* Sampling, with what the machine did beside it. */
static void sample_watched(struct point *pt, const struct sampler_config *config,
                           struct outcome *oc)
{
    struct ledger_mark before, after;
    char held_back[sizeof(oc->disturbed)];

    ledger_mark(&before);
    gpu_ledger_none(&pt->seen);
    if (pt->watch)
        gpu_watch_begin(pt->watch);
    oc->err = sampler_run(config, sample_point, pt, pt->n_series, &oc->samples);
    if (pt->watch) {
        gpu_watch_end(pt->watch, &oc->gpu);
        oc->gpu.samples = (double)oc->samples.n;
        oc->gpu.throttled_samples = 0;
        for (uint64_t i = 0; i < oc->samples.n; i++)
            oc->gpu.throttled_samples += runner_held(pt, &oc->samples, i) ? 1 : 0;
        pt->seen = oc->gpu;
    }
    ledger_mark(&after);
    ledger_between(&before, &after, &oc->ledger);
    ledger_disturbance(&oc->ledger, oc->disturbed, sizeof(oc->disturbed));
    gpu_ledger_disturbance(&oc->gpu, held_back, sizeof(held_back));
    if (held_back[0])
        evidence_add(oc->disturbed, sizeof(oc->disturbed), "%s%s", pt->watch_of, held_back);
}

/* The latest samples are enough for an estimate, and sorted in no time. */
static void tell(void *arg, const struct samples *so_far)
{
    struct point *pt = arg;
    const struct series *s = &pt->series[0];
    size_t n = so_far->n < TOLD_SAMPLES ? so_far->n : TOLD_SAMPLES;
    struct median_ci ci;

    if (stats_ci_samples(so_far->ns[0] + so_far->n - n, n, pt->common->confidence, &ci))
        return;
    teller_show(pt->teller,
                units_value(units_find(s->unit), s->quantity, so_far->inner, (uint64_t)ci.median),
                fmax(ci.high - ci.median, ci.median - ci.low) / ci.median, s->unit);
}

static void measure(struct runner *r, struct point *pt, struct outcome *oc)
{
    const struct bench_common *c = r->common;
    struct sampler_config config = {.confidence = c->confidence,
                                    .width = c->width,
                                    .min_samples = pt->min_samples,
                                    .max_samples = pt->max_samples,
                                    .budget_ns = c->budget_ns,
                                    .warmup_ns = c->warmup_ns,
                                    .sample_ns = pt->sample_ns,
                                    .max_inner = pt->max_inner,
                                    .begin = begin_point,
                                    .enough = &pt->enough,
                                    .tell = teller_is_heard(pt->teller) ? tell : NULL,
                                    .cancel = r->cancel};

    sample_watched(pt, &config, oc);
    if (!pt->gpus_loaded)
        alarm(0); /* only a device may never answer: the row can be finished */
    if (!oc->err && !oc->samples.n)
        oc->err = -EINTR;
    if (oc->err && !pt->reason[0])
        point_reason(pt, oc->err, "sampling failed: %s", strerror(-oc->err));
    if (!oc->err && pt->work->check)
        oc->check_error = pt->work->check(pt);
    if (pt->elsewhere) {
        /* Other processes tell at the end. */
        gpu_ledger_add_same(&oc->gpu, &pt->elsewhere->same);
        gpu_ledger_add(&oc->gpu, &pt->elsewhere->ledger);
        if (pt->elsewhere->disturbed[0])
            evidence_add(oc->disturbed, sizeof(oc->disturbed), "%s", pt->elsewhere->disturbed);
    }
    if (!oc->err && pt->work->evidence)
        pt->work->evidence(pt);
    if (!oc->err && pt->watch && *gpu_watch_blind(pt->watch))
        evidence_add(pt->evidence, sizeof(pt->evidence), "GPU not watched: %s",
                     gpu_watch_blind(pt->watch));
}

/* What a point opened for all that follow it. */
static void keep_loaded(struct point *proto, const struct point *pt)
{
    proto->topo_loaded = pt->topo_loaded;
    proto->gpus_loaded = pt->gpus_loaded;
    proto->watch = pt->watch;
}

/* The values of the benchmark's own options. */
static const struct opt_values *own_values(const struct runner *r)
{
    return &r->o->values[r->first_own];
}

/* What says nothing of this point is not in its rows, has its default, and is refused where it was
 * asked for. */
static int apply_scopes(const struct runner *r, const size_t *pick, struct point *pt, void *params)
{
    const struct opt *options = r->b->options;
    size_t vain = opt_in_vain(options, own_values(r), pick), column = 0;

    for (size_t i = 0; i < r->n_own; i++) {
        size_t own_column = options[i].flags & OPT_COLUMN ? column++ : SIZE_MAX;
        if (opt_speaks(options, own_values(r), pick, i))
            continue;
        if (own_column != SIZE_MAX)
            point_option(pt, r->columns.list[own_column], "%s", "");
        if (opts_apply_default(r->o, &options[i], params))
            return point_reason(pt, -EINVAL, "%s", r->o->error);
    }
    if (vain == SIZE_MAX)
        return 0;
    return point_reason(pt, -EOPNOTSUPP, "--%s does not apply here: it is for %s; leave it out",
                        options[vain].name, options[vain].scope->what);
}

/* Whether one of its options names a GPU. */
static bool is_of_gpu(const struct runner *r, const size_t *pick)
{
    char error[512];
    struct place place;

    for (size_t i = 0; i < r->n_own; i++) {
        const struct opt_values *v = &own_values(r)[i];
        if (v->n && !place_parse(v->texts[pick[i]], PLACE_GPU, &place, error, sizeof(error)))
            return true;
    }
    return false;
}

/* "memory triad 64K": what was given, or is swept over. */
static void tell_begin(struct runner *r, const size_t *pick)
{
    char label[128], size[24];
    uint64_t number;
    size_t at = (size_t)snprintf(label, sizeof(label), "%s", r->b->name);

    for (size_t i = 0; i < r->n_own && at < sizeof(label); i++) {
        const struct opt_values *v = &own_values(r)[i];
        const char *value = v->n ? v->texts[pick[i]] : "";

        if (!(r->b->options[i].flags & OPT_COLUMN) || (!v->given && v->n < 2) || !*value)
            continue;
        if (r->b->options[i].type == OPT_SIZE && !units_parse_u64(value, &number))
            value = units_format_size(number, size, sizeof(size));
        at += (size_t)snprintf(label + at, sizeof(label) - at, " %s", value);
    }
    teller_begin(&r->teller, label);
}

static int run_point(struct runner *r, size_t index)
{
    size_t pick[ROW_PARAMS_MAX * 2];
    void *params = xcalloc(1, r->b->params_size);
    struct outcome oc = {0};
    struct point pt = r->proto;

    pick_values(r, index, pick);
    if (opts_apply(r->o, r->b->options, pick, params)) {
        fprintf(stderr, "plumb-%s: %s\n", r->b->name, r->o->error);
        free(params);
        return -EINVAL;
    }
    pt.params = params;
    pt.values = own_values(r);
    pt.pick = pick;
    pt.origin = r->b->origin ? r->b->origin : "measured";
    pt.repeat = r->repeat;
    pt.work = &(struct device_work){.sample = r->b->sample,
                                    .check = r->b->check,
                                    .evidence = r->b->evidence,
                                    .teardown = r->b->teardown};
    pt.sample_ns = r->b->sample_ns;
    pt.min_samples = r->common->min_samples;
    pt.max_samples = r->common->max_samples;
    ledger_none(&oc.ledger);
    gpu_ledger_none(&oc.gpu);
    if (pt.watch)
        gpu_watch_clear(pt.watch);
    pt.teller = &r->teller;
    tell_begin(r, pick);
    oc.err = apply_scopes(r, pick, &pt, params);
    if (!oc.err)
        oc.err = r->b->setup(&pt);
    if (oc.err && is_of_gpu(r, pick))
        point_gpu_origin(&pt); /* it may be refused before any was asked for */
    if (oc.err && !pt.reason[0])
        point_reason(&pt, oc.err, "set-up failed: %s", strerror(-oc.err));
    if (!oc.err)
        measure(r, &pt, &oc);
    r->teller.done++;
    teller_end(&r->teller);
    keep_loaded(&r->proto, &pt);
    clock_utc(oc.time_utc, sizeof(oc.time_utc));
    bool drop = oc.err == -EINTR && *r->cancel; /* interrupted before there was anything to say */
    for (size_t i = 0; !drop && (i < pt.n_series || i == 0); i++)
        runner_emit(r, &pt, pick, &oc, i);
    if (!oc.err)
        runner_emit_figures(r, &pt, pick, &oc);
    row_table_point(r->out, &r->table);
    figures_release(&pt);
    if (pt.work->teardown)
        pt.work->teardown(&pt);
    samples_release(&oc.samples);
    free(params);
    return 0;
}

static bool is_repetition(const struct runner *r, size_t index)
{
    size_t pick[ROW_PARAMS_MAX * 2];

    pick_values(r, index, pick);
    return opt_repeats(r->b->options, own_values(r), pick);
}

static bool is_left_out(const struct runner *r, size_t index)
{
    size_t pick[ROW_PARAMS_MAX * 2];

    pick_values(r, index, pick);
    return opt_left_out(r->b->options, own_values(r), pick);
}

static bool is_wanted(struct runner *r, size_t index)
{
    size_t pick[ROW_PARAMS_MAX * 2];
    struct point pt = r->proto;

    if (!r->b->wanted)
        return true;
    void *params = xcalloc(1, r->b->params_size);
    pt.params = params;
    pt.values = own_values(r);
    pt.pick = pick;
    pick_values(r, index, pick);
    bool yes = opts_apply(r->o, r->b->options, pick, params) || r->b->wanted(&pt);
    keep_loaded(&r->proto, &pt);
    free(params);
    return yes;
}

/* The numbers of the points to be run, in their own order: how many. */
static size_t choose_points(struct runner *r, size_t points, uint32_t *chosen)
{
    size_t n = 0;

    for (size_t i = 0; i < points; i++)
        if (!is_repetition(r, i) && !is_left_out(r, i) && is_wanted(r, i))
            chosen[n++] = (uint32_t)i;
    if (n)
        return n;
    for (size_t i = 0; i < points; i++)
        if (!is_repetition(r, i))
            chosen[n++] = (uint32_t)i;
    return n;
}

/* ---- Values that cannot be meant ---- */

/* Does an option name a node or a GPU by a number that none has, where there are others? */
static int find_places(struct runner *r, const size_t *pick, struct point *pt)
{
    struct place place;
    char error[512];
    int err = 0;

    for (size_t i = 0; i < r->n_own && !err; i++) {
        const struct opt_values *v = &own_values(r)[i];
        bool peers = !strncmp(r->b->options[i].name, "peer", 4); /* of another machine, it may be */
        const char *name = v->n && !peers ? v->texts[pick[i]] : "";
        if (place_parse(name, PLACE_PART | PLACE_GPU, &place, error, sizeof(error)))
            continue;
        if (!place.gpu) {
            err = point_topo(pt) ? place_find(name, point_topo(pt), &place, error, sizeof(error))
                                 : -EIO;
        } else if (place.index) {
            r->gpus = r->gpus ? r->gpus : gpus_count_apart() + 1;
            if (r->gpus > 1 && place.index >= r->gpus - 1)
                err = gpus_no_such("cuda", r->gpus - 1, place.index, error, sizeof(error));
        }
        if (err)
            point_reason(pt, err, "%s", error);
    }
    return err;
}

/* Can the values of this point be meant? If not, `why` says why not. */
static bool is_possible(struct runner *r, size_t index, char *why, size_t len)
{
    size_t pick[ROW_PARAMS_MAX * 2];
    struct point pt = r->proto;
    void *params = xcalloc(1, r->b->params_size);
    int err = 0;

    pick_values(r, index, pick);
    pt.params = params;
    pt.values = own_values(r);
    pt.pick = pick;
    if (opts_apply(r->o, r->b->options, pick, params))
        err = point_reason(&pt, -EINVAL, "%s", r->o->error);
    if (!err)
        err = apply_scopes(r, pick, &pt, params);
    if (err == -EOPNOTSUPP) /* an option that no point uses was refused before */
        err = 0;
    else if (!err)
        err = find_places(r, pick, &pt);
    if (!err && !pt.reason[0] && r->b->possible)
        err = r->b->possible(&pt);
    keep_loaded(&r->proto, &pt);
    free(params);
    snprintf(why, len, "%s", pt.reason[0] ? pt.reason : strerror(-err));
    return !err;
}

/* Can value k of own option i be meant in any point? `stride`: how many points in a row have it.
 * Points that are not measured anyhow do not count. */
static bool value_is_possible(struct runner *r, size_t points, size_t i, size_t k, size_t stride,
                              char *why, size_t len)
{
    bool tried = false;

    for (size_t block = k * stride; block < points; block += stride * own_values(r)[i].n)
        for (size_t at = block; at < block + stride; at++) {
            if (is_repetition(r, at) || is_left_out(r, at))
                continue;
            if (is_possible(r, at, why, len))
                return true;
            tried = true;
        }
    return !tried;
}

/* A value that was given and cannot be meant in any point is wrong usage. */
static int refuse_values(struct runner *r, size_t points)
{
    char why[sizeof(r->proto.reason)];
    size_t stride = points;

    for (size_t i = 0; i < r->n_own; i++) {
        const struct opt_values *v = &own_values(r)[i];
        stride /= v->n ? v->n : 1;
        for (size_t k = 0; v->given && k < v->n; k++)
            if (!value_is_possible(r, points, i, k, stride, why, sizeof(why))) {
                fprintf(stderr, "plumb-%s: %s\n", r->b->name, why);
                return -EINVAL;
            }
    }
    return 0;
}

static int run_all(struct runner *r, size_t points)
{
    uint32_t *chosen = xcalloc(points, sizeof(*chosen)), *order = xcalloc(points, sizeof(*order));
    struct rng rng;
    int err = 0;

    if (!r->proto.bench_state)
        r->proto.bench_state = xcalloc(1, r->b->bench_state_size);
    if (r->common->csv)
        row_print_csv_header(r->out, r->columns.list, r->columns.n);
    else if (!r->common->json)
        runner_lay_out_table(r);
    rng_seed(&rng, r->common->seed);
    points = choose_points(r, points, chosen);
    teller_open(&r->teller, points * r->common->repeats);
    for (r->repeat = 1; !err && r->repeat <= r->common->repeats; r->repeat++) {
        memcpy(order, chosen, points * sizeof(*order));
        if (r->common->repeats > 1)
            rng_shuffle_u32(&rng, order, points);
        for (size_t i = 0; !err && i < points && !*r->cancel; i++)
            err = run_point(r, order[i]);
    }
    teller_close(&r->teller);
    row_table_end(r->out, &r->table);
    r->result->interrupted = *r->cancel != 0;
    free(chosen);
    free(order);
    return err;
}

static int open_samples(struct runner *r)
{
    const char *path = r->common->samples_path;

    if (!path)
        return 0;
    r->samples_out = fopen(path, "we");
    if (!r->samples_out) {
        fprintf(stderr, "plumb-%s: cannot write samples to '%s': %s\n", r->b->name, path,
                strerror(errno));
        return -EINVAL; /* the option's value is wrong */
    }
    fputs("repeat,row,value,origin,disturbed\n", r->samples_out);
    return 0;
}

int runner_run(const struct bench *b, struct opts *o, const struct bench_common *common, FILE *out,
               const volatile int *cancel, struct runner_session *session,
               struct runner_result *result)
{
    struct runner r = {.b = b,
                       .o = o,
                       .common = common,
                       .cancel = cancel,
                       .out = out,
                       .proto = session->proto,
                       .result = result};

    *result = (struct runner_result){0};
    runner_columns(b, &r.columns);
    while (b->options[r.n_own].name)
        r.n_own++;
    while (opts_at(o, r.first_own) != b->options)
        r.first_own++;
    size_t points = count_points(&r);
    if (points == SIZE_MAX) {
        fprintf(stderr, "plumb-%s: this sweep has over %d points: shorten a list\n", b->name,
                OPT_LIST_MAX * 64);
        return -E2BIG;
    }
    if (gethostname(r.host, sizeof(r.host) - 1))
        snprintf(r.host, sizeof(r.host), "unknown");
    r.proto.bench = b;
    r.proto.common = common;
    r.proto.cancel = cancel;
    int err = common->planned ? 0 : refuse_values(&r, points);
    if (!err)
        err = open_samples(&r);
    if (!err)
        err = run_all(&r, points);
    int lost = r.samples_out ? stream_finish(r.samples_out) : 0;
    if (lost)
        fprintf(stderr, "plumb-%s: samples in '%s' are not complete: %s\n", b->name,
                r.common->samples_path, strerror(-lost));
    if (lost && !err)
        err = -EIO;
    result->stuck = r.proto.gpus_loaded && gpus_silent(r.proto.gpus_loaded);
    r.proto.common = NULL;
    session->proto = r.proto;
    return err;
}

void runner_session_release(const struct bench *b, struct runner_session *session)
{
    if (session->proto.bench_state && b->close)
        b->close(&session->proto);
    free(session->proto.bench_state);
    gpu_watch_close(session->proto.watch);
    gpus_close(session->proto.gpus_loaded);
    topo_close(session->proto.topo_loaded);
    *session = (struct runner_session){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The runner: see runner.h. */
#include "core/runner.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/device/gpu.h"
#include "core/device/gpu_watch.h"
#include "core/evidence.h"
#include "core/ledger.h"
#include "core/levels.h"
#include "core/rng.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/units.h"

struct runner {
    const struct bench *b;
    struct opts *o;
    const struct bench_common *common;
    const volatile int *cancel;
    FILE *out, *samples_out;
    struct runner_columns columns;
    size_t n_own;     /* options in bench->options */
    size_t first_own; /* index of the first of them in opts */
    char host[256];
    struct point proto; /* what every point starts from: open()'s state and the topology */
    uint64_t repeat, launch_rows;
    struct runner_result *result;
};

void runner_columns(const struct bench *b, struct runner_columns *columns)
{
    *columns = (struct runner_columns){0};
    for (const struct opt *opt = b->options; opt && opt->name; opt++) {
        if (!(opt->flags & OPT_COLUMN))
            continue;
        char *name = columns->names[columns->n++];
        snprintf(name, sizeof(columns->names[0]), "%s", opt->name);
        for (char *dash = name; (dash = strchr(dash, '-')) != NULL;)
            *dash = '_';
    }
    columns->n_options = columns->n;
    for (size_t i = 0; b->columns && b->columns[i]; i++)
        snprintf(columns->names[columns->n++], sizeof(columns->names[0]), "%s", b->columns[i]);
    for (size_t i = 0; i < columns->n; i++)
        columns->list[i] = columns->names[i];
}

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

static void set_param(struct row *row, const char *name, const char *value)
{
    for (size_t i = 0; i < row->n_params; i++)
        if (!strcmp(row->param_names[i], name))
            row->params[i] = value;
}

/* The row's parameter columns: this point's options and outcomes, then what the point and the series
 * set for themselves. */
static void fill_params(const struct runner *r, const struct point *pt, const size_t *pick,
                        const struct series *s, struct row *row)
{
    size_t n = 0;

    row->param_names = r->columns.list;
    row->n_params = r->columns.n;
    for (size_t i = 0; i < r->n_own; i++) {
        const struct opt_values *v = &r->o->values[r->first_own + i];
        if (r->b->options[i].flags & OPT_COLUMN)
            row->params[n++] = v->n ? v->texts[pick[i]] : NULL;
    }
    for (size_t i = 0; r->b->columns && r->b->columns[i]; i++)
        row->params[n++] = pt->columns[i];
    for (size_t k = 0; k < BENCH_OPTIONS_SET_MAX && pt->options[k].name[0]; k++)
        set_param(row, pt->options[k].name, pt->options[k].value);
    for (size_t k = 0; s && k < SERIES_SET_MAX && s->set[k].column; k++)
        set_param(row, s->set[k].column, s->set[k].value);
}

static void print_row(struct runner *r, const struct row *row)
{
    if (r->common->csv)
        row_print_csv(r->out, row);
    else
        row_print_table(r->out, row);
    fflush(r->out);
    r->result->rows++;
    if (row->status && !strcmp(row->status, "wrong"))
        r->result->wrong++;
    if (row->status && !strcmp(row->status, "failed"))
        r->result->failed++;
}

/* Every sample of one series, converted to the row's unit: position of the row in this launch,
 * value. */
static void keep_samples(struct runner *r, const double *values, uint64_t n)
{
    for (uint64_t i = 0; r->samples_out && i < n; i++)
        fprintf(r->samples_out, "%llu,%llu,%.9g\n", (unsigned long long)r->repeat,
                (unsigned long long)r->launch_rows, values[i]);
}

static void fill_limit(const struct series *s, struct row *row)
{
    if (!(s->limit > 0))
        return;
    row->limit = s->limit;
    row->limit_source = s->limit_source;
    row->percent_of_limit = 100 * row->value / s->limit;
}

static int fill_values(struct runner *r, const struct series *s, const struct samples *samples,
                       size_t index, struct row *row)
{
    const struct unit *unit = units_find(s->unit);
    double *values = malloc((samples->n ? samples->n : 1) * sizeof(*values));
    int err = values ? 0 : -ENOMEM;

    if (err)
        return err;
    for (uint64_t i = 0; i < samples->n; i++)
        values[i] = units_value(unit, s->quantity, samples->inner, (uint64_t)samples->ns[index][i]);
    err = stats_summarise(values, samples->n, r->common->confidence, &row->summary);
    if (!err) {
        struct levels levels;
        row->value = row->summary.p50;
        if (!levels_of_samples(values, samples->n, &levels) && levels.two)
            row->levels = levels;
        keep_samples(r, values, samples->n);
        fill_limit(s, row);
    }
    free(values);
    return err;
}

/* What is the same in every row of a point. */
struct outcome {
    int err;         /* of setup or sampling */
    int check_error; /* of check */
    struct samples samples;
    struct ledger ledger;
    struct gpu_ledger gpu;
    char disturbed[384], time_utc[24];
};

static const char *status_of(const struct outcome *oc, int err, bool narrow)
{
    if (err == -EOPNOTSUPP || err == -ENODEV)
        return "skipped";
    if (oc->check_error == -EBADMSG)
        return "wrong";
    if (err || oc->check_error)
        return "failed";
    return narrow ? "ok" : "noisy";
}

static void describe_noise(struct point *pt, const struct outcome *oc,
                           const struct bench_common *common, const struct row *row)
{
    double half = fmax(row->summary.ci_high - row->value, row->value - row->summary.ci_low);

    if (isnan(half))
        point_reason(pt, 0, "%llu samples are too few for an interval",
                     (unsigned long long)oc->samples.n);
    else
        point_reason(pt, 0, "interval is +/- %.2g %%, wanted %.2g %%, when sampling stopped (%s)",
                     100 * half / row->value, 100 * common->width,
                     sampler_stop_name(oc->samples.stop));
}

static void emit_series(struct runner *r, struct point *pt, const size_t *pick, struct outcome *oc,
                        size_t index)
{
    const struct series *s = index < pt->n_series ? &pt->series[index] : NULL;
    struct row row;
    size_t reason_end = strlen(pt->reason);
    bool narrow = oc->samples.narrow[index];
    int err = oc->err; /* one series' error is not the next one's */

    row_init(&row);
    fill_params(r, pt, pick, s, &row);
    row.origin = pt->origin;
    row.repeat = r->repeat;
    row.host = r->host;
    row.time_utc = oc->time_utc;
    if (s) {
        row.metric = s->metric;
        row.unit = s->unit;
    }
    if (!err && s) {
        err = fill_values(r, s, &oc->samples, index, &row);
        if (err)
            point_reason(pt, err, "no summary of the samples: %s", strerror(-err));
    }
    if (!err) {
        row.samples = oc->samples.n;
        row.discarded = oc->samples.discarded;
        row.inner_repeat = oc->samples.inner;
        row.stop = sampler_stop_name(oc->samples.stop);
        row.ledger = oc->ledger;
        row.gpu = oc->gpu;
        row.gpu_throttle = oc->gpu.throttle;
        row.disturbed = oc->disturbed;
        if (!narrow)
            describe_noise(pt, oc, r->common, &row);
    }
    row.status = status_of(oc, err, narrow);
    row.reason = pt->reason;
    row.evidence = pt->evidence;
    print_row(r, &row);
    r->launch_rows++;
    pt->reason[reason_end] = 0; /* a series' own remark is not the next one's */
}

static int sample_point(void *arg, uint64_t inner, uint64_t *ns)
{
    struct point *pt = arg;

    return pt->bench->sample(pt, inner, ns);
}

/* Sampling, with what the machine did beside it. */
static void sample_watched(struct point *pt, const struct sampler_config *config,
                           struct outcome *oc)
{
    struct ledger_mark before, after;
    char held_back[sizeof(oc->disturbed)];

    ledger_mark(&before);
    if (pt->watch)
        gpu_watch_begin(pt->watch);
    oc->err = sampler_run(config, sample_point, pt, pt->n_series, &oc->samples);
    if (pt->watch)
        gpu_watch_end(pt->watch, &oc->gpu);
    ledger_mark(&after);
    ledger_between(&before, &after, &oc->ledger);
    ledger_disturbance(&oc->ledger, oc->disturbed, sizeof(oc->disturbed));
    gpu_ledger_disturbance(&oc->gpu, held_back, sizeof(held_back));
    if (held_back[0])
        evidence_add(oc->disturbed, sizeof(oc->disturbed), "%s", held_back);
}

static void measure(struct runner *r, struct point *pt, struct outcome *oc)
{
    const struct bench_common *c = r->common;
    struct sampler_config config = {.confidence = c->confidence,
                                    .width = c->width,
                                    .min_samples = c->min_samples,
                                    .max_samples = pt->max_samples,
                                    .budget_ns = c->budget_ns,
                                    .warmup_ns = c->warmup_ns,
                                    .sample_ns = pt->sample_ns,
                                    .max_inner = pt->max_inner,
                                    .cancel = r->cancel};

    sample_watched(pt, &config, oc);
    if (!oc->err && !oc->samples.n)
        oc->err = -EINTR;
    if (oc->err && !pt->reason[0])
        point_reason(pt, oc->err, "sampling failed: %s", strerror(-oc->err));
    if (!oc->err && r->b->check)
        oc->check_error = r->b->check(pt);
    if (!oc->err && r->b->evidence)
        r->b->evidence(pt);
}

/* What a point opened for all that follow it. */
static void keep_loaded(struct point *proto, const struct point *pt)
{
    proto->topo_loaded = pt->topo_loaded;
    proto->gpus_loaded = pt->gpus_loaded;
    proto->watch = pt->watch;
}

static int run_point(struct runner *r, size_t index)
{
    size_t pick[ROW_PARAMS_MAX * 2];
    void *params = calloc(1, r->b->params_size ? r->b->params_size : 1);
    struct outcome oc = {0};
    struct point pt = r->proto;

    if (!params)
        return -ENOMEM;
    pick_values(r, index, pick);
    if (opts_apply(r->o, r->b->options, pick, params)) {
        fprintf(stderr, "plumb-%s: %s\n", r->b->name, r->o->error);
        free(params);
        return -EINVAL;
    }
    pt.params = params;
    pt.origin = r->b->origin ? r->b->origin : "measured";
    pt.sample_ns = r->b->sample_ns;
    pt.max_samples = r->common->max_samples;
    ledger_none(&oc.ledger);
    gpu_ledger_none(&oc.gpu);
    if (pt.watch)
        gpu_watch_clear(pt.watch);
    oc.err = r->b->setup(&pt);
    if (oc.err && !pt.reason[0])
        point_reason(&pt, oc.err, "set-up failed: %s", strerror(-oc.err));
    if (!oc.err)
        measure(r, &pt, &oc);
    keep_loaded(&r->proto, &pt);
    clock_utc(oc.time_utc, sizeof(oc.time_utc));
    bool drop = oc.err == -EINTR && *r->cancel; /* interrupted before there was anything to say */
    for (size_t i = 0; !drop && (i < pt.n_series || i == 0); i++)
        emit_series(r, &pt, pick, &oc, i);
    r->b->teardown(&pt);
    samples_release(&oc.samples);
    free(params);
    return 0;
}

static int run_all(struct runner *r, size_t points)
{
    uint32_t *order = malloc(points * sizeof(*order));
    struct rng rng;
    int err = order ? 0 : -ENOMEM;

    rng_seed(&rng, r->common->seed);
    for (r->repeat = 1; !err && r->repeat <= r->common->repeats; r->repeat++) {
        for (size_t i = 0; i < points; i++)
            order[i] = (uint32_t)i;
        if (r->common->repeats > 1)
            rng_shuffle_u32(&rng, order, points);
        for (size_t i = 0; !err && i < points && !*r->cancel; i++)
            err = run_point(r, order[i]);
    }
    r->result->interrupted = *r->cancel != 0;
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
    fputs("repeat,row,value\n", r->samples_out);
    return 0;
}

static int close_samples(struct runner *r, int err)
{
    if (!r->samples_out)
        return err;
    int bad = ferror(r->samples_out);
    if ((fclose(r->samples_out) || bad) && !err) {
        err = -EIO;
        fprintf(stderr, "plumb-%s: samples in '%s' are not complete: %s\n", r->b->name,
                r->common->samples_path, strerror(errno));
    }
    return err;
}

static int run_open(struct runner *r, size_t points)
{
    int err = r->b->open ? r->b->open(&r->proto) : 0;

    if (err) {
        fprintf(stderr, "plumb-%s: %s\n", r->b->name,
                r->proto.reason[0] ? r->proto.reason : strerror(-err));
        return err;
    }
    if (r->common->csv)
        row_print_csv_header(r->out, r->columns.list, r->columns.n);
    else
        row_print_table_header(r->out, r->columns.list, r->columns.n);
    err = run_all(r, points);
    if (r->b->close)
        r->b->close(&r->proto);
    return err;
}

int runner_run(const struct bench *b, struct opts *o, const struct bench_common *common, FILE *out,
               const volatile int *cancel, struct runner_result *result)
{
    struct runner r = {
        .b = b, .o = o, .common = common, .cancel = cancel, .out = out, .result = result};

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
    int err = open_samples(&r);
    if (!err)
        err = run_open(&r, points);
    err = close_samples(&r, err);
    gpu_watch_close(r.proto.watch);
    gpus_close(r.proto.gpus_loaded);
    topo_close(r.proto.topo_loaded);
    return err;
}

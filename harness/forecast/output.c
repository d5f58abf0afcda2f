/* SPDX-License-Identifier: Apache-2.0 */
/* A forecast as JSON, as a plot and as files: see forecast.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/text.h"
#include "harness/forecast/forecast.h"
#include "harness/report/report.h"
#include "harness/text.h"

void forecast_put(json_t *o, const char *name, double value)
{
    if (isfinite(value))
        json_object_set_new(o, name, json_real(value));
}

static json_t *point_json(const struct forecast_point *p)
{
    json_t *o = json_object();

    forecast_put(o, "nodes", p->nodes);
    forecast_put(o, "ranks", p->ranks);
    if (p->refused)
        json_object_set_new(o, "refused", json_string(forecast_refusal_name(p->refused)));
    if (!forecast_is_given(p))
        return o;
    forecast_put(o, "step_s", p->time.step_s);
    forecast_put(o, "step_low_s", p->low_s);
    forecast_put(o, "step_high_s", p->high_s);
    forecast_put(o, "samples_per_s", p->samples_s);
    forecast_put(o, "compute_s", p->time.compute_s);
    forecast_put(o, "bubble_s", p->time.bubble_s);
    forecast_put(o, "parallel_s", p->time.parallel_s);
    forecast_put(o, "sums_s", p->time.sums_s);
    forecast_put(o, "exposed_s", p->time.exposed_s);
    forecast_put(o, "update_s", p->time.update_s);
    forecast_put(o, "sum_bytes", p->time.sum_bytes);
    if (p->law_of != JOB_NONE) {
        forecast_put(o, "doublings", p->law.doublings);
        forecast_put(o, "held_out", p->law.held_out);
    }
    forecast_put(o, "host_s", p->host_s);
    forecast_put(o, "crowding", p->crowding);
    json_object_set_new(o, "bound", json_string(forecast_bound_name(p->bound)));
    return o;
}

/* Each measured step; `made`: those with a forecast, else those that are left out. */
static json_t *checks_json(const struct forecast *f, bool made)
{
    struct forecast_check *checks = xcalloc(f->parts->n_steps, sizeof(*checks));
    size_t n = forecast_checks(f, checks);
    json_t *all = json_array();

    for (size_t i = 0; i < n; i++) {
        if ((checks[i].left == CHECK_MADE) != made)
            continue;
        json_t *o = point_json(&checks[i].point);

        forecast_put(o, "measured_s", checks[i].step->s);
        forecast_put(o, "measured_low_s", checks[i].step->low_s);
        forecast_put(o, "measured_high_s", checks[i].step->high_s);
        forecast_put(o, "nodes", checks[i].step->nodes);
        forecast_put(o, "zero", checks[i].step->zero);
        forecast_put(o, "tp", checks[i].step->tp);
        forecast_put(o, "pp", checks[i].step->pp);
        forecast_put(o, "ep", checks[i].step->ep);
        forecast_put(o, "micro", checks[i].step->micro);
        json_object_set_new(o, "overlap", json_boolean(checks[i].step->overlap));
        if (!made)
            json_object_set_new(o, "left_out", json_string(forecast_check_name(checks[i].left)));
        json_array_append_new(all, o);
    }
    free(checks);
    return all;
}

int forecast_print_json(FILE *out, const struct forecast *f, size_t answer)
{
    json_t *all = json_object(), *points = json_array();

    json_object_set_new(all, "model", json_string(f->job.model->name));
    json_object_set_new(all, "unit", json_string(f->job.model->unit));
    forecast_put(all, "batch", f->job.batch);
    forecast_put(all, "per_node", f->per_node);
    forecast_put(all, "confidence", 0.95);
    if (f->swap.text)
        json_object_set_new(all, "swapped", json_string(f->swap.text));
    if (forecast_base(f))
        forecast_put(all, "efficiency_against_nodes", forecast_base(f)->nodes);
    for (size_t i = 0; i < f->n; i++) {
        json_t *point = point_json(&f->points[i]);

        forecast_put(point, "efficiency", forecast_efficiency(f, &f->points[i]));
        json_array_append_new(points, point);
    }
    json_object_set_new(all, "answer", point_json(&f->points[answer]));
    json_object_set_new(all, "points", points);
    json_object_set_new(all, "checks", checks_json(f, true));
    json_object_set_new(all, "checks_left_out", checks_json(f, false));
    if (model_memory_all(&f->points[answer].time.memory) > 0) { /* else the step is not known */
        const struct model_memory *m = &f->points[answer].time.memory;
        json_t *o = json_object();

        forecast_put(o, "parameters", m->parameters);
        forecast_put(o, "gradients", m->gradients);
        forecast_put(o, "update", m->update);
        forecast_put(o, "activations", m->activations);
        forecast_put(o, "of", forecast_memory(f));
        json_object_set_new(all, "memory", o);
    }
    int err = json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(all);
    return err || fputc('\n', out) == EOF ? -EIO : 0;
}

/* ---- the plot ---- */

const struct plot *forecast_plot(struct pool *pool, const struct forecast *f)
{
    struct plot *plot = pool_alloc(pool, 1, sizeof(*plot));
    struct plot_line *lines = pool_alloc(pool, 2, sizeof(*lines));
    struct plot_point *points = pool_alloc(pool, 2 * f->n, sizeof(*points));
    struct plot_tick *ticks = pool_alloc(pool, f->n, sizeof(*ticks));
    const struct forecast_point *base = forecast_base(f);

    if (!base)
        return NULL;
    for (size_t i = 0; i < f->n; i++) {
        const struct forecast_point *p = &f->points[i];

        points[i] = (struct plot_point){p->nodes, p->samples_s, forecast_rate(p, p->high_s),
                                        forecast_rate(p, p->low_s)};
        points[f->n + i] =
            (struct plot_point){p->nodes, base->samples_s * p->ranks / base->ranks, NAN, NAN};
        ticks[i] = (struct plot_tick){p->nodes, pool_text(pool, "%.0f", p->nodes)};
    }
    lines[0] = (struct plot_line){.label = "forecast, 95 % interval", .points = points, .n = f->n};
    lines[1] = (struct plot_line){.label = pool_text(pool, "no loss against %s",
                                                     text_count((size_t)base->nodes, "node").text),
                                  .points = points + f->n,
                                  .n = f->n,
                                  .colour = 1,
                                  .dashed = true,
                                  .plain = true};
    *plot = (struct plot){
        .name = "forecast",
        .title = pool_text(pool, "%s: samples a second over nodes", f->job.model->name),
        .x_label = "nodes",
        .y_label = "samples a second",
        .x_log = true,
        .y_log = true,
        .ticks = ticks,
        .n_ticks = f->n,
        .lines = lines,
        .n_lines = 2,
        .watermark = "forecast"};
    return plot;
}

/* ---- files ---- */

static void write_section(FILE *out, void *context)
{
    fputs("<section id='forecast'>\n<h2>Forecast</h2>\n", out);
    document_write_html(context, out);
    fputs("</section>\n", out);
}

static int failed(const char *path, char *error, size_t len)
{
    int err = errno;

    snprintf(error, len, "cannot write '%s': %s", path, strerror(err));
    return -err;
}

static int write_markdown(struct pool *pool, const struct document *d, const char *title,
                          const char *path, char *error, size_t len)
{
    FILE *out = fopen(path, "we");
    struct document *head = document_new(pool);

    if (!out)
        return failed(path, error, len);
    document_heading(head, 1, title, "");
    int err = document_write_markdown(head, out);
    fputc('\n', out);
    err = err ? err : document_write_markdown(d, out);
    int lost = stream_finish(out);
    if (lost)
        snprintf(error, len, "cannot write '%s': %s", path, strerror(-lost));
    return lost ? -EIO : err;
}

int forecast_write(struct pool *pool, const struct document *d, const struct forecast_files *files,
                   char *error, size_t len)
{
    struct report_section section = {write_section, (void *)d};
    const char *own = pool_text(pool, "%s/forecast", files->folder);
    int err = report_make(files->runs, files->n_runs, files->folder, &section, false, error, len);

    if (err)
        return err;
    if (mkdir(own, 0777) && errno != EEXIST)
        return failed(own, error, len);
    err = write_markdown(pool, d, files->title, pool_text(pool, "%s/%s.md", own, files->name),
                         error, len);
    if (!err && files->plot)
        err = plot_write_files(pool, files->plot, 1, own, error, len);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark calls on its point: see bench.h. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bench/bench.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/topo.h"
#include "core/units.h"

/* ---- Measured ceilings ---- */

int ceilings_find(const struct ceilings *c, const char *key, double *value)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->all[i].key, key)) {
            *value = c->all[i].value;
            return 0;
        }
    return -ENOENT;
}

void ceilings_add(struct ceilings *c, const char *key, double value)
{
    struct ceiling *new = ARRAY_ADD(c->all, c->n);

    *new = (struct ceiling){.value = value};
    snprintf(new->key, sizeof(new->key), "%s", key);
}

void ceilings_raise(struct ceilings *c, const char *key, double value)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->all[i].key, key)) {
            c->all[i].value = value > c->all[i].value ? value : c->all[i].value;
            return;
        }
    ceilings_add(c, key, value);
}

void ceilings_release(struct ceilings *c)
{
    free(c->all);
    *c = (struct ceilings){0};
}

void ceiling_place(char place[CEILING_PLACE], const char *path, const unsigned *cpus, unsigned n,
                   const char *detail, ...)
{
    char list[CEILING_PLACE / 2], rest[CEILING_PLACE];
    va_list ap;

    va_start(ap, detail);
    int len = vsnprintf(rest, sizeof(rest), detail, ap);
    va_end(ap);
    topo_cpus_text(cpus, n, list, sizeof(list));
    if (strstr(list, "..") || len >= (int)sizeof(rest) ||
        snprintf(place, CEILING_PLACE, "%s, CPUs %s, %s", path, list, rest) >= CEILING_PLACE)
        place[0] = 0;
}

/* ---- Figures ---- */

static void bug(const struct figure *f, const char *what)
{
    fprintf(stderr, "figure '%s': %s\n", f->metric, what);
    abort();
}

struct figure *point_figure(struct point *pt, const char *metric, const char *unit)
{
    struct figure **at = &pt->figures, *f = xcalloc(1, sizeof(*f));

    snprintf(f->metric, sizeof(f->metric), "%s", metric);
    snprintf(f->unit, sizeof(f->unit), "%s", unit);
    if (!units_find(f->unit))
        bug(f, "its unit is not in the table");
    while (*at)
        at = &(*at)->next;
    *at = f;
    return f;
}

void figure_set(struct figure *f, const char *column, const char *value)
{
    size_t i = 0;

    while (i < FIGURE_SET_MAX && f->set[i].column[0])
        i++;
    if (i == FIGURE_SET_MAX)
        bug(f, "too many columns are set");
    snprintf(f->set[i].column, sizeof(f->set[i].column), "%s", column);
    snprintf(f->set[i].value, sizeof(f->set[i].value), "%s", value);
}

void figure_value(struct figure *f, double value)
{
    if (!f)
        return;
    if (f->n == FIGURE_VALUES_MAX)
        bug(f, "too many values");
    f->values[f->n++] = value;
}

void figure_remark(struct figure *f, const char *remark)
{
    if (f)
        snprintf(f->remark, sizeof(f->remark), "%s", remark);
}

void figures_release(struct point *pt)
{
    while (pt->figures) {
        struct figure *next = pt->figures->next;
        free(pt->figures);
        pt->figures = next;
    }
}

/* ---- Handing on a benchmark's hooks ---- */

int work_setup(struct point *pt, const struct device_work *work)
{
    pt->work = work;
    return work->setup(pt);
}

struct topo *point_topo(struct point *pt)
{
    if (!pt->topo_loaded) {
        int err = topo_open(&pt->topo_loaded);
        if (err)
            point_reason(pt, err, "hwloc cannot read this machine's topology: %s", strerror(-err));
    }
    return pt->topo_loaded;
}

const struct bench_column *bench_columns(const struct bench *b)
{
    static const struct bench_column none[] = {{.name = NULL}};

    return b->rows && b->rows->columns ? b->rows->columns : none;
}

void point_column(struct point *pt, const char *name, const char *format, ...)
{
    const struct bench_column *columns = bench_columns(pt->bench);
    va_list args;
    size_t i = 0;

    while (columns[i].name && strcmp(columns[i].name, name) != 0)
        i++;
    if (!columns[i].name || i >= BENCH_COLUMNS_MAX) {
        fprintf(stderr, "plumb-%s: column '%s' is not declared\n", pt->bench->name, name);
        abort();
    }
    va_start(args, format);
    vsnprintf(pt->columns[i], sizeof(pt->columns[i]), format, args);
    va_end(args);
}

void point_option(struct point *pt, const char *name, const char *format, ...)
{
    va_list args;
    size_t i = 0;

    while (i < BENCH_OPTIONS_SET_MAX && pt->options[i].name[0] &&
           strcmp(pt->options[i].name, name) != 0)
        i++;
    if (i == BENCH_OPTIONS_SET_MAX) {
        fprintf(stderr, "plumb-%s: too many options are set, at '%s'\n", pt->bench->name, name);
        abort();
    }
    snprintf(pt->options[i].name, sizeof(pt->options[i].name), "%s", name);
    va_start(args, format);
    vsnprintf(pt->options[i].value, sizeof(pt->options[i].value), format, args);
    va_end(args);
}

struct gpus *point_gpus(struct point *pt)
{
    if (!pt->gpus_loaded) {
        pt->gpus_loaded = gpus_open();
        gpus_heed(pt->gpus_loaded, pt->cancel);
    }
    return pt->gpus_loaded;
}

static struct gpus *open_gpus(struct point *pt)
{
    if (!pt->watch)
        pt->watch = gpu_watch_open();
    return point_gpus(pt);
}

void point_gpu_origin(struct point *pt)
{
    open_gpus(pt);
    pt->untimed = getenv(GPU_NO_HOLD) != NULL;
    bool works = gpus_module(pt->gpus_loaded, NULL) != NULL; /* else there is nothing to watch */
    if (!strcmp(gpus_origin(pt->gpus_loaded), "simulated") ||
        (works && gpu_watch_simulated(pt->watch)))
        pt->origin = "simulated";
}

int point_gpu(struct point *pt, unsigned index, struct gpu **gpu)
{
    char error[GPU_ERROR_BYTES] = "";

    *gpu = NULL;
    int err = gpus_get(open_gpus(pt), index, gpu, error, sizeof(error));
    point_gpu_origin(pt);
    if (err)
        return point_reason(pt, err, "%s", error);
    gpu_watch_add(pt->watch, gpu_base(*gpu)->facts.address);
    return 0;
}

int point_gpu_failed(struct point *pt, struct gpu *gpu, int err)
{
    return point_reason(pt, err, "%s", gpu_error(gpu));
}

int point_reason(struct point *pt, int err, const char *format, ...)
{
    size_t at = strlen(pt->reason);
    va_list args;

    if (at && at + 3 < sizeof(pt->reason)) {
        memcpy(pt->reason + at, "; ", 3);
        at += 2;
    }
    va_start(args, format);
    vsnprintf(pt->reason + at, sizeof(pt->reason) - at, format, args);
    va_end(args);
    return err;
}

int point_refuse(struct point *pt, const struct bench_rule *rules)
{
    for (; rules->when; rules++)
        if (opt_holds(pt->bench->options, pt->values, pt->pick, rules->when))
            return point_reason(pt, -EOPNOTSUPP, "%s", rules->why);
    return 0;
}

struct series *point_series(struct point *pt, const char *metric, const char *unit, double quantity)
{
    if (pt->n_series == SAMPLER_SERIES_MAX || !units_find(unit)) {
        fprintf(stderr, "plumb-%s: series '%s' in unit '%s' does not fit the tables\n",
                pt->bench->name, metric, unit);
        abort();
    }
    struct series *s = &pt->series[pt->n_series++];
    *s = (struct series){.metric = metric, .unit = unit, .quantity = quantity, .limit = NAN};
    return s;
}

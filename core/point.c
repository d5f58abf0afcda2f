/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark calls on its point: see bench.h. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bench.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_watch.h"
#include "core/units.h"

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
    if (!pt->gpus_loaded && (pt->gpus_loaded = gpus_open()))
        gpus_heed(pt->gpus_loaded, pt->cancel);
    return pt->gpus_loaded;
}

static int open_gpus(struct point *pt)
{
    return point_gpus(pt) && (pt->watch || !gpu_watch_open(&pt->watch)) ? 0 : -ENOMEM;
}

void point_gpu_origin(struct point *pt)
{
    if (open_gpus(pt))
        return;
    bool works = gpus_module(pt->gpus_loaded, NULL) != NULL; /* else there is nothing to watch */
    if (!strcmp(gpus_origin(pt->gpus_loaded), "simulated") ||
        (works && gpu_watch_simulated(pt->watch)))
        pt->origin = "simulated";
}

int point_gpu(struct point *pt, unsigned index, struct gpu **gpu)
{
    char error[GPU_ERROR_BYTES] = "";

    *gpu = NULL;
    if (open_gpus(pt))
        return -ENOMEM;
    int err = gpus_get(pt->gpus_loaded, index, gpu, error, sizeof(error));
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

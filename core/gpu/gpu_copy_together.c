/* SPDX-License-Identifier: Apache-2.0 */
/* The same copy on several GPUs at once, against one alone: see gpu_copy.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu_copy.h"

#define SHARED     0.9 /* a GPU that keeps less of its rate shares something */
#define PAIR_TRIES 9

static bool is_taken(const struct gpu_copy *c, unsigned index)
{
    bool taken = gpu_base(gpu_copy_main(c))->index == index;

    for (unsigned g = 1; !taken && g < c->gpus; g++)
        taken = gpu_base(c->others[g])->index == index;
    return taken;
}

static int add_gpu(struct point *pt, struct gpu_copy *c, unsigned index)
{
    if (is_taken(c, index))
        return 0;
    if (c->gpus == GPU_COPY_GPUS_MAX)
        return point_reason(pt, -EOPNOTSUPP, "over %d GPUs at once", GPU_COPY_GPUS_MAX);
    int err = gpu_copy_open_gpu(pt, index, &c->others[c->gpus]);
    c->gpus += !err;
    return err;
}

/* "cuda:1+cuda:2" */
static int add_named(struct point *pt, struct gpu_copy *c)
{
    char *names = strdup(c->params->together), *rest = names, error[160] = "";
    int err = names ? 0 : -ENOMEM;

    for (char *name; !err && (name = strsep(&rest, "+")) != NULL;) {
        struct place place;
        err = place_find(name, point_topo(pt), &place, error, sizeof(error));
        if (!err && !place.device->leads) {
            snprintf(error, sizeof(error), "option '--together': '%s' is not a GPU", name);
            err = -EINVAL;
        }
        if (err)
            point_reason(pt, err, "%s", error);
        else
            err = add_gpu(pt, c, place.index);
    }
    free(names);
    return err;
}

int gpu_copy_open_others(struct point *pt, struct gpu_copy *c)
{
    bool all = !strcmp(c->params->together, "all");
    int err = 0;

    if (!strcmp(c->params->together, "none") || gpu_copy_host_end(c) < 0)
        return 0;
    for (unsigned i = 0; all && !err && i < gpus_count(point_gpus(pt)); i++)
        err = add_gpu(pt, c, i);
    if (!all)
        err = add_named(pt, c);
    if (!err && c->gpus < 2)
        return point_reason(pt, -EOPNOTSUPP, "there is no other GPU to copy at the same time");
    return err;
}

static void add_series(struct point *pt, const struct gpu_copy *c, const char *load)
{
    double bytes = (double)c->params->size;
    const char *const names[] = {"forward", "reverse", "sum"};
    unsigned n = c->each == 1 ? 1 : 3;

    for (unsigned i = 0; i < n; i++) {
        struct series *s =
            copy_series(pt, n == 1 ? "one-way" : names[i], i == 2 ? 2 * bytes : bytes);
        s->set[1].column = "load";
        s->set[1].value = load;
    }
}

void gpu_copy_together_series(struct point *pt, const struct gpu_copy *c)
{
    add_series(pt, c, "alone");
    add_series(pt, c, "together");
    struct series *s = copy_series(pt, c->each == 1 ? "one-way" : "sum",
                                   (double)c->params->size * c->each * c->gpus);
    s->set[1].column = "load";
    s->set[1].value = "all";
    s->set[2].column = "address"; /* no one link's limit is its limit */
    s->set[2].value = "";
}

/* This GPU's times alone (ns[0], and both ways ns[1] and their span ns[2]), then with the others, then
 * the span of all: as the series are. */
int gpu_copy_run_together(struct gpu_copy *c, uint64_t inner, uint64_t *ns)
{
    uint64_t each[GPU_COPY_GPUS_MAX * 2], span;
    unsigned rows = c->each == 1 ? 1 : 3;
    int err = gpu_copy_time_by_events(c->all, c->each, inner, &c->alone, each, &span);

    if (err)
        return err;
    gpu_copy_level_add(&c->time_ns, (double)each[0] / (double)inner);
    memcpy(ns, each, c->each * sizeof(*ns));
    if (rows == 3)
        ns[2] = span;
    err = gpu_copy_time_by_events(c->all, c->each * c->gpus, inner, &c->beside, each, &span);
    if (err)
        return err;
    memcpy(ns + rows, each, c->each * sizeof(*ns));
    if (rows == 3 && (err = gpu_copy_span(c->all, 2, inner, &c->beside, &ns[rows + 2])))
        return err;
    ns[2 * rows] = span;
    gpu_copy_level_add(&c->overlap, c->beside.overlap);
    gpu_copy_level_add(&c->together, (double)ns[0] / (double)ns[rows]);
    return 0;
}

/* What this GPU keeps of its rate when GPU number g alone copies beside it. */
static int measure_pair(struct gpu_copy *c, unsigned g, double *kept)
{
    struct gpu_copy_lane *lanes[4];
    struct gpu_copy_pace alone_pace = {0}, both_pace = {0};
    struct gpu_copy_level level = {0};
    uint64_t alone[2], both[4], span;
    unsigned each = c->each;
    int err = 0;

    memcpy(lanes, c->all, each * sizeof(*lanes));
    memcpy(lanes + each, c->all + g * each, each * sizeof(*lanes));
    for (int i = 0; !err && i < PAIR_TRIES; i++) {
        err = gpu_copy_time_by_events(lanes, each, c->inner, &alone_pace, alone, &span);
        if (!err)
            err = gpu_copy_time_by_events(lanes, 2 * each, c->inner, &both_pace, both, &span);
        if (!err)
            gpu_copy_level_add(&level, (double)alone[0] / (double)both[0]);
    }
    *kept = gpu_copy_level_median(&level);
    return err;
}

static int find_sharers(struct gpu_copy *c, char *text, size_t len)
{
    size_t at = 0;
    int err = 0;

    text[0] = 0;
    for (unsigned g = 1; !err && g < c->gpus; g++) {
        double kept = NAN;
        err = measure_pair(c, g, &kept);
        if (!err && kept < SHARED && at < len)
            at += (size_t)snprintf(text + at, len - at, "%s%s:%u (%.0f %%)", at ? ", " : "",
                                   gpu_ops(c->others[g])->name, gpu_base(c->others[g])->index,
                                   100 * kept);
    }
    return err;
}

int gpu_copy_together_verdict(struct point *pt, struct gpu_copy *c)
{
    double kept = gpu_copy_level_median(&c->together);
    char sharers[160];

    if (c->gpus < 2 || !(kept < SHARED))
        return 0;
    if (c->gpus == 2)
        return point_reason(pt, 0,
                            "beside %s:%u this GPU keeps %.0f %% of its rate: they share a link",
                            gpu_ops(c->others[1])->name, gpu_base(c->others[1])->index, 100 * kept);
    int err = find_sharers(c, sharers, sizeof(sharers));
    if (err)
        return gpu_copy_failed(pt, c, err);
    if (sharers[0])
        point_reason(
            pt, 0,
            "with all %u at once this GPU keeps %.0f %% of its rate: it shares a link with "
            "%s",
            c->gpus, 100 * kept, sharers);
    else
        point_reason(
            pt, 0,
            "with all %u at once this GPU keeps %.0f %% of its rate, but beside any single "
            "one over %.0f %%: what is shared is farther up, such as the host's memory",
            c->gpus, 100 * kept, 100 * SHARED);
    return 0;
}

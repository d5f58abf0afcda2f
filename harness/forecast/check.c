/* SPDX-License-Identifier: Apache-2.0 */
/* Measured steps, held against their forecasts: see forecast.h. */
#include <math.h>
#include <string.h>

#include "harness/forecast/forecast.h"

/* A row's model is what the user wrote: a name, or a path to a file. */
static bool is_model(const struct model *model, const char *written)
{
    const char *slash = strrchr(written, '/'), *name = slash ? slash + 1 : written,
               *end = strrchr(name, '.');
    size_t len = end && !strcmp(end, ".csv") ? (size_t)(end - name) : strlen(name);

    return strlen(model->name) == len && !strncmp(model->name, name, len);
}

/* Of steps of the model alone, or of all. */
static struct part_host host_of(const struct parts *p, const struct model *model, bool simulated)
{
    struct part_host host = {NAN, NAN, NAN, !model};
    double n = 0;

    for (size_t i = 0; i < p->n_steps; i++) {
        const struct part_step *step = &p->steps[i];
        double s = step->s - step->compute_s - step->update_s;

        if (step->ranks != 1 || step->simulated != simulated || isnan(s) ||
            (model && !is_model(model, step->model)))
            continue;
        host.low_s = fmin(host.low_s, s);
        host.high_s = fmax(host.high_s, s);
        host.s = n > 0 ? (n * host.s + s) / (n + 1) : s;
        n++;
    }
    return host;
}

static struct part_host find_host(const struct parts *p, const struct model *model, bool simulated)
{
    struct part_host host = host_of(p, model, simulated);

    return isnan(host.s) ? host_of(p, NULL, simulated) : host;
}

void parts_find_host(struct parts *p, const struct model *model)
{
    p->host = find_host(p, model, false);
    p->host_waits = find_host(p, model, true);
}

double forecast_update_bytes(const char *update)
{
    return !strcmp(update, "adam") ? 28 : !strcmp(update, "sgd") ? 12 : 0;
}

double forecast_state_bytes(const char *update, double element_bytes)
{
    double kept = fmax(4, element_bytes), narrow = element_bytes < 4 ? 4 : 0;

    return !*update || !strcmp(update, "none") ? 0
           : !strcmp(update, "adam")           ? 2 * kept + narrow
                                               : narrow;
}

static struct step_job job_of(const struct forecast *f, const struct part_step *step)
{
    const struct model *model = f->job.model;

    return (struct step_job){.model = model,
                             .batch = step->batch,
                             .sequence = step->sequence ? step->sequence : model->sequence,
                             .tp = step->tp,
                             .pp = step->pp,
                             .ep = step->ep,
                             .micro = step->micro,
                             .zero = (unsigned)step->zero,
                             .prefetch = step->prefetch,
                             .bucket_bytes = step->bucket,
                             .element_bytes = step->element_bytes,
                             .state_bytes = forecast_state_bytes(step->update, step->element_bytes),
                             .update_s = step->update_s,
                             .overlap = step->overlap,
                             .compute_s = step->compute_s};
}

/* Compute that is a wait needs no memory, and is not slowed. */
static bool make(const struct forecast *f, const struct part_step *step,
                 struct forecast_point *point)
{
    struct parts parts = *f->parts;
    struct forecast of = {.parts = &parts,
                          .job = job_of(f, step),
                          .per_node = step->ranks / step->nodes,
                          .core_known = f->core_known,
                          .compute_stated = step->simulated,
                          .memory_bytes = HUGE_VAL};

    if (step->simulated) {
        parts.hidden = parts.hidden_low = parts.hidden_high = 1;
        parts.host = parts.host_waits;
    }
    int err = forecast_point(&of, step->ranks, point);
    point->nodes = step->nodes;
    return !err && !isnan(point->low_s);
}

static bool is_before(const struct forecast_check *x, const struct forecast_check *y)
{
    if ((x->left == CHECK_MADE) != (y->left == CHECK_MADE))
        return x->left == CHECK_MADE;
    return x->step->ranks > y->step->ranks;
}

size_t forecast_checks(const struct forecast *f, struct forecast_check *checks)
{
    size_t n = 0;

    for (size_t i = 0; i < f->parts->n_steps; i++) {
        struct forecast_check check = {.step = &f->parts->steps[i]};
        size_t at = n;

        if (!is_model(f->job.model, check.step->model) || check.step->ranks < 2)
            continue;
        check.point =
            (struct forecast_point){.low_s = NAN, .high_s = NAN, .ranks = check.step->ranks};
        check.left = check.step->servers > 0             ? CHECK_SERVERS
                     : check.step->other_way             ? CHECK_WAY
                     : check.step->other_order           ? CHECK_ORDER
                     : isnan(check.step->compute_s)      ? CHECK_COMPUTE
                     : isnan(check.step->update_s)       ? CHECK_UPDATE
                     : make(f, check.step, &check.point) ? CHECK_MADE
                                                         : CHECK_REFUSED;
        for (; at > 0 && is_before(&check, &checks[at - 1]); at--)
            checks[at] = checks[at - 1];
        checks[at] = check;
        n++;
    }
    return n;
}

const char *forecast_check_why(struct pool *pool, const struct forecast *f,
                               const struct forecast_check *check)
{
    const char *text = "";

    switch (check->left) {
    case CHECK_MADE:
        break;
    case CHECK_SERVERS:
        return "parameter servers are not modelled";
    case CHECK_WAY:
        return "another backend or transport than that of the sums: --over chooses";
    case CHECK_ORDER:
        return "its stages do all forward passes first (--schedule gpipe): a forecast has 1F1B";
    case CHECK_COMPUTE:
        return "its compute alone is not known: of real compute, each rank must do all layers";
    case CHECK_UPDATE:
        return "its run does not tell how long the update took";
    case CHECK_REFUSED:
        text = forecast_why(pool, f, &check->point);
        return *text ? text : "the forecast cannot divide the model in this way";
    }
    return text;
}

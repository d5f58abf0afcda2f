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
                             .bucket_bytes = step->bucket,
                             .element_bytes = step->element_bytes,
                             .overlap = step->overlap,
                             .compute_s = step->compute_s};
}

static bool make(const struct forecast *f, const struct part_step *step,
                 struct forecast_check *check)
{
    struct parts parts = *f->parts;
    struct forecast of = {.parts = &parts,
                          .job = job_of(f, step),
                          .per_node = step->ranks / step->nodes,
                          .core_known = f->core_known};

    if (step->simulated)
        parts.hidden = parts.hidden_low = parts.hidden_high = 1;
    *check = (struct forecast_check){.step = step};
    return !forecast_point(&of, step->ranks, &check->point) && !isnan(check->point.low_s);
}

size_t forecast_checks(const struct forecast *f, struct forecast_check *checks, size_t most)
{
    size_t n = 0;

    for (size_t i = 0; i < f->parts->n_steps && n < most; i++) {
        const struct part_step *step = &f->parts->steps[i];
        struct forecast_check check;
        size_t at = n;

        if (!is_model(f->job.model, step->model) || isnan(step->compute_s) ||
            !make(f, step, &check))
            continue;
        for (; at > 0 && checks[at - 1].step->ranks < step->ranks; at--)
            checks[at] = checks[at - 1];
        checks[at] = check;
        n++;
    }
    return n;
}

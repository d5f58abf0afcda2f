/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank keeps in memory: see step.h. docs/forecast.md names the sources. */
#include <math.h>

#include "harness/forecast/step.h"

static double parameters_of(const struct step_job *job, const struct model_layer *l)
{
    return (double)l->parameters / ((job->tp > 1 && l->split != MODEL_WHOLE) ? job->tp : 1) /
           (l->kind == MODEL_EXPERT ? job->ep : 1);
}

double job_copies(const struct step_job *job, enum model_kind kind)
{
    return kind == MODEL_EXPERT ? fmax(1, floor(job->dp / job->ep)) : job->dp;
}

struct job_memory job_memory(const struct step_job *job, size_t stage, size_t from, size_t to)
{
    double samples = job->batch / job->micro, on_way = fmin(job->micro, job->pp - (double)stage);
    double e = job->element_bytes, parameters = 0, shared = 0, outputs = 0, rows = 0;
    double tables = 0, table = 0;

    for (size_t i = from; i < to; i++) {
        const struct model_layer *l = &job->model->layers[i];

        outputs += model_size_value(l->output, job->sequence) /
                   (job->tp > 1 && l->split == MODEL_COLUMN ? job->tp : 1);
        if (l->kind == MODEL_TABLE) {
            tables += (double)l->parameters;
            table = fmax(table, (double)l->parameters);
            rows += model_size_value(l->output, job->sequence);
        } else {
            parameters += parameters_of(job, l);
            shared += parameters_of(job, l) / job_copies(job, l->kind);
        }
    }
    return (struct job_memory){
        .parameters = e * ((job->zero > 2 ? shared : parameters) + fmax(tables / job->dp, table)),
        .gradients = e * ((job->zero > 1 ? shared : parameters) + rows * samples),
        .update = job->state_bytes * (job->zero ? shared : parameters),
        .activations = e * outputs * samples * on_way};
}

double job_memory_all(const struct job_memory *m)
{
    return m->parameters + m->gradients + m->update + m->activations;
}

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

struct step_job forecast_job(const struct model *model, enum model_update update,
                             double element_bytes)
{
    return (struct step_job){.model = model,
                             .batch = 1,
                             .sequence = model->sequence,
                             .dp = 1,
                             .tp = 1,
                             .pp = 1,
                             .ep = 1,
                             .micro = 1,
                             .element_bytes = element_bytes,
                             .prefetch = 1,
                             .bucket_bytes = 25 << 20,
                             .update_bytes = model_update_bytes(update, element_bytes),
                             .state_bytes = model_state_bytes(update, element_bytes),
                             .overlap = true,
                             .compute_s = NAN};
}

static struct step_job job_of(const struct forecast *f, const struct part_step *step)
{
    const struct model *model = f->job.model;

    return (struct step_job){
        .model = model,
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
        .state_bytes = model_state_bytes(model_update_find(step->update), step->element_bytes),
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
    return !err && forecast_is_given(point);
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
        check.left = check.step->other_way               ? CHECK_WAY
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

/* Why a measured step is not held against a forecast: in the JSON, and a sentence. */
static const struct {
    const char *code, *text;
} lefts[] = {
    [CHECK_MADE] = {"", ""},
    [CHECK_WAY] = {"another way",
                   "another backend or transport than that of the sums: --over chooses"},
    [CHECK_ORDER] = {"order", "its stages do all forward passes first (--schedule gpipe): a "
                              "forecast has 1F1B"},
    [CHECK_COMPUTE] = {"compute", "its compute alone is not known: of real compute, each rank must "
                                  "do all layers"},
    [CHECK_UPDATE] = {"update", "its run does not tell how long the update took"},
    [CHECK_REFUSED] = {"refused", "the forecast cannot divide the model in this way"}};

const char *forecast_check_name(enum check_left left)
{
    return lefts[left].code;
}

static const char *check_why(struct pool *pool, const struct forecast *f,
                             const struct forecast_check *check)
{
    const char *why = check->left == CHECK_REFUSED ? forecast_why(pool, f, &check->point) : "";

    return *why ? why : lefts[check->left].text;
}

/* ---- As a document ---- */

static double ratio_of(const struct forecast_check *c)
{
    return c->point.time.step_s / c->step->s;
}

static bool is_near(const struct forecast_check *c)
{
    return fabs(ratio_of(c) - 1) <= CHECK_NEAR;
}

static bool is_inside(const struct forecast_check *c)
{
    return c->point.low_s <= c->step->s && c->step->s <= c->point.high_s;
}

void forecast_answer_checks(struct pool *pool, struct document *d, const struct forecast *f)
{
    struct forecast_check *checks = pool_alloc(pool, f->parts->n_steps, sizeof(*checks));
    size_t n = forecast_checks(f, checks), made = 0, near = 0, inside = 0;
    double least = HUGE_VAL, most = 0;

    for (; made < n && checks[made].left == CHECK_MADE; made++) {
        least = fmin(least, ratio_of(&checks[made]));
        most = fmax(most, ratio_of(&checks[made]));
        near += is_near(&checks[made]);
        inside += is_inside(&checks[made]);
    }
    if (made == 1)
        document_answer(
            d, "Check", "", inside ? TONE_NONE : TONE_LOW,
            pool_text(pool,
                      "the forecast of the one measured step is %.0f %% of its measured "
                      "time, which is %s the interval",
                      100 * least, inside ? "in" : "outside of"));
    else if (made)
        document_answer(d, "Check", "", inside == made ? TONE_NONE : TONE_LOW,
                        pool_text(pool,
                                  "forecasts of %zu measured steps are %.0f to %.0f %% of their "
                                  "measured times: %zu within %.0f %%, %zu in their interval",
                                  made, 100 * least, 100 * most, near, 100 * CHECK_NEAR, inside));
    else if (n)
        document_answer(
            d, "Check", "", TONE_LOW,
            pool_text(pool, "no measured step has a forecast: %s", check_why(pool, f, &checks[0])));
    if (made && n > made)
        document_answer_more(
            d, pool_text(pool, "%zu more are left out: see Measured steps", n - made), "");
}

static const struct document_column columns[] = {
    {.name = "Ranks", .number = true},
    {.name = "Step"},
    {.name = "Measured ms", .number = true},
    {.name = "Forecast ms", .number = true},
    {.name = "+/-"},
    {.name = "Forecast / measured", .number = true},
    {.name = "Word"},
};

static void add_row(struct pool *pool, struct document *d, const struct forecast *f,
                    struct document_table *t, const struct forecast_check *c)
{
    struct cell *row = document_row(t);
    const struct forecast_point *p = &c->point;

    row[0] = cell_text(pool_text(pool, "%.0f", c->step->ranks));
    /* "ZeRO 1, 2 stages": what of a measured step is not the default. */
    const char *words = pool_text(pool, "buckets of %.4g MB", c->step->bucket / 1e6);

    words = pool_join(pool, words, ", ", c->step->overlap ? "" : "no overlap");
    words = forecast_ways(pool, words, c->step->zero, c->step->tp, c->step->pp, c->step->micro,
                          c->step->ep);
    words =
        pool_join(pool, words, ", ", strcmp(c->step->update, "none") != 0 ? c->step->update : "");
    row[1] = cell_text(words);
    row[2] = cell_value(1e3 * c->step->s, "");
    if (c->left != CHECK_MADE) {
        row[6] = cell_word("left out", TONE_NONE);
        cell_note(&row[6], document_note(d, check_why(pool, f, c)));
        return;
    }
    row[3] = cell_value(1e3 * p->time.step_s, "");
    row[4] = cell_interval(p->time.step_s, p->low_s, p->high_s);
    row[5] = cell_text(document_percent(pool, 100 * ratio_of(c)));
    row[6] = is_near(c)     ? cell_word("agrees", TONE_NONE)
             : is_inside(c) ? cell_word("in the interval", TONE_NONE)
                            : cell_word("disagrees", TONE_LOW);
}

void forecast_show_checks(struct pool *pool, struct document *d, const struct forecast *f)
{
    struct forecast_check *checks = pool_alloc(pool, f->parts->n_steps, sizeof(*checks));
    size_t n = forecast_checks(f, checks);

    if (!n)
        return;
    document_heading(d, 2, "Measured steps", "measured-steps");
    struct document_table *t = document_table(d, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < n; i++)
        add_row(pool, d, f, t, &checks[i]);
    document_notes(d);
}

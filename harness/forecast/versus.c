/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides of a comparison by what one node of each makes of a job: see versus.h. */
#include "harness/forecast/versus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/forecast/forecast.h"
#include "harness/report/report.h"

/* Samples a second of one node, with its interval; NaN: no forecast, and *why says so. */
struct rate {
    double value, low, high;
    const char *dtype;
    bool tight; /* its memory holds the job only where activations are computed again */
};

static void rate_of(const struct model *model, const struct bench_list *benches,
                    struct side_runs of, struct pool *pool, struct rate *rate, const char **why)
{
    struct report r;
    struct parts parts;
    struct forecast_point point;
    const double nodes = 1;
    char error[512] = "";

    if (report_load(&r, of.runs, of.n, error, sizeof(error))) {
        *why = pool_text(pool, "%s", error);
    } else {
        parts_read(&r, benches, NULL, NULL, 0, &parts);
        rate->dtype = pool_text(pool, "%s", parts.dtype ? parts.dtype : "");
        parts_find_host(&parts, model);
        struct forecast f = {.job = forecast_job(model, UPDATE_ADAM, parts_element_bytes(&parts))};

        forecast_use(&f, &parts, 0);
        if (forecast_make(&f, &nodes, &point, 1) || !forecast_is_given(&point))
            *why = pool_text(pool, "%s", forecast_why(&r.pool, &f, &point));
        else
            *rate = (struct rate){point.samples_s, forecast_rate(&point, point.high_s),
                                  forecast_rate(&point, point.low_s), rate->dtype,
                                  model_memory_all(&point.time.memory) > forecast_memory(&f) &&
                                      forecast_memory(&f) > 0};
    }
    report_release(&r);
}

/* What either side may be off by is independent of the other: their squares are added. */
static double off(double of_b, double of_a)
{
    return exp(hypot(log(of_b), log(of_a)));
}

int versus_make(const char *name, struct side_runs a, struct side_runs b, struct pool *pool,
                struct versus *v, char *error, size_t len)
{
    struct bench_list benches;
    struct model model;
    struct rate rates[2] = {{NAN, NAN, NAN, "", false}, {NAN, NAN, NAN, "", false}};
    const char *whys[2] = {"", ""};

    *v = (struct versus){.model = name, .ratio = NAN, .low = NAN, .high = NAN, .why = ""};
    if (model_load(name, &model, error, len))
        return -EINVAL;
    bench_list_load(&benches);
    rate_of(&model, &benches, a, pool, &rates[0], &whys[0]);
    rate_of(&model, &benches, b, pool, &rates[1], &whys[1]);
    v->dtypes[0] = rates[0].dtype;
    v->dtypes[1] = rates[1].dtype;
    v->tight[0] = rates[0].tight;
    v->tight[1] = rates[1].tight;
    v->a = rates[0].value;
    v->b = rates[1].value;
    v->ratio = v->b / v->a;
    v->low = v->ratio / off(v->b / rates[1].low, rates[0].high / v->a);
    v->high = v->ratio * off(rates[1].high / v->b, v->a / rates[0].low);
    for (int i = 0; i < 2; i++)
        if (*whys[i])
            v->why = pool_join(pool, v->why, "; ", pool_text(pool, "of %c: %s", "AB"[i], whys[i]));
    model_release(&model);
    bench_list_release(&benches);
    return 0;
}

const char *versus_text(struct pool *pool, const struct versus *v, double price_a, double price_b)
{
    double times = price_a / price_b;
    const char *money = "";

    if (isnan(v->ratio))
        return pool_text(pool, "no forecast for %s: %s", v->model, v->why);
    if (isfinite(times))
        money = pool_text(pool, ", and %.2f (%.2f to %.2f) times for the same money",
                          v->ratio * times, v->low * times, v->high * times);
    const char *types = strcmp(v->dtypes[0], v->dtypes[1])
                            ? pool_text(pool, " (A in %s, B in %s)", v->dtypes[0], v->dtypes[1])
                            : pool_text(pool, " in %s", v->dtypes[0]);
    const char *tight = !v->tight[0] && !v->tight[1]
                            ? ""
                            : pool_text(pool,
                                        "; %s must compute activations again for want of memory, "
                                        "which takes time that is not in this",
                                        !v->tight[1]   ? "A"
                                        : !v->tight[0] ? "B"
                                                       : "both");
    return pool_text(pool, "for %s%s B is %.2f (%.2f to %.2f) times A%s%s", v->model, types,
                     v->ratio, v->low, v->high, money, tight);
}

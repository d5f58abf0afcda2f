/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the fastest shape by a library in its place: see request.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/blas/request.h"
#include "core/blas/search.h"
#include "core/clock.h"
#include "core/stats.h"

#define LONGEST 32768
#define SAMPLES 5
#define LONGER  4 /* than a usual sample: a power limit shows after a while */

struct seek {
    const struct gemm_where *where;
    struct gemm_run *run;
    char refusal[sizeof(((struct point *)0)->reason)]; /* of the last shape that could not be */
};

/* Operations a ns: the median of a few samples. GEMM_SEARCH_PRODUCTS where each is one product. */
static int quick_rate(const struct seek *s, const struct gemm_shape *shape, double *rate)
{
    double each_ns[1 + SAMPLES];
    uint64_t ns, inner = 1, wanted_ns = LONGER * s->run->pt->sample_ns;
    int err = s->where->sample(s->run, inner, &ns); /* cold */

    if (!err)
        err = s->where->sample(s->run, inner, &ns);
    if (!err && ns < wanted_ns)
        inner = wanted_ns / (ns ? ns : 1) + 1;
    for (int i = 0; !err && i < 1 + SAMPLES; i++) { /* the first one warms up */
        err = s->where->sample(s->run, inner, &ns);
        each_ns[i] = (double)ns / (double)inner;
    }
    if (!err)
        *rate = gemm_operations(shape) / stats_median(each_ns + 1, SAMPLES);
    return err;
}

/* What a shape that is passed by has to say is none of the row's business. */
static int rate_of(void *arg, const struct gemm_shape *shape, double *rate)
{
    struct seek *s = arg;
    struct point *pt = s->run->pt;
    size_t said = strlen(pt->reason);
    int err = gemm_begin(s->where, s->run, shape, true);

    if (!err)
        err = quick_rate(s, shape, rate);
    s->where->end(s->run);
    if (err)
        snprintf(s->refusal, sizeof(s->refusal), "%s", pt->reason + said);
    if (!err || err == -EOPNOTSUPP || err == -ENOMEM)
        pt->reason[said] = 0;
    return err;
}

static uint64_t now_ns(void *arg)
{
    (void)arg;
    return clock_now_ns();
}

int gemm_seek(const struct gemm_where *where, struct gemm_run *run, uint64_t budget_ns,
              struct gemm_shape *shape)
{
    struct seek seek = {.where = where, .run = run};
    const struct gemm_search search = {.rate = rate_of,
                                       .now_ns = now_ns,
                                       .arg = &seek,
                                       .budget_ns = budget_ns,
                                       .longest = LONGEST,
                                       .units = where->units(run)};
    struct gemm_search_result result;
    char text[256];
    int err = gemm_search_run(&search, &result);

    if (err)
        return err;
    if (!result.best.m)
        return point_reason(run->pt, -EOPNOTSUPP, "no shape could be multiplied: %s", seek.refusal);
    *shape = result.best;
    return point_reason(run->pt, 0, "%s", gemm_search_text(&result, text, sizeof(text)));
}

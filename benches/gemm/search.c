/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest of all shapes: see library.h. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "benches/gemm/library.h"
#include "core/clock.h"
#include "core/stats.h"

#define SHORTEST      256
#define FIRST_SQUARE  512
#define LAST_SQUARE   16384
#define STEP_FIRST    1024
#define STEP_LAST     128
#define TILE_M        128
#define TILE_N        256
#define TRIES_MAX     512
#define NEIGHBOURS    16 /* 6 by doubling, 6 by steps, 4 that fit the units */
#define BUDGET_SHARES 8
#define GAIN          0.005 /* what counts as a gain */
#define TRY_PRODUCTS  8     /* that a try may need */

static const struct search_policy uphill = {.gain = GAIN, .patience = GEMM_SEARCH_PATIENCE};

/* Where the search is: the shapes that are next, squares first, and those that were thought of. */
struct climb {
    const struct gemm_search *config;
    struct gemm_search_result *out;
    struct gemm_shape list[NEIGHBOURS], seen[TRIES_MAX];
    size_t n, at;
    unsigned n_seen;
    double before; /* the best rate when the list was made */
    uint64_t step; /* 0: the list is that of squares */
};

/* Within bounds, and a multiple of the smallest step. */
static uint64_t clamp(const struct climb *s, uint64_t side)
{
    uint64_t longest = s->config->longest;

    side -= side % STEP_LAST;
    return side < SHORTEST ? SHORTEST : side > longest ? longest : side;
}

static void add(const struct climb *s, struct gemm_shape *list, size_t *n, struct gemm_shape x)
{
    list[(*n)++] = (struct gemm_shape){clamp(s, x.m), clamp(s, x.n), clamp(s, x.k)};
}

static uint64_t nearest(uint64_t side, uint64_t of)
{
    return side < of ? of : (side + of / 2) / of * of;
}

/* m and n in tiles that fill all units the same number of times: f x g of them at once. */
static void add_even(const struct climb *s, struct gemm_shape *list, size_t *n)
{
    struct gemm_shape b = s->out->best;
    unsigned units = s->config->units, f = 1;

    for (unsigned i = 2; i <= units / i; i++)
        f = units % i ? f : i;
    if (units < 2)
        return;
    for (int swapped = 0; swapped < 2; swapped++) {
        uint64_t rows = swapped ? units / f : f, columns = units / rows;
        add(s, list, n,
            (struct gemm_shape){nearest(b.m, TILE_M * rows), nearest(b.n, TILE_N * columns), b.k});
        add(s, list, n,
            (struct gemm_shape){nearest(b.m, TILE_N * rows), nearest(b.n, TILE_M * columns), b.k});
    }
}

/* Where to look from the best shape so far. */
static size_t neighbours(const struct climb *s, uint64_t step, struct gemm_shape *list)
{
    struct gemm_shape b = s->out->best;
    size_t n = 0;

    if (step == STEP_FIRST)
        add_even(s, list, &n);
    for (int side = 0; side < 3; side++) {
        const uint64_t sides[] = {b.m, b.n, b.k};
        uint64_t at = sides[side];
        const uint64_t next[] = {at + step, at > step ? at - step : 0, 2 * at, at / 2};
        for (int i = 0; i < (step == STEP_FIRST ? 4 : 2); i++)
            add(s, list, &n,
                (struct gemm_shape){side == 0 ? next[i] : b.m, side == 1 ? next[i] : b.n,
                                    side == 2 ? next[i] : b.k});
    }
    return n;
}

static size_t squares(const struct climb *s, struct gemm_shape *list)
{
    size_t n = 0;

    for (uint64_t side = FIRST_SQUARE; side <= LAST_SQUARE; side *= 2)
        if (side <= s->config->longest)
            list[n++] = (struct gemm_shape){side, side, side};
    return n;
}

/* The shapes round the best one: with the same step where a better one was found, else a smaller
 * one. false: there is none left. */
static bool make_list(struct climb *s)
{
    double rate = s->out->operations_per_ns;

    if (!s->out->best.m)
        return false;
    if (!s->step)
        s->step = STEP_FIRST;
    else if (!(rate > s->before))
        s->step /= 2;
    s->before = rate;
    s->n = neighbours(s, s->step, s->list);
    s->at = 0;
    return s->step >= STEP_LAST;
}

/* The next shape that was not thought of yet. */
static bool next_shape(void *arg, unsigned i, const struct search_result *so_far)
{
    struct climb *s = arg;

    (void)i;
    (void)so_far;
    for (;;) {
        bool found = s->step && s->out->operations_per_ns > s->before;
        if ((s->at == s->n || found) && !make_list(s))
            return false;
        const struct gemm_shape *x = &s->list[s->at++];
        unsigned k = 0;

        while (k < s->n_seen && memcmp(&s->seen[k], x, sizeof(*x)) != 0)
            k++;
        if (k < s->n_seen)
            continue;
        if (s->n_seen == TRIES_MAX)
            return false;
        s->seen[s->n_seen++] = *x;
        /* So that slow machines do not spend their time on one shape. */
        double rate = s->out->operations_per_ns,
               ns = rate > 0 ? gemm_operations(x) * TRY_PRODUCTS / rate : 0;
        if (ns <= (double)s->config->budget_ns / BUDGET_SHARES)
            return true;
        s->out->too_long++;
    }
}

/* A run of a search. Its unit of work is an operation. */
static int rate_shape(void *arg, unsigned i, uint64_t passes, struct search_run *run)
{
    struct climb *s = arg;
    const struct gemm_shape *x = &s->seen[s->n_seen - 1];
    double rate = 0;
    int err = s->config->rate(s->config->arg, x, &rate);

    (void)i;
    (void)passes;
    if (!err && rate > s->out->operations_per_ns) {
        s->out->operations_per_ns = rate;
        s->out->best = *x;
    }
    *run = (struct search_run){.cost = 1 / rate};
    return err == -ENOMEM ? -EOPNOTSUPP : err;
}

static uint64_t now_of(void *arg)
{
    const struct climb *s = arg;

    return s->config->now_ns ? s->config->now_ns(s->config->arg) : clock_now_ns();
}

int gemm_search_run(const struct gemm_search *config, struct gemm_search_result *out)
{
    struct climb s = {.config = config, .out = out};
    const struct search search = {.policy = &uphill,
                                  .n = TRIES_MAX,
                                  .run = rate_shape,
                                  .next = next_shape,
                                  .now_ns = now_of,
                                  .arg = &s,
                                  .budget_ns = config->budget_ns};
    struct search_result found;

    *out = (struct gemm_search_result){0};
    s.n = squares(&s, s.list);
    int err = search_run(&search, &found);
    out->tried = found.tried;
    out->refused = found.refused;
    out->elapsed_ns = found.elapsed_ns;
    out->stop = found.stop;
    return err == -EOPNOTSUPP ? 0 : err;
}

const char *gemm_search_text(const struct gemm_search_result *r, char *text, size_t len)
{
    char why[64];

    if (r->stop == SEARCH_NO_GAIN)
        snprintf(why, sizeof(why), "no gain over %g %% in the last %d", 100 * GAIN,
                 GEMM_SEARCH_PATIENCE);
    else
        snprintf(why, sizeof(why), "%s",
                 r->stop == SEARCH_TIME ? "its time was used up" : "all neighbours were tried");
    int n = snprintf(text, len, "the best of %u shape%s in %.3g s; %s", r->tried,
                     r->tried == 1 ? "" : "s", (double)r->elapsed_ns * 1e-9, why);
    if (r->refused + r->too_long && n > 0 && (size_t)n < len)
        snprintf(text + n, len - (size_t)n, " (skipped: %u not possible, %u too long)", r->refused,
                 r->too_long);
    return text;
}

/* ---- The search for the fastest shape by a library in its place ---- */

#define LONGEST 32768
#define SAMPLES 5
#define LONGER  4 /* than a usual sample: a power limit shows after a while */

struct seek {
    const struct gemm_where *where;
    struct gemm_run *run;
    char refusal[sizeof(((struct point *)0)->reason)]; /* of the last shape that could not be */
};

/* Operations a ns: the median of a few samples. TRY_PRODUCTS where each is one product. */
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

int gemm_seek(const struct gemm_where *where, struct gemm_run *run, uint64_t budget_ns,
              struct gemm_shape *shape)
{
    struct seek seek = {.where = where, .run = run};
    const struct gemm_search search = {.rate = rate_of,
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

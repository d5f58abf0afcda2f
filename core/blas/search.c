/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the fastest shape: see search.h. */
#include "core/blas/search.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

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

struct search {
    const struct gemm_search *config;
    struct gemm_search_result *out;
    struct gemm_shape seen[TRIES_MAX];
    unsigned n_seen;
    double mark;     /* rate at the last gain */
    unsigned barren; /* tries since then */
    uint64_t begin_ns;
    bool over;
};

static bool is_seen(const struct search *s, const struct gemm_shape *x)
{
    for (unsigned i = 0; i < s->n_seen; i++)
        if (s->seen[i].m == x->m && s->seen[i].n == x->n && s->seen[i].k == x->k)
            return true;
    return false;
}

/* So that slow machines do not spend their time on one shape. */
static bool takes_too_long(const struct search *s, const struct gemm_shape *x)
{
    double rate = s->out->operations_per_ns;

    return rate > 0 && gemm_operations(x) * GEMM_SEARCH_PRODUCTS / rate >
                           (double)s->config->budget_ns / BUDGET_SHARES;
}

static void stop(struct search *s, enum gemm_search_stop why)
{
    s->out->stop = why;
    s->over = true;
}

static void note(struct search *s, const struct gemm_shape *x, double rate)
{
    s->out->tried++;
    s->barren++;
    if (rate > s->out->operations_per_ns) {
        s->out->operations_per_ns = rate;
        s->out->best = *x;
    }
    if (rate > s->mark * (1 + GEMM_SEARCH_GAIN)) {
        s->mark = rate;
        s->barren = 0;
    }
    if (s->barren >= GEMM_SEARCH_PATIENCE)
        stop(s, GEMM_STOP_NO_GAIN);
}

/* Tries a shape, unless it was or cannot be. 0 or -errno. */
static int try_shape(struct search *s, const struct gemm_shape *x)
{
    double rate = 0;

    if (is_seen(s, x))
        return 0;
    if (s->n_seen == TRIES_MAX)
        stop(s, GEMM_STOP_EXHAUSTED);
    else if (s->config->now_ns(s->config->arg) - s->begin_ns >= s->config->budget_ns)
        stop(s, GEMM_STOP_BUDGET);
    if (s->over)
        return 0;
    s->seen[s->n_seen++] = *x;
    if (takes_too_long(s, x)) {
        s->out->too_long++;
        return 0;
    }
    int err = s->config->rate(s->config->arg, x, &rate);
    if (!err)
        note(s, x, rate);
    else if (err == -EOPNOTSUPP || err == -ENOMEM)
        s->out->refused++;
    return err == -EOPNOTSUPP || err == -ENOMEM ? 0 : err;
}

/* Within bounds, and a multiple of the smallest step. */
static uint64_t clamp(const struct search *s, uint64_t side)
{
    uint64_t longest = s->config->longest;

    side -= side % STEP_LAST;
    return side < SHORTEST ? SHORTEST : side > longest ? longest : side;
}

static void add(const struct search *s, struct gemm_shape *list, size_t *n, struct gemm_shape x)
{
    list[(*n)++] = (struct gemm_shape){clamp(s, x.m), clamp(s, x.n), clamp(s, x.k)};
}

static uint64_t nearest(uint64_t side, uint64_t of)
{
    return side < of ? of : (side + of / 2) / of * of;
}

/* m and n in tiles that fill all units the same number of times: f x g of them at once. */
static void add_even(const struct search *s, struct gemm_shape *list, size_t *n)
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
static size_t neighbours(const struct search *s, uint64_t step, struct gemm_shape *list)
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

static int try_squares(struct search *s)
{
    int err = 0;

    for (uint64_t side = FIRST_SQUARE; !err && !s->over && side <= LAST_SQUARE; side *= 2)
        if (side <= s->config->longest)
            err = try_shape(s, &(struct gemm_shape){side, side, side});
    return err;
}

/* Tries neighbours until one is faster. */
static int look_round(struct search *s, uint64_t step, bool *faster)
{
    struct gemm_shape list[NEIGHBOURS];
    double before = s->out->operations_per_ns;
    size_t n = neighbours(s, step, list);
    int err = 0;

    *faster = false;
    for (size_t i = 0; !err && !s->over && !*faster && i < n; i++) {
        err = try_shape(s, &list[i]);
        *faster = s->out->operations_per_ns > before;
    }
    return err;
}

static int climb(struct search *s)
{
    uint64_t step = STEP_FIRST;
    bool faster;
    int err = 0;

    while (!err && !s->over && step >= STEP_LAST) {
        err = look_round(s, step, &faster);
        step = faster ? step : step / 2;
    }
    return err;
}

int gemm_search_run(const struct gemm_search *config, struct gemm_search_result *out)
{
    struct search s = {.config = config, .out = out, .begin_ns = config->now_ns(config->arg)};

    *out = (struct gemm_search_result){.stop = GEMM_STOP_EXHAUSTED};
    int err = try_squares(&s);
    if (!err && out->best.m)
        err = climb(&s);
    out->elapsed_ns = config->now_ns(config->arg) - s.begin_ns;
    return err;
}

const char *gemm_search_text(const struct gemm_search_result *r, char *text, size_t len)
{
    char why[64];

    if (r->stop == GEMM_STOP_NO_GAIN)
        snprintf(why, sizeof(why), "no gain over %g %% in the last %d", 100 * GEMM_SEARCH_GAIN,
                 GEMM_SEARCH_PATIENCE);
    else
        snprintf(why, sizeof(why), "%s",
                 r->stop == GEMM_STOP_BUDGET ? "its time was over" : "all near it were tried");
    int n = snprintf(text, len, "the best of %u shapes in %.3g s; stopped: %s", r->tried,
                     (double)r->elapsed_ns * 1e-9, why);
    if (r->refused + r->too_long && n > 0 && (size_t)n < len)
        snprintf(text + n, len - (size_t)n, " (passed over: %u not possible, %u too long)",
                 r->refused, r->too_long);
    return text;
}

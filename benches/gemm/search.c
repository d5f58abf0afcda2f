/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest of several ways, and of all shapes: see search.h. */
#include "benches/gemm/search.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "benches/gemm/library.h"
#include "core/clock.h"
#include "core/stats.h"

/* ---- Choosing the fastest ---- */

struct contestant {
    double ns[CONTEST_ROUNDS];
    unsigned n; /* times; 0: it was not timed, or cannot */
    bool goes_on;
};

struct race {
    const struct contest *config;
    struct contestant each[CONTEST_MAX];
    uint64_t begin_ns;
};

static uint64_t elapsed_ns(const struct race *r)
{
    return r->config->now_ns(r->config->arg) - r->begin_ns;
}

static int time_one(struct race *r, unsigned i)
{
    struct contestant *c = &r->each[i];
    double ns = 0;
    int err = r->config->time(r->config->arg, i, &ns);

    if (!err)
        c->ns[c->n++] = ns;
    return err == -EOPNOTSUPP ? 0 : err;
}

static double median(const struct contestant *c)
{
    return stats_median(c->ns, c->n);
}

/* Takes half of the time at most: the rest is for the rounds. */
static int first_round(struct race *r)
{
    int err = 0;

    for (unsigned i = 0; !err && i < r->config->n; i++)
        if (!i || elapsed_ns(r) < r->config->budget_ns / 2)
            err = time_one(r, i);
    return err;
}

/* How many can go through all of the rounds that there must be in the time that is left. */
static unsigned count_finalists(const struct race *r, double fastest_ns)
{
    double used_ns = (double)elapsed_ns(r), budget_ns = (double)r->config->budget_ns;
    double fit = (budget_ns - used_ns) / (CONTEST_ROUNDS_MIN * fastest_ns);

    return fit < 1 ? 1 : fit > CONTEST_FINAL ? CONTEST_FINAL : (unsigned)fit;
}

/* Number 0, and the fastest of those that are near the fastest. */
static void choose_finalists(struct race *r)
{
    double fastest_ns = INFINITY;

    for (unsigned i = 0; i < r->config->n; i++)
        if (r->each[i].n && r->each[i].ns[0] < fastest_ns)
            fastest_ns = r->each[i].ns[0];
    unsigned most = count_finalists(r, fastest_ns);
    double limit = fastest_ns * (1 + CONTEST_NEAR);
    for (unsigned chosen = 0; chosen < most; chosen++) {
        struct contestant *next = NULL;
        for (unsigned i = 0; i < r->config->n; i++) {
            struct contestant *c = &r->each[i];
            if (c->n && !c->goes_on && c->ns[0] <= limit && (!next || c->ns[0] < next->ns[0]))
                next = c;
        }
        if (next)
            next->goes_on = true;
    }
    r->each[0].goes_on = r->each[0].n > 0;
}

/* One round of the finalists. It is finished also where it is late: nobody gets a time that the
 * others do not get. */
static int next_round(struct race *r, bool backwards)
{
    unsigned n = r->config->n;
    int err = 0;

    for (unsigned i = 0; !err && i < n; i++) {
        unsigned at = backwards ? n - 1 - i : i;
        if (r->each[at].goes_on)
            err = time_one(r, at);
    }
    return err;
}

static void judge(const struct race *r, struct contest_result *out)
{
    const struct contestant *first = &r->each[0], *best = NULL;

    for (unsigned i = 0; i < r->config->n; i++) {
        const struct contestant *c = &r->each[i];
        out->timed += c->n > 0;
        if (c->goes_on && c->n && (!best || median(c) < median(best)))
            best = c;
    }
    if (!best)
        return;
    out->gap = first->n ? median(first) / median(best) - 1 : NAN;
    if (out->gap <= CONTEST_TIE) {
        best = first;
        out->gap = 0;
    }
    out->best = (unsigned)(best - r->each);
}

int contest_run(const struct contest *config, struct contest_result *out)
{
    struct race r = {.config = config, .begin_ns = config->now_ns(config->arg)};

    *out = (struct contest_result){0};
    int err = config->n && config->n <= CONTEST_MAX ? first_round(&r) : -EINVAL;
    if (err)
        return err;
    choose_finalists(&r);
    for (unsigned round = 1; !err && round < CONTEST_ROUNDS; round++) {
        if (round < CONTEST_ROUNDS_MIN || round % 2 || elapsed_ns(&r) < config->budget_ns)
            err = next_round(&r, round % 2);
        else
            break;
    }
    if (err)
        return err;
    judge(&r, out);
    return out->timed ? 0 : -EOPNOTSUPP;
}

/* ---- The search for the fastest shape ---- */

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

/* ---- The search for the fastest shape by a library in its place ---- */

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

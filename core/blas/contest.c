/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the fastest: see contest.h. */
#include "core/blas/contest.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/stats.h"

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

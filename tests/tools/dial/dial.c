/* SPDX-License-Identifier: Apache-2.0 */
/* dial: a benchmark that no other file knows, for tests. It "turns" as fast as it is told, and with
 * DIAL_BRAKE in its environment by so many percent less. */
#include <stdlib.h>

#include "core/bench/bench.h"

#define LIMIT_MOPS 120

struct params {
    uint64_t turns, speed;
};

static int setup(struct point *pt)
{
    const struct params *p = pt->params;
    struct series *rate = point_series(pt, "rate", "Mop/s", (double)p->turns);

    rate->limit = LIMIT_MOPS;
    rate->limit_source = "measured: the end of the dial";
    point_series(pt, "spare", "us", 0);
    point_column(pt, "setting", "%llu", (unsigned long long)p->speed);
    return 0;
}

static int sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    const struct params *p = pt->params;
    const char *brake = getenv("DIAL_BRAKE");
    uint64_t percent = 100 - (brake ? strtoul(brake, NULL, 10) : 0);

    ns[0] = ns[1] = inner * p->turns * 100000 / (p->speed * percent);
    return 0;
}

static int evidence(struct point *pt)
{
    const struct params *p = pt->params;

    figure_value(point_figure(pt, "hits", "percent"), (double)p->speed / 2);
    return 0;
}

static void teardown(struct point *pt)
{
    (void)pt;
}

static const struct opt options[] = {
    {.name = "turns",
     .type = OPT_U64,
     .flags = OPT_LIST | OPT_COLUMN,
     .offset = offsetof(struct params, turns),
     .def = "1",
     .min = 1,
     .max = 1000,
     .help = "turns of one operation"},
    {.name = "speed",
     .type = OPT_U64,
     .offset = offsetof(struct params, speed),
     .def = "100",
     .min = 1,
     .max = 1000,
     .help = "million turns a second"},
    {.name = NULL},
};

const struct bench bench = {
    .name = "dial",
    .help = "turns a dial",
    .about = "Counts turns.",
    .options = options,
    .params_size = sizeof(struct params),
    .rows = &bench_rows,
    .setup = setup,
    .sample = sample,
    .evidence = evidence,
    .teardown = teardown,
    .sample_ns = BENCH_SAMPLE_DEFAULT,
};

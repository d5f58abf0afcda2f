/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of a step are made of, as ranks told it, for whoever would compute them again: see work.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "benches/step/run.h"
#include "benches/step/work.h"
#include "core/text.h"

static void put(FILE *to, unsigned job, const char *what, uint64_t sample, unsigned rank,
                double value)
{
    fprintf(to, "%u,%s,%" PRIu64 ",%u,%.17g\n", job, what, sample, rank, value);
}

int raw_begin(struct step_work *w, const char *path)
{
    w->job++;
    if (w->raw || !*path)
        return 0;
    w->raw = fopen(path, "we");
    if (!w->raw)
        return -errno;
    fprintf(w->raw, "job,what,sample,rank,value\n");
    return 0;
}

void raw_sample(const struct step_work *w, const struct collective_times *times, uint64_t alone_ns)
{
    static const struct {
        const char *name;
        enum step_count count;
    } counts[] = {
        {"compute", STEP_NS_COMPUTE},    {"sums", STEP_NS_SUMS},         {"pipe", STEP_NS_PIPE},
        {"tail", STEP_NS_TAIL},          {"update", STEP_NS_UPDATE},     {"steps", STEP_STEPS},
        {"free_steps", STEP_FREE_STEPS}, {"free", STEP_FREE_NS},         {"updates", STEP_UPDATES},
        {"stale_sum", STEP_STALE_SUM},   {"stale_most", STEP_STALE_MOST}};

    for (unsigned rank = 0; w->raw && rank < w->n; rank++) {
        put(w->raw, w->job, "whole", w->samples, rank, (double)times[rank].ns);
        put(w->raw, w->job, "alone", w->samples, rank, (double)alone_ns);
        for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
            put(w->raw, w->job, counts[i].name, w->samples, rank,
                (double)times[rank].own_ns[counts[i].count]);
    }
}

void raw_sent(const struct step_work *w, unsigned rank, double bytes)
{
    if (w->raw)
        put(w->raw, w->job, "sent", w->samples, rank, bytes);
}

int raw_end(struct step_work *w)
{
    int err = w->raw ? stream_finish(w->raw) : 0;

    w->raw = NULL;
    return err;
}

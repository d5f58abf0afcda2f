/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are under way while their rank multiplies matrices: what each takes alone, and both at once. See work_state.h. */
#include <math.h>

#include "benches/allreduce/work_state.h"
#include "core/stats.h"

#define TRIES 5

/* How long the product beside the operations is to take. */
int work_overlap_size(struct collective_work *w)
{
    struct session_run run = {.operations = 1, .overlap_ns = 1};
    const struct collective_times *times;
    uint64_t ns = 0, least = UINT64_MAX;
    int err = 0;

    for (int i = 0; i < TRIES && !err; i++) {
        err = session_run(w->session, &run, &times, &ns);
        least = ns < least ? ns : least;
    }
    w->overlap.wanted_ns = least;
    return err;
}

/* The operation without a product to speak of, begun and waited for as beside one; then the product without the operation. */
int work_overlap_alone(struct collective_work *w)
{
    struct session_run run = {.operations = 1, .overlap_ns = 1};
    struct collective_overlap *o = &w->overlap;
    const struct collective_times *times;
    uint64_t alone_ns = 0, work_ns = 0;
    int err = session_run(w->session, &run, &times, &alone_ns);

    if (!err)
        err = session_overlap_alone(w->session, o->wanted_ns, &work_ns);
    if (err || !w->begun || o->n == OVERLAP_SAMPLES)
        return err;
    o->alone_ns[o->n] = (double)alone_ns;
    o->work_ns[o->n] = (double)work_ns;
    return 0;
}

void work_overlap_both(struct collective_work *w, uint64_t both_ns)
{
    if (w->overlap.n < OVERLAP_SAMPLES)
        w->overlap.both_ns[w->overlap.n++] = (double)both_ns;
}

/* How much of the shorter one of operation and product went on beside the other: 100 % where both together take as long as the longer. Each sample has all
 * three, one after another; medians of blocks of samples, so that there is an interval. */
void work_overlap_figures(struct point *pt, const struct collective_work *w)
{
    const struct collective_overlap *o = &w->overlap;
    size_t blocks = o->n < OVERLAP_BLOCKS ? o->n : OVERLAP_BLOCKS,
           each = blocks ? o->n / blocks : 0;
    struct figure *alone, *work, *share;

    if (!blocks)
        return;
    alone = point_figure(pt, "operation_alone", "us");
    work = point_figure(pt, "product_alone", "us");
    share = point_figure(pt, "overlap", "percent");
    for (size_t i = 0; i < blocks; i++) {
        double a = stats_median(o->alone_ns + i * each, each),
               p = stats_median(o->work_ns + i * each, each);
        double both = stats_median(o->both_ns + i * each, each);
        figure_value(alone, a / 1e3);
        figure_value(work, p / 1e3);
        figure_value(share, 100 * (a + p - both) / fmin(a, p));
    }
}

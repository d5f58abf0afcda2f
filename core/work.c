/* SPDX-License-Identifier: Apache-2.0 */
/* Handing on a benchmark's hooks: see work.h. */
#include "core/work.h"

#include "core/bench.h"

int work_setup(struct point *pt, const struct device_work *work)
{
    pt->work = work;
    return work->setup(pt);
}

int work_sample(struct point *pt, uint64_t inner, uint64_t *ns)
{
    return pt->work->sample(pt, inner, ns);
}

int work_check(struct point *pt)
{
    return pt->work->check(pt);
}

int work_evidence(struct point *pt)
{
    return pt->work->evidence(pt);
}

void work_teardown(struct point *pt)
{
    if (pt->work)
        pt->work->teardown(pt);
}

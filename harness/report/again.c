/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases of a run should be measured again: see report.h. */
#include <string.h>

#include "core/units.h"
#include "harness/report/headline.h"
#include "harness/report/report.h"

struct choice {
    unsigned *cases; /* of the plan, which has several metrics of one */
    size_t n, room, run;
};

/* Adds the case, unless it has as many launches, or is there already. */
static void add(struct choice *out, const struct report_bench *b, const struct report_case *c,
                size_t most)
{
    const struct report_point *p = &c->points[out->run];
    uint64_t id;

    /* launches that failed count, too: they would fail again */
    if (!p->n_values || p->n_rows >= most || point_is_wrong(p) ||
        units_parse_u64(row_text(&b->rows[out->run], p->rows[0], FIELD_CASE), &id))
        return;
    for (size_t i = 0; i < out->n; i++)
        if (out->cases[i] == id)
            return;
    if (out->n < out->room)
        out->cases[out->n++] = (unsigned)id;
}

#define GROUP_LEAST 3 /* of two places the slower one is no odd one out */

/* First what looks slow, then the slowest of each group. */
static void choose(const struct comparisons *q, struct choice *out)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->all[i].looks_slow && q->all[i].n_own == 1)
            add(out, q->all[i].bench, q->all[i].c, AGAIN_MOST);
    for (size_t i = 0, end; i < q->n; i = end) {
        const struct comparison *slowest = &q->all[i];

        for (end = i; end < q->n && q->all[end].group == q->all[i].group; end++)
            slowest = q->all[end].ratio < slowest->ratio ? &q->all[end] : slowest;
        if (end - i >= GROUP_LEAST && slowest->n_own == 1)
            add(out, slowest->bench, slowest->c, AGAIN_SLOWEST);
    }
}

int report_again(const struct run_folder *run, unsigned *cases, size_t room, size_t *n)
{
    struct headlines headlines;
    struct choice out = {.cases = cases, .room = room};
    struct report r;
    int err = report_take(&r, run);

    if (!err) {
        headlines_make(&r, &headlines);
        choose(&headlines.comparisons, &out);
    }
    *n = out.n;
    report_release(&r);
    return err;
}

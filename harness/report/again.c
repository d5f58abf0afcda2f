/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases of a run should be measured again: see report.h. */
#include <math.h>
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

/* The slowest cell of each kind in a matrix. */
static void add_slowest(struct choice *out, const struct matrix *m)
{
    for (size_t i = 0; i < m->n * m->n; i++) {
        const struct matrix_cell *at = &m->cells[i];
        bool slowest = at->c && isfinite(at->kind_median);

        for (size_t k = 0; slowest && k < m->n * m->n; k++) {
            const struct matrix_cell *other = &m->cells[k];
            double ratio = other->c && !strcmp(other->kind, at->kind)
                               ? other->point->value / at->point->value
                               : NAN;
            slowest = !(m->more_is_better ? ratio < 1 : ratio > 1);
        }
        if (slowest)
            add(out, m->bench, at->c, AGAIN_SLOWEST);
    }
}

static void choose(struct report *r, const struct headlines *h, struct choice *out)
{
    for (int open = 1; open >= 0; open--) { /* first what looks slow, then the slowest */
        for (size_t i = 0; open && i < h->siblings.n; i++)
            if (!h->siblings.all[i].proven && h->siblings.all[i].first)
                add(out, h->siblings.all[i].bench, h->siblings.all[i].first, AGAIN_MOST);
        for (size_t i = 0; i < h->matrices.n; i++) {
            const struct matrix *m = &h->matrices.all[i];

            for (size_t k = 0; open && k < m->n * m->n; k++)
                if (m->cells[k].vague)
                    add(out, m->bench, m->cells[k].c, AGAIN_MOST);
            if (!open)
                add_slowest(out, m);
        }
        for (size_t b = 0; b < r->n_benches; b++)
            for (size_t i = 0; i < r->benches[b].n_cases; i++) {
                struct contrast_gpus g =
                    contrast_gpus(r, &r->benches[b], out->run, &r->benches[b].cases[i]);

                if (g.n > 2 && g.worst_case && (open ? g.undecided : !g.behind))
                    add(out, &r->benches[b], g.worst_case, open ? AGAIN_MOST : AGAIN_SLOWEST);
            }
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
        choose(&r, &headlines, &out);
    }
    *n = out.n;
    report_release(&r);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Remarks on headlines: see headline.h. */
#include "harness/report/headline.h"

#include <math.h>
#include <string.h>

#include "harness/report/described.h"
#include "harness/report/show.h"

static void remark(const struct search *s, struct headline_run *h, const char *text)
{
    verdict_remark(&s->r->pool, &h->verdict, text);
}

/* warn: somebody should look, at this case. */
static void remark_case(const struct search *s, struct headline_run *h, const char *text, bool warn,
                        const struct report_case *c)
{
    if (warn)
        verdict_look(&s->r->pool, &h->verdict, text, c);
    else
        remark(s, h, text);
}

/* "8 GPUs alike", "7 of 8 GPUs, cuda:5 failed: 805.0 to 700.0, slowest: cuda:2". */
static const char *describe_gpus(struct pool *pool, const struct gpus *g)
{
    const char *text = pool_text(pool, "%zu GPUs", g->n);

    if (*g->lost)
        text = pool_text(pool, "%zu of %zu GPUs, %s", g->n, g->all, g->lost);
    if (g->n < 2)
        return text;
    if (g->alike)
        return pool_text(pool, "%s%s alike", text, *g->lost ? ", the others" : "");
    return pool_text(pool, "%s: %s to %s, slowest: %s%s", text, document_number(pool, g->best),
                     document_number(pool, g->worst), g->worst_gpu,
                     g->looks_slow ? " (not proven to be slow)" : "");
}

/* How the best case's GPU stands among the others. */
static void remark_gpus(const struct search *s, const struct headlines *out, size_t run,
                        struct headline_run *h)
{
    struct gpus g = gpus_of(s->r, &out->comparisons, s->bench, run, h->best);
    bool slow = g.slow && point_is_measured(h->point);

    if (g.all < 2)
        return;
    remark_case(s, h, describe_gpus(&s->r->pool, &g), slow, g.worst_case);
    if (slow)
        remark(s, h, verdict_device_findings(s->r, run, s->bench, g.worst_case));
}

/* Links of the same hosts by the same transport, at the size that tells most of them: the best case
 * may be of another. */
static bool is_beside(const struct search *s, const struct matrix *m, const struct report_case *c,
                      size_t run)
{
    if (!m->hosts || m->run != run || m->bench != s->bench || strcmp(m->metric, c->metric) != 0)
        return false;
    for (size_t i = 0; i < m->n * m->n; i++)
        if (m->cells[i].c)
            return !strcmp(report_param(m->bench, m->cells[i].c, "transport"),
                           report_param(s->bench, c, "transport")) &&
                   !strcmp(report_param(m->bench, m->cells[i].c, "direction"),
                           report_param(s->bench, c, "direction"));
    return false;
}

/* Of the slow pairs with the path of this case, the one that is furthest behind its kind. */
static const struct report_case *slowest_pair(const struct matrix *m, const struct report_case *of)
{
    const char *path = report_param(m->bench, of, "path");
    const struct report_case *slowest = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < m->n * m->n; i++) {
        const struct matrix_cell *cell = &m->cells[i];

        if (cell->slow && !strcmp(cell->path, path) && cell->others->ratio < least) {
            least = cell->others->ratio;
            slowest = cell->c;
        }
    }
    return slowest;
}

/* Of pairs, the worst matter. */
static void remark_pairs(const struct search *s, const struct matrices *matrices, size_t run,
                         struct headline_run *h)
{
    for (size_t i = 0; i < matrices->n; i++) {
        const struct matrix *m = &matrices->all[i];
        const struct report_case *slowest;
        const char *text;
        size_t slow;

        bool own = matrix_holds(m, h->best, run);

        if (!own && !is_beside(s, m, h->best, run))
            continue;
        text = matrix_summary(s->r, m, h->best, &slow);
        slowest = slowest_pair(m, h->best);
        if (own || slow)
            remark_case(s, h, text, slow && point_is_measured(h->point), slowest);
        if (own && !*h->slow)
            h->slow = matrix_slow_names(s->r, m);
        for (size_t k = 0; k < m->n_slow_hosts; k++)
            remark_case(s, h, matrix_host_text(s->r, m, k), point_is_measured(h->point), slowest);
    }
}

/* Of a collective: what it keeps of its bandwidth as ranks are added, what explains a value above
 * its limit, and who is late. */
static void remark_scaling(const struct search *s, const struct headlines *out, size_t run,
                           struct headline_run *h)
{
    const char *late, *above;
    bool explained;

    if (strcmp(h->best->metric, "busbw") != 0)
        return;
    remark(s, h, scaling_remark(s->r, &out->scalings, h->best, run));
    above = scaling_above_text(s->r, s->bench, h->best, run, &explained);
    remark(s, h, explained ? above : ""); /* else the verdict has said all there is */
    /* an earlier line says what holds for the whole pipe */
    bool begun = s->rule && out->n && !strcmp(out->all[out->n - 1].pipe, s->rule->pipe);
    late = begun ? "" : stragglers_text(s->r, &out->stragglers, s->bench, run);
    remark_case(s, h, late, point_is_measured(h->point), NULL);
}

/* The line shows what was sustained, and here is what its samples show without the pauses. */
static void remark_sustained(const struct search *s, struct headline_run *h)
{
    const struct report_point *p = h->point;

    if (isfinite(p->sustained.value))
        remark(s, h,
               pool_text(&s->r->pool,
                         "sustained over all of the time; the median of its samples is %s %s: %s",
                         document_number(&s->r->pool, p->value), h->best->unit,
                         p->sustained.cause));
}

/* What stands beside the best case: the same on the other GPUs, and with one thing changed. */
void headline_remarks(const struct search *s, const struct headlines *out, size_t run,
                      struct headline_run *h)
{
    remark_sustained(s, h);
    if (h->candidates / (h->alike ? h->alike : 1) > 1)
        remark(s, h,
               pool_text(&s->r->pool, "%s of %zu cases", h->is_job ? "the first" : "the best",
                         h->candidates / (h->alike ? h->alike : 1)));
    remark_gpus(s, out, run, h);
    remark_pairs(s, &out->matrices, run, h);
    if (h->point->n_values)
        remark_scaling(s, out, run, h);
    remark(s, h, contrast_remarks(s->r, &out->contrasts, s->bench, s->in, h->best, run));
}

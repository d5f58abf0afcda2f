/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between GPUs, and links between hosts, as heat maps: tables whose cells are the darker the
 * higher their value. */
#include <math.h>
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define MATRICES_MAX 16
#define SLOW_MAX     3
#define SHADE_MAX    60 /* %: text must stay legible on it */

/* "0" of "cuda:0": a wide table has no room for more. */
static const char *number_of(const char *name)
{
    const char *colon = strchr(name, ':');

    return colon && colon[1] ? colon + 1 : name;
}

static const char *tip_of(const struct page *page, const struct matrix *m, size_t cell)
{
    const struct matrix_cell *at = &m->cells[cell];
    const struct report_point *p = at->point;
    struct pool *pool = &page->r->pool;
    const char *text = pool_text(pool, "%s to %s: %s %s", m->ends[cell / m->n],
                                 m->ends[cell % m->n], document_number(pool, p->value), m->unit);

    if (!isnan(p->low))
        text = pool_text(pool, "%s (%s)", text, show_interval(pool, p));
    if (!isnan(p->percent))
        text = pool_text(pool, "%s, %s of %s (%s)", text, document_percent(pool, p->percent),
                         document_number(pool, p->limit), p->limit_source);
    return *at->kind ? pool_text(pool, "%s; %s", text, at->kind) : text;
}

static void write_cell(const struct page *page, const struct matrix *m, size_t cell)
{
    const struct matrix_cell *at = &m->cells[cell];
    FILE *out = page->out;

    if (cell / m->n == cell % m->n) {
        fputs("<td class='self'></td>", out);
    } else if (!at->c) {
        fputs("<td class='none' title='not in this run'></td>", out);
    } else if (isnan(at->point->value)) {
        html_print(out, "<td class='%s' title='%s: %s'>%s</td>", at->point->status,
                   at->point->status, at->point->reason,
                   strcmp(at->point->status, "skipped") ? "fail" : "n/a");
    } else {
        html_print(out, "<td title='%s'", tip_of(page, m, cell));
        fprintf(out, " style='--shade:%.0f%%'%s>",
                m->high > 0 ? SHADE_MAX * fmax(at->point->value, 0) / m->high : 0,
                matrix_is_marked(m, cell) ? " class='slow'" : "");
        double factor = show_scale(&page->r->pool, m->high, m->unit).factor;
        html_print(out, "%s</td>", show_short(&page->r->pool, factor * at->point->value));
    }
}

/* What every case of the matrix that was not measured makes of it. */
static const char *origin_of(const struct matrix *m)
{
    const char *origin = "";

    for (size_t i = 0; i < m->n * m->n && !*origin; i++)
        if (m->cells[i].c && m->cells[i].point->n_values)
            origin = strcmp(m->cells[i].point->origin, "measured") ? m->cells[i].point->origin : "";
    return origin;
}

static void write_caption(const struct page *page, const struct matrix *m)
{
    const char *origin = origin_of(m);
    /* the plan drew some of the pairs, since there are too many */
    bool sampled = json_is_object(json_object_get(page->r->runs[m->run].meta, "gpu_pairs"));
    size_t all = m->n * (m->n - 1);
    FILE *out = page->out;

    html_print(out, "<figcaption><b>%s (%s)</b> <span>%s%s%s</span>", m->metric,
               show_scale(&page->r->pool, m->high, m->unit).unit,
               page->r->n_runs > 1 ? page->r->names[m->run] : "",
               page->r->n_runs > 1 && *m->title ? ", " : "", m->title);
    if (*origin)
        html_print(out, " <span class='badge'>%s</span>", origin);
    if (m->measured < all)
        html_print(out, " <span>(%s%zu of %zu pairs)</span>", sampled ? "sampled " : "",
                   m->measured, all);
    fputs("</figcaption>\n", out);
}

static void write_slow(const struct page *page, const struct matrix *m)
{
    size_t listed = 0, all = 0;

    for (size_t i = 0; i < m->n * m->n; i++)
        all += matrix_is_listed(m, i);
    if (m->looks_slow)
        html_print(page->out,
                   "<p class='note'>Look slow, which is not proven: %s. Measure again with a "
                   "higher --repeat.</p>\n",
                   matrix_looks_slow_text(page->r, m));
    if (!all && !m->n_slow_hosts)
        return;
    fputs("<ul class='findings'>", page->out);
    for (size_t i = 0; i < m->n_slow_hosts; i++)
        html_print(page->out, "<li class='warn'><b>%s</b></li>", matrix_host_text(page->r, m, i));
    for (size_t i = 0; i < m->n * m->n; i++)
        if (matrix_is_listed(m, i) && listed++ < SLOW_MAX)
            html_print(page->out, "<li class='warn'>%s</li>", matrix_slow_text(page->r, m, i));
    fputs("</ul>\n", page->out);
    if (all > SLOW_MAX)
        html_print(page->out, "<p class='note'>Marked as slow: %s.</p>\n",
                   show_count(&page->r->pool, all - SLOW_MAX, "more pair"));
}

static void write_matrix(const struct page *page, const struct matrix *m)
{
    FILE *out = page->out;

    fputs("<figure class='matrix'>\n", out);
    write_caption(page, m);
    fprintf(out, "<div class='across'><table%s>\n", m->n > 10 ? " class='many'" : "");
    fputs("<thead><tr><th scope='col'>from \\ to</th>", out);
    for (size_t i = 0; i < m->n; i++)
        html_print(out, "<th scope='col' title='to %s'>%s</th>", m->ends[i], number_of(m->ends[i]));
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t i = 0; i < m->n; i++) {
        html_print(out, "<tr><th scope='row'>%s</th>", m->ends[i]);
        for (size_t k = 0; k < m->n; k++)
            write_cell(page, m, i * m->n + k);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    write_slow(page, m);
    fputs("</figure>\n", out);
}

static void write_matrices(const struct page *page, bool hosts)
{
    const struct matrices *all = &page->headlines->matrices;
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++)
        if (all->all[i].hosts == hosts && n++ < MATRICES_MAX)
            write_matrix(page, &all->all[i]);
    fputs("</div>\n", page->out);
    if (n > MATRICES_MAX)
        html_print(page->out,
                   "<p class='missing'>%zu more matrices are left out: their rows are in the "
                   "tables below.</p>\n",
                   n - MATRICES_MAX);
    fputs("</section>\n", page->out);
}

bool page_has_matrices(const struct page *page, bool hosts)
{
    const struct matrices *all = &page->headlines->matrices;

    for (size_t i = 0; i < all->n; i++)
        if (all->all[i].hosts == hosts)
            return true;
    return false;
}

void page_matrices(const struct page *page)
{
    if (page_has_matrices(page, true)) {
        fputs("<section id='links'>\n<h2>Between hosts</h2>\n"
              "<p class='note'>Rows send, columns receive; the stronger the colour, the higher. "
              "A framed cell is slow, or looks slow, against the others.</p>\n"
              "<div class='matrices'>\n",
              page->out);
        write_matrices(page, true);
    }
    if (!page_has_matrices(page, false))
        return;
    fputs("<section id='peers'>\n<h2>Between GPUs</h2>\n"
          "<p class='note'>Rows are sources, columns destinations; the stronger the colour, the "
          "higher. A framed cell is slow, or looks slow, against the others of its kind of link."
          "</p>\n<div class='matrices'>\n",
          page->out);
    write_matrices(page, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The charts, with legends that are text of the page. */
#include <math.h>
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define LEAD_MAX   3 /* charts beside the first table */
#define LINES_EACH 7 /* of that table, beside which one has room */

void page_figure(const struct page *page, size_t i)
{
    const struct figure *f = &page->figures->all[i];
    const struct plot *plot = &f->plot;
    FILE *out = page->out;

    html_print(out, "<figure id='plot-%s'>\n<figcaption><b>%s</b> <span>%s</span></figcaption>\n",
               plot->name, f->heading, f->subtitle);
    plot_write_html(&page->r->pool, plot, out);
    if (plot->watermark || *f->note) {
        fputs("<p class='note'>", out);
        if (plot->watermark)
            html_print(out, "<span class='badge'>%s</span> ", plot->watermark);
        if (*f->note)
            html_print(out, "%s.", f->note);
        fputs("</p>\n", out);
    }
    fputs("</figure>\n", out);
}

static bool is_aside(const struct figure *f)
{
    return f->rank == FIGURE_ASIDE;
}

static size_t count_lead(const struct page *page)
{
    size_t room = page->headlines->n / LINES_EACH, n = 0;

    room = room < 1 ? 1 : room > LEAD_MAX ? LEAD_MAX : room;
    while (n < page->figures->n && n < room && !is_aside(&page->figures->all[n]) &&
           page->figures->all[n].place == FIGURE_AMONG_PLOTS)
        n++;
    return n;
}

static void write_key(const struct page *page)
{
    fputs("<p class='note'>A bar ends at the median, and the thin line through it, or through a "
          "point, is the 95 % CI. The thick mark in a row is its limit.</p>\n",
          page->out);
}

void page_lead(const struct page *page)
{
    size_t n = count_lead(page);

    if (!n)
        return;
    fputs("<div class='figures lead'>\n", page->out);
    for (size_t i = 0; i < n; i++)
        page_figure(page, i);
    write_key(page);
    fputs("</div>\n", page->out);
}

static void write_figures(const struct page *page, bool aside)
{
    const struct figures *figures = page->figures;
    size_t n = 0;

    for (size_t i = count_lead(page); i < figures->n; i++) {
        const struct figure *f = &figures->all[i];

        if (f->place != FIGURE_AMONG_PLOTS || is_aside(f) != aside)
            continue;
        if (!n++ && aside)
            fputs("<details class='d-fold'><summary>What they cost: CPU time and other counts"
                  "</summary>\n",
                  page->out);
        if (n == 1)
            fputs("<div class='figures'>\n", page->out);
        page_figure(page, i);
    }
    if (n)
        fputs("</div>\n", page->out);
    if (n && aside)
        fputs("</details>\n", page->out);
}

/* Every metric is somewhere on the page. */
static void write_undrawn(const struct page *page)
{
    static const struct document_column columns[] = {
        {.name = "benchmark"}, {.name = "case"}, {.name = "median", .number = true}};
    struct pool *pool = &page->r->pool;
    struct document *d = document_new(pool);
    struct document_table *t = document_table(d, columns, 3);

    for (size_t i = 0; i < page->figures->n_undrawn; i++) {
        const struct undrawn *u = &page->figures->undrawn[i];
        const struct report_point *p = &u->c->points[0];
        struct cell *cells = document_row(t);

        cells[0] = cell_text(u->bench->name);
        cells[1] = cell_text(u->n > 1 ? pool_text(pool, "%s, in all %zu cases", u->c->metric, u->n)
                                      : case_text(page->r, u->bench, u->c));
        cells[2] = cell_text(pool_text(pool, "%s %s%s", show_short(pool, p->value), u->c->unit,
                                       show_origin(pool, p->origin)));
    }
    if (!page->figures->n_undrawn)
        return;
    fputs("<details class='d-fold'><summary>Single values, of which there is no chart</summary>\n",
          page->out);
    document_write_html(d, page->out);
    fputs("</details>\n", page->out);
}

bool page_has_plots(const struct page *page)
{
    const struct figures *f = page->figures;
    size_t lead = count_lead(page);

    return !lead || f->n_undrawn || *f->left_out ||
           (f->n > lead && f->all[lead].place == FIGURE_AMONG_PLOTS);
}

void page_plots(const struct page *page)
{
    const struct figures *figures = page->figures;

    if (!page_has_plots(page))
        return;
    fputs("<section id='plots'>\n<h2>Charts</h2>\n", page->out);
    if (!figures->n && !figures->n_undrawn)
        fputs("<p>No case has a value.</p>\n", page->out);
    else if (!count_lead(page))
        write_key(page);
    write_figures(page, false);
    write_figures(page, true);
    write_undrawn(page);
    if (*figures->left_out)
        html_print(page->out, "<p class='missing'>%s.</p>\n", figures->left_out);
    fputs("</section>\n", page->out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The plots, with legends that are text of the page. */
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"

void page_figure(const struct page *page, size_t i)
{
    const struct figure *f = &page->figures->all[i];
    const struct plot *plot = &f->plot;
    FILE *out = page->out;

    html_print(out, "<figure id='plot-%s'>\n<figcaption><b>%s</b> <span>%s</span></figcaption>\n",
               plot->name, f->heading, f->subtitle);
    plot_write_html(&page->r->pool, plot, out);
    fputs("<p class='note'>", out);
    if (plot->watermark)
        html_print(out, "<span class='badge'>%s</span> ", plot->watermark);
    if (*f->note)
        html_print(out, "%s.", f->note);
    fputs("</p>\n</figure>\n", out);
}

void page_plots(const struct page *page)
{
    const struct figures *figures = page->figures;
    FILE *out = page->out;
    const char *bench = "";
    size_t n = 0;

    for (size_t i = 0; i < figures->n; i++)
        n += figures->all[i].place == FIGURE_AMONG_PLOTS;
    fputs("<section id='plots'>\n<h2>Plots</h2>\n", out);
    if (!n)
        fputs("<p>There are no two values of one metric to draw.</p>\n", out);
    else
        fputs("<p>The bar through a point is its interval. <span class='on-screen'>Point at a "
              "line for its name.</span></p>\n",
              out);
    for (size_t i = 0; i < figures->n; i++) {
        if (figures->all[i].place != FIGURE_AMONG_PLOTS)
            continue;
        if (strcmp(bench, figures->all[i].bench->name) != 0) {
            fputs(*bench ? "</div>\n" : "", out);
            bench = figures->all[i].bench->name;
            html_print(out, "<h3>%s</h3>\n<div class='figures'>\n", bench);
        }
        page_figure(page, i);
    }
    if (*bench)
        fputs("</div>\n", out);
    if (*figures->left_out && *bench)
        html_print(out, "<p class='missing'>%s.</p>\n", figures->left_out);
    fputs("</section>\n", out);
}

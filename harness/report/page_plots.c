/* SPDX-License-Identifier: Apache-2.0 */
/* The plots, with legends that are text of the page. */
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"

static const char *origin_of_run(const struct figure *f, size_t run)
{
    const char *origin = "";

    for (size_t i = 0; i < f->plot.n_lines && !*origin; i++)
        if (f->lines[i].run == run)
            origin = f->lines[i].origin;
    return origin;
}

/* The legend of two runs: each series once, and how the runs differ. */
static void make_keys_of_two(const struct page *page, const struct figure *f, struct plot *plot)
{
    struct plot_key *keys = pool_alloc(&page->r->pool, plot->n_lines + 2, sizeof(*keys));
    bool seen[2] = {false, false};

    plot->keys = keys;
    for (size_t i = 0; i < plot->n_lines; i++) {
        bool again = i && plot->lines[i - 1].colour == plot->lines[i].colour;

        if (*f->lines[i].series && !again)
            keys[plot->n_keys++] = (struct plot_key){.line = i, .label = f->lines[i].series};
    }
    for (size_t i = 0; i < plot->n_lines; i++) {
        size_t run = f->lines[i].run;

        if (!seen[run])
            keys[plot->n_keys++] =
                (struct plot_key){.line = i,
                                  .label = pool_text(&page->r->pool, "%s%s", page->r->names[run],
                                                     origin_of_run(f, run)),
                                  .colourless = true};
        seen[run] = true;
    }
}

void page_figure(const struct page *page, size_t i)
{
    const struct figure *f = &page->figures->all[i];
    struct plot plot = f->plot;
    FILE *out = page->out;

    if (page->r->n_runs == 2 && !plot.categories && plot.n_lines > 1 &&
        f->place == FIGURE_AMONG_PLOTS)
        make_keys_of_two(page, f, &plot);
    html_print(out, "<figure id='plot-%s'>\n<figcaption><b>%s</b> <span>%s</span></figcaption>\n",
               plot.name, plot.categories ? plot.x_label : plot.y_label, f->subtitle);
    plot_write_html(&page->r->pool, &plot, out);
    fputs("<p class='note'>", out);
    if (plot.watermark)
        html_print(out, "<span class='badge'>%s</span> ", plot.watermark);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The plots, with legends that are text of the page. */
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"

static void write_key(FILE *out, const struct plot *plot, const struct plot_line *line,
                      const char *colour, const char *label)
{
    fputs("<li><svg class='key' viewBox='0 0 30 12' aria-hidden='true'>", out);
    if (!plot->categories && !line->apart)
        fprintf(out, "<path d='M0,6 h30' stroke-width='2' %s style='stroke:var(--%s)'/>",
                line->dashed ? "stroke-dasharray='5,4'" : "", colour);
    if (!line->plain)
        fprintf(
            out,
            "<use href='#gpPt%d' transform='translate(15,6) scale(4)' style='color:var(--%s)'/>",
            plot_marker_type(line->marker, line->dashed) - 1, colour);
    html_print(out, "</svg>%s</li>", label);
}

static void write_line_key(FILE *out, const struct plot *plot, size_t i, const char *label)
{
    char colour[32];

    snprintf(colour, sizeof(colour), "series-%zu", plot->lines[i].colour % PLOT_COLOURS);
    write_key(out, plot, &plot->lines[i], colour, label);
}

static const char *origin_of_run(const struct figure *f, size_t run)
{
    const char *origin = "";

    for (size_t i = 0; i < f->plot.n_lines && !*origin; i++)
        if (f->lines[i].run == run)
            origin = f->lines[i].origin;
    return origin;
}

/* Two runs: each series once, and how the runs differ. */
static void write_legend_of_two(const struct page *page, const struct figure *f)
{
    const struct plot *plot = &f->plot;
    bool seen[2] = {false, false};

    for (size_t i = 0; i < plot->n_lines; i++) {
        bool again = i && plot->lines[i - 1].colour == plot->lines[i].colour;

        if (*f->lines[i].series && !again)
            write_line_key(page->out, plot, i, f->lines[i].series);
    }
    for (size_t i = 0; i < plot->n_lines; i++) {
        size_t run = f->lines[i].run;

        if (!seen[run])
            write_key(
                page->out, plot, &plot->lines[i], "text",
                pool_text(&page->r->pool, "%s%s", page->r->names[run], origin_of_run(f, run)));
        seen[run] = true;
    }
}

static void write_legend(const struct page *page, const struct figure *f)
{
    const struct plot *plot = &f->plot;

    if (plot->n_lines < 2)
        return;
    fputs("<ul class='legend'>", page->out);
    bool of_two = page->r->n_runs == 2 && !plot->categories && f->place == FIGURE_AMONG_PLOTS;

    if (of_two)
        write_legend_of_two(page, f);
    for (size_t i = 0; !of_two && i < plot->n_lines; i++)
        write_line_key(page->out, plot, i, plot->lines[i].label);
    fputs("</ul>\n", page->out);
}

void page_figure(const struct page *page, size_t i)
{
    const struct figure *f = &page->figures->all[i];
    const struct plot_picture *picture = &page->pictures[i];
    FILE *out = page->out;

    html_print(out, "<figure id='plot-%s'>\n<figcaption><b>%s</b> <span>%s</span></figcaption>\n",
               f->plot.name, f->plot.categories ? f->plot.x_label : f->plot.y_label, f->subtitle);
    write_legend(page, f);
    fputs("<div class='wide'>", out);
    fputs(picture->wide, out);
    fputs("</div><div class='narrow'>", out);
    fputs(picture->narrow, out);
    fputs("</div>\n<p class='note'>", out);
    if (f->plot.watermark)
        html_print(out, "<span class='badge'>%s</span> ", f->plot.watermark);
    if (*f->note)
        html_print(out, "%s. ", f->note);
    html_print(out,
               "<span class='files'>Files: <a href='plots/%s.svg'>SVG</a>, "
               "<a href='plots/%s.png'>PNG</a></span></p>\n</figure>\n",
               f->plot.name, f->plot.name);
}

/* Lines in place of plots. */
static void write_words(const struct page *page)
{
    const struct figures *figures = page->figures;
    FILE *out = page->out;

    if (!figures->n_words)
        return;
    fputs("<h3>Not drawn: one case alone, or 0 everywhere</h3>\n<div class='scroll'><table "
          "class='plain words'><thead><tr><th scope='col'>benchmark</th><th scope='col'>metric</th>"
          "<th scope='col'>of</th><th scope='col'>value</th></tr></thead>\n<tbody>",
          out);
    for (size_t i = 0; i < figures->n_words; i++) {
        const struct figure_word *w = &figures->words[i];

        html_print(out,
                   "<tr><td>%s</td><td>%s</td><td class='text'>%s</td><td "
                   "class='text'>%s</td></tr>\n",
                   w->bench->name, w->metric, *w->subtitle ? w->subtitle : "all cases", w->value);
    }
    fputs("</tbody></table></div>\n", out);
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
    if (*page->plots_error)
        html_print(out, "<p class='banner'>No plots: %s.</p>\n", page->plots_error);
    else if (!n && !figures->n_words)
        fputs("<p>There are no two values of one metric to draw.</p>\n", out);
    else if (n)
        fputs("<p>The bar through a point is its interval. Point at a line for its name.</p>\n",
              out);
    for (size_t i = 0; i < figures->n; i++) {
        if (figures->all[i].place != FIGURE_AMONG_PLOTS || !page->pictures[i].wide ||
            !page->pictures[i].narrow)
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
    write_words(page);
    fputs("</section>\n", out);
}

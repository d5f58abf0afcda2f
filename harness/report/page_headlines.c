/* SPDX-License-Identifier: Apache-2.0 */
/* The headlines: each pipe's value, its share of the limit, and the sentence on it. */
#include <math.h>
#include <string.h>

#include "harness/report/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

static const char *const moods[] = {
    [MOOD_GOOD] = "good", [MOOD_OPEN] = "open", [MOOD_WARN] = "warn", [MOOD_BAD] = "bad"};

static void write_value(const struct page *page, const struct headline_run *h)
{
    FILE *out = page->out;
    struct show_scale scale;

    if (!h->point || !h->point->n_values) {
        fputs("<div class='value none'>not measured</div>", out);
        return;
    }
    scale = show_scale(h->point->value, h->best->unit);
    html_print(out, "<div class='value'><b>%s</b> %s",
               show_number(&page->r->pool, h->point->value * scale.factor), scale.unit);
    if (strcmp(h->point->origin, "measured") != 0)
        html_print(out, " <span class='badge'>%s</span>",
                   *h->point->origin ? h->point->origin : "origin unknown");
    fputs("<div class='interval'>", out);
    if (isnan(h->point->low))
        fputs("no interval", out);
    else
        html_text(out, show_scaled_interval(&page->r->pool, h->point, scale.factor));
    fputs("</div></div>", out);
}

/* The bar is a meter: its text says the same. */
static void write_share(const struct page *page, const struct headline_run *h)
{
    struct show_scale scale;

    if (!h->point || isnan(h->point->percent)) {
        fputs("<div class='share none'>no limit known</div>", page->out);
        return;
    }
    scale = show_scale(h->point->value, h->best->unit);
    html_print(page->out, "<div class='share' title='%s: %s %s, %s'><span class='bar %s'>",
               h->point->reference ? "reference" : "limit",
               show_number(&page->r->pool, h->point->limit * scale.factor), scale.unit,
               *h->point->limit_source ? h->point->limit_source : "source not named",
               moods[h->verdict.mood]);
    fprintf(page->out, "<i style='width:%.1f%%'></i></span>",
            fmin(fmax(h->point->percent, 0), 100));
    html_print(page->out, "<span>%s of %s%s</span></div>",
               show_percent(&page->r->pool, h->point->percent),
               show_number(&page->r->pool, h->point->limit * scale.factor),
               h->point->reference ? " (reference)" : "");
}

static void write_cell(const struct page *page, const struct headline *h, size_t run)
{
    const struct headline_run *at = &h->runs[run];
    FILE *out = page->out;

    html_print(out, "<td data-run='%s'><div class='cell'>", page->r->names[run]);
    write_value(page, at);
    write_share(page, at);
    html_print(out, "<div class='verdict %s'><p>%s</p>", moods[at->verdict.mood],
               at->verdict.sentence);
    if (*headline_what(&page->r->pool, at))
        html_print(out, "<p class='what'>%s</p>", headline_what(&page->r->pool, at));
    fputs("</div></div></td>", out);
}

static size_t lines_of_pipe(const struct headlines *h, size_t first)
{
    size_t n = 1;

    while (first + n < h->n && !strcmp(h->all[first + n].pipe, h->all[first].pipe))
        n++;
    return n;
}

void page_headlines(const struct page *page)
{
    const struct headlines *h = page->headlines;
    FILE *out = page->out;

    fprintf(out,
            "<section id='headlines'>\n<h2>Headlines</h2>\n<table class='headlines%s'>\n"
            "<thead><tr><th scope='col'>pipe</th><th scope='col'>of</th>",
            page->r->n_runs > 1 ? " several" : "");
    for (size_t i = 0; i < page->r->n_runs; i++)
        html_print(out, "<th scope='col'>%s</th>", page->r->names[i]);
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t i = 0; i < h->n; i++) {
        fputs("<tr>", out);
        if (!i || strcmp(h->all[i - 1].pipe, h->all[i].pipe) != 0)
            html_print(out, "<th scope='rowgroup' class='pipe' rowspan='%zu'>%s</th>",
                       lines_of_pipe(h, i), h->all[i].pipe);
        html_print(out, "<th scope='row' class='label'>%s</th>", h->all[i].label);
        for (size_t run = 0; run < page->r->n_runs; run++)
            write_cell(page, &h->all[i], run);
        fputs("</tr>\n", out);
    }
    fputs("</tbody>\n</table>\n", out);
    if (!h->n)
        fputs(page->r->n_rows
                  ? "<p>No headline is taken from these rows: all are listed below.</p>\n"
                  : "<p>There is no row to take a headline from.</p>\n",
              out);
    for (size_t run = 0; run < page->r->n_runs; run++) {
        const char *note = headlines_unsteady_text(page->r, run);

        if (*note)
            html_print(out, "<p class='missing'>%s%s%s</p>\n",
                       page->r->n_runs > 1 ? page->r->names[run] : "",
                       page->r->n_runs > 1 ? ", " : "", note);
    }
    if (*h->missing)
        html_print(out, "<p class='missing'>Not in %s: %s.</p>\n",
                   page->r->n_runs > 1 ? "any of these runs" : "this run", h->missing);
    if (*h->unheaded)
        html_print(out, "<p class='missing'>No headline from the rows here: %s.</p>\n",
                   h->unheaded);
    if (*h->no_gpu)
        html_print(out, "<p class='missing'>%s</p>\n", headlines_no_gpu_text(&page->r->pool, h));
    fputs("</section>\n", out);
}

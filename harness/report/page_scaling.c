/* SPDX-License-Identifier: Apache-2.0 */
/* The section on scaling: curves over ranks, efficiency, the fitted model, stragglers, buckets of
 * gradients. */
#include <math.h>
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define ABOVE_MAX  12
#define RANKS_MAX  64 /* in the table of stragglers; more of them: the latest */
#define TABLES_MAX 24

static void write_figures(const struct page *page, enum figure_place place)
{
    size_t n = 0;

    for (size_t i = 0; i < page->figures->n; i++)
        if (page->figures->all[i].place == place) {
            fputs(n++ ? "" : "<div class='figures'>\n", page->out);
            page_figure(page, i);
        }
    fputs(n ? "</div>\n" : "", page->out);
}

/* Of a case on two levels: both, since a median between them is no value it has. */
static const char *value_text(const struct page *page, const struct report_case *c, size_t run)
{
    const struct report_point *p = c ? &c->points[run] : NULL;
    struct pool *pool = &page->r->pool;

    if (!p || !p->n_rows)
        return "";
    if (!p->n_values)
        return p->status;
    if (p->two == TWO_NOT)
        return show_short(pool, p->value);
    return pool_text(pool, "%s (%s) or %s (%s)", show_short(pool, p->levels.low),
                     document_percent(pool, 100 * p->levels.share_low),
                     show_short(pool, p->levels.high),
                     document_percent(pool, 100 * p->levels.share_high));
}

static void write_value(const struct page *page, const struct report_case *c, size_t run)
{
    bool two = c && c->points[run].n_values && c->points[run].two != TWO_NOT;

    html_print(page->out, two ? "<td class='levels' title='two levels'>%s</td>" : "<td>%s</td>",
               value_text(page, c, run));
}

static const char *efficiency_text(const struct page *page, const struct scaling_series *s,
                                   size_t size, size_t ranks)
{
    const struct scaling_cell *row = &s->cells[size * s->n_ranks];
    double base;
    struct scaling_ratio e = scaling_efficiency(s, size, ranks, &base);
    const char *text;

    if (isnan(e.value))
        return base == s->ranks[ranks] ? "the first over several nodes" : "";
    text = pool_text(&page->r->pool, "%#.3g%s", e.value, scaling_interval_text(&page->r->pool, &e));
    if (s->ranks[0] != base)
        return pool_text(&page->r->pool, "%s, from %.0f ranks", text, base);
    if (strcmp(report_param(s->bench, s->first, "scaling"), "strong") != 0)
        return text;
    return pool_text(&page->r->pool, "%s; %#.3g times as fast", text,
                     scaling_time_us(row[0].time, s->run) /
                         scaling_time_us(row[ranks].time, s->run));
}

static void write_series_head(const struct page *page, const struct scaling_series *s)
{
    FILE *out = page->out;

    fputs("<thead><tr><th scope='col' rowspan='2'>size</th>", out);
    for (size_t i = 0; i < s->n_ranks; i++)
        fprintf(out, "<th scope='colgroup' colspan='%d'>%.0f ranks</th>", i ? 3 : 2, s->ranks[i]);
    fputs("</tr>\n<tr>", out);
    for (size_t i = 0; i < s->n_ranks; i++)
        fprintf(out, "<th scope='col'>time us</th><th scope='col'>busbw GB/s</th>%s",
                i ? "<th scope='col'>efficiency</th>" : "");
    fputs("</tr></thead>\n<tbody>\n", out);
}

static void write_series_table(const struct page *page, const struct scaling_series *s)
{
    FILE *out = page->out;

    fputs("<div class='scroll'><table class='plain scaling'>\n", out);
    write_series_head(page, s);
    for (size_t size = 0; size < s->n_sizes; size++) {
        html_print(out, "<tr><th scope='row'>%s</th>", s->size_texts[size]);
        for (size_t i = 0; i < s->n_ranks; i++) {
            const struct scaling_cell *cell = &s->cells[size * s->n_ranks + i];

            write_value(page, cell->time, s->run);
            write_value(page, cell->bus, s->run);
            if (i)
                html_print(out, "<td class='ratio'>%s</td>", efficiency_text(page, s, size, i));
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

/* Bus bandwidths above their limits: explained, or flagged. */
static void write_above(const struct page *page, const struct scaling_series *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_sizes * s->n_ranks; i++) {
        const struct report_case *c = s->cells[i].bus;
        bool explained;
        const char *text = c ? scaling_above_text(page->r, s->bench, c, s->run, &explained) : "";

        if (!*text || n++ >= ABOVE_MAX)
            continue;
        fputs(n == 1 ? "<ul class='findings'>" : "", page->out);
        html_print(page->out, "<li class='%s'>%s, %s: %s</li>", explained ? "info" : "warn",
                   s->size_texts[i / s->n_ranks],
                   pool_text(&page->r->pool, "%.0f ranks", s->ranks[i % s->n_ranks]), text);
    }
    fputs(n ? "</ul>\n" : "", page->out);
    if (n > ABOVE_MAX)
        html_print(page->out, "<p class='note'>Above its limit, too: %s.</p>\n",
                   show_count(&page->r->pool, n - ABOVE_MAX, "more point"));
}

static void write_series(const struct page *page, const struct scaling_series *s)
{
    const char *forecast = scaling_forecast_text(page->r, s);
    FILE *out = page->out;

    html_print(out, "<h4>%s <span>%s</span></h4>\n", s->label, s->title);
    html_print(out, "<p class='model'><b>model</b> %s", scaling_fit_text(page->r, s));
    if (*forecast)
        html_print(out, "<br><b>forecast</b> %s", forecast);
    fputs("</p>\n", out);
    if (s->n_two)
        html_print(out,
                   "<p class='note'>%s on two levels: shown as two, and in no efficiency and no "
                   "fit.</p>\n",
                   show_count(&page->r->pool, s->n_two, "point"));
    write_series_table(page, s);
    write_above(page, s);
}

/* What makes communicators with and without a host differ, as no model of theirs can. */
static void write_slow_hosts(const struct page *page)
{
    const struct matrices *all = &page->headlines->matrices;
    FILE *out = page->out;

    for (size_t i = 0; i < all->n; i++) {
        const struct matrix *m = &all->all[i];

        for (size_t k = 0; m->hosts && m->more_is_better && k < m->n_slow_hosts; k++)
            html_print(out,
                       "<ul class='findings'><li class='warn'>%s%s%s. Communicators with a rank "
                       "there may go at that rate, those without do not, and one model cannot "
                       "describe both.</li></ul>\n",
                       page->r->n_runs > 1 ? page->r->names[m->run] : "",
                       page->r->n_runs > 1 ? ", " : "", matrix_host_text(page->r, m, k));
    }
}

static void write_all_series(const struct page *page)
{
    const struct scalings *all = &page->headlines->scalings;

    if (!all->n)
        return;
    fputs("<p>Efficiency is the bus bandwidth against that of the fewest ranks of the same size, "
          "over several nodes of the fewest that are: 1 keeps all of it. The model is t = A a + B "
          "S b: a for each message, b for each byte, A "
          "and B by the algorithm. The ideal is the time of the bytes alone at the limit of "
          "busbw.</p>\n",
          page->out);
    write_slow_hosts(page);
    write_figures(page, FIGURE_OF_RANKS);
    for (size_t i = 0; i < all->n && i < TABLES_MAX; i++)
        write_series(page, &all->all[i]);
    if (all->left_out || all->n > TABLES_MAX)
        html_print(page->out,
                   "<p class='missing'>%s left out: their rows are in the tables below.</p>\n",
                   show_count(&page->r->pool,
                              all->left_out + (all->n > TABLES_MAX ? all->n - TABLES_MAX : 0),
                              "more series"));
}

static void write_rank(const struct page *page, const struct straggler *s)
{
    struct pool *pool = &page->r->pool;
    FILE *out = page->out;

    fputs("<tr>", out);
    if (page->r->n_runs > 1)
        html_print(out, "<td class='text'>%s</td>", page->r->names[s->run]);
    html_print(out, "<th scope='row'>%s%s</th><td class='text'>%s</td><td>%s</td><td>%s</td>",
               s->is_process ? "process " : "", s->name, s->host, document_percent(pool, s->median),
               document_percent(pool, s->most));
    html_print(out, "<td>%zu of %zu</td><td>%s</td><td class='text'>%s</td></tr>\n", s->late,
               s->cases, isnan(s->waited) ? "" : document_percent(pool, s->waited),
               s->is_one      ? "late"
               : s->seems_one ? "late, or by chance"
                              : "");
}

static void write_ranks(const struct page *page)
{
    const struct stragglers *all = &page->headlines->stragglers;
    FILE *out = page->out;
    size_t listed = 0;

    if (!all->n)
        return;
    fputs("<h3>Who was late</h3>\n<p>A rank is late in a sample if the others "
          "waited for it. A rank is listed if it was late in most samples of most of its cases, "
          "and chance does not explain that. Its machine may be slow or busy. A slow link makes "
          "all ranks wait, and shows between hosts.</p>\n",
          out);
    for (size_t run = 0; run < page->r->n_runs; run++)
        for (size_t b = 0; b < page->r->n_benches; b++) {
            const char *text = stragglers_text(page->r, all, &page->r->benches[b], run);

            if (*text)
                html_print(out, "<ul class='findings'><li class='warn'><b>%s</b></li></ul>\n",
                           text);
        }
    fprintf(out, "<div class='scroll'><table class='plain ranks'><thead><tr>%s",
            page->r->n_runs > 1 ? "<th scope='col'>run</th>" : "");
    fputs("<th scope='col'>rank</th><th scope='col'>host</th><th scope='col'>late, median</th><th "
          "scope='col'>at "
          "most</th><th scope='col'>late in cases</th><th scope='col'>waited, median</th><th "
          "scope='col'></th></tr></thead>\n<tbody>",
          out);
    for (size_t i = 0; i < all->n;
         i++) /* where there are many, the first, and those that are late */
        if (listed < RANKS_MAX || all->all[i].is_one) {
            write_rank(page, &all->all[i]);
            listed++;
        }
    fputs("</tbody></table></div>\n", out);
    if (listed < all->n)
        html_print(out, "<p class='note'>%s, none of them late.</p>\n",
                   show_count(&page->r->pool, all->n - listed, "more rank"));
}

static void write_sweeps(const struct page *page)
{
    const struct bucket_sweeps *all = &page->headlines->buckets;
    FILE *out = page->out;

    if (!all->n)
        return;
    fputs("<h3>Gradients of models</h3>\n<p>The time to sum all gradients of a model, fused to "
          "buckets as they come; which bucket is best is said where its interval is apart from the "
          "next one's.</p>\n<div class='scroll'><table class='plain words'><thead><tr><th "
          "scope='col'>model</th><th scope='col'>by</th><th scope='col'>of</th><th "
          "scope='col'>best</th></tr></thead>\n<tbody>",
          out);
    for (size_t i = 0; i < all->n; i++) {
        const struct bucket_series *s = &all->all[i];

        html_print(out,
                   "<tr><td>%s</td><td class='text'>%s</td><td class='text'>%s</td><td "
                   "class='text'>%s</td></tr>\n",
                   s->model, s->label, s->title,
                   *s->best
                       ? s->best
                       : pool_text(&page->r->pool, "%s ms, the only bucket",
                                   document_number(&page->r->pool, s->points[0].time_us / 1000)));
    }
    fputs("</tbody></table></div>\n", out);
    write_figures(page, FIGURE_OF_BUCKETS);
}

bool page_has_scaling(const struct page *page)
{
    const struct headlines *h = page->headlines;

    return h->scalings.n || h->stragglers.n || h->buckets.n;
}

void page_scaling(const struct page *page)
{
    if (!page_has_scaling(page))
        return;
    fputs("<section id='scaling'>\n<h2>Scaling</h2>\n", page->out);
    write_all_series(page);
    write_ranks(page);
    write_sweeps(page);
    fputs("</section>\n", page->out);
}

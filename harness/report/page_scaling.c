/* SPDX-License-Identifier: Apache-2.0 */
/* The section on scaling: curves over ranks and buckets of gradients, efficiency, the fitted model,
 * stragglers. */
#include <math.h>
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define ABOVE_MAX  12
#define RANKS_MAX  64 /* in the table of stragglers; more of them: the latest */
#define TABLES_MAX 24

static size_t count_figures(const struct page *page)
{
    size_t n = 0;

    for (size_t i = 0; i < page->figures->n; i++)
        n += page->figures->all[i].place == FIGURE_OF_SCALING;
    return n;
}

static void write_figures(const struct page *page)
{
    if (count_figures(page))
        fputs("<div class='figures'>\n", page->out);
    for (size_t i = 0; i < page->figures->n; i++)
        if (page->figures->all[i].place == FIGURE_OF_SCALING)
            page_figure(page, i);
    if (count_figures(page))
        fputs("</div>\n", page->out);
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

static const char *efficiency_text(const struct page *page, const struct scaling_series *s,
                                   size_t size, size_t ranks)
{
    const struct scaling_cell *row = &s->cells[size * s->n_ranks];
    const struct comparison *e = row[ranks].efficiency;
    const char *text;

    if (!e)
        return row[ranks].base == s->ranks[ranks] ? "the first over several nodes" : "";
    text =
        pool_text(&page->r->pool, "%#.3g%s", e->ratio, comparison_interval_text(&page->r->pool, e));
    if (s->ranks[0] != row[ranks].base)
        return pool_text(&page->r->pool, "%s, from %.0f ranks", text, row[ranks].base);
    if (strcmp(report_param(s->bench, s->first, "scaling"), "strong") != 0)
        return text;
    return pool_text(&page->r->pool, "%s; %#.3g times as fast", text,
                     scaling_time_us(row[0].time, s->run) /
                         scaling_time_us(row[ranks].time, s->run));
}

static void write_series_table(const struct page *page, const struct scaling_series *s)
{
    static const struct document_column columns[] = {{.name = "size"},
                                                     {.name = "ranks", .number = true},
                                                     {.name = "time us", .number = true},
                                                     {.name = "busbw GB/s", .number = true},
                                                     {.name = "efficiency", .number = true}};
    struct pool *pool = &page->r->pool;
    struct document *d = document_new(pool);
    struct document_table *t = document_table(d, columns, sizeof(columns) / sizeof(*columns));

    for (size_t size = 0; size < s->n_sizes; size++)
        for (size_t i = 0; i < s->n_ranks; i++) {
            const struct scaling_cell *cell = &s->cells[size * s->n_ranks + i];
            struct cell *cells = document_row(t);

            cells[0] = cell_text(s->size_texts[size]);
            cells[1] = cell_text(pool_text(pool, "%.0f", s->ranks[i]));
            cells[2] = cell_text(value_text(page, cell->time, s->run));
            cells[3] = cell_text(value_text(page, cell->bus, s->run));
            cells[4] = cell_text(i ? efficiency_text(page, s, size, i) : "");
        }
    document_write_html(d, page->out);
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
    FILE *out = page->out;

    html_print(out, "<h4>%s <span>%s</span></h4>\n", s->label, s->title);
    html_print(out, "<p class='model'><b>model</b> %s</p>\n", scaling_fit_text(page->r, s));
    if (s->n_two)
        html_print(out,
                   "<p class='note'>%s on two levels: shown as two, and in no efficiency and no "
                   "fit.</p>\n",
                   show_count(&page->r->pool, s->n_two, "point"));
    write_above(page, s);
    fputs("<details class='d-fold'><summary>Values</summary>\n", out);
    write_series_table(page, s);
    fputs("</details>\n", out);
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

    write_figures(page);
    write_slow_hosts(page);
    if (all->n)
        fputs(
            "<p class='note'>Efficiency is the bus bandwidth against that of the fewest ranks of "
            "the same size, "
            "over several nodes of the fewest that are: 1 keeps all of it. The model is t = A a + "
            "B "
            "S b: a for each message, b for each byte, A "
            "and B by the algorithm. The ideal is the time of the bytes alone at the limit of "
            "busbw.</p>\n",
            page->out);
    for (size_t i = 0; i < all->n && i < TABLES_MAX; i++)
        write_series(page, &all->all[i]);
    if (all->left_out || all->n > TABLES_MAX)
        html_print(page->out,
                   "<p class='missing'>%s left out: their rows are in the tables below.</p>\n",
                   show_count(&page->r->pool,
                              all->left_out + (all->n > TABLES_MAX ? all->n - TABLES_MAX : 0),
                              "more series"));
}

static void add_rank(const struct page *page, struct document_table *t, const struct straggler *s)
{
    struct pool *pool = &page->r->pool;
    struct cell *cells = document_row(t);

    cells[0] = cell_text(page->r->n_runs > 1 ? page->r->names[s->run] : "");
    cells[1] = cell_text(pool_text(pool, "%s%s", s->is_process ? "process " : "", s->name));
    cells[2] = cell_text(s->host);
    cells[3] = cell_share(s->median, false);
    cells[4] = cell_share(s->most, false);
    cells[5] = cell_text(pool_text(pool, "%zu of %zu", s->late, s->cases));
    cells[6] = cell_share(s->waited, false);
    cells[7] = cell_text(s->is_one ? "late" : s->seems_one ? "late, or by chance" : "");
    cells[7].tone = s->is_one ? TONE_LOW : TONE_NONE;
}

static void write_ranks(const struct page *page)
{
    static const struct document_column columns[] = {{.name = "run"},
                                                     {.name = "rank"},
                                                     {.name = "host"},
                                                     {.name = "late, median", .number = true},
                                                     {.name = "at most", .number = true},
                                                     {.name = "late in cases", .number = true},
                                                     {.name = "waited, median", .number = true},
                                                     {.name = ""}};
    const struct stragglers *all = &page->headlines->stragglers;
    struct document *d = document_new(&page->r->pool);
    size_t listed = 0;

    if (!all->n)
        return;
    document_heading(d, 3, "Who was late", "");
    document_paragraph(
        d, "A rank is late in a sample if the others waited for it. A rank is listed if it was "
           "late in most samples of most of its cases, and chance does not explain that. Its "
           "machine may be slow or busy. A slow link makes all ranks wait, and shows between "
           "hosts.");
    for (size_t run = 0; run < page->r->n_runs; run++)
        for (size_t b = 0; b < page->r->n_benches; b++) {
            const char *text = stragglers_text(page->r, all, &page->r->benches[b], run);

            if (*text)
                document_item(d, text);
        }
    struct document_table *t = document_table(d, columns, sizeof(columns) / sizeof(*columns));
    /* where there are many, the first, and those that are late */
    for (size_t i = 0; i < all->n; i++)
        if (listed < RANKS_MAX || all->all[i].is_one) {
            add_rank(page, t, &all->all[i]);
            listed++;
        }
    if (listed < all->n)
        document_paragraph(d, pool_text(&page->r->pool, "%s, none of them late.",
                                        show_count(&page->r->pool, all->n - listed, "more rank")));
    document_write_html(d, page->out);
}

bool page_has_scaling(const struct page *page)
{
    const struct headlines *h = page->headlines;

    return h->scalings.n || h->stragglers.n || count_figures(page);
}

void page_scaling(const struct page *page)
{
    if (!page_has_scaling(page))
        return;
    fputs("<section id='scaling'>\n<h2>Scaling</h2>\n", page->out);
    write_all_series(page);
    write_ranks(page);
    fputs("</section>\n", page->out);
}

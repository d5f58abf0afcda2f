/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of the page: see page.h. */
#include "harness/report/page.h"

#include <string.h>

#include "core/build_info.h"
#include "core/units.h"
#include "harness/report/assets.h"
#include "harness/report/html.h"
#include "harness/report/show.h"

const char *meta_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* Has another parameter that is shown the same value? */
static bool is_ambiguous(const struct report_bench *b, const struct report_case *c, size_t param)
{
    for (size_t i = 0; i < b->n_params && *c->params[param]; i++)
        if (i != param && !strcmp(c->params[i], c->params[param]) && show_tells_apart(b, c, i))
            return true;
    return false;
}

const char *case_text(struct report *r, const struct report_bench *b, const struct report_case *c)
{
    const char *text = "";

    for (size_t i = 0; i < b->n_params; i++) {
        const char *value = c->params[i];

        if (show_tells_apart(b, c, i))
            text = show_joined(&r->pool, text,
                               is_ambiguous(b, c, i) ? show_full_param(&r->pool, b, i, value)
                                                     : show_named_param(&r->pool, b, i, value));
    }
    return !*text || !*c->metric ? show_joined(&r->pool, c->metric, text)
                                 : pool_text(&r->pool, "%s: %s", c->metric, text);
}

static void write_colours(FILE *out, const char *const *colours)
{
    for (size_t i = 0; i < PLOT_COLOURS; i++)
        fprintf(out, "--series-%zu:%s;", i, colours[i]);
}

/* Print is light, whatever the screen is. */
static void write_head(const struct page *page)
{
    FILE *out = page->out;

    fputs("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
          "<meta name='color-scheme' content='light dark'>\n"
          "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
          "<link rel='icon' href='data:,'>\n<title>",
          out);
    for (size_t i = 0; i < page->r->n_runs; i++)
        html_print(out, "%s%s", i ? ", " : "", page->r->names[i]);
    fputs(" - Plumbline report</title>\n<style>\n:root{", out);
    write_colours(out, plot_colours_light);
    fputs("}\n@media screen and (prefers-color-scheme:dark){:root{", out);
    write_colours(out, plot_colours_dark);
    fputs("}}\n", out);
    fputs(asset_style, out);
    fputs("</style>\n</head>\n<body>\n", out);
    fputs(plot_svg_definitions, out);
}

struct launches {
    size_t all, open, failed, late; /* late: of those that failed, over their time-out */
};

static struct launches count_launches(const struct run_folder *run)
{
    size_t state = table_column(&run->plan, "state");
    struct launches n = {.all = run->plan.n_rows};

    for (size_t i = 0; i < n.all; i++) {
        const char *text = table_cell(&run->plan, i, state);

        n.open += !strcmp(text, "todo");
        n.late += !strcmp(text, "late");
        n.failed += !strcmp(text, "fail") || !strcmp(text, "late");
    }
    return n;
}

/* Rows that the plan speaks of and that are not there: a loss of power took them. */
static size_t count_lost_rows(const struct run_folder *run)
{
    size_t rows = table_column(&run->plan, "rows"), promised = 0, there = 0;

    for (size_t i = 0; i < run->plan.n_rows; i++) {
        uint64_t n;

        promised += units_parse_u64(table_cell(&run->plan, i, rows), &n) ? 0 : (size_t)n;
    }
    for (size_t b = 0; b < run->n_benches; b++)
        there += run->benches[b].rows.n_rows;
    return promised > there ? promised - there : 0;
}

/* A launch that gave wrong data counts as one that failed in the plan, and its row says which. */
static bool has_wrong(const struct report *r, size_t run)
{
    for (size_t b = 0; b < r->n_benches; b++) {
        const struct report_rows *rows = &r->benches[b].rows[run];

        for (size_t i = 0; rows->table && i < rows->table->n_rows; i++)
            if (!strcmp(row_text(rows, i, FIELD_STATUS), "wrong"))
                return true;
    }
    return false;
}

static void write_failed(const struct page *page, size_t run, const struct launches *n)
{
    if (!n->failed)
        return;
    html_print(page->out, "<p class='banner'>%zu of %zu launches of %s failed", n->failed, n->all,
               page->r->names[run]);
    if (has_wrong(page->r, run))
        fputs(" or gave wrong data", page->out);
    if (n->late)
        html_print(page->out, ", %zu of them over the time-out", n->late);
    fputs(": their reasons stand under <a href='#quality'>Quality</a>.</p>\n", page->out);
}

static void write_facts_of_run(const struct page *page, size_t i)
{
    FILE *out = page->out;
    const struct run_folder *run = &page->r->runs[i];
    const json_t *host = json_object_get(json_object_get(run->meta, "machine"), "host");
    const char *name = meta_text(host, "hostname");
    struct launches n = count_launches(run);
    size_t lost = count_lost_rows(run);

    html_print(out,
               "<p class='run'><b>%s</b> <span>%s %s</span> <span>suite %s</span> <span>%s</span>",
               page->r->names[i], page_has_hosts(page, i) ? "started on" : "on",
               *name ? name : "an unnamed host",
               *meta_text(run->meta, "suite") ? meta_text(run->meta, "suite") : "not named",
               *meta_text(run->meta, "started_utc") ? meta_text(run->meta, "started_utc")
                                                    : "start not recorded");
    html_print(out, " <span>%zu of %zu launches", n.all - n.open - n.failed, n.all);
    if (n.failed)
        html_print(out, ", %zu failed", n.failed);
    fputs("</span></p>\n", out);
    page_hosts_line(page, i);
    write_failed(page, i, &n);
    if (n.open)
        html_print(
            out,
            "<p class='banner'>Incomplete: %zu of %zu launches of %s were not run. Go on with "
            "<code>plumb run --resume %s</code></p>\n",
            n.open, n.all, page->r->names[i], run->path);
    if (lost)
        html_print(
            out,
            "<p class='banner'>%s of %s never reached the disk; what was launched for it is left "
            "out. <code>plumb run --resume %s</code> runs it again.</p>\n",
            show_count(&page->r->pool, lost, "row"), page->r->names[i], run->path);
}

static size_t count_unmeasured(const struct report_rows *rows)
{
    size_t n = 0;

    for (size_t i = 0; rows->table && i < rows->table->n_rows; i++)
        n += strcmp(row_text(rows, i, FIELD_ORIGIN), "measured") != 0;
    return n;
}

static void write_origin_of_bench(const struct page *page, const struct report_bench *b, size_t run)
{
    const struct table *table = b->rows[run].table;
    size_t n = count_unmeasured(&b->rows[run]);

    if (n && table)
        html_print(page->out,
                   "<p class='banner'>Not measured: %zu of %s of <b>%s</b> in %s, simulated or "
                   "modelled, which says nothing about this machine.</p>\n",
                   n, show_count(&page->r->pool, table->n_rows, "row"), b->name,
                   page->r->names[run]);
}

/* Rows that nobody measured are named at the top, and again wherever they stand. */
static void write_origin_banner(const struct page *page, size_t run)
{
    size_t rows = 0, unmeasured = 0, benches = 0;
    bool all;

    for (size_t b = 0; b < page->r->n_benches; b++) {
        const struct report_rows *of = &page->r->benches[b].rows[run];

        benches += of->table != NULL;
        rows += of->table ? of->table->n_rows : 0;
        unmeasured += count_unmeasured(of);
    }
    all = benches > 1 && rows == unmeasured;
    if (all)
        html_print(page->out,
                   "<p class='banner'>Not measured: all %zu rows of <b>%s</b> are simulated or "
                   "modelled, and say nothing about this machine.</p>\n",
                   rows, page->r->names[run]);
    for (size_t b = 0; !all && b < page->r->n_benches; b++)
        write_origin_of_bench(page, &page->r->benches[b], run);
}

static void write_top(const struct page *page)
{
    fputs("<header>\n<h1>Plumbline report</h1>\n", page->out);
    for (size_t i = 0; i < page->r->n_runs; i++)
        write_facts_of_run(page, i);
    fputs("<nav><a href='#headlines'>Headlines</a> ", page->out);
    if (page->verdicts)
        fputs("<a href='#verdicts'>Verdicts</a> ", page->out);
    if (page->headlines->contrasts.n)
        fputs("<a href='#beside'>Side by side</a> ", page->out);
    if (page_has_scaling(page))
        fputs("<a href='#scaling'>Scaling</a> ", page->out);
    if (page_has_matrices(page, true))
        fputs("<a href='#links'>Between hosts</a> ", page->out);
    if (page_has_matrices(page, false))
        fputs("<a href='#peers'>Between GPUs</a> ", page->out);
    fputs("<a href='#machine'>Machine</a> "
          "<a href='#plots'>Plots</a> <a href='#quality'>Quality</a> <a href='#rows'>Rows</a> "
          "<a href='#again'>Reproduce</a> <a href='#reading'>How to read it</a></nav>\n</header>\n"
          "<main>\n",
          page->out);
    for (size_t i = 0; i < page->r->n_runs; i++)
        write_origin_banner(page, i);
}

void page_reading(const struct page *page)
{
    fputs(
        "<section id='reading'>\n<h2>How to read it</h2>\n<dl class='reading'>\n"
        "<dt>value</dt><dd>The median of a launch's samples. Over several launches of a case: the "
        "geometric mean of their medians, as in comparisons and histories.</dd>\n"
        "<dt>interval</dt><dd>Of one launch: a distribution-free interval of its median, which "
        "allows for autocorrelation (95 % unless the rows say otherwise). Of two to five launches: "
        "from the lowest to the highest end of theirs, which is wider. From six launches on: the "
        "distribution-free 95 % interval of the median over the launches' medians. In plots it is "
        "the bar through a point.</dd>\n"
        "<dt>limit</dt><dd>The most that is physically possible here; its source stands in the "
        "column limit_source of each row. A value is called low below a share of it that differs "
        "by pipe, and normal otherwise, as long as that is true of its whole interval; else it is "
        "undecided. Where no limit is known nothing is called normal. Over several launches the "
        "highest limit counts. A reference is no limit, but the best of the same work: nothing is "
        "judged by it.</dd>\n"
        "<dt>best of n</dt><dd>A headline shows the best of so many cases: chance alone puts it "
        "above "
        "what the same case gives the next time, the more so the more alike the cases are.</dd>\n"
        "<dt>noisy</dt><dd>The interval is wider than was asked for when the time was up.</dd>\n"
        "<dt>two levels</dt><dd>Samples, or launches, fall on two separate values: a median "
        "between them would hide it, so both are given.</dd>\n"
        "<dt>units</dt><dd>GB/s is 1e9 bytes a second, Gb/s 1e9 bits; sizes are binary: 64K is "
        "65536 bytes. TFLOP/s counts 2mnk operations for a product, dense.</dd>\n"
        "<dt>not measured</dt><dd>An empty cell. It is never a zero.</dd>\n</dl>\n</section>\n",
        page->out);
}

void page_write(const struct page *page)
{
    write_head(page);
    write_top(page);
    page_headlines(page);
    if (page->verdicts)
        page->verdicts->write(page->out, page->verdicts->context);
    page_contrasts(page);
    page_scaling(page);
    page_matrices(page);
    page_machine(page);
    page_plots(page);
    page_quality(page);
    page_rows(page);
    page_again(page);
    page_reading(page);
    fputs("</main>\n<footer>Made by plumb " PLUMB_VERSION
          ". This page holds all that it shows and asks for nothing else.</footer>\n<script>\n",
          page->out);
    fputs(asset_script, page->out);
    fputs("</script>\n</body>\n</html>\n", page->out);
}

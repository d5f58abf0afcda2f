/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of the page: see page.h. */
#include "harness/report/page.h"

#include <string.h>

#include "core/program.h"
#include "core/units.h"
#include "harness/document/document.h"
#include "harness/document/html.h"
#include "harness/report/assets.h"
#include "harness/report/show.h"
#include "harness/report/summary.h"

/* ---- The words of the field, and our own, for who meets them first here ---- */

static const struct document_term terms[] = {
    {"launch",
     "One start of a benchmark's process. Each case is launched several times, because two "
     "launches differ more than the samples inside one."},
    {"case", "A benchmark with one set of parameters, and one metric of it."},
    {"median",
     "The median of a launch's samples. Over several launches: the geometric mean of their "
     "medians, as in comparisons and histories. Of several GPUs or pairs that are alike, the "
     "median one: the worst is among the problems."},
    {"95 % CI",
     "Where the true value is with 95 % confidence. Of one launch: an interval of its median "
     "without an assumption on the distribution, which allows for correlation in time. Of "
     "several: Student's t on the logarithms of their medians. -30/+69 % is from 30 % below "
     "to 69 % above."},
    {"detects a slowdown", "The loss that plumb compare would prove, 19 times in 20, between this "
                           "run and another one like it. Grades: A up to 2 %, B up to 5 %, C up "
                           "to 10 %, else D."},
    {"disturbed",
     "Something beside the test cost it time: steal, a lower clock, a CPU quota, heat, "
     "or other processes."},
    {"limit",
     "The most that is physically possible here. The column limit_source of each row names "
     "its source. Over several launches the highest counts."},
    {"ref.",
     "Not a limit, but the best rate of the same work on this machine. It decides no verdict."},
    {"low", "The whole interval lies below the share of the limit that is normal for this test. No "
            "word: nothing is to be said."},
    {"above limit", "The limit is too low, or the data did not take the path that it should."},
    {"not measured", "The test was skipped, or has no value. The note gives the reason."},
    {"simulated", "By a program in place of the hardware: not measured, and never judged."},
    {"imported", "Printed by another program, on a machine that is not known: never judged."},
    {"modelled", "Computed from other values: not measured, and never judged."},
    {"wrong", "The check of the data found wrong data."},
    {"partly failed", "Some of the cases or launches of this test failed."},
    {"failed", "The launch ended with an error, or over its time-out. The note gives the reason."},
    {"slow", "One device or link is slower than others of its kind. The note names it."},
    {"looks slow",
     "One is slower, or the value is low, which is not proven: more repetitions decide."},
    {"best of", "So many cases were measured, and this one is the best: chance alone puts it above "
                "what it gives the next time."},
    {"first of",
     "So many cases were measured, and this one is the job that the suite begins with. The "
     "others are other ways to do it."},
    {"noisy",
     "The interval was wider than asked when the time was up, and is wider than 5 % of the value."},
    {"bimodal", "Samples, or launches, fall on two separate values, of which the notes tell."},
    {"alternates", "Samples, or launches, fall on two separate values. A median between them would "
                   "hide it."},
    {"steal",
     "Time in which a virtual CPU had work and the host gave its CPU to others: of the most "
     "disturbed row, where a number stands."},
    {"throttled", "The device slowed itself, for heat or power."},
    {"triad", "A loop over three arrays, a = b + x * c: two reads and a write, as STREAM has it."},
    {"nt", "Non-temporal stores: they go to memory without a read of the line before."},
    {"page walk", "The look-up of an address in the tables of pages, when the TLB lacks it."},
    {"cma", "Cross-memory attach: the kernel copies from the memory of another process."},
    {"shm", "Memory that two processes share."},
    {"lo", "The loopback interface: packets that do not leave the machine."},
    {"rank", "One process of a collective operation."},
    {"Allreduce", "Each rank has a vector, and gets the sum of all of them."},
    {"efficiency", "The bus bandwidth divided by that of the fewest ranks: 1 keeps all of it."},
    {"bucket", "Gradients of several layers that are summed in one call: its size."},
    {"busbw", "Bus bandwidth: the rate of a collective, times the share of the data that each link "
              "has to carry. It can be held against the link's rate."},
    {"ceilings", "The fastest that simple loops reach at this place: where no datasheet is known, "
                 "they are the limit."},
    {"GB/s", "1e9 bytes a second; Gb/s is 1e9 bits. Sizes are binary: 64K is 65536 bytes."},
    {"TFLOP/s", "1e12 operations a second. A dense product has 2mnk."},
};

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

/* "gpu01: node, 29 Nov 2026"; of what a run does not say, and of several runs, their names. */
static const char *title_of(const struct page *page)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const json_t *meta = page->r->n_runs == 1 ? page->r->runs[0].meta : NULL;
    const char *host = fact_name(meta, "machine.host.hostname"), *suite = fact_name(meta, "suite");
    const char *text = "";
    unsigned year, month, day;

    if (*host && *suite &&
        sscanf(fact_name(meta, "started_utc"), "%4u-%2u-%2u", &year, &month, &day) == 3 && month &&
        month <= 12)
        return pool_text(&page->r->pool, "%s: %s, %u %s %u", host, suite, day, months[month - 1],
                         year);
    for (size_t i = 0; i < page->r->n_runs; i++)
        text = show_joined(&page->r->pool, text, page->r->names[i]);
    return text;
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
          "<link rel='icon' href='data:,'>\n",
          out);
    html_print(out, "<title>%s</title>\n<style>\n", title_of(page));
    fputs(asset_style, out);
    fputs(document_style, out);
    fputs("</style>\n</head>\n<body>\n", out);
}

static size_t count_unmeasured(const struct report_rows *rows)
{
    size_t n = 0;

    for (size_t i = 0; rows->table && i < rows->table->n_rows; i++)
        n += strcmp(row_text(rows, i, FIELD_ORIGIN), "measured") != 0;
    return n;
}

/* Simulated rows of which a part is stated, and the rest measured; *what: which part. */
static size_t count_stated(const struct report_bench *b, size_t run, const char **what)
{
    size_t n = 0;

    for (const struct bench_job *job = b->described->jobs; job->label; job++)
        for (size_t i = 0; job->stated && i < b->n_cases; i++) {
            const struct report_point *p = &b->cases[i].points[run];
            if (strcmp(p->origin, "simulated") != 0 ||
                !described_matches(b, &b->cases[i], job->stated_where))
                continue;
            n += p->n_rows;
            *what = job->stated;
        }
    return n;
}

static void write_origin_of_bench(const struct page *page, const struct report_bench *b, size_t run)
{
    const struct table *table = b->rows[run].table;
    const char *what = "";
    size_t stated = count_stated(b, run, &what), n = count_unmeasured(&b->rows[run]);

    n -= stated < n ? stated : n;
    if (stated && table)
        html_print(
            page->out,
            "<p class='banner'>%zu of %s of <b>%s</b> in %s: %s. All else in these rows comes "
            "from this machine.</p>\n",
            stated, show_count(&page->r->pool, table->n_rows, "row"), b->name, page->r->names[run],
            what);
    if (n && table)
        html_print(page->out,
                   "<p class='banner'>Not measured here: %zu of %s of <b>%s</b> in %s, simulated, "
                   "modelled or imported, which says nothing about this machine.</p>\n",
                   n, show_count(&page->r->pool, table->n_rows, "row"), b->name,
                   page->r->names[run]);
}

/* Rows that nobody measured are named at the top, and again wherever they stand. */
static void write_origin_banner(const struct page *page, size_t run)
{
    size_t rows = 0, unmeasured = 0, benches = 0, stated = 0;
    const char *what;
    bool all;

    for (size_t b = 0; b < page->r->n_benches; b++) {
        const struct report_rows *of = &page->r->benches[b].rows[run];

        benches += of->table != NULL;
        rows += of->table ? of->table->n_rows : 0;
        unmeasured += count_unmeasured(of);
        stated += count_stated(&page->r->benches[b], run, &what);
    }
    all = benches > 1 && rows == unmeasured && !stated;
    if (all)
        html_print(page->out,
                   "<p class='banner'>Not measured here: all %zu rows of <b>%s</b> are simulated, "
                   "modelled or imported, and say nothing about this machine.</p>\n",
                   rows, page->r->names[run]);
    for (size_t b = 0; !all && b < page->r->n_benches; b++)
        write_origin_of_bench(page, &page->r->benches[b], run);
}

static void write_top(const struct page *page)
{
    html_print(page->out, "<header>\n<h1>%s</h1>\n", title_of(page));
    if (page->r->n_runs == 1 && strcmp(title_of(page), page->r->names[0]) != 0)
        html_print(page->out, "<p class='note'>%s</p>\n", page->r->names[0]);
    for (size_t i = 0; i < page->r->n_runs; i++) {
        size_t lost = page->r->runs[i].n_lost_rows;

        page_hosts_line(page, i);
        if (lost)
            html_print(page->out,
                       "<p class='banner'>%s of %s never reached the disk; what was launched for "
                       "it is left out. <code>plumb run --resume %s</code> runs it again.</p>\n",
                       show_count(&page->r->pool, lost, "row"), page->r->names[i],
                       page->r->runs[i].path);
    }
    fputs("<nav>", page->out);
    if (page->verdicts)
        fputs("<a href='#verdicts'>Verdicts</a> ", page->out);
    if (page_has_plots(page))
        fputs("<a href='#plots'>Charts</a> ", page->out);
    if (page_has_matrices(page, true))
        fputs("<a href='#links'>Between hosts</a> ", page->out);
    if (page_has_matrices(page, false))
        fputs("<a href='#peers'>Between GPUs</a> ", page->out);
    if (page_has_scaling(page))
        fputs("<a href='#scaling'>Scaling</a> ", page->out);
    if (page->headlines->contrasts.n)
        fputs("<a href='#beside'>Side by side</a> ", page->out);
    fputs("<a href='#machine'>Machine</a> <a href='#quality'>Quality</a> <a href='#rows'>Rows</a> "
          "<a href='#again'>Reproduce</a> <a href='#reading'>How to read it</a></nav>\n</header>\n"
          "<main>\n",
          page->out);
    for (size_t i = 0; i < page->r->n_runs; i++)
        write_origin_banner(page, i);
}

void page_fold(const struct page *page, const char *id, const char *title)
{
    /* Rows are read by programs: their columns are wider than any paper. */
    html_print(page->out,
               "<section>\n<details class='d-fold'%s><summary><h2>%s</h2></summary>\n"
               "<div id='%s'>\n",
               strcmp(id, "rows") ? page_open(page) : "", title, id);
}

const char *page_open(const struct page *page)
{
    return page->unfolded ? " open" : "";
}

void page_fold_end(const struct page *page)
{
    fputs("</div>\n</details>\n</section>\n", page->out);
}

/* The same blocks as on a terminal. */
static void write_summary(const struct page *page)
{
    struct report *r = page->r;
    struct document *d = document_new(&r->pool);

    summary_all(r, page->headlines, false, d);
    summary_gpus(r, page->headlines, d);
    summary_table(r, page->headlines, true, document_fold(d, "All notes"));
    document_link_terms(d, terms, sizeof(terms) / sizeof(*terms));
    fputs("<section id='headlines'>\n<div>\n", page->out);
    document_write_html(d, page->out);
    fputs("</div>\n", page->out);
    page_lead(page);
    fputs("</section>\n", page->out);
}

void page_write(const struct page *page)
{
    struct document *words = document_new(&page->r->pool);

    write_head(page);
    write_top(page);
    write_summary(page);
    if (page->verdicts)
        page->verdicts->write(page->out, page->verdicts->context);
    page_plots(page);
    page_matrices(page);
    page_scaling(page);
    page_contrasts(page);
    page_machine(page);
    page_quality(page);
    page_rows(page);
    page_again(page);
    page_fold(page, "reading", "How to read it");
    document_terms(words, terms, sizeof(terms) / sizeof(*terms));
    document_write_html(words, page->out);
    page_fold_end(page);
    fputs("</main>\n<footer>Made by plumb " PLUMB_VERSION
          ". This page holds all that it shows and asks for nothing else.</footer>\n<script>\n",
          page->out);
    fputs(asset_script, page->out);
    fputs("</script>\n</body>\n</html>\n", page->out);
}

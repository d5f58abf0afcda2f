/* SPDX-License-Identifier: Apache-2.0 */
/* What each machine is. */
#include <jansson.h>
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/facts.h"
#include "harness/report/page.h"

static const json_t *meta_of(const struct page *page, size_t run)
{
    return page->r->runs[run].meta;
}

/* What is known of it, or why it is not; "" where nobody says. */
static const char *known_text(struct pool *pool, const struct shown_fact *fact, const json_t *meta)
{
    const char *text = shown_text(pool, fact, meta, NULL, 0);
    const char *why =
        fact_why(meta, pool_text(pool, "%.*s", (int)strcspn(fact->path, "["), fact->path));

    if (*text || !strcmp(why, FACT_UNRECORDED))
        return text;
    return *why ? pool_text(pool, "not known: %s", why) : "";
}

static void write_facts(const struct page *page)
{
    struct pool *pool = &page->r->pool;
    size_t n = page->r->n_runs;
    struct document_column *columns = pool_alloc(pool, n + 1, sizeof(*columns));
    const char **texts = pool_alloc(pool, n, sizeof(*texts));
    struct document *d = document_new(pool);

    columns[0].name = "";
    for (size_t i = 0; i < n; i++)
        columns[i + 1].name = n > 1 ? page->r->names[i] : "";
    struct document_table *t = document_table(d, columns, n + 1);
    for (const struct shown_fact *fact = shown_facts; fact->what; fact++) {
        bool any = false;

        for (size_t i = 0; fact->page && i < n; i++) {
            texts[i] = known_text(pool, fact, meta_of(page, i));
            any = any || *texts[i];
        }
        struct cell *cells = any ? document_row(t) : NULL;
        for (size_t i = 0; any && i < n; i++)
            cells[i + 1] = cell_text(*texts[i] ? texts[i] : FACT_UNRECORDED);
        if (any)
            cells[0] = cell_text(fact->what);
    }
    document_write_html(d, page->out);
}

static void write_because(const struct page *page, size_t run, const char *path, const char *title)
{
    const json_t *because = fact_at(meta_of(page, run), path);

    if (!json_array_size(because))
        return;
    html_print(page->out, "<p>%s</p>\n<ul>", title);
    FACT_EACH (because, sentence)
        if (json_is_string(sentence))
            html_element(page->out, "li", json_string_value(sentence));
    fputs("</ul>\n", page->out);
}

static void write_evidence(const struct page *page, size_t run)
{
    FILE *out = page->out;

    html_print(out, "<details%s><summary>Evidence that says so%s%s</summary>\n", page_open(page),
               page->r->n_runs > 1 ? ": " : "", page->r->n_runs > 1 ? page->r->names[run] : "");
    write_because(page, run, "machine.virtualization.because", "Virtual or bare metal, because");
    write_because(page, run, "machine.virtualization.container_because",
                  "Container or not, because");
    fputs("</details>\n", out);
}

static void write_findings(const struct page *page, size_t run)
{
    struct exam *x = report_exam(page->r, run);
    char cost[512];

    if (!exam_count(x, EXAM_FOUND))
        return;
    html_print(page->out, "<h3>Findings%s%s</h3>\n<ul class='findings'>\n",
               page->r->n_runs > 1 ? ": " : "", page->r->n_runs > 1 ? page->r->names[run] : "");
    for (const struct exam_result *r = exam_results(x); r; r = r->next) {
        if (r->state != EXAM_FOUND || exam_repeats(x, r))
            continue;
        exam_cost_text(&r->cost, cost, sizeof(cost));
        html_print(page->out, "<li class='warn'>%s. Cost: %s.", exam_sentence(x, r), cost);
        if (*r->remedy)
            html_print(page->out, " Remedy: <code>%s</code>", r->remedy);
        fputs("</li>\n", page->out);
    }
    fputs("</ul>\n", page->out);
}

void page_machine(const struct page *page)
{
    FILE *out = page->out;

    html_print(out, "<section id='machine'>\n<h2>%s</h2>\n",
               page->r->n_runs > 1 ? "The machines" : "The machine");
    for (size_t i = 0; i < page->r->n_runs; i++)
        page_hosts_table(page, i);
    write_facts(page);
    for (size_t i = 0; i < page->r->n_runs; i++) {
        write_findings(page, i);
        write_evidence(page, i);
    }
    fputs("</section>\n", out);
}

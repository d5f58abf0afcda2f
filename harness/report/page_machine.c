/* SPDX-License-Identifier: Apache-2.0 */
/* What each machine is. */
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/facts.h"
#include "harness/report/page.h"

static const json_t *machine_of(const struct page *page, size_t run)
{
    return json_object_get(page->r->runs[run].meta, "machine");
}

static void write_facts(const struct page *page)
{
    FILE *out = page->out;

    fputs("<table class='facts'>\n", out);
    if (page->r->n_runs > 1) {
        fputs("<thead><tr><th></th>", out);
        for (size_t i = 0; i < page->r->n_runs; i++)
            html_print(out, "<th scope='col'>%s</th>", page->r->names[i]);
        fputs("</tr></thead>\n", out);
    }
    fputs("<tbody>\n", out);
    for (const struct machine_fact *fact = machine_facts; fact->name; fact++) {
        html_print(out, "<tr><th scope='row'>%s</th>", fact->name);
        for (size_t i = 0; i < page->r->n_runs; i++) {
            const char *text = fact->text(&page->r->pool, machine_of(page, i));

            html_print(out, "<td data-run='%s'>%s</td>", page->r->names[i],
                       *text ? text : "not recorded");
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table>\n", out);
}

static void write_because(const struct page *page, size_t run, const char *key, const char *title)
{
    const json_t *because = machine_because(machine_of(page, run), key);
    json_t *sentence;
    size_t i;

    if (!json_array_size(because))
        return;
    html_print(page->out, "<p>%s</p>\n<ul>", title);
    json_array_foreach (because, i, sentence)
        if (json_is_string(sentence))
            html_element(page->out, "li", json_string_value(sentence));
    fputs("</ul>\n", page->out);
}

static void write_evidence(const struct page *page, size_t run)
{
    FILE *out = page->out;

    html_print(out, "<details><summary>Evidence that says so%s%s</summary>\n",
               page->r->n_runs > 1 ? ": " : "", page->r->n_runs > 1 ? page->r->names[run] : "");
    write_because(page, run, "because", "Virtual or bare metal, because");
    write_because(page, run, "container_because", "Container or not, because");
    fputs("</details>\n", out);
}

/* What a user has set, maybe without knowing it, and what is measured is therefore not the library alone. */
static void write_settings(const struct page *page, size_t run)
{
    json_t *settings = json_object_get(page->r->runs[run].meta, "library_settings"), *value;
    bool several = page->r->n_runs > 1;
    const char *name;

    if (!json_object_size(settings))
        return;
    html_print(page->out,
               "<p>Variables of the environment that steer libraries%s%s:", several ? ", " : "",
               several ? page->r->names[run] : "");
    json_object_foreach (settings, name, value)
        html_print(page->out, " <code>%s=%s</code>", name,
                   json_is_string(value) ? json_string_value(value) : "");
    fputs("</p>\n", page->out);
}

/* Most sentences name their subject; where one does not, it stands before. */
static void write_finding(const struct page *page, const json_t *finding)
{
    const char *subject = meta_text(finding, "subject"), *text = meta_text(finding, "text");
    bool named = strstr(text, subject) != NULL;

    html_print(page->out, "<li class='%s'>", meta_text(finding, "severity"));
    if (!named)
        html_print(page->out, "<b>%s</b> ", subject);
    html_print(page->out, "%s</li>\n", text);
}

static void write_findings(const struct page *page, size_t run, const char *severity)
{
    const json_t *findings = json_object_get(machine_of(page, run), "findings");
    json_t *finding;
    size_t i;

    json_array_foreach (findings, i, finding)
        if (!strcmp(meta_text(finding, "severity"), severity))
            write_finding(page, finding);
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
        const json_t *findings = json_object_get(machine_of(page, i), "findings");

        if (json_array_size(findings)) {
            html_print(out, "<h3>Findings%s%s</h3>\n<ul class='findings'>\n",
                       page->r->n_runs > 1 ? ": " : "",
                       page->r->n_runs > 1 ? page->r->names[i] : "");
            write_findings(page, i, "warn");
            write_findings(page, i, "info");
            fputs("</ul>\n", out);
        }
        write_settings(page, i);
        write_evidence(page, i);
    }
    fputs("</section>\n", out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a run between machines: which they are, what reached them, and which rows are theirs. */
#include <string.h>

#include "harness/report/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define NAMED_MAX 8 /* in a line; the table has all */

static const json_t *hosts_of(const struct page *page, size_t run)
{
    return json_object_get(page->r->runs[run].meta, "hosts");
}

bool page_has_hosts(const struct page *page, size_t run)
{
    return json_array_size(json_object_get(hosts_of(page, run), "list")) > 0;
}

/* "ssh", "mpirun", or the first word of --rsh. */
static const char *launcher_of(struct pool *pool, const json_t *hosts)
{
    const char *rsh = meta_text(hosts, "rsh"), *name = meta_text(hosts, "launcher");

    rsh += strspn(rsh, " ");
    if (*rsh)
        return pool_text(pool, "%.*s (--rsh)", (int)strcspn(rsh, " "), rsh);
    return *name ? name : "a launcher that is not recorded";
}

/* "a, b and 3 more" */
static const char *add_name(struct pool *pool, const char *list, const char *name, size_t n)
{
    return n < NAMED_MAX ? show_joined(pool, list, name) : list;
}

static const char *and_more(struct pool *pool, const char *list, size_t n)
{
    return n > NAMED_MAX ? pool_text(pool, "%s and %zu more", list, n - NAMED_MAX) : list;
}

static const char *names_of(struct pool *pool, const json_t *hosts)
{
    const json_t *list = json_object_get(hosts, "list");
    const char *text = "";
    json_t *host;
    size_t i;

    json_array_foreach (list, i, host)
        text = add_name(pool, text, meta_text(host, "name"), i);
    return and_more(pool, text, json_array_size(list));
}

/* Was this pair in a line of the plan before this one? */
static bool was_before(const struct table *plan, size_t line, size_t from, size_t to)
{
    for (size_t i = 0; i < line; i++)
        if (!strcmp(table_cell(plan, i, from), table_cell(plan, line, from)) &&
            !strcmp(table_cell(plan, i, to), table_cell(plan, line, to)))
            return true;
    return false;
}

/* "a to b, b to c", in the order of the plan. */
static const char *pairs_of(const struct page *page, size_t run)
{
    const struct table *plan = &page->r->runs[run].plan;
    struct pool *pool = &page->r->pool;
    size_t from = table_column(plan, "from"), to = table_column(plan, "to"), n = 0;
    const char *text = "";

    for (size_t i = 0; from != TABLE_NO_COLUMN && to != TABLE_NO_COLUMN && i < plan->n_rows; i++) {
        if (!*table_cell(plan, i, from) || was_before(plan, i, from, to))
            continue;
        text = add_name(
            pool, text,
            pool_text(pool, "%s to %s", table_cell(plan, i, from), table_cell(plan, i, to)), n++);
    }
    return and_more(pool, text, n);
}

void page_hosts_line(const struct page *page, size_t run)
{
    const json_t *hosts = hosts_of(page, run);
    struct pool *pool = &page->r->pool;

    if (!page_has_hosts(page, run))
        return;
    html_print(page->out,
               "<p class='run'><b>hosts</b> <span>%s</span> <span>started by %s</span> "
               "<span>rows between (from to): %s</span></p>\n",
               names_of(pool, hosts), launcher_of(pool, hosts), pairs_of(page, run));
}

static void write_host(const struct page *page, const json_t *host)
{
    const char *version = meta_text(host, "version"), *problem = meta_text(host, "problem");

    html_print(page->out,
               "<tr><th scope='row'>%s</th><td class='text'>%s</td><td class='text'>%s</td><td "
               "class='text'>%s</td></tr>\n",
               meta_text(host, "name"), meta_text(host, "address"),
               json_is_true(json_object_get(host, "this_machine")) ? "yes" : "",
               *version   ? version
               : *problem ? problem
                          : "not asked");
}

void page_hosts_table(const struct page *page, size_t run)
{
    const json_t *hosts = hosts_of(page, run);
    const json_t *machine = json_object_get(page->r->runs[run].meta, "machine");
    const char *name = meta_text(json_object_get(machine, "host"), "hostname");
    struct pool *pool = &page->r->pool;
    json_t *host;
    size_t i;

    if (!page_has_hosts(page, run))
        return;
    html_print(
        page->out,
        "<h3>Hosts%s%s</h3>\n<p>Started by %s. Rows are of the pairs (from to) %s; which one "
        "stands in the columns <code>from</code> and <code>to</code> of each. Facts, limits "
        "and findings of the machine below are those of %s, on which the run was started: "
        "those of the other hosts are not in this report.</p>\n",
        page->r->n_runs > 1 ? ": " : "", page->r->n_runs > 1 ? page->r->names[run] : "",
        launcher_of(pool, hosts), pairs_of(page, run), *name ? name : "the machine");
    fputs("<div class='scroll'><table class='plain hosts'><thead><tr><th scope='col'>host</th><th "
          "scope='col'>address</th><th scope='col'>this machine</th><th "
          "scope='col'>what it answered</th></tr></thead>\n<tbody>",
          page->out);
    json_array_foreach (json_object_get(hosts, "list"), i, host)
        write_host(page, host);
    fputs("</tbody></table></div>\n", page->out);
}

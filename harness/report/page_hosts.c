/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a run between machines: which they are, what reached them, and which rows are
 * theirs. */
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define NAMED_MAX 8 /* in a line; the table has all */

static const json_t *hosts_of(const struct page *page, size_t run)
{
    return json_object_get(page->r->runs[run].meta, "hosts");
}

static bool page_has_hosts(const struct page *page, size_t run)
{
    return json_array_size(fact_at(hosts_of(page, run), "list")) > 0;
}

/* "ssh", "mpirun", or the first word of --rsh. */
static const char *launcher_of(struct pool *pool, const json_t *hosts)
{
    const char *rsh = fact_name(hosts, "rsh"), *name = fact_name(hosts, "launcher");

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

static const char *names_of(struct pool *pool, const json_t *list)
{
    const char *text = "";
    json_t *host;
    size_t i;

    json_array_foreach (list, i, host)
        text = add_name(pool, text, fact_name(host, "name"), i);
    return and_more(pool, text, json_array_size(list));
}

/* Do these columns of the plan agree with those of a line before this one? */
static bool was_before(const struct table *plan, size_t line, size_t x, size_t y)
{
    for (size_t i = 0; i < line; i++)
        if (!strcmp(table_cell(plan, i, x), table_cell(plan, line, x)) &&
            !strcmp(table_cell(plan, i, y), table_cell(plan, line, y)))
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

/* As the plan's column `hosts` has all of them: "a;b;c". */
static const char *all_names(struct pool *pool, const json_t *list)
{
    const char *text = "";
    json_t *host;
    size_t i;

    json_array_foreach (list, i, host)
        text = pool_text(pool, "%s%s%s", text, i ? ";" : "", fact_name(host, "name"));
    return text;
}

/* 0 where a host's slots are not recorded. */
static long long ranks_on(const json_t *list)
{
    long long sum = 0;

    FACT_EACH (list, host) {
        long long slots = json_integer_value(json_object_get(host, "slots"));

        if (slots < 1)
            return 0;
        sum += slots;
    }
    return sum;
}

/* "all 4 hosts, 8 ranks", or of some of them "a, b". */
static const char *group_text(struct pool *pool, const json_t *list, const char *group)
{
    long long ranks = ranks_on(list);
    const char *text = "";
    size_t n = 0;

    if (!strcmp(group, all_names(pool, list))) {
        text = pool_text(pool, "all %s", show_count(pool, json_array_size(list), "host"));
        return ranks ? pool_text(pool, "%s, %s", text, show_count(pool, (size_t)ranks, "rank"))
                     : text;
    }
    for (size_t len; *group; group += len + (group[len] == ';'), n++) {
        len = strcspn(group, ";");
        text = add_name(pool, text, pool_text(pool, "%.*s", (int)len, group), n);
    }
    return and_more(pool, text, n);
}

/* Over whom collectives ran: "all 4 hosts, 8 ranks"; "" where none did. */
static const char *groups_of(const struct page *page, size_t run)
{
    const struct table *plan = &page->r->runs[run].plan;
    const json_t *list = json_object_get(hosts_of(page, run), "list");
    size_t column = table_column(plan, "hosts");
    const char *text = "";

    for (size_t i = 0; column != TABLE_NO_COLUMN && i < plan->n_rows; i++) {
        const char *group = table_cell(plan, i, column);

        if (*group && !was_before(plan, i, column, column))
            text = pool_text(&page->r->pool, "%s%s%s", text, *text ? "; " : "",
                             group_text(&page->r->pool, list, group));
    }
    return text;
}

void page_hosts_line(const struct page *page, size_t run)
{
    const json_t *hosts = hosts_of(page, run);
    struct pool *pool = &page->r->pool;
    const char *pairs, *groups;

    if (!page_has_hosts(page, run))
        return;
    pairs = pairs_of(page, run);
    groups = groups_of(page, run);
    html_print(page->out, "<p class='run'><b>hosts</b> <span>%s</span> <span>started by %s</span>",
               names_of(pool, json_object_get(hosts, "list")), launcher_of(pool, hosts));
    if (*pairs)
        html_print(page->out, " <span>rows between (from to): %s</span>", pairs);
    if (*groups)
        html_print(page->out, " <span>rows over a group: %s</span>", groups);
    fputs("</p>\n", page->out);
}

/* "+0.05 s, plus or minus 0.12": no more is known than that the host's clock lies within it. */
static const char *clock_text(struct pool *pool, const json_t *host)
{
    const json_t *offset = json_object_get(host, "clock_offset_s");
    const json_t *known = json_object_get(host, "clock_known_to_s");
    const char *text;

    if (!json_is_number(offset))
        return "";
    text = pool_text(pool, "%+.2f s", json_number_value(offset));
    text = !strcmp(text, "-0.00 s") ? "+0.00 s" : text;
    if (!json_is_number(known))
        return text;
    return pool_text(pool, "%s \u00b1 %.2f", text, json_number_value(known));
}

static const char *speed_text(struct pool *pool, double mbps)
{
    if (!(mbps > 0))
        return "";
    return mbps < 1000 ? pool_text(pool, " %.4g Mb/s", mbps)
                       : pool_text(pool, " %.4g Gb/s", mbps / 1000);
}

/* "eth0 10.1.0.1 25 Gb/s, mlx5_0:1 100 Gb/s". What has no address is left out, but for RDMA ports,
 * which have none. */
static const char *networks_text(struct pool *pool, const json_t *host)
{
    const char *text = "";
    size_t n = 0;

    FACT_EACH (json_object_get(host, "networks"), network) {
        const char *name = fact_name(network, "name");
        const char *address =
            json_string_value(json_array_get(json_object_get(network, "addresses"), 0));

        if (!address && !strchr(name, ':'))
            continue;
        text = add_name(
            pool, text,
            pool_text(pool, "%s%s%s%s", name, address ? " " : "", address ? address : "",
                      speed_text(pool, json_number_value(json_object_get(network, "speed_mbps")))),
            n++);
    }
    return and_more(pool, text, n);
}

static void add_host(struct document_table *t, struct pool *pool, const json_t *host)
{
    const char *version = fact_name(host, "version"), *problem = fact_name(host, "problem");
    long long slots = json_integer_value(json_object_get(host, "slots"));
    struct cell *cells = document_row(t);

    cells[0] = cell_text(fact_name(host, "name"));
    cells[1] = cell_text(fact_name(host, "address"));
    cells[2] = cell_text(slots > 0 ? pool_text(pool, "%lld", slots) : "");
    cells[3] = cell_text(clock_text(pool, host));
    cells[4] = cell_text(networks_text(pool, host));
    cells[5] = cell_text(json_is_true(json_object_get(host, "this_machine")) ? "yes" : "");
    cells[6] = cell_text(*version ? version : *problem ? problem : "not asked");
}

/* Which rows are whose. */
static void write_whose(const struct page *page, size_t run)
{
    const char *pairs = pairs_of(page, run), *groups = groups_of(page, run);

    if (*pairs)
        html_print(page->out,
                   " Rows between two hosts are of the pairs (from to) %s; which one stands in the "
                   "columns <code>from</code> and <code>to</code> of each.",
                   pairs);
    if (*groups)
        html_print(page->out, " Rows over a group are of %s: the column <code>hosts</code>.",
                   groups);
}

void page_hosts_table(const struct page *page, size_t run)
{
    static const struct document_column columns[] = {{.name = "host"},
                                                     {.name = "address"},
                                                     {.name = "slots", .number = true},
                                                     {.name = "clock", .number = true},
                                                     {.name = "networks"},
                                                     {.name = "this machine"},
                                                     {.name = "what it answered"}};
    const json_t *hosts = hosts_of(page, run);
    const char *name = fact_name(page->r->runs[run].meta, "machine.host.hostname");
    struct pool *pool = &page->r->pool;

    if (!page_has_hosts(page, run))
        return;
    html_print(page->out, "<h3>Hosts%s%s</h3>\n<p>Started by %s.", page->r->n_runs > 1 ? ": " : "",
               page->r->n_runs > 1 ? page->r->names[run] : "", launcher_of(pool, hosts));
    write_whose(page, run);
    html_print(page->out,
               " The clock is the host's less that of the machine that started the run. Facts, "
               "limits and findings of the machine below are those of %s, on which the run was "
               "started: those of the other hosts are not in this report.</p>\n",
               *name ? name : "the machine");
    struct document *d = document_new(pool);
    struct document_table *t = document_table(d, columns, sizeof(columns) / sizeof(*columns));
    FACT_EACH (json_object_get(hosts, "list"), host)
        add_host(t, pool, host);
    document_write_html(d, page->out);
}

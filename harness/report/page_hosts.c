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

static const char *names_of(struct pool *pool, const json_t *list)
{
    const char **names = pool_alloc(pool, json_array_size(list), sizeof(*names));
    size_t n = 0;

    FACT_EACH (list, host)
        names[n++] = fact_name(host, "name");
    return pool_list(pool, names, n, NAMED_MAX, ", ");
}

void page_hosts_line(const struct page *page, size_t run)
{
    const json_t *hosts = hosts_of(page, run);
    struct pool *pool = &page->r->pool;

    if (page_has_hosts(page, run))
        html_print(page->out,
                   "<p class='run'><b>hosts</b> <span>%s</span> <span>started by %s</span></p>\n",
                   names_of(pool, json_object_get(hosts, "list")), launcher_of(pool, hosts));
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
    const json_t *networks = json_object_get(host, "networks");
    const char **texts = pool_alloc(pool, json_array_size(networks), sizeof(*texts));
    size_t n = 0;

    FACT_EACH (networks, network) {
        const char *name = fact_name(network, "name");
        const char *address =
            json_string_value(json_array_get(json_object_get(network, "addresses"), 0));

        if (!address && !strchr(name, ':'))
            continue;
        texts[n++] =
            pool_text(pool, "%s%s%s%s", name, address ? " " : "", address ? address : "",
                      speed_text(pool, json_number_value(json_object_get(network, "speed_mbps"))));
    }
    return pool_list(pool, texts, n, NAMED_MAX, ", ");
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
    struct document *d = document_new(pool);
    document_heading(
        d, 3, page->r->n_runs > 1 ? pool_text(pool, "Hosts: %s", page->r->names[run]) : "Hosts",
        "");
    document_paragraph(
        d, pool_text(pool,
                     "Started by %s. The clock is the host's less that of the machine that started "
                     "the run. Facts, limits and findings of the machine below are those of %s, on "
                     "which the run was started: those of the other hosts are not in this report.",
                     launcher_of(pool, hosts), *name ? name : "the machine"));
    struct document_table *t = document_table(d, columns, sizeof(columns) / sizeof(*columns));
    FACT_EACH (json_object_get(hosts, "list"), host)
        add_host(t, pool, host);
    document_write_html(d, page->out);
}

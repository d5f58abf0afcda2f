/* SPDX-License-Identifier: Apache-2.0 */
/* How to do a run again: command, suite, seed, versions, and the configuration itself. */
#include <stdlib.h>
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/text.h"

const char *shell_word(struct pool *pool, const char *word)
{
    char *quoted = argv_quoted(&(struct argv){.all = &(char *){(char *)word}, .n = 1}, 0);
    const char *text = pool_text(pool, "%s", quoted);

    free(quoted);
    return text;
}

static const char *command_of(struct pool *pool, const json_t *meta)
{
    const json_t *command = json_object_get(meta, "command");
    const char *text = json_string_value(command);
    json_t *word;
    size_t i;

    if (text)
        return text;
    text = "";
    json_array_foreach (command, i, word) {
        const char *at = json_string_value(word);

        text = pool_text(pool, "%s%s%s", text, i ? " " : "", shell_word(pool, at ? at : ""));
    }
    return text;
}

/* Numbers are seeds: 64 bits without a sign, which JSON keeps with one. */
static const char *scalar(struct pool *pool, const json_t *meta, const char *key)
{
    const json_t *value = json_object_get(meta, key);

    if (json_is_integer(value))
        return pool_text(pool, "%llu", (unsigned long long)json_integer_value(value));
    return json_is_string(value) ? json_string_value(value) : "";
}

static void add_fact(struct document_table *t, const char *name, const char *text)
{
    struct cell *cells = document_row(t);

    cells[0] = cell_text(name);
    cells[1] = cell_text(*text ? text : "not recorded");
}

static void write_run(const struct page *page, size_t i)
{
    const json_t *meta = page->r->runs[i].meta;
    struct pool *pool = &page->r->pool;
    const char *command = command_of(pool, meta), *config = fact_name(meta, "config");
    static const char *const keys[][2] = {
        {"suite", "suite"},
        {"seed", "seed"},
        {"version", "version"},
        {"commit", "commit"},
        {"config_hash", "hash of the configuration"},
        {"started_utc", "started"},
        {"finished_utc", "finished"},
        {"state", "state"},
    };
    static const struct document_column columns[] = {{.name = ""}, {.name = ""}};
    struct document *d = document_new(pool);
    struct document_table *t = document_table(d, columns, 2);

    if (page->r->n_runs > 1)
        html_element(page->out, "h3", page->r->names[i]);
    if (*command)
        html_print(page->out, "<pre class='command'>%s</pre>\n", command);
    add_fact(t, "folder", page->r->runs[i].path);
    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
        add_fact(t, keys[k][1], scalar(pool, meta, keys[k][0]));
    document_write_html(d, page->out);
    if (*config)
        html_print(page->out,
                   "<details%s><summary>The suite as it was run</summary><pre>%s</pre>"
                   "</details>\n",
                   page_open(page), config);
}

void page_again(const struct page *page)
{
    page_fold(page, "again", "How to do it again");
    for (size_t i = 0; i < page->r->n_runs; i++)
        write_run(page, i);
    fputs("<p>The same seed plans the same cases in the same order.</p>\n", page->out);
    page_fold_end(page);
}

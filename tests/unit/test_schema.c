/* SPDX-License-Identifier: Apache-2.0 */
/* docs/schema.md says what the tables in the code and of the benchmarks say, and every metric that the sources name is
 * in one. UPDATE=1 writes its tables anew. */
#include <glob.h>
#include <regex.h>

#include "core/row.h"
#include "core/units.h"
#include "harness/report/described.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/unit.h"

#define DOCUMENT  "docs/schema.md"
#define SIZE_MOST (1 << 18)

/* A text for a cell of a table. */
static void print_cell(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_columns(FILE *out)
{
    static const char *const kinds[] = {
        [ROW_TEXT] = "text", [ROW_NUMBER] = "number", [ROW_COUNT] = "count", [ROW_SHARE] = "share"};

    for (const struct row_column *c = row_columns; c->name; c++) {
        fprintf(out, "| `%s` | %s | ", c->name, kinds[c->kind]);
        print_cell(out, c->help);
        fputs(" |\n", out);
    }
}

static void print_words(FILE *out)
{
    static const char *const scopes[] = {LIMIT_SCOPE_NODE, NULL};
    const struct {
        const char *column;
        const char *const *words;
    } lists[] = {
        {"status", row_statuses},    {"code", row_codes},        {"stop", row_stops},
        {"origin", row_origins},     {"noise_kind", row_noises}, {"limit_kind", limit_kinds},
        {"limit_link", limit_links}, {"limit_scope", scopes},    {"carrier", carriers}};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        fprintf(out, "| `%s` |", lists[i].column);
        for (size_t k = 0; lists[i].words[k]; k++)
            fprintf(out, "%s `%s`", k ? "," : "", lists[i].words[k]);
        fputs(" |\n", out);
    }
}

static void print_units(FILE *out)
{
    for (const struct unit *u = units_table; u->name; u++) {
        fprintf(out, "| `%s` | %s | ", u->name, u->higher_is_better ? "higher" : "lower");
        print_cell(out, u->help);
        fputs(" |\n", out);
    }
}

static const char *better_of(const struct bench_metric *m)
{
    char unit[32];

    if (m->better)
        return m->better == BETTER_MORE ? "more" : "less";
    snprintf(unit, sizeof(unit), "%.*s", (int)strcspn(m->units, " "), m->units);
    return units_find(unit)->higher_is_better ? "more" : "less";
}

static void print_metrics(FILE *out, const struct bench_info *b)
{
    for (const struct bench_metric *m = b->rows.metrics; m->name; m++)
        fprintf(out, "| %s | `%s` | %s | %s | %s%s |\n", b->name, m->name, m->units, better_of(m),
                m->unjudged ? "no: " : "yes", m->unjudged ? m->unjudged : "");
}

static void print_headlines(FILE *out, const struct bench_info *b)
{
    for (const struct bench_headline *h = b->rows.headlines; h->pipe; h++) {
        fprintf(out, "| %s | %s | %s%s%s%s | %s | %s |", b->name, h->pipe,
                strcmp(h->label, "%s") ? h->label : "",
                h->by ? (strcmp(h->label, "%s") ? " `" : "`") : "", h->by ? h->by : "",
                h->by ? "`" : "", h->at ? h->at : "", h->where);
        if (h->low_below > 0)
            fprintf(out, " %g %% |\n", h->low_below);
        else
            fputs(" |\n", out);
    }
}

static void print_choices(FILE *out, const struct bench_info *b)
{
    size_t n = 0;

    for (const struct bench_column *c = b->rows.columns; c->name; c++)
        if (c->flags & COLUMN_USED) {
            int len = (int)(strlen(c->name) - strlen(ROW_USED));

            if (!n++)
                fprintf(out, "| %s | `%.*s`", b->name, len, c->name);
            else
                fprintf(out, ", `%.*s`", len, c->name);
        }
    if (n)
        fputs(" |\n", out);
}

static const struct part {
    const char *name, *columns;
    void (*print)(FILE *out);
    void (*of)(FILE *out, const struct bench_info *b); /* in place of print(): of each benchmark */
} parts[] = {
    {"columns", "column | is a | what it says |\n|---|---|---", print_columns, NULL},
    {"words", "column | values |\n|---|---", print_words, NULL},
    {"units", "unit | better is | what it is |\n|---|---|---", print_units, NULL},
    {"metrics", "benchmark | metric | unit | better is | judged |\n|---|---|---|---|---", NULL,
     print_metrics},
    {"choices", "benchmark | parameters |\n|---|---", NULL, print_choices},
    {"headlines",
     "benchmark | part | line | of cases | that match | low below |\n|---|---|---|---|---|---",
     NULL, print_headlines},
};

static char *read_file(const char *path)
{
    char *text = calloc(1, SIZE_MOST);
    FILE *in = fopen(path, "re");

    if (!text || !in)
        fail_msg("cannot read %s: run this in the root of the checkout", path);
    assert_true(fread(text, 1, SIZE_MOST - 1, in) < SIZE_MOST - 1);
    fclose(in);
    return text;
}

/* Where the made part after <!-- NAME: ... --> begins and ends. */
static void find_part(const char *text, const char *name, const char **begin, const char **end)
{
    char mark[64];

    snprintf(mark, sizeof(mark), "<!-- %s: ", name);
    const char *at = strstr(text, mark);
    if (!at) {
        fail_msg("%s has no '%s'", DOCUMENT, mark);
        return;
    }
    *begin = strchr(at, '\n') + 1;
    *end = strstr(*begin, "<!-- end -->");
    assert_non_null(*end);
}

/* UPDATE=1 writes it anew. */
static void check_part(const struct part *p, const struct bench_list *benches)
{
    char *text = read_file(DOCUMENT), *want = NULL;
    const char *begin = NULL, *end = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&want, &len);

    fprintf(out, "| %s|\n", p->columns);
    if (p->print)
        p->print(out);
    for (size_t i = 0; i < benches->n && p->of; i++)
        p->of(out, &benches->benches[i]);
    fclose(out);
    find_part(text, p->name, &begin, &end);
    if (getenv("UPDATE")) {
        out = fopen(DOCUMENT, "we");
        assert_non_null(out);
        fprintf(out, "%.*s%s%s", (int)(begin - text), text, want, end);
        assert_int_equal(fclose(out), 0);
    } else if (!begin || (size_t)(end - begin) != len || memcmp(begin, want, len) != 0) {
        print_message("%s", want);
        fail_msg("the %s of %s are not those of the code, above: UPDATE=1 build/tests/test_schema",
                 p->name, DOCUMENT);
    }
    free(want);
    free(text);
}

TEST(test_document)
{
    struct bench_list benches = built_benches();
    char *text = read_file(DOCUMENT), want[64];

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        check_part(&parts[i], &benches);
    snprintf(want, sizeof(want), "\nSchema version %d.", ROW_SCHEMA_VERSION);
    assert_non_null(strstr(text, want));
    free(text);
    bench_list_release(&benches);
}

/* The document's table says what the benchmarks' do: see test_document(). */
TEST(test_every_metric_is_listed)
{
    /* a metric, or two to choose from, behind arguments that are names */
    static const char call[] =
        "(point_series|point_figure|add_figure|tell)\\(([&a-z]+,[[:space:]]+)+([a-z]+ \\? )?"
        "\"([a-z_-]+)\"([[:space:]]+: \"([a-z_-]+)\")?";
    char *document = read_file(DOCUMENT), listed[64];
    size_t n = 0;
    regmatch_t m[7];
    regex_t re;
    glob_t g;

    assert_int_equal(regcomp(&re, call, REG_EXTENDED), 0);
    assert_int_equal(glob("{benches,core}/{,*/,*/*/}*.c", GLOB_BRACE, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        char *text = read_file(g.gl_pathv[i]);

        for (char *at = text; !regexec(&re, at, 7, m, 0); at += m->rm_eo)
            for (int k = 4; k < 7; k += 2)
                if (m[k].rm_so >= 0) {
                    snprintf(listed, sizeof(listed), "| `%.*s` | ", (int)(m[k].rm_eo - m[k].rm_so),
                             at + m[k].rm_so);
                    if (!strstr(document, listed))
                        fail_msg("%s of %s is in no table of metrics: is it to be judged?", listed,
                                 g.gl_pathv[i]);
                    n++;
                }
        free(text);
    }
    assert_true(n > 50); /* of 56; or the search has become blind */
    globfree(&g);
    regfree(&re);
    free(document);
}

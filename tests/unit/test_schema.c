/* SPDX-License-Identifier: Apache-2.0 */
/* docs/schema.md says what the tables in the code say. UPDATE=1 writes its tables anew. */
#include "core/row.h"
#include "core/units.h"
#include "tests/unit/unit.h"

#define DOCUMENT  "docs/schema.md"
#define SIZE_MOST 65536

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

    fputs("| column | is a | what it says |\n|---|---|---|\n", out);
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

    fputs("| column | values |\n|---|---|\n", out);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        fprintf(out, "| `%s` |", lists[i].column);
        for (size_t k = 0; lists[i].words[k]; k++)
            fprintf(out, "%s `%s`", k ? "," : "", lists[i].words[k]);
        fputs(" |\n", out);
    }
}

static void print_units(FILE *out)
{
    fputs("| unit | better is | what it is |\n|---|---|---|\n", out);
    for (const struct unit *u = units_table; u->name; u++) {
        fprintf(out, "| `%s` | %s | ", u->name, u->higher_is_better ? "higher" : "lower");
        print_cell(out, u->help);
        fputs(" |\n", out);
    }
}

static char *read_document(void)
{
    char *text = calloc(1, SIZE_MOST);
    FILE *in = fopen(DOCUMENT, "re");

    if (!in) {
        fail_msg("cannot read %s: run this in the root of the checkout", DOCUMENT);
        return text;
    }
    size_t n = fread(text, 1, SIZE_MOST - 1, in);
    fclose(in);
    assert_true(n < SIZE_MOST - 1);
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
static void check_part(const char *name, void (*print)(FILE *))
{
    char *text = read_document(), *want = NULL;
    const char *begin = NULL, *end = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&want, &len);

    print(out);
    fclose(out);
    find_part(text, name, &begin, &end);
    if (getenv("UPDATE")) {
        out = fopen(DOCUMENT, "we");
        assert_non_null(out);
        fprintf(out, "%.*s%s%s", (int)(begin - text), text, want, end);
        assert_int_equal(fclose(out), 0);
    } else if (!begin || (size_t)(end - begin) != len || memcmp(begin, want, len) != 0) {
        print_message("%s", want);
        fail_msg("the %s of %s are not those of the code, above: UPDATE=1 build/tests/test_schema",
                 name, DOCUMENT);
    }
    free(want);
    free(text);
}

TEST(test_document)
{
    char *text = read_document(), want[64];

    check_part("columns", print_columns);
    check_part("words", print_words);
    check_part("units", print_units);
    snprintf(want, sizeof(want), "\nSchema version %d.", ROW_SCHEMA_VERSION);
    assert_non_null(strstr(text, want));
    free(text);
}

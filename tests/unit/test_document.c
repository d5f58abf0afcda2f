/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of documents: each writer says the same, no line is longer than asked, colour is for tones
 * alone, and no text breaks out of its format. */
#include "harness/document/document.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/text.h"
#include "harness/document/utf8.h"

static const struct document_column columns[] = {
    {"component", COLUMN_STAYS, false},    {"test", COLUMN_STAYS, false},
    {"value", COLUMN_STAYS, true},         {"+/-", COLUMN_GOES_LAST, true},
    {"of limit", COLUMN_GOES_FIRST, true}, {"word", COLUMN_STAYS, false}};

enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

/* Charts of lines and of rows. Their rows have no tone: what else is coloured is counted. */
static void add_figures(struct document *d, struct pool *pool, const char *name)
{
    static const struct plot_point points[] = {{1, 2, 1.5, 2.5}, {2, NAN, NAN, NAN}, {4, 8, 7, 9}};
    static const struct plot_point values[] = {{0, 1.1, 1.05, 1.15}, {1, 0.9, NAN, NAN}};
    struct {
        struct plot plots[2];
        struct plot_line lines[3];
        struct plot_tick ticks[2];
        struct plot_row rows[2];
    } *all = pool_alloc(pool, 1, sizeof(*all));

    assert_non_null(all);
    for (size_t i = 0; i < 2; i++) {
        all->lines[i] = (struct plot_line){.label = name, .points = points, .n = 3, .colour = i};
        all->ticks[i] = (struct plot_tick){.at = (double)i, .label = name};
        all->rows[i] = (struct plot_row){.note = name, .tone = TONE_NONE};
    }
    all->lines[2] = (struct plot_line){.label = name, .points = values, .n = 2};
    all->plots[0] = (struct plot){.name = "n",
                                  .title = name,
                                  .x_label = name,
                                  .y_label = name,
                                  .lines = all->lines,
                                  .n_lines = 2,
                                  .watermark = name};
    all->plots[1] = all->plots[0];
    all->plots[1].categories = all->plots[1].ratio = true;
    all->plots[1].ticks = all->ticks;
    all->plots[1].n_ticks = 2;
    all->plots[1].rows = all->rows;
    all->plots[1].lines = &all->lines[2];
    all->plots[1].n_lines = 1;
    document_figure(d, &all->plots[0], name);
    document_figure(d, &all->plots[1], "");
}

/* A document with every block, in which `name` stands wherever a text may. */
static struct document *made(struct pool *pool, const char *name)
{
    struct document *d = document_new(pool), *fold;

    document_heading(d, 2, name, name);
    document_answer(d, "Machine", "", TONE_NONE, name);
    document_answer(d, "Trust", "D", TONE_LOW, name);
    document_answer_more(d, name, name);
    document_paragraph(d, name);
    document_item(d, name);
    document_item(d, "second");
    struct document_table *t = document_table(d, columns, COLUMNS);

    assert_non_null(t);
    for (int i = 0; i < 2; i++) {
        struct cell *row = document_row(t);

        row[0] = cell_text("Memory");
        row[1] = cell_text(name);
        row[2] = cell_value(73.53, "GB/s");
        row[3] = cell_interval(100, 90, 120);
        row[4] = cell_share(44.83, i);
        row[5] = cell_word(i ? "failed" : "normal", i ? TONE_BAD : TONE_NONE);
        cell_note(&row[1], document_note(d, name));
        cell_note(&row[2], document_note(d, "the same"));
        cell_note(&row[2], document_note(d, "the same"));
    }
    document_notes(d);
    add_figures(d, pool, name);
    fold = document_fold(d, name);
    document_paragraph(fold, name);
    return d;
}

enum format { TERMINAL, HTML, MARKDOWN };

static char *written_of(const struct document *d, enum format format, struct document_terminal at)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    int err = format == TERMINAL ? document_write_terminal(d, &at, out)
              : format == HTML   ? document_write_html(d, out)
                                 : document_write_markdown(d, out);

    assert_int_equal(err, 0);
    fclose(out);
    return text;
}

static char *written(const char *name, enum format format, struct document_terminal at)
{
    struct pool pool = {0};
    char *text = written_of(made(&pool, name), format, at);

    pool_release(&pool);
    return text;
}

static const struct document_terminal wide = {.width = 200, .utf8 = true, .folds = true};

static size_t count(const char *text, const char *what)
{
    size_t n = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static void assert_has(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("no \"%s\" in:\n%s", what, text);
}

static void a_terminal_gets_an_aligned_table(void **state)
{
    (void)state;
    char *text = written("triad", TERMINAL, wide);

    assert_has(text, "component  test                value        +/-     of limit  word\n"
                     "Memory     triad (1)  73.53 GB/s (2)  -10/+20 %       44.8 %  normal\n"
                     "           triad (1)  73.53 GB/s (2)  -10/+20 %  ref. 44.8 %  failed\n");
    free(text);
}

static void equal_notes_are_listed_once(void **state)
{
    (void)state;
    for (int format = TERMINAL; format <= MARKDOWN; format++) {
        char *text = written("triad", (enum format)format, wide);

        assert_int_equal(count(text, "the same"), 1);
        free(text);
    }
}

static char *table_at(size_t width, const char *second)
{
    struct pool pool = {0};
    struct document *d = document_new(&pool);
    struct document_table *t = document_table(d, columns, COLUMNS);

    for (int i = 0; i < 2; i++) {
        struct cell *row = document_row(t);

        row[0] = cell_text(i ? second : "Memory");
        row[1] = cell_text("triad over a working set that is long");
        row[2] = cell_value(73.53, "GB/s");
        row[3] = cell_interval(100, 90, 120);
        row[4] = cell_share(44.83, i);
        row[5] = cell_word("inconclusive", TONE_NONE);
    }
    char *text = written_of(d, TERMINAL, (struct document_terminal){.width = width, .utf8 = true});
    pool_release(&pool);
    return text;
}

/* In a narrow table a test has a line of its own, then a column leaves. */
static void narrow_tables_lose_no_figure(void **state)
{
    (void)state;
    char *text = table_at(60, "Caches");
    assert_has(text, "\n  of limit: 44.8 %\n");
    assert_null(strstr(text, "value:"));
    free(text);
    text = table_at(60, "Memory");
    assert_has(text, "\nMemory\n  triad over a working set that is long\n    73.53 GB/s ");
    assert_int_equal(count(text, "Memory"), 1);
    assert_int_equal(count(text, "of limit"), 1);
    free(text);
}

/* A column that nobody fills is not shown; with eight that are filled the sheet is turned. */
static void columns_that_nobody_fills_do_not_count(void **state)
{
    static const struct document_column nine[9] = {
        {.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"},     {.name = "e"},
        {.name = "f"}, {.name = "g"}, {.name = "h"}, {.name = "nobody"}};

    (void)state;
    for (size_t filled = 7; filled <= 8; filled++) {
        struct pool pool = {0};
        struct document *d = document_new(&pool);
        struct cell *row = document_row(document_table(d, nine, 9));

        for (size_t i = 0; i < filled; i++)
            row[i] = cell_text("x");
        for (int format = TERMINAL; format <= MARKDOWN; format++) {
            char *text = written_of(d, (enum format)format, wide);

            if (format == HTML)
                assert_int_equal(count(text, " d-many'"), filled == 8);
            assert_null(strstr(text, "nobody"));
            assert_null(strstr(text, "| |"));
            free(text);
        }
        pool_release(&pool);
    }
}

static void an_interval_has_one_side_where_both_are_alike(void **state)
{
    static const struct {
        double low, high;
        const char *shown;
    } all[] = {{98.7, 101.4, "+/- 1.4 %"},    {94.62, 108.7, "-5.4/+8.7 %"},
               {45.7, 242.2, "-54/+142 %"},   {90.04, 109.96, "+/- 10 %"},
               {103, 108, "+3/+8 %"},         {100, 100, "+/- 0 %"},
               {99.57, 100.43, "+/- 0.43 %"}, {100 + 2e-14, 100 + 2e-14, "+/- 0 %"},
               {1, 1e9, "-99/+over 1000 %"},  {-9900, 9900, "+/- over 1000 %"}};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct pool pool = {0};
        struct document *d = document_new(&pool);
        struct document_table *t = document_table(d, columns, 1);

        document_row(t)[0] = cell_interval(100, all[i].low, all[i].high);
        char *text = written_of(d, TERMINAL, wide);
        assert_has(text, all[i].shown);
        free(text);
        pool_release(&pool);
    }
}

static void assert_fits(const char *text, size_t width)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");

        if (wrap_columns(line, n) > width)
            fail_msg("%zu columns: %.*s", wrap_columns(line, n), (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static const char *const names[] = {
    "triad",
    "a name of a good many words that has to go on in a second line, and in a third one, wherever "
    "it stands",
    "wordwithoutanyblankthatislongerthanthelineofaterminalandhastobecutsomewhereinsideofitasitfitsn"
    "owhere",
    "0123456789abcdef0123456789abcdef \xc3\xa4\xc3\xb6\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80 "
    "\xc3\xa4\xc3\xb6\xc3\xbc",
};

static void no_line_is_longer_than_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        for (size_t width = 1; width <= 200; width += width < 40 ? 13 : 19) {
            struct document_terminal at = {.width = width, .utf8 = true, .folds = true};
            char *text = written(names[i], TERMINAL, at);

            assert_fits(text, width < DOCUMENT_WIDTH_LEAST ? DOCUMENT_WIDTH_LEAST : width);
            free(text);
        }
}

/* Colour is for tones alone; without UTF-8 all is ASCII. */
static void a_terminal_gets_what_it_shows(void **state)
{
    (void)state;
    struct document_terminal at = wide;
    char *text = written("triad", TERMINAL, at);

    assert_null(strchr(text, 033));
    free(text);
    at.colour = true;
    text = written("triad", TERMINAL, at);
    assert_int_equal(count(text, "\033[1;31m"), 1);
    assert_int_equal(count(text, "\033[33m"), 1);
    assert_has(text, "\033[1;31mfailed\033[0m");
    free(text);
    at.utf8 = at.colour = false;
    text = written(names[3], TERMINAL, at);
    for (const char *c = text; *c; c++)
        assert_true((unsigned char)*c < 0x80);
    assert_has(text, "cdef ????? ???");
    free(text);
}

static void a_file_is_no_terminal(void **state)
{
    (void)state;
    FILE *out = tmpfile();

    setenv("LC_ALL", "C", 1);
    setenv("TERM", "xterm", 1);
    assert_false(document_terminal_of(out).colour);
    assert_false(document_terminal_of(out).utf8);
    assert_int_equal(document_terminal_of(out).width, WRAP_DEFAULT);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    assert_true(document_terminal_of(out).utf8);
    fclose(out);
}

/* ---- hostile texts */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void hostile_name(uint64_t *seed, char *name, size_t len)
{
    static const char *const parts[] = {
        "<script>",   "</td>", "&amp;", "'",        "\"",   "|",
        "\\",         "`",     "```",   "\033[31m", "\r",   "\n",
        "\n# ",       "1. ",   "- ",    "**",       "_",    "[a](b)",
        "<!--",       "-->",   "]]>",   "\xff",     "\xc3", "\xed\xa0\x80",
        "\xc2\x9b",   "\x7f",  "%s%n",  "@all",     "~~",   "<svg onload=x>",
        "</details>", "a",     " ",     "\t",       "\b"};
    size_t n = 1 + next_random(seed) % 8;

    *name = '\0';
    for (size_t i = 0; i < n; i++) {
        const char *part = parts[next_random(seed) % (sizeof(parts) / sizeof(*parts))];

        if (strlen(name) + strlen(part) + 1 < len)
            strcat(name, part);
    }
}

/* The tags of a page, without their attributes: texts of cells cannot add any, nor end one. */
static void keep_tags(const char *text, char *tags, size_t len)
{
    size_t at = 0;
    bool inside = false, name = false;
    char quote = 0;

    for (; *text && at + 2 < len; text++) {
        if (quote)
            quote = *text == quote ? 0 : quote;
        else if (inside && (*text == '\'' || *text == '"'))
            quote = *text;
        else if (!inside && *text == '<')
            inside = name = true;
        else if (inside && *text == '>')
            inside = name = false, tags[at++] = '>';
        name = name && *text != ' ';
        if (name)
            tags[at++] = *text;
    }
    tags[at] = '\0';
}

/* An axis has fewer ticks beside a longer name. */
static void drop_ticks(char *tags)
{
    static const char tick[] = "<path><text></text>";

    for (char *at = tags; (at = strstr(at, tick)) != NULL;)
        memmove(at, at + strlen(tick), strlen(at + strlen(tick)) + 1);
}

static void hostile_names_add_no_element(const char *name)
{
    char plain_tags[65536], tags[65536];
    char *plain = written("a", HTML, wide), *text = written(name, HTML, wide);

    keep_tags(plain, plain_tags, sizeof(plain_tags));
    keep_tags(text, tags, sizeof(tags));
    drop_ticks(plain_tags);
    drop_ticks(tags);
    assert_string_equal(tags, plain_tags);
    free(plain);
    free(text);
}

/* Cells of a table's lines: as many as without the name. HTML of our own alone. */
static void hostile_names_add_no_cell(const char *name)
{
    char *text = written(name, MARKDOWN, wide);
    size_t want = 0; /* of the table: as its head, which has no name */

    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), bars = 0;

        for (size_t i = 0; i < n; i += line[i] == '\\' ? 2 : 1)
            bars += line[i] == '|';
        want = *line != '|' ? 0 : want ? want : bars;
        assert_int_equal(*line == '|' ? bars : 0, want);
        line += n + (line[n] == '\n');
    }
    assert_int_equal(count(text, "<summary>"), 1);
    free(text);
}

static void hostile_names_do_not_reach_a_terminal(const char *name)
{
    char *text = written(name, TERMINAL, wide);
    size_t n, used;

    for (const char *c = text; *c; c += used) {
        const char *shown = utf8_printable(c, &n, &used);

        if (*c != '\n')
            assert_true(shown == c);
    }
    assert_fits(text, wide.width);
    free(text);
}

static void hostile_names_stay_texts(void **state)
{
    uint64_t seed = 1;
    char name[256];

    (void)state;
    for (int i = 0; i < 150; i++) {
        hostile_name(&seed, name, sizeof(name));
        hostile_names_add_no_element(name);
        hostile_names_add_no_cell(name);
        hostile_names_do_not_reach_a_terminal(name);
    }
}

static void what_is_not_measured_is_an_empty_cell(void **state)
{
    (void)state;
    assert_int_equal(cell_value(NAN, "GB/s").kind, CELL_EMPTY);
    assert_int_equal(cell_value(0, "GB/s").kind, CELL_VALUE);
    assert_int_equal(cell_interval(1, NAN, 2).kind, CELL_EMPTY);
    assert_int_equal(cell_share(NAN, false).kind, CELL_EMPTY);
    assert_int_equal(cell_text("").kind, CELL_EMPTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_gets_an_aligned_table),
        cmocka_unit_test(equal_notes_are_listed_once),
        cmocka_unit_test(narrow_tables_lose_no_figure),
        cmocka_unit_test(columns_that_nobody_fills_do_not_count),
        cmocka_unit_test(an_interval_has_one_side_where_both_are_alike),
        cmocka_unit_test(no_line_is_longer_than_asked),
        cmocka_unit_test(a_terminal_gets_what_it_shows),
        cmocka_unit_test(a_file_is_no_terminal),
        cmocka_unit_test(hostile_names_stay_texts),
        cmocka_unit_test(what_is_not_measured_is_an_empty_cell)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

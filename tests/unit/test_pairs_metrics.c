/* SPDX-License-Identifier: Apache-2.0 */
/* Which metrics are judged: every one that the sources name is in a table; and docs/schema.md says what the tables of the
 * benchmarks say: UPDATE=1 writes its tables anew. */
#include <glob.h>
#include <regex.h>

#include "core/units.h"
#include "harness/report/described.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/pairs_scene.h"
#include "tests/unit/unit.h"

#define DOCUMENT  "docs/schema.md"
#define FILE_MOST (1 << 18)

/* --- what the table decides --- */

static const char *const params[] = {"size"};
static const char *const values[] = {"64"};

struct metric {
    const char *bench, *name, *unit, *stop;
    uint64_t samples;
    bool judged;
};

/* A row of a figure says how many values it has, as those that were sampled do: its metric decides. */
TEST_WITH(test_which_metrics_are_judged, scene_make, scene_remove)
{
    static const struct metric metrics[] = {
        {"net", "bandwidth", "GB/s", "converged", 100, true},
        {"net", "average_bandwidth", "GB/s", "", 1, true},
        {"net", "load_bandwidth", "GB/s", "", 4, true},
        {"net", "cpu_per_gb", "s/GB", "", 4, true},
        {"net", "limited_by_buffer", "percent", "", 1, false},
        {"net", "rtt", "us", "", 1, false},
        {"net", "retransmits", "count", "", 1, false},
        {"net", "cpu_cores", "cores", "", 4, false},
        /* of another version, or a benchmark of the user's own */
        {"mine", "speed", "GB/s", "time", 50, true},
        {"mine", "share", "percent", "", 1, false},
        {"mine", "share", "percent", "", 0, false},
        {"launch", "rate", "Mop/s", "converged", 100, false}, /* the latency, turned round */
        {"mine", "rate", "Mop/s", "converged", 100, true},
        {"allreduce", "time", "us", "converged", 100, true}};

    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++) {
        const struct metric *m = &metrics[i];
        struct scene_run r = scene_begin(*state, "a", m->bench, params, 1);
        struct row row;

        fake_row_init(&row, "1", 1, m->name, m->unit, 10);
        row.stop = m->stop;
        row.samples = m->samples;
        scene_row(&r, &row, values);
        scene_launch(&r, "done", 1, "1", 1, "");
        scene_end(&r);
        struct pairs p = scene_pairs(*state, "a", "a");
        if (p.n != m->judged)
            fail_msg("%s of %s", m->name, m->bench);
        pairs_release(&p);
    }
}

/* A launch leaves a figure out where the machine was busy with other work: that is no case that was lost, but where the launch
 * failed, or it was sampled. */
TEST_WITH(test_a_figure_that_one_side_left_out, scene_make, scene_remove)
{
    static const struct {
        const char *metric, *stop, *launch;
        enum pair_state state;
    } cases[] = {{"cpu_per_gb", "", "done", PAIR_LEFT_OUT},
                 {"cpu_per_gb", "", "fail", PAIR_LOST_B},
                 {"latency", "converged", "done", PAIR_LOST_B}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int side = 0; side < 2; side++) {
            struct scene_run r = scene_begin(*state, side ? "b" : "a", "net", params, 1);
            struct row row;

            fake_row_init(&row, "1", 1, "bandwidth", "GB/s", 10);
            scene_row(&r, &row, values);
            fake_row_init(&row, "1", 1, cases[i].metric, "s/GB", 0.2);
            row.stop = cases[i].stop;
            if (!side)
                scene_row(&r, &row, values);
            scene_launch(&r, side ? cases[i].launch : "done", side ? 1 : 2, "1", 1, "");
            scene_end(&r);
        }
        struct pairs p = scene_pairs(*state, "a", "b");
        assert_int_equal(p.n, 2);
        assert_int_equal(p.all[0].state, PAIR_READY);
        assert_int_equal(p.all[1].state, cases[i].state);
        pairs_release(&p);
        p = scene_pairs(*state, "b", "a");
        assert_true(i || p.all[1].state == PAIR_LEFT_OUT);
        pairs_release(&p);
    }
}

/* --- what the document says --- */

static char *read_file(const char *path)
{
    char *text = calloc(1, FILE_MOST);
    FILE *in = fopen(path, "re");

    if (!text || !in)
        fail_msg("cannot read %s: run this in the root of the checkout", path);
    assert_true(fread(text, 1, FILE_MOST - 1, in) < FILE_MOST - 1);
    fclose(in);
    return text;
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
        if (c->left_by) {
            if (n++)
                fprintf(out, ", `%s`", c->name);
            else
                fprintf(out, "| %s | `%s`", b->name, c->name);
            if (*c->left_by)
                fprintf(out, " (`%s`)", c->left_by);
        }
    if (n)
        fputs(" |\n", out);
}

static const struct document {
    const char *head, *columns;
    void (*print)(FILE *out, const struct bench_info *b);
} documents[] = {
    {"<!-- metrics: made from plumb-BENCH --describe -->\n",
     "| benchmark | metric | unit | better is | judged |\n|---|---|---|---|---|\n", print_metrics},
    {"<!-- choices: made from plumb-BENCH --describe -->\n",
     "| benchmark | parameters (the word) |\n|---|---|\n", print_choices},
    {"<!-- headlines: made from plumb-BENCH --describe -->\n",
     "| benchmark | part | line | of cases | that match | low below |\n|---|---|---|---|---|---|\n",
     print_headlines},
};

static char *table_of(const struct document *d)
{
    struct bench_list benches = built_benches();
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    fputs(d->columns, out);
    for (size_t i = 0; i < benches.n; i++)
        d->print(out, &benches.benches[i]);
    fclose(out);
    bench_list_release(&benches);
    return text;
}

static void check_document(const struct document *d)
{
    static const char tail[] = "<!-- end -->";
    char *text = read_file(DOCUMENT), *table = table_of(d), *begin = strstr(text, d->head);

    assert_non_null(begin);
    begin += strlen(d->head);
    char *end = strstr(begin, tail);
    assert_non_null(end);
    if (getenv("UPDATE")) {
        FILE *out = fopen(DOCUMENT, "we");

        assert_non_null(out);
        fprintf(out, "%.*s%s%s", (int)(begin - text), text, table, end);
        fclose(out);
    } else if (strlen(table) != (size_t)(end - begin) || memcmp(table, begin, strlen(table))) {
        fail_msg("%s does not say what the benchmarks say: UPDATE=1 %s writes it", DOCUMENT,
                 "build/tests/test_pairs_metrics");
    }
    free(table);
    free(text);
}

TEST(test_document)
{
    for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++)
        check_document(&documents[i]);
}

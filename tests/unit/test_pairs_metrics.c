/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether each metric is judged was decided: every one that the sources of the benchmarks name is in a table of
 * theirs, and docs/schema.md says what these say. UPDATE=1 writes its tables anew.
 */
#include <ftw.h>

#include "core/units.h"
#include "harness/report/described.h"
#include "tests/unit/built_benches.h"
#include "tests/unit/pairs_scene.h"

#define DOCUMENT  "docs/schema.md"
#define FILE_MOST (1 << 18)
#define FOUND_MAX 128

/* --- what the sources name --- */

/* Where a metric is named, and among which arguments: it is in the first of them that is a text, or texts to choose from. */
static const struct call {
    const char *head;
    size_t first, last; /* behind the head, from 0 */
} calls[] = {{"point_series(", 1, 1},
             {"point_figure(", 1, 1},
             {"add_figure(", 1, 2},
             {"tell(facts, &n,", 0, 0},
             {NULL, 0, 0}};
/* Where they stand in a list. */
static const char list[] = "rdma_counter_names[RDMA_COUNTERS] = {";

struct found {
    char name[64], file[256];
};
static struct found found[FOUND_MAX];
static size_t n_found;

static void add_found(const char *text, size_t len, const char *file)
{
    assert_true(n_found < FOUND_MAX && len < sizeof(found->name));
    snprintf(found[n_found].name, sizeof(found->name), "%.*s", (int)len, text);
    snprintf(found[n_found++].file, sizeof(found->file), "%s", file);
}

/* Adds the texts in front of `end`. */
static size_t take_texts(const char *at, const char *end, const char *file)
{
    size_t n = 0;

    while ((at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        size_t len = strcspn(at + 1, "\"");

        add_found(at + 1, len, file);
        at += len + 2;
        n++;
    }
    return n;
}

static void take_call(const struct call *call, const char *at, const char *file)
{
    for (size_t i = 0; i <= call->last; i++) {
        const char *end = at + strcspn(at, ",;");

        if (i >= call->first && take_texts(at, end, file))
            return;
        if (*end != ',')
            return;
        at = end + 1;
    }
}

static void take_all(const char *text, const char *file)
{
    const char *at;

    for (const struct call *call = calls; call->head; call++)
        for (at = text; (at = strstr(at, call->head)) != NULL;) {
            at += strlen(call->head);
            take_call(call, at, file);
        }
    at = strstr(text, list);
    if (at)
        take_texts(at, at + strcspn(at, "}"), file);
}

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

static int read_source(const char *path, const struct stat *st, int type, struct FTW *at)
{
    size_t len = strlen(path);

    (void)st;
    (void)at;
    if (type != FTW_F || len < 2 || strcmp(path + len - 2, ".c") != 0)
        return 0;
    char *text = read_file(path);
    take_all(text, path);
    free(text);
    return 0;
}

static bool is_listed(const struct bench_list *benches, const char *name)
{
    for (size_t i = 0; i < benches->n; i++)
        for (const struct bench_metric *m = benches->benches[i].rows.metrics; m->name; m++)
            if (!strcmp(m->name, name))
                return true;
    return false;
}

static bool is_found(const char *name)
{
    for (size_t i = 0; i < n_found; i++)
        if (!strcmp(found[i].name, name))
            return true;
    return false;
}

static void test_every_metric_is_listed(void **state)
{
    struct bench_list benches = built_benches();
    size_t missing = 0;

    (void)state;
    n_found = 0;
    assert_int_equal(nftw("benches", read_source, 16, FTW_PHYS), 0);
    assert_int_equal(nftw("core", read_source, 16, FTW_PHYS), 0);
    for (size_t i = 0; i < n_found; i++)
        if (!is_listed(&benches, found[i].name)) {
            print_error("'%s' of %s is in no table of metrics: is it to be judged?\n",
                        found[i].name, found[i].file);
            missing++;
        }
    /* Those that are listed and not found: they are gone, or the search has become blind. */
    for (size_t i = 0; i < benches.n; i++)
        for (const struct bench_metric *m = benches.benches[i].rows.metrics; m->name; m++)
            if (!is_found(m->name)) {
                print_error("metric '%s' of %s is named in no source\n", m->name,
                            benches.benches[i].name);
                missing++;
            }
    bench_list_release(&benches);
    assert_int_equal(missing, 0);
}

/* --- what the table decides --- */

static const char *const params[] = {"size"};
static const char *const values[] = {"64"};

struct metric {
    const char *name, *unit, *stop;
    uint64_t samples;
};

static bool is_judged(void **state, const char *bench, const struct metric *m)
{
    struct scene_run r = scene_begin(*state, "a", bench, params, 1);
    struct row row;

    fake_row_init(&row, "1", 1, m->name, m->unit, 10);
    row.stop = m->stop;
    row.samples = m->samples;
    scene_row(&r, &row, values);
    scene_launch(&r, "done", 1, "1", 1, "");
    scene_end(&r);
    struct pairs p = scene_pairs(*state, "a", "a");
    bool judged = p.n == 1;

    pairs_release(&p);
    return judged;
}

/* A row of a figure says how many values it has, as those that were sampled do: its metric decides. */
static void test_figures_of_a_stream(void **state)
{
    static const struct metric judged[] = {{"bandwidth", "GB/s", "converged", 100},
                                           {"average_bandwidth", "GB/s", "", 1},
                                           {"load_bandwidth", "GB/s", "", 4},
                                           {"cpu_per_gb", "s/GB", "", 4}},
                               others[] = {{"limited_by_receiver", "percent", "", 1},
                                           {"limited_by_buffer", "percent", "", 1},
                                           {"rtt", "us", "", 1},
                                           {"cwnd", "packets", "", 1},
                                           {"retransmits", "count", "", 1},
                                           {"longest_window", "ms", "", 1},
                                           {"zerocopy_copied", "percent", "", 1},
                                           {"cpu_cores", "cores", "", 4}};

    for (size_t i = 0; i < sizeof(judged) / sizeof(*judged); i++)
        assert_true(is_judged(state, "net", &judged[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_false(is_judged(state, "net", &others[i]));
}

/* Of another version, or a benchmark of the user's own. */
static void test_metrics_that_nobody_lists(void **state)
{
    assert_true(is_judged(state, "mine", &(struct metric){"speed", "GB/s", "time", 50}));
    assert_false(is_judged(state, "mine", &(struct metric){"share", "percent", "", 1}));
    assert_false(is_judged(state, "mine", &(struct metric){"share", "percent", "", 0}));
}

static void test_one_metric_of_two_benchmarks(void **state)
{
    const struct metric rate = {"rate", "Mop/s", "converged", 100},
                        time = {"time", "us", "converged", 100};

    assert_false(is_judged(state, "launch", &rate)); /* the latency, turned round */
    assert_true(is_judged(state, "mine", &rate));
    assert_true(is_judged(state, "allreduce", &time));
}

static void write_cost(const struct fake_run *root, const char *name, const char *metric,
                       const char *state)
{
    struct scene_run r = scene_begin(root, name, "net", params, 1);
    struct row row;

    for (uint64_t i = 1; i < 3; i++) {
        fake_row_init(&row, "1", i, "bandwidth", "GB/s", 10);
        scene_row(&r, &row, values);
        if (metric) {
            fake_row_init(&row, "1", i, metric, "s/GB", 0.2);
            row.stop = strcmp(metric, "latency") ? "" : "converged";
            scene_row(&r, &row, values);
        }
        scene_launch(&r, state, metric ? 2 : 1, "1", i, "");
    }
    scene_end(&r);
}

static enum pair_state state_of_cost(const struct fake_run *root, const char *a, const char *b)
{
    struct pairs p = scene_pairs(root, a, b);

    assert_int_equal(p.n, 2);
    assert_int_equal(p.all[0].state, PAIR_READY);
    enum pair_state state = p.all[1].state;
    if (state == PAIR_LEFT_OUT)
        assert_string_equal(p.all[1].reason,
                            *b == 'b' ? "a figure beside the samples that B could not tell, such "
                                        "as for other work on the machine"
                                      : "a figure beside the samples that A could not tell, such "
                                        "as for other work on the machine");
    pairs_release(&p);
    return state;
}

/* A launch leaves it out where the machine was busy with other work: that is no case that was lost. */
static void test_a_figure_that_one_side_left_out(void **state)
{
    write_cost(*state, "a", "cpu_per_gb", "done");
    write_cost(*state, "b", NULL, "done");
    assert_int_equal(state_of_cost(*state, "a", "b"), PAIR_LEFT_OUT);
    assert_int_equal(state_of_cost(*state, "b", "a"), PAIR_LEFT_OUT);
    write_cost(*state, "b", NULL, "fail");
    assert_int_equal(state_of_cost(*state, "a", "b"), PAIR_LOST_B);
    write_cost(*state, "a", "latency", "done"); /* which was sampled */
    write_cost(*state, "b", NULL, "done");
    assert_int_equal(state_of_cost(*state, "a", "b"), PAIR_LOST_B);
}

/* --- what the document says --- */

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

static void test_document(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++)
        check_document(&documents[i]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scene_make, scene_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_metric_is_listed), TEST(test_figures_of_a_stream),
        TEST(test_metrics_that_nobody_lists),          TEST(test_one_metric_of_two_benchmarks),
        TEST(test_a_figure_that_one_side_left_out),    cmocka_unit_test(test_document),
    };

    return cmocka_run_group_tests_name("pairs_metrics", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The report: how launches are combined, which case is a headline and what is said of it, how cases are cut into plots, that no text
 * from a file breaks out, and that an old page stays where a new one cannot be made. */
#include "harness/report/report.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "harness/document/html.h"
#include "harness/document/utf8.h"
#include "harness/text.h"
#include "tests/unit/report_scene.h"

#define TRIAD "triad nt 67108864 DRAM"

static const char *const memory_params[] = {"op", "stores", "size", "level_used", "level", NULL};
static const char *const net_params[] = {"transport", "pattern", "size", "node", NULL};
static const char *const odd_params[] = {"colour", "speed", "depth", NULL};

static const struct report_point *only_point(const struct scene *s)
{
    assert_int_equal(s->r.n_benches, 1);
    assert_int_equal(s->r.benches[0].n_cases, 1);
    return &s->r.benches[0].cases[0].points[0];
}

/* By hand: log 10, 20 and 30 have the mean 2.900799 and the standard deviation 0.5554; t of 2 degrees of freedom, 4.302653 x 0.5554
 * / sqrt(3), is 1.3797. */
static void launches_bear_an_interval(void **state)
{
    static const struct {
        double values[15];
        size_t n;
        double value, low[2], high[2]; /* between which its ends are; 0: there is none */
        double level;                  /* the lower of two; 0: it is one */
    } cases[] = {
        {{30, 10, 20}, 3, 18.171205928, {4.57, 4.58}, {72.2, 72.3}, 0},
        {{10}, 1, 10, {0}, {0}, 0}, /* its own samples say nothing of the next launch */
        {{10.00, 10.01, 10.02, 9.99, 9.98, 10.03, 10.05, 9.97, 10.04, 10.00, 9.96, 10.02, 9.99,
          10.01, 10.03},
         15,
         10.006635569,
         {9.96, 10.01},
         {10.01, 10.05},
         0},
        {{10, 12, 10.001, 12.001, 10.002, 12.002, 10.003, 12.003},
         8,
         10.956733,
         {9.9, 10.9},
         {11, 12.1},
         10},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin(s, false, "memory", memory_params);
        for (size_t k = 0; k < cases[i].n; k++) {
            struct row row = launch_of(s, k + 1, "bandwidth", "GB/s", cases[i].values[k]);

            row.summary.ci_low = row.summary.ci_high = NAN; /* too few samples for one of its own */
            add(s, &row, TRIAD);
        }
        load(s);
        const struct report_point *p = only_point(s);
        bool none = cases[i].low[0] == 0;

        assert_int_equal(p->n_values, cases[i].n);
        assert_true(fabs(p->value / cases[i].value - 1) < (cases[i].level > 0 ? 1e-4 : 1e-6));
        assert_true(none ? isnan(p->low) : p->low >= cases[i].low[0] && p->low <= cases[i].low[1]);
        assert_true(none ? isnan(p->high)
                         : p->high >= cases[i].high[0] && p->high <= cases[i].high[1]);
        assert_int_equal(p->two, cases[i].level > 0 ? TWO_LAUNCHES : TWO_NOT);
        assert_true(!p->two || (fabs(p->levels.low - 10) < 0.01 &&
                                fabs(p->levels.high - 12) < 0.01 && p->levels.share_low == 0.5));
    }
}

/* Levels of samples are told. A wrong launch has none, its few samples take no tail away, and its value is in no median. */
static void wrong_launches_have_no_value(void **state)
{
    static const struct levels two = {
        .two = true, .low = 8, .high = 10, .share_low = 0.3, .share_high = 0.7};
    struct scene *s = *state;

    for (int wrong = 0; wrong < 2; wrong++) {
        begin(s, false, "memory", memory_params);
        for (size_t i = 1; i <= 3; i++) {
            struct row row = launch_of(s, i, "bandwidth", "GB/s", i < 3 ? 10 : 1000);

            row.samples = i < 3 ? 1000 : 10;
            row.summary.p999 = 12;
            row.status = i == 3 && wrong ? "wrong" : "ok";
            row.reason = i == 3 ? "entry 5 differs" : "";
            row.levels = i == 3 ? two : row.levels;
            add(s, &row, TRIAD);
        }
        load(s);
        const struct report_point *p = only_point(s);
        assert_int_equal(p->n_rows, 3);
        assert_int_equal(p->n_values, wrong ? 2 : 3);
        assert_int_equal(p->n_two, wrong ? 0 : 1);
        assert_int_equal(p->two, wrong ? TWO_NOT : TWO_SAMPLES);
        if (wrong) {
            near(p->value, 10);
            near(p->p999, 12);
            assert_string_equal(p->status, "wrong");
            assert_string_equal(p->reason, "entry 5 differs");
        } else {
            near(p->levels.low, 8);
        }
    }
}

#define RANDOM_LOAD "load latency + page walks"

static void write_memory(struct scene *s)
{
    begin(s, true, "memory", memory_params);
    put(s, "bandwidth", 200, 250, NULL, "triad regular 16384 L1");
    put(s, "bandwidth", 20, 250, NULL, "triad nt 16384 L1");
    put(s, "bandwidth", 30, 40, NULL, "triad regular 1048576 DRAM");
    put(s, "bandwidth", 12, 24, NULL, "triad regular 67108864 DRAM");
    put(s, "bandwidth", 18, 24, "noisy", TRIAD);
    put(s, "latency", 1, NAN, NULL, "latency - 16384 L1");
    put(s, "latency", 90, NAN, NULL, "latency b 67108864 DRAM");
    put(s, "latency", 99, NAN, NULL, "latency c 67108864 DRAM");
    put(s, "bandwidth", NAN, NAN, "skipped", "read - 67108864 DRAM");
}

static void headlines_take_the_best_at_the_right_place(void **state)
{
    struct scene *s = *state;

    write_memory(s);
    load(s);
    const struct headline_run *memory = run_of(s, "Memory", "triad DRAM");
    const struct headline_run *latency = run_of(s, "Latency", RANDOM_LOAD);

    near(memory->point->value, 18); /* not the 30 of a smaller size */
    near(memory->point->low, 18 / 1.01);
    near(memory->point->high, 18 * 1.01);
    assert_string_equal(memory->what, "64 MiB, nt");
    assert_int_equal(memory->candidates, 2);
    assert_non_null(strstr(verdict_said(&memory->verdict), "the best of 2 cases"));
    near(run_of(s, "Caches", "triad L1")->point->value, 200);
    near(latency->point->value, 90); /* lower is better, but at the largest size */
    assert_string_equal(latency->what, "64 MiB, b");
    assert_non_null(strstr(s->h.missing, "Matrix core"));
    assert_null(strstr(s->h.missing, "Memory"));
    assert_int_equal(memory->verdict.kind, VERDICT_NORMAL);
    says(s, "Memory", "triad DRAM", "noisy");
    assert_int_equal(verdict_of(s, "Memory", "read DRAM")->kind, VERDICT_NOT_MEASURED);
    assert_int_equal(latency->verdict.kind, VERDICT_NO_LIMIT);
}

/* Below 60 % of the limit is low, as a whole interval; one launch proves neither. */
static void verdicts_of_a_share(void **state)
{
    static const struct {
        double value;
        unsigned launches;
        const char *status;
        enum verdict_kind kind;
        enum tone tone;
        const char *range;
    } cases[] = {
        {6, 3, NULL, VERDICT_LOW, TONE_LOW, NULL},
        {14.2, 3, NULL, VERDICT_LOW, TONE_LOW, NULL},
        {14.3, 3, NULL, VERDICT_UNDECIDED, TONE_NONE, "59 % to 60.2 %"},
        {14.5, 3, NULL, VERDICT_UNDECIDED, TONE_NONE, "59.8 % to 61 %"},
        {14.6, 3, NULL, VERDICT_NORMAL, TONE_NONE, NULL},
        {30, 3, NULL, VERDICT_ABOVE, TONE_LOW, NULL},
        {30, 3, "wrong", VERDICT_WRONG, TONE_BAD, NULL},
        {6, 1, NULL, VERDICT_UNDECIDED, TONE_NONE, NULL},
        {23, 1, NULL, VERDICT_UNDECIDED, TONE_NONE, NULL},
        {30, 1, NULL, VERDICT_ABOVE, TONE_LOW, NULL},
    };

    struct scene *s = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin(s, cases[i].launches > 1, "memory", memory_params);
        put(s, "bandwidth", cases[i].value, 24, cases[i].status, TRIAD);
        load(s);
        const struct headline_run *run = run_of(s, "Memory", "triad DRAM");

        if (run->verdict.kind != cases[i].kind || run->verdict.tone != cases[i].tone)
            fail_msg("%g: %s", cases[i].value, verdict_said(&run->verdict));
        if (cases[i].range)
            assert_string_equal(run->verdict.range, cases[i].range);
        assert_int_equal(run->point->n_values == 0, cases[i].status != NULL);
    }
}

/* Three launches of one case, of which one met the machine in a good state: its ceiling counts. A reference is shown, and not
 * judged. */
static void the_best_ceiling_of_a_run_counts(void **state)
{
    static const double values[] = {69.87, 41.94, 43.75}, limits[] = {97.75, 43.52, 44.30};
    struct scene *s = *state;

    for (int reference = 0; reference < 2; reference++) {
        begin(s, false, "memory", memory_params);
        for (size_t i = 0; i < 3; i++) {
            struct row row = launch_of(s, i + 1, "bandwidth", "GB/s", values[i]);

            row.limit = limits[i];
            row.percent_of_limit = 100 * values[i] / limits[i];
            row.limit_kind = reference ? "reference" : "measured";
            add(s, &row, TRIAD);
        }
        load(s);
        const struct report_point *p = only_point(s);

        near(p->limit, 97.75);
        near(p->percent, 100 * p->value / 97.75);
        assert_int_equal(p->reference, reference);
        assert_int_equal(verdict_of(s, "Memory", "triad DRAM")->kind == VERDICT_NOT_JUDGED,
                         reference);
    }
}

/* Limits that are made of what was found at `loads`, and at `stores` where the share is below 1. By hand: two thirds by loads
 * at 112 and one by stores at 60 GB/s take 2/336 and 1/180 of a second. */
static void ceilings_of_one_place_are_shared(void **state)
{
    static const struct {
        const char *op, *host, *kind;
        double share;
        const char *loads;
        double load;
        const char *stores;
        double store, limit, becomes;
        const char *from;
    } cases[] = {
        {"read", "a", "reference", 1, "here", 73, "", NAN, 73, 112, "op triad, size 2"},
        {"triad", "a", "measured", 2 / 3., "here", 112, "nt", 50, 150, 168, "op write, size 3"},
        {"write", "a", "reference", 0, "", NAN, "nt", 60, 60, 60, ""},
        {"read", "a", "reference", 1, "there", 70, "", NAN, 70, 70, ""},  /* another place */
        {"read", "b", "reference", 1, "here", 71, "", NAN, 71, 71, ""},   /* another machine */
        {"read", "a", "datasheet", 1, "here", 72, "", NAN, 200, 200, ""}, /* is not measured */
        {"triad", "a", "measured", 2 / 3., "here", 80, "odd", NAN, 90, 90, NULL}, /* unknown part */
        {"copy", "a", "measured", 0.5, "here", 80, "far", 10, 20, 23,
         NULL}, /* its like is raised */
        {"copy", "a", "measured", 0.5, "here", 80, "far", 10, 23, 23, NULL},
        {"read", "a", "reference", 1, "there", 700, "", NAN, 700, NAN, NULL}, /* a slip is alone */
    };
    const size_t n = sizeof(cases) / sizeof(*cases);
    struct scene *s = *state;

    begin(s, false, "memory", memory_params);
    for (size_t i = 0; i < n; i++) {
        struct row row = row_of(s, "bandwidth", "GB/s", 10);
        char values[32];

        row.host = cases[i].host;
        row.limit = cases[i].limit;
        row.limit_kind = cases[i].kind;
        if (i == n - 1) { /* noisy, and above the ceiling that was measured */
            row.status = "noisy";
            row.limit_raised_from = 70;
        }
        row.ceiling_place = cases[i].loads;
        row.ceiling = cases[i].load;
        row.ceiling_share = cases[i].share;
        row.ceiling_fill = 0;
        row.ceiling2_place = cases[i].stores;
        row.ceiling2 = cases[i].store;
        snprintf(values, sizeof(values), "%s nt %zu DRAM", cases[i].op, i + 1);
        add(s, &row, values);
    }
    load(s);
    const struct report_bench *b = &s->r.benches[0];

    assert_int_equal(b->n_cases, n);
    for (size_t k = 0; k < n; k++) {
        size_t i = (size_t)atoi(report_param(b, &b->cases[k], "size")) - 1;

        if (!isnan(cases[i].becomes))
            near(b->cases[k].points[0].limit, cases[i].becomes);
        if (cases[i].from)
            assert_string_equal(b->cases[k].points[0].limit_from, cases[i].from);
    }
}

/* Values that follow their own ceilings tell of the machine, and not of what was tested; a ceiling of one launch alone is noted. */
static void ceilings_that_changed_are_told(void **state)
{
    static const struct {
        double values[5], limits[5];
        bool changed;
        const char *median; /* of the ceilings; NULL: they are near */
    } cases[] = {
        {{60, 61, 63, 60, 140}, {80, 81, 83, 80, 175}, true, "81.00 GB/s"},
        {{60, 61, 120, 60, 61}, {80, 81, 83, 80, 175}, false, "81.00 GB/s"},
        {{80, 85, 90, 84, 95}, {100, 106, 112, 105, 119}, false, "106.0 GB/s"},
        {{80, 80, 80, 80, 80}, {87, 82, 86, 85, 164}, false, "86.00 GB/s"},
        {{80, 80, 80, 80, 80}, {87, 82, 86, 85, 94}, false, NULL},
    };

    struct scene *s = *state;

    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        begin(s, false, "memory", memory_params);
        for (size_t i = 0; i < 5; i++) {
            struct row row = launch_of(s, i + 1, "bandwidth", "GB/s", cases[k].values[i]);

            row.limit = row.ceiling = cases[k].limits[i];
            row.limit_kind = "measured";
            row.ceiling_place = "loads";
            row.ceiling_share = 1;
            row.ceiling_fill = 0;
            add(s, &row, TRIAD);
        }
        load(s);
        const struct verdict *v = verdict_of(s, "Memory", "triad DRAM");

        near(only_point(s)->limit, cases[k].limits[4]);
        assert_int_equal(v->machine_changed != NULL, cases[k].changed);
        if (cases[k].changed)
            says(s, "Memory", "triad DRAM", "75 to 80 %|80.00 to 175.0 GB/s");
        else
            says(s, "Memory", "triad DRAM",
                 cases[k].median ? cases[k].median : "!median of the ceilings");
    }
}

/* ---- plots */

/* A benchmark that no rule knows, with so many values of each parameter; `last` rows are left out. */
static void write_odd(struct scene *s, unsigned colours, unsigned depths, unsigned speeds,
                      unsigned last)
{
    begin(s, false, "odd", odd_params);
    for (unsigned i = 0; i < colours * depths * speeds - last; i++) {
        unsigned colour = i / speeds % colours, speed = 1u << i % speeds;
        struct row row = row_of(s, "pace", "furlong/s", speed + colour);
        char values[64];

        row.origin = colours == 3 ? "simulated" : "measured";
        snprintf(values, sizeof(values), "c%u %u %u", colour, speed, i / speeds / colours + 1);
        add(s, &row, values);
    }
    load(s);
}

static void an_unknown_benchmark_is_reported(void **state)
{
    struct scene *s = *state;

    write_odd(s, 3, 2, 5, 0);
    const struct plot *plot = &s->figures.all[0].plot;

    near(run_of(s, "odd", "pace")->point->value, 18);
    assert_int_equal(verdict_of(s, "odd", "pace")->kind, VERDICT_OTHER_ORIGIN);
    assert_int_equal(s->figures.n, 1);
    assert_int_equal(plot->n_lines, 6);
    assert_string_equal(plot->x_label, "speed");
    assert_string_equal(plot->y_label, "pace (furlong/s)");
    assert_string_equal(plot->lines[5].label, "c2, depth 2 (simulated)");
    assert_int_equal(plot->lines[0].n, 5);
    near(plot->lines[0].points[4].x, 16);
    near(plot->lines[5].points[4].y, 18);
    assert_true(isnan(plot->lines[5].points[4].high)); /* of a single launch */
    assert_true(plot->x_log);
}

/* 13 lines and more are too many for one plot: the parameter with the fewest values makes plots, but none of a
 * case alone. */
static void too_many_lines_become_plots(void **state)
{
    struct scene *s = *state;

    write_odd(s, 12, 2, 4, 0);
    assert_int_equal(s->figures.n, 2);
    assert_string_equal(s->figures.all[0].subtitle, "depth 1");
    assert_int_equal(s->figures.all[1].plot.n_lines, 12);
    assert_string_equal(s->figures.all[1].plot.name, "odd-pace-2");
    write_odd(s, 12, 2, 4, 12 * 4 - 1);
    assert_int_equal(s->figures.n, 1);
    assert_int_equal(s->figures.all[0].plot.n_lines, 12);
}

/* What is 0 in all cases is no plot; a missing value breaks a line. */
static void what_a_line_says_is_no_plot(void **state)
{
    struct scene *s = *state;

    begin(s, false, "net", net_params);
    put(s, "latency", 8, NAN, NULL, "tcp latency 8 near");
    put(s, "latency", NAN, NAN, "failed", "tcp latency 64 near");
    put(s, "latency", 9, NAN, NULL, "tcp latency 65536 near");
    put(s, "latency", 9, NAN, NULL, "tcp latency 131072 near");
    put(s, "retransmits", 0, NAN, NULL, "tcp latency 8 near");
    put(s, "retransmits", 0, NAN, NULL, "tcp latency 64 near");
    put(s, "losses", 0, NAN, NULL, "tcp latency 8 near");
    put(s, "losses", 1, NAN, NULL, "tcp latency 64 near");
    load(s);
    assert_int_equal(s->figures.n, 2);
    assert_string_equal(s->figures.all[0].plot.name, "net-latency");
    assert_string_equal(s->figures.all[0].plot.ticks[2].label, "64K");
    assert_int_equal(s->figures.all[0].plot.lines[0].n, 4);
    assert_int_equal(s->figures.n_undrawn, 1);
    assert_string_equal(s->figures.undrawn[0].c->metric, "retransmits");
    assert_true(isnan(s->figures.all[0].plot.lines[0].points[1].y));
    assert_string_equal(s->figures.all[1].plot.name, "net-losses");
}

static void square_products_have_an_axis_and_shapes_a_list(void **state)
{
    static const char *const params[] = {"dtype", "library", "m", "n", "k", NULL};
    static const char *const shapes[] = {"512 512 512",    "1024 1024 1024", "2048 2048 2048",
                                         "4096 4096 4096", "512 2304 768",   "512 768 3072"};
    struct scene *s = *state;

    begin(s, false, "gemm", params);
    for (int i = 0; i < 12; i++) {
        char values[64];

        snprintf(values, sizeof(values), "%s onednn %s", i < 6 ? "f32" : "f64", shapes[i % 6]);
        put(s, "throughput", 0.1 * (i + 1), NAN, NULL, values);
    }
    load(s);
    const struct plot *square = &s->figures.all[0].plot, *list = &s->figures.all[1].plot;

    assert_int_equal(s->figures.n, 2);
    assert_string_equal(square->x_label, "m = n = k");
    assert_int_equal(square->n_lines, 2);
    assert_int_equal(square->lines[0].n, 4);
    assert_true(list->categories);
    assert_string_equal(list->ticks[0].label, "512x768x3072, f32");
    assert_string_equal(run_of(s, "Matrix core", "GEMM f32")->what, "512x768x3072");
    near(run_of(s, "Matrix core", "GEMM f64")->point->value, 1.2);
}

/* Three values of x make no line: bars, type by type, each with its limit. */
static void few_points_are_bars(void **state)
{
    static const char *const params[] = {"dtype", "library", "m", "n", "k", NULL};
    struct scene *s = *state;

    begin(s, false, "gemm", params);
    for (int i = 0; i < 6; i++) {
        char values[64];

        snprintf(values, sizeof(values), "%s onednn %d %d %d", i % 2 ? "f64" : "f32", 512 << i / 2,
                 512 << i / 2, 512 << i / 2);
        put(s, "throughput", i % 2 ? 200 : 400, i % 2 ? 250 : 500, NULL, values);
    }
    load(s);
    const struct plot *bars = &s->figures.all[0].plot;

    assert_int_equal(s->figures.n, 1);
    assert_true(bars->categories && bars->y_from_zero);
    assert_int_equal(bars->n_ticks, 6);
    assert_string_equal(bars->ticks[1].label, "f32, 1024");
    assert_string_equal(bars->ticks[3].label, "f64, 512");
    near(bars->rows[3].limit, 250);
    near(bars->y_top, 500);
}

/* Of 16 pairs of NUMA nodes that are much alike, three are drawn, the worst among them. */
static void pairs_of_nodes_are_grouped(void **state)
{
    static const char *const params[] = {"source", "destination", "size", NULL};
    struct scene *s = *state;

    begin(s, false, "copy", params);
    for (int i = 0; i < 16; i++) {
        char values[64];

        snprintf(values, sizeof(values), "node%d node%d 1048576", i / 4, i % 4);
        put(s, "bandwidth", i == 6 ? 4 : 10 + 0.01 * i, NAN, NULL, values);
    }
    load(s);
    const struct plot *bars = &s->figures.all[0].plot;
    bool has_worst = false;

    assert_int_equal(bars->n_ticks, 3);
    for (size_t i = 0; i < bars->n_ticks; i++)
        has_worst = has_worst || bars->lines[0].points[i].y == 4;
    assert_true(has_worst);
    assert_non_null(strstr(s->figures.all[0].note, "16 pairs"));
}

/* "cores" beyond those of the machine, and more than all of it, are no part of an interval. */
static void intervals_end_at_what_is_possible(void **state)
{
    struct scene *s = *state;

    begin(s, false, "net", net_params);
    for (int i = 0; i < 6; i++) {
        struct row row = row_of(s, "busy", "percent", i % 2 ? 99 : 20);

        add(s, &row, i < 3 ? "tcp latency 8 near" : "tcp latency 64 near");
    }
    load(s);
    const struct plot_point *points = s->figures.all[0].plot.lines[0].points;

    near(points[0].high, 100);
    assert_true(points[0].low >= 0);
}

/* A machine with less memory was measured at a smaller size: its own largest is what counts. */
static void runs_stand_side_by_side(void **state)
{
    struct scene *s = *state, other = {0};
    struct report r;
    struct headlines h;
    char error[512] = "";

    fake_run_init(&other.f);
    begin(&other, true, "memory", memory_params);
    put(&other, "bandwidth", 20, 24, NULL, "triad nt 1048576 DRAM");
    put(&other, "bandwidth", 6, 24, NULL, "triad nt 33554432 DRAM");
    load(&other);
    write_memory(s);
    load(s);
    const char *paths[] = {s->f.path, other.f.path};
    assert_int_equal(report_load(&r, paths, 2, error, sizeof(error)), 0);
    headlines_make(&r, &h);
    assert_string_equal(r.names[0], "one");
    assert_string_equal(r.names[1], "one (2)");
    for (size_t i = 0; i < h.n; i++) {
        const struct headline_run *runs = h.all[i].runs;

        if (!strcmp(h.all[i].pipe, "Memory") && !strcmp(h.all[i].label, "triad DRAM")) {
            near(runs[0].point->value, 18);
            near(runs[1].point->value, 6); /* not the 20 of a smaller size */
            assert_int_equal(runs[1].candidates, 1);
            assert_int_equal(runs[1].verdict.kind, VERDICT_LOW);
        } else {
            assert_null(runs[1].best);
            assert_int_equal(runs[1].verdict.kind, VERDICT_NOT_MEASURED);
        }
    }
    report_release(&r);
    report_release(&other.r);
    fake_run_release(&other.f);
}

static void put_sum(struct scene *s, double us, const char *values)
{
    struct row row = row_of(s, "time", "us", us);

    row.status = isnan(us) ? "failed" : "ok";
    row.reason = isnan(us) ? "a reason" : "";
    add(s, &row, values);
}

/* Of a run: values of the backends ring, doubling and auto; NAN: that one failed. */
static void the_latency_of_an_allreduce_is_that_of_auto(void **state)
{
    static const char *const params[] = {"backend", "transport", "op", "size", "ranks", NULL};
    static const struct {
        double ring, doubling, chosen;
        const char *backend;
        double value;
    } cases[] = {{0.9, 0.4, 0.5, "auto", 0.5},
                 {0.9, 0.4, NAN, "doubling", 0.4}, /* it gave no value: the best of the others */
                 {0.9, 0.4, 0, "doubling", 0.4}};  /* it is not in the run */
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin(s, false, "allreduce", params);
        put_sum(s, cases[i].ring, "ring shm allreduce 8 2");
        put_sum(s, cases[i].doubling, "doubling shm allreduce 8 2");
        put_sum(s, 0.1, "auto shm allreduce 8 1");
        if (isnan(cases[i].chosen) || cases[i].chosen > 0)
            put_sum(s, cases[i].chosen, "auto shm allreduce 8 2");
        load(s);
        const struct headline_run *found = run_of(s, "Allreduce latency", "allreduce shm");

        near(found->point->value, cases[i].value);
        assert_string_equal(report_param(&s->r.benches[0], found->best, "backend"),
                            cases[i].backend);
    }
}

/* A launch that died says no metric: which headlines it belongs to follows from its parameters. */
static void a_failed_launch_is_in_the_headlines_of_its_own_kind(void **state)
{
    static const char *const own[][3] = {
        {"tcp bandwidth 64", "Network", "tcp"},
        {"tcp latency 64", "Network latency", "latency tcp"},
        {"tcp loaded-latency 64", "Network latency", "latency under load, tcp"},
        {"tcp rate 64", "Network rate", "message rate tcp"}};
    struct scene *s = *state;

    for (size_t i = 0; i < 4; i++) {
        begin(s, false, "net", net_params);
        put(s, "", NAN, NAN, "failed", own[i][0]);
        load(s);
        assert_int_equal(s->h.n, 1);
        assert_int_equal(verdict_of(s, own[i][1], own[i][2])->kind, VERDICT_FAILED);
    }
}

/* A machine that does not tell its caches: they were measured, and it is not known which is which. */
static void rows_without_a_headline_are_not_told_as_missing(void **state)
{
    struct scene *s = *state;

    begin(s, false, "memory", memory_params);
    put(s, "bandwidth", 18, NAN, NULL, "triad regular 65536");
    load(s);
    assert_string_equal(s->h.missing, "Matrix core, Copies");
    assert_string_equal(s->h.unheaded, "Caches, Latency");
}

/* ---- the page */

static char *read_page(const struct fake_run *f)
{
    struct buffer text = {0};
    char path[300];

    snprintf(path, sizeof(path), "%s/report.html", f->path);
    assert_int_equal(file_read(path, 64u << 20, &text), 0);
    return text.text;
}

static int make_page(const struct fake_run *f, char *error, size_t len)
{
    const char *paths[] = {f->path};

    return report_make(paths, 1, NULL, NULL, false, error, len);
}

#define HOSTILE "</script><script>alert(1)</script>\"'`touch /tmp/plumb-test-pwned`<img src=x>&"

/* Texts that try to be markup, script, or a shell command. */
static void no_text_breaks_out(void **state)
{
    struct scene *s = *state;
    char error[512] = "";
    size_t scripts = 0;

    begin(s, false, "odd", odd_params);
    for (int i = 0; i < 6; i++) {
        struct row row = row_of(s, "'; system('touch /tmp/plumb-test-pwned'); '", "<u>", i + 1);
        char values[32];

        row.reason = row.host = row.disturbed = HOSTILE "\x1b[31m\xff\xfe";
        row.status = i == 4 ? "failed" : "ok";
        snprintf(values, sizeof(values), "%s %d 1", i % 2 ? "<img/src=x>" : "plain", i / 2);
        add(s, &row, values);
    }
    fake_run_write(&s->f, "run.json",
                   "{\"schema\": 3, \"run\": \"</title><script>alert(3)</script>\", \"machine\": "
                   "{\"host\": {\"hostname\": \"<img src=x>\", \"clocksource\": "
                   "\"<script>alert(4)</script>\"}}, "
                   "\"command\": [\"plumb\", \"run\", \"a'b`c\"], \"config\": \"</pre><script>\"}");
    load(s);
    unlink("/tmp/plumb-test-pwned");
    assert_int_equal(make_page(&s->f, error, sizeof(error)), 0);
    char *page = read_page(&s->f);
    assert_int_not_equal(access("/tmp/plumb-test-pwned", F_OK), 0);
    for (const char *at = page; (at = strstr(at, "<script")); at++)
        scripts++;
    assert_int_equal(scripts, 2); /* the data and the program */
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "\x1b"));
    assert_null(strstr(page, "\xff"));
    assert_non_null(strstr(page, "plumb run &#39;a&#39;\\&#39;&#39;b`c&#39;"));
    free(page);
}

/* Neither a file that may not grow beyond 4000 bytes nor damaged rows take the old page away. */
static void an_old_page_stays_when_a_new_one_cannot_be_made(void **state)
{
    struct scene *s = *state;
    struct rlimit old, small;
    char error[512] = "";

    write_memory(s);
    load(s);
    fake_run_write(&s->f, "report.html", "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){4000, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int err = make_page(&s->f, error, sizeof(error));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(err, -EIO);
    assert_non_null(strstr(error, strerror(EFBIG)));
    fake_run_append(&s->f, "memory.csv", "torn,row\n");
    assert_int_equal(make_page(&s->f, error, sizeof(error)), -EBADMSG);
    assert_non_null(strstr(error, "memory.csv"));
    char *page = read_page(&s->f);
    assert_string_equal(page, "old");
    free(page);
}

static void escapes_texts(void **state)
{
    static const struct {
        void (*write)(FILE *, const char *);
        const char *text, *escaped;
    } cases[] = {
        {html_text, "a<b>&\"'c", "a&#60;b&#62;&#38;&#34;&#39;c"},
        {html_text, "caf\xc3\xa9\n\x01\xc2\x85", "caf\xc3\xa9   "},
        {html_text, "\xff\xc0", UTF8_REPLACEMENT UTF8_REPLACEMENT},
        {html_json_string, "</script>\\\"&", "\"\\u003c/script\\u003e\\u005c\\u0022\\u0026\""}};
    static const struct {
        const char *text;
        size_t length;
    } characters[] = {{"a", 1},
                      {"", 0},
                      {"\xc3\xa9", 2},
                      {"\xe2\x82\xac", 3},
                      {"\xf0\x9f\x98\x80", 4},
                      {"\xc1\xbf", 0},
                      {"\xe0\x9f\xbf", 0}, /* overlong */
                      {"\xed\xa0\x80", 0},
                      {"\xf4\x90\x80\x80", 0}, /* a surrogate, and over 10FFFF */
                      {"\xe2\x82", 0},
                      {"\x80", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *result = NULL;
        size_t size;
        FILE *out = open_memstream(&result, &size);

        cases[i].write(out, cases[i].text);
        fclose(out);
        assert_string_equal(result, cases[i].escaped);
        free(result);
    }
    for (size_t i = 0; i < sizeof(characters) / sizeof(*characters); i++)
        assert_int_equal(utf8_length(characters[i].text), characters[i].length);
}

static void shows_numbers(void **state)
{
    static const struct {
        double value;
        const char *number, *percent;
    } cases[] = {{NAN, "", ""},
                 {0.012345, "0.01235", "0.012 %"},
                 {9.94, NULL, "9.9 %"},
                 {123.456, "123.5", NULL},
                 {123456, "123456", "123456 %"},
                 {1.5e9, "1.5e+09", NULL},
                 {-12.3456, "-12.35", NULL},
                 {999.6, NULL, "1000 %"},
                 {999.4, NULL, "999 %"},
                 {0.4321, NULL, "0.43 %"}};
    struct pool pool = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (cases[i].number)
            assert_string_equal(document_number(&pool, cases[i].value), cases[i].number);
        if (cases[i].percent)
            assert_string_equal(document_percent(&pool, cases[i].value), cases[i].percent);
    }
    pool_release(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(launches_bear_an_interval),
                                       TEST(wrong_launches_have_no_value),
                                       TEST(headlines_take_the_best_at_the_right_place),
                                       TEST(verdicts_of_a_share),
                                       TEST(the_best_ceiling_of_a_run_counts),
                                       TEST(ceilings_of_one_place_are_shared),
                                       TEST(ceilings_that_changed_are_told),
                                       TEST(an_unknown_benchmark_is_reported),
                                       TEST(too_many_lines_become_plots),
                                       TEST(what_a_line_says_is_no_plot),
                                       TEST(square_products_have_an_axis_and_shapes_a_list),
                                       TEST(few_points_are_bars),
                                       TEST(pairs_of_nodes_are_grouped),
                                       TEST(intervals_end_at_what_is_possible),
                                       TEST(runs_stand_side_by_side),
                                       TEST(the_latency_of_an_allreduce_is_that_of_auto),
                                       TEST(a_failed_launch_is_in_the_headlines_of_its_own_kind),
                                       TEST(rows_without_a_headline_are_not_told_as_missing),
                                       TEST(no_text_breaks_out),
                                       TEST(an_old_page_stays_when_a_new_one_cannot_be_made),
                                       TEST(escapes_texts),
                                       TEST(shows_numbers)};

    return cmocka_run_group_tests(tests, told_ask, told_forget);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Charts: what is drawn is held against the data by tests/tools/check-plot.py. */
#include "harness/document/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/text.h"

#define POINTS 61

static void write_data_line(FILE *out, const struct plot_line *line)
{
    fprintf(out, "{\"plain\":%d,\"apart\":%d,\"points\":[", line->plain, line->apart);
    for (size_t i = 0; i < line->n; i++) {
        const double *at = (const double *)&line->points[i];

        for (int k = 0; k < 4; k++) {
            fputs(k ? "," : i ? ",[" : "[", out);
            fprintf(out, isnan(at[k]) ? "null" : isinf(at[k]) ? "1e999" : "%.17g", at[k]);
        }
        fputc(']', out);
    }
    fputs("]}", out);
}

static void write_data(FILE *out, const struct plot *plot)
{
    fprintf(out,
            "{\"kind\":\"%s\",\"x_log\":%d,\"y_log\":%d,\"x_bytes\":%d,\"from_zero\":%d,"
            "\"title\":\"%s\",\"x_label\":\"%s\",\"y_label\":\"%s\",",
            plot->categories ? "rows" : "lines", plot->x_log, plot->y_log, plot->x_bytes,
            plot->y_from_zero, plot->title, plot->x_label, plot->y_label);
    if (plot->shown_high > 0)
        fprintf(out, "\"shown\":[%g,%g],", plot->shown_low, plot->shown_high);
    else
        fputs("\"shown\":null,", out);
    fputs("\"ticks\":[", out);
    for (size_t i = 0; i < plot->n_ticks; i++)
        fprintf(out, "%s[%.17g,\"%s\"]", i ? "," : "", plot->ticks[i].at, plot->ticks[i].label);
    fputs("],\"lines\":[", out);
    for (size_t i = 0; i < plot->n_lines; i++) {
        fputs(i ? "," : "", out);
        write_data_line(out, &plot->lines[i]);
    }
    fputs("]}\n", out);
}

/* The charts of a test, which are checked together at its end. */
static char folder[] = "/tmp/plumb-plot.XXXXXX";
static unsigned charts;

static int open_folder(void **state)
{
    (void)state;
    charts = 0;
    strcpy(folder, "/tmp/plumb-plot.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static FILE *open_chart(const struct plot *plot, const char *kind)
{
    char path[128];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%02u-%s.%s", folder, charts, plot->name, kind);
    assert_non_null(out = fopen(path, "we"));
    return out;
}

static void check(const struct plot *plot)
{
    struct pool pool = {0};

    for (int narrow = 0; narrow < 2; narrow++, charts++) {
        FILE *out = open_chart(plot, "svg");

        plot_write_svg(&pool, plot, narrow, out);
        assert_int_equal(fclose(out), 0);
        out = open_chart(plot, "json");
        write_data(out, plot);
        assert_int_equal(fclose(out), 0);
    }
    pool_release(&pool);
}

/* As a person does; where there is no Python, the charts are drawn alone. */
static int read_charts(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "python3 tests/tools/check-plot.py %s", folder);
    int wrong = !system("python3 -c 1 2>/dev/null") && system(command);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command) || wrong ? -1 : 0;
}

struct series {
    struct plot_point points[3][POINTS];
    struct plot_tick ticks[POINTS];
    char labels[POINTS][24];
    struct plot_line lines[3];
    struct plot plot;
};

/* Three lines of n points, over sizes that double in three steps, each with its interval. */
static struct series *make_series(size_t n, const char *name)
{
    struct series *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    for (size_t i = 0; i < n; i++) {
        double x = 65536 * pow(2, (double)i * 16 / (double)n);

        snprintf(s->labels[i], sizeof(s->labels[i]), "%.0fK", x / 1024);
        s->ticks[i] = (struct plot_tick){x, s->labels[i]};
        for (size_t k = 0; k < 3; k++) {
            double y = (double)(k + 1) * 20 * (1 + 0.5 * sin((double)i / 9));

            s->points[k][i] = (struct plot_point){x, y, y * 0.95, y * 1.08};
        }
    }
    for (size_t k = 0; k < 3; k++)
        s->lines[k] = (struct plot_line){
            .label = "a line", .points = s->points[k], .n = n, .colour = k, .marker = k};
    s->plot = (struct plot){.name = name,
                            .title = "memory bandwidth",
                            .x_label = "size (bytes)",
                            .y_label = "bandwidth (GB/s)",
                            .x_log = true,
                            .y_from_zero = true,
                            .ticks = s->ticks,
                            .n_ticks = n,
                            .lines = s->lines,
                            .n_lines = 3};
    return s;
}

static void points_are_where_they_must_be(void **state)
{
    static const size_t sizes[] = {1, 2, 60, 61};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct series *s = make_series(sizes[i], "lines");

        if (sizes[i] > 1)
            check(&s->plot);
        s->plot.x_bytes = true;
        if (sizes[i] > 1)
            check(&s->plot);
        s->lines[2].dashed = s->lines[1].apart = s->lines[0].plain = true;
        s->plot.y_from_zero = false;
        s->plot.y_log = true;
        s->points[0][sizes[i] / 2].y = NAN;
        s->points[2][sizes[i] / 2].low = NAN;
        if (sizes[i] > 1)
            check(&s->plot);
        free(s);
    }
}

/* What ends beyond the frame has an arrow there, of bars and of a band; so has an end without a bound. */
static void ends_beyond_the_frame_have_arrows(void **state)
{
    static const size_t sizes[] = {20, 61};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
        struct series *s = make_series(sizes[i / 2], "beyond");

        s->plot.shown_low = i % 2 ? 5 : 0;
        s->plot.shown_high = 100;
        s->plot.y_log = i % 2;
        s->plot.y_from_zero = !s->plot.y_log;
        s->points[0][3].low = s->plot.y_log ? 1 : -1;
        s->points[1][3].high = 101;
        s->points[1][7].high = INFINITY;
        s->points[2][3] = (struct plot_point){s->points[2][3].x, 99, 98.9, 500};
        check(&s->plot);
        free(s);
    }
}

/* Labels have room at any size of values; and an axis is not cut into steps of rounding. */
static void labels_have_room(void **state)
{
    static const double scales[] = {1e-7, 12345, 7e9};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(scales) / sizeof(*scales); i++) {
        size_t points = i % 2 ? 9 : 40;
        struct series *s = make_series(points, "values");
        double y = scales[i / 2];

        for (size_t k = 0; k < 3; k++)
            for (size_t n = 0; n < points; n++) {
                struct plot_point *p = &s->points[k][n];
                double x = p->x;

                *p = i % 2 ? (struct plot_point){x, y, y, nextafter(y, INFINITY)}
                           : (struct plot_point){x, p->y * y, p->low * y, p->high * y};
            }
        s->plot.y_from_zero = i % 2 == 0;
        if (i > 2 && i % 2 == 0) {
            s->plot.n_ticks = 0; /* round numbers in place of the data's */
            s->plot.x_log = false;
        }
        check(&s->plot);
        free(s);
    }
}

/* Limits and caches that stand close, at both ends, and with long labels. */
static void labels_of_marks_have_room(void **state)
{
    struct plot_mark marks[24] = {{0}};
    struct series *s = make_series(17, "marks");

    (void)state;
    for (size_t i = 0; i < 24; i++) {
        bool level = i % 4 == 3;

        marks[i] =
            (struct plot_mark){.at = level ? 80 + (double)i : s->ticks[0].at * (1 + (double)i),
                               .horizontal = level,
                               .from = NAN,
                               .to = NAN,
                               .label = level ? "limit 96.5 GB/s" : "L2 12x256K",
                               .brief = level ? "limit 96.5" : "L2"};
    }
    s->plot.marks = marks;
    s->plot.n_marks = 24;
    s->plot.y_top = 130;
    check(&s->plot);
    free(s);
}

#define ROWS 7

/* Ratios around 1, one far out, as a forest; then other labels and two lines. */
static void rows_are_where_they_must_be(void **state)
{
    static const char *const names[ROWS] = {
        "triad, 1G", "copy", "latency", "gemm f32", "rtt", "allreduce, 64 MiB, 8 ranks", "tcp"};
    struct plot_point points[ROWS], again[ROWS];
    struct plot_tick ticks[ROWS];
    struct plot_row rows[ROWS];
    struct plot_mark same = {
        .at = 1, .horizontal = true, .from = NAN, .to = NAN, .label = "same", .brief = "same"};
    struct plot_line lines[] = {{.label = "A", .points = points, .n = ROWS},
                                {.label = "B", .points = again, .n = ROWS, .colour = 1}};
    struct plot plot = {.name = "forest",
                        .title = "B against A",
                        .x_label = "change of the value",
                        .y_label = "",
                        .categories = true,
                        .ratio = true,
                        .y_log = true,
                        .ticks = ticks,
                        .n_ticks = ROWS,
                        .rows = rows,
                        .lines = lines,
                        .n_lines = 1,
                        .marks = &same,
                        .n_marks = 1,
                        .band_low = 0.95,
                        .band_high = 1.05,
                        .shown_low = 0.7,
                        .shown_high = 1.3};

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        double y = 0.75 + 0.05 * (double)i;

        points[i] = (struct plot_point){(double)i, y, y * 0.9, y * 1.1};
        again[i] = (struct plot_point){(double)i, y * 1.02, NAN, NAN};
        ticks[i] = (struct plot_tick){(double)i, names[i]};
        rows[i] = (struct plot_row){.note = i % 2 ? "-3.2 %, worse" : "+1.1 %, equivalent",
                                    .tone = i % 2 ? TONE_BAD : TONE_NONE};
    }
    points[3] = (struct plot_point){3, 0.5, 0.4, 1.5};
    points[4].low = 0;
    points[6].high = INFINITY;
    points[5].y = NAN;
    check(&plot);
    plot.name = "ratios";
    plot.shown_low = plot.shown_high = 0;
    points[4].low = points[6].high = NAN;
    points[3] = (struct plot_point){3, 0.05, 0.02, 21};
    check(&plot);
    points[3] = points[2];
    points[3].x = 3;
    plot = (struct plot){.name = "two-runs",
                         .title = "two runs",
                         .x_label = "bandwidth (GB/s)",
                         .y_label = "",
                         .categories = true,
                         .ticks = ticks,
                         .n_ticks = ROWS,
                         .lines = lines,
                         .n_lines = 2};
    check(&plot);
    plot.name = "bars";
    plot.title = "bandwidth (GB/s): of two runs";
    plot.y_from_zero = true;
    check(&plot);
    plot.n_lines = 1;
    ticks[2].label =
        "a name that is much longer than any axis of a chart on any screen has room for it";
    plot.name = "long-names";
    check(&plot);
}

/* Nothing to draw, and values that no axis has. */
static void empty_charts_are_whole(void **state)
{
    struct plot_point points[] = {{1, NAN, NAN, NAN}, {0, 5, NAN, NAN}, {2, -1, NAN, NAN}};
    struct plot_line line = {.label = "", .points = points, .n = 3};
    struct plot plot = {
        .name = "n", .title = "t", .x_label = "x", .y_label = "y", .x_log = true, .y_log = true};
    struct pool pool = {0};

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        assert_non_null(out);
        plot.lines = &line;
        plot.n_lines = n;
        plot_write_html(&pool, &plot, out);
        fclose(out);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        assert_non_null(strstr(text, "</svg>"));
        free(text);
    }
    pool_release(&pool);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_folder, read_charts)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(points_are_where_they_must_be),
                                       TEST(ends_beyond_the_frame_have_arrows),
                                       TEST(labels_have_room),
                                       TEST(labels_of_marks_have_room),
                                       TEST(rows_are_where_they_must_be),
                                       cmocka_unit_test(empty_charts_are_whole)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

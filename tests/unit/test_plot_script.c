/* SPDX-License-Identifier: Apache-2.0 */
/* The script that draws plots: labels of an axis have room beside each other. */
#include "harness/report/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DIGIT     7.5 /* pixels, of a picture on a page */
#define DIGIT_PNG 16

static char *script_of(const struct plot *plot)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    plot_script_write(out, plot, 1);
    fclose(out);
    return text;
}

/* The next picture of the script: its width, and what its axis of x is told. Where it was found, or NULL. */
static const char *next_picture(const char *at, unsigned *width, bool *png, const char **ticks)
{
    at = strstr(at, "set terminal ");
    if (!at)
        return NULL;
    *png = !strncmp(at, "set terminal png", strlen("set terminal png"));
    assert_int_equal(sscanf(strstr(at, " size "), " size %u", width), 1);
    *ticks = strstr(at, "set xtics nomirror ") + strlen("set xtics nomirror ");
    return *ticks;
}

static void check_values(double top)
{
    struct plot_point points[] = {{0, top, NAN, NAN}, {1, top / 3, top / 4, top / 2}};
    struct plot_line line = {.label = "a line", .points = points, .n = 2};
    struct plot_tick names[] = {{0, "one"}, {1, "two"}};
    struct plot plot = {.name = "n",
                        .title = "t",
                        .x_label = "x",
                        .y_label = "y",
                        .categories = true,
                        .y_from_zero = true,
                        .ticks = names,
                        .n_ticks = 2,
                        .lines = &line,
                        .n_lines = 1};
    char *script = script_of(&plot), longest[32];
    const char *at = script, *ticks;
    unsigned width, pictures = 0;
    bool png;
    int n = snprintf(longest, sizeof(longest), "%g", top);

    for (; (at = next_picture(at, &width, &png, &ticks)) != NULL; pictures++) {
        double step = strtod(ticks, NULL), digit = png ? DIGIT_PNG : DIGIT;
        if (!(step > 0) || top / step * (n + 1) * digit > 0.75 * width || top / step < 1)
            fail_msg("up to %g in steps of %g, on %u", top, step, width);
    }
    assert_int_equal(pictures, 2);
    free(script);
}

static void test_labels_of_values_have_room(void **state)
{
    static const double tops[] = {0.02, 3, 9, 900, 14000, 95000, 123456, 999999, 5e9};

    (void)state;
    for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++)
        check_values(tops[i]);
}

static void test_labels_of_x_have_room(void **state)
{
    struct plot_point points[40];
    struct plot_tick ticks[40];
    char labels[40][16];
    struct plot_line line = {.label = "a line", .points = points, .n = 40};
    struct plot plot = {.name = "n",
                        .title = "t",
                        .x_label = "x",
                        .y_label = "y",
                        .ticks = ticks,
                        .n_ticks = 40,
                        .lines = &line,
                        .n_lines = 1};

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        double x = 1000000 + 25000.0 * (double)i;
        snprintf(labels[i], sizeof(labels[i]), "%.0f", x);
        points[i] = (struct plot_point){x, 1, NAN, NAN};
        ticks[i] = (struct plot_tick){x, labels[i]};
    }
    char *script = script_of(&plot);
    const char *at = script, *list;
    unsigned width;
    bool png;
    while ((at = next_picture(at, &width, &png, &list)) != NULL) {
        unsigned n = 1;
        for (const char *c = list; *c != '\n'; c++)
            n += *c == ',';
        if (n < 3 || (n - 1) * 8 * (png ? DIGIT_PNG : DIGIT) > 0.75 * width)
            fail_msg("%u labels of 7 digits on %u", n, width);
    }
    free(script);
}

/* gnuplot cuts a title that is wider than the picture: each line of a long one has room. */
static void test_long_titles_have_lines(void **state)
{
    static const char title[] =
        "memory bandwidth: device host, op triad, dtype f64, stores nt, pages thp, threads 2, node "
        "any, memory_node local, isa avx512, vector 64, interleave off, samples 4096 "
        "\xc3\xa9t\xc3\xa9";
    struct plot_point point = {1, 2, NAN, NAN};
    struct plot_line line = {.label = "a line", .points = &point, .n = 1};
    struct plot plot = {
        .name = "n", .title = title, .x_label = "x", .y_label = "y", .lines = &line, .n_lines = 1};
    char *script = script_of(&plot), joined[sizeof(title)] = "";
    size_t i = 0;

    (void)state;
    while (script[i] && strncmp(script + i, "set title ", 10) != 0)
        i++;
    assert_int_equal(script[i], 's');
    for (i += strlen("set title "); script[i] == '\'';) {
        size_t n = strcspn(script + i + 1, "'");

        if (n * DIGIT > 800)
            fail_msg("%zu characters in a line", n);
        assert_true(strlen(joined) + n < sizeof(joined));
        strncat(joined, script + i + 1, n);
        i += n + 2;
        i += strncmp(script + i, ".\"\\n\".", 6) ? 0 : 6;
    }
    assert_string_equal(joined, title);
    free(script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_of_values_have_room),
        cmocka_unit_test(test_labels_of_x_have_room),
        cmocka_unit_test(test_long_titles_have_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals in characters: see forest.h. */
#include "harness/compare/forest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BAND_SHARE 0.06 /* of the axis, that the margin has at least: else the band is not seen */
#define AIR        0.02 /* of the axis, at each end */

enum glyph { EMPTY, BAND, ONE, LINE, LINE_WITHIN, POINT, BELOW, ABOVE, GLYPHS };

static const char *const glyphs_utf8[GLYPHS] = {" ",
                                                "\xe2\x96\x91",
                                                "\xe2\x94\x82",
                                                "\xe2\x94\x80",
                                                "\xe2\x95\x90",
                                                "\xe2\x97\x8f",
                                                "\xe2\x97\x80",
                                                "\xe2\x96\xb6"};
static const char *const glyphs_ascii[GLYPHS] = {" ", ".", "|", "-", "=", "o", "<", ">"};

bool forest_locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static void reach(struct view_axis *axis, double ratio)
{
    if (!isfinite(ratio) || ratio <= 0)
        return;
    axis->low = ratio < axis->low ? ratio : axis->low;
    axis->high = ratio > axis->high ? ratio : axis->high;
}

/* The band would be a hair where one case lost nearly all: then that case's bar ends in an arrow. */
static void bound(struct view_axis *axis, double margin)
{
    double widest = -2 * log(1 - margin) / BAND_SHARE;
    double least = exp(-0.75 * widest), most = exp(0.75 * widest);

    axis->low = axis->low < least ? least : axis->low;
    axis->high = axis->high > most ? most : axis->high;
    if (log(axis->high / axis->low) > widest) /* both ways far: half the axis each */
        *axis = (struct view_axis){.low = fmax(axis->low, exp(-0.5 * widest)),
                                   .high = fmin(axis->high, exp(0.5 * widest))};
}

/* So that a point at the end of the axis is seen whole. */
static void add_air(struct view_axis *axis)
{
    double air = pow(axis->high / axis->low, AIR);

    axis->low /= air;
    axis->high *= air;
}

/* From the lowest end of any interval to the highest, and the margin with some air around it. */
struct view_axis forest_axis(const struct view *v)
{
    struct view_axis axis = {.low = 1, .high = 1};
    double widest = 0;

    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n; k++) {
            const struct decide_case *c = &v->pipes[i].pairs[k]->decide;

            widest = c->margin > widest ? c->margin : widest;
            reach(&axis, c->ratio);
            reach(&axis, c->low);
            reach(&axis, c->high);
        }
    if (!(widest > 0 && widest < 1))
        widest = 0.05;
    reach(&axis, pow(1 - widest, 1.6));
    reach(&axis, pow(1 - widest, -1.6));
    bound(&axis, widest);
    add_air(&axis);
    axis.margin_low = isnan(v->margin) ? NAN : 1 - v->margin;
    axis.margin_high = isnan(v->margin) ? NAN : 1 / (1 - v->margin);
    return axis;
}

/* The column of a ratio, clipped to the bar. */
static size_t column_of(const struct view_axis *axis, double ratio, size_t columns)
{
    double at = view_axis_at(axis, ratio) * (double)columns;

    return at <= 0 ? 0 : at >= (double)columns ? columns - 1 : (size_t)at;
}

static void fill(enum glyph *cells, const struct view_axis *axis, size_t columns, double low,
                 double high, enum glyph glyph)
{
    if (high < axis->low || low > axis->high)
        return;
    for (size_t i = column_of(axis, low, columns); i <= column_of(axis, high, columns); i++)
        cells[i] = glyph == LINE && cells[i] != EMPTY ? LINE_WITHIN : glyph;
}

static void draw(enum glyph *cells, const struct view_axis *axis, const struct decide_case *c,
                 size_t columns)
{
    fill(cells, axis, columns, 1 - c->margin, 1 / (1 - c->margin), BAND);
    cells[column_of(axis, 1, columns)] = ONE;
    if (!(c->ratio > 0))
        return;
    if (!isnan(c->low) && !isnan(c->high))
        fill(cells, axis, columns, c->low, c->high, LINE);
    if (c->ratio >= axis->low && c->ratio <= axis->high)
        cells[column_of(axis, c->ratio, columns)] = POINT;
    if (c->low < axis->low || c->ratio < axis->low)
        cells[0] = BELOW;
    if (c->high > axis->high || c->ratio > axis->high)
        cells[columns - 1] = ABOVE;
}

const char *forest_bar(const struct view_axis *axis, const struct decide_case *c, size_t columns,
                       bool utf8, char text[FOREST_BYTES])
{
    const char *const *glyphs = utf8 ? glyphs_utf8 : glyphs_ascii;
    enum glyph cells[FOREST_COLUMNS_MAX] = {EMPTY};
    size_t at = 0;

    columns = columns > FOREST_COLUMNS_MAX ? FOREST_COLUMNS_MAX : columns;
    draw(cells, axis, c, columns);
    for (size_t i = 0; i < columns; i++) {
        size_t n = strlen(glyphs[cells[i]]);

        memcpy(text + at, glyphs[cells[i]], n);
        at += n;
    }
    text[at] = 0;
    return text;
}

const char *forest_scale(const struct view_axis *axis, size_t columns, char text[FOREST_BYTES])
{
    char low[16], high[16];
    size_t one;

    columns = columns > FOREST_COLUMNS_MAX ? FOREST_COLUMNS_MAX : columns;
    one = column_of(axis, 1, columns);
    snprintf(low, sizeof(low), "%.2f", axis->low);
    snprintf(high, sizeof(high), "%.2f", axis->high);
    snprintf(text, columns + 1, "%s%*s", low, (int)(columns - strlen(low)), high);
    if (one > strlen(low) && one + strlen(high) + 1 < columns)
        text[one] = '1';
    return text;
}

const char *forest_legend(bool utf8)
{
    return utf8 ? "\xe2\x97\x8f the ratio, \xe2\x94\x80 its interval, \xe2\x94\x82 no change, "
                  "\xe2\x96\x91 \xe2\x95\x90 within the margin, \xe2\x97\x80\xe2\x96\xb6 goes on "
                  "outside"
                : "o the ratio, - its interval, | no change, . = within the margin, <> goes on "
                  "outside";
}

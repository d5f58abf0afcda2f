/* SPDX-License-Identifier: Apache-2.0 */
/* Axes of a chart: their ranges, ticks and labels. See plot_parts.h. */
#include "harness/document/plot_parts.h"

#include <math.h>
#include <string.h>

#include "core/units.h"
#include "harness/document/utf8.h"

/* Of the size of the font; DejaVu Sans is the widest font that a page is likely to get. */
#define NARROW_GLYPH 0.42
#define PLAIN_GLYPH  0.65
#define WIDE_GLYPH   1.0
#define RATIO_WIDE   4.0  /* ratios that far apart are shown as x2, and not in per cent */
#define X_MARGIN     0.02 /* of the axis, on either side: no point lies on the frame */

double scale_at(const struct scale *s, double value)
{
    double share = s->log ? log(value / s->low) / log(s->high / s->low)
                          : (value - s->low) / (s->high - s->low);

    return s->from + share * (s->to - s->from);
}

/* 1, 2 or 5 times a power of ten, at least this. */
static double round_step(double least)
{
    double power = pow(10, floor(log10(least)));

    for (int i = 1; i <= 5; i += i == 2 ? 3 : 1)
        if (i * power >= least * (1 - 1e-9))
            return i * power;
    return 10 * power;
}

static void add_tick(struct scale_ticks *ticks, double at, const char *label)
{
    if (ticks->n == SCALE_TICKS_MAX)
        return;
    ticks->at[ticks->n] = at;
    ticks->labels[ticks->n++] = label;
}

/* Values above 1e6 and below 1e-4 have an exponent: "2e7". */
static const char *power_label(struct pool *pool, double value)
{
    double exponent = floor(log10(value) + 1e-9);

    if (exponent > 5 || exponent < -4)
        return pool_text(pool, "%.3ge%.0f", value / pow(10, exponent), exponent);
    return pool_text(pool, "%g", value);
}

static const char *linear_label(struct pool *pool, double value, double step, bool ratio)
{
    int decimals = (int)fmax(0, -floor(log10(step) + 1e-9));

    if (fabs(value) < step / 2)
        return ratio ? "same" : "0";
    if (ratio)
        return pool_text(pool, "%+.*f %%", decimals, value);
    if (fabs(value) >= 1e6)
        return value < 0 ? pool_text(pool, "-%s", power_label(pool, -value))
                         : power_label(pool, value);
    return pool_text(pool, "%.*f", decimals, value);
}

/* Ticks between low and high, or around them where the axis goes out to ticks. */
static double count_ticks(const struct scale *s, double step, bool fixed)
{
    return fixed ? floor(s->high / step + 1e-9) - ceil(s->low / step - 1e-9) + 1
                 : ceil(s->high / step - 1e-9) - floor(s->low / step + 1e-9) + 1;
}

static void linear_ticks(struct pool *pool, struct scale *s, size_t most, bool fixed,
                         struct scale_ticks *ticks)
{
    double step = round_step((s->high - s->low) / (double)(most + 1)), first, last;

    while (count_ticks(s, step, fixed) > (double)most)
        step = round_step(step * 1.5);
    if (!fixed) {
        s->low = step * floor(s->low / step + 1e-9);
        s->high = step * ceil(s->high / step - 1e-9);
    }
    first = ceil(s->low / step - 1e-9);
    last = floor(s->high / step + 1e-9);
    for (size_t i = 0; i < SCALE_TICKS_MAX && first + (double)i <= last; i++) {
        double at = (first + (double)i) * step;

        add_tick(ticks, at, linear_label(pool, at, step, false));
    }
}

/* The ticks are round in per cent; the axis may be logarithmic. */
static void ratio_ticks(struct pool *pool, struct scale *s, size_t most, bool fixed,
                        struct scale_ticks *ticks)
{
    struct scale percent = {.low = 100 * (s->low - 1), .high = 100 * (s->high - 1)};
    struct scale_ticks round = {.n = 0};
    double step;

    linear_ticks(pool, &percent, most, fixed || percent.low < -95, &round);
    step = round.n > 1 ? round.at[1] - round.at[0] : 1;
    for (size_t i = 0; i < round.n; i++)
        if (round.at[i] > -99)
            add_tick(ticks, 1 + round.at[i] / 100, linear_label(pool, round.at[i], step, true));
    if (!fixed && percent.low > -99) {
        s->low = 1 + percent.low / 100;
        s->high = 1 + percent.high / 100;
    }
}

/* The next value at or below (or above) that is 1, 2 or 5 times a power of ten. */
static double log_neighbour(double value, bool up)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(value) + 1e-9));

    for (int i = 0; up && i < 4; i++)
        if (steps[i] * power >= value * (1 - 1e-9))
            return steps[i] * power;
    for (int i = 3; !up && i >= 0; i--)
        if (steps[i] * power <= value * (1 + 1e-9))
            return steps[i] * power;
    return value;
}

static void add_log_tick(struct pool *pool, double at, bool ratio, struct scale_ticks *ticks)
{
    add_tick(ticks, at,
             !ratio                ? power_label(pool, at)
             : fabs(at - 1) < 1e-9 ? "same"
                                   : pool_text(pool, "x%g", at));
}

/* 1, 2 and 5 times the powers of ten, or every power, or every second one, as there is room. */
static void log_ticks(struct pool *pool, struct scale *s, size_t most, bool ratio, bool fixed,
                      struct scale_ticks *ticks)
{
    static const double steps[] = {1, 2, 5};
    double first, last, stride;

    if (!fixed) {
        s->low = log_neighbour(s->low, false);
        s->high = log_neighbour(s->high, true);
    }
    first = ceil(log10(s->low) - 1e-9);
    last = floor(log10(s->high) + 1e-9);
    stride = fmax(1, ceil((last - first + 1) / (double)most));
    bool all = 3 * log10(s->high / s->low) + 1 <= (double)most + 0.5;
    if (!all && last - first < stride) { /* one of them, or none: the ends */
        add_log_tick(pool, s->low, ratio, ticks);
        add_log_tick(pool, s->high, ratio, ticks);
        return;
    }
    for (double e = all ? first - 1 : first; e <= last; e += stride) /* NOLINT: whole and small */
        for (int i = 0; i < (all ? 3 : 1); i++) {
            double at = steps[i] * pow(10, e);

            if (at >= s->low * (1 - 1e-9) && at <= s->high * (1 + 1e-9))
                add_log_tick(pool, at, ratio, ticks);
        }
}

void scale_ticks(struct pool *pool, struct scale *s, size_t most, bool ratio, bool fixed,
                 struct scale_ticks *ticks)
{
    ticks->n = 0;
    most = most < 3 ? 3 : most > SCALE_TICKS_MAX ? SCALE_TICKS_MAX : most;
    if (ratio && s->high < RATIO_WIDE * s->low)
        ratio_ticks(pool, s, most, fixed, ticks);
    else if (s->log)
        log_ticks(pool, s, most, ratio, fixed, ticks);
    else
        linear_ticks(pool, s, most, fixed, ticks);
}

void scale_byte_ticks(struct pool *pool, const struct scale *s, size_t most,
                      struct scale_ticks *ticks)
{
    int low = (int)ceil(log2(s->low) - 1e-9), high = (int)floor(log2(s->high) + 1e-9), stride = 1;
    char label[24];

    while ((high - low) / stride >= (int)most)
        stride++;
    ticks->n = 0;
    for (int power = low > 0 ? low : 0; power <= high; power++)
        if (power % stride == 0 || high - low < 2 * stride) {
            units_format_size((uint64_t)1 << power, label, sizeof(label));
            add_tick(ticks, ldexp(1, power), pool_text(pool, "%s", label));
        }
}

static double glyph_width(const char *c, size_t n)
{
    if (n > 1)
        return n > 2 ? WIDE_GLYPH : PLAIN_GLYPH;
    return strchr(" ijlI.,:;'|!()[]/ft-r", *c) ? NARROW_GLYPH
           : strchr("mwMW@%+=<>~#", *c)        ? WIDE_GLYPH
           : *c >= 'A' && *c <= 'Z'            ? 0.78
                                               : PLAIN_GLYPH;
}

double text_width(const char *text, double font)
{
    double width = 0;
    size_t n, used;

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        width += glyph_width(c, n);
    }
    return width * font;
}

const char *text_cut(struct pool *pool, const char *text, double font, double width)
{
    double room = width - text_width("...", font), at = 0;
    const char *end = text;
    size_t n, used;

    if (text_width(text, font) <= width)
        return text;
    for (; *end; end += used) {
        const char *c = utf8_printable(end, &n, &used);

        at += glyph_width(c, n) * font;
        if (at > room)
            break;
    }
    return pool_text(pool, "%.*s...", (int)(end - text), text);
}

/* ---- from data to ranges */

bool plot_shows(const struct plot *p, double value)
{
    return !isnan(value) && (!p->y_log || value > 0);
}

/* A share by which only rounding sets values apart: one value. */
#define SAME_VALUE 1e-9

static void reach(const struct plot *p, struct scale *s, double value)
{
    if (!plot_shows(p, value) || isinf(value))
        return;
    s->low = fmin(s->low, value);
    s->high = fmax(s->high, value);
}

void scale_of_values(const struct plot *p, struct scale *s)
{
    *s = (struct scale){.low = INFINITY, .high = -INFINITY, .log = p->y_log};
    for (size_t i = 0; i < p->n_lines; i++)
        for (size_t k = 0; k < p->lines[i].n; k++) {
            const struct plot_point *point = &p->lines[i].points[k];

            if (isnan(point->y))
                continue;
            reach(p, s, point->y);
            reach(p, s, point->low);
            reach(p, s, point->high);
        }
    if (p->y_top > 0)
        reach(p, s, p->y_top);
    if (p->y_from_zero)
        reach(p, s, 0);
    if (p->band_high > 0) {
        reach(p, s, p->band_low);
        reach(p, s, p->band_high);
    }
    if (p->shown_low < p->shown_high) {
        s->low = fmax(s->low, p->shown_low);
        s->high = fmin(s->high, p->shown_high);
    }
    if (!(s->low <= s->high)) { /* no value */
        s->low = p->y_log ? 1 : 0;
        s->high = p->y_log ? 10 : 1;
    }
    if (!(s->high - s->low > SAME_VALUE * fmax(fabs(s->low), fabs(s->high)))) {
        double room = s->log ? s->low / 2 : fmax(fabs(s->low) * 0.1, 1e-12);

        s->low -= room;
        s->high += room;
    }
}

void scale_of_places(const struct plot *p, struct scale *s)
{
    *s = (struct scale){.low = INFINITY, .high = -INFINITY, .log = p->x_log};
    for (size_t i = 0; i < p->n_ticks; i++) {
        s->low = fmin(s->low, p->ticks[i].at);
        s->high = fmax(s->high, p->ticks[i].at);
    }
    for (size_t i = 0; i < p->n_lines; i++)
        for (size_t k = 0; k < p->lines[i].n; k++)
            if (!s->log || p->lines[i].points[k].x > 0) {
                s->low = fmin(s->low, p->lines[i].points[k].x);
                s->high = fmax(s->high, p->lines[i].points[k].x);
            }
    if (!(s->low <= s->high))
        s->low = s->high = 1;
    if (s->log && s->low < s->high) {
        double room = pow(s->high / s->low, X_MARGIN);

        s->low /= room;
        s->high *= room;
    } else {
        double room = s->low < s->high ? X_MARGIN * (s->high - s->low) : 0.5 * fabs(s->low) + 1e-9;

        s->low -= room;
        s->high += room;
    }
}

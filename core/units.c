/* SPDX-License-Identifier: Apache-2.0 */
/* Units: see units.h. */
#include "core/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct unit units_table[] = {
    {"GB/s", 1.0, true, true, "1e9 bytes per second"},
    {"Gb/s", 8.0, true, true, "1e9 bits per second"},
    {"TFLOP/s", 1e-3, true, true,
     "1e12 floating-point operations per second, 2mnk for a matrix product"},
    {"TOP/s", 1e-3, true, true, "1e12 integer operations per second, 2mnk for a matrix product"},
    {"samples/s", 1e9, true, true, "samples of training per second: images, sequences"},
    {"Mop/s", 1e3, true, true, "1e6 operations or messages per second"},
    {"ns", 1.0, false, false, "nanoseconds for one operation"},
    {"us", 1e-3, false, false, "microseconds for one operation"},
    {"ms", 1e-6, false, false, "milliseconds for one operation"},
    {"s/GB", 1.0, false, false, "CPU seconds for 1e9 bytes"},
    {"cores", 1.0, false, false, "CPU seconds in a second"},
    {"MB", 1.0, false, false, "1e6 bytes"},
    {"count", 1.0, false, false, "how many of them"},
    {"packets", 1.0, false, true, "how many packets"},
    {"percent", 1.0, false, false, "parts of a hundred"},
    {NULL, 0, false, false, NULL},
};

const struct unit *units_find(const char *name)
{
    for (const struct unit *u = units_table; u->name; u++)
        if (!strcmp(u->name, name))
            return u;
    return NULL;
}

double units_value(const struct unit *unit, double quantity, uint64_t inner, uint64_t ns)
{
    if (unit->rate) /* 0 ns gives infinity, which the summary refuses: better no number than an
                       invented one */
        return quantity * (double)inner / (double)ns * unit->scale;
    return (double)ns / (double)inner * unit->scale;
}

int units_parse_u64(const char *text, uint64_t *value)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return -EINVAL;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (*end)
        return -EINVAL;
    if (errno)
        return -ERANGE;
    *value = v;
    return 0;
}

int units_parse_double(const char *text, double *value)
{
    char *end;

    if (!*text || isspace((unsigned char)text[0]))
        return -EINVAL;
    double v = strtod(text, &end);
    if (*end || !isfinite(v))
        return -EINVAL;
    *value = v;
    return 0;
}

/* Splits "1.5MiB" in 1.5 and "MiB"; hexadecimal, signs and "inf" are not numbers here. */
static int number_with_suffix(const char *text, double *number, const char **suffix)
{
    char *end;

    if (!isdigit((unsigned char)text[0]) || tolower((unsigned char)text[1]) == 'x')
        return -EINVAL;
    *number = strtod(text, &end);
    *suffix = end;
    return isfinite(*number) ? 0 : -ERANGE;
}

static int size_factor(const char *suffix, double *factor)
{
    static const char letters[] = "KMGT";
    const char *at = *suffix ? strchr(letters, toupper((unsigned char)*suffix)) : NULL;

    *factor = 1;
    if (at) {
        *factor = ldexp(1, 10 * (int)(at - letters + 1));
        suffix++;
    }
    if (!*suffix || !strcmp(suffix, "B") || (at && !strcmp(suffix, "iB")))
        return 0;
    return -EINVAL;
}

int units_parse_size(const char *text, uint64_t *bytes)
{
    const char *suffix;
    double number, factor;
    int err = number_with_suffix(text, &number, &suffix);

    if (err || (err = size_factor(suffix, &factor)))
        return err;
    if (factor == 1) { /* exact beyond 2^53 */
        char digits[32];
        int len = (int)(suffix - text);
        if (len >= (int)sizeof(digits))
            return -ERANGE;
        snprintf(digits, sizeof(digits), "%.*s", len, text);
        return units_parse_u64(digits, bytes);
    }
    double v = number * factor;
    if (v >= 0x1p63)
        return -ERANGE;
    if (v != floor(v))
        return -EINVAL;
    *bytes = (uint64_t)v;
    return 0;
}

int units_parse_duration(const char *text, uint64_t *ns)
{
    static const struct {
        const char *suffix;
        double ns;
    } scale[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6},  {"s", 1e9},
                 {"", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    const char *suffix;
    double number;
    int err = number_with_suffix(text, &number, &suffix);

    if (err)
        return err;
    for (size_t i = 0; i < sizeof(scale) / sizeof(scale[0]); i++) {
        if (strcmp(suffix, scale[i].suffix))
            continue;
        if (number * scale[i].ns >= 0x1p63)
            return -ERANGE;
        *ns = (uint64_t)llround(number * scale[i].ns);
        return 0;
    }
    return -EINVAL;
}

int units_parse_fraction(const char *text, double *fraction)
{
    const char *suffix;
    double number;
    int err = number_with_suffix(text, &number, &suffix);

    if (err)
        return err;
    if (!strcmp(suffix, "%"))
        number /= 100;
    else if (*suffix)
        return -EINVAL;
    *fraction = number;
    return 0;
}

const char *units_format_size(uint64_t bytes, char *text, size_t len)
{
    static const char letters[] = "KMGT";
    int at = -1;

    while (bytes >= 1024 && bytes % 1024 == 0 && at < 3) {
        bytes /= 1024;
        at++;
    }
    if (at < 0)
        snprintf(text, len, "%llu", (unsigned long long)bytes);
    else
        snprintf(text, len, "%llu%c", (unsigned long long)bytes, letters[at]);
    return text;
}

const char *units_format_bytes(uint64_t bytes, char *text, size_t len)
{
    static const char letters[] = "KMGT";

    for (int i = 3; i >= 0; i--) {
        uint64_t unit = 1ull << (10 * (i + 1));

        if (bytes < unit || bytes % (unit / 4)) /* quarters are exact with two decimals */
            continue;
        snprintf(text, len, "%.15g %ciB", (double)bytes / (double)unit, letters[i]);
        return text;
    }
    snprintf(text, len, "%llu B", (unsigned long long)bytes);
    return text;
}

#define SIDES_ALIKE                                                                                \
    1.1 /* the longer over the shorter side: up to here the longer is shown for both */

/* "+12 %", "-120 %"; beyond 1000 % no digit of the value means anything. */
static const char *format_side(const char *sign, double percent, char *text, size_t len)
{
    percent = fabs(percent);
    if (percent > 1000)
        snprintf(text, len, "over %s1000 %%", sign);
    else
        snprintf(text, len, percent < 99.5 ? "%s%.2g %%" : "%s%.0f %%", sign, percent);
    return text;
}

const char *units_format_interval(double low, double high, double value, char *text, size_t len)
{
    double below = 100 * (value - low) / fabs(value), above = 100 * (high - value) / fabs(value);
    double longer = fmax(below, above), shorter = fmin(below, above);
    char first[24], second[24];

    text[0] = 0;
    if (isnan(below) || isnan(above) || value == 0)
        return text;
    if (shorter >= 0 && longer <= SIDES_ALIKE * shorter)
        snprintf(text, len, "+/- %s", format_side("", longer, first, sizeof(first)));
    else
        snprintf(text, len, "%s to %s",
                 format_side(below < 0 ? "+" : "-", below, first, sizeof(first)),
                 format_side(above < 0 ? "-" : "+", above, second, sizeof(second)));
    return text;
}

const char *units_format_number(double value, char *text, size_t len)
{
    double size = fabs(value);

    snprintf(text, len, "%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
    return text;
}

double units_scale(double value, const char *unit, char *name, size_t len)
{
    static const char prefixes[] = "num kMGTPE"; /* powers of 1000; the blank stands for none */
    static const char *const stems[] = {"s",      "B",    "B/s",  "b/s",
                                        "FLOP/s", "OP/s", "op/s", "samples/s"};
    const char *stem = NULL;
    int at = 3, first;

    for (size_t i = 0; i < sizeof(stems) / sizeof(stems[0]) && !stem; i++) {
        const char *prefix = strchr(prefixes, unit[0]);
        if (!strcmp(unit, stems[i])) {
            stem = unit;
        } else if (prefix && *prefix && !strcmp(unit + 1, stems[i])) {
            stem = unit + 1;
            at = (int)(prefix - prefixes);
        }
    }
    snprintf(name, len, "%s", unit);
    if (!stem || !isfinite(value) || value == 0)
        return 1;
    int least = strcmp(stem, "s") ? 3 : 0, most = strcmp(stem, "s") ? 9 : 3;
    double scale = 1;
    for (first = at; fabs(value * scale) >= 999.5 && at < most; at++)
        scale /= 1000;
    for (; fabs(value * scale) < 0.9995 && at > least; at--)
        scale *= 1000;
    if (at != first)
        snprintf(name, len, "%.*s%s", at != 3, &prefixes[at], stem);
    return scale;
}

const char *units_format_value(double value, const char *unit, char *text, size_t len)
{
    char name[40], number[40];
    double scale = units_scale(value, unit, name, sizeof(name));

    snprintf(text, len, "%s %s", units_format_number(value * scale, number, sizeof(number)),
             strcmp(name, "percent") ? name : "%");
    return text;
}

const char *units_format_duration(uint64_t ns, char *text, size_t len)
{
    static const struct {
        double below_ns, scale; /* below: three digits of it still round down to under 1000 */
        const char *unit;
    } scales[] = {
        {999.5, 1, "ns"}, {999.5e3, 1e-3, "us"}, {999.5e6, 1e-6, "ms"}, {99.5e9, 1e-9, "s"}};

    for (size_t i = 0; i < sizeof(scales) / sizeof(scales[0]); i++) {
        if ((double)ns >= scales[i].below_ns)
            continue;
        snprintf(text, len, "%.3g %s", (double)ns * scales[i].scale, scales[i].unit);
        return text;
    }
    uint64_t s = (ns + 500000000) / 1000000000;
    snprintf(text, len, "%llu min %02llu s", (unsigned long long)(s / 60),
             (unsigned long long)(s % 60));
    return text;
}

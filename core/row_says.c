/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences on a row, made of its columns: see row_says() in row.h. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/limit_remark.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/units.h"

__attribute__((format(printf, 2, 3))) static void add(char text[ROW_SAYS_BYTES], const char *format,
                                                      ...)
{
    size_t at = strlen(text);
    va_list args;

    at += (size_t)snprintf(text + at, ROW_SAYS_BYTES - at, "%s", at ? "; " : "");
    va_start(args, format);
    if (at < ROW_SAYS_BYTES)
        vsnprintf(text + at, ROW_SAYS_BYTES - at, format, args);
    va_end(args);
}

static bool is_noise(const struct row *row, const char *noise)
{
    return row->noise && !strcmp(row->noise, noise);
}

/* A latency below its reference is no remark. */
static bool is_rate(const struct row *row)
{
    const struct unit *unit = row->unit ? units_find(row->unit) : NULL;

    return unit && unit->higher_is_better;
}

static void say_wide(const struct row *row, char text[ROW_SAYS_BYTES])
{
    char sides[48];

    if (is_noise(row, ROW_NOISE_WIDE) &&
        *units_format_interval(row->summary.ci_low, row->summary.ci_high, row->value, sides,
                               sizeof(sides)))
        add(text, "interval is %s, wanted %.2g %%, when sampling stopped (%s)", sides,
            100 * row->width_wanted, row->stop ? row->stop : "");
}

/* Narrow, and yet no proof: what the samples lack. */
static void say_doubt(const struct row *row, char text[ROW_SAYS_BYTES])
{
    bool dependent = is_noise(row, ROW_NOISE_DEPENDENT);
    char sides[48];

    if (!dependent && !is_noise(row, ROW_NOISE_FEW_CHANGES))
        return;
    units_format_interval(row->summary.ci_low, row->summary.ci_high, row->value, sides,
                          sizeof(sides));
    if (dependent)
        add(text,
            "interval is %s, but of %.2g independent samples, wanted %d, when sampling stopped "
            "(%s)",
            sides, row->summary.effective_n, STATS_INDEPENDENT_MIN, row->stop ? row->stop : "");
    else
        add(text,
            "interval is %s, but the level changed %.0f times, wanted %d, when sampling stopped "
            "(%s)",
            sides, row->level_changes, STATS_INDEPENDENT_MIN, row->stop ? row->stop : "");
}

const char *row_says(const struct row *row, unsigned which, char text[ROW_SAYS_BYTES])
{
    char above[128];

    text[0] = 0;
    if (which & ROW_SAYS_RAISED && !isnan(row->limit_raised_from))
        add(text, "the measured ceiling, %.4g %s, was exceeded and is raised",
            row->limit_raised_from, row->unit ? row->unit : "");
    if (which & ROW_SAYS_ABOVE && is_rate(row) &&
        *limit_remark(row->percent_of_limit, above, sizeof(above)))
        add(text, "%s", above);
    if (which & ROW_SAYS_WIDE) {
        say_wide(row, text);
        say_doubt(row, text);
    }
    if (which & ROW_SAYS_NONE && is_noise(row, ROW_NOISE_FEW))
        add(text, "too few samples for an interval");
    if (which & ROW_SAYS_NONE && is_noise(row, ROW_NOISE_ALIKE))
        add(text, "too few samples for an interval: each is like the one before");
    return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a row: see row_facts.h. */
#include "core/row_facts.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Evidence ---- */

const char *const carriers[] = {"rdma", "sockets", "loopback", "shm", "peer", NULL};

const char *carriers_print(unsigned kinds, char text[CARRIERS_BYTES])
{
    size_t at = 0;

    text[0] = 0;
    for (size_t i = 0; carriers[i]; i++)
        if (kinds & 1u << i)
            at += (size_t)snprintf(text + at, CARRIERS_BYTES - at, "%s%s", at ? "+" : "",
                                   carriers[i]);
    return text;
}

static unsigned carrier_of(const char *word, size_t len)
{
    for (size_t i = 0; carriers[i]; i++)
        if (strlen(carriers[i]) == len && !memcmp(carriers[i], word, len))
            return 1u << i;
    return 0;
}

unsigned carriers_read(const char *text)
{
    unsigned kinds = 0;

    for (; *text; text += *text == '+') {
        size_t n = strcspn(text, "+");
        unsigned one = carrier_of(text, n);
        if (!one)
            return 0;
        kinds |= one;
        text += n;
    }
    return kinds;
}

void evidence_add(char *text, size_t len, const char *format, ...)
{
    size_t at = strlen(text);
    va_list args;

    if (at && at + 3 < len) {
        memcpy(text + at, ", ", 3);
        at += 2;
    }
    va_start(args, format);
    vsnprintf(text + at, len - at, format, args);
    va_end(args);
}

const char *const limit_kinds[] = {[LIMIT_TOLD] = "told",         [LIMIT_SYSFS] = "sysfs",
                                   [LIMIT_NVML] = "nvml",         [LIMIT_DATASHEET] = "datasheet",
                                   [LIMIT_MEASURED] = "measured", [LIMIT_REFERENCE] = "reference",
                                   [LIMIT_OUTDATED] = "outdated", NULL};
const char *const limit_links[] = {LIMIT_LINK_NVLINK, LIMIT_LINK_PCIE, LIMIT_LINK_INFINIBAND,
                                   LIMIT_LINK_ROCE, NULL};

enum limit_kind limit_kind_of(const char *word)
{
    for (int kind = 0; word && limit_kinds[kind]; kind++)
        if (!strcmp(word, limit_kinds[kind]))
            return (enum limit_kind)kind;
    return LIMIT_TOLD;
}

const char *limit_remark(double percent, char *text, size_t len)
{
    text[0] = 0;
    if (percent > LIMIT_EXCEEDED_PERCENT)
        snprintf(text, len,
                 "%.0f %% of the limit: the limit is too low, or the data did not take that path",
                 percent);
    return text;
}

bool limit_is_ours(enum limit_kind kind)
{
    return kind == LIMIT_MEASURED || kind == LIMIT_REFERENCE;
}

double limit_of_parts(const struct limit_parts *parts)
{
    double rest = 1 - parts->share, first = 0, second = rest > 0 ? rest / parts->rate[1] : 0;

    if (parts->share > 0)
        first = parts->share / parts->rate[0] + fmin(parts->fill / parts->rate[0], second);
    return 1 / (first > second || isnan(first) ? first : second); /* of what is unknown: NaN */
}

double ceiling_change(double before, double after)
{
    return fabs(after - before) / fmax(before, after);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a proof. */
#include <stdarg.h>
#include <stdio.h>

#include "core/net/path_parts.h"

void path_say(struct path_words *w, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(w->text + w->used, w->len - w->used, format, args);
    va_end(args);
    if (n > 0)
        w->used += (size_t)n < w->len - w->used ? (size_t)n : w->len - w->used - 1;
}

struct path_amount path_amount(const struct path_view *v, double amount)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    struct path_amount a;
    size_t i = 0;

    if (v->by == PATH_PACKETS) {
        snprintf(a.text, sizeof(a.text), "%.0f packets", amount);
        return a;
    }
    for (; amount >= 999.5 && i < 4; i++)
        amount /= 1e3;
    snprintf(a.text, sizeof(a.text), amount >= 100 ? "%.0f %s" : "%.3g %s", amount, units[i]);
    return a;
}

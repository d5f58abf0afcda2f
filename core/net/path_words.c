/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a proof. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/net/path_parts.h"

#define MOST_DEVICES 3
#define WORTH_SAYING 0.01 /* of what the first one moved */

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

static bool is_before(const struct path_device *a, const struct path_device *b)
{
    double moved_a = path_sum(a->moved.bytes), moved_b = path_sum(b->moved.bytes);

    return moved_a > moved_b || (moved_a == moved_b && a < b);
}

/* The one that comes after `last` in order of bytes; NULL: the first of all. */
static const struct path_device *next_most(const struct path_view *v,
                                           const struct path_device *last)
{
    const struct path_device *most = NULL;

    for (size_t i = 0; i < v->n; i++) {
        const struct path_device *d = &v->list[i];
        bool counts = d->moved.known && !d->same_bytes && d != last;
        if (counts && (!last || is_before(last, d)) && (!most || is_before(d, most)))
            most = d;
    }
    return most;
}

void path_say_most(const struct path_view *v, struct path_words *w)
{
    const struct path_device *first = next_most(v, NULL), *d = first;

    for (int i = 0; d && i < MOST_DEVICES; i++, d = next_most(v, d)) {
        double moved = path_sum(d->moved.bytes);
        bool worth = d == first || moved >= WORTH_SAYING * path_sum(first->moved.bytes);
        if (worth && moved > 0)
            path_say(w, "%s%s sent %s, received %s", w->used ? "; " : "", d->name,
                     path_amount(v, d->moved.bytes[COUNTER_OUT]).text,
                     path_amount(v, d->moved.bytes[COUNTER_IN]).text);
        else if (worth || !strcmp(d->name, "lo"))
            path_say(w, "%s%s %s", w->used ? "; " : "", d->name, path_amount(v, moved).text);
    }
    if (!w->used)
        path_say(w, "no device's counters can be read");
}

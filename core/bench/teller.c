/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a benchmark at work: see teller.h. */
#include "core/bench/teller.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/status_line.h"
#include "core/text.h"
#include "core/units.h"

void teller_open(struct teller *t, size_t total)
{
    const char *path = getenv(STATUS_ESTIMATE_ENV);

    *t = (struct teller){.fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1,
                         .total = total,
                         .begin_ns = clock_now_ns()};
    t->terminal = !path && isatty(STDERR_FILENO);
}

void teller_close(struct teller *t)
{
    teller_end(t);
    if (t->fd >= 0)
        close(t->fd);
}

bool teller_is_heard(const struct teller *t)
{
    return t->terminal || t->fd >= 0;
}

void teller_begin(struct teller *t, const char *label)
{
    snprintf(t->label, sizeof(t->label), "%s", label);
    t->point_ns = clock_now_ns();
    teller_show(t, NAN, NAN, "");
}

void teller_show(struct teller *t, double value, double half, const char *unit)
{
    char estimate[STATUS_ESTIMATE] = "", text[STATUS_LINE_BYTES];
    uint64_t now_ns = clock_now_ns();

    if (isfinite(value))
        units_format_value(value, unit, estimate, sizeof(estimate));
    if (half < 1)
        snprintf(estimate + strlen(estimate), sizeof(estimate) - strlen(estimate), " +/- %.2g %%",
                 100 * half);
    if (t->fd >= 0 && pwrite(t->fd, estimate, sizeof(estimate), 0) < 0)
        t->fd = -1; /* nobody reads along any more */
    if (!t->terminal)
        return;
    double each_s = (double)(t->point_ns - t->begin_ns) * 1e-9 / (double)t->done;
    double left_s = each_s * (double)(t->total - t->done) - (double)(now_ns - t->point_ns) * 1e-9;
    const struct status_line line = {.done = t->done,
                                     .total = t->total,
                                     .label = t->label,
                                     .estimate = estimate,
                                     .left_s = t->done ? fmax(left_s, 0) : NAN};

    fprintf(stderr, "\r%s\033[K", status_line(&line, wrap_width(stderr) - 1, text));
    t->drawn = true;
}

void teller_end(struct teller *t)
{
    if (t->drawn)
        fputs("\r\033[K", stderr);
    t->drawn = false;
}

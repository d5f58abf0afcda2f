/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: see progress.h. */
#include "harness/run/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/status_line.h"
#include "core/text.h"
#include "core/units.h"

void progress_start(struct progress *p, FILE *out, size_t total, size_t done)
{
    bool terminal = isatty(fileno(out));
    const char *text = getenv("PLUMB_PROGRESS");
    uint64_t ns;

    *p = (struct progress){.out = terminal ? out : NULL,
                           .log = terminal ? NULL : out,
                           .every_ns =
                               text && !units_parse_duration(text, &ns) ? ns : 60000000000ull,
                           .total = total,
                           .done = done,
                           .first = done};
    p->estimate = terminal ? memfd_create("estimate", MFD_CLOEXEC) : -1;
    if (p->estimate >= 0) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), p->estimate);
        setenv(STATUS_ESTIMATE_ENV, path, 1);
    }
    p->begin_ns = clock_now_ns();
    p->next_ns = p->begin_ns + p->every_ns;
}

/* A launch that takes longer than it was expected to takes nothing from those after it. */
static double told_left_ns(const struct progress *p, uint64_t now_ns)
{
    double left_ns = p->left_ns - (double)(now_ns - p->left_at_ns);

    return left_ns > p->rest_ns ? left_ns : p->rest_ns;
}

/* From the launches of this start, which took what they took; false before the first. */
static bool seconds_left(const struct progress *p, uint64_t now_ns, unsigned *s)
{
    size_t ran = p->done - p->first;
    double left_ns;

    if (!ran || p->done >= p->total)
        return false;
    if (p->left_at_ns)
        left_ns = told_left_ns(p, now_ns);
    else
        left_ns = (double)(now_ns - p->begin_ns) / (double)ran * (double)(p->total - p->done);
    *s = (unsigned)(left_ns * 1e-9 + 0.5);
    return true;
}

const char *progress_log_line(const struct progress *p, uint64_t now_ns, char *text, size_t len)
{
    char left[40] = "";
    unsigned s;

    if (seconds_left(p, now_ns, &s) && s < 90)
        snprintf(left, sizeof(left), ", about %u s left", s);
    else if (seconds_left(p, now_ns, &s))
        snprintf(left, sizeof(left), ", about %u minutes left", (s + 30) / 60);
    snprintf(text, len, "%zu of %zu launches done%s; now %s", p->done, p->total, left, p->now);
    return text;
}

void progress_show(struct progress *p)
{
    char text[STATUS_LINE_BYTES], estimate[STATUS_ESTIMATE] = "";

    if (p->log) {
        uint64_t now_ns = clock_now_ns();
        char line[320];

        if (now_ns >= p->next_ns) {
            p->next_ns = now_ns + p->every_ns;
            fprintf(p->log, "plumb %s: %s\n", p->command ? p->command : "run",
                    progress_log_line(p, now_ns, line, sizeof(line)));
            fflush(p->log);
        }
    }
    if (!p->out)
        return;
    if (p->estimate >= 0 && pread(p->estimate, estimate, sizeof(estimate) - 1, 0) < 0)
        estimate[0] = 0;
    unsigned left_s;
    const struct status_line line = {.done = p->done,
                                     .total = p->total,
                                     .label = *p->label ? p->label : p->now,
                                     .estimate = estimate,
                                     .left_s =
                                         seconds_left(p, clock_now_ns(), &left_s) ? left_s : NAN};

    fprintf(p->out, "\r%s\033[K", status_line(&line, wrap_width(p->out) - 1, text));
    fflush(p->out);
}

void progress_now(struct progress *p, const char *now, const char *label)
{
    snprintf(p->now, sizeof(p->now), "%s", now);
    snprintf(p->label, sizeof(p->label), "%s", label);
    if (p->estimate >= 0 && ftruncate(p->estimate, 0))
        p->estimate = -1; /* what it holds is of another case */
    progress_show(p);
}

void progress_end(struct progress *p)
{
    progress_clear(p);
    if (p->estimate >= 0)
        close(p->estimate);
    p->estimate = -1;
    unsetenv(STATUS_ESTIMATE_ENV);
}

void progress_clear(struct progress *p)
{
    if (p->out) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
}

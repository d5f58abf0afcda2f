/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: see progress.h. */
#include "harness/run/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"

#define BAR 24

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

const char *progress_line(const struct progress *p, uint64_t now_ns, int width, char *text,
                          size_t len)
{
    char bar[BAR + 1], left[32];
    size_t full = p->total ? p->done * BAR / p->total : BAR;

    memset(bar, '.', BAR);
    memset(bar, '#', full);
    bar[BAR] = 0;
    unsigned s;

    left[0] = 0;
    if (seconds_left(p, now_ns, &s)) {
        if (s >= 3600)
            snprintf(left, sizeof(left), ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
        else
            snprintf(left, sizeof(left), ", %u:%02u left", s / 60, s % 60);
    }
    snprintf(text, len, "[%s] %zu of %zu%s  %s", bar, p->done, p->total, left, p->now);
    if (width > 0 && (size_t)width < strlen(text) && (size_t)width < len)
        text[width] = 0;
    return text;
}

void progress_show(struct progress *p)
{
    struct winsize size = {0};
    char text[320];

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
    int width = ioctl(fileno(p->out), TIOCGWINSZ, &size) || size.ws_col < 20 ? 79 : size.ws_col - 1;
    fprintf(p->out, "\r%s\033[K", progress_line(p, clock_now_ns(), width, text, sizeof(text)));
    fflush(p->out);
}

void progress_clear(struct progress *p)
{
    if (p->out) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
}

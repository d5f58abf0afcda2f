/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: see progress.h. */
#include "harness/run/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"

#define BAR 24

void progress_start(struct progress *p, FILE *out, size_t total, size_t done)
{
    *p = (struct progress){
        .out = isatty(fileno(out)) ? out : NULL, .total = total, .done = done, .first = done};
    p->begin_ns = clock_now_ns();
}

/* From the launches of this start, which took what they took; nothing before the first. */
static void time_left(const struct progress *p, uint64_t now_ns, char *text, size_t len)
{
    size_t ran = p->done - p->first;

    text[0] = 0;
    if (!ran || p->done >= p->total)
        return;
    double left_s =
        (double)(now_ns - p->begin_ns) * 1e-9 / (double)ran * (double)(p->total - p->done);
    unsigned s = (unsigned)(left_s + 0.5);
    if (s >= 3600)
        snprintf(text, len, ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, len, ", %u:%02u left", s / 60, s % 60);
}

const char *progress_line(const struct progress *p, uint64_t now_ns, int width, char *text,
                          size_t len)
{
    char bar[BAR + 1], left[32];
    size_t full = p->total ? p->done * BAR / p->total : BAR;

    memset(bar, '.', BAR);
    memset(bar, '#', full);
    bar[BAR] = 0;
    time_left(p, now_ns, left, sizeof(left));
    snprintf(text, len, "[%s] %zu of %zu%s  %s", bar, p->done, p->total, left, p->now);
    if (width > 0 && (size_t)width < strlen(text) && (size_t)width < len)
        text[width] = 0;
    return text;
}

void progress_show(struct progress *p)
{
    struct winsize size = {0};
    char text[320];

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

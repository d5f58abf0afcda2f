/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line and the estimates of time: see progress.h. */
#include "harness/run/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/units.h"
#include "harness/text.h"

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

/* ---- How long a plan measures ---- */

/* The value of an option in a text of its own; false where it is not there. */
static bool argument_of(const char *arguments, const char *name, char *value, size_t len)
{
    size_t size;
    const char *at = argument_value(arguments, name, &size);

    if (at)
        snprintf(value, len, "%.*s", (int)size, at);
    return at != NULL;
}

/* The times that all benchmarks share hold by default, too; one of a benchmark's own is spent where
 * it is asked for. */
static uint64_t launch_ns(const struct bench_info *b, const char *arguments)
{
    uint64_t sum_ns = 0, ns;
    char value[64];

    for (size_t i = 0; b->options[i].name; i++) {
        if (b->options[i].type != OPT_DURATION)
            continue;
        if (!argument_of(arguments, b->options[i].name, value, sizeof(value)))
            snprintf(value, sizeof(value), "%s", i < b->n_own ? "" : b->defaults[i]);
        if (*value && !units_parse_duration(value, &ns))
            sum_ns += ns;
    }
    return sum_ns;
}

/* The --np of a launch: given, or the benchmark's default. */
static uint64_t own_ranks(const struct bench_info *b, const char *arguments)
{
    uint64_t ranks = 1;
    char value[64] = "";

    for (size_t i = 0; i < b->n_own && b->options[i].name; i++)
        if (!strcmp(b->options[i].name, "np") &&
            !argument_of(arguments, "np", value, sizeof(value)))
            snprintf(value, sizeof(value), "%s", b->defaults[i]);
    return units_parse_u64(value, &ranks) ? 1 : ranks;
}

/* A benchmark that needs a group measures communicators of 1, 2, 4 .. N ranks in one launch, unless
 * --ranks selects them. */
static unsigned points_of(const struct bench_info *b, const struct launch *l, unsigned group_ranks)
{
    uint64_t ranks = launch_has_group(l) ? group_ranks : own_ranks(b, l->arguments);
    unsigned points = 1;
    char value[64];

    if (!bench_needs(b, "group"))
        return 1;
    if (argument_of(l->arguments, "ranks", value, sizeof(value)) && strcmp(value, "0") != 0) {
        for (const char *at = value; (at = strchr(at, ',')) != NULL; at++)
            points++;
        return points;
    }
    for (uint64_t n = 1; n < ranks; n *= 2)
        points++;
    return points;
}

uint64_t launch_asked_ns(const struct bench_list *benches, const struct launch *l,
                         unsigned group_ranks)
{
    const struct bench_info *b = bench_list_find(benches, l->bench);

    return b ? launch_ns(b, l->arguments) * points_of(b, l, group_ranks) : 0;
}

void estimate_make(struct estimate *e, const struct bench_list *benches, const struct plan *plan,
                   unsigned group_ranks, const struct earlier *earlier)
{
    *e = (struct estimate){.least_ns = INFINITY};
    for (size_t i = 0; i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        double then_s = earlier ? earlier_seconds(earlier, l) : NAN;
        double ns = isnan(then_s) ? (double)launch_asked_ns(benches, l, group_ranks) : 1e9 * then_s;

        *ARRAY_ADD(e->expected_ns, e->n) = ns;
        if (l->state != LAUNCH_TODO || !bench_list_find(benches, l->bench))
            continue;
        e->todo++;
        e->known += !isnan(then_s);
        e->all_ns += ns;
        e->least_ns = fmin(e->least_ns, ns);
        e->most_ns = fmax(e->most_ns, ns);
    }
}

void estimate_again(struct estimate *e, size_t i)
{
    *ARRAY_ADD(e->expected_ns, e->n) = 0;
    e->expected_ns[e->n - 1] = e->expected_ns[i];
}

void estimate_release(struct estimate *e)
{
    free(e->expected_ns);
    *e = (struct estimate){0};
}

const char *estimate_text(const struct estimate *e, const struct earlier *earlier,
                          char text[ESTIMATE_BYTES])
{
    char all[32], least[32], most[32];
    /* Rounded up. */
    double s = ceil(e->all_ns / 1e9);

    if (s < 90)
        snprintf(all, sizeof(all), "%.0f s", s);
    else if (s < 90 * 60)
        snprintf(all, sizeof(all), "%.0f min", ceil(s / 60));
    else
        snprintf(all, sizeof(all), "%.1f h", ceil(s / 360) / 10);
    units_format_duration((uint64_t)e->least_ns, least, sizeof(least));
    units_format_duration((uint64_t)e->most_ns, most, sizeof(most));
    if (!e->known)
        snprintf(text, ESTIMATE_BYTES,
                 "expected time: about %s of warm-up and sampling (%zu launch%s x %s%s%s); start, "
                 "set-up and checks come on top",
                 all, e->todo, e->todo == 1 ? "" : "es", e->least_ns < e->most_ns ? least : "",
                 e->least_ns < e->most_ns ? " to " : "", most);
    else
        snprintf(text, ESTIMATE_BYTES, "expected time: about %s, as %zu of %zu launches took in %s",
                 all, e->known, e->todo, earlier->run);
    return text;
}

void estimate_ended(struct estimate *e, const struct plan *plan, size_t i, uint64_t ns)
{
    if (plan->launches[i].state == LAUNCH_LATE) /* its time-out is nobody else's time */
        return;
    e->beyond_ns += (double)ns - e->expected_ns[i];
    e->ended++;
}

double estimate_expects_ns(const struct estimate *e, size_t i)
{
    return fmax(0, e->expected_ns[i] + e->beyond_ns / (double)e->ended);
}

double estimate_left_ns(const struct estimate *e, const struct plan *plan)
{
    double sum_ns = 0;

    for (size_t i = 0; i < plan->n; i++)
        if (plan->launches[i].state == LAUNCH_TODO)
            sum_ns += estimate_expects_ns(e, i);
    return sum_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How long the launches of a plan take: see estimate.h. */
#include "harness/run/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/units.h"
#include "harness/text.h"

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
                   unsigned group_ranks)
{
    *e = (struct estimate){.least_ns = INFINITY};
    for (size_t i = 0; i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        double ns = (double)launch_asked_ns(benches, l, group_ranks);

        *ARRAY_ADD(e->expected_ns, e->n) = ns;
        if (l->state != LAUNCH_TODO || !bench_list_find(benches, l->bench))
            continue;
        e->todo++;
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

const char *estimate_text(const struct estimate *e, char text[ESTIMATE_BYTES])
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
    snprintf(
        text, ESTIMATE_BYTES,
        "expected time: about %s of warm-up and sampling (%s x %s%s%s); start, set-up and checks "
        "come on top",
        all, text_count(e->todo, "launch").text, e->least_ns < e->most_ns ? least : "",
        e->least_ns < e->most_ns ? " to " : "", most);
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

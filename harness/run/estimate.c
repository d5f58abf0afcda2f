/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates: see estimate.h. */
#include "harness/run/estimate.h"

#include <stdio.h>
#include <string.h>

#include "core/units.h"

/* The word behind "--name"; false where there is none. */
static bool argument_of(const char *arguments, const char *name, char *value, size_t len)
{
    size_t n = strlen(name), size;
    const char *at = arguments;

    while ((at = strstr(at, "--")) != NULL) {
        bool begins = at == arguments || at[-1] == ' ';

        at += 2;
        if (!begins || strncmp(at, name, n) != 0 || at[n] != ' ')
            continue;
        size = strcspn(at + n + 1, " ");
        snprintf(value, len, "%.*s", (int)size, at + n + 1);
        return true;
    }
    return false;
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

/* A benchmark that needs a group measures communicators of 1, 2, 4 .. N ranks in one launch, unless it is told which. */
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

struct estimate estimate_plan(const struct bench_list *benches, const struct plan *plan,
                              unsigned group_ranks)
{
    struct estimate e = {0};

    for (size_t i = 0; i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        const struct bench_info *b = bench_list_find(benches, l->bench);

        if (!b || l->state != LAUNCH_TODO)
            continue;
        uint64_t ns = launch_ns(b, l->arguments) * points_of(b, l, group_ranks);
        e.least_ns = !e.n || ns < e.least_ns ? ns : e.least_ns;
        e.most_ns = ns > e.most_ns ? ns : e.most_ns;
        e.all_ns += ns;
        e.n++;
    }
    return e;
}

/* Rounded up: it is a bound. */
static void long_time(uint64_t ns, char *text, size_t len)
{
    uint64_t s = (ns + 999999999) / 1000000000;

    if (s < 90)
        snprintf(text, len, "%llu s", (unsigned long long)s);
    else if (s < 90 * 60)
        snprintf(text, len, "%llu min", (unsigned long long)(s + 59) / 60);
    else
        snprintf(text, len, "%llu.%llu h", (unsigned long long)(s + 359) / 3600,
                 (unsigned long long)(s + 359) / 360 % 10);
}

const char *estimate_text(const struct estimate *e, char *text, size_t len)
{
    char all[32], least[32], most[32];
    bool same = e->least_ns == e->most_ns;

    long_time(e->all_ns, all, sizeof(all));
    units_format_duration(e->least_ns, least, sizeof(least));
    units_format_duration(e->most_ns, most, sizeof(most));
    snprintf(
        text, len,
        "at most about %s of warm-up and sampling (%zu %s x %s%s%s), and set-up and checks on top",
        all, e->n, e->n == 1 ? "launch" : "launches", same ? "" : least, same ? "" : " to ", most);
    return text;
}

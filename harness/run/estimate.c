/* SPDX-License-Identifier: Apache-2.0 */
/* How long the launches of a plan take: see estimate.h. */
#include "harness/run/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/units.h"
#include "harness/machine/fact.h"
#include "harness/run/run.h"
#include "harness/store/run_folder.h"
#include "harness/text.h"

#define RUNS_MAX 64 /* that are looked at, the newest ones */

/* ---- The last run of the suite ---- */

struct seen {
    char *path;
    time_t time;
};

static int by_time(const void *a, const void *b)
{
    time_t x = ((const struct seen *)a)->time, y = ((const struct seen *)b)->time;

    return (x < y) - (x > y); /* the newest first */
}

/* Of all cases, or of those of the same --only. */
static bool is_like(const char *path, const struct estimate_of *of)
{
    json_t *meta = NULL;
    char error[512];
    bool like =
        !run_folder_meta(path, &meta, error, sizeof(error)) && fact_is(meta, "state", "complete") &&
        fact_is(meta, "suite", of->suite) && fact_is(meta, "processes", of->processes) &&
        !run_meta_same(meta, error, sizeof(error)) &&
        (!json_is_string(fact_at(meta, "only")) || (of->only && fact_is(meta, "only", of->only)));

    json_decref(meta);
    return like;
}

/* By the number of a case: "bench arguments". */
static json_t *launches_of(const struct table *plan)
{
    json_t *all = json_object();

    for (size_t i = 0; i < plan->n_rows; i++) {
        const char *state = table_text(plan, i, "state");
        if ((!strcmp(state, "done") || !strcmp(state, "skip")) && !*table_text(plan, i, "from") &&
            !*table_text(plan, i, "hosts"))
            json_object_set_new(all, table_text(plan, i, "case"),
                                json_sprintf("%s %s", table_text(plan, i, "bench"),
                                             table_text(plan, i, "arguments")));
    }
    return all;
}

static void add(json_t *sums, const char *key, double value)
{
    json_object_set_new(sums, key, json_real(json_real_value(json_object_get(sums, key)) + value));
}

/* What launches took there, by "bench arguments". */
struct earlier {
    json_t *seconds, *launches; /* the sum, and of how many */
};

/* Fills in path; "": there is no such run. */
static void load_earlier(struct earlier *e, const struct estimate_of *of, char *path, size_t len)
{
    struct run_folder run;
    struct seen *all = NULL;
    size_t n = 0;
    char error[512];

    path[0] = 0;
    *e = (struct earlier){.seconds = json_object(), .launches = json_object()};
    for (const char *const *folder = of->folders; *folder; folder++) {
        struct run_paths runs = {0};
        struct stat st;

        run_folders_in(*folder, &runs);
        for (size_t i = 0; i < runs.n; i++) {
            char *file = xasprintf("%s/run.json", runs.all[i]);

            if (!stat(file, &st))
                *ARRAY_ADD(all, n) = (struct seen){xstrdup(runs.all[i]), st.st_mtime};
            free(file);
        }
        run_paths_release(&runs);
    }
    if (n)
        qsort(all, n, sizeof(*all), by_time);
    for (size_t i = 0; i < n && i < RUNS_MAX && !*path; i++)
        if (strlen(all[i].path) < len && is_like(all[i].path, of))
            strcpy(path, all[i].path);
    for (size_t i = 0; i < n; i++)
        free(all[i].path);
    free(all);
    if (!*path || run_folder_load(path, &run, error, sizeof(error)))
        return;
    json_t *launches = launches_of(&run.plan);
    for (size_t i = 0; i < run.n_benches; i++) {
        /* All rows of a launch have its time. */
        const struct table *t = &run.benches[i].rows;
        for (size_t row = 0; row < t->n_rows; row++) {
            const char *status = table_text(t, row, "status");
            const char *key =
                json_string_value(json_object_get(launches, table_text(t, row, "case")));
            double seconds = table_number(t, row, "launch_s");
            if (!key || !strcmp(status, "failed") || !strcmp(status, "wrong") || !isfinite(seconds))
                continue;
            add(e->seconds, key, seconds);
            add(e->launches, key, 1);
        }
    }
    json_decref(launches);
    run_folder_release(&run);
}

/* How long this launch took then; NaN: not known. */
static double earlier_seconds(const struct earlier *e, const struct launch *l)
{
    char *key = xasprintf("%s %s", l->bench, l->arguments);
    double n = launch_has_hosts(l) ? 0 : json_real_value(json_object_get(e->launches, key));
    double seconds = json_real_value(json_object_get(e->seconds, key));

    free(key);
    return n > 0 ? seconds / n : NAN;
}

/* ---- What a launch asks for ---- */

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

/* ---- The estimate ---- */

void estimate_make(struct estimate *e, const struct estimate_of *of)
{
    struct earlier earlier;

    *e = (struct estimate){.least_ns = INFINITY};
    load_earlier(&earlier, of, e->run, sizeof(e->run));
    for (size_t i = 0; i < of->plan->n; i++) {
        const struct launch *l = &of->plan->launches[i];
        double then_s = earlier_seconds(&earlier, l);
        double ns =
            isnan(then_s) ? (double)launch_asked_ns(of->benches, l, of->group_ranks) : 1e9 * then_s;

        *ARRAY_ADD(e->expected_ns, e->n) = ns;
        if (l->state != LAUNCH_TODO || !bench_list_find(of->benches, l->bench))
            continue;
        e->todo++;
        e->known += !isnan(then_s);
        e->all_ns += ns;
        e->least_ns = fmin(e->least_ns, ns);
        e->most_ns = fmax(e->most_ns, ns);
    }
    json_decref(earlier.seconds);
    json_decref(earlier.launches);
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
    if (!e->known)
        snprintf(text, ESTIMATE_BYTES,
                 "expected time: about %s of warm-up and sampling (%zu launch%s x %s%s%s); start, "
                 "set-up and checks come on top",
                 all, e->todo, e->todo == 1 ? "" : "es", e->least_ns < e->most_ns ? least : "",
                 e->least_ns < e->most_ns ? " to " : "", most);
    else
        snprintf(text, ESTIMATE_BYTES, "expected time: about %s, as %zu of %zu launches took in %s",
                 all, e->known, e->todo, e->run);
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

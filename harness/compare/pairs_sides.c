/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs may stand on which side: see pairs.h and pairs_parts.h. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/compare/pairs_parts.h"

static const json_t *meta_of(const struct pairs *p, size_t run)
{
    return p->report.runs[run].meta;
}

const char *sides_against(const struct pairs *p, size_t run, const char *key)
{
    const json_t *against = json_object_get(meta_of(p, run), "against");
    const char *text = json_string_value(json_object_get(against, key));

    return text ? text : "";
}

static bool are_the_two_targets(const struct pairs *p, size_t x, size_t y)
{
    const char *pair = sides_against(p, x, "pair");

    return *pair && !strcmp(pair, sides_against(p, y, "pair")) &&
           strcmp(sides_against(p, x, "side"), sides_against(p, y, "side")) != 0;
}

size_t sides_partner(const struct pairs *p, size_t run)
{
    bool of_a = run < p->n_a;

    for (size_t other = of_a ? p->n_a : 0; other < (of_a ? p->report.n_runs : p->n_a); other++)
        if (are_the_two_targets(p, run, other))
            return other;
    return SIZE_MAX;
}

static bool has_partner(const struct pairs *p, size_t run)
{
    size_t partner = sides_partner(p, run);

    return partner != SIZE_MAX && sides_partner(p, partner) == run;
}

bool sides_in_turn(const struct pairs *p)
{
    bool all = true;

    for (size_t run = 0; all && run < p->report.n_runs; run++)
        all = has_partner(p, run);
    return all;
}

size_t pairs_without_partner(const struct pairs *p, size_t *first)
{
    size_t n = 0;

    *first = SIZE_MAX;
    for (size_t run = 0; run < p->report.n_runs; run++) {
        if (has_partner(p, run))
            continue;
        *first = n++ ? *first : run;
    }
    return n < p->report.n_runs ? n : 0;
}

bool pairs_is_level(const struct pairs *p, size_t run)
{
    return run >= p->n_a || !p->roles || p->roles[run].role == DECIDE_LEVEL;
}

int sides_refuse_mixed(const struct pairs *p, char *error, size_t len)
{
    for (size_t x = 0; x < p->report.n_runs; x++)
        for (size_t y = x + 1; y < p->report.n_runs; y++) {
            if ((x < p->n_a) != (y < p->n_a) || !pairs_is_level(p, x) || !pairs_is_level(p, y) ||
                !are_the_two_targets(p, x, y))
                continue;
            snprintf(error, len,
                     "'%.300s' and '%.300s' are the two targets of one plumb run --against, and "
                     "would be averaged on one side: name the folder of both alone to hold b "
                     "against a (plumb compare PAIR), or one of the two on each side",
                     p->report.runs[x].path, p->report.runs[y].path);
            return -EPROTO;
        }
    return 0;
}

static bool same_path(const char *x, const char *y)
{
    char *real_x = realpath(x, NULL), *real_y = realpath(y, NULL);
    bool same = real_x && real_y && !strcmp(real_x, real_y);

    free(real_x);
    free(real_y);
    return same;
}

static bool same_text(const json_t *x, const json_t *y, const char *key)
{
    const json_t *value = json_object_get(x, key);

    return json_is_string(value) && json_equal(value, json_object_get(y, key));
}

/* A copy of a run is the same run. */
static bool same_meta(const json_t *x, const json_t *y)
{
    return same_text(x, y, "run") && same_text(x, y, "started_utc") &&
           same_text(json_object_get(json_object_get(x, "machine"), "host"),
                     json_object_get(json_object_get(y, "machine"), "host"), "hostname");
}

static bool is_same_run(const struct pairs *p, size_t x, size_t y)
{
    return same_path(p->report.runs[x].path, p->report.runs[y].path) ||
           same_meta(meta_of(p, x), meta_of(p, y));
}

int sides_refuse_twice(const struct pairs *p, char *error, size_t len)
{
    for (size_t x = 0; x < p->report.n_runs; x++)
        for (size_t y = x + 1; y < (x < p->n_a ? p->n_a : p->report.n_runs); y++) {
            const char *path_x = p->report.runs[x].path, *path_y = p->report.runs[y].path;

            if (!is_same_run(p, x, y))
                continue;
            if (!strcmp(path_x, path_y))
                snprintf(error, len,
                         "'%.300s' is named twice on one side: its launches would count as those "
                         "of two runs, so name it once",
                         path_x);
            else
                snprintf(error, len,
                         "'%.300s' and '%.300s' on one side are the same run: its launches would "
                         "count as those of two, so leave one out",
                         path_x, path_y);
            return -EEXIST;
        }
    return 0;
}

int pairs_refuse_same(const struct pairs *p, char *error, size_t len)
{
    for (size_t x = 0; x < p->n_a; x++)
        for (size_t y = p->n_a; y < p->report.n_runs; y++) {
            if (!is_same_run(p, x, y))
                continue;
            snprintf(error, len,
                     "the same run is on both sides, in '%.300s' and in '%.300s': what is held "
                     "against itself tells nothing, so name two runs",
                     p->report.runs[x].path, p->report.runs[y].path);
            return -EEXIST;
        }
    return 0;
}

const char *pairs_unfinished(const struct pairs *p, size_t *n)
{
    const char *first = "";

    *n = 0;
    for (size_t run = 0; run < p->report.n_runs; run++) {
        const char *state = json_string_value(json_object_get(meta_of(p, run), "state"));

        if (!state || !strcmp(state, "complete"))
            continue;
        first = *n ? first : state;
        ++*n;
    }
    return first;
}

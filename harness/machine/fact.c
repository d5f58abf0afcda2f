/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the facts of a machine: see fact.h. */
#include "harness/machine/fact.h"

#include <fnmatch.h>
#include <hwloc.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The member that the first n bytes name, with this ending. */
static const json_t *member(const json_t *object, const char *path, size_t n, const char *ending)
{
    char key[128];

    snprintf(key, sizeof(key), "%.*s%s", (int)n, path, ending);
    return json_object_get(object, key);
}

const json_t *fact_at(const json_t *object, const char *path)
{
    while (object && *path) {
        size_t n = strcspn(path, ".");

        object = path[n] ? member(object, path, n, "") : json_object_get(object, path);
        path += n + (path[n] == '.');
    }
    return object;
}

const char *fact_why(const json_t *object, const char *path)
{
    while (*path) {
        size_t n = strcspn(path, ".");
        const json_t *value = member(object, path, n, "");

        if (!value || json_is_null(value)) {
            const char *why = fact_word(member(object, path, n, "_why"));

            return *why ? why : FACT_UNRECORDED;
        }
        object = value;
        path += n + (path[n] == '.');
    }
    return "";
}

const char *fact_word(const json_t *value)
{
    const char *text = json_string_value(value);

    return text ? text : "";
}

const char *fact_name(const json_t *object, const char *path)
{
    return fact_word(fact_at(object, path));
}

double fact_number(const json_t *object, const char *path, double other)
{
    const json_t *value = fact_at(object, path);

    return json_is_number(value) ? json_number_value(value) : other;
}

long long fact_integer(const json_t *object, const char *path, long long other)
{
    const json_t *value = fact_at(object, path);

    return json_is_integer(value) ? json_integer_value(value) : other;
}

unsigned fact_whole(double value)
{
    return value >= 0 && value <= UINT_MAX ? (unsigned)value : 0;
}

bool fact_true(const json_t *object, const char *path)
{
    return json_is_true(fact_at(object, path));
}

bool fact_is(const json_t *object, const char *path, const char *text)
{
    return !strcmp(fact_name(object, path), text);
}

bool fact_has_word(const json_t *list, const char *word)
{
    FACT_EACH (list, one)
        if (json_is_string(one) && !strcmp(json_string_value(one), word))
            return true;
    return false;
}

const json_t *fact_one_of(const json_t *list, const char *key, const char *text)
{
    FACT_EACH (list, one)
        if (*text && fact_is(one, key, text))
            return one;
    return NULL;
}

bool fact_fits(const char *patterns, const char *name)
{
    for (const char *at = patterns ? patterns : ""; *at; at += *at == '|') {
        size_t n = strcspn(at, "|");
        char pattern[64];

        if ((size_t)snprintf(pattern, sizeof(pattern), "%.*s", (int)n, at) < sizeof(pattern) &&
            !fnmatch(pattern, name, 0))
            return true;
        at += n;
    }
    return false;
}

bool fact_passes(const char *key)
{
    static const char *const keys[] = {
        "because",  "container_because", "load", "counters", "hw_counters", "clock_reasons",
        "findings", "pause_counters",    "rank", "grown",    NULL};
    size_t n = strlen(key), i = 0;

    while (keys[i] && strcmp(keys[i], key) != 0)
        i++;
    return keys[i] || (n > 4 && !strcmp(key + n - 4, "_why"));
}

hwloc_bitmap_t fact_cpu_set(const char *list)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    size_t digits = 0;

    /* hwloc takes memory for as many as a number says. */
    for (const char *at = list; *at && digits <= 5; at += digits + (at[digits] != '\0'))
        digits = strspn(at, "0123456789");
    if (digits <= 5 && (hwloc_bitmap_list_sscanf(cpus, list) || hwloc_bitmap_weight(cpus) < 0))
        hwloc_bitmap_zero(cpus);
    return cpus;
}

bool fact_common(const char *one, const char *other)
{
    hwloc_bitmap_t a = fact_cpu_set(one), b = fact_cpu_set(other);
    bool common = hwloc_bitmap_intersects(a, b);

    hwloc_bitmap_free(a);
    hwloc_bitmap_free(b);
    return common;
}

double fact_cpus(const char *list)
{
    hwloc_bitmap_t cpus = fact_cpu_set(list);
    int n = hwloc_bitmap_weight(cpus);

    hwloc_bitmap_free(cpus);
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Cases over pairs of hosts: see spread.h. */
#include "harness/hosts/spread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/suite_expand.h"

static bool is_spread(const struct suite_case *c)
{
    return c->between != BETWEEN_NONE && bench_needs(c->bench, "peer");
}

bool spread_wanted(const struct suite *suite)
{
    for (size_t i = 0; i < suite->n; i++)
        if (is_spread(&suite->cases[i]))
            return true;
    return false;
}

static bool is_pair(enum suite_between between, size_t n, size_t from, size_t to)
{
    switch (between) {
    case BETWEEN_RING:
        return n == 2 ? from == 0 && to == 1 : to == (from + 1) % n;
    case BETWEEN_FIRST:
        return from == 0 && to != 0;
    case BETWEEN_ALL:
        return from < to;
    case BETWEEN_NONE:
        break;
    }
    return false;
}

static int copy_case(const struct suite_case *c, const char *from, const char *to,
                     struct suite_case *copy)
{
    *copy = *c;
    copy->meaning = NULL;
    copy->arguments = strdup(c->arguments);
    copy->from = from ? strdup(from) : NULL;
    copy->to = to ? strdup(to) : NULL;
    return copy->arguments && (!from || copy->from) && (!to || copy->to) ? 0 : -ENOMEM;
}

struct spreading {
    const struct hosts *hosts;
    struct suite_case *cases;
    size_t n, capacity;
    bool *used; /* pairs, [from * hosts->n + to] */
    struct spread *told;
};

static int append(struct spreading *s, const struct suite_case *c, const char *from, const char *to)
{
    if (s->n == SUITE_CASES_MAX)
        return -E2BIG;
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 64;
        struct suite_case *grown = realloc(s->cases, capacity * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        s->cases = grown;
        s->capacity = capacity;
    }
    return copy_case(c, from, to, &s->cases[s->n++]);
}

static int append_pairs(struct spreading *s, const struct suite_case *c)
{
    size_t n = s->hosts->n;
    int err = 0;

    for (size_t i = 0; !err && i < n * n; i++) {
        if (!is_pair(c->between, n, i / n, i % n))
            continue;
        s->told->pairs += !s->used[i];
        s->used[i] = true;
        err = append(s, c, s->hosts->all[i / n].name, s->hosts->all[i % n].name);
    }
    return err;
}

static int append_all(struct spreading *s, const struct suite *suite)
{
    int err = 0;

    for (size_t i = 0; !err && i < suite->n; i++) {
        const struct suite_case *c = &suite->cases[i];
        bool spread = is_spread(c);
        s->told->between += spread;
        s->told->here += !spread;
        err = spread ? append_pairs(s, c) : append(s, c, NULL, NULL);
    }
    return err;
}

static void free_cases(struct suite_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        suite_case_release(&cases[i]);
    free(cases);
}

int spread_suite(struct suite *suite, const struct hosts *hosts, struct spread *told, char *error,
                 size_t len)
{
    struct spreading s = {.hosts = hosts, .told = told};
    int err;

    *told = (struct spread){0};
    s.used = calloc(hosts->n * hosts->n + 1, sizeof(*s.used));
    err = s.used ? append_all(&s, suite) : -ENOMEM;
    free(s.used);
    if (err) {
        free_cases(s.cases, s.n);
        snprintf(error, len,
                 err == -ENOMEM
                     ? "out of memory"
                     : "over %d cases with %zu hosts: shorten a list, or say 'between: first'",
                 SUITE_CASES_MAX, hosts->n);
        return err == -ENOMEM ? err : -EINVAL;
    }
    free_cases(suite->cases, suite->n);
    suite->cases = s.cases;
    suite->n = s.n;
    return 0;
}

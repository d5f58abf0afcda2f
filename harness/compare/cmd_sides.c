/* SPDX-License-Identifier: Apache-2.0 */
/* Which folders are on which side: see cmd.h. */
#include "harness/compare/cmd.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int add(char ***list, size_t *n, const char *text, size_t len)
{
    char **longer = realloc(*list, (*n + 1) * sizeof(**list));

    if (!longer)
        return -ENOMEM;
    *list = longer;
    longer[*n] = strndup(text, len);
    if (!longer[*n])
        return -ENOMEM;
    ++*n;
    return 0;
}

/* A folder whose name has a comma in it is one folder. */
static int add_word(char ***list, size_t *n, const char *word)
{
    int err = 0;

    if (!access(word, F_OK))
        return add(list, n, word, strlen(word));
    while (!err && *word) {
        size_t len = strcspn(word, ",");

        if (len)
            err = add(list, n, word, len);
        word += len + (word[len] == ',');
    }
    return err;
}

static bool has_run(const char *pair, const char *side)
{
    char *meta;
    bool has = asprintf(&meta, "%s/%s/run.json", pair, side) >= 0;

    if (has) {
        json_t *run = json_load_file(meta, 0, NULL);

        has = json_is_object(json_object_get(run, "against"));
        json_decref(run);
        free(meta);
    }
    return has;
}

/* What plumb run --against leaves. */
static bool is_pair(const char *path)
{
    return has_run(path, "a") && has_run(path, "b");
}

static int add_side(char ***list, size_t *n, const char *pair, const char *side)
{
    char *path;

    if (asprintf(&path, "%s/%s", pair, side) < 0)
        return -ENOMEM;
    int err = add(list, n, path, strlen(path));
    free(path);
    return err;
}

static int add_pair(struct compare_sides *sides, const char *path)
{
    int err = add_side(&sides->a, &sides->n_a, path, "a");

    return err ? err : add_side(&sides->b, &sides->n_b, path, "b");
}

static int check(size_t before, size_t behind, bool marked, char *error, size_t len)
{
    if (!before && !behind)
        snprintf(error, len,
                 "which runs? Name two, for example: plumb compare results/bare "
                 "results/guest");
    else if (marked && (!before || !behind))
        snprintf(error, len, "no run is named %s --against: A stands before it, B behind it",
                 before ? "behind" : "before");
    else if (!marked && before == 1)
        snprintf(error, len,
                 "against which run? Name two: the first is what the second is held "
                 "against");
    else if (!marked && before > 2)
        snprintf(error, len,
                 "%zu folders are named, and not which of them belong together: put --against "
                 "between the two sides",
                 before);
    else
        return 0;
    return -EINVAL;
}

int compare_sides(char *const *words, size_t n, const size_t *before, struct compare_sides *sides,
                  char *error, size_t len)
{
    size_t n_a = before ? *before : 1;
    int err;

    *sides = (struct compare_sides){0};
    if (!before && n == 1 && is_pair(words[0]))
        return add_pair(sides, words[0]);
    err = check(before ? n_a : n, before ? n - n_a : 0, before != NULL, error, len);
    for (size_t i = 0; !err && i < n; i++)
        err = i < n_a ? add_word(&sides->a, &sides->n_a, words[i])
                      : add_word(&sides->b, &sides->n_b, words[i]);
    if (!err && (!sides->n_a || !sides->n_b)) {
        snprintf(error, len, "the name of a run is empty");
        err = -EINVAL;
    }
    return err;
}

static void release(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void compare_sides_release(struct compare_sides *sides)
{
    release(sides->a, sides->n_a);
    release(sides->b, sides->n_b);
    *sides = (struct compare_sides){0};
}

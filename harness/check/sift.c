/* SPDX-License-Identifier: Apache-2.0 */
/* Sifting run folders: see sift.h. */
#include "harness/check/sift.h"

#include <stdio.h>
#include <string.h>

#include "harness/history/history_db_build.h"
#include "harness/store/run_folder.h"

#define NAMED_MAX 4

/* What run.json does not say is the same as anything. */
static void keep(char *to, size_t len, const char *text)
{
    snprintf(to, len, "%s", strcmp(text, "unknown") != 0 ? text : "");
}

void sift_init(struct sift *s, const char *run)
{
    struct run_folder folder = {0};
    char error[256];

    *s = (struct sift){0};
    if (!run_folder_load(run, &folder, error, sizeof(error))) {
        struct history_run r = history_run_of(&folder);

        keep(s->host, sizeof(s->host), r.host);
        keep(s->suite, sizeof(s->suite), r.suite);
    }
    run_folder_release(&folder);
}

static void add(struct sift_list *list, const char *name, const char *what)
{
    size_t used = strlen(list->names), len = sizeof(list->names) - used;

    if (list->n++ < NAMED_MAX)
        snprintf(list->names + used, len, "%s%.40s (%.30s)", used ? ", " : "", name, what);
}

static bool is_other(const char *own, const char *other)
{
    return *own && strcmp(other, "unknown") != 0 && strcmp(own, other) != 0;
}

bool sift_takes(struct sift *s, const char *path)
{
    struct run_folder folder = {0};
    char error[256];
    bool takes = true;

    if (!run_folder_load(path, &folder, error, sizeof(error))) {
        struct history_run r = history_run_of(&folder);
        const char *state = json_string_value(json_object_get(folder.meta, "state"));

        takes = !state || !strcmp(state, "complete");
        if (!takes)
            add(&s->unfinished, r.name, state);
        else if (is_other(s->host, r.host))
            add(&s->hosts, r.name, r.host);
        else if (is_other(s->suite, r.suite))
            add(&s->suites, r.name, r.suite);
    }
    run_folder_release(&folder);
    return takes;
}

static void tell(const struct sift_list *list, const char *what, char *text, size_t len)
{
    size_t used = strlen(text);

    if (!list->n)
        return;
    used += (size_t)snprintf(text + used, len - used, "; %zu %s: %s", list->n, what, list->names);
    if (list->n > NAMED_MAX && used < len)
        snprintf(text + used, len - used, " and %zu more", list->n - NAMED_MAX);
}

void sift_tell(const struct sift *s, char *text, size_t len)
{
    tell(&s->unfinished, "left out, as not measured to the end", text, len);
    tell(&s->hosts, "of another host, whose levels may be others", text, len);
    tell(&s->suites, "of another suite", text, len);
}

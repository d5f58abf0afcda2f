/* SPDX-License-Identifier: Apache-2.0 */
/* Where suites are: see suite.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/option.h"
#include "harness/plan/suite.h"

#define SUITES_MAX 64 /* among which a mistyped name is looked for */

char *suite_configs_folder(void)
{
    char own[4000] = "", path[4200];
    const char *places[4], *env = getenv("PLUMB_CONFIGS");
    size_t n = 0;

    if (env && *env)
        return strdup(env);
    program_folder(own, sizeof(own));
    places[n++] = "configs";
    places[n++] = "/../../configs";
    places[n++] = "/../share/plumbline/configs";
    places[n++] = "/../configs";
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s%s", i ? own : "", places[i]);
        if (!access(path, R_OK | X_OK))
            return strdup(path);
    }
    return NULL;
}

static int is_suite(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot && dot != entry->d_name && !strcmp(dot, ".yaml");
}

/* Says that there is no such suite, and which one may have been meant. */
static void say_missing(const char *configs, const char *name, char *error, size_t len)
{
    const char *names[SUITES_MAX + 1] = {NULL};
    struct dirent **entries = NULL;
    int n = scandir(configs, &entries, is_suite, alphasort);

    for (int i = 0; i < n && i < SUITES_MAX; i++) {
        *strrchr(entries[i]->d_name, '.') = 0;
        names[i] = entries[i]->d_name;
    }
    const char *near = opts_nearest(name, names);
    snprintf(error, len, "no suite '%s' in '%s'%s%s%s; `plumb list` shows the suites", name,
             configs, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
}

char *suite_find(const char *name, char *error, size_t len)
{
    char *configs = NULL, *path = NULL;

    if (strchr(name, '/') || strstr(name, ".yaml"))
        return strdup(name);
    configs = suite_configs_folder();
    if (!configs)
        snprintf(error, len,
                 "no folder 'configs' here or beside the program: set PLUMB_CONFIGS, or give the "
                 "suite's file");
    else if (asprintf(&path, "%s/%s.yaml", configs, name) < 0)
        path = NULL;
    if (path && access(path, R_OK)) {
        say_missing(configs, name, error, len);
        free(path);
        path = NULL;
    }
    free(configs);
    return path;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where suites are: see suite.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/plan/suite.h"

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
        snprintf(error, len, "no suite '%s': '%s' is not there; `plumb list` shows the suites",
                 name, path);
        free(path);
        path = NULL;
    }
    free(configs);
    return path;
}

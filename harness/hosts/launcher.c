/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers: see launcher.h. */
#include "harness/hosts/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct launcher *const launchers[] = {&launcher_ssh, &launcher_mpirun, &launcher_srun, NULL};

const struct launcher *launcher_find(const char *name)
{
    for (size_t i = 0; launchers[i]; i++)
        if (!strcmp(launchers[i]->name, name))
            return launchers[i];
    return NULL;
}

bool launcher_has_program(const char *name)
{
    const char *path = getenv("PATH");
    char file[4096];

    if (strchr(name, '/'))
        return !access(name, X_OK);
    while (path && *path) {
        size_t n = strcspn(path, ":");
        snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, name);
        if (n && !access(file, X_OK))
            return true;
        path += n + (path[n] == ':');
    }
    return false;
}

const char *launcher_by(const struct hosts_run *run, char text[LAUNCHER_BY_SIZE])
{
    struct words w = {0};

    if (!run->launcher->ranks && run->rsh)
        words_split(&w, run->rsh);
    snprintf(text, LAUNCHER_BY_SIZE, "by %s", !w.err && w.n ? w.all[0] : run->launcher->name);
    words_release(&w);
    return text;
}

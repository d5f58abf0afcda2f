// SPDX-License-Identifier: Apache-2.0
/* Machines that nobody here owns (tests/machines/README.md), for tests of what reads /sys and /proc. */
#ifndef PLUMB_TESTS_MACHINES_H
#define PLUMB_TESTS_MACHINES_H

#include <dirent.h>

#include "tests/unit/unit.h"

#define MACHINES_EXPECTED "tests/machines" /* NAME/expected.json, NAME/expected.txt */
#define MACHINES          "build/machines" /* NAME/root, made by "make machines" */
#define MACHINE(name)     MACHINES "/" name "/root"

/* Calls look for each machine of which something is expected, and fails where its tree is missing; returns how many. */
static inline size_t machines_each(void (*look)(const char *name, void *arg), void *arg)
{
    DIR *dir = opendir(MACHINES_EXPECTED);
    struct dirent *entry;
    char path[512];
    size_t count = 0;

    if (!dir)
        fail_msg("cannot open \"" MACHINES_EXPECTED "\": run this from the root of the source");
    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof(path), MACHINES_EXPECTED "/%s/expected.json", entry->d_name);
        if (entry->d_name[0] == '.' || access(path, F_OK))
            continue;
        snprintf(path, sizeof(path), MACHINE("%s"), entry->d_name);
        if (access(path, R_OK | X_OK))
            fail_msg("no \"%s\": make machines", path);
        look(entry->d_name, arg);
        count++;
    }
    if (dir)
        closedir(dir);
    return count;
}

#endif

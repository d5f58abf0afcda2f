/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, opened when they are first asked for: see backend.h. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/backend.h"

static const char *const folders[] = {".", "../lib/plumbline", "../lib", NULL};

/* The module's path, in `path`; 0 or -ENOENT. */
static int find(const struct module_kind *kind, char *path, size_t len)
{
    const char *given = getenv(kind->environment);
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (given && *given) {
        snprintf(path, len, "%s", given);
        return 0;
    }
    if (n < 0)
        return -ENOENT;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; folders[i]; i++) {
        int wrote = snprintf(path, len, "%s/%s/%s", self, folders[i], kind->file);
        if (wrote > 0 && (size_t)wrote < len && !access(path, R_OK))
            return 0;
    }
    return -ENOENT;
}

/* The loader's own text names what it misses first: "libX.so.1: cannot open shared object file:
 * ...". */
static void say_unloadable(const struct module_kind *kind, const char *path, const char *said,
                           char *why, size_t len)
{
    static const char no_library[] = ": cannot open shared object file";
    const char *end = said ? strstr(said, no_library) : NULL;

    if (access(path, R_OK))
        snprintf(
            why, len,
            "the %s does not load: '%.120s' cannot be read (%s): name another in %s, or unset it",
            kind->what, path, strerror(errno), kind->environment);
    else if (end && strncmp(said, path, strlen(path)) != 0)
        snprintf(why, len,
                 "the %s does not load: '%.120s' needs '%.*s': install that library, or name its "
                 "folder in LD_LIBRARY_PATH",
                 kind->what, path, (int)(end - said < 80 ? end - said : 80), said);
    else
        snprintf(why, len,
                 "the %s does not load: %.160s: build it and the program from the same source, on "
                 "this kind of machine, with make",
                 kind->what, said ? said : path);
}

const void *module_open(const struct module_kind *kind, char *why, size_t len)
{
    char path[PATH_MAX + 64];

    if (find(kind, path, sizeof(path))) {
        snprintf(why, len, "no %s: '%s' was not built, %s", kind->what, kind->file, kind->unbuilt);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const void *table = library ? dlsym(library, kind->symbol) : NULL;
    if (!table)
        say_unloadable(kind, path, dlerror(), why, len);
    return table;
}

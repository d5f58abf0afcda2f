/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's libraries that do not come with the driver, where they lie: where the loader looks, in a toolkit's folder,
 * or in the wheels that come with torch. Static, since the modules that open them link nothing of core.
 */
#ifndef PLUMB_CORE_HW_NVIDIA_LIBRARY_H
#define PLUMB_CORE_HW_NVIDIA_LIBRARY_H

#include <dlfcn.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Opens the first file that matches and loads; NULL: none does. */
static void *nvidia_open_like(const char *home, const char *below, const char *name)
{
    char pattern[PATH_MAX];
    void *library = NULL;
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/%s/%s", home, below, name);
    if (glob(pattern, GLOB_BRACE, NULL, &found))
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && !library; i++)
        library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return library;
}

/* The folder above that of the first program of this name on the path; with `follow`, where links lead. */
static bool nvidia_home_of(const char *program, bool follow, char *home, size_t len)
{
    char file[PATH_MAX], real[PATH_MAX];

    for (const char *at = getenv("PATH"); at && *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        snprintf(file, sizeof(file), "%.*s/%s", (int)n, at, program);
        at += n;
        if (!n || access(file, X_OK) || (follow && !realpath(file, real)))
            continue;
        snprintf(home, len, "%s", dirname(dirname(follow ? real : file)));
        return true;
    }
    return false;
}

#define NVIDIA_IN_TOOLKIT "{lib64,lib,build/lib}"
#define NVIDIA_IN_PYTHON  "lib/python3*/{site,dist}-packages/nvidia/*/lib"

/* In the folders that these variables name, up to NULL. */
static void *nvidia_open_set(const char *const *variables, const char *in, const char *name)
{
    void *library = NULL;

    for (; *variables && !library; variables++) {
        const char *set = getenv(*variables);
        if (set && *set)
            library = nvidia_open_like(set, in, name);
    }
    return library;
}

/* Toolkits that lie in a folder of their own, which the loader does not know. */
static void *nvidia_open_toolkit(const char *name)
{
    static const char *const homes[] = {"NCCL_HOME", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX",
                                        NULL};
    char home[PATH_MAX];
    void *library = nvidia_open_set(homes, NVIDIA_IN_TOOLKIT, name);

    if (!library && nvidia_home_of("nvcc", true, home, sizeof(home)))
        library = nvidia_open_like(home, NVIDIA_IN_TOOLKIT, name);
    return library ? library : nvidia_open_like("/usr/local/cuda", NVIDIA_IN_TOOLKIT, name);
}

/* The environment that is active, else that of the first python3 on the path, else where pip installs for all and for
 * one user. */
static void *nvidia_open_python(const char *name)
{
    static const char *const homes[] = {"VIRTUAL_ENV", "CONDA_PREFIX", NULL};
    const char *user = getenv("HOME");
    char home[PATH_MAX];
    void *library = nvidia_open_set(homes, NVIDIA_IN_PYTHON, name);

    if (!library && nvidia_home_of("python3", false, home, sizeof(home)))
        library = nvidia_open_like(home, NVIDIA_IN_PYTHON, name);
    if (!library)
        library = nvidia_open_like("/usr/local", NVIDIA_IN_PYTHON, name);
    snprintf(home, sizeof(home), "%s/.local", user ? user : "");
    return library || !user ? library : nvidia_open_like(home, NVIDIA_IN_PYTHON, name);
}

/* In the folders of LD_LIBRARY_PATH, which a program's own path (../lib) would go before. */
static void *nvidia_open_asked(const char *name)
{
    char home[PATH_MAX];
    void *library = NULL;

    for (const char *at = getenv("LD_LIBRARY_PATH"); at && *at && !library; at += *at == ':') {
        size_t n = strcspn(at, ":");

        snprintf(home, sizeof(home), "%.*s", (int)n, at);
        library = n ? nvidia_open_like(home, ".", name) : NULL;
        at += n;
    }
    return library;
}

/* The first of that name; NULL: there is none. */
static void *nvidia_open(const char *name)
{
    void *library = nvidia_open_asked(name);

    if (!library)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = nvidia_open_toolkit(name);
    return library ? library : nvidia_open_python(name);
}

/* Which file that was. */
static const char *nvidia_path(void *library)
{
    struct link_map *map;

    return dlinfo(library, RTLD_DI_LINKMAP, &map) ? "" : map->l_name;
}

#endif

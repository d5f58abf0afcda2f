// SPDX-License-Identifier: Apache-2.0
/* A small tree of files below a folder of its own in /tmp, for tests of what reads /sys and /proc. */
#ifndef PLUMB_TESTS_SCRATCH_TREE_H
#define PLUMB_TESTS_SCRATCH_TREE_H

#include <ftw.h>
#include <sys/stat.h>

#include "tests/unit/unit.h"

struct scratch {
    char root[64];
};

static inline void scratch_open(struct scratch *s)
{
    strcpy(s->root, "/tmp/plumb-tree-XXXXXX");
    if (!mkdtemp(s->root))
        abort();
}

static inline int scratch_unlink(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline void scratch_close(struct scratch *s)
{
    nftw(s->root, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* The full path of a file in the tree, with its folders made; valid until the next call. */
static inline const char *scratch_path(const struct scratch *s, const char *path)
{
    static char full[4096];

    snprintf(full, sizeof(full), "%s/%s", s->root, path);
    for (char *slash = full + strlen(s->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    return full;
}

static inline void scratch_bytes(const struct scratch *s, const char *path, const void *bytes,
                                 size_t size)
{
    FILE *f = fopen(scratch_path(s, path), "w");

    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f))
        abort();
}

static inline void scratch_put(const struct scratch *s, const char *path, const char *text)
{
    scratch_bytes(s, path, text, strlen(text));
}

static inline void scratch_link(const struct scratch *s, const char *path, const char *target)
{
    if (symlink(target, scratch_path(s, path)))
        abort();
}

static inline void scratch_folder(const struct scratch *s, const char *path)
{
    mkdir(scratch_path(s, path), 0755);
}

#endif

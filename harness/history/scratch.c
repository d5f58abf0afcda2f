/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for the while: see scratch.h. */
#include "harness/history/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int scratch_make(char **folder, char *error, size_t len)
{
    const char *root = getenv("TMPDIR");

    if (asprintf(folder, "%s/plumb-history-XXXXXX", root && *root ? root : "/tmp") < 0) {
        *folder = NULL;
        snprintf(error, len, "out of memory");
        return -ENOMEM;
    }
    if (mkdtemp(*folder))
        return 0;
    int err = -errno;
    snprintf(error, len, "cannot make a folder '%s': %s: set TMPDIR to one that can be written",
             *folder, strerror(-err));
    free(*folder);
    *folder = NULL;
    return err;
}

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void scratch_remove(char *folder)
{
    if (folder)
        nftw(folder, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

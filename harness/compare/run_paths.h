/* SPDX-License-Identifier: Apache-2.0 */
/* Run folders behind paths: each path a run, or a folder of runs, which come in the order of their start. */
#ifndef PLUMB_COMPARE_RUN_PATHS_H
#define PLUMB_COMPARE_RUN_PATHS_H

#include <stddef.h>

struct run_paths {
    char **all;
    size_t n;
};

/* Adds those of one path. 0; -ENOENT: no run there; -EPROTO: a run of a schema that this program does
 * not know, or of none; -ENOMEM, other -errno. error says which and why. */
int run_paths_add(struct run_paths *paths, const char *path, char *error, size_t len);
void run_paths_release(struct run_paths *paths);

#endif

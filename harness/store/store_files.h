/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a store, shared by store.c and store_open.c alone. */
#ifndef PLUMB_HARNESS_STORE_FILES_H
#define PLUMB_HARNESS_STORE_FILES_H

#include <stdbool.h>

#include "harness/store/store.h"

struct store_file {
    char name[128];
    int fd;
    uint64_t size, undo; /* bytes now, and before the last append */
    bool dirty, known;   /* known: its header has been compared */
};

struct store {
    char *path;
    int dir, plan_fd; /* the lock is on dir */
    struct plan *plan;
    struct store_file *files;
    size_t n_files;
    uint64_t last_sync_ns, spent_ns;
};

int store_open_folder(const char *path, struct plan *plan, struct store **store, char *error,
                      size_t len);
int store_open_plan(struct store *s, char *error, size_t len);
/* Writes a file whole: beside it, synced, renamed. */
int store_replace(struct store *s, const char *name, const char *text, size_t size);

#endif

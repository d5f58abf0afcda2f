// SPDX-License-Identifier: Apache-2.0
/* What is known not to be there: see tree_absent() in tree.h. */
#include "harness/probe/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ABSENT_MAX = 4 << 20 };

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What the recording says is not there; without memory for it nothing is known to be absent. */
void tree_load_absent(struct tree *tree)
{
    char *text = malloc(ABSENT_MAX), *save = NULL;

    if (text && !tree_read(tree, "plumb/absent", text, ABSENT_MAX, NULL))
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
            if (names_add(&tree->absent, line))
                break;
    if (tree->absent.count)
        qsort(tree->absent.name, tree->absent.count, sizeof(*tree->absent.name), by_name);
    free(text);
}

/* The kernel's folders are never empty: one that is stands for what is hidden or not mounted. */
static bool has_entries(const struct tree *tree, const char *folder)
{
    struct names names;
    bool some = !tree_list(tree, folder, &names) && names.count;

    names_free(&names);
    return some;
}

bool tree_absent(const struct tree *tree, const char *path)
{
    char above[TREE_PATH], *slash;
    const char *key = above;
    struct stat st;
    int rc = tree_stat(tree, path, &st);

    if ((rc != -ENOENT && rc != -ENOTDIR) ||
        (size_t)snprintf(above, sizeof(above), "%s", path) >= sizeof(above))
        return false;
    while (above[0]) {
        if (!tree->live && tree->absent.count &&
            bsearch(&key, tree->absent.name, tree->absent.count, sizeof(*tree->absent.name),
                    by_name))
            return true;
        slash = strrchr(above, '/');
        *(slash ? slash : above) = '\0';
        if (tree->live && tree_exists(tree, above[0] ? above : "/"))
            return !above[0] || has_entries(tree, above);
    }
    return false;
}

bool tree_absent_at(const struct tree *tree, const char *folder, const char *file)
{
    return tree_absent(tree, tree_join(folder, file).s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of this room share. */
#ifndef PLUMB_COMPARE_CMD_H
#define PLUMB_COMPARE_CMD_H

#include <stddef.h>

#define COMPARE_MARGIN 0.05 /* where neither the user nor the suite says one */

/* The folders of both sides, from what the user named: see compare_sides(). */
struct compare_sides {
    char **a, **b;
    size_t n_a, n_b;
};

/* From the words that are no options. before NULL: two of them, each a folder or several with commas
 * between, or one: the folder of a plumb run --against, whose a and b are meant; else so many of them are A's and the others B's. 0; -EINVAL with error set; -ENOMEM. */
int compare_sides(char *const *words, size_t n, const size_t *before, struct compare_sides *sides,
                  char *error, size_t len);
void compare_sides_release(struct compare_sides *sides);

#endif

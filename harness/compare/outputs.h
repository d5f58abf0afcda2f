/* SPDX-License-Identifier: Apache-2.0 */
/* Where the outputs of one command go. */
#ifndef PLUMB_COMPARE_OUTPUTS_H
#define PLUMB_COMPARE_OUTPUTS_H

#include <stddef.h>

struct output_asked {
    const char *option; /* "--json" */
    const char *path;   /* "-": stdout; NULL: not asked for */
};

/* -EINVAL with error set where two of them go to one place, in which they would mix; else 0. */
int outputs_refuse_mixed(const struct output_asked *all, size_t n, char *error, size_t len);

#endif

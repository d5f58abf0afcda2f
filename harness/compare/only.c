/* SPDX-License-Identifier: Apache-2.0 */
/* See only.h. */
#include "harness/compare/only.h"

#include <stdlib.h>
#include <string.h>

const char **only_of(int argc, char **argv)
{
    const char **only = calloc((size_t)argc + 1, sizeof(*only));
    size_t n = 0;

    for (int i = 1; only && i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!strncmp(argv[i], "--only=", 7))
            only[n++] = argv[i] + 7;
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only[n++] = argv[++i];
    return only;
}

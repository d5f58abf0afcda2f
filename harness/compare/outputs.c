/* SPDX-License-Identifier: Apache-2.0 */
/* Where the outputs of one command go: see outputs.h. */
#include "harness/compare/outputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int outputs_refuse_mixed(const struct output_asked *all, size_t n, char *error, size_t len)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++) {
            if (!all[i].path || !all[k].path || strcmp(all[i].path, all[k].path) != 0)
                continue;
            if (!strcmp(all[i].path, "-"))
                snprintf(error, len,
                         "%s and %s both go to stdout, where they would mix: give one of them a "
                         "file of its own",
                         all[i].option, all[k].option);
            else
                snprintf(error, len, "%s and %s both write '%.300s': give each a file of its own",
                         all[i].option, all[k].option, all[i].path);
            return -EINVAL;
        }
    return 0;
}

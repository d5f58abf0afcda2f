/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a limit: see limit_remark.h. */
#include "core/limit_remark.h"

#include <stdio.h>
#include <string.h>

const char *const limit_kinds[] = {[LIMIT_TOLD] = "told",
                                   [LIMIT_SYSFS] = "sysfs",
                                   [LIMIT_NVML] = "nvml",
                                   [LIMIT_DATASHEET] = "datasheet",
                                   [LIMIT_MEASURED] = "measured",
                                   [LIMIT_REFERENCE] = "reference",
                                   [LIMIT_OUTDATED] = "outdated",
                                   NULL};
const char *const limit_links[] = {LIMIT_LINK_NVLINK, LIMIT_LINK_PCIE, LIMIT_LINK_INFINIBAND,
                                   LIMIT_LINK_ROCE, NULL};

enum limit_kind limit_kind_of(const char *word)
{
    for (int kind = 0; word && limit_kinds[kind]; kind++)
        if (!strcmp(word, limit_kinds[kind]))
            return (enum limit_kind)kind;
    return LIMIT_TOLD;
}

const char *limit_remark(double percent, char *text, size_t len)
{
    text[0] = 0;
    if (percent > LIMIT_EXCEEDED_PERCENT)
        snprintf(text, len,
                 "%.0f %% of the limit: the limit is too low, or the data did not take that path",
                 percent);
    return text;
}

bool limit_is_ours(enum limit_kind kind)
{
    return kind == LIMIT_MEASURED || kind == LIMIT_REFERENCE;
}

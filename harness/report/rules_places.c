/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs among the places that cases name: see rules.h. */
#include <string.h>

#include "harness/report/rules.h"

bool place_is_gpu(const char *place)
{
    const char *colon = strchr(place, ':');

    return colon && colon != place && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
}

/* Whose `device` is one of a network: mlx5_0:1 is no place. */
static bool is_of_network(const struct report_bench *b)
{
    return word_in("net allreduce", b->name);
}

bool case_is_gpu(const struct report_bench *b, const struct report_case *c)
{
    if (is_of_network(b))
        return false;
    return place_is_gpu(report_param(b, c, "device")) ||
           place_is_gpu(report_param(b, c, "source")) ||
           place_is_gpu(report_param(b, c, "destination"));
}

bool case_is_pair(const struct report_bench *b, const struct report_case *c)
{
    const char *source = report_param(b, c, "source"), *to = report_param(b, c, "destination");

    return place_is_gpu(source) && place_is_gpu(to) && strcmp(source, to) != 0;
}

const char *case_gpu(const struct report_bench *b, const struct report_case *c)
{
    static const char *const names[] = {"device", "source", "destination"};

    for (size_t i = 0; i < 3 && case_is_gpu(b, c) && !case_is_pair(b, c); i++)
        if (place_is_gpu(report_param(b, c, names[i])))
            return report_param(b, c, names[i]);
    return "";
}

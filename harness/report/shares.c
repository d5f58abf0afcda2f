/* SPDX-License-Identifier: Apache-2.0 */
/* What several runs, or launches, say of one thing: see shares.h. */
#include "harness/report/shares.h"

#include <string.h>

#define SHARES_MAX 4 /* texts that are told one by one: a commit may differ in each of ten runs */

static size_t count_of(const char *const *texts, size_t n, const char *text)
{
    size_t same = 0;

    for (size_t i = 0; i < n; i++)
        same += !strcmp(texts[i], text);
    return same;
}

static const char *share_text(struct pool *pool, const char *list, const char *text, size_t same,
                              size_t n, const char *things)
{
    return *list ? pool_text(pool, "%s, %s in %zu", list, text, same)
                 : pool_text(pool, "%s in %zu of %zu %s", text, same, n, things);
}

const char *shares_text(struct pool *pool, const char *const *texts, size_t n, const char *things,
                        bool *mixed)
{
    bool same = !n || count_of(texts, n, texts[0]) == n;
    size_t told = 0, others = 0, in_others = 0;
    const char *list = "";

    if (mixed)
        *mixed = !same;
    if (same)
        return n ? texts[0] : "";
    for (size_t i = 0; i < n; i++) {
        if (!*texts[i] || count_of(texts, i, texts[i]))
            continue;
        size_t many = count_of(texts, n, texts[i]);
        if (told < SHARES_MAX) {
            list = share_text(pool, list, texts[i], many, n, things);
            told++;
        } else {
            others++;
            in_others += many;
        }
    }
    return others ? pool_text(pool, "%s, %zu other%s in %zu", list, others, others == 1 ? "" : "s",
                              in_others)
                  : list;
}

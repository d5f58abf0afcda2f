/* SPDX-License-Identifier: Apache-2.0 */
/* Remarks on values above their limit: see limit_remark.h. */
#include "core/limit_remark.h"

#include <stdio.h>
#include <string.h>

enum limit_kind limit_kind(const char *limit_source)
{
    static const struct {
        const char *word;
        enum limit_kind kind;
    } words[] = {{"measured", LIMIT_MEASURED}, {"reference", LIMIT_REFERENCE}};
    size_t n = limit_source ? strcspn(limit_source, ":") : 0;

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (n == strlen(words[i].word) && !strncmp(limit_source, words[i].word, n))
            return words[i].kind;
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

/* Where the remark stands as one of those that "; " divides; NULL: nowhere. */
static const char *find(const char *reason, const char *remark)
{
    size_t n = strlen(remark);

    for (const char *at = n ? reason : NULL; at; at = strstr(at, "; ")) {
        at += at == reason ? 0 : 2;
        if (!strncmp(at, remark, n) && (!at[n] || !strncmp(at + n, "; ", 2)))
            return at;
    }
    return NULL;
}

const char *limit_remark_renew(const char *reason, double before, double after, char *text,
                               size_t len)
{
    char old[128], new[128];
    const char *at = find(reason, limit_remark(before, old, sizeof(old)));
    const char *rest = at ? at + strlen(old) : "";
    size_t head = at ? (size_t)(at - reason) : strlen(reason);

    if (at && head)
        head -= 2; /* one of its dividers goes with it */
    else if (at && *rest)
        rest += 2;
    limit_remark(after, new, sizeof(new));
    snprintf(text, len, "%.*s%s%s%s", (int)head, reason, rest, *new && (head || *rest) ? "; " : "",
             new);
    return text;
}

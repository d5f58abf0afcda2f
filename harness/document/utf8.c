/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: see utf8.h. */
#include "harness/document/utf8.h"

#include <string.h>

/* RFC 3629, table of section 4: the bounds of the second byte shut out what is not valid. */
static const struct {
    unsigned char first_low, first_high, second_low, second_high, length;
} forms[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

size_t utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    if (*s < 0x80)
        return *s ? 1 : 0;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        size_t n = 2;

        if (*s < forms[i].first_low || *s > forms[i].first_high)
            continue;
        if (s[1] < forms[i].second_low || s[1] > forms[i].second_high)
            return 0;
        while (n < forms[i].length && (s[n] & 0xc0) == 0x80)
            n++;
        return n == forms[i].length ? n : 0;
    }
    return 0;
}

const char *utf8_printable(const char *text, size_t *n, size_t *used)
{
    size_t length = utf8_length(text);
    const unsigned char *s = (const unsigned char *)text;
    bool control = *s < 0x20 || *s == 0x7f || (length == 2 && *s == 0xc2 && s[1] < 0xa0);

    *used = length ? length : 1;
    *n = !length ? 3 : control ? 1 : length;
    return !length ? UTF8_REPLACEMENT : control ? " " : text;
}

const char *utf8_text(struct pool *pool, const char *text, bool utf8)
{
    char *kept = pool_alloc(pool, 3 * strlen(text) + 1, 1); /* a replacement takes three bytes */
    size_t n, used, at = 0;

    for (; *text; text += used, at += n) {
        const char *c = utf8_printable(text, &n, &used);

        if (n > 1 && !utf8) {
            c = "?";
            n = 1;
        }
        memcpy(kept + at, c, n);
    }
    return kept;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a host says: see stream.h. */
#include "harness/hosts/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *stream_find(const char *text, const char *word, const char *token)
{
    char mark[64];
    int n = snprintf(mark, sizeof(mark), "plumb-%s %s ", word, token);

    for (const char *at = text; (at = strstr(at, mark)) != NULL; at++)
        if (at == text || at[-1] == '\n')
            return at + n;
    return NULL;
}

char *stream_printable(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            *c = '?';
    return text;
}

struct stream_hello stream_hello(const char *text, const char *word, const char *token)
{
    struct stream_hello hello = {0};
    const char *at = stream_find(text, word, token), *end = at ? strchr(at, '\n') : NULL;
    const char *bar = end ? memchr(at, '|', (size_t)(end - at)) : NULL;

    if (!bar)
        return hello;
    hello.there = true;
    snprintf(hello.name, sizeof(hello.name), "%.*s", (int)(bar - at), at);
    snprintf(hello.version, sizeof(hello.version), "%.*s", (int)(end - bar - 1), bar + 1);
    stream_printable(hello.name);
    stream_printable(hello.version);
    return hello;
}

/* A line with a number, and where the next begins. */
static const char *numbered(const char *at, const char *word, const char *token, size_t *number)
{
    char mark[64], *end;
    int n = snprintf(mark, sizeof(mark), "plumb-%s %s ", word, token);

    if (strncmp(at, mark, (size_t)n) != 0 || at[n] < '0' || at[n] > '9')
        return NULL;
    *number = strtoull(at + n, &end, 10);
    return *end == '\n' ? end + 1 : NULL;
}

/* A line with a number of bytes, these bytes, and what follows them. */
static const char *take_section(const char *at, const char *end, const char *word,
                                const char *token, const char **bytes, size_t *n)
{
    at = at ? numbered(at, word, token, n) : NULL;
    if (!at || *n > (size_t)(end - at))
        return NULL;
    *bytes = at;
    return at + *n;
}

bool stream_is_whole(const char *text, size_t size, const char *token)
{
    size_t at = size ? size - 1 : 0, status;

    while (at > 0 && text[at - 1] != '\n' && size - at < 64)
        at--;
    return size && text[size - 1] == '\n' && numbered(text + at, "end", token, &status);
}

int stream_parts(const char *text, size_t size, const char *token, struct stream_parts *parts)
{
    const char *end = text + size, *at = stream_find(text, "r", token);
    size_t status;

    *parts = (struct stream_parts){0};
    if (at)
        while (at > text && at[-1] != '\n')
            at--;
    at = take_section(at, end, "r", token, &parts->rows, &parts->n_rows);
    at = take_section(at, end, "s", token, &parts->samples, &parts->n_samples);
    if (!at || !numbered(at, "end", token, &status) || status > 255)
        return -EBADMSG;
    parts->status = (int)status;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Facts for the program that launched this process: see notice.h. */
#include "core/group/notice.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mark[] = "plumb-notice ";

static const char *const names[] = {[NOTICE_LISTENING] = "listening",
                                    [NOTICE_PORT_TAKEN] = "port-taken",
                                    [NOTICE_LOST] = "lost",
                                    [NOTICE_GONE] = "gone",
                                    [NOTICE_SILENT] = "silent"};
#define KINDS (sizeof(names) / sizeof(*names))

static int has_rank(enum notice_kind kind)
{
    return kind == NOTICE_GONE || kind == NOTICE_SILENT;
}

void notice_send(const struct notice *notice, const char *format, ...)
{
    char front[NOTICE_HOST_MAX + 64] = "", text[1024];
    va_list args;

    if (getenv(NOTICE_LAUNCHED) && has_rank(notice->kind))
        snprintf(front, sizeof(front), "%s%s %u %s|", mark, names[notice->kind], notice->rank,
                 notice->host);
    else if (getenv(NOTICE_LAUNCHED))
        snprintf(front, sizeof(front), "%s%s ", mark, names[notice->kind]);
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "%s%s\n", front, text); /* whole: ranks may share a terminal */
}

void notice_error(int err, const char *text)
{
    if (err == -EADDRINUSE)
        notice_send(&(struct notice){.kind = NOTICE_PORT_TAKEN}, "%s: %s",
                    program_invocation_short_name, text);
    else
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

void notice_listening(void *arg, const char *address, uint16_t port)
{
    (void)arg;
    notice_send(&(struct notice){.kind = NOTICE_LISTENING}, "%s: listening on %s port %u",
                program_invocation_short_name, address, port);
}

/* The rest of the line after `word` and a blank; NULL: it does not begin so. */
static const char *after(const char *line, const char *word)
{
    size_t n = strlen(word);

    return !strncmp(line, word, n) && line[n] == ' ' ? line + n + 1 : NULL;
}

/* "3 node3|SENTENCE"; NULL: it is not so. */
static const char *read_rank(const char *at, struct notice *notice)
{
    char *end;
    unsigned long rank = strtoul(at, &end, 10);

    if (end == at || *end != ' ')
        return NULL;
    size_t n = strcspn(++end, "|");
    if (!end[n])
        return NULL;
    notice->rank = (unsigned)rank;
    snprintf(notice->host, sizeof(notice->host), "%.*s", (int)n, end);
    return end + n + 1;
}

const char *notice_read(const char *line, struct notice *notice)
{
    *notice = (struct notice){.kind = NOTICE_NONE};
    if (strncmp(line, mark, sizeof(mark) - 1) != 0)
        return line;
    for (size_t i = NOTICE_LISTENING; i < KINDS; i++) {
        const char *rest = after(line + sizeof(mark) - 1, names[i]);
        if (rest && has_rank((enum notice_kind)i))
            rest = read_rank(rest, notice);
        if (!rest)
            continue;
        notice->kind = (enum notice_kind)i;
        return rest;
    }
    return line;
}

const char *notice_words(enum notice_kind kind)
{
    return kind == NOTICE_GONE     ? "is gone: it was killed, or has ended"
           : kind == NOTICE_SILENT ? "does not answer: it hangs or was cut off"
                                   : "";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Whose failure began it: see launch_cause.h. The words are those of benches/allreduce: pulse.c, serve.c. */
#include "harness/run/launch_cause.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 600

/* "node1 rank 2: rank 2 (node1): rank 0 (node0) is gone: ...: this process ends" */
struct statement {
    char line[LINE_BYTES];
    unsigned long speaker;
    const char *what; /* in line, from "rank 0 (node0)" on */
};

/* Of "rank 0 (node0) is gone": is anything said of the rank, or is it the one that speaks ("rank 2: ")? */
static bool is_named(const char *at, unsigned long *rank)
{
    static const char *const words[] = {" is gone: ", " does not answer", " answers, but"};
    char *end;

    *rank = strtoul(at + 5, &end, 10);
    if (!strncmp(end, " (", 2) && strchr(end, ')'))
        end = strchr(end, ')') + 1;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strncmp(end, words[i], strlen(words[i])))
            return true;
    return false;
}

/* A rank that stood still itself blames the others for what it slept through. */
static bool read_statement(struct statement *s)
{
    static const char end[] = ": this process ends";
    bool spoken = false;

    if (strstr(s->line, " itself stood still for "))
        return false;
    for (const char *at = s->line; (at = strstr(at, "rank ")) != NULL; at += 5) {
        unsigned long rank;
        if ((at > s->line && at[-1] != ' ') || !isdigit((unsigned char)at[5]))
            continue;
        if (is_named(at, &rank)) {
            char *tail = strstr(s->line, end);
            if (tail)
                *tail = 0;
            s->what = at;
            return spoken && s->speaker != rank;
        }
        s->speaker = rank;
        spoken = true;
    }
    return false;
}

const char *launch_cause(const char *said, char *text, size_t len)
{
    struct statement s;
    bool found = false;

    text[0] = 0;
    while (*said) {
        size_t n = strcspn(said, "\n");
        snprintf(s.line, sizeof(s.line), "%.*s", (int)(n < LINE_BYTES ? n : LINE_BYTES - 1), said);
        said += n + (said[n] == '\n');
        if (!read_statement(&s))
            continue;
        if (!s.speaker || !found)
            snprintf(text, len, "%s (said by rank %lu)", s.what, s.speaker);
        found = true;
        if (!s.speaker)
            break;
    }
    return text;
}

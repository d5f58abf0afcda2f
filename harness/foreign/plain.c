/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output as its program printed it, out of the file that a user has: without byte order marks,
 * UTF-16 and CR LF, and without what a launcher or a log puts before each line. Where lines of
 * several processes stand in a file, they are those of the one that printed results.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/foreign/foreign.h"

static char *decoded(struct foreign_reading *r, const char *text, size_t size)
{
    const unsigned char *b = (const unsigned char *)text;
    char *plain = pool_alloc(&r->out->pool, size + 1, 1);
    bool little = size > 1 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] && !b[1]));
    bool big = size > 1 && ((b[0] == 0xfe && b[1] == 0xff) || (!b[0] && b[1]));
    size_t n = 0, kept = 0;

    if (little || big) {
        /* All that outputs have of figures and names is ASCII: of UTF-16 another character becomes
         * '?'. */
        size_t k = 0;

        for (size_t i = 0; i + 1 < size; i += 2) {
            unsigned unit = little ? b[i] | b[i + 1] << 8u : b[i] << 8u | b[i + 1];

            if (unit != 0xfeff)
                plain[k++] = (char)(unit && unit < 0x80 ? unit : '?');
        }
        n = k;
    } else {
        size_t mark = size > 2 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;

        n = size - mark;
        memcpy(plain, text + mark, n);
    }
    for (size_t i = 0; i < n; i++) {
        while (plain[i] == '\n' && kept && plain[kept - 1] == '\r')
            kept--;
        plain[kept++] = plain[i];
    }
    plain[kept] = 0;
    return memchr(plain, 0, kept) ? NULL : plain;
}

/* ---- What stands before each line ---- */

/* Group 1 names the process, where it is one. */
static const struct {
    const char *pattern;
    bool names;
} prefixes[] = {
    {"^\\[([^]]*)\\](<[a-z]+>)?:? ?", true}, /* mpirun --tag-output, -prepend-rank; kubectl */
    {"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]+([Zz]|[-+][0-9:]+)?( |$)", false},
    {"^[A-Z][a-z]{2} +[0-9]+ [0-9:]{8} ([^ ]+ [^ ]+: )?", true}, /* journalctl, syslog */
    {"^ *([A-Za-z0-9._-]+):( |$)", true},                        /* srun -l, pdsh */
    {"^([A-Za-z0-9._-]+) +\\|( |$)", true},                      /* docker compose */
    {"^> ?", false},
    {"^(    |\t)", false},
};

#define N_PREFIXES (sizeof(prefixes) / sizeof(*prefixes))

struct line {
    const char *text, *process; /* "": all of them, or not told */
};

struct lines {
    struct line *all;
    size_t n;
};

/* Removes it from all lines if it is before more than half of them, and before each from the first
 * to the last that has it: what a launcher itself says, at either end, has none. */
static bool strip(struct foreign_reading *r, struct lines *l, size_t which)
{
    struct pool *pool = &r->out->pool;
    size_t with = 0, without = 0, since = 0, n_without = 0, last = 0, len = 0;
    bool whole = true;
    regmatch_t at[2];
    regex_t prefix;

    if (regcomp(&prefix, prefixes[which].pattern, REG_EXTENDED))
        return false;
    for (size_t i = 0; i < l->n; i++) {
        bool has = !regexec(&prefix, l->all[i].text, 2, at, 0);

        with += has;
        last = has ? i : last;
        len = has ? (size_t)at[0].rm_eo : len;
        without = has || (!l->all[i].text[strspn(l->all[i].text, " \t\r")]) ? 0 : 1;
        n_without += without;
        since = with ? since + without : 0;
        whole = whole && !(has && since);
    }
    bool take = whole && with > n_without;
    if (!take && with > n_without)
        r->prefixed = pool_text(pool, "'%.*s'", (int)len, l->all[last].text);
    for (size_t i = 0; take && i < l->n; i++) {
        if (regexec(&prefix, l->all[i].text, 2, at, 0))
            continue;
        if (prefixes[which].names && at[1].rm_so >= 0)
            l->all[i].process = pool_join(pool, l->all[i].process, " ",
                                          pool_text(pool, "%.*s", (int)(at[1].rm_eo - at[1].rm_so),
                                                    l->all[i].text + at[1].rm_so));
        l->all[i].text += at[0].rm_eo;
    }
    regfree(&prefix);
    return take;
}

#define PROCESSES_MAX 4096 /* more different ones are none: another text */

/* The text of the one process whose lines are an output; NULL: of none, or with an error of several. */
static const char *text_of_one(struct foreign_reading *r, const struct lines *l)
{
    struct pool *pool = &r->out->pool;
    const char **processes = pool_alloc(pool, PROCESSES_MAX + 1, sizeof(*processes));
    const char *found = NULL, *who = "";
    size_t n = 0, printed = 0, k;

    for (size_t i = 0; i < l->n && n < PROCESSES_MAX; i++) {
        for (k = 0; k < n && strcmp(processes[k], l->all[i].process) != 0;)
            k++;
        if (k == n && *l->all[i].process)
            processes[n++] = l->all[i].process;
    }
    if (!n)
        processes[n++] = "";
    for (k = 0; k < n && n < PROCESSES_MAX; k++) {
        size_t size = 1;

        for (size_t i = 0; i < l->n; i++)
            size += strlen(l->all[i].text) + 1;
        char *text = pool_alloc(pool, size, 1), *end = text;
        for (size_t i = 0; i < l->n; i++)
            if (!*l->all[i].process || !strcmp(l->all[i].process, processes[k]))
                end += sprintf(end, "%s\n", l->all[i].text);

        if (!foreign_is_known(text))
            continue;
        who = printed < 4 ? pool_join(pool, who, ", ", processes[k]) : who;
        found = text;
        printed++;
    }
    if (printed < 2)
        return found;
    reading_bad(r,
                "it holds the outputs of %zu processes line by line (%s): each takes a file of its "
                "own",
                printed, who);
    return NULL;
}

const char *plain_text(struct foreign_reading *r, const char *text, size_t size)
{
    struct pool *pool = &r->out->pool;
    const char *plain = decoded(r, text, size), *found = NULL;

    if (!plain)
        reading_bad(r, "it has bytes that are no text");
    if (!plain || foreign_is_known(plain))
        return plain;
    const char *rest = plain;
    struct lines l = {.n = 0};
    size_t room = 1;

    for (const char *at = rest; *at; at++)
        room += *at == '\n';
    l.all = pool_alloc(pool, room, sizeof(*l.all));
    while (*rest) {
        size_t n = strcspn(rest, "\n");

        l.all[l.n++] = (struct line){pool_text(pool, "%.*s", (int)n, rest), ""};
        rest += n + (rest[n] == '\n');
    }
    size_t which = 0;
    for (size_t rounds = 0; !found && !*r->error && rounds < 4 && which < N_PREFIXES; rounds++) {
        for (which = 0; which < N_PREFIXES && !strip(r, &l, which);)
            which++;
        if (which < N_PREFIXES)
            found = text_of_one(r, &l);
    }
    return found || *r->error ? found : plain;
}

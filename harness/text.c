/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and buffers: see text.h. */
#include "harness/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"

int buffer_try(struct buffer *b, const void *bytes, size_t n)
{
    size_t capacity = b->capacity ? b->capacity : 4096;

    while (capacity < b->size + n + 1)
        capacity *= 2;
    char *text = capacity > b->capacity ? realloc(b->text, capacity) : b->text;
    if (!text)
        return -ENOMEM;
    b->text = text;
    b->capacity = capacity;
    if (n)
        memcpy(text + b->size, bytes, n);
    b->size += n;
    text[b->size] = 0;
    return 0;
}

void buffer_add(struct buffer *b, const void *bytes, size_t n)
{
    if (buffer_try(b, bytes, n))
        alloc_fail(n);
}

void buffer_text(struct buffer *b, const char *text)
{
    buffer_add(b, text, strlen(text));
}

void buffer_release(struct buffer *b)
{
    free(b->text);
    *b = (struct buffer){0};
}

void texts_free(char **texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        free(texts[i]);
    free(texts);
}

const char *text_last_line(const char *text, char *line, size_t len)
{
    size_t end = strlen(text), begin;

    while (end && (text[end - 1] == '\n' || text[end - 1] == '\r'))
        end--;
    for (begin = end; begin && text[begin - 1] != '\n';)
        begin--;
    snprintf(line, len, "%.*s", (int)(end - begin), text + begin);
    return line;
}

const char *argument_value(const char *arguments, const char *name, size_t *len)
{
    size_t n = strlen(name);

    for (const char *at = arguments; (at = strstr(at, "--")) != NULL;) {
        bool begins = at == arguments || at[-1] == ' ';
        size_t same = 0;

        at += 2;
        while (same < n &&
               (at[same] == '_' ? '-' : at[same]) == (name[same] == '_' ? '-' : name[same]))
            same++;
        if (!begins || same < n || (at[n] != ' ' && at[n] != '='))
            continue;
        *len = strcspn(at + n + 1, " ");
        return at + n + 1;
    }
    return NULL;
}

struct text_count text_count(size_t n, const char *thing)
{
    size_t len = strlen(thing);
    const char *last = thing + (len ? len - 1 : 0), *before = thing + (len > 1 ? len - 2 : 0);
    bool hisses = *last == 's' || *last == 'x' || !strcmp(before, "ch") || !strcmp(before, "sh");
    struct text_count count;

    snprintf(count.text, sizeof(count.text), "%zu %s%s", n, thing,
             n == 1   ? ""
             : hisses ? "es"
                      : "s");
    return count;
}

void text_list(struct buffer *b, const char *const *names, size_t n, size_t most,
               const char *between)
{
    size_t named = n > most && n - most > 1 ? most : n;
    bool clauses = *between == ';';
    char more[48];

    buffer_add(b, "", 0);
    for (size_t i = 0; i < named; i++) {
        bool last = i && i + 1 == n && !clauses;

        buffer_text(b, !i ? "" : last ? " and " : between);
        buffer_text(b, names[i]);
    }
    if (named == n)
        return;
    snprintf(more, sizeof(more), "%s and %zu more", clauses ? ";" : "", n - named);
    buffer_text(b, more);
}

int file_read(const char *path, size_t max, struct buffer *b)
{
    char chunk[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : 0;
    ssize_t n = 1;

    buffer_add(b, "", 0);
    while (!err && n > 0) {
        do
            n = read(fd, chunk, sizeof(chunk));
        while (n < 0 && errno == EINTR);
        if (n < 0)
            err = -errno;
        else if (b->size + (size_t)n > max)
            err = -EFBIG;
        else
            buffer_add(b, chunk, (size_t)n);
    }
    if (fd >= 0)
        close(fd);
    return err;
}

int write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

/* ---- Command lines ---- */

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%"

/* Takes the text over. */
static void take(struct argv *w, char *text)
{
    w->all = xrealloc(w->all, (w->n + 2) * sizeof(*w->all));
    w->all[w->n++] = text;
    w->all[w->n] = NULL;
}

void argv_add(struct argv *w, const char *text)
{
    take(w, xstrdup(text));
}

void argv_addf(struct argv *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    take(w, xvasprintf(format, args));
    va_end(args);
}

void argv_add_all(struct argv *w, const char *const *texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        argv_add(w, texts[i]);
}

void argv_split(struct argv *w, const char *text)
{
    while (text && *(text += strspn(text, " \t"))) {
        size_t n = strcspn(text, " \t");
        take(w, xstrndup(text, n));
        text += n;
    }
}

void argv_release(struct argv *w)
{
    texts_free(w->all);
    *w = (struct argv){0};
}

char *argv_quoted(const struct argv *w, size_t first)
{
    struct buffer b = {0};

    buffer_add(&b, "", 0);
    for (size_t i = first; i < w->n; i++) {
        const char *word = w->all[i];
        bool plain = *word && !word[strspn(word, PLAIN)];
        buffer_text(&b, i > first ? " " : "");
        if (plain) {
            buffer_text(&b, word);
            continue;
        }
        buffer_text(&b, "'");
        for (; *word; word++)
            if (*word == '\'')
                buffer_text(&b, "'\\''");
            else
                buffer_add(&b, word, 1);
        buffer_text(&b, "'");
    }
    return b.text;
}

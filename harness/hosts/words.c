/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: see words.h. */
#include "harness/hosts/words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/text.h"

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%"

/* Takes the text over. */
static void take(struct words *w, char *text)
{
    char **grown = w->err || !text ? NULL : realloc(w->all, (w->n + 2) * sizeof(*grown));

    if (!grown) {
        w->err = w->err ? w->err : -ENOMEM;
        free(text);
        return;
    }
    w->all = grown;
    grown[w->n++] = text;
    grown[w->n] = NULL;
}

void words_add(struct words *w, const char *text)
{
    take(w, strdup(text));
}

void words_addf(struct words *w, const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    take(w, text);
}

void words_add_all(struct words *w, const char *const *texts)
{
    for (size_t i = 0; texts && texts[i]; i++)
        words_add(w, texts[i]);
}

void words_split(struct words *w, const char *text)
{
    while (text && *(text += strspn(text, " \t"))) {
        size_t n = strcspn(text, " \t");
        take(w, strndup(text, n));
        text += n;
    }
}

void words_release(struct words *w)
{
    texts_free(w->all);
    *w = (struct words){0};
}

static int add_quoted(struct buffer *b, const char *word)
{
    int err = 0;

    if (*word && !word[strspn(word, PLAIN)])
        return buffer_add(b, word, strlen(word));
    err = buffer_add(b, "'", 1);
    for (; !err && *word; word++)
        err = *word == '\'' ? buffer_add(b, "'\\''", 4) : buffer_add(b, word, 1);
    return err ? err : buffer_add(b, "'", 1);
}

char *words_quoted(const struct words *w, size_t first)
{
    struct buffer b = {0};
    int err = buffer_add(&b, "", 0);

    for (size_t i = first; !err && i < w->n; i++) {
        err = i > first ? buffer_add(&b, " ", 1) : 0;
        err = err ? err : add_quoted(&b, w->all[i]);
    }
    if (err)
        buffer_release(&b);
    return b.text;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of arguments: see template.h. */
#include "harness/crosscheck/template.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/text.h"

static bool is_program(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *template_find_program(const char *name)
{
    const char *folders = getenv("PATH");
    char *all, *save, *folder, *found = NULL;

    if (strchr(name, '/'))
        return is_program(name) ? strdup(name) : NULL;
    all = strdup(folders ? folders : "/usr/local/bin:/usr/bin:/bin");
    for (save = all; save && !found && (folder = strsep(&save, ":")) != NULL;) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", *folder ? folder : ".", name) < 0)
            break;
        if (is_program(path))
            found = path;
        else
            free(path);
    }
    free(all);
    return found;
}

static const char *value_of(const struct template_value *values, const char *name, size_t len)
{
    for (; values->name; values++)
        if (strlen(values->name) == len && !strncmp(values->name, name, len))
            return values->value && *values->value ? values->value : NULL;
    return NULL;
}

/* Writes text[0..n) with its values to out. A name whose value is not known: its text in *unknown. */
static void fill(FILE *out, const char *text, size_t n, const struct template_value *values,
                 const char **unknown, size_t *unknown_len)
{
    for (const char *at = text; at < text + n; at++) {
        const char *end = *at == '{' ? memchr(at, '}', (size_t)(text + n - at)) : NULL;
        if (!end) {
            fputc(*at, out);
            continue;
        }
        const char *value = value_of(values, at + 1, (size_t)(end - at - 1));
        if (value) {
            fputs(value, out);
        } else if (!*unknown) {
            *unknown = at + 1;
            *unknown_len = (size_t)(end - at - 1);
        }
        at = end;
    }
}

/* One group in brackets, whole or not at all. */
static int fill_group(FILE *out, const char *text, size_t n, const struct template_value *values)
{
    const char *unknown = NULL;
    char *group = NULL;
    size_t size = 0, unknown_len = 0;
    FILE *part = open_memstream(&group, &size);

    if (!part)
        return -1;
    fill(part, text, n, values, &unknown, &unknown_len);
    int err = fclose(part);
    if (!err && !unknown)
        fwrite(group, 1, size, out);
    free(group);
    return err;
}

/* The whole text with values and without brackets: a new text, or NULL with error. */
static char *expand(const char *text, const struct template_value *values, char *error, size_t len)
{
    const char *unknown = NULL;
    char *whole = NULL;
    size_t size = 0, unknown_len = 0;
    FILE *out = open_memstream(&whole, &size);
    int err = out ? 0 : -1;

    while (!err && *text) {
        const char *end = *text == '[' ? strchr(text, ']') : NULL;
        if (end) {
            err = fill_group(out, text + 1, (size_t)(end - text - 1), values);
            text = end + 1;
        } else {
            size_t n = 1 + strcspn(text + 1, "[");
            fill(out, text, n, values, &unknown, &unknown_len);
            text += n;
        }
    }
    if (out && fclose(out))
        err = -1;
    if (!err && !unknown)
        return whole;
    if (err)
        snprintf(error, len, "out of memory");
    else
        snprintf(error, len, "'%.*s' is not known here", (int)unknown_len, unknown);
    free(whole);
    return NULL;
}

static char **split(const char *program, char *text)
{
    char **words = calloc(TEMPLATE_WORDS_MAX + 2, sizeof(*words));
    size_t n = 0;
    bool failed = !words;

    if (words && program)
        failed = !(words[n++] = strdup(program));
    for (char *save = text, *word; !failed && (word = strsep(&save, " ")) != NULL;) {
        if (!*word)
            continue;
        if (n == 0 && strchr(word, '='))
            failed = !(words[n++] = strdup("env"));
        failed = failed || n >= TEMPLATE_WORDS_MAX || !(words[n++] = strdup(word));
    }
    if (!failed && n)
        return words;
    texts_free(words);
    return NULL;
}

/* The first word becomes a path. */
static int find(char **words, char *error, size_t len)
{
    char *path = template_find_program(words[0]);

    if (!path) {
        snprintf(error, len, "'%s' is not on PATH", words[0]);
        return -1;
    }
    free(words[0]);
    words[0] = path;
    return 0;
}

char **template_fill(const char *program, const char *text, const struct template_value *values,
                     char *error, size_t len)
{
    char *whole = expand(text, values, error, len);
    char **words = whole ? split(program, whole) : NULL;

    if (whole && !words)
        snprintf(error, len, "too many words, or out of memory");
    free(whole);
    if (words && !program && find(words, error, len)) {
        texts_free(words);
        words = NULL;
    }
    return words;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How facts are written: a value, or null and why. Text is made plain before it enters the object.
 */
#include "harness/probe/facts.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE = 512 };

json_t *fact_text(const char *text)
{
    char plain[SENTENCE];
    size_t n = 0;

    if (!text)
        return json_null();
    for (; n < sizeof(plain) - 1 && text[n]; n++)
        plain[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    return json_stringn(plain, n);
}

void fact_set_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, fact_text(text));
}

void fact_set_number(json_t *object, const char *key, long long value)
{
    json_object_set_new(object, key, json_integer(value));
}

json_t *fact_real(double value)
{
    return json_real(round(value * 1e3) / 1e3);
}

void fact_set_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, fact_real(value));
}

void fact_set_bool(json_t *object, const char *key, bool value)
{
    json_object_set_new(object, key, json_boolean(value));
}

static void set_unknown(json_t *object, const char *keys, const char *format, va_list args)
{
    char why[SENTENCE], key[64], why_key[64];

    vsnprintf(why, sizeof(why), format, args);
    for (; *keys; keys += *keys == '|') {
        size_t n = strcspn(keys, "|");

        snprintf(key, sizeof(key), "%.*s", (int)n, keys);
        snprintf(why_key, sizeof(why_key), "%.*s_why", (int)n, keys);
        json_object_set_new(object, key, json_null());
        fact_set_text(object, why_key, why);
        keys += n;
    }
}

void fact_set(json_t *object, const char *key, json_t *value, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (value)
        json_object_set_new(object, key, value);
    else
        set_unknown(object, key, format, args);
    va_end(args);
}

void fact_set_if(json_t *object, const char *key, bool known, json_t *value, const char *format,
                 ...)
{
    va_list args;

    va_start(args, format);
    if (known)
        json_object_set(object, key, value);
    else
        set_unknown(object, key, format, args);
    va_end(args);
    json_decref(value);
}

void fact_set_unknown(json_t *object, const char *key, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_unknown(object, key, format, args);
    va_end(args);
}

void fact_set_text_or(json_t *object, const char *key, const char *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (text && *text)
        fact_set_text(object, key, text);
    else
        set_unknown(object, key, format, args);
    va_end(args);
}

void fact_set_there(json_t *object, const char *key, const struct tree *tree, const char *path)
{
    if (tree_exists(tree, path))
        fact_set_bool(object, key, true);
    else
        fact_set(object, key, tree_absent(tree, path) ? json_boolean(false) : NULL,
                 "/%s: not readable here", path);
}

int fact_set_line(json_t *object, const char *key, const struct tree *tree, const char *path)
{
    char line[TREE_LINE];
    int rc = tree_line(tree, path, line, sizeof(line));

    fact_set(object, key, rc ? NULL : fact_text(line), "/%s: %s", path, fact_errno(rc));
    return rc;
}

void fact_set_words(json_t *object, const char *key, const struct tree *tree, const char *path)
{
    char line[TREE_LINE], *save = NULL;
    int rc = tree_line(tree, path, line, sizeof(line));
    json_t *list;

    if (rc && rc != -ENODATA) {
        fact_set_unknown(object, key, "/%s: %s", path, fact_errno(rc));
        return;
    }
    list = fact_list(object, key);
    for (char *word = strtok_r(line, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
        json_array_append_new(list, fact_text(word));
}

int fact_set_file_number(json_t *object, const char *key, const struct tree *tree, const char *path)
{
    long long value;
    int rc = tree_number(tree, path, &value);

    if (!rc && value < 0)
        rc = -ERANGE;
    fact_set(object, key, rc ? NULL : json_integer(value), "/%s: %s", path, fact_errno(rc));
    return rc;
}

void fact_set_counters(json_t *object, const char *key, const struct tree *tree, const char *folder,
                       const char *const *files)
{
    json_t *counters;

    if (!tree_exists(tree, folder) && !tree_absent(tree, folder)) {
        fact_set_unknown(object, key, "/%s: not readable here", folder);
        return;
    }
    counters = fact_object(object, key);
    for (; *files; files++)
        if (!tree_absent_at(tree, folder, *files))
            fact_set_file_number(counters, *files, tree, tree_join(folder, *files).s);
}

void fact_say(json_t *list, const char *format, ...)
{
    char sentence[SENTENCE];
    va_list args;

    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    json_array_append_new(list, fact_text(sentence));
}

json_t *fact_object(json_t *object, const char *key)
{
    json_t *child = json_object();

    json_object_set_new(object, key, child);
    return child;
}

json_t *fact_list(json_t *object, const char *key)
{
    json_t *child = json_array();

    json_object_set_new(object, key, child);
    return child;
}

json_t *fact_append(json_t *list)
{
    json_t *child = json_object();

    json_array_append_new(list, child);
    return child;
}

const char *fact_string(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

const char *fact_errno(int rc)
{
    switch (-rc) {
    case EACCES:
    case EPERM:
        return "not readable without root";
    case ENOENT:
    case ENOTDIR:
        return "not there";
    case ENODATA:
        return "empty";
    case EINVAL:
        return "the kernel gives no value";
    case ERANGE:
        return "no number that can be";
    default:
        return strerror(-rc);
    }
}

static bool field_is(const char *line, const char *key)
{
    size_t n = strlen(key);

    return !strncmp(line, key, n) && line[n + strspn(line + n, " \t")] == ':';
}

int read_cpuinfo(const struct tree *tree, char *buf, size_t size)
{
    size_t length;
    int rc = tree_read(tree, "proc/cpuinfo", buf, size, &length);
    char *last = length == size - 1 ? strrchr(buf, '\n') : NULL;

    if (last)
        last[1] = '\0';
    return rc;
}

bool text_field(const char *text, const char *key, char *buf, size_t size)
{
    while (*text) {
        size_t length = strcspn(text, "\n");

        if (field_is(text, key)) {
            const char *value = strchr(text, ':') + 1;
            size_t n;

            value += strspn(value, " \t");
            n = strcspn(value, "\n");
            snprintf(buf, size, "%.*s", (int)n, value);
            return n > 0;
        }
        text += length + (text[length] == '\n');
    }
    return false;
}

bool text_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || isspace((unsigned char)at[-1])) &&
            (!at[n] || isspace((unsigned char)at[n])))
            return true;
    return false;
}

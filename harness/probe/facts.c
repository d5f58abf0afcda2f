/* SPDX-License-Identifier: Apache-2.0 */
/* How facts are written: a value, or null and why. Text is made plain before it enters the object.
 */
#include "harness/probe/facts.h"

#include <ctype.h>
#include <errno.h>
#include <hwloc.h>
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

json_t *fact_if(bool known, json_t *value)
{
    if (!known)
        json_decref(value);
    return known ? value : NULL;
}

void fact_set(json_t *object, const char *keys, json_t *value, const char *format, ...)
{
    char why[SENTENCE], key[64], why_key[64];
    va_list args;

    if (value) {
        json_object_set_new(object, keys, value);
        return;
    }
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    for (; *keys; keys += *keys == '|') {
        size_t n = strcspn(keys, "|");

        snprintf(key, sizeof(key), "%.*s", (int)n, keys);
        snprintf(why_key, sizeof(why_key), "%.*s_why", (int)n, keys);
        json_object_set_new(object, key, json_null());
        fact_set_text(object, why_key, why);
        keys += n;
    }
}

#define PATH(path)                                                                                 \
    char path[SYS_PATH];                                                                           \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        if (vsnprintf(path, sizeof(path), format, args) >= (int)sizeof(path))                      \
            path[0] = '\0'; /* no such file */                                                     \
        va_end(args);                                                                              \
    } while (0)

void fact_set_there(const struct probe *p, json_t *object, const char *key, const char *format, ...)
{
    PATH(path);
    fact_set(object, key,
             sys_exists(p->root, "%s", path) ? json_true()
             : probe_absent(p, "%s", path)   ? json_false()
                                             : NULL,
             "/%s: not readable here", path);
}

/* What the line says in that form; NULL: *why it is none. */
static json_t *value_of(enum fact_form form, char *line, const char **why)
{
    bool hexadecimal = !strncmp(line, "0x", 2);
    char *open, *end = line;
    long long value;
    json_t *list;

    errno = 0;
    switch (form) {
    case FACT_NUMBER:
    case FACT_BOOL:
        value = strtoll(line, &end, hexadecimal ? 16 : 10);
        *why = fact_errno(*end || errno ? -EINVAL : -ERANGE);
        if (*end || errno || (value < 0 && form == FACT_NUMBER))
            return NULL;
        return form == FACT_BOOL ? json_boolean(value) : json_integer(value);
    case FACT_WORDS:
        list = json_array();
        while ((open = strtok_r(end, " \t", &end)))
            json_array_append_new(list, fact_text(open));
        return list;
    case FACT_WORD:
        line[strcspn(line, " ")] = '\0';
        return fact_text(line);
    case FACT_BEHIND:
        end = strchr(line, ':');
        return fact_text(end ? end + 1 + strspn(end + 1, " ") : line);
    case FACT_CHOSEN:
        *why = "no choice";
        open = strchr(line, '[');
        end = open ? strchr(open, ']') : NULL;
        return end ? json_stringn(open + 1, (size_t)(end - open - 1)) : NULL;
    case FACT_LARGEST: /* between them are tabs, which sys_line() replaces */
        *why = "not three numbers";
        if (sscanf(line, "%*d%*[ ?]%*d%*[ ?]%lld", &value) != 1 || value <= 0)
            return NULL;
        return json_integer(value);
    case FACT_LINE:
        break;
    }
    return fact_text(line);
}

int fact_set_file(const struct probe *p, json_t *object, const char *key, enum fact_form form,
                  const char *format, ...)
{
    char line[SYS_LINE];
    const char *why;

    PATH(path);
    int rc = sys_line(p->root, line, sizeof(line), "%s", path);
    if (rc == -ENODATA && form == FACT_WORDS)
        rc = 0;
    why = fact_errno(rc);
    json_t *value = rc ? NULL : value_of(form, line, &why);
    fact_set(object, key, value, "/%s: %s", path, why);
    return rc ? rc : value ? 0 : -EINVAL;
}

void fact_set_files(const struct probe *p, json_t *object, const char *folder,
                    const struct fact_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fact_set_file(p, object, files[i].key, files[i].form, "%s/%s", folder, files[i].file);
}

void fact_set_counters(const struct probe *p, json_t *object, const char *key,
                       const char *const *files, const char *folder)
{
    json_t *counters;

    if (!sys_exists(p->root, "%s", folder) && !probe_absent(p, "%s", folder)) {
        fact_set_unknown(object, key, "/%s: not readable here", folder);
        return;
    }
    counters = fact_object(object, key);
    for (; *files; files++)
        if (!probe_absent(p, "%s/%s", folder, *files))
            fact_set_file(p, counters, *files, FACT_NUMBER, "%s/%s", folder, *files);
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

const char *fact_string(const json_t *object, const char *path)
{
    return json_string_value(fact_at(object, path));
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

/* ---- What is known not to be there ---- */

/* The kernel's folders are never empty: one that is stands for what is hidden or not mounted. */
static bool has_entries(const char *folder)
{
    struct names names;
    bool some = !sys_list(NULL, &names, "%s", folder) && names.count;

    names_free(&names);
    return some;
}

bool probe_absent(const struct probe *p, const char *format, ...)
{
    struct stat st;
    char *slash;

    PATH(above);
    int rc = sys_stat(p->root, &st, "%s", above);
    if (rc != -ENOENT && rc != -ENOTDIR)
        return false;
    while (above[0]) {
        if (json_object_get(p->absent, above))
            return true;
        slash = strrchr(above, '/');
        *(slash ? slash : above) = '\0';
        if (!p->root && sys_exists(NULL, "%s", above[0] ? above : "/"))
            return !above[0] || has_entries(above);
    }
    return false;
}

/* ---- Texts ---- */

struct path path_join(const char *folder, const char *file)
{
    struct path path;

    if ((size_t)snprintf(path.s, sizeof(path.s), "%s/%s", folder, file) >= sizeof(path.s))
        path.s[0] = '\0';
    return path;
}

long long digits_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits && digits < 19 && !text[digits] ? atoll(text) : -1;
}

int cpus_count(const char *list)
{
    hwloc_bitmap_t cpus = fact_cpu_set(list);
    char *again = NULL;
    bool same = hwloc_bitmap_list_asprintf(&again, cpus) >= 0 && !strcmp(again, list);
    int n = same && hwloc_bitmap_last(cpus) < 65536 ? hwloc_bitmap_weight(cpus) : -EINVAL;

    free(again);
    hwloc_bitmap_free(cpus);
    return n;
}

int read_cpuinfo(const struct probe *p, char *buf, size_t size)
{
    size_t length;
    int rc = sys_read(p->root, buf, size, &length, "proc/cpuinfo");
    char *last = length == size - 1 ? strrchr(buf, '\n') : NULL;

    if (last)
        last[1] = '\0';
    return rc;
}

bool text_field(const char *text, const char *key, char *buf, size_t size)
{
    size_t n = strlen(key);

    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *value = text;

        if (strncmp(text, key, n) || *(value += n + strspn(text + n, " \t")) != ':')
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(buf, size, "%.*s", (int)strcspn(value, "\n"), value);
        return *value && *value != '\n';
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading hosts files: see hosts.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "harness/hosts/hosts.h"
#include "harness/text.h"

#define BLANKS " \t\r"
#define DIGITS "0123456789"
#define WORDS  "slots=N, max_slots=N or address=ADDR"
#define NAME_SET                                                                                   \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS                                  \
    ".-_@:%" /* none of them means anything to a shell */

struct reader {
    const char *file;
    int line;
    struct hosts *hosts;
    char *error;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reader *r, const char *format,
                                                        ...)
{
    int n = snprintf(r->error, r->len, "%s:%d: ", r->file, r->line);
    va_list args;

    va_start(args, format);
    if (n >= 0 && (size_t)n < r->len)
        vsnprintf(r->error + n, r->len - (size_t)n, format, args);
    va_end(args);
    return -EINVAL;
}

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, DIGITS)];
}

/* "node:4" is MPICH's way to say slots; several colons are an IPv6 address. */
static char *without_slots(char *word)
{
    char *colon = strchr(word, ':'), *close;

    if (*word == '[' && (close = strchr(word, ']')) != NULL) {
        if (!close[1] || (close[1] == ':' && is_number(close + 2))) {
            *close = 0;
            return word + 1;
        }
    } else if (colon && colon == strrchr(word, ':') && is_number(colon + 1)) {
        *colon = 0;
    }
    return word;
}

static int check_name(const struct reader *r, const char *name)
{
    const char *colon = strchr(name, ':');

    if (!*name || *name == '-' || name[strspn(name, NAME_SET)] || strlen(name) >= HOSTS_NAME_MAX)
        return refuse(r, "'%.64s' is no host: a name, user@name or an address", name);
    if (colon && colon == strrchr(name, ':'))
        return refuse(r, "'%.64s': after ':' comes a number of slots", name);
    return 0;
}

static int read_word(const struct reader *r, const char *word, const char **address)
{
    static const char *const keys[] = {"slots", "max_slots", "max-slots", "address", NULL};
    const char *value = strchr(word, '=');
    char key[32];

    snprintf(key, sizeof(key), "%.*s", value ? (int)(value - word) : (int)strlen(word), word);
    bool known = false;
    for (size_t i = 0; keys[i]; i++)
        known |= !strcmp(key, keys[i]);
    if (!known) {
        const char *near = opts_nearest(key, keys);
        return refuse(r, "unknown word '%.64s'%s%s%s; a host may have " WORDS, word,
                      near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (!strcmp(key, "address")) {
        *address = value ? value + 1 : "";
        return check_name(r, *address);
    }
    return value && is_number(value + 1) ? 0 : refuse(r, "'%.64s': %s is a number", word, key);
}

/* A host that is there already must not have another address now. */
static int take_host(const struct reader *r, const char *name, const char *address)
{
    const struct host *known = hosts_find(r->hosts, name);

    if (!known && r->hosts->n == HOSTS_MAX)
        return refuse(r, "over %d hosts", HOSTS_MAX);
    if (!known)
        return hosts_add(r->hosts, name, address, r->line);
    if (address && (!known->address || strcmp(known->address, address) != 0))
        return refuse(r, "'%s' has another address in line %d", name, known->line);
    return 0;
}

static int read_line(const struct reader *r, char *line)
{
    const char *address = NULL;
    char *save = line, *word, *name = NULL;
    int err = 0;

    line[strcspn(line, "#")] = 0;
    while (!err && (word = strsep(&save, BLANKS)) != NULL) {
        if (!*word)
            continue;
        if (!name)
            err = check_name(r, name = without_slots(word));
        else
            err = read_word(r, word, &address);
    }
    return err || !name ? err : take_host(r, name, address);
}

int hosts_parse(const char *name, const char *text, struct hosts *hosts, char *error, size_t len)
{
    struct reader r = {.file = name, .hosts = hosts, .error = error, .len = len};
    char *copy = strdup(text), *save = copy, *line;
    int err = copy ? 0 : -ENOMEM;

    *hosts = (struct hosts){0};
    while (!err && (line = strsep(&save, "\n")) != NULL) {
        r.line++;
        err = read_line(&r, line);
    }
    if (err == -ENOMEM)
        snprintf(error, len, "out of memory");
    if (err)
        hosts_release(hosts);
    free(copy);
    return err;
}

int hosts_load(const char *path, struct hosts *hosts, char *error, size_t len)
{
    struct buffer text = {0};
    int err = file_read(path, HOSTS_FILE_MAX, &text);

    *hosts = (struct hosts){0};
    if (err)
        snprintf(error, len, "cannot read the hosts in '%s': %s", path, strerror(-err));
    else
        err = hosts_parse(path, text.text ? text.text : "", hosts, error, len);
    buffer_release(&text);
    return err;
}

int hosts_add(struct hosts *hosts, const char *name, const char *address, int line)
{
    struct host *grown = realloc(hosts->all, (hosts->n + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    hosts->all = grown;
    grown[hosts->n] = (struct host){
        .name = strdup(name), .address = address ? strdup(address) : NULL, .line = line};
    bool good = grown[hosts->n].name && (!address || grown[hosts->n].address);
    hosts->n++;
    return good ? 0 : -ENOMEM;
}

const struct host *hosts_find(const struct hosts *hosts, const char *name)
{
    for (size_t i = 0; i < hosts->n; i++)
        if (!strcmp(hosts->all[i].name, name))
            return &hosts->all[i];
    return NULL;
}

void hosts_release(struct hosts *hosts)
{
    for (size_t i = 0; i < hosts->n; i++) {
        free(hosts->all[i].name);
        free(hosts->all[i].address);
        free(hosts->all[i].version);
        free(hosts->all[i].problem);
    }
    free(hosts->all);
    *hosts = (struct hosts){0};
}

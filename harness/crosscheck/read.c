/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what witnesses print: see witness.h. A text that is not as expected is an error, never a
 * guess: a figure from the wrong column is the worst that can happen here. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/crosscheck/witness.h"

static int bad(char *error, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(char *error, size_t len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(error, len, format, args);
    va_end(args);
    return -EBADMSG;
}

/* A rate or a time of 0 means that nothing was measured. */
static int take(const char *text, double *value, char *error, size_t len)
{
    char *end;

    *value = strtod(text, &end);
    if (end == text || (*end && !isspace((unsigned char)*end) && *end != ','))
        return bad(error, len, "'%.24s' is no number", text);
    if (!isfinite(*value) || *value <= 0)
        return bad(error, len, "its figure is %g", *value);
    return 0;
}

static const json_t *at_path(const json_t *root, const char *path)
{
    while (root && *path) {
        char name[64];
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)n, path);
        root = json_object_get(root, name);
        path += n + (path[n] == '.');
    }
    return root;
}

static int number_at(const json_t *root, const char *path, double *value, char *error, size_t len)
{
    const json_t *at = at_path(root, path);

    if (!json_is_number(at))
        return bad(error, len, "no number '%s' in its JSON", path);
    *value = json_number_value(at);
    if (!isfinite(*value) || *value <= 0)
        return bad(error, len, "'%s' is %g", path, *value);
    return 0;
}

/* iperf3 puts its own errors into its JSON. */
static json_t *load(const char *text, char *error, size_t len)
{
    json_error_t why;
    json_t *root = json_loads(text, 0, &why);

    if (!root) {
        bad(error, len, "its output is no JSON: %s", why.text);
    } else if (json_is_string(json_object_get(root, "error"))) {
        bad(error, len, "it says: %s", json_string_value(json_object_get(root, "error")));
        json_decref(root);
        root = NULL;
    }
    return root;
}

int witness_read_json(const struct witness *w, const char *text, double *value, char *error,
                      size_t len)
{
    json_t *root = load(text, error, len);
    int err = root ? number_at(root, w->where, value, error, len) : -EBADMSG;

    json_decref(root);
    return err;
}

int witness_read_iperf3_cpu(const struct witness *w, const char *text, double *value, char *error,
                            size_t len)
{
    double own = 0, peer = 0, bits_per_second = 0;
    json_t *root = load(text, error, len);
    int err = root ? 0 : -EBADMSG;

    if (!err)
        err = number_at(root, "end.cpu_utilization_percent.host_total", &own, error, len);
    if (!err)
        err = number_at(root, "end.cpu_utilization_percent.remote_total", &peer, error, len);
    if (!err)
        err = number_at(root, w->where, &bits_per_second, error, len);
    if (!err)
        *value = (own + peer) / 100 * 8e9 / bits_per_second;
    json_decref(root);
    return err;
}

int witness_read_match(const struct witness *w, const char *text, double *value, char *error,
                       size_t len)
{
    regmatch_t found[2];
    regex_t pattern;

    if (regcomp(&pattern, w->where, REG_EXTENDED))
        return bad(error, len, "the pattern '%s' is wrong", w->where);
    int missing = regexec(&pattern, text, 2, found, 0) || found[1].rm_so < 0;
    regfree(&pattern);
    if (missing)
        return bad(error, len, "no '%s' in its output", w->where);
    char number[64];
    snprintf(number, sizeof(number), "%.*s", (int)(found[1].rm_eo - found[1].rm_so),
             text + found[1].rm_so);
    return take(number, value, error, len);
}

/* Does a line begin with these words, however many blanks are between them? */
static bool begins_with(const char *line, const char *words)
{
    while (isblank((unsigned char)*line))
        line++;
    while (*words) {
        if (*words == ' ') {
            if (!isblank((unsigned char)*line))
                return false;
            while (isblank((unsigned char)*line))
                line++;
        } else if (*line++ != *words) {
            return false;
        }
        words++;
    }
    return !*line || isspace((unsigned char)*line);
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end && end[1] ? end + 1 : NULL;
}

static const char *field_of(const char *line, unsigned field)
{
    for (unsigned i = 1;; i++) {
        line += strspn(line, " \t");
        if (!*line || *line == '\n' || i == field)
            return !*line || *line == '\n' ? NULL : line;
        line += strcspn(line, " \t\n");
    }
}

int witness_read_fields(const struct witness *w, const char *text, double *value, char *error,
                        size_t len)
{
    const char *line = text;

    while (line && !begins_with(line, w->where))
        line = next_line(line);
    if (!line)
        return bad(error, len, "its output has no line '%s ...'", w->where);
    line = next_line(line);
    const char *field = line ? field_of(line, w->field) : NULL;
    if (!field)
        return bad(error, len, "no figures stand under '%s ...'", w->where);
    return take(field, value, error, len);
}

/* The number of a column in a header line, from 1; 0: not there. */
static unsigned column_of(const char *line, const char *name)
{
    size_t n = strlen(name);

    for (unsigned i = 1;; i++) {
        size_t cell = strcspn(line, ",\n");
        if (cell == n && !strncmp(line, name, n))
            return i;
        if (line[cell] != ',')
            return 0;
        line += cell + 1;
    }
}

int witness_read_csv(const struct witness *w, const char *text, double *value, char *error,
                     size_t len)
{
    const char *line = text, *last = NULL;
    unsigned column = 0;

    for (; line; line = next_line(line)) {
        if (!column)
            column = column_of(line, w->where);
        else if (*line && *line != '\n')
            last = line;
    }
    if (!column || !last)
        return bad(error, len, "no column '%s' with a figure in its output", w->where);
    for (; column > 1; column--) {
        size_t cell = strcspn(last, ",\n");
        if (last[cell] != ',')
            return bad(error, len, "its last line ends before column '%s'", w->where);
        last += cell + 1;
    }
    return take(last, value, error, len);
}

bool witness_fits(const struct witness *w, unsigned version)
{
    if (!version)
        return true;
    return version >= w->from && (!w->below || version < w->below);
}

unsigned witness_version(const char *output, char *text, size_t len)
{
    regmatch_t found[4];
    regex_t pattern;
    unsigned version = 0;

    snprintf(text, len, "%s", "");
    if (regcomp(&pattern, "([0-9]+)\\.([0-9]+)((\\.[0-9]+)*)", REG_EXTENDED))
        return 0;
    if (!regexec(&pattern, output, 4, found, 0)) {
        unsigned major = (unsigned)strtoul(output + found[1].rm_so, NULL, 10);
        unsigned minor = (unsigned)strtoul(output + found[2].rm_so, NULL, 10);
        version = major < 1000 && minor < 1000 ? major * 1000 + minor : 0;
        snprintf(text, len, "%.*s", (int)(found[0].rm_eo - found[0].rm_so),
                 output + found[0].rm_so);
    }
    regfree(&pattern);
    return version;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Text: see text.h. */
#include "core/text.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* ---- CSV ---- */

int stream_finish(FILE *out)
{
    int lost = ferror(out), err = 0;

    errno = 0;
    if (lost) /* the cause went with the bytes: another one shows it again */
        fputc('\n', out);
    if (fflush(out) || lost)
        err = errno ? -errno : -EIO;
    if (out != stdout && fclose(out) && !err)
        err = -errno;
    if (out == stdout && err) { /* who called says it: once is enough */
        __fpurge(out);
        clearerr(out);
    }
    return err;
}

void csv_print(FILE *out, const char *field)
{
    if (!field)
        return;
    if (!strpbrk(field, ",\"\r\n")) {
        fputs(field, out);
        return;
    }
    fputc('"', out);
    for (; *field; field++) {
        if (*field == '"')
            fputc('"', out);
        fputc(*field, out);
    }
    fputc('"', out);
}

void csv_print_number(FILE *out, double value)
{
    if (!isnan(value))
        fprintf(out, "%.9g", value);
}

/* ---- JSON ---- */

/* The length of the UTF-8 character at `text`; 0: it is none. */
static size_t character(const unsigned char *text)
{
    size_t n = *text < 0x80                    ? 1
               : *text >= 0xc2 && *text < 0xe0 ? 2
               : (*text & 0xf0) == 0xe0        ? 3
               : *text >= 0xf0 && *text < 0xf5 ? 4
                                               : 0;

    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = n == 3 && *text == 0xe0 && text[1] < 0xa0;
    bool surrogate = n == 3 && *text == 0xed && text[1] >= 0xa0;
    bool beyond =
        n == 4 && ((*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] > 0x8f));
    return overlong || surrogate || beyond ? 0 : n;
}

void json_print(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        unsigned char c = (unsigned char)*text;
        size_t n = character((const unsigned char *)text);

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fwrite(n ? text : "?", 1, n ? n : 1, out);
        text += n ? n : 1;
    }
    fputc('"', out);
}

#define LEAST 60 /* columns: on less a table is no table any more */

size_t wrap_width(FILE *out)
{
    struct winsize size = {0};
    int fd = fileno(out); /* -1: it is memory */

    if (fd < 0 || ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col)
        return WRAP_DEFAULT;
    return size.ws_col < LEAST ? LEAST : size.ws_col;
}

size_t wrap_columns(const char *text, size_t n)
{
    size_t columns = 0;

    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

size_t wrap_take(const char *text, size_t width, size_t *next)
{
    size_t taken = 0, at = 0;

    while (text[at]) {
        at += strspn(text + at, " ");
        at += strcspn(text + at, " ");
        if (taken && wrap_columns(text, at) > width)
            break;
        taken = at;
    }
    *next = taken + strspn(text + taken, " ");
    while (taken && text[taken - 1] == ' ') /* the text's own last ones */
        taken--;
    return taken;
}

void wrap_print(FILE *out, const char *text, size_t indent, size_t width)
{
    size_t room = width > indent ? width - indent : 1, next;

    for (text += strspn(text, " "); *text; text += next) {
        size_t n = wrap_take(text, room, &next);

        fprintf(out, "%*s%.*s\n", (int)indent, "", (int)n, text);
    }
}

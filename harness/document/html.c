/* SPDX-License-Identifier: Apache-2.0 */
/* Writing HTML: see html.h. */
#include "harness/document/html.h"

#include <stdarg.h>
#include <string.h>

#include "harness/document/utf8.h"

void html_text(FILE *out, const char *text)
{
    size_t n, used;

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        if (strchr("&<>\"'", *c))
            fprintf(out, "&#%d;", *c);
        else
            fwrite(c, 1, n, out);
    }
}

void html_element(FILE *out, const char *name, const char *text)
{
    fprintf(out, "<%s>", name);
    html_text(out, text);
    fprintf(out, "</%s>", name);
}

void html_print(FILE *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    for (; *format; format++) {
        if (*format != '%') {
            fputc(*format, out);
            continue;
        }
        switch (*++format) {
        case 's':
            html_text(out, va_arg(args, const char *));
            break;
        case 'd':
            fprintf(out, "%d", va_arg(args, int));
            break;
        case 'z':
            format++; /* the u */
            fprintf(out, "%zu", va_arg(args, size_t));
            break;
        default:
            fputc(*format, out);
        }
    }
    va_end(args);
}

void html_json_string(FILE *out, const char *text)
{
    size_t n, used;

    fputc('"', out);
    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        if (strchr("\"\\<>&", *c))
            fprintf(out, "\\u%04x", *c);
        else
            fwrite(c, 1, n, out);
    }
    fputc('"', out);
}

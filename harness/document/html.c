/* SPDX-License-Identifier: Apache-2.0 */
/* Writing HTML: see html.h. */
#include "harness/document/html.h"

#include <stdarg.h>
#include <string.h>

#include "harness/document/document.h"
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

void html_page_begin(FILE *out, const char *title, const char *heading, const char *style)
{
    fputs("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
          "<meta name='color-scheme' content='light dark'>\n"
          "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src "
          "'unsafe-inline'; img-src data:\">\n<link rel='icon' href='data:,'>\n",
          out);
    html_element(out, "title", title);
    fprintf(out, "\n<style>\n%s%s</style>\n</head>\n<body>\n<header>\n", style, document_style);
    html_element(out, "h1", heading ? heading : title);
    fputs("\n</header>\n<main>\n", out);
}

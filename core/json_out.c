/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: see json_out.h. */
#include "core/json_out.h"

#include <inttypes.h>
#include <string.h>

#define LINES_DEPTH 2 /* so far each member has a line of its own */

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

static void print_text(FILE *out, const char *text)
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

static void begin(struct json_out *j, const char *key, bool line)
{
    if (j->more)
        fputc(',', j->out);
    if (j->depth && (line || j->depth <= LINES_DEPTH))
        fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
    else if (j->more)
        fputc(' ', j->out);
    if (key) {
        print_text(j->out, key);
        fputs(": ", j->out);
    }
    j->more = true;
}

void json_out_open(struct json_out *j, const char *key, char bracket)
{
    begin(j, key, !key);
    fputc(bracket, j->out);
    j->depth++;
    j->more = false;
}

void json_out_close(struct json_out *j, char bracket)
{
    j->depth--;
    if (!j->depth)
        fputc('\n', j->out);
    fputc(bracket, j->out);
    if (!j->depth)
        fputc('\n', j->out);
    j->more = true;
}

void json_out_text(struct json_out *j, const char *key, const char *text)
{
    begin(j, key, false);
    if (text)
        print_text(j->out, text);
    else
        fputs("null", j->out);
}

void json_out_texts(struct json_out *j, const char *key, const char *const *texts, size_t n)
{
    json_out_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        json_out_text(j, NULL, texts[i]);
    json_out_close(j, ']');
}

void json_out_real(struct json_out *j, const char *key, double value)
{
    begin(j, key, false);
    fprintf(j->out, "%.17g", value);
}

void json_out_u64(struct json_out *j, const char *key, uint64_t value)
{
    begin(j, key, false);
    fprintf(j->out, "%" PRIu64, value);
}

void json_out_flag(struct json_out *j, const char *key, bool value)
{
    begin(j, key, false);
    fputs(value ? "true" : "false", j->out);
}

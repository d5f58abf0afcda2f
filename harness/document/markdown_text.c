/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping for Markdown: see markdown_text.h. */
#include "harness/document/markdown_text.h"

#include <string.h>

#include "harness/document/utf8.h"

void markdown_text(FILE *out, const char *text)
{
    size_t n, used;

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        if (n == 1 && strchr("&<>@", *c))
            fprintf(out, "&#%d;", *c);
        else if (n == 1 && strchr("\\`*_{}[]#|~", *c))
            fprintf(out, "\\%c", *c);
        else
            fwrite(c, 1, n, out);
    }
}

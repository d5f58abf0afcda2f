/* SPDX-License-Identifier: Apache-2.0 */
/* CSV: see csv.h. */
#include "core/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

void csv_print_list(FILE *out, const char *const *items, size_t n)
{
    char *joined = NULL;
    size_t len = 0;
    FILE *text = open_memstream(&joined, &len);

    if (!text)
        return;
    for (size_t i = 0; i < n; i++)
        fprintf(text, "%s%s", i ? ";" : "", items[i]);
    fclose(text);
    csv_print(out, joined);
    free(joined);
}

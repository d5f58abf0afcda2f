/* SPDX-License-Identifier: Apache-2.0 */
/* Writing CSV (RFC 4180): fields are quoted where they must be. Reading is the harness' affair. */
#ifndef PLUMB_CORE_CSV_H
#define PLUMB_CORE_CSV_H

#include <stddef.h>
#include <stdio.h>

void csv_print(
    FILE *out,
    const char *field); /* one field, quoted if it holds , " CR or LF; NULL prints nothing */
void csv_print_number(FILE *out, double value); /* nine digits; NaN prints nothing: not measured */
void csv_print_list(FILE *out, const char *const *items,
                    size_t n); /* one field: items joined by ';' */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How the text of one option becomes values: one element, lists and ranges. Used by option.c and by
 * the suite parser's checks. */
#ifndef PLUMB_CORE_OPTION_VALUE_H
#define PLUMB_CORE_OPTION_VALUE_H

#include "core/option.h"

/* Reads one element into *value (see enum opt_type). 0 or -EINVAL with `error` set to a sentence
 * that names option and choices. */
int opt_value_read(const struct opt *opt, const char *text, void *value, char *error, size_t len);

/* Reads a whole text (list and ranges where allowed) into canonical texts; the caller owns *out,
 * also on error. */
int opt_values_read(const struct opt *opt, const char *text, struct opt_values *out, char *error,
                    size_t len);

#endif

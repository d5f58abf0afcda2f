/* SPDX-License-Identifier: Apache-2.0 */
/* Argument lists out of the templates of witness.h. */
#ifndef PLUMB_HARNESS_CROSSCHECK_TEMPLATE_H
#define PLUMB_HARNESS_CROSSCHECK_TEMPLATE_H

#include <stddef.h>

#define TEMPLATE_WORDS_MAX 96

struct template_value {
    const char *name, *value; /* value NULL or "": not known */
};

/* `values` ends with a NULL name. A new array, ended by NULL (texts_free): `program` and the words, or
 * where program is NULL the words alone, of which the first is looked for in PATH; words NAME=VALUE
 * before it are put behind `env`. NULL with error: a value that is needed is not known, the program is
 * not there, too many words, or out of memory. */
char **template_fill(const char *program, const char *text, const struct template_value *values,
                     char *error, size_t len);

/* The path of a program in PATH, as a new text; NULL: not there. */
char *template_find_program(const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A command line, word by word. */
#ifndef PLUMB_HARNESS_WORDS_H
#define PLUMB_HARNESS_WORDS_H

#include <stddef.h>

struct words {
    char **all; /* ended by NULL; NULL: none yet */
    size_t n;
    int err; /* of the first that could not be added: looked at once, at the end */
};

void words_add(struct words *w, const char *text);
void words_addf(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void words_add_all(struct words *w, const char *const *texts); /* ended by NULL */
void words_split(struct words *w, const char *text);           /* at its blanks */
void words_release(struct words *w);

/* As one text that a shell reads as these words: those from number `first` on. New text, NULL when memory
 * is short. */
char *words_quoted(const struct words *w, size_t first);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers on texts and byte buffers of the harness. */
#ifndef PLUMB_HARNESS_TEXT_H
#define PLUMB_HARNESS_TEXT_H

#include <stddef.h>

/* A buffer that grows; text[size] is always 0 once something was added. */
struct buffer {
    char *text;
    size_t size, capacity;
};

void buffer_add(struct buffer *b, const void *bytes, size_t n);
/* For results that are not on disk yet. 0, or -ENOMEM: then b is as it was. */
int buffer_try(struct buffer *b, const void *bytes, size_t n);
void buffer_text(struct buffer *b, const char *text);
void buffer_release(struct buffer *b);

void texts_free(char **texts); /* a NULL-terminated array and its texts; NULL is fine */

/* The last line that is not empty. Returns line. */
const char *text_last_line(const char *text, char *line, size_t len);

/* The value of an option in "--op triad --memory-node 1", and its length; NULL: the option is not
 * there. `name` is the option's or the column's: '-' and '_' are the same. */
const char *argument_value(const char *arguments, const char *name, size_t *len);

/* ---- Counts and lists in sentences ---- */

/* "1 case", "3 cases", "2 launches". It lives as long as the expression that it stands in:
 * printf("%s", text_count(n, "case").text). */
struct text_count {
    char text[96];
};
struct text_count text_count(size_t n, const char *thing);

/* Adds "a", "a and b", "a, b and c", and of many names the first `most` and "... and 5 more", never
 * "and 1 more". `between` is ", ", or "; " where the names are clauses: "a; b; and 5 more". */
void text_list(struct buffer *b, const char *const *names, size_t n, size_t most,
               const char *between);

/* The whole file as a buffer. 0, -errno, or -EFBIG over `max` bytes. */
int file_read(const char *path, size_t max, struct buffer *b);

/* Writes all of it. 0 or -errno. */
int write_all(int fd, const void *bytes, size_t n);

/* ---- A command line, word by word ---- */

struct argv {
    char **all; /* ended by NULL; NULL: none yet */
    size_t n;
};

void argv_add(struct argv *w, const char *text);
void argv_addf(struct argv *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void argv_add_all(struct argv *w, const char *const *texts); /* ended by NULL */
void argv_split(struct argv *w, const char *text);           /* at its blanks */
void argv_release(struct argv *w);

/* The words from number `first` on as one text, which a shell reads as these words. New text. */
char *argv_quoted(const struct argv *w, size_t first);

#endif

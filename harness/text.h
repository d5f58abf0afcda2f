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

int buffer_add(struct buffer *b, const void *bytes, size_t n); /* 0 or -ENOMEM */
void buffer_release(struct buffer *b);

void texts_free(char **texts); /* a NULL-terminated array and its texts; NULL is fine */

/* The value of an option in "--op triad --memory-node 1", and its length; NULL: the option is not
 * there. `name` is the option's or the column's: '-' and '_' are the same. */
const char *argument_value(const char *arguments, const char *name, size_t *len);

/* The whole file as a buffer. 0, -errno, or -EFBIG over `max` bytes. */
int file_read(const char *path, size_t max, struct buffer *b);

/* Writes all of it. 0 or -errno. */
int write_all(int fd, const void *bytes, size_t n);

#endif

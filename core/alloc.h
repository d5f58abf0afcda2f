/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small memory, of which there is always enough: in the harness and in what a benchmark sets up. Where
 * it cannot be had, the program ends with one sentence and EXIT_INCOMPLETE, so nobody checks for
 * NULL. Not for buffers whose size a user chooses, nor where results are held that are not on disk
 * yet: there malloc() and a check stay.
 */
#ifndef PLUMB_CORE_ALLOC_H
#define PLUMB_CORE_ALLOC_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/program.h"

/* No exit(): what would run then may need memory itself. What stdout still holds is lost. */
__attribute__((noreturn, cold)) static inline void alloc_fail(size_t bytes)
{
    fprintf(stderr,
            "%s: no memory for %zu bytes more: end other programs, or raise the limit of this one "
            "(ulimit -v, the cgroup's memory.max)\n",
            program_invocation_short_name, bytes);
    _exit(EXIT_INCOMPLETE);
}

/* Zeroed; n may be 0. The caller frees, here and below. */
static inline void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    if (!p)
        alloc_fail(n * size);
    return p;
}

static inline void *xrealloc(void *old, size_t bytes)
{
    void *p = realloc(old, bytes ? bytes : 1);

    if (!p)
        alloc_fail(bytes);
    return p;
}

/* Zeroed, at a multiple of `align`, a power of two. */
static inline void *xaligned(size_t align, size_t bytes)
{
    size_t room = bytes / align * align + align;
    void *p = aligned_alloc(align, room);

    if (!p)
        alloc_fail(bytes);
    return memset(p, 0, room);
}

static inline void *xmemdup(const void *from, size_t bytes)
{
    return memcpy(xrealloc(NULL, bytes), from, bytes);
}

static inline char *xstrndup(const char *text, size_t len)
{
    char *p = strndup(text, len);

    if (!p)
        alloc_fail(len + 1);
    return p;
}

static inline char *xstrdup(const char *text)
{
    return xstrndup(text, strlen(text));
}

__attribute__((format(printf, 1, 0))) static inline char *xvasprintf(const char *format,
                                                                     va_list args)
{
    char *text = NULL;

    if (vasprintf(&text, format, args) < 0)
        alloc_fail(strlen(format));
    return text;
}

__attribute__((format(printf, 1, 2))) static inline char *xasprintf(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = xvasprintf(format, args);
    va_end(args);
    return text;
}

/* Room for element n of an array that grew by one element at a time, from NULL: it doubles where n
 * is a power of two. */
static inline void *array_grow(void *array, size_t n, size_t size)
{
    if (n && (n < 8 || (n & (n - 1))))
        return array;
    size_t room = n ? 2 * n : 8;
    if (room > SIZE_MAX / size)
        alloc_fail(SIZE_MAX);
    return xrealloc(array, room * size);
}

/* Adds one element, uninitialized, to `array`, a pointer that is NULL while its count `n` is 0. The
 * element's address: `*ARRAY_ADD(list->all, list->n) = value`, where `value` does not use the count. */
#define ARRAY_ADD(array, n)                                                                        \
    ((array) = array_grow((array), (size_t)(n), sizeof(*(array))), (n)++, &(array)[(n)-1])

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one report: see pool.h. */
#include "harness/document/pool.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/text.h"

/* With AddressSanitizer each has a block of its own, or a write behind one would only hit the
 * next. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_APART
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define EACH_APART
#endif
#ifdef EACH_APART
#define BLOCK_BYTES 0u
#else
#define BLOCK_BYTES (64u << 10)
#endif

struct pool_block {
    struct pool_block *next;
    size_t used, size;
    max_align_t bytes[];
};

void *pool_alloc(struct pool *pool, size_t n, size_t width)
{
    struct pool_block *block = pool->blocks;
    size_t bytes;

    if (__builtin_mul_overflow(n ? n : 1, width, &bytes) || bytes > SIZE_MAX / 2)
        alloc_fail(SIZE_MAX);
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!block || block->size - block->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;

        block = xcalloc(1, sizeof(*block) + size);
        *block = (struct pool_block){.next = pool->blocks, .size = size};
        pool->blocks = block;
    }
    block->used += bytes;
    return (char *)block->bytes + block->used - bytes;
}

void *pool_grow(struct pool *pool, void *array, size_t n, size_t width)
{
    if (n & (n - 1)) /* there is room up to the next power of two */
        return array;
    void *grown = pool_alloc(pool, 2 * n, width);
    if (n)
        memcpy(grown, array, n * width);
    return grown;
}

const char *pool_text(struct pool *pool, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    size_t size = (size_t)vsnprintf(NULL, 0, format, args) + 1;
    va_end(args);
    char *text = pool_alloc(pool, size, 1);
    va_start(args, format);
    vsnprintf(text, size, format, args);
    va_end(args);
    return text;
}

const char *pool_list(struct pool *pool, const char *const *names, size_t n, size_t most,
                      const char *between)
{
    struct buffer b = {0};

    text_list(&b, names, n, most, between);
    const char *list = pool_text(pool, "%s", b.text);
    buffer_release(&b);
    return list;
}

const char *pool_join(struct pool *pool, const char *list, const char *between, const char *item)
{
    return !*item ? list : !*list ? item : pool_text(pool, "%s%s%s", list, between, item);
}

void pool_release(struct pool *pool)
{
    while (pool->blocks) {
        struct pool_block *block = pool->blocks;

        pool->blocks = block->next;
        free(block);
    }
}

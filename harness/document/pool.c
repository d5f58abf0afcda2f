/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one report: see pool.h. */
#include "harness/document/pool.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static struct pool_block *add_block(struct pool *pool, size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct pool_block *block = calloc(1, sizeof(*block) + size);

    if (!block) {
        pool->failed = true;
        return NULL;
    }
    block->size = size;
    block->next = pool->blocks;
    pool->blocks = block;
    return block;
}

void *pool_alloc(struct pool *pool, size_t n, size_t width)
{
    struct pool_block *block = pool->blocks;
    size_t bytes;
    void *at;

    if (__builtin_mul_overflow(n ? n : 1, width, &bytes) || bytes > SIZE_MAX / 2) {
        pool->failed = true;
        return NULL;
    }
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!block || block->size - block->used < bytes)
        block = add_block(pool, bytes);
    if (!block)
        return NULL;
    at = (char *)block->bytes + block->used;
    block->used += bytes;
    return at;
}

const char *pool_text(struct pool *pool, const char *format, ...)
{
    va_list args, again;
    char *text = NULL;
    int n;

    va_start(args, format);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, format, args);
    if (n >= 0)
        text = pool_alloc(pool, (size_t)n + 1, 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text ? text : "";
}

void pool_release(struct pool *pool)
{
    while (pool->blocks) {
        struct pool_block *block = pool->blocks;

        pool->blocks = block->next;
        free(block);
    }
}

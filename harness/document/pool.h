/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one report: many small things that live and die together. */
#ifndef PLUMB_DOCUMENT_POOL_H
#define PLUMB_DOCUMENT_POOL_H

#include <stddef.h>

struct pool_block;

struct pool {
    struct pool_block *blocks;
};

void *pool_alloc(struct pool *pool, size_t n, size_t width); /* zeroed */
/* As ARRAY_ADD() of core/alloc.h, in the pool. */
#define POOL_ADD(pool, array, n)                                                                   \
    ((array) = pool_grow(pool, (array), (size_t)(n), sizeof(*(array))), (n)++, &(array)[(n)-1])
void *pool_grow(struct pool *pool, void *array, size_t n, size_t width);
const char *pool_text(struct pool *pool, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* text_list() of harness/text.h as a text of the pool. */
const char *pool_list(struct pool *pool, const char *const *names, size_t n, size_t most,
                      const char *between);
/* Both with `between` between them; either may be "". */
const char *pool_join(struct pool *pool, const char *list, const char *between, const char *item);
void pool_release(struct pool *pool);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Telling UTF-8 from other bytes: what comes from files is shown only where it is text. */
#ifndef PLUMB_DOCUMENT_UTF8_H
#define PLUMB_DOCUMENT_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/document/pool.h"

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* The bytes of the character at `text`, 1 to 4; 0 where no valid one begins (overlong forms,
 * surrogates and code points over 10FFFF are not valid). `text` ends with a NUL. */
size_t utf8_length(const char *text);

/* The character at `text` as something that may be printed: itself, a blank for a control
 * character, the replacement for bytes that are none. *n is its length, *used how many bytes of
 * `text` it stands for. */
const char *utf8_printable(const char *text, size_t *n, size_t *used);

/* The whole text so, in the pool. utf8: else "?" stands for what is not ASCII. */
const char *utf8_text(struct pool *pool, const char *text, bool utf8);

#endif

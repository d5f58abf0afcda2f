/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions, as options, benchmarks and the harness write them: texts, so that they travel as
 * data.
 *
 *   A condition is clauses with '|' between them, of which one must hold: "a=1 | b=2".
 *   A clause is terms with blanks between them, all of which must hold; an empty one holds.
 *   A term is NAME=PATTERN,.. (one of the patterns fits the value of the name) or NAME!=PATTERN,..
 *     (none fits). A pattern is one of fnmatch(3), without blanks, commas and '|'; an empty one
 *       fits
 *     the empty value alone: "level=" (has none), "level!=" (has one), "rail=,all" (none, or all).
 *     In place of a pattern, @NAME is the value of another name.
 *
 * For example: "source=cuda:* destination!=cuda:* | source!=@destination".
 */
#ifndef PLUMB_CORE_CONDITION_H
#define PLUMB_CORE_CONDITION_H

#include <stdbool.h>
#include <stddef.h>

/* The value of the name of `len` bytes; "" where it has none. NULL: the value is not known, and
 * every term on it holds. */
typedef const char *condition_value_fn(const void *arg, const char *name, size_t len);

bool condition_holds(const char *condition, condition_value_fn *value, const void *arg);

/* Calls name(arg, NAME, len) for each name that the condition asks for, those behind an '@', too,
 * until one returns true; false: none did. */
bool condition_names(const char *condition, bool (*name)(void *arg, const char *name, size_t len),
                     void *arg);

/* Is `word` one of the words, with blanks between them? */
bool word_in(const char *words, const char *word);

/* Words of a list that is a macro of (first, more), each called with (symbol, word, ...), as
 * patterns: "shm,cma". */
#define CONDITION_FIRST(symbol, word, ...) word
#define CONDITION_MORE(symbol, word, ...)  "," word

#endif

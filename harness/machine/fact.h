/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the facts of a machine, an object as docs/probe.md describes it, and what else is JSON of
 * a run. It may come from a file of anybody: what is absent, null or of another type than is asked
 * for is not known, and never an error.
 *
 * A path names a member of a member: "cpu.clock.boost"; "" is the object itself.
 */
#ifndef PLUMB_MACHINE_FACT_H
#define PLUMB_MACHINE_FACT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

const json_t *fact_at(const json_t *object, const char *path); /* NULL: absent; it may be null */
/* Why fact_at() is null or absent: by "boost_why", or by that of an object on the way;
 * FACT_UNRECORDED where nobody says. "" where it is known. */
#define FACT_UNRECORDED "not recorded"
const char *fact_why(const json_t *object, const char *path);

const char *fact_name(const json_t *object, const char *path); /* "" where it is no text */
double fact_number(const json_t *object, const char *path, double other);
long long fact_integer(const json_t *object, const char *path, long long other);
unsigned
fact_whole(double value); /* as a whole number; 0 where it is none, negative or too large */
bool fact_true(const json_t *object, const char *path);                 /* it is known to be true */
bool fact_is(const json_t *object, const char *path, const char *text); /* "": there is none */

const char *fact_word(const json_t *value); /* "" where it is no text */
bool fact_has_word(const json_t *list, const char *word);
/* The one of a list of which that member is `text`; NULL: none, or text is "". */
const json_t *fact_one_of(const json_t *list, const char *key, const char *text);

/* Each entry of a list in its order; none of what is no list. */
#define FACT_EACH(list, one)                                                                       \
    for (size_t one##_at = 0, one##_ended = 1; one##_ended && one##_at < json_array_size(list);    \
         one##_at++)                                                                               \
        for (const json_t *one = (one##_ended = 0, json_array_get(list, one##_at)); !one##_ended;  \
             one##_ended = 1)

/* Does a name fit one of the shell's patterns, with '|' between? NULL: none. */
bool fact_fits(const char *patterns, const char *name);

/* Of an object of facts: a key that is no fact of the machine's set-up. It says why another is not
 * known, or it changes from call to call (counters, load), or it is of the recording itself. */
bool fact_passes(const char *key);

/* The numbers of "0-3,8", each below 100000; empty where it is no such list. For
 * hwloc_bitmap_free(). */
struct hwloc_bitmap_s *fact_cpu_set(const char *list);
/* How many CPUs "0-3,8" names; 0 where it is no such list. */
double fact_cpus(const char *list);
/* Have two such lists a number in common? */
bool fact_common(const char *one, const char *other);

#endif

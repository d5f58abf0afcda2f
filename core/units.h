/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units: reading sizes, durations and fractions, and the one table of the units that a row may
 * carry.
 *
 * Sizes are binary (K = 1024), rates are decimal (GB/s = 1e9 bytes, Gb/s = 1e9 bits), TFLOP/s are
 * dense with 2mnk operations.
 */
#ifndef PLUMB_CORE_UNITS_H
#define PLUMB_CORE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A unit of a row's value. A sample of `inner` operations that took `ns` is
 *   rate:  quantity * inner / ns * scale     (quantity: bytes, floating-point operations, messages
 * of one operation) time:  ns / inner * scale                (time of one operation; quantity is
 * not used)
 * The units of figures ("s/GB" and on) are of values that stand in a row as they were found: no
 * sample has them. */
struct unit {
    const char *name;
    double scale;
    bool rate;
    bool higher_is_better;
    const char *help;
};

extern const struct unit units_table[]; /* ends with a NULL name */

const struct unit *units_find(const char *name); /* NULL when unknown */

/* One sample in its unit; see struct unit for the formula. */
double units_value(const struct unit *unit, double quantity, uint64_t inner, uint64_t ns);

/* Each returns 0, -EINVAL (not a number of this kind) or -ERANGE; the whole text must be consumed.
 */
int units_parse_u64(const char *text, uint64_t *value);
int units_parse_size(const char *text, uint64_t *bytes); /* 4096, 16K, 1.5M, 2GiB */
int units_parse_duration(const char *text,
                         uint64_t *ns); /* 2s, 500ms, 10us, 1m, 1h; a bare number is seconds */
int units_parse_fraction(const char *text, double *fraction); /* 1% or 0.01 */
int units_parse_double(const char *text, double *value);      /* finite only */

/* The shortest exact text of a size: 16K, 1M, 1000. Needs 24 bytes. */
const char *units_format_size(uint64_t bytes, char *text, size_t len);
/* The same to read: 16 KiB, 1.5 MiB, 1000 B; exact, too. */
const char *units_format_bytes(uint64_t bytes, char *text, size_t len);
/* An interval around a value, in % of the value: "+/- 1.3 %" where both sides are about as long,
 * which shows the longer one; else "-9 % to +63 %". Beyond 1000 % only that it is. "" for NaN and
 * around 0. Needs 48 bytes. */
const char *units_format_interval(double low, double high, double value, char *text, size_t len);
/* Three digits: 0.12, 12.1, 473. */
const char *units_format_number(double value, char *text, size_t len);
/* The same in the unit of the same kind that suits it: 0.00123 GB/s is 1.23 MB/s. */
const char *units_format_value(double value, const char *unit, char *text, size_t len);
/* That unit; and what values in `unit` are to be multiplied with. Needs 40 bytes. */
double units_scale(double value, const char *unit, char *name, size_t len);
/* A duration to read: 1.5 s, 20 ms. */
const char *units_format_duration(uint64_t ns, char *text, size_t len);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that say something of some combinations only: the threads of a product on CPUs say nothing of
 * one on a GPU. Where is said by data (struct opt_scope), which the benchmark's command line and the
 * harness read alike, so that nothing is asked for in vain and nothing is measured twice.
 *
 * `when` is a condition (core/condition.h) on the values of options, by their names.
 *
 * `values` are those of the options of `table`, in its order; `pick` says which one of each (NULL: the
 * first).
 */
#ifndef PLUMB_CORE_OPTION_SCOPE_H
#define PLUMB_CORE_OPTION_SCOPE_H

#include "core/option.h"

/* Does option number i say something of this combination? */
bool opt_speaks(const struct opt *table, const struct opt_values *values, const size_t *pick,
                size_t i);

/* The same of any combination of the values. */
bool opt_ever_speaks(const struct opt *table, const struct opt_values *values, size_t i);

/* Is this combination another one's repetition: a later value of an option that says nothing of it? */
bool opt_repeats(const struct opt *table, const struct opt_values *values, const size_t *pick);

/* The number of an option that was given, with one value, and says nothing of this combination;
 * SIZE_MAX: there is none. OPT_SWEEP ones are not meant. */
size_t opt_in_vain(const struct opt *table, const struct opt_values *values, const size_t *pick);

/* Is this combination there only by default, and an option was given that says nothing of it? What was asked for is
 * meant then: --streams 8 is for the patterns that stream, of those that are measured by default. */
bool opt_left_out(const struct opt *table, const struct opt_values *values, const size_t *pick);

/* 0, or -EINVAL with o->error set where an option was given that says nothing of any combination. */
int opts_refuse_vain(struct opts *o);

#endif

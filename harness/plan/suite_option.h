/* SPDX-License-Identifier: Apache-2.0 */
/* One key of a case and its value: an option of the benchmark; between suite.c and suite_expand.c.
 */
#ifndef PLUMB_HARNESS_SUITE_OPTION_H
#define PLUMB_HARNESS_SUITE_OPTION_H

#include "harness/plan/suite_expand.h"
#include "harness/plan/yaml.h"

/* Keys of a case that are the harness' own. */
bool suite_key_is_own(const char *key);
/* SIZE_MAX: there is no such option, or a suite may not set it. */
size_t suite_option_index(const struct bench_info *b, const char *key);

/* Is an option that a case does not name left to the benchmark, although it is a list? The communicators of a group are measured in
 * one launch, and how many ranks there are on the hosts this machine does not know. */
bool suite_option_is_left(const struct bench_info *b, size_t i);

/* All: 0, or -errno with the error in the document. */
int suite_option_read(struct case_draft *draft, struct yaml_value key, const char *name,
                      struct yaml_value value);
/* `shapes: NAME` stands for the option --shape with every shape of configs/shapes/NAME.yaml. */
int suite_shapes_read(struct case_draft *draft, struct yaml_value value, const char *configs);

#endif

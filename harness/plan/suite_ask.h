/* SPDX-License-Identifier: Apache-2.0 */
/* What only the benchmark itself knows of a case: it is asked, and measures nothing. */
#ifndef PLUMB_HARNESS_SUITE_ASK_H
#define PLUMB_HARNESS_SUITE_ASK_H

#include "harness/plan/suite_expand.h"
#include "harness/plan/yaml.h"

/* Are the texts right that only it can judge? `map` is where the case stands. 0, or -errno with the
 * error in the document. */
int suite_ask_customs(const struct case_draft *draft, struct yaml_value map);

/* Sets draft->defaults where a case on a GPU leaves a list to its default values, which may be
 * others there than on the host. 0, or -errno with the error in the document. */
int suite_ask_defaults(struct case_draft *draft, struct yaml_value map);

#endif

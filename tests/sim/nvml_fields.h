/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of nvmlDeviceGetFieldValues that other files know. */
#ifndef PLUMB_TESTS_SIM_NVML_FIELDS_H
#define PLUMB_TESTS_SIM_NVML_FIELDS_H

#include "tests/sim/nvml.h"

/* ns for which the device was held back, by field 74 and on; false: not such a field. */
bool nvml_health_field(const struct device *device, unsigned field, unsigned long long *value);

#endif

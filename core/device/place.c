/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places: see device.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/device/device.h"
#include "core/units.h"

static const struct device_ops *const devices[] = {&device_host, NULL};

int place_find(const char *name, const struct topo *topo, struct place *place, char *error,
               size_t len)
{
    for (size_t i = 0; devices[i]; i++) {
        size_t prefix = strlen(devices[i]->name);
        uint64_t index;
        if (strncmp(name, devices[i]->name, prefix) || units_parse_u64(name + prefix, &index) ||
            index > INT32_MAX)
            continue;
        *place = (struct place){devices[i], (unsigned)index};
        return devices[i]->probe(topo, place->index, error, len);
    }
    snprintf(error, len, "'%s' is not a place: node0, node1, ...", name);
    return -EINVAL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places: see device.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/device/device.h"
#include "core/units.h"

/* Whether there is such a GPU is found when it is opened, by point_gpu(): to ask costs a second. */
static int gpu_probe(const struct topo *topo, unsigned index, char *error, size_t len)
{
    (void)topo;
    (void)index;
    (void)error;
    (void)len;
    return 0;
}

const struct device_ops device_gpu = {
    .name = "cuda",
    .leads = true,
    .probe = gpu_probe,
};

static const struct device_ops *const devices[] = {&device_host, &device_gpu, NULL};

/* Reads "1", ":1" or, as 0, "". */
static int parse_index(const char *text, unsigned *index)
{
    uint64_t value = 0;

    if (*text == ':' && text[1])
        text++;
    if (*text && (units_parse_u64(text, &value) || value > INT32_MAX))
        return -EINVAL;
    *index = (unsigned)value;
    return 0;
}

int place_find(const char *name, const struct topo *topo, struct place *place, char *error,
               size_t len)
{
    if (!strcmp(name, "host")) {
        *place = (struct place){&device_host, topo_node_id(topo, 0)};
        return 0;
    }
    for (size_t i = 0; devices[i]; i++) {
        size_t prefix = strlen(devices[i]->name);
        unsigned index;
        if (strncmp(name, devices[i]->name, prefix) || parse_index(name + prefix, &index) ||
            (!name[prefix] && !devices[i]->leads))
            continue;
        *place = (struct place){devices[i], index};
        return devices[i]->probe(topo, place->index, error, len);
    }
    snprintf(error, len, "'%s' is not a place: host, node0, node1, ..., cuda:0, cuda:1, ...", name);
    return -EINVAL;
}

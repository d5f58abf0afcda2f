/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places: see device.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/device/copy_work.h"
#include "core/device/device.h"
#include "core/device/memory_work.h"
#include "core/gpu/gpu.h"
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
    .memory = &gpu_memory_work,
    .copy = &gpu_copy_work,
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

static void list_nodes(char *list, size_t len)
{
    struct topo *topo = NULL;
    size_t at = 0;

    snprintf(list, len, "node0");
    if (topo_open(&topo))
        return;
    for (unsigned i = 0; i < topo_nodes(topo) && at + 16 < len; i++)
        at +=
            (size_t)snprintf(list + at, len - at, "%snode%u", at ? "," : "", topo_node_id(topo, i));
    topo_close(topo);
}

/* Where there is no GPU the first one's name is kept, and its row says why. */
static void list_gpus(char *list, size_t len)
{
    struct gpus *gpus = gpus_open();
    unsigned n = gpus ? gpus_count(gpus) : 0;
    size_t at = 0;

    snprintf(list, len, "%s:0", device_gpu.name);
    for (unsigned i = 0; i < n && at + 16 < len; i++)
        at += (size_t)snprintf(list + at, len - at, "%s%s:%u", at ? "," : "", device_gpu.name, i);
    gpus_close(gpus);
}

bool place_words(const char *word, char *list, size_t len)
{
    if (!strcmp(word, "nodes"))
        list_nodes(list, len);
    else if (!strcmp(word, "gpus"))
        list_gpus(list, len);
    else if (!strcmp(word, "gpu"))
        snprintf(list, len, "%s:0", device_gpu.name);
    else
        return false;
    return true;
}

const char *place_all_nodes(void)
{
    static char text[256]; /* made once, then read only */

    list_nodes(text, sizeof(text));
    return text;
}

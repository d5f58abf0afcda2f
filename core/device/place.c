/* SPDX-License-Identifier: Apache-2.0 */
/* Names of places: see device.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/bench.h"
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
    .gpu = point_gpu,
    .probe = gpu_probe,
};

static const struct device_ops *const devices[] = {&device_host, &device_gpu, NULL};
static const char whole[] = "host";

/* Reads "1", ":1" or, as 0, "": a number has one way to be written. */
static int parse_index(const char *text, unsigned *index)
{
    uint64_t value = 0;

    if (*text == ':' && text[1])
        text++;
    if (*text && (units_parse_u64(text, &value) || value > INT32_MAX))
        return -EINVAL;
    if (*text == '0' && text[1])
        return -EINVAL;
    *index = (unsigned)value;
    return 0;
}

static unsigned kind_of(const struct device_ops *device)
{
    return device->leads ? PLACE_GPU : PLACE_PART;
}

/* The one name of a part of a device. */
static void name_of(const struct device_ops *device, unsigned index, char *name, size_t len)
{
    snprintf(name, len, "%s%s%u", device->name, device->leads ? ":" : "", index);
}

/* What it may be called, and, where one of these is near, which was meant. */
static int no_place(const char *name, unsigned kinds, bool known, char *error, size_t len)
{
    size_t digits = strlen(name), at, n = 0;
    unsigned index = 0;
    char parts[4][24];
    const char *names[8] = {NULL};

    while (digits && strchr("0123456789", name[digits - 1]))
        digits--;
    while (name[digits] == '0')
        digits++;
    if (parse_index(name + digits, &index))
        index = 0;
    at = (size_t)snprintf(error, len, "'%.40s' is %s:", name,
                          !known               ? "not a place"
                          : kinds == PLACE_GPU ? "no GPU"
                                               : "no device of its own");
    if (kinds & PLACE_WHOLE)
        names[n++] = whole;
    for (size_t i = 0; devices[i]; i++) {
        if (!(kinds & kind_of(devices[i])))
            continue;
        name_of(devices[i], index, parts[i], sizeof(parts[i]));
        names[n++] = parts[i];
        names[n++] = devices[i]->leads ? "gpus" : "nodes";
    }
    for (size_t i = 0; i < n && at < len; i++)
        at += (size_t)snprintf(error + at, len - at, "%s%s", i ? ", " : " ", names[i]);
    const char *near = known ? NULL : opts_nearest(name, names);
    if (near && at < len)
        snprintf(error + at, len - at, "; did you mean '%s'?", near);
    return -EINVAL;
}

int place_parse(const char *name, unsigned kinds, struct place *place, char *error, size_t len)
{
    unsigned kind = 0, index = 0;

    if (!strcmp(name, whole)) {
        *place = (struct place){&device_host, 0};
        kind = PLACE_WHOLE;
    }
    for (size_t i = 0; !kind && devices[i]; i++) {
        size_t prefix = strlen(devices[i]->name);
        if (strncmp(name, devices[i]->name, prefix) || parse_index(name + prefix, &index) ||
            (!name[prefix] && !devices[i]->leads))
            continue;
        *place = (struct place){devices[i], index};
        kind = kind_of(devices[i]);
    }
    /* What takes parts of the host takes it as a whole, too: as the first of them. */
    if (kind & kinds || (kind == PLACE_WHOLE && kinds & PLACE_PART))
        return 0;
    return no_place(name, kinds, kind != 0, error, len);
}

static int read_place(const char *text, unsigned kinds, void *value, char *error, size_t len)
{
    struct place place;

    *(const char **)value = text;
    return place_parse(text, kinds, &place, error, len);
}

int place_read_any(const char *text, void *value, char *error, size_t len)
{
    return read_place(text, PLACE_ANY, value, error, len);
}

int place_read_device(const char *text, void *value, char *error, size_t len)
{
    return read_place(text, PLACE_WHOLE | PLACE_GPU, value, error, len);
}

int place_read_gpu(const char *text, void *value, char *error, size_t len)
{
    return read_place(text, PLACE_GPU, value, error, len);
}

int place_find(const char *name, const struct topo *topo, struct place *place, char *error,
               size_t len)
{
    int err = place_parse(name, PLACE_ANY, place, error, len);

    if (err)
        return err;
    if (!strcmp(name, whole)) {
        place->index = topo_node_id(topo, 0);
        return 0;
    }
    return place->device->probe(topo, place->index, error, len);
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

/* Another name of a place: its one name in `list`. */
static bool is_alias(const char *word, char *list, size_t len)
{
    struct place place = {&device_host, 0};

    if (!strcmp(word, whole) || place_parse(word, PLACE_ANY, &place, list, len))
        return false;
    name_of(place.device, place.index, list, len);
    return strcmp(list, word) != 0;
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
        return is_alias(word, list, len);
    return true;
}

bool place_words_of_nodes(const char *word, char *list, size_t len)
{
    if (strcmp(word, whole) != 0)
        return place_words(word, list, len);
    list_nodes(list, len);
    list[strcspn(list, ",")] = 0;
    return true;
}

const char *place_all_nodes(void)
{
    static char text[256]; /* made once, then read only */

    list_nodes(text, sizeof(text));
    return text;
}

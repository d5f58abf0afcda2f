// SPDX-License-Identifier: Apache-2.0
// What limits_machine.c and limits_gpu.c share: see limits_join.h.
#include "harness/limits/limits_join.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LABEL_CHARS 64

// ---- reading facts: an absent or odd one is passed over

const char *limits_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

double limits_number(const json_t *object, const char *key)
{
    double value = json_number_value(json_object_get(object, key));
    return value > 0 ? value : 0;
}

int limits_count(const json_t *object, const char *key)
{
    double value = limits_number(object, key);
    return value < 1e6 ? (int)value : 0;
}

const char *limits_label(const json_t *object, const char *key)
{
    const char *s = limits_text(object, key);
    return s && *s && strlen(s) <= LABEL_CHARS ? s : NULL;
}

bool limits_is_one_of(const char *s, const char *const list[])
{
    for (; s && *list; list++)
        if (!strcmp(s, *list))
            return true;
    return false;
}

bool limits_is_whole(const json_t *device)
{
    static const char *const whole[] = {"physical", "passthrough", NULL};
    return limits_is_one_of(limits_text(device, "nature"), whole);
}

static const json_t *pci_device(const struct joiner *j, const char *address)
{
    const json_t *device;
    size_t i;
    json_array_foreach (json_object_get(j->machine, "pci"), i, device) {
        const char *at = limits_text(device, "address");
        if (address && at && !strcmp(at, address))
            return device;
    }
    return NULL;
}

struct limit_key limits_pci_id(const struct joiner *j, const char *address)
{
    const json_t *device = pci_device(j, address);
    const char *vendor = limits_text(device, "vendor_id"), *id = limits_text(device, "device_id");
    struct limit_key key = {""};
    if (vendor && id)
        snprintf(key.text, sizeof(key.text), "%s:%s", vendor, id);
    return key;
}

// ---- writing limits

struct limit_key limits_key(const char *fmt, ...)
{
    struct limit_key key;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(key.text, sizeof(key.text), fmt, ap);
    va_end(ap);
    return key;
}

bool limits_has(const struct joiner *j, const char *key)
{
    const json_t *limit;
    size_t i;
    json_array_foreach (j->out, i, limit) {
        if (!strcmp(limits_text(limit, "key"), key))
            return true;
    }
    return false;
}

void limits_add(struct joiner *j, struct limit_key key, double value, const char *unit,
                const char *source, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    json_t *detail = json_vsprintf(fmt, ap);
    va_end(ap);
    json_t *limit = json_pack("{s:s, s:f, s:s, s:s, s:o}", "key", key.text, "value", value, "unit",
                              unit, "source", source, "detail", detail);
    if (!limit || json_array_append_new(j->out, limit))
        j->rc = -ENOMEM;
}

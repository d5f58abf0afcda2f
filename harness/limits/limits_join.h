// SPDX-License-Identifier: Apache-2.0
// From a machine's facts to its limits: what limits_machine.c and limits_gpu.c share. Others use
// harness/limits/limits.h.
#ifndef PLUMB_HARNESS_LIMITS_JOIN_H
#define PLUMB_HARNESS_LIMITS_JOIN_H

#include "harness/limits/limits_table.h"

struct joiner {
    const struct limits *l;
    const json_t *machine;
    json_t *out;
    int rc;
};

struct limit_key {
    char text[256];
};

// Reading facts: an absent or odd one is passed over.
const char *limits_text(const json_t *object, const char *key); // or NULL
double limits_number(const json_t *object, const char *key);    // a positive number, else 0
int limits_count(const json_t *object, const char *key);        // a positive number of things, or 0
// A text that becomes a part of a key: one that is too long for that counts as absent.
const char *limits_label(const json_t *object, const char *key);
bool limits_is_one_of(const char *s, const char *const list[]); // NULL-terminated; s may be NULL
// All of one piece of hardware belongs to this machine.
bool limits_is_whole(const json_t *device);
// "10de:2330" of the function at this address; "" when it is not known.
struct limit_key limits_pci_id(const struct joiner *j, const char *address);

// Writing limits.
struct limit_key limits_key(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool limits_has(const struct joiner *j, const char *key); // written already
void limits_add(struct joiner *j, struct limit_key key, double value, const char *unit,
                const char *source, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

// All limits of GPU number `index`.
void limits_add_gpu(struct joiner *j, const json_t *gpu, size_t index);
// The NVLinks between two GPUs.
void limits_add_gpu_pair(struct joiner *j, const json_t *pair);

#endif

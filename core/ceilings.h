/* SPDX-License-Identifier: Apache-2.0 */
/* Ceilings that a benchmark measured in this process, so that each is measured once. */
#ifndef PLUMB_CORE_CEILINGS_H
#define PLUMB_CORE_CEILINGS_H

#include <stddef.h>

struct ceilings { /* zeroed: empty */
    struct ceiling {
        char key[128]; /* what was measured: parameters as text */
        double value;
    } * all;
    size_t n;
};

/* 0 with *value, or -ENOENT. */
int ceilings_find(const struct ceilings *c, const char *key, double *value);
int ceilings_add(struct ceilings *c, const char *key, double value); /* 0 or -ENOMEM */
/* The same, or where the key is there with a lower value, this one. */
int ceilings_raise(struct ceilings *c, const char *key, double value);
void ceilings_release(struct ceilings *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Measured ceilings: see ceilings.h. */
#include "core/ceilings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ceilings_find(const struct ceilings *c, const char *key, double *value)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->all[i].key, key)) {
            *value = c->all[i].value;
            return 0;
        }
    return -ENOENT;
}

int ceilings_add(struct ceilings *c, const char *key, double value)
{
    struct ceiling *grown = realloc(c->all, (c->n + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    c->all = grown;
    snprintf(grown[c->n].key, sizeof(grown[c->n].key), "%s", key);
    grown[c->n++].value = value;
    return 0;
}

int ceilings_raise(struct ceilings *c, const char *key, double value)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->all[i].key, key)) {
            c->all[i].value = value > c->all[i].value ? value : c->all[i].value;
            return 0;
        }
    return ceilings_add(c, key, value);
}

void ceilings_release(struct ceilings *c)
{
    free(c->all);
    *c = (struct ceilings){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Measured ceilings: see ceilings.h. */
#include "core/ceilings.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
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

double limit_of_parts(const struct limit_parts *parts)
{
    double rest = 1 - parts->share, first = 0, second = rest > 0 ? rest / parts->rate[1] : 0;

    if (parts->share > 0)
        first = parts->share / parts->rate[0] + fmin(parts->fill / parts->rate[0], second);
    return 1 / (first > second || isnan(first) ? first : second); /* of what is unknown: NaN */
}

void ceiling_place(char place[CEILING_PLACE], const char *path, const unsigned *cpus, unsigned n,
                   const char *detail, ...)
{
    char list[CEILING_PLACE / 2], rest[CEILING_PLACE];
    va_list ap;

    va_start(ap, detail);
    int len = vsnprintf(rest, sizeof(rest), detail, ap);
    va_end(ap);
    topo_cpus_text(cpus, n, list, sizeof(list));
    if (strstr(list, "..") || len >= (int)sizeof(rest) ||
        snprintf(place, CEILING_PLACE, "%s, CPUs %s, %s", path, list, rest) >= CEILING_PLACE)
        place[0] = 0;
}

double ceiling_change(double before, double after)
{
    return fabs(after - before) / fmax(before, after);
}

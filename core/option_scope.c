/* SPDX-License-Identifier: Apache-2.0 */
/* Where options say something: see option_scope.h. */
#include "core/option_scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"

struct combination {
    const struct opt *table;
    const struct opt_values *values;
    const size_t *pick;
};

static size_t index_of(const struct opt *table, const char *name, size_t len)
{
    for (size_t i = 0; table[i].name; i++)
        if (strlen(table[i].name) == len && !strncmp(table[i].name, name, len))
            return i;
    return SIZE_MAX;
}

static const char *value_of(const void *arg, const char *name, size_t len)
{
    const struct combination *c = arg;
    size_t i = index_of(c->table, name, len);

    return i != SIZE_MAX && c->values[i].n ? c->values[i].texts[c->pick ? c->pick[i] : 0] : "";
}

bool opt_speaks(const struct opt *table, const struct opt_values *values, const size_t *pick,
                size_t i)
{
    const struct combination c = {table, values, pick};

    return !table[i].scope || condition_holds(table[i].scope->when, value_of, &c);
}

struct mention {
    const struct opt *table;
    size_t option;
};

static bool is_mentioned(void *arg, const char *name, size_t len)
{
    const struct mention *m = arg;

    return index_of(m->table, name, len) == m->option;
}

/* Is that option's value asked for by the condition? */
static bool mentions(const struct opt *table, const char *when, size_t option)
{
    return condition_names(when, is_mentioned, &(struct mention){table, option});
}

/* All combinations of the options from `at` on that the condition asks for. */
static bool any_speaks(const struct opt *table, const struct opt_values *values, size_t *pick,
                       size_t i, size_t at)
{
    bool yes = false;

    if (!table[at].name)
        return opt_speaks(table, values, pick, i);
    size_t n = mentions(table, table[i].scope->when, at) && values[at].n ? values[at].n : 1;
    for (pick[at] = 0; !yes && pick[at] < n; pick[at]++)
        yes = any_speaks(table, values, pick, i, at + 1);
    return yes;
}

bool opt_ever_speaks(const struct opt *table, const struct opt_values *values, size_t i)
{
    size_t n = 0;

    if (!table[i].scope)
        return true;
    while (table[n].name)
        n++;
    size_t *pick = calloc(n + 1, sizeof(*pick));
    bool yes = !pick || any_speaks(table, values, pick, i, 0);
    free(pick);
    return yes;
}

bool opt_repeats(const struct opt *table, const struct opt_values *values, const size_t *pick)
{
    for (size_t i = 0; table[i].name; i++)
        if (pick[i] && !opt_speaks(table, values, pick, i))
            return true;
    return false;
}

size_t opt_in_vain(const struct opt *table, const struct opt_values *values, const size_t *pick)
{
    for (size_t i = 0; table[i].name; i++)
        if (values[i].given && values[i].n == 1 && !(table[i].flags & OPT_SWEEP) &&
            !opt_speaks(table, values, pick, i))
            return i;
    return SIZE_MAX;
}

bool opt_left_out(const struct opt *table, const struct opt_values *values, const size_t *pick)
{
    size_t vain = opt_in_vain(table, values, pick);

    for (size_t i = 0; vain != SIZE_MAX && table[i].name; i++)
        if (!values[i].given && values[i].n > 1 && mentions(table, table[vain].scope->when, i))
            return true;
    return false;
}

int opts_refuse_vain(struct opts *o)
{
    size_t first = 0;

    for (const struct opt *const *t = o->tables; *t; t++) {
        size_t n = 0;
        for (; (*t)[n].name; n++) {
            const struct opt *opt = &(*t)[n];
            if (!o->values[first + n].given || opt_ever_speaks(*t, &o->values[first], n))
                continue;
            snprintf(o->error, sizeof(o->error),
                     "option '--%s' says nothing here: it is for %s; leave it out", opt->name,
                     opt->scope->what);
            return -EINVAL;
        }
        first += n;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Where options say something: see option_scope.h. */
#include "core/option_scope.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 256 /* of a value or pattern that is compared */

struct combination {
    const struct opt *table;
    const struct opt_values *values;
    const size_t *pick;
};

struct part {
    const char *at;
    size_t len;
};

struct term {
    struct part name, patterns;
    bool unless;
};

static size_t index_of(const struct opt *table, struct part name)
{
    for (size_t i = 0; table[i].name; i++)
        if (strlen(table[i].name) == name.len && !strncmp(table[i].name, name.at, name.len))
            return i;
    return SIZE_MAX;
}

static void value_of(const struct combination *c, struct part name, char text[TEXT_MAX])
{
    size_t i = index_of(c->table, name);
    bool set = i != SIZE_MAX && c->values[i].n;

    snprintf(text, TEXT_MAX, "%s", set ? c->values[i].texts[c->pick ? c->pick[i] : 0] : "");
}

/* Takes the next part up to one of `ends` off *rest; false when nothing is left. */
static bool next_part(struct part *rest, const char *ends, struct part *part)
{
    while (rest->len && strchr(ends, *rest->at))
        rest->at++, rest->len--;
    *part = (struct part){rest->at, 0};
    while (rest->len && !strchr(ends, *rest->at))
        rest->at++, rest->len--, part->len++;
    return part->len != 0;
}

static struct term read_term(struct part text)
{
    struct term t = {.patterns = text};

    next_part(&t.patterns, "!=", &t.name);
    t.unless = t.patterns.len && *t.patterns.at == '!';
    size_t skip = t.unless ? 2 : 1;
    skip = skip < t.patterns.len ? skip : t.patterns.len;
    t.patterns.at += skip;
    t.patterns.len -= skip;
    return t;
}

static bool term_holds(const struct combination *c, const struct term *t)
{
    char value[TEXT_MAX], pattern[TEXT_MAX];
    struct part rest = t->patterns, one;
    bool fits = false;

    value_of(c, t->name, value);
    while (!fits && next_part(&rest, ",", &one)) {
        if (*one.at == '@') {
            value_of(c, (struct part){one.at + 1, one.len - 1}, pattern);
            fits = !strcmp(pattern, value);
        } else {
            snprintf(pattern, sizeof(pattern), "%.*s", (int)one.len, one.at);
            fits = !fnmatch(pattern, value, 0);
        }
    }
    return fits != t->unless;
}

static bool clause_holds(const struct combination *c, struct part clause)
{
    struct part text;

    while (next_part(&clause, " ", &text)) {
        struct term t = read_term(text);
        if (!term_holds(c, &t))
            return false;
    }
    return true;
}

bool opt_speaks(const struct opt *table, const struct opt_values *values, const size_t *pick,
                size_t i)
{
    const struct combination c = {table, values, pick};
    const struct opt_scope *scope = table[i].scope;
    struct part rest, clause;

    if (!scope)
        return true;
    rest = (struct part){scope->when, strlen(scope->when)};
    while (next_part(&rest, "|", &clause))
        if (clause_holds(&c, clause))
            return true;
    return false;
}

/* Is that option's value asked for by the condition? */
static bool mentions(const struct opt *table, const char *when, size_t option)
{
    struct part rest = {when, strlen(when)}, text;

    while (next_part(&rest, " |", &text)) {
        struct term t = read_term(text);
        bool other = t.patterns.len && *t.patterns.at == '@';
        if (index_of(table, t.name) == option ||
            (other &&
             index_of(table, (struct part){t.patterns.at + 1, t.patterns.len - 1}) == option))
            return true;
    }
    return false;
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

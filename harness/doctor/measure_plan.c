/* SPDX-License-Identifier: Apache-2.0 */
/* The causes that can be priced here: see measure.h. */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/condition.h"
#include "harness/doctor/measure.h"

#define VARIABLES_SIZE 2048

static bool fits(const char *variable, const char *patterns)
{
    char name[128], all[512];
    int n = (int)strcspn(variable, "=");

    snprintf(name, sizeof(name), "%.*s", n, variable);
    snprintf(all, sizeof(all), "%s", patterns);
    for (char *save = all, *one; (one = strsep(&save, " ")) != NULL;)
        if (*one && !fnmatch(one, name, 0))
            return true;
    return false;
}

/* The variables of this process that fit the patterns of bench_experiment.unset, with blanks
 * between: "OPENBLAS_CORETYPE". Returns text. */
static const char *variables_set(const char *patterns, char *text, size_t len)
{
    size_t used = 0;

    text[0] = 0;
    for (char **at = environ; *at && used < len; at++)
        if (fits(*at, patterns))
            used += (size_t)snprintf(text + used, len - used, "%s%.*s", used ? " " : "",
                                     (int)strcspn(*at, "="), *at);
    return text;
}

static const char *fact_value(const void *facts, const char *name, size_t len)
{
    char key[64];

    snprintf(key, sizeof(key), "%.*s", (int)len, name);
    return json_string_value(json_object_get(facts, key));
}

static bool is_chosen(const char *only, const char *check)
{
    size_t n = strlen(check);

    for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, check, n) && (!at[n] || at[n] == ','))
            return true;
    return !only;
}

static void skip(struct measurement *m, const char *reason)
{
    m->state = MEASURE_SKIPPED;
    snprintf(m->reason, sizeof(m->reason), "%s", reason);
}

/* A new text. variable: what one side lacks; NULL: they are options. */
static char *command_of(const struct bench_info *bench, const struct bench_experiment *e,
                        const char *variable)
{
    const char *both = e->both ? e->both : "", *blank = *both ? " " : "";

    if (!bench)
        return xasprintf("plumb doctor --measure=%s", e->check);
    if (e->unset)
        return xasprintf("plumb %s%s%s, against the same without %s", bench->name, blank, both,
                         variable ? variable : e->unset);
    return xasprintf("plumb %s %s%s%s, against %s", bench->name, both, blank, e->with, e->without);
}

/* variable: that one side lacks; NULL: none. */
static void add(struct measures *m, const struct bench_info *bench, const struct measure_own *own,
                const struct bench_experiment *e, const char *variable)
{
    char text[300];
    struct measurement *one = ARRAY_ADD(m->all, m->n);

    *one = (struct measurement){
        .cause = e, .bench = bench, .own = own, .ratio = NAN, .low = NAN, .high = NAN};
    if (e->machine && !condition_holds(e->machine, fact_value, m->facts))
        skip(one, e->lacks);
    if (e->unset && !variable) {
        snprintf(text, sizeof(text), "no such variable is set: %s", e->unset);
        skip(one, text);
    }
    one->variable = variable ? xstrdup(variable) : NULL;
    one->command = command_of(bench, e, variable);
}

/* Adds each cause that is chosen. */
static void add_all(struct measures *m, const char *only)
{
    for (size_t i = 0; i < m->benches->n; i++) {
        const struct bench_info *b = &m->benches->benches[i];
        for (const struct bench_experiment *e = b->rows.experiments; e->check; e++)
            if (is_chosen(only, e->check)) {
                char names[VARIABLES_SIZE] = "";

                if (!e->unset || !*variables_set(e->unset, names, sizeof(names)))
                    add(m, b, NULL, e, NULL);
                else
                    for (char *save = names, *name; (name = strsep(&save, " ")) != NULL;)
                        add(m, b, NULL, e, name);
            }
    }
    for (const struct measure_own *own = measure_own; own->cause.check; own++)
        if (is_chosen(only, own->cause.check))
            add(m, NULL, own, &own->cause, NULL);
}

static bool has(const struct measures *m, const char *check, size_t len)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct bench_experiment *e = m->all[i].cause;
        if (e && strlen(e->check) == len && !strncmp(e->check, check, len))
            return true;
    }
    return false;
}

/* "'far' is no cause that can be measured; there are: ..." */
static int say_unknown(struct measures *m, const char *name, size_t len, char *error, size_t size)
{
    const char *last = "";
    size_t at = (size_t)snprintf(
        error, size, "'%.*s' is no cause that can be measured; there are:", (int)len, name);

    measures_release(m);
    add_all(m, NULL);
    for (size_t i = 0; i < m->n && at < size; i++) {
        const char *check = m->all[i].cause->check;
        if (strcmp(check, last) != 0)
            at += (size_t)snprintf(error + at, size - at, " %s", check);
        last = check;
    }
    return -ENOENT;
}

int measure_plan(struct measures *m, const struct bench_list *benches,
                 const struct measure_options *o, char *error, size_t len)
{
    *m = (struct measures){
        .options = o, .benches = benches, .facts = measure_facts(o->machine, o->peer)};
    add_all(m, o->only);
    for (const char *at = o->only; o->named && at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!has(m, at, strcspn(at, ",")))
            return say_unknown(m, at, strcspn(at, ","), error, len);
    return 0;
}

void measures_release(struct measures *m)
{
    for (size_t i = 0; i < m->n; i++)
        measurement_release(&m->all[i]);
    free(m->all);
    json_decref(m->facts);
    m->all = NULL;
    m->facts = NULL;
    m->n = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The causes that can be priced here: see measure.h. */
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

struct machine_text {
    const json_t *machine;
    const char *peer;
    char *text;
    size_t len;
};

static const char *fact_value(const void *arg, const char *name, size_t len)
{
    const struct machine_text *t = arg;

    if (len == strlen("peer") && !strncmp(name, "peer", len))
        return t->peer ? t->peer : "";
    return measure_fact(t->machine, name, len, t->text, t->len);
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

/* A new text; NULL: no memory. variable: what one side lacks; NULL: they are options. */
static char *command_of(const struct bench_info *bench, const struct bench_experiment *e,
                        const char *variable)
{
    const char *both = e->both ? e->both : "";
    char *text = NULL;
    int n;

    if (!bench)
        n = asprintf(&text, "plumb doctor --measure=%s", e->check);
    else if (e->unset)
        n = asprintf(&text, "plumb %s%s%s, against the same without %s", bench->name,
                     *both ? " " : "", both, variable ? variable : e->unset);
    else
        n = asprintf(&text, "plumb %s %s%s%s, against %s", bench->name, both, *both ? " " : "",
                     e->with, e->without);
    return n < 0 ? NULL : text;
}

/* variable: that one side lacks; NULL: none. */
static int add(struct measures *m, const struct bench_info *bench, const struct measure_own *own,
               const struct bench_experiment *e, const char *variable)
{
    char text[300];
    struct machine_text facts = {m->options->machine, m->options->peer, text, sizeof(text)};
    struct measurement *one = &m->all[m->n++];

    *one = (struct measurement){
        .cause = e, .bench = bench, .own = own, .ratio = NAN, .low = NAN, .high = NAN};
    if (e->machine && !condition_holds(e->machine, fact_value, &facts))
        skip(one, e->lacks);
    if (e->unset && !variable) {
        snprintf(text, sizeof(text), "no such variable is set: %s", e->unset);
        skip(one, text);
    }
    one->variable = variable ? strdup(variable) : NULL;
    one->command = command_of(bench, e, variable);
    return one->command && !variable == !one->variable ? 0 : -ENOMEM;
}

/* One for each variable that is set, of those that the cause is about: each has its own price. */
static int add_each(struct measures *m, const struct bench_info *bench,
                    const struct bench_experiment *e)
{
    char names[VARIABLES_SIZE] = "";
    int err = 0;

    if (!e->unset || !*variables_set(e->unset, names, sizeof(names)))
        return add(m, bench, NULL, e, NULL);
    for (char *save = names, *name; !err && (name = strsep(&save, " ")) != NULL;)
        err = add(m, bench, NULL, e, name);
    return err;
}

/* How many add_each() adds. */
static size_t count_each(const struct bench_experiment *e)
{
    char names[VARIABLES_SIZE] = "";
    size_t n = 1;

    if (e->unset)
        for (const char *at = variables_set(e->unset, names, sizeof(names)); *at; at++)
            n += *at == ' ';
    return n;
}

/* Adds each cause that is chosen. *n is how many there are at most. */
static int add_all(struct measures *m, const char *only, size_t *n)
{
    int err = 0;

    *n = 0;
    for (size_t i = 0; i < m->benches->n; i++) {
        const struct bench_info *b = &m->benches->benches[i];
        for (const struct bench_experiment *e = b->rows.experiments; !err && e->check; e++) {
            *n += count_each(e);
            if (m->all && is_chosen(only, e->check))
                err = add_each(m, b, e);
        }
    }
    for (const struct measure_own *own = measure_own; !err && own->cause.check; own++, ++*n)
        if (m->all && is_chosen(only, own->cause.check))
            err = add(m, NULL, own, &own->cause, NULL);
    return err;
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
               error, size, "'%.*s' is no cause that can be measured; there are:", (int)len, name),
           n;

    measures_release(m);
    m->all = NULL;
    add_all(m, NULL, &n);
    struct measurement *all = calloc(n + 1, sizeof(*all));
    m->all = all;
    if (!all || add_all(m, NULL, &n))
        return -ENOMEM;
    for (size_t i = 0; i < m->n && all[i].cause && at < size; i++) {
        if (strcmp(all[i].cause->check, last) != 0)
            at += (size_t)snprintf(error + at, size - at, " %s", all[i].cause->check);
        last = all[i].cause->check;
    }
    return -ENOENT;
}

int measure_plan(struct measures *m, const struct bench_list *benches,
                 const struct measure_options *o, char *error, size_t len)
{
    size_t n;

    *m = (struct measures){.options = o, .benches = benches};
    add_all(m, o->only, &n);
    m->all = calloc(n + 1, sizeof(*m->all));
    int err = m->all ? add_all(m, o->only, &n) : -ENOMEM;
    for (const char *at = o->only; !err && o->named && at;
         at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!has(m, at, strcspn(at, ",")))
            return say_unknown(m, at, strcspn(at, ","), error, len);
    return err;
}

void measures_release(struct measures *m)
{
    for (size_t i = 0; i < m->n; i++)
        measurement_release(&m->all[i]);
    free(m->all);
    m->all = NULL;
    m->n = 0;
}

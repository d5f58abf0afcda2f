/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options: see option.h. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/condition.h"
#include "core/option.h"
#include "core/units.h"

#define EXPANDED_BYTES 4096 /* of a list that one word stands for */

static int complain(const struct opt *opt, const char *text, const char *want, char *error,
                    size_t len)
{
    snprintf(error, len, "option '--%s': '%s' is not %s", opt->name, text, want);
    return -EINVAL;
}

static int choice_read(const struct opt *opt, const char *text, int *value, char *error, size_t len)
{
    for (int i = 0; opt->choices[i]; i++) {
        if (!strcmp(opt->choices[i], text)) {
            *value = i;
            return 0;
        }
    }
    const char *near = opts_nearest(text, opt->choices);
    int at = snprintf(error, len, "option '--%s': unknown value '%s'", opt->name, text);
    if (near)
        at += snprintf(error + at, len - (size_t)at, ", did you mean '%s'?", near);
    for (int i = 0; opt->choices[i] && (size_t)at < len; i++)
        at += snprintf(error + at, len - (size_t)at, "%s%s",
                       i ? ", " : (near ? " Choices: " : "; choices: "), opt->choices[i]);
    return -EINVAL;
}

static int flag_read(const struct opt *opt, const char *text, bool *value, char *error, size_t len)
{
    bool yes =
        !strcmp(text, "yes") || !strcmp(text, "true") || !strcmp(text, "on") || !strcmp(text, "1");
    bool no =
        !strcmp(text, "no") || !strcmp(text, "false") || !strcmp(text, "off") || !strcmp(text, "0");

    if (!yes && !no)
        return complain(opt, text, "yes or no", error, len);
    *value = yes;
    return 0;
}

static int number_read(const struct opt *opt, const char *text, uint64_t *value, char *error,
                       size_t len)
{
    int err = opt->type == OPT_U64    ? units_parse_u64(text, value)
              : opt->type == OPT_SIZE ? units_parse_size(text, value)
                                      : units_parse_duration(text, value);

    if (err)
        return complain(opt, text,
                        opt->type == OPT_U64    ? "a whole number"
                        : opt->type == OPT_SIZE ? "a size such as 4096, 16K or 1M"
                                                : "a time such as 2s, 500ms or 1m",
                        error, len);
    if (*value < opt->min || (opt->max && *value > opt->max)) {
        snprintf(error, len, "option '--%s': '%s' is out of range: from %llu%s", opt->name, text,
                 (unsigned long long)opt->min, opt->max ? "" : " up");
        if (opt->max) {
            size_t at = strlen(error);
            snprintf(error + at, len - at, " to %llu", (unsigned long long)opt->max);
        }
        return -EINVAL;
    }
    return 0;
}

static int real_read(const struct opt *opt, const char *text, double *value, char *error,
                     size_t len)
{
    int err = opt->type == OPT_FRACTION ? units_parse_fraction(text, value)
                                        : units_parse_double(text, value);

    if (err)
        return complain(opt, text,
                        opt->type == OPT_FRACTION ? "a share such as 1% or 0.01" : "a number",
                        error, len);
    if (opt->type == OPT_FRACTION && (*value < 0 || *value > 1))
        return complain(opt, text, "a share from 0% to 100%", error, len);
    if (opt->max && (*value < (double)opt->min || *value > (double)opt->max))
        return complain(opt, text, "within its bounds, see --help", error, len);
    return 0;
}

int opt_value_read(const struct opt *opt, const char *text, void *value, char *error, size_t len)
{
    switch (opt->type) {
    case OPT_FLAG:
        return flag_read(opt, text, value, error, len);
    case OPT_U64:
    case OPT_SIZE:
    case OPT_DURATION:
        return number_read(opt, text, value, error, len);
    case OPT_FRACTION:
    case OPT_DOUBLE:
        return real_read(opt, text, value, error, len);
    case OPT_CHOICE:
        return choice_read(opt, text, value, error, len);
    case OPT_STRING:
        *(const char **)value = text;
        return 0;
    case OPT_CUSTOM: {
        char why[512] = "";
        /* Its own reader need not know what the option is called. */
        int err = opt->parse(text, value, why, sizeof(why));
        if (err && !strncmp(why, "option '", strlen("option '")))
            snprintf(error, len, "%s", why);
        else if (err)
            snprintf(error, len, "option '--%s': %s", opt->name, why);
        return err;
    }
    }
    return -EINVAL;
}

/* One element: checked by reading it, kept in canonical form. */
static int push_element(const struct opt *opt, const char *text, struct opt_values *out,
                        char *error, size_t len)
{
    char canonical[32],
        buffer[64]; /* buffer: whatever type; the largest is a custom struct of three sizes */
    int err = opt_value_read(opt, text, buffer, error, len);

    if (err)
        return err;
    if (out->n >= OPT_LIST_MAX) {
        snprintf(error, len, "option '--%s': over %d values", opt->name, OPT_LIST_MAX);
        return -EINVAL;
    }
    if (opt->type == OPT_U64 || opt->type == OPT_SIZE) {
        uint64_t value;
        memcpy(&value, buffer, sizeof(value));
        snprintf(canonical, sizeof(canonical), "%llu", (unsigned long long)value);
        text = canonical;
    } else if (opt->type == OPT_FLAG) {
        text = buffer[0] ? "yes" : "no";
    }
    *ARRAY_ADD(out->texts, out->n) = xstrdup(text);
    return 0;
}

/* "512..4096x2", "512..4096 x2", "1..9+2", "1..64" (doubling). */
struct range {
    char low[32], high[32], step[32];
    char kind; /* 'x' or '+' */
};

static int range_split(const char *text, const char *dots, struct range *r)
{
    const char *high = dots + 2;
    size_t high_len = strcspn(high, " x+");
    const char *rest = high + high_len;

    while (*rest == ' ')
        rest++;
    r->kind = *rest ? *rest : 'x';
    const char *step = *rest ? rest + 1 : "2";
    if ((r->kind != 'x' && r->kind != '+') || (size_t)(dots - text) >= sizeof(r->low) ||
        high_len >= sizeof(r->high) || strlen(step) >= sizeof(r->step))
        return -EINVAL;
    snprintf(r->low, sizeof(r->low), "%.*s", (int)(dots - text), text);
    snprintf(r->high, sizeof(r->high), "%.*s", (int)high_len, high);
    snprintf(r->step, sizeof(r->step), "%s", step);
    return 0;
}

static int push_range(const struct opt *opt, const char *text, const char *dots,
                      struct opt_values *out, char *error, size_t len)
{
    uint64_t low, high, step = 0;
    double factor = 0;
    struct range r;
    int err = range_split(text, dots, &r);

    if (err)
        return complain(opt, text, "a range such as 512..4096x2 or 1..9+2", error, len);
    if ((err = number_read(opt, r.low, &low, error, len)) ||
        (err = number_read(opt, r.high, &high, error, len)))
        return err;
    if (r.kind == 'x')
        err = units_parse_double(r.step, &factor);
    else
        err = opt->type == OPT_SIZE ? units_parse_size(r.step, &step)
                                    : units_parse_u64(r.step, &step);
    if (err || low > high || (r.kind == 'x' ? !(factor > 1) || low == 0 : step == 0))
        return complain(
            opt, text,
            "a range that ends: low to high, a factor above 1 (low above 0) or a step above 0",
            error, len);
    for (uint64_t v = low; !err && v <= high;) {
        char number[32];
        snprintf(number, sizeof(number), "%llu", (unsigned long long)v);
        err = push_element(opt, number, out, error, len);
        double next = r.kind == 'x' ? (double)v * factor : (double)v + (double)step;
        if (next > (double)high || next >= 0x1p63)
            break;
        uint64_t w = r.kind == 'x' ? (uint64_t)(next + 0.5) : v + step;
        v = w > v ? w : v + 1;
    }
    return err;
}

static int read_all(const struct opt *opt, const char *text, struct opt_values *out, char *error,
                    size_t len)
{
    bool numeric = opt->type == OPT_U64 || opt->type == OPT_SIZE;
    int err = 0;

    if (!(opt->flags & OPT_LIST))
        return push_element(opt, text, out, error, len);
    char *copy = xstrdup(text), *save = copy;
    for (char *part; !err && (part = strsep(&save, ",")) != NULL;) {
        while (isspace((unsigned char)*part))
            part++;
        for (size_t n = strlen(part); n && isspace((unsigned char)part[n - 1]); n--)
            part[n - 1] = 0;
        const char *dots = numeric ? strstr(part, "..") : NULL;
        char list[EXPANDED_BYTES];
        if (!*part)
            err = complain(opt, text, "a list: an element is empty", error, len);
        else if (opt->expand && opt->expand(part, list, sizeof(list)))
            err = read_all(opt, list, out, error, len);
        else if (dots)
            err = push_range(opt, part, dots, out, error, len);
        else
            err = push_element(opt, part, out, error, len);
    }
    free(copy);
    return err;
}

/* Those of one text stand together, the first of them in front. */
static int by_text(const void *a, const void *b)
{
    char *const *const x = *(char **const *)a, *const *const y = *(char **const *)b;
    int order = strcmp(*x, *y);

    return order ? order : (x > y) - (x < y);
}

/* A value that is named twice is one value. */
static void keep_once(struct opt_values *v)
{
    size_t kept = 0;

    if (v->n < 2)
        return;
    char ***sorted = xcalloc(v->n, sizeof(*sorted));
    for (size_t i = 0; i < v->n; i++)
        sorted[i] = &v->texts[i];
    qsort(sorted, v->n, sizeof(*sorted), by_text);
    for (size_t i = v->n - 1; i > 0; i--) {
        if (strcmp(*sorted[i], *sorted[i - 1]) != 0)
            continue;
        free(*sorted[i]);
        *sorted[i] = NULL;
    }
    for (size_t i = 0; i < v->n; i++)
        if (v->texts[i])
            v->texts[kept++] = v->texts[i];
    v->n = kept;
    free(sorted);
}

int opt_values_read(const struct opt *opt, const char *text, struct opt_values *out, char *error,
                    size_t len)
{
    int err = read_all(opt, text, out, error, len);

    if (!err)
        keep_once(out);
    return err;
}

/* Edits (Damerau-Levenshtein, adjacent swaps count one); texts over 63 bytes: SIZE_MAX. */
static size_t opts_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), d[64][64];

    if (n > 63 || m > 63)
        return SIZE_MAX;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *opts_nearest(const char *text, const char *const *names)
{
    const char *best = NULL;
    size_t best_distance =
        strlen(text) < 4 ? 2 : strlen(text) / 3 + 1; /* farther than this is no hint */

    for (; *names; names++) {
        size_t distance = opts_distance(text, *names);
        if (distance < best_distance || (distance == best_distance && !best)) {
            best = *names;
            best_distance = distance;
        }
    }
    return best;
}

/* ---- Where options say something ---- */

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

bool opt_is_left(const struct opt *opt, const char *text, bool given)
{
    return opt->left_by && (*opt->left_by ? !strcmp(text, opt->left_by) : !given);
}

bool opt_holds(const struct opt *table, const struct opt_values *values, const size_t *pick,
               const char *when)
{
    return condition_holds(when, value_of, &(struct combination){table, values, pick});
}

bool opt_speaks(const struct opt *table, const struct opt_values *values, const size_t *pick,
                size_t i)
{
    return !table[i].scope || opt_holds(table, values, pick, table[i].scope->when);
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
    size_t *pick = xcalloc(n + 1, sizeof(*pick));
    bool yes = any_speaks(table, values, pick, i, 0);
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
                     "option '--%s' does not apply here: it is for %s; leave it out", opt->name,
                     opt->scope->what);
            return -EINVAL;
        }
        first += n;
    }
    return 0;
}

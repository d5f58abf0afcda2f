/* SPDX-License-Identifier: Apache-2.0 */
/* From lines of other programs to rows: see import.h. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"
#include "core/option.h"
#include "harness/import/import.h"

#define UNKNOWN "*"

/* One row while its parameters are found. */
struct row_making {
    struct import_file *file;
    const struct bench_info *bench;
    const struct foreign_line *line;
    const struct bench_imported *rule;
    const char *params[ROW_PARAMS_MAX]; /* NULL: not yet */
    const char *stated;                 /* by the user, not by the file: "register none"; "" */
    bool by_user[ROW_PARAMS_MAX];       /* that are stated so */
};

static bool same_name(const char *option, const char *column, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((column[i] == '_' ? '-' : column[i]) != (option[i] == '_' ? '-' : option[i]))
            return false;
    return !option[len];
}

static const struct opt *option_of(const struct bench_info *b, const char *column)
{
    for (const struct opt *o = b->options; o->name; o++)
        if ((o->flags & OPT_COLUMN) && same_name(o->name, column, strlen(column)))
            return o;
    return NULL;
}

static size_t column_of(const struct bench_info *b, const char *name, size_t len)
{
    size_t i = 0;

    while (i < b->n_columns && !same_name(b->columns[i], name, len))
        i++;
    return i;
}

static bool is_outcome(const struct bench_info *b, const char *column)
{
    for (const struct bench_column *c = b->rows.columns; c->name; c++)
        if (!strcmp(c->name, column))
            return c->flags & COLUMN_OUTCOME;
    return false;
}

/* NULL: not known. */
static const char *param_named(const void *arg, const char *name, size_t len)
{
    const struct row_making *m = arg;
    size_t i = column_of(m->bench, name, len);

    if (i == m->bench->n_columns) /* `metric`, `unit`, or an option that is no column */
        return len == 6 && !strncmp(name, "metric", 6) ? m->rule->metric : NULL;
    return m->params[i] && !strchr(m->params[i], '*') ? m->params[i] : NULL;
}

static const char *value_of(const struct row_making *m, size_t column, const char *word, size_t len)
{
    struct pool *pool = &m->file->output.pool;
    const struct opt *o = option_of(m->bench, m->bench->columns[column]);
    const char *text = pool_text(pool, "%.*s", (int)len, word);
    bool flag = o && o->type == OPT_FLAG;

    if (*text != '@')
        return text;
    text = foreign_value(m->line, text + 1);
    if (flag)
        return *text ? "yes" : "";
    return *text || is_outcome(m->bench, m->bench->columns[column]) ? text : UNKNOWN;
}

/* As rows have it. NULL with error: no case of the benchmark has that value, so that nothing would
 * ever be of one case with the row. */
static const char *known_value(struct row_making *m, size_t column, const char *value, char *error,
                               size_t len)
{
    const struct opt *o = option_of(m->bench, m->bench->columns[column]);
    struct opt_values read = {0};
    const char *text = value;

    if (o && o->left_by && !strcmp(value, ROW_LEFT))
        return value;
    if (!o || (o->type != OPT_CHOICE && o->type != OPT_U64 && o->type != OPT_SIZE))
        return value;
    if (opt_values_read(o, value, &read, error, len)) {
        text = NULL;
    } else if (read.n != 1) {
        snprintf(error, len, "--set %s: '%s' is not one value", m->bench->columns[column], value);
        text = NULL;
    } else {
        text = pool_text(&m->file->output.pool, "%s", read.texts[0]);
    }
    for (size_t i = 0; i < read.n; i++)
        free(read.texts[i]);
    free(read.texts);
    return text;
}

/* A row that tells the column itself keeps what it says: not all of a file are of one size. */
static int take_known(struct row_making *m, struct import_known *known, char *error, size_t len)
{
    struct pool *pool = &m->file->output.pool;

    for (; known->column; known++) {
        size_t i = column_of(m->bench, known->column, strlen(known->column));

        if (i == m->bench->n_columns)
            continue;
        const char *value = known_value(m, i, known->value, error, len);
        if (!value)
            return -EINVAL;
        known->used = true;
        if (strchr(m->params[i], '*')) {
            m->params[i] = value;
            m->by_user[i] = true;
            m->stated = pool_join(pool, m->stated, ", ",
                                  pool_text(pool, "%s %s", m->bench->columns[i], value));
            known->fits = true;
        } else if (strcmp(m->params[i], value) != 0 && *m->params[i] && !known->says) {
            known->says = m->params[i];
        }
    }
    return 0;
}

/* Where every row tells the column, it is not for --set to say. */
static int check_known(const struct import_file *f, const struct import_known *known, char *error,
                       size_t len)
{
    for (; known->column; known++) {
        if (known->fits || !known->says)
            continue;
        snprintf(error, len, "'%s': it says %s %s, and --set says %s", f->name, known->column,
                 known->says, known->value);
        return -EINVAL;
    }
    return 0;
}

/* ---- Figures ---- */

static double *place_of(struct row *row, const char *statistic)
{
    const struct {
        const char *name;
        double *at;
    } places[] = {{"p50", &row->summary.p50},   {"mean", &row->summary.mean},
                  {"min", &row->summary.min},   {"max", &row->summary.max},
                  {"p95", &row->summary.p95},   {"p99", &row->summary.p99},
                  {"p999", &row->summary.p999}, {"stddev", &row->summary.stddev}};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (!strcmp(places[i].name, statistic))
            return places[i].at;
    return NULL;
}

/* The median is the value where there is one; a mean says that it is one. */
static bool take_figures(struct row_making *m, struct row *row)
{
    const struct foreign_line *line = m->line;

    for (size_t i = 0; i < line->n_figures; i++) {
        const struct foreign_figure *f = &line->figures[i];
        double *at = place_of(row, f->statistic);

        if (strcmp(f->quantity, m->rule->quantity) != 0)
            continue;
        row->unit = f->unit;
        if (at)
            *at = f->value;
        else
            row->value = f->value;
    }
    if (isnan(row->value))
        row->value = row->summary.p50;
    if (isnan(row->value) && isfinite(row->summary.mean)) {
        row->value = row->summary.mean;
        row->value_is = "mean";
    }
    return isfinite(row->value);
}

/* What a program used is known, and not whether it was asked to, unless the user says so. */
static void fill_params(const struct row_making *m, struct row *row)
{
    const struct bench_info *b = m->bench;

    memcpy(row->params, m->params, sizeof(row->params));
    for (size_t i = 0; i < b->n_columns; i++) {
        size_t used = 0;

        size_t len = strlen(b->columns[i]); /* which one says what was used for that option? */

        while (used < b->n_columns && (strncmp(b->columns[used], b->columns[i], len) != 0 ||
                                       strcmp(b->columns[used] + len, ROW_USED) != 0))
            used++;
        if (used == b->n_columns || !*m->params[i])
            continue;
        bool known = strcmp(m->params[i], UNKNOWN) != 0 && strcmp(m->params[i], ROW_LEFT) != 0;

        row->params[used] = known ? m->params[i] : "";
        row->params[i] = m->by_user[i] ? m->params[i] : UNKNOWN;
    }
}

static bool fill_row(struct row_making *m, struct row *row, const char **names)
{
    const struct foreign_output *out = &m->file->output;
    bool has_value = take_figures(m, row);
    bool ok = !strcmp(m->line->status, "ok");

    row->param_names = names;
    row->n_params = m->bench->n_columns;
    fill_params(m, row);
    row->metric = m->rule->metric;
    row->status = m->line->status;
    row->reason = m->line->reason;
    row->origin = "imported";
    row->samples = m->line->samples;
    const char *named_by = foreign_value(m->line, "named_by");
    struct pool *pool = &m->file->output.pool;
    const char *library = foreign_value(m->line, "library");
    const char *device = foreign_value(m->line, "device");

    if (*named_by)
        named_by = pool_text(pool, "; %s", named_by);
    row->evidence = pool_text(pool, "by %s%s%s, file %s%s%s%s%s%s%s%s", out->format->program,
                              *out->version ? " " : "", out->version, m->file->name, named_by,
                              *library ? "; " : "", library, *device ? "; device " : "", device,
                              *m->stated ? "; not by the file, by --set: " : "", m->stated);
    row->differs = m->rule->differs;
    row->bench = m->bench->name;
    row->host = out->host;
    row->time_utc = out->started;
    for (const struct bench_metric *k = m->bench->rows.metrics; !row->unit && k->name; k++)
        if (!strcmp(k->name, row->metric) && k->units)
            row->unit = pool_text(pool, "%.*s", (int)strcspn(k->units, " "), k->units);
    row->unit = row->unit ? row->unit : "";
    if (!ok && strcmp(m->line->status, "wrong") != 0)
        row->value = NAN;
    const char *of = foreign_value(m->line, "quantity"); /* of what has no figure */
    return has_value || (!ok && (!*of || !strcmp(of, m->rule->quantity)));
}

/* ---- All lines of a file ---- */

static struct import_rows *rows_of(struct import_file *f, const struct bench_info *b)
{
    struct pool *pool = &f->output.pool;
    struct import_rows *r = f->benches;

    while (r < f->benches + f->n_benches && r->bench != b)
        r++;
    if (r < f->benches + f->n_benches)
        return r;
    size_t most = 0;
    for (const struct bench_imported *rule = b->rows.imported; rule->program; rule++)
        most++;
    *r = (struct import_rows){.bench = b, .key = ""};
    r->keys = pool_alloc(pool, most * f->output.n, sizeof(*r->keys));
    r->names = pool_alloc(pool, b->n_columns, sizeof(*r->names));
    r->rows = pool_alloc(pool, most * f->output.n, sizeof(*r->rows));
    for (size_t i = 0; i < b->n_columns; i++)
        r->names[i] = b->columns[i];
    f->n_benches++;
    return r;
}

/* Lines of a file that read alike cannot be told apart: whatever differs is not known here. */
static int refuse_alike(const struct import_file *f, const struct import_rows *r, char *error,
                        size_t len)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct row *row = &r->rows[i];
        size_t alike = 1;

        for (size_t k = i + 1; k < r->n; k++)
            alike += !strcmp(r->keys[i], r->keys[k]);
        if (alike == 1)
            continue;
        size_t at = column_of(r->bench, "size", 4);

        snprintf(error, len,
                 "'%s': %zu of its %zu results are of one case, %s of size %s: put each run into a "
                 "file of its own",
                 f->name, alike, r->n, row->metric,
                 at < r->bench->n_columns ? row->params[at] : UNKNOWN);
        return -EBADMSG;
    }
    return 0;
}

static int add_row(struct row_making *m, struct import_known *known, char *error, size_t len)
{
    struct import_rows *r = rows_of(m->file, m->bench);

    if (m->bench->n_columns > ROW_PARAMS_MAX) {
        snprintf(error, len, "benchmark '%s' has more than %d parameters", m->bench->name,
                 ROW_PARAMS_MAX);
        return -EBADMSG;
    }
    for (const char *at = m->rule->columns; *at;) {
        size_t n, name;

        at += strspn(at, " ");
        n = strcspn(at, " ");
        name = strcspn(at, "=");
        if (name < n) {
            size_t i = column_of(m->bench, at, name);

            if (i < m->bench->n_columns)
                m->params[i] = value_of(m, i, at + name + 1, n - name - 1);
        }
        at += n;
    }
    /* What no word names: known to be empty, or not known. */
    for (size_t i = 0; i < m->bench->n_columns; i++) {
        const struct opt *o = option_of(m->bench, m->bench->columns[i]);
        bool told = m->params[i] != NULL;
        bool applies = o && (!o->scope || condition_holds(o->scope->when, param_named, m));

        if (!told)
            m->params[i] = applies ? UNKNOWN : "";
        else if (!applies && o && !strcmp(m->params[i], UNKNOWN))
            m->params[i] = "";
    }
    int err = take_known(m, known, error, len);
    if (err)
        return err;
    row_init(&r->rows[r->n]);
    if (!fill_row(m, &r->rows[r->n], r->names))
        return 0;
    for (size_t i = 0; i < m->bench->n_columns; i++) {
        const char *name = m->bench->columns[i], *at = m->file->unknown;
        size_t n = strlen(name);

        while (at && *at && (strncmp(at, name, n) != 0 || (at[n] && at[n] != ',')))
            at = strstr(at, ", ") ? strstr(at, ", ") + 2 : "";
        if (strchr(m->params[i], '*') && !*at)
            m->file->unknown = pool_join(&m->file->output.pool, m->file->unknown, ", ", name);
    }
    const struct row *row = &r->rows[r->n];
    const char *key = pool_text(&m->file->output.pool, "%s %s", row->metric, row->unit);

    for (size_t i = 0; i < row->n_params; i++)
        key = pool_text(&m->file->output.pool, "%s|%s", key, row->params[i]);
    r->keys[r->n] = key;
    r->n++;
    m->file->n_rows++;
    return 0;
}

/* More reasons than there is room for are told as the last one. */
static void leave_out(struct import_file *f, const struct foreign_line *line, enum import_lack lack,
                      const char *why)
{
    size_t i = 0;

    while (i < f->n_left && (f->left[i].lack != lack || strcmp(f->left[i].why, why) != 0))
        i++;
    i = i == IMPORT_LEFT_MAX ? i - 1 : i;
    if (i == f->n_left)
        f->left[f->n_left++] = (struct import_left){
            lack, why,
            line->n_facts
                ? pool_text(&f->output.pool, "%s %s", line->facts[0].name, line->facts[0].value)
                : "a result that tells nothing of itself",
            0};
    f->left[i].n++;
}

/* ---- What a file without its head does not state: of what its results are ---- */

/* The value of NAME=VALUE among words; NULL: it is not there. */
static const char *word_value(const char *words, const char *name, size_t *n)
{
    size_t len = strlen(name);

    for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
        size_t word = strcspn(words, " ");

        if (word > len && !strncmp(words, name, len) && words[len] == '=') {
            *n = word - len - 1;
            return words + len + 1;
        }
        words += word;
    }
    return NULL;
}

/* The one name of results whose rows have this value in a column: "all_reduce" of op=allreduce. */
static const char *name_by_column(const struct import_file *f, const struct bench_list *benches,
                                  const char *name, const struct import_known *k)
{
    const char *found = "";

    for (size_t i = 0; i < benches->n; i++)
        for (const struct bench_imported *rule = benches->benches[i].rows.imported; rule->program;
             rule++) {
            size_t n = 0, len = 0;
            const char *value = word_value(rule->columns, k->column, &n);
            const char *of = word_value(rule->where ? rule->where : "", name, &len);

            if (strcmp(rule->program, f->output.format->program) != 0 || !value || !of ||
                n != strlen(k->value) || strncmp(value, k->value, n) != 0)
                continue;
            of = pool_text((struct pool *)&f->output.pool, "%.*s", (int)len, of);
            if (strchr(of, ',') || (*found && strcmp(found, of) != 0))
                return "";
            found = of;
        }
    return found;
}

/* Adds what --set says of the line's names; those that still are missing: "verb, test". */
static const char *take_names(struct import_file *f, struct foreign_line *line,
                              const struct bench_list *benches, struct import_known *known)
{
    struct pool *pool = &f->output.pool;
    const char *missing = "", *taken = "";
    bool alone = !strchr(f->output.format->of, ' ');

    for (const char *at = f->output.format->of; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        const char *name = pool_text(pool, "%.*s", (int)n, at), *value = "";

        at += n;
        if (*foreign_value(line, name))
            continue;
        for (struct import_known *k = known; k->column && !*value; k++) {
            bool itself = !strcmp(k->column, name);

            value = itself ? k->value : alone ? name_by_column(f, benches, name, k) : "";
            k->used = k->used || itself;
        }
        if (!*value || line->n_facts + 2 > FOREIGN_FACTS_MAX) {
            missing = pool_join(pool, missing, ", ", name);
            continue;
        }
        line->facts[line->n_facts++] = (struct foreign_fact){name, value};
        taken = pool_join(pool, taken, ", ", name);
    }
    if (*taken)
        line->facts[line->n_facts++] =
            (struct foreign_fact){"named_by", pool_text(pool, "%s by --set", taken)};
    return missing;
}

static int import_line(struct import_file *f, const struct foreign_line *stated,
                       const struct bench_list *benches, struct import_known *known, char *error,
                       size_t len)
{
    struct foreign_line *line = pool_alloc(&f->output.pool, 1, sizeof(*line));
    size_t before = f->n_rows;
    const char *refused = "", *missing;
    int err = 0;

    *line = *stated;
    missing = take_names(f, line, benches, known);
    for (size_t i = 0; !err && i < benches->n; i++)
        for (const struct bench_imported *rule = benches->benches[i].rows.imported;
             !err && rule->program; rule++) {
            struct row_making m = {
                .file = f, .bench = &benches->benches[i], .line = line, .rule = rule, .stated = ""};

            if (strcmp(rule->program, f->output.format->program) != 0 ||
                !foreign_holds(line, rule->where ? rule->where : ""))
                continue;
            if (rule->refused)
                refused = rule->refused;
            else
                err = add_row(&m, known, error, len);
        }
    if (!err && f->n_rows == before)
        leave_out(f, line,
                  *refused   ? LACK_PURPOSE
                  : *missing ? LACK_NAME
                             : LACK_CASE,
                  *refused ? refused : missing);
    return err;
}

int import_rows_make(struct import_file *f, const struct bench_list *benches,
                     struct import_known *known, char *error, size_t len)
{
    int err = 0;

    f->unknown = "";
    f->n_left = 0;
    for (struct import_known *k = known; k->column; k++) {
        k->fits = false;
        k->says = NULL;
    }
    f->benches = pool_alloc(&f->output.pool, benches->n, sizeof(*f->benches));
    for (size_t i = 0; !err && i < f->output.n; i++)
        err = import_line(f, &f->output.lines[i], benches, known, error, len);
    for (size_t i = 0; !err && i < f->n_benches; i++) {
        struct import_rows *r = &f->benches[i];
        size_t size = 1;

        for (size_t j = 0; j < r->n; j++)
            size += strlen(r->keys[j]) + 1;
        char *key = pool_alloc(&f->output.pool, size, 1), *end = key;
        for (size_t j = 0; j < r->n; j++)
            end += sprintf(end, "%s\n", r->keys[j]);
        r->key = key;
        err = refuse_alike(f, &f->benches[i], error, len);
    }
    return err ? err : check_known(f, known, error, len);
}

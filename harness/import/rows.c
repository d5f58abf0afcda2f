/* SPDX-License-Identifier: Apache-2.0 */
/* From lines of other programs to rows: see import.h. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"
#include "core/option.h"
#include "harness/import/import.h"

#define UNKNOWN "*"

/* One row while its parameters are found. */
struct making {
    struct import_file *file;
    const struct bench_info *bench;
    const struct foreign_line *line;
    const struct bench_imported *rule;
    const char *params[ROW_PARAMS_MAX]; /* NULL: not yet */
    const char *stated;                 /* by the user, not by the file: "register none"; "" */
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
    const struct making *m = arg;
    size_t i = column_of(m->bench, name, len);

    if (i == m->bench->n_columns) /* `metric`, `unit`, or an option that is no column */
        return len == 6 && !strncmp(name, "metric", 6) ? m->rule->metric : NULL;
    return m->params[i] && !strchr(m->params[i], '*') ? m->params[i] : NULL;
}

static const char *value_of(const struct making *m, size_t column, const char *word, size_t len)
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

static void take_words(struct making *m)
{
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
}

/* What no word names: known to be empty, or not known. */
static void take_others(struct making *m)
{
    for (size_t i = 0; i < m->bench->n_columns; i++) {
        const struct opt *o = option_of(m->bench, m->bench->columns[i]);
        bool told = m->params[i] != NULL;
        bool applies = o && (!o->scope || condition_holds(o->scope->when, param_named, m));

        if (!told)
            m->params[i] = applies ? UNKNOWN : "";
        else if (!applies && o && !strcmp(m->params[i], UNKNOWN))
            m->params[i] = "";
    }
}

/* As rows have it. NULL with error: no case of the benchmark has that value, so that nothing would
 * ever be of one case with the row. */
static const char *known_value(struct making *m, size_t column, const char *value, char *error,
                               size_t len)
{
    const struct opt *o = option_of(m->bench, m->bench->columns[column]);
    struct opt_values read = {0};
    const char *text = value;

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
static int take_known(struct making *m, struct import_known *known, char *error, size_t len)
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
            m->stated = pool_text(pool, "%s%s%s %s", m->stated, *m->stated ? ", " : "",
                                  m->bench->columns[i], value);
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
static bool take_figures(struct making *m, struct row *row)
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

static const char *evidence_of(const struct making *m)
{
    struct pool *pool = &m->file->output.pool;
    const struct foreign_output *out = &m->file->output;
    const char *library = foreign_value(m->line, "library");
    const char *device = foreign_value(m->line, "device");

    return pool_text(pool, "by %s%s%s, file %s%s%s%s%s%s%s", out->format->program,
                     *out->version ? " " : "", out->version, m->file->name, *library ? "; " : "",
                     library, *device ? "; device " : "", device,
                     *m->stated ? "; not by the file, by --set: " : "", m->stated);
}

static const char *metric_unit(const struct bench_info *b, const char *metric, struct pool *pool)
{
    for (const struct bench_metric *m = b->rows.metrics; m->name; m++)
        if (!strcmp(m->name, metric) && m->units)
            return pool_text(pool, "%.*s", (int)strcspn(m->units, " "), m->units);
    return "";
}

static bool fill_row(struct making *m, struct row *row, const char **names)
{
    const struct foreign_output *out = &m->file->output;
    bool has_value = take_figures(m, row);
    bool ok = !strcmp(m->line->status, "ok");

    row->param_names = names;
    row->n_params = m->bench->n_columns;
    memcpy(row->params, m->params, sizeof(row->params));
    row->metric = m->rule->metric;
    row->status = m->line->status;
    row->reason = m->line->reason;
    row->origin = "imported";
    row->samples = m->line->samples;
    row->evidence = evidence_of(m);
    row->differs = m->rule->differs;
    row->host = out->host;
    row->time_utc = out->started;
    if (!row->unit)
        row->unit = metric_unit(m->bench, row->metric, &m->file->output.pool);
    if (!ok && strcmp(m->line->status, "wrong") != 0)
        row->value = NAN;
    return has_value || !ok;
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
    r->names = pool_alloc(pool, b->n_columns + 1, sizeof(*r->names));
    r->rows = pool_alloc(pool, most * f->output.n + 1, sizeof(*r->rows));
    if (!r->names || !r->rows)
        return NULL;
    for (size_t i = 0; i < b->n_columns; i++)
        r->names[i] = b->columns[i];
    f->n_benches++;
    return r;
}

static const char *row_key(struct pool *pool, const struct row *row)
{
    const char *key = pool_text(pool, "%s %s", row->metric, row->unit);

    for (size_t i = 0; i < row->n_params; i++)
        key = pool_text(pool, "%s|%s", key, row->params[i]);
    return key;
}

static void note_unknown(struct import_file *f, const struct making *m)
{
    for (size_t i = 0; i < m->bench->n_columns; i++) {
        const char *name = m->bench->columns[i], *at = f->unknown;
        size_t n = strlen(name);

        while (at && *at && (strncmp(at, name, n) != 0 || (at[n] && at[n] != ',')))
            at = strstr(at, ", ") ? strstr(at, ", ") + 2 : "";
        if (strchr(m->params[i], '*') && !*at)
            f->unknown =
                pool_text(&f->output.pool, "%s%s%s", f->unknown, *f->unknown ? ", " : "", name);
    }
}

/* Two lines of a file that read alike cannot be told apart: whatever differs is not known here. */
static int refuse_alike(const struct import_file *f, const struct import_rows *r, char *error,
                        size_t len)
{
    struct pool *pool = (struct pool *)&f->output.pool;
    const char *last = row_key(pool, &r->rows[r->n - 1]);

    for (size_t i = 0; i + 1 < r->n; i++)
        if (!strcmp(row_key(pool, &r->rows[i]), last)) {
            snprintf(error, len, "'%s': two of its results are of one case: %.200s", f->name, last);
            return -EBADMSG;
        }
    return 0;
}

static int add_row(struct making *m, struct import_known *known, char *error, size_t len)
{
    struct import_rows *r = rows_of(m->file, m->bench);

    if (!r || m->bench->n_columns > ROW_PARAMS_MAX)
        return -ENOMEM;
    take_words(m);
    take_others(m);
    int err = take_known(m, known, error, len);
    if (err)
        return err;
    row_init(&r->rows[r->n]);
    if (!fill_row(m, &r->rows[r->n], r->names))
        return 0;
    note_unknown(m->file, m);
    r->key = pool_text(&m->file->output.pool, "%s\n%s", r->key,
                       row_key(&m->file->output.pool, &r->rows[r->n]));
    r->n++;
    m->file->n_rows++;
    return refuse_alike(m->file, r, error, len);
}

/* What a line is of, by its first facts. */
static const char *line_text(struct pool *pool, const struct foreign_line *line)
{
    return line->n_facts ? pool_text(pool, "%s %s", line->facts[0].name, line->facts[0].value)
                         : "a result that tells nothing of itself";
}

/* More reasons than there is room for are told as the last one. */
static void leave_out(struct import_file *f, const struct foreign_line *line, const char *why)
{
    size_t i = 0;

    while (i < f->n_left && strcmp(f->left[i].why, why) != 0)
        i++;
    i = i == IMPORT_LEFT_MAX ? i - 1 : i;
    if (i == f->n_left)
        f->left[f->n_left++] = (struct import_left){why, line_text(&f->output.pool, line), 0};
    f->left[i].n++;
}

static int import_line(struct import_file *f, const struct foreign_line *line,
                       const struct bench_list *benches, struct import_known *known, char *error,
                       size_t len)
{
    size_t before = f->n_rows;
    const char *refused = "";
    int err = 0;

    for (size_t i = 0; !err && i < benches->n; i++)
        for (const struct bench_imported *rule = benches->benches[i].rows.imported;
             !err && rule->program; rule++) {
            struct making m = {
                .file = f, .bench = &benches->benches[i], .line = line, .rule = rule, .stated = ""};

            if (strcmp(rule->program, f->output.format->program) != 0 ||
                !foreign_holds(line, rule->where ? rule->where : ""))
                continue;
            if (rule->refused)
                refused = rule->refused;
            else
                err = add_row(&m, known, error, len);
        }
    f->n_lines += f->n_rows > before;
    if (!err && f->n_rows == before)
        leave_out(f, line, refused);
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
    f->benches = pool_alloc(&f->output.pool, benches->n + 1, sizeof(*f->benches));
    if (!f->benches)
        return -ENOMEM;
    for (size_t i = 0; !err && i < f->output.n; i++)
        err = import_line(f, &f->output.lines[i], benches, known, error, len);
    err = err ? err : check_known(f, known, error, len);
    return err ? err : f->output.pool.failed ? -ENOMEM : 0;
}

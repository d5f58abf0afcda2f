/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to rows: see runner.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bench/runner.h"
#include "core/hw/gpu.h"
#include "core/hw/gpu_watch.h"
#include "core/levels.h"
#include "core/row.h"
#include "core/stats.h"
#include "core/text.h"
#include "core/units.h"

#define OUTCOME_WIDTH 12 /* of their columns in the table: holds a PCI address */
#define TEXT_FROM     6  /* columns that are narrower are of numbers */
#define PAIRS_FROM    3  /* so many places are shown as a matrix */

static void add_column(struct runner_columns *columns, const char *name, const char *end)
{
    char *text = columns->names[columns->n];

    snprintf(text, sizeof(columns->names[0]), "%s%s", name, end);
    for (char *dash = text; (dash = strchr(dash, '-')) != NULL;)
        *dash = '_';
    columns->list[columns->n++] = text;
}

static const struct opt *option_of(const struct bench *b, const char *column, bool *used)
{
    for (const struct opt *opt = b->options; opt && opt->name; opt++) {
        size_t i = 0;

        while (opt->name[i] && column[i] == (opt->name[i] == '-' ? '_' : opt->name[i]))
            i++;
        *used = opt->left_by && !strcmp(column + i, ROW_USED);
        if (!opt->name[i] && (*used || !column[i]))
            return opt;
    }
    return NULL;
}

void runner_columns(const struct bench *b, struct runner_columns *columns)
{
    const struct bench_column *own = bench_columns(b);
    bool used;

    *columns = (struct runner_columns){0};
    for (const struct opt *opt = b->options; opt && opt->name; opt++)
        if (opt->flags & OPT_COLUMN)
            add_column(columns, opt->name, "");
    columns->n_options = columns->n;
    for (size_t i = 0; own[i].name; i++) {
        const struct opt *opt = option_of(b, own[i].name, &used);
        if (opt && opt->flags & OPT_COLUMN)
            continue;
        columns->own[columns->n] = i;
        add_column(columns, own[i].name, "");
    }
    columns->n_own = columns->n - columns->n_options;
    for (size_t i = 0; i < columns->n_options; i++) {
        if (!option_of(b, columns->list[i], &used)->left_by)
            continue;
        columns->used[i] = columns->n;
        add_column(columns, columns->list[i], ROW_USED);
    }
}

struct bench_column runner_column(const struct bench *b, const char *name)
{
    struct bench_column column = {.name = name};
    bool used;
    const struct opt *opt = option_of(b, name, &used);

    for (const struct bench_column *own = bench_columns(b); own->name; own++)
        if (!strcmp(own->name, name))
            column = *own;
    if (opt && opt->type == OPT_SIZE)
        column.flags |= COLUMN_BYTES;
    if (opt && opt->flags & OPT_PLACE)
        column.flags |= COLUMN_PLACE;
    if (opt && used)
        column.flags |= COLUMN_OUTCOME | COLUMN_USED;
    return column;
}

/* Rows are for programs, not for people. */
static bool is_data(const struct runner *r)
{
    return r->common->csv || r->common->json;
}

/* People are told what was chosen in the column of the option itself. */
static void set_param(const struct runner *r, struct row *row, const char *name, const char *value)
{
    for (size_t i = 0; i < row->n_params; i++) {
        size_t used = is_data(r) ? r->columns.used[i] : 0;

        if (strcmp(row->param_names[i], name) != 0)
            continue;
        row->params[used ? used : i] = value;
        if (used && !*value && !strcmp(row->params[i], ROW_LEFT)) /* it says nothing here */
            row->params[i] = "";
        else if (used && *value && !*row->params[i])
            row->params[i] = ROW_LEFT;
    }
}

/* The row's parameter columns: this point's options and outcomes, then what the point and the
 * series set for themselves. */
static void fill_params(const struct runner *r, const struct point *pt, const size_t *pick,
                        const struct series *s, struct row *row)
{
    size_t n = 0;

    row->param_names = r->columns.list;
    row->n_params = r->columns.n;
    for (size_t i = 0; i < r->n_own; i++) {
        const struct opt *opt = &r->b->options[i];
        const struct opt_values *v = &r->o->values[r->first_own + i];
        const char *text = v->n ? v->texts[pick[i]] : "";
        if (!(opt->flags & OPT_COLUMN))
            continue;
        size_t used = is_data(r) ? r->columns.used[n] : 0;
        row->param_counts[n] = opt->type == OPT_U64 || opt->type == OPT_SIZE;
        row->params[n] = text;
        if (used) {
            row->param_counts[used] = row->param_counts[n];
            row->params[used] = strcmp(text, opt->left_by) ? text : "";
            row->params[n] = opt_is_left(opt, text, v->given) ? ROW_LEFT : text;
        }
        n++;
    }
    for (; n < r->columns.n_options + r->columns.n_own; n++) {
        size_t own = r->columns.own[n];

        row->param_counts[n] = bench_columns(r->b)[own].flags & COLUMN_BYTES;
        row->params[n] = pt->columns[own];
    }
    for (size_t k = 0; k < BENCH_OPTIONS_SET_MAX && pt->options[k].name[0]; k++)
        set_param(r, row, pt->options[k].name, pt->options[k].value);
    for (size_t k = 0; s && k < SERIES_SET_MAX && s->set[k].column; k++)
        set_param(r, row, s->set[k].column, s->set[k].value);
}

static void add_label(char *label, size_t len, const char *name, const char *value)
{
    size_t at = strlen(label);

    snprintf(label + at, len - at, "%s%s%s%s", at ? " " : "", name, *name ? " " : "", value);
}

/* "triad 64K threads 2": what was given, what the launch sweeps over, and what makes its cases
 * besides. */
static void make_label(const struct runner *r, const struct row *row, char *label, size_t len)
{
    char size[24];
    uint64_t number;
    size_t n = 0;

    *label = 0;
    for (size_t i = 0; i < r->n_own; i++) {
        const struct opt *opt = &r->b->options[i];
        const struct opt_values *v = &r->o->values[r->first_own + i];
        if (!(opt->flags & OPT_COLUMN))
            continue;
        const char *name = r->columns.list[n], *value = row->params[n++];
        if ((!v->given && v->n < 2) || !*value)
            continue;
        if (opt->type == OPT_SIZE && !units_parse_u64(value, &number))
            value = units_format_size(number, size, sizeof(size));
        bool plain = (opt->type == OPT_SIZE && !strcmp(name, "size")) || opt->type == OPT_CHOICE;
        add_label(label, len, plain ? "" : name, value);
    }
    for (; n < r->columns.n_options + r->columns.n_own; n++)
        if (*row->params[n] && !(bench_columns(r->b)[r->columns.own[n]].flags & COLUMN_OUTCOME))
            add_label(label, len, r->columns.list[n], row->params[n]);
}

static void print_row(struct runner *r, struct row *row)
{
    char label[256];

    row->bench = r->b->name;
    row->label = label;
    make_label(r, row, label, sizeof(label));
    if (r->common->csv)
        row_print_csv(r->out, row);
    else if (r->common->json)
        row_print_json(r->out, row);
    else
        row_table_add(&r->table, row);
    fflush(r->out);
    r->result->rows++;
    if (row->status && !strcmp(row->status, "wrong"))
        r->result->wrong++;
    if (row->status && !strcmp(row->status, "failed"))
        r->result->failed++;
}

unsigned runner_held(const struct point *pt, const struct samples *samples, uint64_t i)
{
    if (!pt->watch)
        return 0;
    return gpu_watch_held(pt->watch, i ? samples->end_ns[i - 1] : samples->begin_ns,
                          samples->end_ns[i]);
}

/* Every sample of one series, converted to the row's unit: position of the row in this launch,
 * value, where it comes from and what disturbed it. Written before its row is: who has the row has
 * them. */
static void keep_samples(struct runner *r, const struct point *pt, const struct samples *samples,
                         const double *values)
{
    char reasons[96];

    if (!r->samples_out)
        return;
    for (uint64_t i = 0; i < samples->n; i++) {
        fprintf(r->samples_out, "%llu,%llu,%.9g,%s,", (unsigned long long)r->repeat,
                (unsigned long long)r->launch_rows, values[i], pt->origin);
        csv_print(r->samples_out,
                  gpu_watch_reasons(runner_held(pt, samples, i), reasons, sizeof(reasons)));
        fputc('\n', r->samples_out);
    }
    fflush(r->samples_out);
}

/* What the limit is made of. Of one ceiling alone, what raised the limit raised that, too. */
static void fill_parts(const struct series *s, struct row *row)
{
    const struct limit_parts *parts = &s->parts;

    if (s->limit_before > 0 && s->limit_after > 0) {
        row->limit_before = s->limit_before;
        row->limit_after = s->limit_after;
    }
    if (!limit_is_ours(s->limit_kind) || (!parts->place[0][0] && !parts->place[1][0]))
        return;
    row->ceiling_share = parts->share;
    row->ceiling_fill = parts->fill;
    if (parts->share > 0) {
        row->ceiling_place = parts->place[0];
        row->ceiling = parts->share < 1 ? parts->rate[0] : fmax(parts->rate[0], row->limit);
    }
    if (parts->share < 1) {
        row->ceiling2_place = parts->place[1];
        row->ceiling2 = parts->share > 0 ? parts->rate[1] : fmax(parts->rate[1], row->limit);
    }
}

static void fill_limit(const struct series *s, struct row *row)
{
    bool rate = units_find(s->unit)->higher_is_better;

    row->limit_source = s->limit_source; /* or why there is none */
    if (isinf(s->limit))
        row->limit_source = "not known: its measurement gave no finite number";
    if (!isfinite(s->limit) || !(s->limit > 0))
        return;
    row->limit = s->limit;
    row->limit_kind = limit_kinds[s->limit_kind];
    row->limit_link = s->limit_link;
    row->limit_scope = s->limit_scope;
    if (rate && limit_is_ours(s->limit_kind)) { /* what was measured can be measured better */
        if (row->value > LIMIT_EXCEEDED_PERCENT / 100 * row->limit)
            row->limit_raised_from = row->limit;
        row->limit = fmax(row->limit, row->value);
    }
    row->percent_of_limit = 100 * row->value / row->limit;
    fill_parts(s, row);
}

static int fill_values(struct runner *r, struct point *pt, const struct samples *samples,
                       size_t index, struct row *row)
{
    const struct series *s = &pt->series[index];
    const struct unit *unit = units_find(s->unit);
    double *values = xcalloc(samples->n, sizeof(*values));

    for (uint64_t i = 0; i < samples->n; i++)
        values[i] = units_value(unit, s->quantity, samples->inner, (uint64_t)samples->ns[index][i]);
    int err = stats_summarise(values, samples->n, r->common->confidence, &row->summary);
    if (!err) {
        struct levels levels;
        row->value = row->summary.p50;
        if (!strcmp(pt->origin, "measured"))
            row->sustained = unit->rate ? row->value / samples_stretch(samples)
                                        : row->value * samples_stretch(samples);
        if (!levels_of_samples(values, samples->n, &levels) && levels.two)
            row->levels = levels;
        keep_samples(r, pt, samples, values);
        fill_limit(s, row);
    }
    free(values);
    return err;
}

static const char *status_of(const struct outcome *oc, int err, bool narrow)
{
    if (err == -EOPNOTSUPP || err == -ENODEV || err == -ELIBACC || err == -ENOTRECOVERABLE)
        return "skipped";
    if (oc->check_error == -EBADMSG)
        return "wrong";
    if (err || oc->check_error)
        return "failed";
    return narrow ? "ok" : "noisy";
}

static const char *noise_of(const struct outcome *oc, const struct row *row, size_t index)
{
    const struct samples *s = &oc->samples;
    char sides[48];

    if (!*units_format_interval(row->summary.ci_low, row->summary.ci_high, row->value, sides,
                                sizeof(sides)))
        return oc->samples.n < STATS_INTERVAL_FROM ? ROW_NOISE_FEW : ROW_NOISE_ALIKE;
    return s->doubt[index] == SAMPLER_DEPENDENT     ? ROW_NOISE_DEPENDENT
           : s->doubt[index] == SAMPLER_FEW_CHANGES ? ROW_NOISE_FEW_CHANGES
                                                    : ROW_NOISE_WIDE;
}

void runner_emit(struct runner *r, struct point *pt, const size_t *pick, struct outcome *oc,
                 size_t index)
{
    const struct series *s = index < pt->n_series ? &pt->series[index] : NULL;
    struct row row;
    char carriers_text[CARRIERS_BYTES];
    bool narrow = oc->samples.doubt[index] == SAMPLER_SURE;
    bool quiet = narrow && !pt->noisy;
    int err = oc->err; /* one series' error is not the next one's */

    row_init(&row);
    fill_params(r, pt, pick, s, &row);
    row.origin = pt->origin;
    row.repeat = r->repeat;
    row.host = r->host;
    row.time_utc = oc->time_utc;
    if (s) {
        row.metric = s->metric;
        row.unit = s->unit;
    }
    if (!err && !oc->check_error && pt->untimed) {
        pt->reason[0] = 0; /* of its times */
        err = point_reason(pt, -ENOTRECOVERABLE, "not timed, because of " GPU_NO_HOLD);
    }
    if (!err && s) {
        err = fill_values(r, pt, &oc->samples, index, &row);
        if (err)
            point_reason(pt, err, "no summary of the samples: %s", strerror(-err));
    }
    if (!err) {
        row.samples = oc->samples.n;
        row.discarded = oc->samples.discarded;
        row.inner_repeat = oc->samples.inner;
        row.stop = sampler_stop_name(oc->samples.stop);
        row.ledger = oc->ledger;
        row.gpu = oc->gpu;
        row.gpu_throttle = oc->gpu.throttle;
        row.gpu_clocks_set = oc->gpu.clocks_set;
        row.width_wanted = r->common->width;
        row.disturbed = oc->disturbed;
        if (!narrow) {
            row.noise = noise_of(oc, &row, index); /* how wide stands in -ci and +ci */
            if (oc->samples.doubt[index] == SAMPLER_FEW_CHANGES)
                row.level_changes = (double)oc->samples.changes[index];
        }
    }
    row.status = status_of(oc, err, quiet);
    row.code = row_code(oc->check_error == -EBADMSG || !err ? oc->check_error : err);
    row.reason = pt->reason;
    row.evidence = pt->evidence;
    row.carrier = carriers_print(pt->carriers, carriers_text);
    row.carrier_device = pt->carrier_device;
    if (pt->carrier_gid)
        row.carrier_gid = pt->carrier_gid - 1;
    print_row(r, &row);
    r->launch_rows++;
}

/* It has no samples of its own, so no warm-up, no stop, nothing of what went on beside them. */
static void print_figure(struct runner *r, struct point *pt, const size_t *pick,
                         const struct outcome *oc, const struct figure *f,
                         const struct summary *summary)
{
    struct row row;

    if (pt->untimed)
        return;
    row_init(&row);
    fill_params(r, pt, pick, NULL, &row);
    for (size_t i = 0; i < FIGURE_SET_MAX && f->set[i].column[0]; i++)
        set_param(r, &row, f->set[i].column, f->set[i].value);
    row.metric = f->metric;
    row.unit = f->unit;
    row.summary = *summary;
    row.value = summary->p50;
    row.samples = f->n;
    if (f->gpu) {
        row.gpu = *f->gpu;
        row.gpu_throttle = f->gpu->throttle;
        row.gpu_clocks_set = f->gpu->clocks_set;
    }
    row.origin = pt->origin;
    row.repeat = r->repeat;
    row.host = r->host;
    row.time_utc = oc->time_utc;
    row.status = status_of(oc, 0, !f->remark[0]);
    row.code = row_code(oc->check_error);
    row.reason = oc->check_error ? pt->reason : f->remark[0] ? f->remark : f->note;
    print_row(r, &row);
    r->launch_rows++;
}

/* For people all of them are one text: "cpu_per_gb own threads 0.21, peer threads 0.18 s/GB; cwnd
 * ...". */
static void tell_figure(FILE *text, const struct figure *before, const struct figure *f,
                        const struct figure *after, double value)
{
    if (!before || strcmp(before->metric, f->metric) != 0)
        fprintf(text, "%s%s", before ? "; " : "", f->metric);
    else
        fputs(",", text);
    for (size_t i = 0; i < FIGURE_SET_MAX && f->set[i].column[0]; i++)
        if (f->set[i].value[0])
            fprintf(text, " %s", f->set[i].value);
    fprintf(text, " %.4g", value);
    if (!after || strcmp(after->metric, f->metric) != 0)
        fprintf(text, " %s", f->unit);
    if (f->remark[0])
        fprintf(text, " (%s)", f->remark);
}

static int by_metric(const struct figure *figures, const char *metric, const struct figure **list,
                     int n)
{
    for (const struct figure *f = figures; f; f = f->next)
        if (f->n && !strcmp(f->metric, metric))
            list[n++] = f;
    return n;
}

/* Those of one metric together, in the order of their first ones. */
static int sort_figures(const struct figure *figures, const struct figure **list)
{
    int n = 0;

    for (const struct figure *f = figures; f; f = f->next) {
        bool known = !f->n;
        for (int i = 0; i < n && !known; i++)
            known = !strcmp(list[i]->metric, f->metric);
        if (!known)
            n = by_metric(figures, f->metric, list, n);
    }
    return n;
}

static void tell_figures(struct runner *r, const struct figure *figures, size_t count)
{
    const struct figure **list = xcalloc(count, sizeof(*list));
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct summary summary;

    row_table_point(r->out, &r->table); /* which stands above them */
    for (int i = 0, n = out ? sort_figures(figures, list) : 0; i < n; i++)
        if (!stats_summarise(list[i]->values, list[i]->n, r->common->confidence, &summary))
            tell_figure(out, i ? list[i - 1] : NULL, list[i], i + 1 < n ? list[i + 1] : NULL,
                        summary.p50);
    if (out && !fclose(out))
        row_table_figures(r->out, &r->table, text);
    free(text);
    free(list);
}

void runner_emit_figures(struct runner *r, struct point *pt, const size_t *pick,
                         const struct outcome *oc)
{
    struct summary summary;
    size_t n = 0;

    for (const struct figure *f = pt->figures; f; f = f->next, n++)
        if (is_data(r) && f->n &&
            !stats_summarise(f->values, f->n, r->common->confidence, &summary))
            print_figure(r, pt, pick, oc, f, &summary);
    if (n && r->common->verbose && !is_data(r))
        tell_figures(r, pt->figures, n);
}

/* Is it one of these words? */
static bool is_listed(const char *words, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = words; at && (at = strstr(at, name)); at += len)
        if ((at == words || at[-1] == ' ') && (!at[len] || at[len] == ' '))
            return true;
    return false;
}

static enum row_place place_of(const struct bench_rows *rows, const char *name)
{
    return is_listed(rows->shown, name)     ? ROW_COLUMN
           : is_listed(rows->context, name) ? ROW_CONTEXT
                                            : ROW_DETAIL;
}

/* Pairs of at least three places are a matrix. */
static void lay_out_pairs(struct runner *r, const struct bench_rows *rows)
{
    const struct opt_values *from = opts_values(r->o, rows->from),
                            *to = opts_values(r->o, rows->to);
    size_t places = from->n;

    for (size_t i = 0; i < to->n; i++) {
        bool known = false;
        for (size_t k = 0; k < from->n && !known; k++)
            known = !strcmp(to->texts[i], from->texts[k]);
        places += !known;
    }
    if (places < PAIRS_FROM || from->n < 2 || to->n < 2 || r->common->verbose)
        return;
    r->table.from = rows->from;
    r->table.to = rows->to;
}

/* A column for each option that takes several values, as wide as they are, and for what the
 * benchmark says; above them what was given, and what it says besides. */
void runner_lay_out_table(struct runner *r)
{
    const struct bench_rows none = {0}, *rows = r->b->rows ? r->b->rows : &none;
    struct row_table *t = &r->table;
    size_t column = 0;

    t->verbose = r->common->verbose;
    t->average = rows->average;
    if (rows->from)
        lay_out_pairs(r, rows);
    for (size_t i = 0; i < r->n_own; i++) {
        const struct opt *opt = &r->b->options[i];
        const struct opt_values *v = &r->o->values[r->first_own + i];
        if (!(opt->flags & OPT_COLUMN))
            continue;
        enum row_place place = place_of(rows, r->columns.list[column]);
        t->place[column] = v->n > 1                          ? ROW_COLUMN
                           : place == ROW_DETAIL && v->given ? ROW_CONTEXT
                                                             : place;
        t->bytes[column] = opt->type == OPT_SIZE;
        t->right[column] = opt->type == OPT_SIZE || opt->type == OPT_U64;
        for (size_t k = 0; k < v->n; k++)
            row_table_widen(t, column, v->texts[k]);
        column++;
    }
    for (; column < r->columns.n; column++) {
        bool own = column < r->columns.n_options + r->columns.n_own;
        const struct bench_column *c = own ? &bench_columns(r->b)[r->columns.own[column]] : NULL;
        t->place[column] = place_of(rows, r->columns.list[column]);
        t->outcome[column] = !own || c->flags & COLUMN_OUTCOME;
        t->bytes[column] = own && c->flags & COLUMN_BYTES;
        t->right[column] = own && c->width > 0 && c->width < TEXT_FROM;
        t->width[column] = own && c->width > 0 ? c->width : OUTCOME_WIDTH;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows for people: see row.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/row.h"
#include "core/text.h"
#include "core/units.h"

#define INDENT         4    /* of what stands under a line */
#define PARAM_COLUMNS  9    /* of a parameter whose values are not known before */
#define WORD_COLUMNS   8    /* kept for the word at the end: "skipped", and a blank */
#define NUMBER_COLUMNS 5    /* of three digits and a point, and a prefix more */
#define ORIGIN_COLUMNS 18   /* the same with an origin: "noisy, simulated" */
#define CI_COLUMNS     8    /* "95 % CI" */
#define LIMIT_COLUMNS  9    /* "ref 100 %" */
#define WRONG_COLUMNS  6    /* "wrong" */
#define CELL_COLUMNS   6    /* of a matrix: "27.6!", and a blank */
#define TAIL_SAMPLES   1000 /* of which p99 and p99.9 say something */
#define SIDE_MAX       100  /* %: beyond, the figure says only that the interval is wide */
#define SUSTAINED_LOW  0.9  /* of the median: below, the median alone misleads */
#define OUTLIER        0.9  /* of the median of the like pairs */
#define ACROSS_MAX     256  /* places of a matrix */
#define NAMED_MOST     3    /* pairs of a kind that the last line names */

static const char *param_text(const struct row_table *t, size_t i, const char *value, char *text,
                              size_t len)
{
    uint64_t bytes;

    if (!value || !t->bytes[i] || units_parse_size(value, &bytes))
        return value ? value : "";
    return units_format_bytes(bytes, text, len);
}

void row_table_widen(struct row_table *t, size_t column, const char *value)
{
    char text[40];
    int width = (int)strlen(param_text(t, column, value, text, sizeof(text)));

    if (width > t->width[column])
        t->width[column] = width;
}

static int param_width(const struct row_table *t, const struct row *row, size_t i)
{
    int name = (int)strlen(row->param_names[i]);
    int wanted = t->width[i] ? t->width[i] : PARAM_COLUMNS;

    return name > wanted ? name : wanted;
}

static bool same_param(const struct row *a, const struct row *b, size_t i)
{
    const char *x = a->params[i] ? a->params[i] : "", *y = b->params[i] ? b->params[i] : "";

    return x == y || !strcmp(x, y);
}

static bool same_metric(const struct row *a, const struct row *b)
{
    return a->metric && b->metric ? !strcmp(a->metric, b->metric) : a->metric == b->metric;
}

/* FNV-1a without digits, so that a sentence with other numbers is the same one; 0: no text. */
static uint64_t hash_of(const char *text, bool digits)
{
    uint64_t hash = 0xcbf29ce484222325u;

    if (!text || !*text)
        return 0;
    for (; *text; text++)
        if (digits || !strchr("0123456789.", *text))
            hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* A line that begins with '#', and those that it takes. */
static void print_remark(FILE *out, const struct row_table *t, const char *text)
{
    size_t next, n = wrap_take(text, t->line - 2, &next);

    fprintf(out, "# %.*s\n", (int)n, text);
    for (text += next; *text; text += next) {
        n = wrap_take(text, t->line - INDENT, &next);
        fprintf(out, "#   %.*s\n", (int)n, text);
    }
}

static void add_param(const struct row_table *t, const struct row *row, size_t i, char *text,
                      size_t len)
{
    size_t at = strlen(text);
    char size[40];

    if (row->params[i] && row->params[i][0])
        snprintf(text + at, len - at, "%s%s %s", at ? ", " : "", row->param_names[i],
                 param_text(t, i, row->params[i], size, sizeof(size)));
}

/* "name value, name value" of the parameters of this place; `news`: only where one of them has
 * another value than when it was told. */
static void list_params(struct row_table *t, const struct row *row, enum row_place place, bool news,
                        char *text, size_t len)
{
    text[0] = 0;
    for (size_t i = 0; i < row->n_params; i++) {
        uint64_t hash = hash_of(row->params[i], true);

        if (t->place[i] != place || (news && hash == t->told[i]))
            continue;
        add_param(t, row, i, text, len);
        t->told[i] = news ? hash : t->told[i];
    }
}

/* ---- One line ---- */

static const char *side_text(const struct row *row, char *text, size_t len)
{
    double low = row->value - row->summary.ci_low, high = row->summary.ci_high - row->value;
    double percent = 100 * fmax(low, high) / fabs(row->value);

    text[0] = 0;
    if (isnan(low) || isnan(high) || row->value == 0)
        return text;
    if (percent > SIDE_MAX)
        snprintf(text, len, ">%d %%", SIDE_MAX);
    else
        snprintf(text, len, percent < 9.95 ? "%.1f %%" : "%.0f %%", percent);
    return text;
}

static const char *limit_text(const struct row *row, char *text, size_t len)
{
    bool reference = limit_kind_of(row->limit_kind) == LIMIT_REFERENCE;

    text[0] = 0;
    if (row && !isnan(row->percent_of_limit))
        snprintf(text, len, reference ? "ref %.0f %%" : "%.0f %%", row->percent_of_limit);
    return text;
}

static bool has_tail(const struct row *row)
{
    const char *unit = row->unit ? row->unit : "";

    return row->inner_repeat == 1 && row->samples >= TAIL_SAMPLES &&
           (!strcmp(unit, "ns") || !strcmp(unit, "us") || !strcmp(unit, "ms"));
}

/* Of these rows the one that has a share of a limit; else the first. */
static const struct row *limited(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(rows[i].percent_of_limit))
            return &rows[i];
    return rows;
}

static int value_width(const struct row_table *t, const struct row *row, bool first)
{
    int name = (int)strlen(row->metric);
    int value = t->average && !first ? NUMBER_COLUMNS : NUMBER_COLUMNS + 1 + (int)strlen(row->unit);

    return name > value ? name : value;
}

/* Columns of a line up to its word. */
static size_t line_columns(const struct row_table *t, const struct row *row)
{
    size_t columns = 1;

    for (size_t i = 0; i < row->n_params; i++)
        if (t->place[i] == ROW_COLUMN)
            columns += (size_t)param_width(t, row, i) + 1;
    for (size_t i = 0; i < t->n_metrics; i++)
        columns += t->metric_width[i] ? (size_t)t->metric_width[i] + 2 : 0;
    return columns + (t->p99 ? (size_t)t->metric_width[0] + 2 : 0) + (t->ci ? CI_COLUMNS + 2 : 0) +
           (t->limit ? LIMIT_COLUMNS + 2 : 0) + (t->average ? WRONG_COLUMNS + 1 : 0);
}

static bool is_measured(const struct row *row)
{
    return !row->origin || !strcmp(row->origin, "measured");
}

/* What the line has no room for, the least important first: the interval, the tail, all metrics but
 * the first and the last, then parameters from the last one back, which are told under the line. */
static void leave_columns(struct row_table *t, const struct row *row)
{
    size_t words = is_measured(row) ? WORD_COLUMNS : ORIGIN_COLUMNS;
    size_t room = t->line > words ? t->line - words : 0;

    if (line_columns(t, row) > room)
        t->ci = false;
    if (line_columns(t, row) > room)
        t->p99 = false;
    for (size_t i = 1; i + 1 < t->n_metrics && line_columns(t, row) > room; i++)
        t->metric_width[i] = 0;
    for (size_t i = row->n_params; i-- && line_columns(t, row) > room;)
        if (t->place[i] == ROW_COLUMN)
            t->place[i] = ROW_UNDER;
}

static void print_header(FILE *out, const struct row_table *t, const struct row *rows)
{
    fputc('#', out);

    for (size_t i = 0; i < rows->n_params; i++)
        if (t->place[i] == ROW_COLUMN)
            fprintf(out, t->right[i] ? " %*s" : " %-*s", param_width(t, rows, i),
                    rows->param_names[i]);
    for (size_t i = 0; i < t->n_metrics; i++) {
        if (t->metric_width[i])
            fprintf(out, "  %*s", t->metric_width[i], rows[i].metric);
        if (!i && t->p99)
            fprintf(out, "  %*s", t->metric_width[0], "p99");
    }
    if (t->ci)
        fprintf(out, "  %*s", CI_COLUMNS, "95 % CI");
    if (t->limit)
        fprintf(out, "  %*s", LIMIT_COLUMNS, "of limit");
    if (t->average)
        fprintf(out, " %*s", WRONG_COLUMNS, "wrong");
    fputc('\n', out);
}

/* What numbers without a unit are to be read with: it, and a limit that the hardware states. */
static void add_measures(const struct row_table *t, const struct row *row, char *text, size_t len)
{
    size_t at = strlen(text);
    char limit[64];

    if (!t->average)
        return;
    if (row->limit > 0 && !limit_is_ours(limit_kind_of(row->limit_kind)))
        at += (size_t)snprintf(text + at, len - at, "%slimit %s", at ? "; " : "",
                               units_format_value(row->limit, row->unit, limit, sizeof(limit)));
    if (row->metric && at < len)
        snprintf(text + at, len - at, "%srates in %s", at ? "; " : "", row->unit);
}

/* A header for lines of these rows, where the last one does not serve them. */
static void begin_section(FILE *out, struct row_table *t, const struct row *rows, size_t n)
{
    char names[256] = "", context[1024];
    bool limit = !isnan(limited(rows, n)->percent_of_limit);

    for (size_t i = 0; i < n && rows[i].metric; i++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof(names) - at, "%s ", rows[i].metric);
    }
    bool serves = t->begun && !t->stale && (!rows->metric || !strcmp(names, t->metrics)) &&
                  (!limit || t->has_limit);
    list_params(t, rows, ROW_CONTEXT, true, context, sizeof(context));
    if (!serves)
        add_measures(t, &rows[n - 1], context, sizeof(context));
    if (context[0] || !serves) {
        if (t->begun)
            fputc('\n', out);
        if (context[0])
            print_remark(out, t, context);
    }
    if (serves)
        return;
    t->begun = true;
    t->stale = false;
    snprintf(t->metrics, sizeof(t->metrics), "%s", names);
    t->n_metrics = rows->metric ? n < ROW_METRICS_MAX ? n : ROW_METRICS_MAX : 0;
    for (size_t i = 0; i < t->n_metrics; i++)
        t->metric_width[i] = value_width(t, &rows[i], !i);
    t->ci = rows->metric != NULL;
    t->p99 = !t->average && n == 1 && has_tail(rows);
    t->limit = t->has_limit = limit;
    leave_columns(t, rows);
    print_header(out, t, rows);
}

static size_t print_cells(FILE *out, const struct row_table *t, const struct row *rows, size_t n)
{
    char text[64];
    int at = fprintf(out, " ");

    for (size_t i = 0; i < rows->n_params; i++)
        if (t->place[i] == ROW_COLUMN)
            at += fprintf(out, t->right[i] ? " %*s" : " %-*s", param_width(t, rows, i),
                          param_text(t, i, rows->params[i], text, sizeof(text)));
    for (size_t i = 0; i < t->n_metrics; i++) {
        const struct row *row = i < n ? &rows[i] : NULL;

        text[0] = 0;
        if (row && !isnan(row->value) && t->average && i)
            units_format_number(row->value, text, sizeof(text));
        else if (row && !isnan(row->value))
            units_format_value(row->value, row->unit, text, sizeof(text));
        if (t->metric_width[i])
            at += fprintf(out, "  %*s", t->metric_width[i], text);
        if (!i && t->p99)
            at += fprintf(out, "  %*s", t->metric_width[0],
                          row && has_tail(row)
                              ? units_format_value(row->summary.p99, row->unit, text, sizeof(text))
                              : "");
    }
    if (t->ci)
        at += fprintf(out, "  %*s", CI_COLUMNS, side_text(rows, text, sizeof(text)));
    if (t->limit)
        at +=
            fprintf(out, "  %*s", LIMIT_COLUMNS, limit_text(limited(rows, n), text, sizeof(text)));
    if (t->average)
        at += fprintf(out, " %*s", WRONG_COLUMNS,
                      !strcmp(rows->status, "wrong") ? "yes"
                      : isnan(rows->value)           ? ""
                                                     : "0");
    return (size_t)at;
}

static bool is_status(const struct row *row, const char *status)
{
    return row->status && !strcmp(row->status, status);
}

static const char *worst_status(const struct row *rows, size_t n)
{
    static const char *const order[] = {"wrong", "failed", "skipped", "noisy"};

    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
        for (size_t i = 0; i < n; i++)
            if (is_status(&rows[i], order[k]))
                return order[k];
    return "ok";
}

/* What keeps a number from misleading: each as a word behind it. */
static size_t words_of(struct row_table *t, const struct row *rows, size_t n, char words[5][32])
{
    const char *status = worst_status(rows, n);
    bool limit = false, two = false;
    char says[ROW_SAYS_BYTES];
    double sustained = 1;
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        const struct row *row = &rows[i];
        limit |= ceiling_change(row->limit_before, row->limit_after) > CEILING_UNSTEADY ||
                 *row_says(row, ROW_SAYS_ABOVE, says);
        two |= row->levels.two;
        sustained = fmin(sustained, row_sustained_share(row->sustained, row->value, row->unit));
    }
    t->bimodal += two;
    t->unsustained += sustained < SUSTAINED_LOW;
    if (strcmp(status, "ok") != 0)
        snprintf(words[k++], 32, "%s", status);
    if (!is_measured(rows))
        snprintf(words[k++], 32, "%s", rows->origin);
    if (sustained < SUSTAINED_LOW)
        snprintf(words[k++], 32, "sustained %.0f %%", 100 * sustained);
    if (limit)
        snprintf(words[k++], 32, "limit?");
    if (two)
        snprintf(words[k++], 32, "bimodal");
    return k;
}

static void print_words(FILE *out, struct row_table *t, const struct row *rows, size_t n, size_t at)
{
    char words[5][32];
    size_t k = words_of(t, rows, n, words);

    for (size_t i = 0; i < k; i++) {
        size_t length = strlen(words[i]) + 2;
        if (i && at + length > t->line)
            continue;
        at += length;
        fprintf(out, "%s%s", i ? ", " : "  ", words[i]);
    }
    fputc('\n', out);
}

/* All that -v says of a row; `again`: the metric before has said what holds for all of them. */
static void print_details(FILE *out, struct row_table *t, const struct row *row, bool again)
{
    unsigned which = again ? ROW_SAYS_RAISED | ROW_SAYS_ABOVE : ROW_SAYS_ALL;
    const struct summary *s = &row->summary;
    char text[2048], says[ROW_SAYS_BYTES];

    list_params(t, row, ROW_DETAIL, true, text, sizeof(text));
    wrap_print(out, text, INDENT, t->line);
    snprintf(text, sizeof(text), "%s: %llu samples", row->metric ? row->metric : "no metric",
             (unsigned long long)row->samples);
    size_t at = strlen(text);
    if (row->levels.two)
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "; two modes, %.6g (%.0f %%) and %.6g (%.0f %%)", row->levels.low,
                               100 * row->levels.share_low, row->levels.high,
                               100 * row->levels.share_high);
    if (ceiling_change(row->limit_before, row->limit_after) > CEILING_UNSTEADY)
        at += (size_t)snprintf(text + at, sizeof(text) - at,
                               "; unsteady limit, %.4g before the samples and %.4g after",
                               row->limit_before, row->limit_after);
    if (*row_says(row, which, says))
        at += (size_t)snprintf(text + at, sizeof(text) - at, "; %s", says);
    if (row->disturbed && row->disturbed[0] && !again)
        at += (size_t)snprintf(text + at, sizeof(text) - at, " (%s)", row->disturbed);
    if (has_tail(row))
        snprintf(text + at, sizeof(text) - at,
                 "; min %.6g, p95 %.6g, p99 %.6g, p99.9 %.6g, max %.6g", s->min, s->p95, s->p99,
                 s->p999, s->max);
    wrap_print(out, text, INDENT, t->line);
}

/* The reason of equal lines is told once. */
static void print_reason(FILE *out, struct row_table *t, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t hash = hash_of(rows[i].reason, t->verbose);

        if (!hash || hash == t->reason)
            continue;
        t->reason = hash;
        print_remark(out, t, rows[i].reason);
    }
}

/* ---- The end: averages, matrices, a sentence ---- */

static void count_line(struct row_table *t, const struct row *rows, size_t n)
{
    const char *status = worst_status(rows, n);
    const struct ledger *l = &rows->ledger;

    for (size_t i = 0; row_statuses[i]; i++)
        t->counts[i] += !strcmp(status, row_statuses[i]);
    t->steal = fmax(t->steal, isnan(l->steal_percent) ? 0 : l->steal_percent);
    t->switches += isnan(l->ctx_involuntary) ? 0 : l->ctx_involuntary;
}

/* "ranks 2", of all columns but `but`: what lines are like one another in. */
static void group_of(struct row_table *t, const struct row *row, const char *const *but, char *text,
                     size_t len)
{
    text[0] = 0;
    for (size_t i = 0; i < row->n_params; i++) {
        bool left = false;
        for (size_t k = 0; but[k]; k++)
            left |= !strcmp(row->param_names[i], but[k]);
        if (!left && t->place[i] <= ROW_UNDER)
            add_param(t, row, i, text, len);
    }
}

/* What was timed before the data was wrong, or before it failed, is no value. */
static bool has_no_value(const char *status)
{
    return !strcmp(status, "wrong") || !strcmp(status, "failed");
}

static struct row_table_cell *keep_cell(struct row_table *t, const struct row *row,
                                        const char *const *but)
{
    t->cells = xrealloc(t->cells, (t->n_cells + 1) * sizeof(*t->cells));
    struct row_table_cell *cell = &t->cells[t->n_cells++];

    *cell = (struct row_table_cell){.value = row->value, .unit = row->unit};
    if (has_no_value(row->status))
        cell->value = NAN;
    snprintf(cell->status, sizeof(cell->status), "%s", row->status);
    snprintf(cell->origin, sizeof(cell->origin), "%s", is_measured(row) ? "" : row->origin);
    group_of(t, row, but, cell->group, sizeof(cell->group));
    return cell;
}

static void keep_average(struct row_table *t, const struct row *rows, size_t n)
{
    static const char *const but[] = {"size", NULL};

    for (size_t i = 0; i < n; i++)
        if (rows[i].metric && !strcmp(rows[i].metric, t->average))
            keep_cell(t, &rows[i], but);
}

/* Is cell i the first of its group that has a value, or (down) the first of its place in the group? */
static bool is_first(const struct row_table *t, size_t i, bool down)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(t->cells[k].group, t->cells[i].group) &&
            (down ? !strcmp(t->cells[k].from, t->cells[i].from) : !isnan(t->cells[k].value)))
            return false;
    return down || !isnan(t->cells[i].value);
}

/* As nccl-tests has it: the mean over all sizes. */
static void print_averages(FILE *out, const struct row_table *t)
{
    for (size_t i = 0; i < t->n_cells; i++) {
        const struct row_table_cell *cell = &t->cells[i];
        double sum = 0;
        size_t good = 0, n = 0;
        char text[64];

        if (!is_first(t, i, false))
            continue;
        for (size_t k = 0; k < t->n_cells; k++) {
            if (strcmp(t->cells[k].group, cell->group) != 0)
                continue;
            n++;
            good += !isnan(t->cells[k].value);
            sum += isnan(t->cells[k].value) ? 0 : t->cells[k].value;
        }
        fprintf(out, "# average %s %s", t->average,
                units_format_value(sum / (double)good, cell->unit, text, sizeof(text)));
        if (good < n)
            fprintf(out, " over %zu of %zu sizes", good, n);
        fprintf(out, "%s%s", cell->group[0] ? ", " : "", cell->group);
        fprintf(out, cell->origin[0] ? " (%s)\n" : "\n", cell->origin);
    }
}

static const char *text_of(const struct row *row, const char *name)
{
    for (size_t i = 0; i < row->n_params; i++)
        if (!strcmp(row->param_names[i], name))
            return row->params[i] ? row->params[i] : "";
    return "";
}

static void keep_pair(struct row_table *t, const struct row *row)
{
    const char *const but[] = {t->from, t->to, NULL};
    struct row_table_cell *cell = keep_cell(t, row, but);
    size_t at = strlen(cell->group);

    snprintf(cell->group + at, sizeof(cell->group) - at, "%s%s", at ? ", " : "",
             row->metric ? row->metric : "");
    snprintf(cell->from, sizeof(cell->from), "%s", text_of(row, t->from));
    snprintf(cell->to, sizeof(cell->to), "%s", text_of(row, t->to));
    snprintf(cell->path, sizeof(cell->path), "%s", text_of(row, "path"));
}

/* Of the cells of a group, and of this path unless it is NULL. */
static double median_of(const struct row_table *t, const char *group, const char *path)
{
    double *values = xcalloc(t->n_cells, sizeof(*values));
    size_t n = 0;

    for (size_t i = 0; i < t->n_cells; i++) {
        const struct row_table_cell *cell = &t->cells[i];
        if (!strcmp(cell->group, group) && (!path || !strcmp(cell->path, path)) &&
            !isnan(cell->value))
            values[n++] = cell->value;
    }
    double median = stats_median(values, n);
    free(values);
    return median;
}

static bool is_rate(const struct row_table_cell *cell)
{
    const struct unit *unit = cell->unit ? units_find(cell->unit) : NULL;

    return unit && unit->higher_is_better;
}

/* A share of the median of its path, below 1 where it is worse; of a time turned round. */
static double share_of(const struct row_table *t, const struct row_table_cell *cell)
{
    double share = cell->value / median_of(t, cell->group, cell->path);

    return is_rate(cell) ? share : 1 / share;
}

static const struct row_table_cell *find_cell(const struct row_table *t, const char *group,
                                              const char *from, const char *to)
{
    for (size_t i = 0; i < t->n_cells; i++)
        if (!strcmp(t->cells[i].group, group) && !strcmp(t->cells[i].from, from) &&
            !strcmp(t->cells[i].to, to))
            return &t->cells[i];
    return NULL;
}

static void print_cell(FILE *out, const struct row_table *t, const struct row_table_cell *cell,
                       double scale, int width)
{
    char text[40] = "-";

    if (cell && isnan(cell->value))
        snprintf(text, sizeof(text), "%.*s", width - 2, cell->status);
    else if (cell)
        units_format_number(cell->value * scale, text, sizeof(text));
    fprintf(out, "%*s%c", width - 1, text, cell && share_of(t, cell) < OUTLIER ? '!' : ' ');
}

/* "3" of "cuda:3" where all of them are of one kind; else the whole name. */
static const char *short_name(const char *const *names, size_t n, size_t i)
{
    const char *colon = strchr(names[0], ':');

    for (size_t k = 0; colon && k < n; k++)
        if (strncmp(names[k], names[0], (size_t)(colon + 1 - names[0])) != 0)
            colon = NULL;
    return colon ? names[i] + (colon + 1 - names[0]) : names[i];
}

/* The places across, in the order of those down where they are the same. */
static size_t list_across(const struct row_table *t, const char *group, const char **across)
{
    size_t n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < t->n_cells && n < ACROSS_MAX; i++) {
            const char *name = pass ? t->cells[i].to : t->cells[i].from;
            bool wanted = false, listed = false;

            for (size_t k = 0; k < t->n_cells; k++)
                wanted |= !strcmp(t->cells[k].group, group) && !strcmp(t->cells[k].to, name);
            for (size_t k = 0; k < n; k++)
                listed |= !strcmp(across[k], name);
            if (wanted && !listed)
                across[n++] = name;
        }
    return n;
}

/* One group's cells, from places down, to places across; as many blocks as the width asks for. */
static void print_matrix(FILE *out, const struct row_table *t, const struct row_table_cell *head)
{
    const char *across[ACROSS_MAX];
    size_t n = list_across(t, head->group, across), label = 0, cell = CELL_COLUMNS;
    char unit[40], title[320];
    double scale = units_scale(median_of(t, head->group, NULL), head->unit, unit, sizeof(unit));

    for (size_t i = 0; i < t->n_cells; i++) {
        size_t length = strlen(t->cells[i].from);
        label = length > label ? length : label;
        length = strlen(t->cells[i].status) + 2;
        if (isnan(t->cells[i].value) && length > cell)
            cell = length;
    }
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(short_name(across, n, i)) + 2;
        cell = length > cell ? length : cell;
    }
    size_t most = (t->line - label - 2) / cell ? (t->line - label - 2) / cell : 1;
    snprintf(title, sizeof(title), "%s in %s, %s down, %s across%s%s", head->group, unit, t->from,
             t->to, head->origin[0] ? ", " : "", head->origin);
    print_remark(out, t, title);
    for (size_t from = 0; from < n; from += most) {
        fprintf(out, "# %-*s", (int)label, "");
        for (size_t k = from; k < n && k < from + most; k++)
            fprintf(out, "%*s ", (int)cell - 1, short_name(across, n, k));
        fputc('\n', out);
        for (size_t i = 0; i < t->n_cells; i++) {
            if (strcmp(t->cells[i].group, head->group) != 0 || !is_first(t, i, true))
                continue;
            fprintf(out, "  %-*s", (int)label, t->cells[i].from);
            for (size_t k = from; k < n && k < from + most; k++)
                print_cell(out, t, find_cell(t, head->group, t->cells[i].from, across[k]), scale,
                           (int)cell);
            fputc('\n', out);
        }
    }
}

/* " (cuda:0 to cuda:1, cuda:1 to cuda:0)": of this status, whatever their sizes. */
static void add_pairs(FILE *text, const struct row_table *t, const char *status)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_cells; i++) {
        const struct row_table_cell *cell = &t->cells[i], *other = t->cells;

        if (strcmp(cell->status, status) != 0)
            continue;
        while (strcmp(other->status, status) != 0 || strcmp(other->from, cell->from) != 0 ||
               strcmp(other->to, cell->to) != 0)
            other++;
        if (other < cell || n++ >= NAMED_MOST)
            continue;
        fprintf(text, "%s%s to %s", n == 1 ? " (" : ", ", cell->from, cell->to);
    }
    if (n > NAMED_MOST)
        fprintf(text, " and %zu more", n - NAMED_MOST);
    fprintf(text, "%s", n ? ")" : "");
}

/* "; slow: cuda:7 to cuda:0 27.6 GB/s (50 % of the median)". */
static void add_outliers(FILE *text, const struct row_table *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_cells; i++) {
        const struct row_table_cell *cell = &t->cells[i];
        double share = share_of(t, cell);
        bool paths = false;
        char value[64];

        if (!(share < OUTLIER) || n++ >= NAMED_MOST)
            continue;
        for (size_t k = 0; k < t->n_cells; k++)
            paths |= !strcmp(t->cells[k].group, cell->group) && !isnan(t->cells[k].value) &&
                     strcmp(t->cells[k].path, cell->path) != 0;
        fprintf(text, "%s%s to %s %s", n == 1 ? "; slow: " : ", ", cell->from, cell->to,
                units_format_value(cell->value, cell->unit, value, sizeof(value)));
        fprintf(text, is_rate(cell) ? " (%.0f %% of the median%s)" : " (%.1f times the median%s)",
                is_rate(cell) ? 100 * share : 1 / share,
                n == 1 && paths ? " of pairs with the same path" : "");
    }
    if (n > NAMED_MOST)
        fprintf(text, " and %zu more", n - NAMED_MOST);
}

static void print_sentence(FILE *out, const struct row_table *t)
{
    char *text = NULL;
    size_t len, cases = 0, good = t->counts[0];
    FILE *to = open_memstream(&text, &len);
    const char *lead = " ";

    for (size_t i = 0; row_statuses[i]; i++)
        cases += t->counts[i];
    if (!to)
        return;
    if (!cases) {
        fclose(to);
        free(text);
        return;
    }
    fprintf(to, "%zu case%s:", cases, cases == 1 ? "" : "s");
    if (good == cases)
        fprintf(to, "%s", cases == 1 ? " ok" : " all ok");
    for (size_t i = 1; row_statuses[i]; i++) {
        if (!t->counts[i])
            continue;
        fprintf(to, "%s%zu %s", lead, t->counts[i], row_statuses[i]);
        if (t->from && has_no_value(row_statuses[i]))
            add_pairs(to, t, row_statuses[i]);
        lead = ", ";
    }
    lead = " (";
    if (t->counts[1] && t->steal >= 1)
        fprintf(to, "%sCPU steal up to %.0f %%", lead, t->steal), lead = ", ";
    if (t->counts[1] && t->switches >= 1)
        fprintf(to, "%s%.0f involuntary context switches", lead, t->switches), lead = ", ";
    fprintf(to, "%s", *lead == ',' ? ")" : "");
    if (t->bimodal)
        fprintf(to, ", %zu bimodal", t->bimodal);
    if (t->unsustained)
        fprintf(to, ", %zu sustained below %.0f %% of the median", t->unsustained,
                100 * SUSTAINED_LOW);
    if (t->from)
        add_outliers(to, t);
    if (!t->verbose && (t->counts[1] || t->bimodal || t->unsustained))
        fprintf(to, "; -v says why");
    fclose(to);
    print_remark(out, t, text);
    free(text);
}

void row_table_end(FILE *out, struct row_table *t)
{
    if (t->like)
        fprintf(out, "# and %zu more, skipped for the same reason\n", t->like);
    for (size_t i = 0; t->from && i < t->n_cells; i++)
        if (is_first(t, i, false))
            print_matrix(out, t, &t->cells[i]);
    if (t->average)
        print_averages(out, t);
    if (t->line)
        print_sentence(out, t);
    free(t->cells);
    free(t->rows);
    t->cells = NULL;
    t->rows = NULL;
}

/* ---- A point ---- */

void row_table_add(struct row_table *t, const struct row *row)
{
    t->rows = xrealloc(t->rows, (t->n_rows + 1) * sizeof(*t->rows));
    t->rows[t->n_rows++] = *row;
}

/* Two rows of a point that are of one metric differ in a parameter: that is a column from here on. */
static void split_columns(struct row_table *t)
{
    for (size_t a = 0; a < t->n_rows; a++)
        for (size_t b = a + 1; b < t->n_rows; b++)
            for (size_t i = 0; i < t->rows[a].n_params; i++)
                if (t->place[i] > ROW_UNDER && !t->outcome[i] &&
                    same_metric(&t->rows[a], &t->rows[b]) &&
                    !same_param(&t->rows[a], &t->rows[b], i)) {
                    t->place[i] = ROW_COLUMN;
                    t->stale = true;
                }
}

/* How many rows from this one on are of one line: equal columns, and other metrics. */
static size_t rows_of_line(const struct row_table *t, size_t from)
{
    size_t n = 1;

    for (; from + n < t->n_rows && n < ROW_METRICS_MAX; n++) {
        const struct row *row = &t->rows[from + n];
        for (size_t k = from; k < from + n; k++)
            if (same_metric(row, &t->rows[k]))
                return n;
        for (size_t i = 0; i < row->n_params; i++)
            if (t->place[i] <= ROW_UNDER && !same_param(row, &t->rows[from], i))
                return n;
    }
    return n;
}

/* Skipped for the reason of the line before, which is only counted. */
static bool is_like(struct row_table *t, const struct row *row)
{
    uint64_t hash = is_status(row, "skipped") ? hash_of(row->reason, true) : 0;
    bool like = hash && hash == t->skipped;

    t->skipped = hash;
    t->like = like ? t->like + 1 : t->like;
    return like;
}

static void print_line(FILE *out, struct row_table *t, const struct row *rows, size_t n)
{
    char under[512];

    count_line(t, rows, n);
    if (is_like(t, rows))
        return;
    if (t->like)
        fprintf(out, "# and %zu more, skipped for the same reason\n", t->like);
    t->like = 0;
    begin_section(out, t, rows, n);
    print_words(out, t, rows, n, print_cells(out, t, rows, n));
    list_params(t, rows, ROW_UNDER, false, under, sizeof(under));
    wrap_print(out, under, INDENT, t->line);
    print_reason(out, t, rows, n);
    for (size_t i = 0; i < n && t->verbose; i++)
        print_details(out, t, &rows[i], i > 0);
}

void row_table_point(FILE *out, struct row_table *t)
{
    if (!t->line)
        t->line = wrap_width(out);
    split_columns(t);
    for (size_t i = 0, n; i < t->n_rows; i += n) {
        const struct row *rows = &t->rows[i];
        char context[1024], words[5][32];

        n = rows_of_line(t, i);
        if (t->from) {
            list_params(t, rows, ROW_CONTEXT, true, context, sizeof(context));
            if (context[0])
                print_remark(out, t, context);
            keep_pair(t, rows);
            count_line(t, rows, n);
            words_of(t, rows, n, words);
            print_reason(out, t, rows, n);
        } else {
            if (t->average)
                keep_average(t, rows, n);
            print_line(out, t, rows, n);
        }
    }
    t->n_rows = 0;
    fflush(out);
}

void row_table_figures(FILE *out, const struct row_table *t, const char *text)
{
    wrap_print(out, text, INDENT, t->line);
}

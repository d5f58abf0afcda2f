/* SPDX-License-Identifier: Apache-2.0 */
/* The table of rows for people: see row.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/row.h"
#include "core/text.h"
#include "core/units.h"

#define STATUS_COLUMNS 7    /* "skipped", and two blanks before it */
#define INDENT         4    /* of what stands under a row */
#define PARAM_COLUMNS  9    /* of a parameter whose values are not known before */
#define TAIL_SAMPLES   1000 /* of which p99.9 says something */
#define SIDE_MAX       999  /* %: beyond, the figure says nothing but that it is wide */

enum { METRIC, VALUE, UNIT, SIDE_LOW, SIDE_HIGH, SAMPLES, LIMIT, FIXED };

static const struct {
    const char *name, *narrow_name;
    int width, narrow; /* negative: to the left */
} fixed[] = {
    [METRIC] = {"metric", "metric", -14, -9}, [VALUE] = {"value", "value", 12, 9},
    [UNIT] = {"unit", "unit", -8, -7},        [SIDE_LOW] = {"-ci", "-ci", 8, 7},
    [SIDE_HIGH] = {"+ci", "+ci", 8, 7},       [SAMPLES] = {"samples", "n", 7, 5},
    [LIMIT] = {"limit", "limit", 7, 7},
};

static int fixed_width(const struct row_table *table, int column)
{
    return table->narrow ? fixed[column].narrow : fixed[column].width;
}

static const char *param_text(const struct row_table *table, size_t i, const char *value,
                              char *text, size_t len)
{
    uint64_t bytes;

    if (!value || !table->bytes[i] || units_parse_size(value, &bytes))
        return value ? value : "";
    return units_format_bytes(bytes, text, len);
}

void row_table_widen(struct row_table *table, size_t column, const char *value)
{
    char text[40];
    int width = (int)strlen(param_text(table, column, value, text, sizeof(text)));

    if (width > table->width[column])
        table->width[column] = width;
}

static int param_width(const struct row_table *table, const struct row *row, size_t i)
{
    int name = (int)strlen(row->param_names[i]);
    int wanted = table->width[i] ? table->width[i] : PARAM_COLUMNS;

    return name > wanted ? name : wanted;
}

static bool is_column(const struct row_table *table, size_t i)
{
    return !table->aside[i] && !table->under[i];
}

/* Of a line up to its status. */
static size_t line_columns(const struct row_table *table, const struct row *row)
{
    size_t columns = STATUS_COLUMNS + 1;

    for (size_t i = 0; i < row->n_params; i++)
        if (is_column(table, i))
            columns += (size_t)param_width(table, row, i) + 1;
    for (int i = 0; i < FIXED; i++)
        columns += (size_t)abs(fixed_width(table, i)) + 1;
    return columns;
}

/* From the last one back, until the line fits. */
static void leave_line(struct row_table *table, const struct row *row, bool empty)
{
    for (size_t i = row->n_params; i-- && line_columns(table, row) > table->line;)
        if (!table->aside[i] && (!empty || !row->params[i] || !row->params[i][0]))
            table->under[i] = true;
}

static void print_table_header(FILE *out, const struct row_table *table, const struct row *row)
{
    for (size_t i = 0; i < row->n_params; i++)
        if (is_column(table, i))
            fprintf(out, "%-*s ", param_width(table, row, i), row->param_names[i]);
    for (int i = 0; i < FIXED; i++)
        fprintf(out, "%*s ", fixed_width(table, i),
                table->narrow ? fixed[i].narrow_name : fixed[i].name);
    fprintf(out, " status\n");
}

static bool is_skipped(const struct row *row)
{
    return row->status && !strcmp(row->status, "skipped");
}

/* "name value, name value" of the parameters that `which` holds for. */
static void list_params(const struct row_table *table, const struct row *row, const bool *which,
                        char *text, size_t len)
{
    char size[32];
    size_t at = 0;

    text[0] = 0;
    for (size_t i = 0; i < row->n_params && at < len; i++)
        if (which[i] && row->params[i] && row->params[i][0])
            at += (size_t)snprintf(text + at, len - at, "%s%s %s", at ? ", " : "",
                                   row->param_names[i],
                                   param_text(table, i, row->params[i], size, sizeof(size)));
}

/* A line that begins with '#', and those that it takes. */
static void print_remark(FILE *out, const struct row_table *table, const char *text)
{
    size_t next, n = wrap_take(text, table->line - 2, &next);

    fprintf(out, "# %.*s\n", (int)n, text);
    for (text += next; *text; text += next) {
        n = wrap_take(text, table->line - INDENT, &next);
        fprintf(out, "#   %.*s\n", (int)n, text);
    }
}

/* FNV-1a; 0 stands for no value. */
static uint64_t hash_of(const char *value)
{
    uint64_t hash = 0xcbf29ce484222325u;

    if (!value || !*value)
        return 0;
    for (; *value; value++)
        hash = (hash ^ (unsigned char)*value) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* Why the row is skipped; "" where it is not. */
static void skipped_for(const struct row *row, char *reason, size_t len)
{
    snprintf(reason, len, "%s", is_skipped(row) && row->reason ? row->reason : "");
}

/* Is it skipped for the reason that the row above it is? */
static bool is_skipped_too(const struct row_table *table, const struct row *row)
{
    char reason[sizeof(table->skipped)];

    skipped_for(row, reason, sizeof(reason));
    return reason[0] && !strcmp(reason, table->skipped);
}

/* Why a row is skipped often holds for those after it too: told above the first of them, the others
 * are counted. */
static void tell_skipped(FILE *out, struct row_table *table, const struct row *row)
{
    char text[sizeof(table->skipped) + 16];
    bool too = is_skipped_too(table, row);

    skipped_for(row, table->skipped, sizeof(table->skipped));
    if (too || !table->skipped[0])
        return;
    snprintf(text, sizeof(text), "skipped: %s", table->skipped);
    print_remark(out, table, text);
}

void row_print_table_end(FILE *out, struct row_table *table)
{
    if (table->like)
        fprintf(out, "# and %zu more, skipped for the same reason\n", table->like);
    table->like = 0;
}

static const char *side_text(double side, double value, char *text, size_t len)
{
    double percent = 100 * (side / value - 1);

    if (isnan(side) || isnan(value) || value == 0)
        return "";
    if (fabs(percent) > SIDE_MAX)
        snprintf(text, len, "%c>%d%%", percent < 0 ? '-' : '+', SIDE_MAX);
    else
        snprintf(text, len, "%+.*f%%", fabs(percent) < 99.995 ? 2 : 1, percent);
    return text;
}

static const char *fixed_text(const struct row *row, int column, char *text, size_t len)
{
    text[0] = 0;
    switch (column) {
    case METRIC:
        return row->metric ? row->metric : "";
    case UNIT:
        return row->unit ? row->unit : "";
    case SIDE_LOW:
        return side_text(row->summary.ci_low, row->value, text, len);
    case SIDE_HIGH:
        return side_text(row->summary.ci_high, row->value, text, len);
    case VALUE:
        if (!isnan(row->value))
            snprintf(text, len, "%.6g", row->value);
        return text;
    case SAMPLES:
        if (row->samples)
            snprintf(text, len, "%llu", (unsigned long long)row->samples);
        return text;
    default:
        /* A share of a reference is none of a limit. */
        if (!isnan(row->percent_of_limit))
            snprintf(text, len,
                     limit_kind_of(row->limit_kind) == LIMIT_REFERENCE ? "ref%.0f%%" : "%.1f%%",
                     row->percent_of_limit);
        return text;
    }
}

/* All cells but the status; how many columns they took. */
static size_t print_cells(FILE *out, const struct row_table *table, const struct row *row)
{
    char text[40];
    int at = 0;

    for (size_t i = 0; i < row->n_params; i++)
        if (is_column(table, i))
            at += fprintf(out, "%-*s ", param_width(table, row, i),
                          param_text(table, i, row->params[i], text, sizeof(text)));
    for (int i = 0; i < FIXED; i++)
        at += fprintf(out, "%*s ", fixed_width(table, i), fixed_text(row, i, text, sizeof(text)));
    return (size_t)at;
}

static void add_remarks(FILE *out, const struct row *row)
{
    char says[ROW_SAYS_BYTES];
    const char *lead = "";

    if (row->levels.two) {
        fprintf(out, "two levels, %.6g (%.0f %%) and %.6g (%.0f %%)", row->levels.low,
                100 * row->levels.share_low, row->levels.high, 100 * row->levels.share_high);
        lead = ": ";
    }
    if (ceiling_change(row->limit_before, row->limit_after) > CEILING_UNSTEADY) {
        fprintf(out, "%sunsteady ceiling, %.4g before the samples and %.4g after", lead,
                row->limit_before, row->limit_after);
        lead = "; ";
    }
    if (row->reason && row->reason[0] && !is_skipped(row)) { /* see tell_skipped() */
        fprintf(out, "%s%s", lead, row->reason);
        lead = "; ";
    }
    if (*row_says(row, ROW_SAYS_ALL, says))
        fprintf(out, "%s%s", lead, says);
}

/* What the row carries beside its status, as one text: "reason (disturbed) [simulated]". */
static char *remarks_text(const struct row *row, bool *begins_with_blank)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    add_remarks(out, row);
    *begins_with_blank = ftell(out) == 0;
    if (row->disturbed && row->disturbed[0])
        fprintf(out, " (%s)", row->disturbed);
    if (row->origin && strcmp(row->origin, "measured") != 0)
        fprintf(out, " [%s]", row->origin);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Behind the cells where it fits, else the status there and the rest under the row. */
static void print_outcome(FILE *out, const struct row_table *table, const struct row *row,
                          size_t at)
{
    const char *status = row->status ? row->status : "";
    char under[512];
    bool blank = true;
    char *text = remarks_text(row, &blank);
    const char *remarks = text ? text : " (out of memory for remarks)";
    const char *lead = !*remarks || blank ? "" : ": ";
    bool fits = at + 1 + strlen(status) + strlen(lead) + wrap_columns(remarks, strlen(remarks)) <=
                table->line;

    fprintf(out, " %s%s%s\n", status, fits ? lead : "", fits ? remarks : "");
    list_params(table, row, table->under, under, sizeof(under));
    wrap_print(out, under, INDENT, table->line);
    if (!fits)
        wrap_print(out, remarks, INDENT, table->line);
    free(text);
}

/* A time of single operations: the median says the least of it. */
static void print_tail(FILE *out, const struct row_table *table, const struct row *row)
{
    const struct summary *s = &row->summary;
    const char *unit = row->unit ? row->unit : "";
    bool of_time = !strcmp(unit, "ns") || !strcmp(unit, "us") || !strcmp(unit, "ms");
    char text[160];

    if (!of_time || row->inner_repeat != 1 || row->samples < TAIL_SAMPLES)
        return;
    snprintf(text, sizeof(text), "min %.6g, p95 %.6g, p99 %.6g, p99.9 %.6g, max %.6g", s->min,
             s->p95, s->p99, s->p999, s->max);
    wrap_print(out, text, INDENT, table->line);
}

void row_print_figures(FILE *out, const struct row_table *table, const char *text)
{
    wrap_print(out, text, INDENT, table->line);
}

void row_print_table(FILE *out, struct row_table *table, const struct row *row)
{
    bool changed[ROW_PARAMS_MAX] = {false};
    /* What is aside in this row. `same`: every parameter that had a value before has one, and no
     * other; `changed` are those whose value is another. */
    bool same = true;
    for (size_t i = 0; i < row->n_params; i++) {
        uint64_t hash = table->aside[i] ? hash_of(row->params[i]) : 0;
        changed[i] = hash != table->told[i];
        same &= !hash == !table->told[i];
        table->told[i] = hash;
    }
    bool changes = memchr(changed, 1, sizeof(changed)) != NULL;

    if (!changes && is_skipped_too(table, row)) {
        table->like++;
        return;
    }
    row_print_table_end(out, table);
    if (!table->laid_out) {
        /* What says nothing here leaves the line first. Of the others outcomes, which come last;
         * what is swept tells rows apart and stays while it can. */
        table->laid_out = true;
        if (!table->line)
            table->line = wrap_width(out);
        leave_line(table, row, true);
        table->narrow = line_columns(table, row) > table->line;
        leave_line(table, row, false);
    }
    if (changes) {
        /* What is no column: all of it above the first row and where other parameters say
         * something, else what changes. */
        char text[1024];
        list_params(table, row, same ? changed : table->aside, text, sizeof(text));
        if (text[0] && table->begun)
            fputc('\n', out);
        if (text[0])
            print_remark(out, table, text);
    }
    if (!table->begun)
        print_table_header(out, table, row);
    table->begun = true;
    tell_skipped(out, table, row);
    print_outcome(out, table, row, print_cells(out, table, row));
    print_tail(out, table, row);
}

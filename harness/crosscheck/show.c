/* SPDX-License-Identifier: Apache-2.0 */
/* The table for people: see crosscheck.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "core/text.h"
#include "core/units.h"
#include "harness/crosscheck/crosscheck.h"

static const char *show_state(const struct comparison *m)
{
    static const char *const states[] = {"interrupted", "done", "absent", "skipped", "failed"};

    return states[m->state];
}

/* "" where there is none. Of a rate or a time ours is faster or slower, of a cost cheaper or
 * dearer. */
static const char *show_verdict(const struct comparison *m)
{
    static const char *const speed[] = {"agree", "ours faster", "ours slower", "undecided"};
    static const char *const cost[] = {"agree", "ours cheaper", "ours dearer", "undecided"};

    if (m->state != COMPARISON_DONE)
        return "";
    return (strcmp(m->w->unit, "s/GB") != 0 ? speed : cost)[m->judgement.verdict];
}

/* The median of what the witness prints. */
static double show_printed(const struct comparison *m)
{
    return stats_median(m->printed, m->pairs);
}

/* "" before its first run. */
static const char *printed_unit(const struct comparison *m)
{
    return m->figure.printed_unit ? m->figure.printed_unit : "";
}

/* Ours over theirs, if the name of the unit that it prints is believed. */
static double show_printed_ratio(const struct comparison *m)
{
    return m->judgement.ratio * m->figure.value / m->figure.believed;
}

void show_begin(FILE *out, const struct crosscheck *c)
{
    fprintf(
        out,
        "# ours against outside programs on this machine: %llu pair%s of %llu s each way, in "
        "turn; ratio = ours / theirs,\n#   both in the same unit and definition, with its 95 %% "
        "interval\n",
        (unsigned long long)c->options.pairs, c->options.pairs == 1 ? "" : "s",
        (unsigned long long)c->options.seconds);
    fprintf(out, "%-17s %9s %7s %11s %11s %-5s %7s %15s  %s\n", "witness", "size", "streams",
            "ours", "theirs", "unit", "ratio", "interval", "verdict");
}

static void note(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(FILE *out, const char *format, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0)
        wrap_print(out, text, 4, 100);
    va_end(args);
    free(text);
}

static void interval_text(const struct judgement *j, char *text, size_t len)
{
    if (isnan(j->low) || isnan(j->high))
        snprintf(text, len, "not known");
    else
        snprintf(text, len, "%.3f to %.3f", j->low, j->high);
}

static void say_undecided(FILE *out, const struct judgement *j, double margin)
{
    if (isnan(j->low) || isnan(j->high))
        note(out, "undecided: an interval takes %d pairs or more", JUDGE_PAIRS_MIN);
    else if (j->pairs_wanted)
        note(out,
             "undecided: no difference is proven, nor that it is below %g %%; about %zu pairs "
             "would decide",
             100 * margin, j->pairs_wanted);
    else
        note(out, "undecided: no difference is proven, nor that it is below %g %%", 100 * margin);
}

static void say_difference(FILE *out, const struct comparison *m)
{
    if (m->judgement.suspect)
        note(out, "the ratio is that of %s: is its definition another one in this version",
             m->judgement.suspect);
    if (m->w->notes)
        note(out, "what differs all the same: %s", m->w->notes);
}

static void say_definition(FILE *out, const struct comparison *m)
{
    double printed_ratio = show_printed_ratio(m);

    if (m->figure.value != m->figure.believed)
        note(out, "as printed (%.6g %s) the ratio would be %.3f", show_printed(m), printed_unit(m),
             printed_ratio);
    if (m->w->converted)
        note(out, "converted: %s", m->w->converted);
}

static void show_done(FILE *out, const struct comparison *m)
{
    const struct judgement *j = &m->judgement;
    char size[32], interval[48];

    units_format_bytes(m->w->size, size, sizeof(size));
    interval_text(j, interval, sizeof(interval));
    fprintf(out, "%-17s %9s %7llu %11.5g %11.5g %-5s %7.3f %15s  %s\n", m->w->name, size,
            (unsigned long long)m->streams, j->ours, j->theirs, m->w->unit, j->ratio, interval,
            show_verdict(m));
    note(out, "%s %s; CPUs %s; %s", m->w->program, *m->version ? m->version : "(no version)",
         *m->last.cpus ? m->last.cpus : "any", m->last.detail);
    say_definition(out, m);
    if (j->verdict == VERDICT_UNDECIDED)
        say_undecided(out, j, m->w->margin);
    else if (j->verdict != VERDICT_AGREE)
        say_difference(out, m);
}

void show_comparison(FILE *out, const struct crosscheck *c, const struct comparison *m)
{
    (void)c;
    if (m->state == COMPARISON_DONE)
        show_done(out, m);
    else
        fprintf(out, "%-17s %s%s%s\n", m->w->name, show_state(m), *m->reason ? ": " : "",
                m->reason);
    fflush(out);
}

void show_end(FILE *out, const struct crosscheck *c)
{
    fprintf(out, "\n%s/: crosscheck.csv, pairs.csv, log/\n", c->folder);
}

/* ---- Comparisons as CSV and as JSON. An empty cell, or null, is "not measured". ---- */

/* One comparison as name and value, so that both formats have the same of it. */
enum field_kind { FIELD_TEXT, FIELD_NUMBER };

struct field {
    const char *name;
    enum field_kind kind;
    const char *text;
    double number;
};

#define FIELDS_MAX 32

static void text(struct field **f, const char *name, const char *value)
{
    *(*f)++ = (struct field){.name = name, .kind = FIELD_TEXT, .text = value ? value : ""};
}

static void number(struct field **f, const char *name, double value)
{
    *(*f)++ = (struct field){.name = name, .kind = FIELD_NUMBER, .number = value};
}

static void add_question(struct field **f, const struct crosscheck *c, const struct comparison *m)
{
    text(f, "witness", m->w->name);
    text(f, "program", m->w->program);
    text(f, "version", m->version);
    number(f, "size", (double)m->w->size);
    number(f, "streams", (double)m->streams);
    number(f, "seconds", (double)c->options.seconds);
    text(f, "cpus", m->last.cpus);
    text(f, "detail", m->last.detail);
    text(f, "metric", m->w->metric);
    text(f, "column", m->w->column);
    text(f, "unit", m->w->unit);
}

static void add_answer(struct field **f, const struct comparison *m)
{
    bool done = m->state == COMPARISON_DONE;
    const struct judgement *j = &m->judgement;

    number(f, "pairs", (double)m->pairs);
    number(f, "ours", done ? j->ours : NAN);
    number(f, "theirs", done ? j->theirs : NAN);
    number(f, "ratio", done ? j->ratio : NAN);
    number(f, "ci_low", done ? j->low : NAN);
    number(f, "ci_high", done ? j->high : NAN);
    number(f, "confidence", JUDGE_CONFIDENCE);
    number(f, "margin", m->w->margin);
    text(f, "verdict", show_verdict(m));
    text(f, "suspect", done ? j->suspect : NULL);
    number(f, "printed", done ? show_printed(m) : NAN);
    text(f, "printed_unit", printed_unit(m));
    number(f, "printed_ratio", done ? show_printed_ratio(m) : NAN);
}

static size_t fields_of(const struct crosscheck *c, const struct comparison *m,
                        struct field fields[FIELDS_MAX])
{
    struct field *f = fields;

    add_question(&f, c, m);
    add_answer(&f, m);
    text(&f, "converted", m->w->converted);
    text(&f, "notes", m->w->notes);
    text(&f, "status", show_state(m));
    text(&f, "reason", m->reason);
    return (size_t)(f - fields);
}

static void print_line(FILE *out, const struct field *fields, size_t n, bool names)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            putc(',', out);
        if (names)
            csv_print(out, fields[i].name);
        else if (fields[i].kind == FIELD_TEXT)
            csv_print(out, fields[i].text);
        else
            csv_print_number(out, fields[i].number);
    }
    putc('\n', out);
}

void show_csv(FILE *out, const struct crosscheck *c)
{
    struct field fields[FIELDS_MAX];

    for (size_t i = 0; i < c->n; i++) {
        size_t n = fields_of(c, &c->comparisons[i], fields);
        if (!i)
            print_line(out, fields, n, true);
        print_line(out, fields, n, false);
    }
}

static json_t *numbers(const double *values, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_real(values[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *value_of(const struct field *f)
{
    if (f->kind == FIELD_TEXT)
        return *f->text ? json_string(f->text) : json_null();
    return isfinite(f->number) ? json_real(f->number) : json_null();
}

static json_t *object_of(const struct crosscheck *c, const struct comparison *m)
{
    struct field fields[FIELDS_MAX];
    size_t n = fields_of(c, m, fields);
    json_t *o = json_object();
    int bad = !o;

    for (size_t i = 0; !bad && i < n; i++)
        bad = json_object_set_new(o, fields[i].name, value_of(&fields[i]));
    if (!bad)
        bad = json_object_set_new(o, "ours_of_pairs", numbers(m->ours, m->pairs)) ||
              json_object_set_new(o, "theirs_of_pairs", numbers(m->theirs, m->pairs));
    if (!bad)
        return o;
    json_decref(o);
    return NULL;
}

int show_json(FILE *out, const struct crosscheck *c)
{
    json_t *list = json_array(), *all = json_pack("{s:i, s:o}", "schema", 1, "comparisons", list);
    int bad = !all;

    for (size_t i = 0; !bad && i < c->n; i++)
        bad = json_array_append_new(list, object_of(c, &c->comparisons[i]));
    if (!bad)
        bad = json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) || putc('\n', out) < 0;
    json_decref(all);
    return bad ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons as CSV and as JSON: see check.h. An empty cell, or null, is "not measured". */
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "core/text.h"
#include "harness/crosscheck/check.h"

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

static void add_question(struct field **f, const struct check *c, const struct comparison *m)
{
    text(f, "witness", m->w->name);
    text(f, "program", m->w->program);
    text(f, "version", m->version);
    number(f, "size", (double)m->w->size);
    number(f, "streams", (double)m->w->streams);
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
    text(f, "printed_unit", m->w->printed_unit);
    number(f, "printed_ratio", done ? show_printed_ratio(m) : NAN);
}

static size_t fields_of(const struct check *c, const struct comparison *m,
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

void show_csv(FILE *out, const struct check *c)
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

static json_t *object_of(const struct check *c, const struct comparison *m)
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

int show_json(FILE *out, const struct check *c)
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

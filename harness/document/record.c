/* SPDX-License-Identifier: Apache-2.0 */
/* Records as CSV and JSON: see record.h. */
#include "harness/document/record.h"

#include <errno.h>
#include <math.h>

#include "core/text.h"
#include "harness/document/utf8.h"

#define DIGITS 12 /* of a figure in JSON: 0.05, and not 0.050000000000000003 */

struct record_field record_text(const char *name, const char *text)
{
    return (struct record_field){.name = name, .kind = RECORD_TEXT, .text = text};
}

struct record_field record_number(const char *name, double value)
{
    return (struct record_field){.name = name, .kind = RECORD_NUMBER, .number = value};
}

struct record_field record_count(const char *name, size_t count)
{
    return (struct record_field){.name = name, .kind = RECORD_COUNT, .number = (double)count};
}

struct record_field record_yes(const char *name, bool yes)
{
    return (struct record_field){.name = name, .kind = RECORD_YES, .number = yes};
}

struct record_field record_missing(const char *name)
{
    return record_text(name, NULL);
}

void record_csv_head(FILE *out, const struct record_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s", i ? "," : "", fields[i].name);
    fputc('\n', out);
}

void record_csv(FILE *out, const struct record_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct record_field *f = &fields[i];

        fputs(i ? "," : "", out);
        if (f->kind == RECORD_YES)
            fputs(f->number != 0 ? "yes" : "no", out);
        else if (f->kind != RECORD_TEXT && isfinite(f->number))
            csv_print_number(out, f->number);
        else if (f->text)
            csv_print(out, f->text);
    }
    fputc('\n', out);
}

void record_json(struct pool *pool, json_t *object, const struct record_field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct record_field *f = &fields[i];

        json_object_set_new(object, f->name,
                            f->kind == RECORD_TEXT     ? json_text(pool, f->text)
                            : f->kind == RECORD_YES    ? json_boolean(f->number != 0)
                            : f->kind == RECORD_NUMBER ? json_number(f->number)
                                                       : json_integer((json_int_t)f->number));
    }
}

json_t *json_text(struct pool *pool, const char *text)
{
    return text ? json_string(utf8_text(pool, text, true)) : json_null();
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

int json_write(json_t *object, FILE *out)
{
    int err = json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) ||
                      fputc('\n', out) == EOF
                  ? -EIO
                  : 0;

    json_decref(object);
    return err;
}

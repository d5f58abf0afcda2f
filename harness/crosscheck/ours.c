/* SPDX-License-Identifier: Apache-2.0 */
/* Our rows: see ours.h. */
#include "harness/crosscheck/ours.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/store/table.h"

/* A row is noisy here because it was asked for a width that nothing reaches: so it measures for all of
 * its time. */
static int judge_row(const struct table *t, size_t row, char *error, size_t len)
{
    const char *status = table_text(t, row, "status"), *reason = table_text(t, row, "reason");

    if (!strcmp(status, "ok") || !strcmp(status, "noisy"))
        return 0;
    snprintf(error, len, "our row is %s: %s", status, *reason ? reason : "it says no reason");
    return strcmp(status, "skipped") ? -EIO : -EOPNOTSUPP;
}

static bool is_asked_for(const struct witness *w, const struct table *t, size_t row)
{
    return !strcmp(table_text(t, row, "metric"), w->metric) &&
           (!w->scope || !strcmp(table_text(t, row, "scope"), w->scope));
}

static void copy(char *to, size_t len, const struct table *t, size_t row, const char *column)
{
    snprintf(to, len, "%s", table_text(t, row, column));
}

static void take_facts(const struct table *t, size_t row, struct ours *out)
{
    copy(out->cpus, sizeof(out->cpus), t, row, "cpus");
    copy(out->detail, sizeof(out->detail), t, row, "detail");
    copy(out->gid, sizeof(out->gid), t, row, "carrier_gid");
}

static int add_row(const struct witness *w, const struct table *t, size_t row, struct ours *out,
                   char *error, size_t len)
{
    double value = table_number(t, row, w->column);

    if (strcmp(table_text(t, row, "unit"), w->unit) != 0 || !(value > 0)) {
        snprintf(error, len, "our row has '%s' %s in its column '%s', not a number of %s",
                 table_text(t, row, w->column), table_text(t, row, "unit"), w->column, w->unit);
        return -EBADMSG;
    }
    out->value += value;
    take_facts(t, row, out);
    return 0;
}

static int read_table(const struct witness *w, const struct table *t, struct ours *out, char *error,
                      size_t len)
{
    size_t found = 0, wanted = w->scope ? 2 : 1; /* of both sides, or the one */
    int err = 0;

    for (size_t row = 0; !err && row < t->n_rows; row++) {
        err = judge_row(t, row, error, len);
        if (!err && is_asked_for(w, t, row)) {
            err = add_row(w, t, row, out, error, len);
            found++;
        }
    }
    if (err || found == wanted)
        return err;
    snprintf(error, len, "our benchmark printed %zu rows of %s, not %zu", found, w->metric, wanted);
    return -EBADMSG;
}

int ours_read(const struct witness *w, const char *csv, size_t size, struct ours *out, char *error,
              size_t len)
{
    struct table t;
    int err = table_parse(w->bench, csv, size, &t, error, len);

    *out = (struct ours){0};
    if (err)
        return -EBADMSG;
    err = read_table(w, &t, out, error, len);
    table_release(&t);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The headlines of one run as a table for a terminal. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/utf8.h"

#define SLOW_MAX 4 /* pairs of GPUs that are named */

enum { PIPE, OF, VALUE, INTERVAL, LIMIT, VERDICT, COLUMNS };

struct line {
    const char *cells[COLUMNS];
};

static size_t width_of(const char *text)
{
    size_t width = 0, n, used;

    for (; *text; text += used, width++)
        utf8_printable(text, &n, &used);
    return width;
}

/* What comes from files may hold what a terminal obeys: only what is printable is printed. */
static void print_padded(FILE *out, const char *text, size_t width)
{
    size_t n, used, at = width_of(text);

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        fwrite(c, 1, n, out);
    }
    for (; at < width; at++)
        fputc(' ', out);
}

static struct line line_of(struct report *r, const struct headlines *h, size_t i)
{
    const struct headline *at = &h->all[i];
    const struct headline_run *run = &at->runs[0];
    bool repeats = i && !strcmp(h->all[i - 1].pipe, at->pipe);
    struct line line = {
        {repeats ? "" : at->pipe, at->label, "not measured", "", "", run->verdict.sentence}};

    if (*run->what)
        line.cells[OF] = pool_text(&r->pool, "%s (%s)", at->label, run->what);
    if (!run->point || !run->point->n_values)
        return line;
    line.cells[VALUE] = pool_text(&r->pool, "%s %s%s", show_number(&r->pool, run->point->value),
                                  run->best->unit, show_origin(&r->pool, run->point->origin));
    line.cells[INTERVAL] = show_interval(&r->pool, run->point);
    line.cells[LIMIT] = show_percent(&r->pool, run->point->percent);
    return line;
}

static void print_lines(FILE *out, const struct line *lines, size_t n)
{
    size_t widths[COLUMNS] = {0};

    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < VERDICT; c++) {
            size_t width = width_of(lines[i].cells[c]);

            widths[c] = width > widths[c] ? width : widths[c];
        }
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < VERDICT; c++)
            print_padded(out, lines[i].cells[c], widths[c] + 2);
        print_padded(out, lines[i].cells[VERDICT], 0);
        fputc('\n', out);
    }
}

/* The first few, of each matrix; the page has all. */
static void print_slow_pairs(FILE *out, struct report *r, const struct matrices *matrices)
{
    size_t printed = 0, all = 0;

    for (size_t i = 0; i < matrices->n; i++) {
        const struct matrix *m = &matrices->all[i];

        all += m->slow;
        for (size_t k = 0; k < m->n * m->n && printed < SLOW_MAX; k++) {
            if (!m->cells[k].slow)
                continue;
            printed++;
            print_padded(out,
                         pool_text(&r->pool, "slow: %s, %s: %s%s", m->metric, m->title,
                                   matrix_slow_text(r, m, k),
                                   show_origin(&r->pool, m->cells[k].point->origin)),
                         0);
            fputc('\n', out);
        }
    }
    if (all > printed)
        fprintf(out, "slow: %zu more pairs of GPUs, see the report\n", all - printed);
}

static int print_headlines(FILE *out, struct report *r, const struct headlines *h)
{
    struct line *lines = pool_alloc(&r->pool, h->n + 1, sizeof(*lines));

    if (!lines)
        return -ENOMEM;
    lines[0] = (struct line){{"pipe", "of", "value", "interval", "of limit", "verdict"}};
    for (size_t i = 0; i < h->n; i++)
        lines[i + 1] = line_of(r, h, i);
    fputc('\n', out);
    print_lines(out, lines, h->n + 1);
    if (*h->missing)
        fprintf(out, "not in this run: %s\n", h->missing);
    print_slow_pairs(out, r, &h->matrices);
    if (*h->no_gpu) {
        print_padded(out, headlines_no_gpu_text(&r->pool, h), 0);
        fputc('\n', out);
    }
    return r->pool.failed ? -ENOMEM : ferror(out) ? -EIO : 0;
}

int report_summary(FILE *out, const struct run_folder *run)
{
    struct headlines headlines;
    struct report r;
    int err = report_take(&r, run);

    if (!err)
        err = headlines_make(&r, &headlines);
    if (!err)
        err = print_headlines(out, &r, &headlines);
    report_release(&r);
    return err;
}

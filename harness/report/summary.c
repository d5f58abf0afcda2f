/* SPDX-License-Identifier: Apache-2.0 */
/* The headlines of one run as a table for a terminal. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "harness/report/headline.h"
#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/utf8.h"

#define SLOW_MAX      4  /* pairs of GPUs that are named */
#define OF_LEAST      16 /* columns */
#define VERDICT_LEAST 10 /* "not judged" */
#define INDENT        2  /* of what stands under a line */

enum { PIPE, OF, VALUE, INTERVAL, LIMIT, VERDICT, COLUMNS };

struct line {
    const char *cells[COLUMNS];
    size_t judged, shared; /* of the verdict: struct verdict */
};

/* What comes from files may hold what a terminal obeys: only what is printable is printed. */
static const char *printable(struct pool *pool, const char *text)
{
    size_t n, used, at = 0;
    char *kept = pool_alloc(pool, 3 * strlen(text) + 1, 1); /* a replacement takes three bytes */

    for (; kept && *text; text += used, at += n) {
        const char *c = utf8_printable(text, &n, &used);

        memcpy(kept + at, c, n);
    }
    return kept ? kept : "";
}

static size_t width_of(const char *text)
{
    return wrap_columns(text, strlen(text));
}

static struct line line_of(struct report *r, const struct headlines *h, size_t i)
{
    const struct headline *at = &h->all[i];
    const struct headline_run *run = &at->runs[0];
    bool repeats = i && !strcmp(h->all[i - 1].pipe, at->pipe);
    struct line line = {
        {repeats ? "" : at->pipe, at->label, "not measured", "", "", run->verdict.sentence},
        run->verdict.judged,
        run->verdict.shared};
    struct show_scale scale;

    const char *what = headline_what(&r->pool, run);
    if (*what)
        line.cells[OF] = pool_text(&r->pool, "%s (%s)", at->label, what);
    if (!run->point || !run->point->n_values)
        return line;
    scale = show_scale(run->point->value, run->best->unit);
    line.cells[VALUE] =
        pool_text(&r->pool, "%s %s%s", show_number(&r->pool, run->point->value * scale.factor),
                  scale.unit, show_origin(&r->pool, run->point->origin));
    line.cells[INTERVAL] = show_scaled_interval(&r->pool, run->point, scale.factor);
    line.cells[LIMIT] = show_share(&r->pool, run->point);
    return line;
}

static struct line printable_line(struct pool *pool, struct line line)
{
    for (size_t c = 0; c < COLUMNS; c++)
        line.cells[c] = printable(pool, line.cells[c]);
    return line;
}

/* Of all columns before the verdict, two blanks after each. What a case is of may be long: it goes
 * on in the next line where it would push the verdict's first word off the line. */
static void find_widths(const struct line *lines, size_t n, size_t line, size_t *widths)
{
    size_t others = VERDICT_LEAST;

    for (size_t c = 0; c < VERDICT; c++) {
        widths[c] = 0;
        for (size_t i = 0; i < n; i++)
            if (width_of(lines[i].cells[c]) > widths[c])
                widths[c] = width_of(lines[i].cells[c]);
        others += c == OF ? 2 : widths[c] + 2;
    }
    size_t room = line > others + OF_LEAST ? line - others : OF_LEAST;
    if (widths[OF] > room)
        widths[OF] = room;
}

/* Of a verdict that has no room, the judgement stays in the line. How many bytes of it that are. */
static size_t kept_bytes(const struct line *line, size_t room)
{
    const char *sentence = line->cells[VERDICT];

    if (width_of(sentence) <= room)
        return strlen(sentence);
    return line->judged <= room ? line->judged : 0;
}

/* What of the verdict is to go under the line: not the share that the line shows. */
static const char *rest_of(const struct line *line, size_t kept)
{
    const char *rest = line->cells[VERDICT] + kept;

    if (kept == line->judged)
        rest += strspn(rest, ": ");
    if (kept != line->judged || !line->shared || !*line->cells[LIMIT])
        return rest;
    rest += line->shared;
    return rest + strspn(rest, ";, ");
}

static void print_line(FILE *out, const struct line *line, const size_t *widths, size_t width)
{
    const char *of = line->cells[OF], *sentence = line->cells[VERDICT];
    size_t at = 0, pad = 0, next;

    for (size_t c = 0; c < VERDICT; c++) {
        const char *text = line->cells[c];
        size_t n = c == OF ? wrap_take(of, widths[OF], &next) : strlen(text);

        if (n)
            fprintf(out, "%*s%.*s", (int)pad, "", (int)n, text);
        pad = (n ? 0 : pad) + widths[c] + 2 - wrap_columns(text, n);
        of += c == OF ? next : 0;
        at += widths[c] + 2;
    }
    size_t judged = kept_bytes(line, width > at ? width - at : 0);
    if (judged)
        fprintf(out, "%*s%.*s", (int)pad, "", (int)judged, sentence);
    fputc('\n', out);
    for (; *of; of += next) {
        size_t n = wrap_take(of, widths[OF], &next);

        fprintf(out, "%*s%.*s\n", (int)widths[PIPE] + 2, "", (int)n, of);
    }
    wrap_print(out, rest_of(line, judged), widths[PIPE] + 2 + INDENT, width);
}

static void print_lines(FILE *out, const struct line *lines, size_t n)
{
    size_t widths[COLUMNS], width = wrap_width(out), cells = 0;
    struct line header = lines[0];

    find_widths(lines, n, width, widths);
    for (size_t c = 0; c < VERDICT; c++)
        cells += widths[c] + 2;
    if (cells + width_of(header.cells[VERDICT]) > width) /* verdicts are all under their lines */
        header.cells[VERDICT] = "";
    print_line(out, &header, widths, width);
    for (size_t i = 1; i < n; i++)
        print_line(out, &lines[i], widths, width);
}

/* A line that stands alone. */
static void print_wrapped(FILE *out, struct report *r, const char *text)
{
    size_t width = wrap_width(out), next, n;

    text = printable(&r->pool, text);
    n = wrap_take(text, width, &next);
    fprintf(out, "%.*s\n", (int)n, text);
    wrap_print(out, text + next, INDENT, width);
}

/* The first few, of each matrix; the page has all. */
static void print_slow_pairs(FILE *out, struct report *r, const struct matrices *matrices)
{
    size_t printed = 0, all = 0;

    for (size_t i = 0; i < matrices->n; i++) {
        const struct matrix *m = &matrices->all[i];

        for (size_t k = 0; k < m->n_slow_hosts; k++)
            print_wrapped(out, r,
                          pool_text(&r->pool, "slow: %s, %s: %s", m->metric, m->title,
                                    matrix_host_text(r, m, k)));
        if (m->vague)
            print_wrapped(out, r,
                          pool_text(&r->pool, "noisy: %s, %s: %s", m->metric, m->title,
                                    matrix_vague_text(r, m)));
        for (size_t k = 0; k < m->n * m->n; k++) {
            if (!matrix_is_listed(m, k) || ++all > SLOW_MAX)
                continue;
            printed++;
            print_wrapped(out, r,
                          pool_text(&r->pool, "slow: %s, %s: %s%s", m->metric, m->title,
                                    matrix_slow_text(r, m, k),
                                    show_origin(&r->pool, m->cells[k].point->origin)));
        }
    }
    if (all > printed)
        fprintf(out, "slow: %zu more pairs, see the report\n", all - printed);
}

static int print_headlines(FILE *out, struct report *r, const struct headlines *h)
{
    struct line *lines = pool_alloc(&r->pool, h->n + 1, sizeof(*lines));

    if (!lines)
        return -ENOMEM;
    lines[0] = (struct line){.cells = {"pipe", "of", "value", "interval", "of limit", "verdict"}};
    for (size_t i = 0; i < h->n; i++)
        lines[i + 1] = printable_line(&r->pool, line_of(r, h, i));
    fputc('\n', out);
    print_lines(out, lines, h->n + 1);
    const char *unsteady = headlines_unsteady_text(r, 0);
    if (*unsteady)
        print_wrapped(out, r, unsteady);
    if (*h->missing)
        print_wrapped(out, r, pool_text(&r->pool, "not in this run: %s", h->missing));
    if (*h->unheaded)
        print_wrapped(out, r,
                      pool_text(&r->pool, "no headline from the rows here: %s", h->unheaded));
    print_slow_pairs(out, r, &h->matrices);
    if (*h->no_gpu)
        print_wrapped(out, r, headlines_no_gpu_text(&r->pool, h));
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

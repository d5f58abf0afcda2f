/* SPDX-License-Identifier: Apache-2.0 */
/* A chart as SVG: see plot.h. This file writes lines and rows; plot_words.c has their texts. */
#include "harness/document/plot.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "harness/document/html.h"
#include "harness/document/plot_parts.h"

#define GAP         8.0 /* between labels, and between a label and what it names */
#define MARK_ROOM   7.0 /* a marker nearer to the one before would hide it */
#define BAND_FROM   60  /* points: from so many on, intervals are a band */
#define MARK_ROWS   3   /* of labels above the chart */
#define MARKS_MAX   64
#define BOLD        1.12 /* wider than plain text */
#define FINEST      2.0  /* radius of a marker where there are many */
#define NOTES_SHARE 0.34 /* of the width: the most that notes beside rows take */
#define NAMES_SHARE 0.40 /* and names; longer ones stand above their rows */

struct pen {
    FILE *out;
    struct pool *pool;
    const struct plot *p;
    bool narrow, inside; /* inside: names stand above their rows */
    double width, height, font, line;
    double left, right, top, bottom; /* of the frame */
    double row;                      /* height of a row, where `categories` */
    struct scale x, y;
    struct scale_ticks values; /* of the axis of values */
    double mark_at[MARKS_MAX];
    int mark_row[MARKS_MAX];          /* of its label; -1: it has none */
    const char *mark_text[MARKS_MAX]; /* which of its labels */
    int mark_rows;
};

static const char *const tone_class[] = {
    [TONE_NONE] = "", [TONE_LOW] = " d-low", [TONE_BAD] = " d-bad"};

/* The assembler takes it in as it is; the path is from the root of the sources, where make runs. */
__asm__(".pushsection .rodata.plot_style,\"a\"\n"
        ".type plot_style, %object\nplot_style:\n"
        ".incbin \"harness/document/plot.css\"\n"
        ".byte 0\n"
        ".size plot_style, . - plot_style\n"
        ".popsection\n");
extern const char plot_style[];

/* ---- texts and marks */

static void write_text(const struct pen *pen, double x, double y, const char *anchor,
                       const char *class, const char *text)
{
    fprintf(pen->out, "<text x='%.1f' y='%.1f' text-anchor='%s'", x, y, anchor);
    if (*class)
        fprintf(pen->out, " class='%s'", class);
    fputc('>', pen->out);
    html_text(pen->out, text);
    fputs("</text>\n", pen->out);
}

static void write_title(const struct pen *pen, const char *text)
{
    fputs("<title>", pen->out);
    html_text(pen->out, text);
    fputs("</title>", pen->out);
}

/* The outline of a marker: circle, square, triangles, diamond. */
static void marker_path(FILE *out, size_t marker, double x, double y, double r)
{
    switch (marker % 5) {
    case 0:
        fprintf(out, "M%.1f,%.1fa%.1f,%.1f 0 1 0 %.1f,0a%.1f,%.1f 0 1 0 -%.1f,0z", x - r, y, r, r,
                2 * r, r, r, 2 * r);
        break;
    case 1:
        fprintf(out, "M%.1f,%.1fh%.1fv%.1fh-%.1fz", x - r, y - r, 2 * r, 2 * r, 2 * r);
        break;
    case 2:
        fprintf(out, "M%.1f,%.1fl%.1f,%.1fh-%.1fz", x, y - 1.2 * r, 1.2 * r, 2.1 * r, 2.4 * r);
        break;
    case 3:
        fprintf(out, "M%.1f,%.1fl%.1f,-%.1fh-%.1fz", x, y + 1.2 * r, 1.2 * r, 2.1 * r, 2.4 * r);
        break;
    default:
        fprintf(out, "M%.1f,%.1fl%.1f,%.1fl-%.1f,%.1fl-%.1f,-%.1fz", x, y - 1.3 * r, 1.3 * r,
                1.3 * r, 1.3 * r, 1.3 * r, 1.3 * r, 1.3 * r);
    }
}

static void write_marker(const struct pen *pen, const struct plot_line *line,
                         const struct plot_point *point, double x, double y, double r,
                         enum tone tone)
{
    fprintf(pen->out, "<path class='mark%s%s' d='", line->dashed ? " open" : "", tone_class[tone]);
    marker_path(pen->out, line->marker, x, y, r);
    fputs("'>", pen->out);
    write_title(pen, plot_point_text(pen->pool, pen->p, line, point));
    fputs("</path>\n", pen->out);
}

static void open_line(const struct pen *pen, const struct plot_line *line)
{
    fprintf(pen->out, "<g class='line s%zu'>", line->colour % PLOT_COLOURS);
    write_title(pen, line->label);
    fputc('\n', pen->out);
}

/* ---- the frame */

static double label_width(const struct pen *pen, const struct plot_tick *ticks, size_t n)
{
    double width = 0;

    for (size_t i = 0; i < n; i++)
        width = fmax(width, text_width(ticks[i].label, pen->font));
    return width;
}

static double note_width(const struct pen *pen)
{
    double width = 0;

    for (size_t i = 0; pen->p->rows && i < pen->p->n_ticks; i++)
        if (pen->p->rows[i].note)
            width = fmax(width, BOLD * text_width(pen->p->rows[i].note, pen->font));
    return width;
}

/* The label of a vertical line, in the lowest row above the chart in which it touches no other. */
static void place_mark(struct pen *pen, size_t i, double *ends)
{
    const struct plot_mark *m = &pen->p->marks[i];
    const char *texts[] = {pen->narrow && m->brief ? m->brief : m->label, m->brief};

    for (int k = 0; k < 2 && pen->mark_row[i] < 0; k++) {
        double half = texts[k] ? text_width(texts[k], pen->font) / 2 : 0;
        double at = fmin(fmax(pen->mark_at[i], pen->left + half), pen->width - half);

        for (int row = 0; texts[k] && row < MARK_ROWS && pen->mark_row[i] < 0; row++) {
            if (at - half < ends[row])
                continue;
            ends[row] = at + half + GAP;
            pen->mark_row[i] = row;
            pen->mark_text[i] = texts[k];
            pen->mark_rows = row + 1 > pen->mark_rows ? row + 1 : pen->mark_rows;
        }
    }
}

/* A mark across: at a value where rows are shown, at a place on x where lines are. */
static bool is_upright(const struct plot *p, const struct plot_mark *m)
{
    return m->horizontal == p->categories;
}

static size_t drawn_marks(const struct pen *pen)
{
    return pen->p->n_marks < MARKS_MAX ? pen->p->n_marks : MARKS_MAX;
}

/* The leftmost mark that has no place yet, the first of several at one place; or `n`. */
static size_t next_mark(const struct pen *pen, const bool *is_placed, size_t n)
{
    size_t next = n;

    for (size_t i = 0; i < n; i++)
        if (!is_placed[i] && (next == n || pen->mark_at[i] < pen->mark_at[next]))
            next = i;
    return next;
}

static bool is_in_frame(const struct pen *pen, double at)
{
    return at >= pen->left - 1 && at <= pen->right + 1;
}

static void place_marks(struct pen *pen)
{
    double ends[MARK_ROWS];
    bool is_placed[MARKS_MAX];
    size_t n = drawn_marks(pen);

    for (int row = 0; row < MARK_ROWS; row++)
        ends[row] = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const struct plot_mark *m = &pen->p->marks[i];

        pen->mark_at[i] = is_upright(pen->p, m) ? scale_at(&pen->x, m->at) : NAN;
        pen->mark_row[i] = -1;
        is_placed[i] = !is_in_frame(pen, pen->mark_at[i]);
    }
    for (size_t i; (i = next_mark(pen, is_placed, n)) < n;) {
        is_placed[i] = true;
        place_mark(pen, i, ends);
    }
}

/* One label for the title and an axis: has the title these words? */
static bool is_said(const struct plot *p, const char *label)
{
    const char *at = strstr(p->title, label);
    size_t n = strlen(label);

    while (n && at &&
           ((at > p->title && isalnum((unsigned char)at[-1])) || isalnum((unsigned char)at[n])))
        at = strstr(at + 1, label);
    return at != NULL;
}

static void make_rows(struct pen *pen)
{
    const struct plot *p = pen->p;
    double names = label_width(pen, p->ticks, p->n_ticks), notes = note_width(pen);
    double room = pen->width * NOTES_SHARE;

    pen->inside = names > pen->width * NAMES_SHARE || (pen->narrow && notes > 0);
    pen->row = pen->inside ? 2.4 * pen->line : 1.4 * pen->line;
    pen->left = pen->inside ? GAP : names + GAP;
    pen->right = pen->width - GAP;
    if (!pen->inside && notes > 0)
        pen->right -= fmin(notes, room) + GAP;
    pen->x.from = pen->left + GAP;
    pen->x.to = pen->right - GAP;
    scale_ticks(pen->pool, &pen->x, (size_t)((pen->x.to - pen->x.from) / (5 * pen->font)), p->ratio,
                p->shown_low < p->shown_high, &pen->values);
    place_marks(pen);
    pen->top = GAP + pen->line * pen->mark_rows;
    pen->bottom = pen->top + pen->row * (double)p->n_ticks + GAP / 2;
    pen->height = pen->bottom + (is_said(p, p->x_label) ? 1.4 : 2.6) * pen->line;
    pen->y = (struct scale){.low = -0.5,
                            .high = (double)p->n_ticks - 0.5,
                            .from = pen->top + GAP / 4,
                            .to = pen->bottom - GAP / 4};
}

static void make_axes(struct pen *pen)
{
    const struct plot *p = pen->p;
    double width = 0, first = 0, last = 5 * pen->font; /* of labels; of numbers, that is enough */

    pen->height = pen->narrow ? 290 : 330;
    pen->bottom = pen->height - 2.6 * pen->line;
    pen->y.from = pen->bottom;
    pen->y.to = 2.2 * pen->line;
    scale_ticks(pen->pool, &pen->y, (size_t)((pen->y.from - pen->y.to) / (2.6 * pen->font)),
                p->ratio, p->shown_low < p->shown_high, &pen->values);
    for (size_t i = 0; i < pen->values.n; i++)
        width = fmax(width, text_width(pen->values.labels[i], pen->font));
    if (p->n_ticks) {
        first = text_width(p->ticks[0].label, pen->font);
        last = text_width(p->ticks[p->n_ticks - 1].label, pen->font);
    }
    pen->left = fmax(width + GAP, first / 2);
    pen->right = pen->width - fmax(last / 2, GAP);
    pen->x.from = pen->left;
    pen->x.to = pen->right;
    place_marks(pen);
    pen->top = pen->line * ((is_said(p, p->y_label) ? 0.4 : 1.4) + pen->mark_rows) + GAP / 2;
    pen->y.to = pen->top;
}

static void write_value_grid(const struct pen *pen)
{
    bool rows = pen->p->categories;

    fputs("<path class='grid' d='", pen->out);
    for (size_t i = 0; i < pen->values.n; i++) {
        double at = scale_at(rows ? &pen->x : &pen->y, pen->values.at[i]);

        if (rows)
            fprintf(pen->out, "M%.1f,%.1fV%.1f", at, pen->top, pen->bottom);
        else
            fprintf(pen->out, "M%.1f,%.1fH%.1f", pen->left, at, pen->right);
    }
    fputs("'/>\n", pen->out);
}

/* Labels along the x axis, from the left; the last one stands rather than the one before it. */
static void write_labels(const struct pen *pen, const char *class, const double *at,
                         const char *const *labels, size_t n)
{
    double y = pen->bottom + 1.15 * pen->line, end = -INFINITY;
    double last = n ? at[n - 1] - text_width(labels[n - 1], pen->font) / 2 : 0;

    fprintf(pen->out, "<g class='%s'>\n", class);
    for (size_t i = 0; i < n; i++) {
        double half = text_width(labels[i], pen->font) / 2;

        if (at[i] - half < end || at[i] + half > pen->width ||
            (i + 1 < n && at[i] + half + GAP > last))
            continue;
        end = at[i] + half + GAP;
        fprintf(pen->out, "<path class='axis' d='M%.1f,%.1fv4'/>", at[i], pen->bottom);
        write_text(pen, at[i], y, "middle", "", labels[i]);
    }
    fputs("</g>\n", pen->out);
}

static void write_x_labels(const struct pen *pen)
{
    const struct plot *p = pen->p;
    struct scale_ticks own = {.n = 0};
    struct scale x = pen->x;
    const char **labels;
    double *at;
    size_t n = p->n_ticks;

    size_t most = (size_t)((x.to - x.from) / (5 * pen->font));
    if (p->x_bytes && x.log)
        scale_byte_ticks(pen->pool, &x, most, &own);
    else if (!n)
        scale_ticks(pen->pool, &x, most, false, true, &own);
    n = own.n ? own.n : n;
    at = pool_alloc(pen->pool, n + 1, sizeof(*at));
    labels = pool_alloc(pen->pool, n + 1, sizeof(*labels));
    for (size_t i = 0; i < n; i++) {
        at[i] = scale_at(&pen->x, own.n ? own.at[i] : p->ticks[i].at);
        labels[i] = own.n ? own.labels[i] : p->ticks[i].label;
    }
    write_labels(pen, "x-ticks", at, labels, n);
}

static void write_value_labels(const struct pen *pen)
{
    double at[SCALE_TICKS_MAX];

    for (size_t i = 0; i < pen->values.n; i++)
        at[i] = scale_at(pen->p->categories ? &pen->x : &pen->y, pen->values.at[i]);
    if (pen->p->categories) {
        write_labels(pen, "value-ticks", at, pen->values.labels, pen->values.n);
        return;
    }
    fputs("<g class='value-ticks'>\n", pen->out);
    for (size_t i = 0; i < pen->values.n; i++)
        write_text(pen, pen->left - GAP / 2, at[i] + 0.35 * pen->font, "end", "",
                   pen->values.labels[i]);
    fputs("</g>\n", pen->out);
}

static void write_upright_mark(const struct pen *pen, size_t i)
{
    const struct plot_mark *m = &pen->p->marks[i];
    double at = pen->mark_at[i];
    double half = pen->mark_row[i] < 0 ? 0 : text_width(pen->mark_text[i], pen->font) / 2;

    if (!is_in_frame(pen, at))
        return;
    fprintf(pen->out, "<path class='limit' d='M%.1f,%.1fV%.1f'>", at, pen->top, pen->bottom);
    write_title(pen, m->label);
    fputs("</path>\n", pen->out);
    if (pen->mark_row[i] >= 0)
        write_text(pen, fmin(fmax(at, pen->left + half), pen->width - half),
                   pen->top - 4 - pen->line * pen->mark_row[i], "middle", "faint",
                   pen->mark_text[i]);
}

/* A level across, its label above it at its right end; below it where another one stands. */
static void write_level(const struct pen *pen, size_t i, double *labels, size_t *n_labels)
{
    const struct plot_mark *m = &pen->p->marks[i];
    double y = scale_at(&pen->y, m->at), text = y - 4;
    double from = isnan(m->from) ? pen->left : fmax(scale_at(&pen->x, m->from) - 6, pen->left);
    double to = isnan(m->to) ? pen->right : fmin(scale_at(&pen->x, m->to) + 6, pen->right);
    double width = text_width(m->label, pen->font);

    if (y < pen->top - 1 || y > pen->bottom + 1)
        return;
    fprintf(pen->out, "<path class='limit' d='M%.1f,%.1fH%.1f'>", from, y, to);
    write_title(pen, m->label);
    fputs("</path>\n", pen->out);
    for (size_t k = 0; k < *n_labels; k++)
        if (fabs(labels[k] - text) < pen->line - 0.01) {
            text = labels[k] + pen->line;
            k = (size_t)-1; /* it may touch another one there */
        }
    if (text > pen->bottom - 2 || *n_labels == MARKS_MAX || (m->brief && !*m->brief))
        return;
    labels[(*n_labels)++] = text;
    write_text(pen, fmax(to, fmin(pen->left + width, pen->right)), text, "end", "faint", m->label);
}

static void write_marks(const struct pen *pen)
{
    double labels[MARKS_MAX];
    size_t n = 0;

    for (size_t i = 0; i < drawn_marks(pen); i++)
        if (is_upright(pen->p, &pen->p->marks[i]))
            write_upright_mark(pen, i);
        else if (!pen->p->categories)
            write_level(pen, i, labels, &n);
}

static void write_band(const struct pen *pen)
{
    const struct plot *p = pen->p;
    const struct scale *s = p->categories ? &pen->x : &pen->y;
    double low, high;

    if (!(p->band_high > 0))
        return;
    low = scale_at(s, fmax(p->band_low, s->low));
    high = scale_at(s, fmin(p->band_high, s->high));
    if (p->categories)
        fprintf(pen->out, "<rect class='margin' x='%.1f' y='%.1f' width='%.1f' height='%.1f'/>\n",
                low, pen->top, high - low, pen->bottom - pen->top);
    else
        fprintf(pen->out, "<rect class='margin' x='%.1f' y='%.1f' width='%.1f' height='%.1f'/>\n",
                pen->left, high, pen->right - pen->left, low - high);
}

static void write_frame(const struct pen *pen)
{
    const struct plot *p = pen->p;

    write_band(pen);
    write_value_grid(pen);
    fprintf(pen->out, "<path class='axis' d='M%.1f,%.1fV%.1fH%.1f'/>\n", pen->left, pen->top,
            pen->bottom, pen->right);
    write_value_labels(pen);
    if (!p->categories)
        write_x_labels(pen);
    if (!is_said(p, p->x_label))
        write_text(pen, (pen->left + pen->right) / 2, pen->height - 0.35 * pen->line, "middle",
                   "x-title",
                   text_cut(pen->pool, p->x_label, BOLD * pen->font, pen->right - pen->left));
    if (!is_said(p, p->y_label))
        write_text(pen, 0, pen->line, "start", "y-title",
                   text_cut(pen->pool, p->y_label, BOLD * pen->font, pen->width));
    write_marks(pen);
}

/* ---- lines */

/* A point that is no number, or not above 0 where the axis has no 0, is a gap. */
static bool is_drawn(const struct pen *pen, const struct plot_point *p)
{
    return plot_shows(pen->p, p->y) && !(pen->x.log && p->x <= 0);
}

static void write_curve(const struct pen *pen, const struct plot_line *line)
{
    bool on = false;

    fprintf(pen->out, "<path class='curve%s' d='", line->dashed ? " dashed" : "");
    for (size_t i = 0; i < line->n; i++) {
        const struct plot_point *p = &line->points[i];

        if (is_drawn(pen, p))
            fprintf(pen->out, "%c%.1f,%.1f", on ? 'L' : 'M', scale_at(&pen->x, p->x),
                    scale_at(&pen->y, p->y));
        on = is_drawn(pen, p);
    }
    fputs("'/>\n", pen->out);
}

/* Intervals end where the frame does. */
static double frame_at(const struct scale *s, double value)
{
    return scale_at(s, fmin(fmax(value, s->low), s->high));
}

static bool is_beyond(const struct scale *s, double value)
{
    return value < s->low || value > s->high;
}

/* An end beyond the frame has an arrow in place of its head. */
static void write_end(const struct pen *pen, double value, double x, double y)
{
    bool rows = pen->p->categories;
    const struct scale *s = rows ? &pen->x : &pen->y;
    int out = value < s->low ? -4 : 4;

    if (!is_beyond(s, value))
        fprintf(pen->out, rows ? "M%.1f,%.1fv6" : "M%.1f,%.1fh6", rows ? x : x - 3,
                rows ? y - 3 : y);
    else if (rows)
        fprintf(pen->out, "M%.1f,%.1fl%d,4l%d,4", x - out, y - 4, out, -out);
    else
        fprintf(pen->out, "M%.1f,%.1fl4,%dl4,%d", x - 4, y + out, -out, out);
}

static bool has_interval(const struct plot_point *p)
{
    return !isnan(p->low) && !isnan(p->high);
}

/* There and back around each stretch of points that have intervals; arrows where there is room. */
static void write_interval_band(const struct pen *pen, const struct plot_line *line)
{
    fputs("<path class='band' d='", pen->out);
    for (size_t i = 0, end; i < line->n; i = end + 1) {
        for (end = i;
             end < line->n && is_drawn(pen, &line->points[end]) && has_interval(&line->points[end]);
             end++)
            fprintf(pen->out, "%c%.1f,%.1f", end == i ? 'M' : 'L',
                    scale_at(&pen->x, line->points[end].x),
                    frame_at(&pen->y, line->points[end].high));
        for (size_t k = end; k > i; k--)
            fprintf(pen->out, "L%.1f,%.1f", scale_at(&pen->x, line->points[k - 1].x),
                    frame_at(&pen->y, line->points[k - 1].low));
        fputs(end > i ? "Z" : "", pen->out);
    }
    fputs("'/>\n<path class='bar' d='", pen->out);
    double last[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < line->n; i++) {
        const struct plot_point *p = &line->points[i];
        const double ends[] = {p->low, p->high}, x = scale_at(&pen->x, p->x);

        for (int k = 0; k < 2; k++)
            if (is_drawn(pen, p) && has_interval(p) && is_beyond(&pen->y, ends[k]) &&
                x - last[k] >= 2 * MARK_ROOM) {
                write_end(pen, ends[k], x, frame_at(&pen->y, ends[k]));
                last[k] = x;
            }
    }
    fputs("'/>\n", pen->out);
}

static void write_interval_bars(const struct pen *pen, const struct plot_line *line)
{
    fputs("<path class='bar' d='", pen->out);
    for (size_t i = 0; i < line->n; i++) {
        const struct plot_point *p = &line->points[i];
        double x = scale_at(&pen->x, p->x), low, high;

        if (!is_drawn(pen, p) || !has_interval(p))
            continue;
        low = frame_at(&pen->y, p->low);
        high = frame_at(&pen->y, p->high);
        fprintf(pen->out, "M%.1f,%.1fV%.1f", x, low, high);
        if (low - high <= 3 && !is_beyond(&pen->y, p->low) && !is_beyond(&pen->y, p->high))
            continue;
        write_end(pen, p->low, x, low);
        write_end(pen, p->high, x, high);
    }
    fputs("'/>\n", pen->out);
}

/* Markers, as long as each leaves the one before to be seen; the last one in any case. */
static void write_markers(const struct pen *pen, const struct plot_line *line)
{
    double last_x = -INFINITY, last_y = -INFINITY;
    double r = line->apart && line->n > BAND_FROM ? FINEST : 3.2;
    double room = line->n > BAND_FROM ? 2 * MARK_ROOM : MARK_ROOM;

    for (size_t i = 0; i < line->n; i++) {
        const struct plot_point *p = &line->points[i];
        double x, y;

        if (!is_drawn(pen, p))
            continue;
        x = scale_at(&pen->x, p->x);
        y = scale_at(&pen->y, p->y);
        if (!line->apart && i + 1 < line->n && hypot(x - last_x, y - last_y) < room)
            continue;
        write_marker(pen, line, p, x, y, r, TONE_NONE);
        last_x = x;
        last_y = y;
    }
}

static void write_line(const struct pen *pen, const struct plot_line *line)
{
    open_line(pen, line);
    if (line->n > BAND_FROM && !line->apart)
        write_interval_band(pen, line);
    else
        write_interval_bars(pen, line);
    if (!line->apart)
        write_curve(pen, line);
    if (!line->plain)
        write_markers(pen, line);
    fputs("</g>\n", pen->out);
}

/* ---- rows */

static void write_row_names(const struct pen *pen)
{
    const struct plot *p = pen->p;

    fputs("<g class='names'>\n", pen->out);
    for (size_t i = 0; i < p->n_ticks; i++) {
        const struct plot_row *row = p->rows ? &p->rows[i] : NULL;
        double y = scale_at(&pen->y, p->ticks[i].at), note = 0;
        const char *class = row ? tone_class[row->tone] : "";

        if (row && row->note) {
            const char *text =
                text_cut(pen->pool, row->note, BOLD * pen->font,
                         pen->inside ? pen->width / 2 : pen->width - pen->right - GAP);

            note = BOLD * text_width(text, pen->font) + GAP;
            if (pen->inside)
                write_text(pen, pen->right, y - 0.25 * pen->line, "end", class + (*class == ' '),
                           text);
            else
                write_text(pen, pen->right + GAP, y + 0.35 * pen->font, "start",
                           class + (*class == ' '), text);
        }
        if (pen->inside)
            write_text(pen, pen->left + GAP / 2, y - 0.25 * pen->line, "start", "name",
                       text_cut(pen->pool, p->ticks[i].label, pen->font,
                                pen->right - pen->left - GAP / 2 - note));
        else
            write_text(pen, pen->left - GAP, y + 0.35 * pen->font, "end", "name",
                       p->ticks[i].label);
    }
    fputs("</g>\n", pen->out);
}

/* Rows of several lines have them one under another, as far as there is room. */
static double row_y(const struct pen *pen, size_t line, double tick)
{
    double room = pen->line * 0.8 / (double)pen->p->n_lines;
    double apart = pen->p->y_from_zero ? room : fmin(5, room);
    double at = scale_at(&pen->y, tick) + (pen->inside ? 0.45 * pen->line : 0);

    return at + apart * ((double)line - ((double)pen->p->n_lines - 1) / 2);
}

/* The bar of a value, from 0. */
static void write_amount(const struct pen *pen, size_t line, const struct plot_point *p,
                         enum tone tone)
{
    double half = 0.3 * pen->line / (double)pen->p->n_lines, y = row_y(pen, line, p->x);

    fprintf(pen->out, "<path class='amount%s' d='M%.1f,%.1fH%.1fV%.1fH%.1fz'>", tone_class[tone],
            pen->x.from, y - half, frame_at(&pen->x, p->y), y + half, pen->x.from);
    write_title(pen, plot_point_text(pen->pool, pen->p, &pen->p->lines[line], p));
    fputs("</path>\n", pen->out);
}

static void write_row_point(const struct pen *pen, size_t line, const struct plot_point *p)
{
    const struct plot *plot = pen->p;
    double y = row_y(pen, line, p->x), x = frame_at(&pen->x, p->y);
    enum tone tone = TONE_NONE;

    for (size_t i = 0; plot->rows && i < plot->n_ticks; i++)
        tone = plot->ticks[i].at == p->x ? plot->rows[i].tone : tone;
    if (plot->y_from_zero)
        write_amount(pen, line, p, tone);
    if (has_interval(p)) {
        double low = frame_at(&pen->x, p->low), high = frame_at(&pen->x, p->high);

        fprintf(pen->out, "<path class='bar%s' d='M%.1f,%.1fH%.1f", tone_class[tone], low, y, high);
        write_end(pen, p->low, low, y);
        write_end(pen, p->high, high, y);
        fputs("'/>", pen->out);
    }
    if (!plot->y_from_zero && p->y >= pen->x.low && p->y <= pen->x.high)
        write_marker(pen, &plot->lines[line], p, x, y, 3.4, tone);
}

static void write_row_limits(const struct pen *pen)
{
    for (size_t i = 0; pen->p->rows && i < pen->p->n_ticks; i++) {
        double limit = pen->p->rows[i].limit, half = 0.5 * pen->line;
        double y = scale_at(&pen->y, pen->p->ticks[i].at) + (pen->inside ? 0.45 * pen->line : 0);

        if (!(limit > 0) || limit > pen->x.high)
            continue;
        fprintf(pen->out, "<path class='row-limit' d='M%.1f,%.1fv%.1f'>", frame_at(&pen->x, limit),
                y - half, 2 * half);
        write_title(pen, pool_text(pen->pool, "limit %.4g", limit));
        fputs("</path>\n", pen->out);
    }
}

static void write_rows(const struct pen *pen)
{
    write_row_names(pen);
    for (size_t i = 0; i < pen->p->n_lines; i++) {
        const struct plot_line *line = &pen->p->lines[i];

        open_line(pen, line);
        for (size_t k = 0; k < line->n; k++)
            if (plot_shows(pen->p, line->points[k].y))
                write_row_point(pen, i, &line->points[k]);
        fputs("</g>\n", pen->out);
    }
    write_row_limits(pen);
}

/* ---- the picture */

static struct pen pen_of(struct pool *pool, const struct plot *plot, bool narrow, FILE *out)
{
    struct pen pen = {.out = out,
                      .pool = pool,
                      .p = plot,
                      .narrow = narrow,
                      .width = narrow ? 340 : 560,
                      .font = narrow ? 13 : 12};

    pen.line = 1.3 * pen.font;
    if (plot->categories) {
        scale_of_values(plot, &pen.x);
        make_rows(&pen);
    } else {
        scale_of_values(plot, &pen.y);
        scale_of_places(plot, &pen.x);
        make_axes(&pen);
    }
    pen.height = ceil(pen.height);
    return pen;
}

static void write_picture(const struct pen *pen)
{
    fprintf(pen->out, "viewBox='0 0 %.0f %.0f' role='img' font-size='%.0f'>\n", pen->width,
            pen->height, pen->font);
    write_title(pen, pen->p->title);
    fputs("<desc>", pen->out);
    html_text(pen->out, plot_description(pen->pool, pen->p));
    fputs("</desc>\n", pen->out);
    write_frame(pen);
    if (pen->p->categories)
        write_rows(pen);
    for (size_t i = 0; !pen->p->categories && i < pen->p->n_lines; i++)
        write_line(pen, &pen->p->lines[i]);
    fputs("</svg>\n", pen->out);
}

void plot_write_svg(struct pool *pool, const struct plot *plot, bool narrow, FILE *out)
{
    struct pen pen = pen_of(pool, plot, narrow, out);

    fputs("<svg class='d-plot' ", out);
    write_picture(&pen);
}

/* ---- with its legend */

/* One a line, where there are two. */
static size_t count_keys(const struct plot *plot)
{
    return plot->n_lines > 1 ? plot->n_lines : 0;
}

/* The line as it is drawn, 30 wide and 12 high. */
static void write_sample(FILE *out, const struct plot *plot, const struct plot_line *line)
{
    fprintf(out, "<g class='line s%zu'>", line->colour % PLOT_COLOURS);
    if (!plot->categories && !line->apart)
        fprintf(out, "<path class='curve%s' d='M0,6h30'/>", line->dashed ? " dashed" : "");
    if (!line->plain) {
        fprintf(out, "<path class='mark%s' d='", line->dashed ? " open" : "");
        marker_path(out, line->marker, 15, 6, 3.6);
        fputs("'/>", out);
    }
    fputs("</g>", out);
}

void plot_write_html(struct pool *pool, const struct plot *plot, FILE *out)
{
    size_t n = count_keys(plot);

    if (n)
        fputs("<ul class='d-legend'>", out);
    for (size_t i = 0; i < n; i++) {
        fputs("<li><svg class='d-key' viewBox='0 0 30 12' aria-hidden='true'>", out);
        write_sample(out, plot, &plot->lines[i]);
        html_print(out, "</svg>%s</li>", plot->lines[i].label);
    }
    if (n)
        fputs("</ul>\n", out);
    fputs("<div class='d-wide'>", out);
    plot_write_svg(pool, plot, false, out);
    fputs("</div><div class='d-narrow'>", out);
    plot_write_svg(pool, plot, true, out);
    fputs("</div>\n", out);
}

/* ---- a file of its own */

#define TITLE_LINES 4

/* The text in lines of the picture's width, broken between words; what has no room is cut. */
static size_t break_lines(const struct pen *pen, const char *text, const char **lines)
{
    size_t n = 0;

    while (*text && n < TITLE_LINES) {
        size_t length = strlen(text);

        lines[n] = text;
        while (length && text_width(lines[n], BOLD * pen->font) > pen->width) {
            do
                length--;
            while (length && text[length] != ' ');
            lines[n] = pool_text(pen->pool, "%.*s", (int)length, text);
        }
        if (!length || n + 1 == TITLE_LINES)
            lines[n] = text_cut(pen->pool, text, BOLD * pen->font, pen->width);
        text += length ? length : strlen(text);
        text += strspn(text, " ");
        n++;
    }
    return n;
}

/* The title, the picture, the legend. */
static void write_file(struct pool *pool, const struct plot *plot, FILE *out)
{
    const struct pen pen = pen_of(pool, plot, false, out);
    const char *title[TITLE_LINES];
    size_t n_keys = count_keys(plot);
    size_t n = break_lines(
        &pen,
        plot->watermark ? pool_text(pool, "%s (%s)", plot->title, plot->watermark) : plot->title,
        title);
    double y = pen.line * (double)n + GAP;

    fprintf(out,
            "<svg xmlns='http://www.w3.org/2000/svg' class='d-plot d-file' width='840' "
            "viewBox='-%.0f 0 %.0f %.0f' font-size='%.0f'>\n<style>%s</style>\n"
            "<rect class='page' x='-%.0f' width='100%%' height='100%%'/>\n",
            GAP, pen.width + 2 * GAP, y + pen.height + pen.line * (double)n_keys + GAP, pen.font,
            plot_style, GAP);
    for (size_t i = 0; i < n; i++)
        write_text(&pen, 0, pen.line * (double)(i + 1), "start", "x-title", title[i]);
    fprintf(out, "<svg y='%.1f' width='%.0f' height='%.0f' ", y, pen.width, pen.height);
    write_picture(&pen);
    for (size_t i = 0; i < n_keys; i++) {
        fprintf(out, "<g transform='translate(%.0f,%.1f)'>", GAP,
                y + pen.height + pen.line * (double)i);
        write_sample(out, plot, &plot->lines[i]);
        write_text(&pen, 38, 6 + 0.35 * pen.font, "start", "",
                   text_cut(pool, plot->lines[i].label, pen.font, pen.width - 38 - GAP));
        fputs("</g>\n", out);
    }
    fputs("</svg>\n", out);
}

int plot_write_files(struct pool *pool, const struct plot *plots, size_t n, const char *folder,
                     char *error, size_t len)
{
    int err = mkdir(folder, 0777) && errno != EEXIST ? -errno : 0;
    const char *path = folder;

    for (size_t i = 0; !err && i < n; i++) {
        path = pool_text(pool, "%s/%s.svg", folder, plots[i].name);
        FILE *out = fopen(path, "we");

        if (out)
            write_file(pool, &plots[i], out);
        err = out ? stream_finish(out) : -errno;
    }
    if (err)
        snprintf(error, len, "cannot write \"%s\": %s", path, strerror(-err));
    return err ? -EIO : 0;
}

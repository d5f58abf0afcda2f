/* SPDX-License-Identifier: Apache-2.0 */
/* The gnuplot script: see plot.h. */
#include "harness/report/plot.h"

#include <math.h>
#include <string.h>

#include "harness/document/utf8.h"

/* How one picture differs from another of the same plot. */
struct format {
    const char *terminal, *suffix, *font;
    unsigned width, height;
    unsigned line_height; /* of a category or a legend line */
    double ticks;         /* as many fit on the x axis */
    double marks;         /* as many labels of marks fit beside each other */
    size_t name_length;   /* of a category, beside the axis */
};

static const struct format files[] = {
    {"svg dynamic", ".svg", "Helvetica,Arial,sans-serif", 800, 460, 20, 9, 9, 40},
    {"pngcairo", ".png", "DejaVu Sans", 1600, 920, 40, 9, 9, 40},
};

/* The page's palette in light (document.css). */
static const char *const colours[PLOT_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                  "#e69f00", "#56b4e9", "#6b6b00", "#7f7f7f"};

#define GRID_COLOUR   "#dddddd"
#define MARK_COLOUR   "#808080"
#define APOSTROPHE    "\xe2\x80\x99" /* U+2019 */
#define X_MARGIN      0.02           /* of the axis, on either side */
#define DENSE_POINTS  200            /* beyond, markers hide each other */
#define FONT_SIZE     13
#define TITLE_LENGTH  88 /* bytes on a line */
#define PNG_FONT_SIZE 20 /* a picture is twice as wide; fontscale would not move the legend */
#define AXIS                                                                                       \
    0.7 /* of a picture is x axis at the least; the rest is for names and numbers beside it */

/* Not even '' inside is safe: gnuplot 5.4 ends the string there when it stands at its beginning. */
static void plot_script_quote(FILE *out, const char *text)
{
    size_t n, used;

    fputc('\'', out);
    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        if (*c == '\'')
            fputs(APOSTROPHE, out);
        else
            fwrite(c, 1, n, out);
    }
    fputc('\'', out);
}

static void write_number(FILE *out, double value)
{
    if (isnan(value))
        fputs(" NaN", out);
    else
        fprintf(out, " %.9g", value);
}

static void write_data(FILE *out, size_t number, const struct plot_line *line)
{
    fprintf(out, "$line%zu << END\n", number);
    for (size_t i = 0; i < line->n; i++) {
        const struct plot_point *p = &line->points[i];

        write_number(out, p->x);
        write_number(out, p->y);
        write_number(out, p->low);
        write_number(out, p->high);
        fputc('\n', out);
    }
    fputs("END\n", out);
}

/* Where x lies on an axis of length 1. */
static double place(const struct plot *plot, double low, double high, double x)
{
    if (high <= low)
        return 0;
    return plot->x_log ? log(x / low) / log(high / low) : (x - low) / (high - low);
}

static void write_tick(FILE *out, const struct plot_tick *tick, bool first)
{
    fputs(first ? "" : ", ", out);
    plot_script_quote(out, tick->label);
    fprintf(out, " %.17g", tick->at);
}

/* A little wider than the values: no point lies on the frame. */
static void write_x_range(FILE *out, const struct plot *plot, double low, double high)
{
    if (high <= low)
        return;
    if (plot->x_log)
        fprintf(out, "set xrange [%.9g:%.9g]\n", low * pow(high / low, -X_MARGIN),
                high * pow(high / low, X_MARGIN));
    else
        fprintf(out, "set xrange [%.9g:%.9g]\n", low - X_MARGIN * (high - low),
                high + X_MARGIN * (high - low));
}

/* How much of the x axis a label of so many characters wants, with one of them free. */
static double share_of(const struct format *f, size_t characters)
{
    double pixels = strstr(f->terminal, "png") ? 17 : 8; /* of a digit, as fonts draw it */

    return fmax((double)(characters + 1) * pixels / (AXIS * f->width), 1 / f->ticks);
}

/* As many of the ticks as have room, from the left; the last one stands rather than its
 * neighbour. */
static void write_x_ticks(FILE *out, const struct plot *plot, const struct format *f)
{
    double low = plot->ticks[0].at, high = plot->ticks[plot->n_ticks - 1].at, last = -1;

    fputs("set xtics nomirror (", out);
    for (size_t i = 0; i < plot->n_ticks; i++) {
        double at = place(plot, low, high, plot->ticks[i].at);
        double share = share_of(f, strlen(plot->ticks[i].label));
        bool is_end = i == 0 || i + 1 == plot->n_ticks;

        if (!is_end && (at - last < share || 1 - at < share))
            continue;
        write_tick(out, &plot->ticks[i], last < 0);
        last = at;
    }
    fputs(")\n", out);
    write_x_range(out, plot, low, high);
}

/* Long names stand above their points, where they take no width from the plot. */
static bool names_inside(const struct plot *plot, const struct format *f)
{
    size_t longest = 0;

    for (size_t i = 0; plot->categories && i < plot->n_ticks; i++)
        longest = strlen(plot->ticks[i].label) > longest ? strlen(plot->ticks[i].label) : longest;
    return longest > f->name_length;
}

/* From the least to the greatest that the axis of values shows. */
static void value_span(const struct plot *plot, double *low, double *high)
{
    *low = plot->y_from_zero ? 0 : INFINITY;
    *high = plot->y_top > 0 ? plot->y_top : -INFINITY;
    for (size_t i = 0; i < plot->n_lines; i++) {
        for (size_t k = 0; k < plot->lines[i].n; k++) {
            const struct plot_point *p = &plot->lines[i].points[k];
            *low = fmin(*low, fmin(p->y, p->low)); /* of NaN and a number, fmin takes the number */
            *high = fmax(*high, fmax(p->y, p->high));
        }
    }
}

/* 1, 2 or 5 times a power of ten, so that the labels of values have room beside each other. gnuplot
 * itself would draw them over each other. */
static void write_value_ticks(FILE *out, const struct plot *plot, const struct format *f)
{
    static const double steps[] = {1, 2, 5, 10};
    double low, high;
    char label[32];
    size_t i = 0;

    fputs("set xtics nomirror", out);
    value_span(plot, &low, &high);
    if (!plot->y_log && isfinite(high - low) && high > low) {
        int n = snprintf(label, sizeof(label), "%g", high);
        double least = (high - low) * share_of(f, (size_t)n);
        double power = pow(10, floor(log10(least)));
        while (i < 3 && steps[i] * power < least)
            i++;
        fprintf(out, " %g", steps[i] * power);
    }
    fputc('\n', out);
}

static void write_categories(FILE *out, const struct plot *plot, const struct format *f)
{
    bool inside = names_inside(plot, f);

    fputs(inside ? "set format y ''\nset ytics nomirror 0,1\n" : "set ytics nomirror (", out);
    for (size_t i = 0; inside && i < plot->n_ticks; i++) {
        fputs("set label ", out);
        plot_script_quote(out, plot->ticks[i].label);
        fprintf(out, " at graph 0.01, first %zu left offset 0,0.95\n", i);
    }
    for (size_t i = 0; !inside && i < plot->n_ticks; i++)
        write_tick(out, &plot->ticks[i], i == 0);
    fprintf(out, "%sset yrange [%zu.4:-%s]\n", inside ? "" : ")\n", plot->n_ticks - 1,
            inside ? "0.9" : "0.5");
    write_value_ticks(out, plot, f);
}

/* A level across the part of x where it holds, and a little beyond, as the axis is. */
static void write_level(FILE *out, const struct plot *plot, const struct plot_mark *m,
                        const char *label, double low, double high)
{
    double from = isnan(m->from) ? 0 : place(plot, low, high, m->from);
    double to = isnan(m->to) ? 1 : place(plot, low, high, m->to);

    from = high > low ? (fmax(from, 0) + X_MARGIN / 2) / (1 + 2 * X_MARGIN) : 0;
    to = high > low ? (fmin(to, 1) + X_MARGIN * 3 / 2) / (1 + 2 * X_MARGIN) : 1;
    fprintf(out, "set arrow from graph %.4f, first %.9g to graph %.4f, first %.9g", from, m->at, to,
            m->at);
    fputs(" nohead dt 3 lw 1 lc rgb '" MARK_COLOUR "'\nset label ", out);
    plot_script_quote(out, label);
    fprintf(out, " at graph %.4f, first %.9g %s offset 0,0.5 tc rgb '" MARK_COLOUR "'\n",
            to < 0.3 ? from : to, m->at, to < 0.3 ? "left" : "right");
}

/* Labels of marks that stand close take turns in two rows above the plot. */
static void write_marks(FILE *out, const struct plot *plot, const struct format *f)
{
    double low = plot->n_ticks ? plot->ticks[0].at : 0, last = -1;
    double high = plot->n_ticks ? plot->ticks[plot->n_ticks - 1].at : 1;
    int row = 0;

    for (size_t i = 0; i < plot->n_marks; i++) {
        const struct plot_mark *m = &plot->marks[i];
        const char *label = m->label;

        if (m->horizontal) {
            write_level(out, plot, m, label, low, high);
            continue;
        }
        row = place(plot, low, high, m->at) - last < 1 / f->marks && last >= 0 ? !row : 0;
        last = place(plot, low, high, m->at);
        fprintf(out, "set arrow from first %.9g, graph 0 to first %.9g, graph 1", m->at, m->at);
        fputs(" nohead dt 3 lw 1 lc rgb '" MARK_COLOUR "'\nset label ", out);
        plot_script_quote(out, label);
        fprintf(out, " at first %.9g, graph 1 center offset 0,%s tc rgb '" MARK_COLOUR "'\n", m->at,
                row ? "1.5" : "0.6");
    }
}

static size_t legend_rows(const struct plot *plot)
{
    return (plot->n_lines + 2) / 3;
}

static unsigned height_of(const struct plot *plot, const struct format *f)
{
    unsigned height = f->height, halves = names_inside(plot, f) ? 4 : 2;

    if (plot->categories)
        height = f->line_height * (unsigned)(plot->n_ticks * halves / 2 + 5);
    if (plot->watermark)
        height += f->line_height;
    height += f->line_height * (unsigned)(strlen(plot->title) / TITLE_LENGTH);
    return height + f->line_height * (unsigned)legend_rows(plot);
}

static bool has_labels_above(const struct plot *plot)
{
    for (size_t i = 0; i < plot->n_marks; i++)
        if (!plot->marks[i].horizontal)
            return true;
    return false;
}

static void write_terminal(FILE *out, const struct plot *plot, const struct format *f)
{
    bool png = strstr(f->terminal, "png") != NULL;

    fprintf(out, "set terminal %s noenhanced size %u,%u font '%s,%d' background '#ffffff'",
            f->terminal, f->width, height_of(plot, f), f->font, png ? PNG_FONT_SIZE : FONT_SIZE);
    fputs(png ? " linewidth 2 pointscale 2\n" : "\n", out);
    fprintf(out, "set output '%s%s'\n", plot->name, f->suffix);
}

static void write_value_axis(FILE *out, const struct plot *plot)
{
    char axis = plot->categories ? 'x' : 'y';

    if (plot->y_log)
        fprintf(out, "set logscale %c 10\nset format %c '%%g'\n", axis, axis);
    fprintf(out, "set %crange [%s:", axis, plot->y_from_zero ? "0" : "*");
    if (plot->y_top > 0)
        fprintf(out, "%.9g]\n", plot->y_top);
    else
        fputs("*]\n", out);
}

/* gnuplot cuts a title at both ends of the picture: a long one has several lines. Returns how
 * many. */
static size_t write_title_lines(FILE *out, const char *title)
{
    char line[TITLE_LENGTH + 1];
    size_t lines = 0;

    while (*title || !lines) {
        size_t n = strnlen(title, TITLE_LENGTH), cut = n;

        while (title[n] && cut > TITLE_LENGTH / 2 && title[cut - 1] != ' ')
            cut--;
        while (title[n] && title[cut - 1] != ' ' && ((unsigned char)title[cut] & 0xc0) == 0x80)
            cut--; /* never inside a character */
        memcpy(line, title, cut);
        line[cut] = 0;
        fputs(lines++ ? ".\"\\n\"." : "", out);
        plot_script_quote(out, line);
        title += cut;
    }
    return lines;
}

/* What was not measured says so under the title, where no value is. gnuplot leaves no room for what
 * is moved up, so the margin is set. */
static void write_title(FILE *out, const struct plot *plot)
{
    bool above = has_labels_above(plot);
    size_t lines;

    fputs("set title ", out);
    lines = write_title_lines(out, plot->title);
    if (plot->watermark) {
        fputs(".\"\\n\".", out);
        plot_script_quote(out, plot->watermark);
        lines++;
    }
    fprintf(out, "%s\nset tmargin %zu\n", above ? " offset 0,1.6" : "", lines + (above ? 4 : 2));
}

static void write_axes(FILE *out, const struct plot *plot, const struct format *f)
{
    fputs("reset\nset datafile missing '?'\nset border 3 lw 1\nset tics out scale 0.5\n"
          "set grid lt 1 lw 0.5 lc rgb '" GRID_COLOUR "'\nset xlabel ",
          out);
    plot_script_quote(out, plot->x_label);
    fputs("\nset ylabel ", out);
    plot_script_quote(out, plot->y_label);
    fputs("\nset ytics nomirror\n", out);
    if (plot->x_log)
        fputs("set logscale x 2\nset format x '%g'\n", out);
    write_value_axis(out, plot);
    if (plot->categories)
        write_categories(out, plot, f);
    else if (plot->n_ticks)
        write_x_ticks(out, plot, f);
    write_title(out, plot);
    if (plot->n_lines > 1)
        fputs("set key below left Left reverse samplen 3 width 1 height 1.5\n", out);
    else
        fputs("unset key\n", out);
}

static int marker_type(size_t marker, bool open)
{
    /* circle, square, triangle up, triangle down, diamond: filled ones are gnuplot's odd types */
    static const int filled[] = {7, 5, 9, 11, 13};

    return filled[marker % 5] - open;
}

/* Intervals are arrows with flat heads: gnuplot's own error bars blot out what is around a point.
 * Of many points only the line is drawn, and bars without heads. */
static void write_line(FILE *out, const struct plot *plot, size_t i)
{
    const struct plot_line *line = &plot->lines[i];
    const char *colour = colours[line->colour % PLOT_COLOURS];
    bool dense = line->n > DENSE_POINTS;

    fprintf(out, "%s$line%zu using %s with vectors %s lw 1 lc rgb '%s' ", i ? ", " : "plot ", i,
            plot->categories ? "3:1:($4-$3):(0)" : "1:3:(0):($4-$3)",
            dense ? "nohead" : "heads size screen 0.005,90", colour);
    fprintf(out, "notitle, $line%zu using %s with ", i, plot->categories ? "2:1" : "1:2");
    fputs(plot->categories || line->apart ? "points"
          : dense || line->plain          ? "lines"
                                          : "linespoints",
          out);
    fprintf(out, " lw 1.5 dt %d", line->dashed ? 2 : 1);
    if (!dense && !line->plain)
        fprintf(out, " pt %d ps 0.7", marker_type(line->marker, line->dashed));
    fprintf(out, " lc rgb '%s' title ", colour);
    plot_script_quote(out, line->label);
}

static void write_picture(FILE *out, const struct plot *plot, const struct format *f)
{
    write_terminal(out, plot, f);
    write_axes(out, plot, f);
    write_marks(out, plot, f);
    for (size_t i = 0; i < plot->n_lines; i++)
        write_line(out, plot, i);
    fputs("\nunset output\n\n", out);
}

void plot_script_write(FILE *out, const struct plot *plots, size_t n)
{
    fputs("# Draws the plots of this folder again: gnuplot plots.gp\nset encoding utf8\n\n", out);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < plots[i].n_lines; k++)
            write_data(out, k, &plots[i].lines[k]);
        write_picture(out, &plots[i], &files[0]);
        write_picture(out, &plots[i], &files[1]);
    }
}

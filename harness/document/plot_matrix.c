/* SPDX-License-Identifier: Apache-2.0 */
/* A heat map as SVG: the higher a value, the stronger the colour of its cell. */
#include <math.h>

#include "harness/document/html.h"
#include "harness/document/plot_parts.h"

#define SHADE_MAX 0.6 /* text must stay legible on it */
#define CELL_MOST 52  /* pixels */
#define NAMES_MAX 0.3 /* of the width */
#define INDENT    4

struct pen {
    FILE *out;
    struct pool *pool;
    const struct plot_matrix *m;
    double width, font, left, top, cell, height, high;
    bool texts; /* every text has room in its cell */
};

static void write_text(const struct pen *pen, double x, double y, const char *anchor,
                       const char *class, const char *text)
{
    html_print(pen->out, "<text text-anchor='%s' class='%s'", anchor, class);
    fprintf(pen->out, " x='%.1f' y='%.1f'>", x, y);
    html_text(pen->out, text);
    fputs("</text>\n", pen->out);
}

/* The columns' names, as many as have room; the rows' names are whole or cut. */
static void write_names(const struct pen *pen)
{
    double end = -INFINITY, height = 1.2 * pen->font;

    for (size_t i = 0; i < pen->m->n; i++) {
        const char *name = pen->m->names[i];
        double x = pen->left + pen->cell * ((double)i + 0.5),
               half = text_width(name, pen->font) / 2;

        if (pen->cell >= height || i % 2 == 0)
            write_text(pen, pen->left - INDENT,
                       pen->top + pen->cell * ((double)i + 0.5) + 0.35 * pen->font, "end", "name",
                       text_cut(pen->pool, name, pen->font, pen->left - INDENT));
        if (x - half < end || x + half > pen->width)
            continue;
        end = x + half + INDENT;
        write_text(pen, x, pen->top - INDENT, "middle", "name", name);
    }
}

static void write_cell(const struct pen *pen, size_t i)
{
    const struct plot_cell *cell = &pen->m->cells[i];
    size_t row = i / pen->m->n, column = i % pen->m->n;
    double x = pen->left + pen->cell * (double)column, y = pen->top + pen->cell * (double)row;
    bool empty = isnan(cell->value);

    if (row == column)
        return;
    fprintf(pen->out, "<rect class='cell%s%s' x='%.1f' y='%.1f' width='%.1f' height='%.1f'",
            empty ? " empty" : "",
            cell->tone == TONE_BAD   ? " d-bad"
            : cell->tone == TONE_LOW ? " d-low"
                                     : "",
            x + 1, y + 1, pen->cell - 2, pen->cell - 2);
    if (!empty)
        fprintf(pen->out, " style='fill-opacity:%.2f'",
                pen->high > 0 ? SHADE_MAX * fmax(cell->value, 0) / pen->high : 0);
    fputs("><title>", pen->out);
    html_text(pen->out, cell->tip);
    fputs("</title></rect>\n", pen->out);
    if (pen->texts)
        write_text(pen, x + pen->cell / 2, y + pen->cell / 2 + 0.35 * pen->font, "middle", "value",
                   cell->text);
}

void plot_write_matrix(struct pool *pool, const struct plot *plot, bool narrow, FILE *out)
{
    struct pen pen = {.out = out,
                      .pool = pool,
                      .m = plot->matrix,
                      .width = narrow ? 340 : 560,
                      .font = narrow ? 13 : 12};
    const struct plot_matrix *m = pen.m;
    double widest = 0;

    for (size_t i = 0; i < m->n; i++)
        pen.left = fmax(pen.left, text_width(m->names[i], pen.font) + 2 * INDENT);
    pen.left = fmin(pen.left, NAMES_MAX * pen.width);
    for (size_t i = 0; i < m->n * m->n; i++) {
        if (!isnan(m->cells[i].value))
            pen.high = fmax(pen.high, m->cells[i].value);
        widest = fmax(widest, text_width(m->cells[i].text, pen.font));
    }
    pen.cell = fmin((pen.width - pen.left) / (double)(m->n ? m->n : 1), CELL_MOST);
    pen.texts = widest + 3 <= pen.cell;
    pen.top = 3.2 * pen.font;
    pen.height = pen.top + pen.cell * (double)m->n + INDENT;
    fprintf(out,
            "<svg class='d-plot' viewBox='0 0 %.0f %.0f' "
            "role='img' font-size='%.0f'>\n<title>",
            pen.width, ceil(pen.height), pen.font);
    html_text(out, plot->title);
    fputs("</title><desc>", out);
    html_text(out, plot_description(pool, plot));
    fputs("</desc>\n", out);
    write_text(&pen, 0, pen.font, "start", "y-title",
               text_cut(pool, plot->y_label, pen.font, pen.width));
    write_names(&pen);
    for (size_t i = 0; i < m->n * m->n; i++)
        write_cell(&pen, i);
    fputs("</svg>\n", out);
}

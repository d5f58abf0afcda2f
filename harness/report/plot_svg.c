/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot's SVG made fit for a page: see plot.h. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/document/utf8.h"
#include "harness/report/plot.h"

/* Okabe and Ito's colours, which people with any kind of colour blindness can tell apart; yellow,
 * which white swallows, is replaced by a dark olive, and black, which is the text's, by grey. The
 * dark set is the same hues, lighter. */
const char *const plot_colours_light[PLOT_COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#6b6b00", "#7f7f7f"};
const char *const plot_colours_dark[PLOT_COLOURS] = {"#4aa8e0", "#ff8a3d", "#2fcf9f", "#e7a3c8",
                                                     "#ffc04d", "#9bd7ff", "#cfcf5a", "#b0b0b0"};

/* The markers as gnuplot 5 and 6 define them in every file. */
const char *const plot_svg_definitions =
    "<svg width='0' height='0' style='position:absolute' aria-hidden='true' focusable='false'>"
    "<defs>"
    "<path id='gpPt0' stroke-width='0.222' stroke='currentColor' d='M-1,0 h2 M0,-1 v2'/>"
    "<rect id='gpPt3' stroke-width='0.222' stroke='currentColor' x='-1' y='-1' width='2' "
    "height='2'/>"
    "<rect id='gpPt4' stroke-width='0.222' stroke='currentColor' fill='currentColor' x='-1' "
    "y='-1' width='2' height='2'/>"
    "<circle id='gpPt5' stroke-width='0.222' stroke='currentColor' cx='0' cy='0' r='1'/>"
    "<circle id='gpPt6' fill='currentColor' stroke='none' cx='0' cy='0' r='1'/>"
    "<path id='gpPt7' stroke-width='0.222' stroke='currentColor' d='M0,-1.33 L-1.33,0.67 "
    "L1.33,0.67 z'/>"
    "<path id='gpPt8' fill='currentColor' stroke='none' d='M0,-1.33 L-1.33,0.67 L1.33,0.67 z'/>"
    "<path id='gpPt9' stroke-width='0.222' stroke='currentColor' d='M0,1.33 L1.33,-0.67 "
    "L-1.33,-0.67 z'/>"
    "<path id='gpPt10' fill='currentColor' stroke='none' d='M0,1.33 L1.33,-0.67 L-1.33,-0.67 z'/>"
    "<path id='gpPt11' stroke-width='0.222' stroke='currentColor' d='M0,-1.41 L1.41,0 L0,1.41 "
    "L-1.41,0 z'/>"
    "<path id='gpPt12' fill='currentColor' stroke='none' d='M0,-1.41 L1.41,0 L0,1.41 L-1.41,0 "
    "z'/>"
    "</defs></svg>";

static const struct {
    unsigned r, g, b;
    const char *variable;
} greys[] = {{0xdd, 0xdd, 0xdd, "--grid"}, {0x80, 0x80, 0x80, "--mark"}};

static void escape(FILE *out, const char *text)
{
    size_t n, used;

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        if (*c == '<' || *c == '>' || *c == '&' || *c == '"' || *c == '\'')
            fprintf(out, "&#%d;", *c);
        else
            fwrite(c, 1, n, out);
    }
}

static bool is_colour(const char *hex, unsigned r, unsigned g, unsigned b)
{
    return strtoul(hex + 1, NULL, 16) == (r << 16 | g << 8 | b);
}

static void write_colour(FILE *out, unsigned r, unsigned g, unsigned b)
{
    for (size_t i = 0; i < PLOT_COLOURS; i++)
        if (is_colour(plot_colours_light[i], r, g, b)) {
            fprintf(out, "var(--series-%zu)", i);
            return;
        }
    for (size_t i = 0; i < sizeof(greys) / sizeof(*greys); i++)
        if (greys[i].r == r && greys[i].g == g && greys[i].b == b) {
            fprintf(out, "var(%s)", greys[i].variable);
            return;
        }
    fprintf(out, "rgb(%u,%u,%u)", r, g, b);
}

/* A colour attribute at `s` in gnuplot's words, in the page's. Returns the bytes of it; 0: there is
 * none. */
static size_t take_colour(FILE *out, const char *s)
{
    static const char *const names[] = {"stroke", "fill", "color"};
    unsigned r, g, b;

    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(names[i]);
        const char *end;

        if (strncmp(s, names[i], n) != 0 || s[n] != '=' || (s[n + 1] != '\'' && s[n + 1] != '"'))
            continue;
        end = strchr(s + n + 2, s[n + 1]);
        if (!end)
            return 0;
        if (sscanf(s + n + 2, "rgb(%u,%u,%u)", &r, &g, &b) == 3) {
            fprintf(out, "style='%s:", names[i]);
            write_colour(out, r, g, b);
            fputc('\'', out);
        } else if (i == 2) {
            /* gnuplot sets `color` on every group; the page's own holds */
        } else if (!strncmp(s + n + 2, "black", 5)) {
            fprintf(out, "%s='currentColor'", names[i]);
        } else {
            return 0;
        }
        return (size_t)(end + 1 - s);
    }
    return 0;
}

/* What every group repeats, or the page decides. */
static size_t skip_attribute(const char *s)
{
    static const char *const names[] = {
        "font-family=", "stroke-linecap=", "stroke-linejoin=", "class="};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t n = strlen(names[i]);
        const char *end;

        if (strncmp(s, names[i], n) != 0 || s[n] != '"')
            continue;
        end = strchr(s + n + 1, '"');
        return end ? (size_t)(end + 1 - s) : 0;
    }
    return 0;
}

/* "<g ...>\n</g>\n" */
static size_t skip_empty_group(const char *s)
{
    const char *end;
    size_t blanks;

    if (strncmp(s, "<g ", 3) != 0 || !(end = strchr(s, '>')))
        return 0;
    blanks = strspn(end + 1, " \t\n");
    return strncmp(end + 1 + blanks, "</g>\n", 5) ? 0 : (size_t)(end + 1 + blanks + 5 - s);
}

/* gnuplot draws each line as two plots, the intervals and the points. */
static size_t take_plot_group(FILE *out, const char *s, const struct plot *plot)
{
    static const char begin[] = "<g id=\"gnuplot_plot_", title_end[] = "</title>";
    const char *end;
    size_t number;

    if (strncmp(s, begin, sizeof(begin) - 1) != 0 || !(end = strstr(s, title_end)))
        return 0;
    number = strtoul(s + sizeof(begin) - 1, NULL, 10);
    if (number < 1 || (number - 1) / 2 >= plot->n_lines)
        return 0;
    fprintf(out, "<g class='%s'><title>", number % 2 ? "interval" : "line");
    escape(out, plot->lines[(number - 1) / 2].label);
    fputs("</title>", out);
    return (size_t)(end - s) + sizeof(title_end) - 1;
}

static void rewrite(FILE *out, const char *s, const char *end, const struct plot *plot)
{
    bool in_tag = false, before_attribute = false;

    while (s < end) {
        size_t n = skip_empty_group(s);

        if (!n)
            n = take_plot_group(out, s, plot);
        if (!n && in_tag && before_attribute)
            n = skip_attribute(s);
        if (!n && in_tag && before_attribute)
            n = take_colour(out, s);
        if (n) {
            s += n;
            continue;
        }
        in_tag = *s == '<' || (in_tag && *s != '>');
        before_attribute = *s == ' ' || *s == '\t' || *s == '\n';
        fputc(*s++, out);
    }
}

char *plot_svg_fragment(const char *svg, const struct plot *plot)
{
    const char *box = strstr(svg, "viewBox=\""), *body = strstr(svg, "</defs>");
    const char *end = NULL;
    char *text = NULL;
    size_t size;
    FILE *out;

    for (const char *at = body; at && (at = strstr(at, "</svg>")); at++)
        end = at;
    if (!box || !end || !(out = open_memstream(&text, &size)))
        return NULL;
    box += strlen("viewBox=\"");
    fprintf(out, "<svg viewBox='%.*s' role='img' aria-label='", (int)strcspn(box, "\""), box);
    escape(out, plot->title);
    fputs("'><g>", out);
    rewrite(out, body + strlen("</defs>"), end, plot);
    fputs("</svg>\n", out);
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

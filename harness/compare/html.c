/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a comparison: one file that asks for nothing else. */
#include "harness/report/html.h"

#include <errno.h>

#include "core/version.h"
#include "harness/compare/view.h"
#include "harness/report/assets.h"

int view_print_html(FILE *out, struct view *v)
{
    fputs("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
          "<meta name='color-scheme' content='light dark'>\n"
          "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src "
          "'unsafe-inline'; img-src data:\">\n"
          "<link rel='icon' href='data:,'>\n<title>",
          out);
    html_print(out, "%s: %s against %s - Plumbline", v->name, v->name_b, v->name_a);
    fputs("</title>\n<style>\n", out);
    fputs(asset_style, out);
    fputs("</style>\n</head>\n<body>\n<header>\n<h1>Plumbline comparison: ", out);
    html_print(out, "%s against %s", v->name_b, v->name_a);
    fputs("</h1>\n</header>\n<main>\n", out);
    view_print_html_section(out, v);
    fputs("</main>\n<footer>Made by plumb " PLUMB_VERSION
          ". This page holds all that it shows and asks for nothing else.</footer>\n</body>\n"
          "</html>\n",
          out);
    return ferror(out) ? -EIO : 0;
}

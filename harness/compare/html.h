/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the HTML of a comparison; between html.c, html_section.c and html_forest.c. */
#ifndef PLUMB_COMPARE_HTML_H
#define PLUMB_COMPARE_HTML_H

#include "harness/compare/view.h"

/* The forest by pipe: a table each, with the intervals drawn as SVG; equivalent cases are folded. */
void html_forest(FILE *out, struct view *v);

#endif

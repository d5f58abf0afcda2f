/* SPDX-License-Identifier: Apache-2.0 */
/* Writing HTML: whatever comes from a file goes through one of these. */
#ifndef PLUMB_DOCUMENT_HTML_H
#define PLUMB_DOCUMENT_HTML_H

#include <stdio.h>

/* Text or the value of a quoted attribute: & < > " ' become references, control characters blanks,
 * and bytes that are no UTF-8 the replacement character. */
void html_text(FILE *out, const char *text);

/* <name>text</name>; name is a literal. */
void html_element(FILE *out, const char *name, const char *text);

/* Like printf, but the texts of %s are escaped. Knows %s, %d, %zu and %%. */
void html_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Everything of a page up to its <main>. style: CSS, before that of documents. heading NULL: title. */
void html_page_begin(FILE *out, const char *title, const char *heading, const char *style);

/* A JSON string, quotes included, that may stand inside of a <script>. */
void html_json_string(FILE *out, const char *text);

#endif

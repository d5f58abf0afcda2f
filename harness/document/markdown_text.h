/* SPDX-License-Identifier: Apache-2.0 */
/* Text that comes from files, in Markdown that GitHub renders. */
#ifndef PLUMB_DOCUMENT_MARKDOWN_TEXT_H
#define PLUMB_DOCUMENT_MARKDOWN_TEXT_H

#include <stdio.h>

/* Characters with which Markdown, or HTML inside of it, would begin something are escaped. */
void markdown_text(FILE *out, const char *text);

#endif

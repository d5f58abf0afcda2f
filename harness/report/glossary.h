/* SPDX-License-Identifier: Apache-2.0 */
/* What the words of a report mean. */
#ifndef PLUMB_REPORT_GLOSSARY_H
#define PLUMB_REPORT_GLOSSARY_H

#include "harness/document/document.h"

void glossary_link(struct document *d); /* each word is a link where it first stands */
void glossary_list(struct document *d); /* what the links lead to */

#endif

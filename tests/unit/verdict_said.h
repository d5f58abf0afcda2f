/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict as one text, for tests: its word, and its remarks behind it. */
#ifndef PLUMB_TESTS_VERDICT_SAID_H
#define PLUMB_TESTS_VERDICT_SAID_H

#include <stdio.h>
#include <string.h>

#include "harness/report/headline.h"

/* "low; a channel is empty", until the next call. */
static inline const char *verdict_said(const struct verdict *v)
{
    static char text[4096];

    snprintf(text, sizeof(text), "%s", v->word);
    for (const struct verdict_remark *m = v->remarks; m; m = m->next)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "; %s", m->text);
    return text;
}

#endif

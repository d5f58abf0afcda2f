/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a run in the history, in words. */
#ifndef PLUMB_CHECK_KEPT_WORDS_H
#define PLUMB_CHECK_KEPT_WORDS_H

#include "harness/check/output.h"

struct kept_words {
    const struct gate *g;
    const struct check_kept *kept;
    const char *history; /* its file */
    bool made;           /* the file was made for this run */
    enum history_added how;
};

/* One sentence, or several with "; " between. */
const char *kept_sentence(const struct kept_words *w);

#endif

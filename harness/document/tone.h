/* SPDX-License-Identifier: Apache-2.0 */
/* Colour is for where someone should act. */
#ifndef PLUMB_DOCUMENT_TONE_H
#define PLUMB_DOCUMENT_TONE_H

enum tone {
    TONE_NONE,
    TONE_LOW, /* low, worse, not to be trusted */
    TONE_BAD  /* failed, wrong data */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that are part of the program. The assembler takes them in as they are, so that they can
 * be edited as CSS and JavaScript; the paths are from the root of the sources, where make runs.
 */
#include "harness/report/assets.h"

#define ASSET(symbol, file)                                                                        \
    __asm__(".pushsection .rodata." #symbol ",\"a\"\n"                                             \
            ".global " #symbol "\n"                                                                \
            ".type " #symbol ", %object\n" #symbol ":\n"                                           \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".size " #symbol ", . - " #symbol "\n"                                                 \
            ".popsection\n")

ASSET(asset_style, "harness/report/style.css");
ASSET(asset_script, "harness/report/report.js");

/* SPDX-License-Identifier: Apache-2.0 */
/* What this program was built from and with. Texts that live as long as the process. */
#ifndef PLUMB_CORE_BUILD_INFO_H
#define PLUMB_CORE_BUILD_INFO_H

#define PLUMB_VERSION "0.1.0"

/* `git describe` of the checkout, with "-dirty" when it had changes; "" when it was no checkout. */
const char *build_commit(void);

const char *build_compiler(void); /* "gcc 12.2.0", "clang 14.0.6" */
const char *build_flags(void);    /* the flags that were asked for: "-O2 -g" */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for the while: runs of the history lie there while they are read as folders. */
#ifndef PLUMB_HISTORY_SCRATCH_H
#define PLUMB_HISTORY_SCRATCH_H

#include <stddef.h>

/* In $TMPDIR, else /tmp. *folder is the caller's, for scratch_remove(). 0; -ENOMEM or other -errno with error set: *folder is
 * NULL. */
int scratch_make(char **folder, char *error, size_t len);
/* With all that lies in it; NULL is let be. */
void scratch_remove(char *folder);

#endif

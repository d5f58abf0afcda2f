/* SPDX-License-Identifier: Apache-2.0 */
/* Which run folders may be a baseline of a run: those of runs that came to their end. Those of another host or suite are
 * told by name. The history does both by itself. */
#ifndef PLUMB_CHECK_SIFT_H
#define PLUMB_CHECK_SIFT_H

#include <stdbool.h>
#include <stddef.h>

struct sift_list {
    size_t n;
    char names[320]; /* "n3 (interrupted), n4 (stopped)"; the first few */
};

struct sift {
    char host[128], suite[128]; /* of the run that is judged; "": not known */
    struct sift_list unfinished, hosts, suites;
};

void sift_init(struct sift *s, const char *run);

/* Is this run folder a baseline? One that cannot be read is: who loads it says why it cannot. */
bool sift_takes(struct sift *s, const char *path);

/* Adds what was found to a sentence: "; left out, as ...". */
void sift_tell(const struct sift *s, char *text, size_t len);

#endif

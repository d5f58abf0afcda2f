/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which host is behind the others, by what the links between them carry. Pure.
 *
 * A link is as fast as the slower of its ends lets it be, so that a slow host shows in all of its links, and a slow link in one. A host's level is the
 * upper median of its links: with a strict majority of hosts that are fine, at least half of a fine host's links go to such. A host is slow where
 *   - its level is more than LINKS_SLOW below that of the middle host (the lower middle of an even number: half of the hosts are no majority), and
 *   - the median of its links to hosts that are not slow, at least two where there are as many, is below the median of the links between these by more
 *     than LINKS_SLOW and by more than LINKS_NOISE standard deviations of them (from the median absolute deviation),
 * judged over all of its links, then over those from it and those to it by themselves, where there are links both ways.
 */
#ifndef PLUMB_REPORT_LINKS_H
#define PLUMB_REPORT_LINKS_H

#include <stdbool.h>
#include <stddef.h>

#define LINKS_SLOW  0.10
#define LINKS_NOISE 3.0

struct link {
    size_t from, to; /* hosts */
    double value;    /* above 0, the more the better: 1 / time for a latency */
};

enum links_way { LINKS_BOTH, LINKS_FROM, LINKS_TO };

struct slow_host {
    size_t host;
    enum links_way way; /* which of its links are slow */
    size_t links;       /* other hosts that they go to, or come from */
    double ratio;       /* what they carry of the others' */
};

/* Fills slow[0..*n_slow), which has room for n_hosts, in the order of the hosts. 0, or -ENOMEM. With fewer than three hosts nothing can be told. */
int links_judge(const struct link *links, size_t n, size_t n_hosts, struct slow_host *slow,
                size_t *n_slow);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which actions of a schedule wait for which others. */
#ifndef PLUMB_CORE_COLLECTIVE_DEPS_H
#define PLUMB_CORE_COLLECTIVE_DEPS_H

#include "core/collective/schedule.h"

/* Elements begin to end of an action (its own count of them) want the action `earlier` to have done
 * those that are `shift` further on in it. */
struct dep {
    uint32_t earlier;
    int64_t shift;
    uint64_t begin, end;
};

/* Of action i: all[first[i]] to all[first[i + 1]]. */
struct deps {
    struct dep *all;
    size_t n, room, *first;
};

/* 0 or -ENOMEM; release it in any case. As many as actions that meet in a place, not as pairs of
 * actions. */
int deps_make(struct deps *d, const struct schedule *s);
void deps_release(struct deps *d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a benchmark does on one kind of device. A benchmark that runs on several hands its hooks on to
 * the table of the device that was asked for, and knows no device by name.
 */
#ifndef PLUMB_CORE_WORK_H
#define PLUMB_CORE_WORK_H

#include <stdint.h>

struct point;

/* As the hooks of struct bench (bench.h), all required. setup keeps what it needs in pt->state. */
struct device_work {
    int (*setup)(struct point *pt);
    int (*sample)(struct point *pt, uint64_t inner, uint64_t *ns);
    int (*check)(struct point *pt);
    int (*evidence)(struct point *pt);
    void (*teardown)(struct point *pt);
};

/* For a benchmark's own hooks: setup takes the table on, the others follow pt->work. */
int work_setup(struct point *pt, const struct device_work *work);
int work_sample(struct point *pt, uint64_t inner, uint64_t *ns);
int work_check(struct point *pt);
int work_evidence(struct point *pt);
void work_teardown(struct point *pt);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reference machines: runs that are kept to hold others against (reference.c), and the line of a
 * summary that says how a run stands beside the nearest of them (like.c). */
#ifndef PLUMB_REPORT_REFERENCE_H
#define PLUMB_REPORT_REFERENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/document/document.h"
#include "harness/document/pool.h"
#include "harness/report/model.h"

/* A run that is kept as a reference. Nearness is told by typed facts of its run.json alone:
 * architecture, microarchitecture, CPU model, cores, memory, virtualisation, GPUs. */
struct reference {
    const char *name, *path; /* of its folder */
    json_t *meta;
    double distance;         /* sum of the weights of what differs */
    size_t n_alike, n_facts; /* 0 of 0 where no run is asked about */
    const char *differs;     /* "cores 2 against 64, GPUs none against 8 x NVIDIA H200"; "" */
    /* Cases that it and the run have both, of those of the run; 0 of 0: not counted. */
    size_t n_comparable, n_cases;
};

struct references {
    struct pool pool;
    const char *folder;
    const char *run_path;  /* the run that is asked about; NULL */
    json_t *run;           /* its run.json; NULL */
    struct reference *all; /* the nearest first, and of these the newest */
    size_t n;
};

/* Reads those of PLUMB_REFERENCES, of ./results/reference, of the tree of this program, or of its
 * installation. run: the folder of the run that is asked about, or NULL. 0, or -ENOENT with error
 * set; to be released in any case. */
int references_load(struct references *r, const char *run, char *error, size_t len);
void references_release(struct references *r);
bool reference_is_own(const json_t *run, const json_t *reference); /* is it the run itself? */

/* "Compared: like xeon of 2026-11-25 (same processor): Memory 0.70; all else 0.97 to 1.02", of the
 * run against the nearest reference. Nothing where none is near enough, or no case of it pairs. */
void like_answer(struct report *r, size_t run, struct document *d);

#endif

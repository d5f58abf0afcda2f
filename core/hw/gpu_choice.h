/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a search on a GPU found best, as the value of an option that a run keeps (OPT_KEPT):
 * "WHAT@CONDITIONS". Later launches of the case are given it, and need no search.
 *
 * WHAT is the searcher's own word for a way. CONDITIONS is a hash of all that the choice depends
 * on: the device, its driver and the problem. A text with other conditions is no choice here, so
 * that its reader searches again.
 */
#ifndef PLUMB_CORE_HW_GPU_CHOICE_H
#define PLUMB_CORE_HW_GPU_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#define GPU_CHOICE_AUTO  "auto" /* none is given: search */
#define GPU_CHOICE_BYTES 96

struct gpu;

/* `problem`: any text that says all that the choice depends on beside device and driver, also the
 * library and its version. `what` has no blank, comma nor '@'. Returns text. */
const char *gpu_choice_print(struct gpu *gpu, const char *problem, const char *what,
                             char text[GPU_CHOICE_BYTES]);

/* What `text` chose, if it was made for this device, driver and problem; else false. */
bool gpu_choice_read(struct gpu *gpu, const char *problem, const char *text,
                     char what[GPU_CHOICE_BYTES]);

/* The parser of such an option (struct opt): `value` is a const char **. */
int gpu_choice_parse(const char *text, void *value, char *error, size_t len);

#endif

// SPDX-License-Identifier: Apache-2.0
// Named sets of matrix products: the layers of real models, from configs/shapes/*.yaml. The gemm
// benchmark takes shapes as --shape MxNxK; a suite says "shapes: NAME" and the harness expands the
// name with this module.
//
// A file (docs/limits.md shows one):
//
//   name, about, source   texts; name is the file's own name without ".yaml"
//   unit, units           what m counts by ("token", "image") and how many of them to measure, e.g.
//                         [1, 128, 2048]
//   shapes                list of {name, m, n, k, count}: C[m x n] += A[m x k] B[k x n], m for ONE
//                         unit; count is how often the product occurs in one pass of the model
//
// The set holds every shape for every number of units, units in the outer loop.
#ifndef PLUMB_HARNESS_SHAPES_H
#define PLUMB_HARNESS_SHAPES_H

#include <stddef.h>
#include <stdint.h>

struct shape {
    const char *name;
    int64_t units;   // tokens, images
    int64_t m, n, k; // m for all units together
    int64_t count;
};

struct shape_set {
    const char *name, *about, *source, *unit;
    struct shape *shapes;
    size_t count;
    void *owner; // keeps the texts alive
};

// Reads one file. On success *out is to be freed with shapes_free(); on error it is zeroed and err
// holds "file:line: what". Returns 0 or -errno (-EINVAL for what the file says).
int shapes_load(const char *path, struct shape_set *out, char *err, size_t errlen);
// The same from memory; name stands in the messages.
int shapes_load_buffer(const char *name, const void *data, size_t len, struct shape_set *out,
                       char *err, size_t errlen);
void shapes_free(struct shape_set *set);

// "MxNxK", as the option --shape takes it. Returns what snprintf returns.
int shape_text(const struct shape *shape, char *buf, size_t size);

#endif

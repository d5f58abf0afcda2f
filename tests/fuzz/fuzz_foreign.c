/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of the readers of what other programs print. Beside not crashing: what is accepted has
 * results, each with figures that are numbers above 0, and what is refused has a sentence.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/foreign/foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

static void check_line(const struct foreign_line *line)
{
    require(line->n_facts <= FOREIGN_FACTS_MAX && line->n_figures <= FOREIGN_FIGURES_MAX, "room");
    require(line->n_figures || strcmp(line->status, "ok") != 0, "a result has a figure");
    for (size_t i = 0; i < line->n_figures; i++)
        require(isfinite(line->figures[i].value) && line->figures[i].value > 0, "a figure");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct foreign_output out;
    char error[512] = "", *text = malloc(size + 1);

    require(text != NULL, "memory");
    memcpy(text, data, size);
    text[size] = 0;
    if (foreign_read("it", text, size, false, &out, error, sizeof(error))) {
        require(*error != 0, "a reason");
    } else {
        require(out.n > 0, "results");
        for (size_t i = 0; i < out.n; i++)
            check_line(&out.lines[i]);
    }
    foreign_release(&out);
    free(text);
    return 0;
}

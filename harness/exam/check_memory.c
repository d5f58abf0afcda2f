/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the host's memory. See exam.h. */
#include <string.h>

#include "harness/exam/exam.h"

#define MEMORY "memory"

static void look_huge_pages(struct exam *x)
{
    const char *mode = exam_text(x, MEMORY, NULL, "memory.transparent_huge_pages.enabled");

    if (!mode)
        return;
    if (strcmp(mode, "never") != 0)
        exam_fine(x, MEMORY);
    else
        exam_remedy(x,
                    exam_found(x, MEMORY,
                               "transparent huge pages are off: large buffers pay for small pages"),
                    "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
}

/* The first module that runs below its rate decides: all of a channel run at one speed. */
static void look_speed(struct exam *x)
{
    const json_t *modules, *module;
    size_t i, known = 0;

    if (!exam_metal(x)) /* a hypervisor makes the modules up */
        return;
    modules = exam_list(x, "memory.modules");
    json_array_foreach (modules, i, module) {
        double rated = exam_value(module, "rated_mt_s", 0),
               running = exam_value(module, "running_mt_s", 0);
        struct exam_result *r;

        known += rated > 0 && running > 0;
        if (!(running > 0) || running >= rated)
            continue;
        exam_get(x, module, "rated_mt_s");
        exam_get(x, module, "running_mt_s");
        r = exam_found(x, MEMORY, "the modules run at %.0f of their rated %.0f MT/s", running,
                       rated);
        exam_price(x, r, 1 - running / rated, "memory bandwidth", "1 - %.0f/%.0f MT/s", running,
                   rated);
        exam_remedy(x, r,
                    "set the memory speed in the firmware; fewer modules per channel run faster");
        return;
    }
    if (known)
        exam_fine(x, MEMORY);
}

static void look_sizes(struct exam *x)
{
    const json_t *modules, *module;
    double size = 0;
    size_t i;

    if (!exam_metal(x))
        return;
    modules = exam_list(x, "memory.modules");
    json_array_foreach (modules, i, module) {
        double other = exam_value(module, "size_bytes", 0);

        if (size > 0 && other > 0 && other != size) {
            exam_get(x, module, "size_bytes");
            exam_remedy(x,
                        exam_found(x, MEMORY, "modules differ in size: a part has fewer channels"),
                        "put modules of one size into all channels");
            return;
        }
        size = other > 0 ? other : size;
    }
    if (size > 0)
        exam_fine(x, MEMORY);
}

const struct exam_check exam_memory[] = {
    {.id = "huge-pages",
     .question = "Can large buffers have huge pages?",
     .seen = "/sys/kernel/mm/transparent_hugepage/enabled",
     .pipes = "Memory|Latency|Matrix core",
     .look = look_huge_pages},
    {.id = "memory-speed",
     .question = "Do the memory modules run at their rated speed?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*",
     .look = look_speed},
    {.id = "memory-sizes",
     .question = "Are the memory modules of one size, so that all channels share all memory?",
     .seen = "the firmware's table of modules, if it is readable",
     .more = "root: /sys/firmware/dmi/tables/DMI",
     .pipes = "Memory|Copies|Network*",
     .look = look_sizes},
    {.id = NULL},
};

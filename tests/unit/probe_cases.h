// SPDX-License-Identifier: Apache-2.0
/* Probing a tree that holds only a few files, and looking into the answer; for tests of the probe. */
#ifndef PLUMB_TESTS_PROBE_CASES_H
#define PLUMB_TESTS_PROBE_CASES_H

#include "harness/exam/exam.h"
#include "harness/probe/probe.h"
#include "tests/unit/scratch_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GUEST_CPU "flags\t\t: fpu sse4_2 hypervisor avx2\n"
#define METAL_CPU "flags\t\t: fpu sse4_2 avx2\n"

struct file {
    const char *path, *text;
};

/* A machine of its own: no CPU flag of a hypervisor, and a maker and product that are none. */
static inline void put_metal(const struct scratch *s)
{
    scratch_put(s, "proc/cpuinfo", METAL_CPU);
    scratch_put(s, "sys/class/dmi/id/sys_vendor", "Dell Inc.\n");
    scratch_put(s, "sys/class/dmi/id/product_name", "PowerEdge R760\n");
}

static inline json_t *probe_files(const struct file *files, size_t count)
{
    struct scratch s;
    json_t *machine;

    scratch_open(&s);
    for (size_t i = 0; i < count && files[i].path; i++)
        scratch_put(&s, files[i].path, files[i].text);
    scratch_folder(&s, "sys");
    assert_int_equal(probe_machine(s.root, &machine), 0);
    scratch_close(&s);
    return machine;
}

static inline const json_t *in(const json_t *object, const char *section, const char *key)
{
    return json_object_get(json_object_get(object, section), key);
}

static inline const char *text_in(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "(null)";
}

/* The state of the check's first result: a finding, if it has one. */
static inline enum exam_state state_of(const json_t *machine, const char *check)
{
    struct exam *x = exam_new(machine);
    const struct exam_result *r = exam_results(x);
    enum exam_state state;

    while (strcmp(r->check->id, check) != 0)
        r = r->next;
    state = r->state;
    exam_free(x);
    return state;
}

static inline bool finds(const json_t *machine, const char *check)
{
    return state_of(machine, check) == EXAM_FOUND;
}

#endif

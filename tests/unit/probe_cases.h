// SPDX-License-Identifier: Apache-2.0
/* Probing a tree that holds only a few files, and looking into the answer; for tests of the probe.
 * Files and facts are written as in changes.h. */
#ifndef PLUMB_TESTS_PROBE_CASES_H
#define PLUMB_TESTS_PROBE_CASES_H

#include "harness/exam/exam.h"
#include "harness/probe/probe.h"
#include "tests/unit/changes.h"
#include "tests/unit/unit.h"

#define GUEST_CPU "flags\t\t: fpu sse4_2 hypervisor avx2\n"
#define METAL_CPU "flags\t\t: fpu sse4_2 avx2\n"
/* A machine of its own: no CPU flag of a hypervisor, and a maker and product that are none. */
#define METAL_MAKER                                                                                \
    "sys/class/dmi/id/sys_vendor=Dell Inc.|sys/class/dmi/id/product_name=PowerEdge R760|"

static inline json_t *probe_and_close(struct scratch *s)
{
    json_t *machine;

    scratch_folder(s, "sys");
    assert_int_equal(probe_machine(s->root, &machine), 0);
    scratch_close(s);
    return machine;
}

static inline json_t *probe_files(const char *files, change_words *words)
{
    struct scratch s;

    scratch_open(&s);
    put_files(&s, files, words);
    return probe_and_close(&s);
}

static inline const json_t *in(const json_t *object, const char *section, const char *key)
{
    return json_object_get(json_object_get(object, section), key);
}

/* "tcp.default_interfaces", "network.0.qdiscs.1.kind"; NULL where it is not there. */
static inline const json_t *at_path(const json_t *value, const char *path)
{
    while (value && *path) {
        size_t n = strcspn(path, ".");
        char key[64];

        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key))
                                     : json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return value;
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

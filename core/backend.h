/* SPDX-License-Identifier: Apache-2.0 */
/* What a benchmark reports of one of its backends: a library, an engine, a device, a network
 * interface. */
#ifndef PLUMB_CORE_BACKEND_H
#define PLUMB_CORE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>

enum backend_state {
    BACKEND_ABSENT,
    BACKEND_PRESENT,
    BACKEND_DOWN /* an interface that is there and not up */
};

/* A text that is NULL is not known. Only `name` is required. */
struct backend {
    const char *name;
    enum backend_state state;
    const char *version; /* of a library: product and version */
    const char *what;    /* for people: what it is */
    const char *why;     /* for people: why it cannot be used, and what to do */
    const char *address; /* of a GPU: its PCI address */
    bool simulated;
};

/* "absent", "present", "down" */
static inline const char *backend_state_name(enum backend_state state)
{
    return state == BACKEND_PRESENT ? "present" : state == BACKEND_DOWN ? "down" : "absent";
}

/* Called for each backend. Its texts live until the call returns. */
typedef void backend_say_fn(void *arg, const struct backend *b);

/* Modules: what needs a library that not every machine has is a file beside the program, opened
 * when it is first asked for. It is looked for where the environment says, else beside the program,
 * in ../lib/plumbline and in ../lib. */

struct module_kind {
    const char *file;        /* "plumb-rdma.so" */
    const char *environment; /* that names another file: "PLUMB_RDMA_MODULE" */
    const char *what;        /* for messages: "RDMA module" */
    const char *unbuilt;     /* why there may be none, and what to do */
    const char *symbol;      /* of the table that it exports */
};

/* The module's table; NULL with the reason and the remedy in why. Opened again it is the same; it
 * stays mapped, since threads of the libraries below it may run on. */
const void *module_open(const struct module_kind *kind, char *why, size_t len);

#endif

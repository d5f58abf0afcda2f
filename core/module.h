/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: what needs a library that not every machine has is a file beside the program, opened
 * when it is first asked for. It is looked for where the environment says, else beside the program,
 * in ../lib/plumbline and in ../lib.
 */
#ifndef PLUMB_CORE_MODULE_H
#define PLUMB_CORE_MODULE_H

#include <stddef.h>

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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server and its client, run together: each on the CPUs it is told, the client once the server
 * listens, both gone at the end. Who listens is read from /proc/net/tcp, not tried by connecting: a
 * server that serves one client would take the try for it.
 */
#ifndef PLUMB_HARNESS_CROSSCHECK_TANDEM_H
#define PLUMB_HARNESS_CROSSCHECK_TANDEM_H

#include <stddef.h>

#include "harness/child.h"

#define TANDEM_CPUS_MAX 256

struct tandem_cpus {
    unsigned n, cpus[TANDEM_CPUS_MAX]; /* n 0: wherever the system puts it */
};

struct tandem_spec {
    char *const *server, *const *client; /* arguments; server NULL: the client alone */
    struct tandem_cpus server_cpus, client_cpus;
    unsigned port;       /* that the server will listen on */
    uint64_t timeout_ns; /* for all of it */
    const volatile int *cancel;
    void (*tick)(void *arg);
    void *tick_arg;
};

struct tandem_result {
    struct child_result server, client;
    bool ran; /* the client was started and ended; its status is its own */
};

/* 0, or -errno with what went wrong in error: -ETIME when over the time, -ECANCELED, -EIO when one
 * of them failed. Release *r in any case. */
int tandem_run(const struct tandem_spec *spec, struct tandem_result *r, char *error, size_t len);
void tandem_result_release(struct tandem_result *r);

/* A TCP port of the loopback that nobody has now; 0: none. */
unsigned tandem_free_port(void);

/* Does a text as of /proc/net/tcp (or tcp6) show a listener on this port? */
bool tandem_listens(const char *text, unsigned port);

/* "0 2 4" (as far as a number is there); how it ended in *end, where that is not NULL. */
struct tandem_cpus tandem_cpus_parse(const char *text, const char **end);

/* ---- Argument lists out of the templates of witness.h ---- */

struct template_value {
    const char *name, *value; /* value NULL or "": not known */
};

/* `values` ends with a NULL name. A new array, ended by NULL (texts_free): `program` and the words,
 * or where program is NULL the words alone, of which the first is looked for in PATH; words
 * NAME=VALUE before it are put behind `env`. NULL with error: a value that is needed is not known,
 * the program is not there, too many words, or out of memory. */
char **template_fill(const char *program, const char *text, const struct template_value *values,
                     char *error, size_t len);

/* The path of a program in PATH, as a new text; NULL: not there. */
char *template_find_program(const char *name);

#endif

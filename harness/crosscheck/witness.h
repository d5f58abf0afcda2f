/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outside witnesses: programs of others that measure what a benchmark of ours measures. One row of
 * witness_table is one comparison: how both are called, how the other's output is read, and how its
 * definition differs from ours. To add one, add a row.
 *
 * Arguments are templates, words parted by blanks. {size} {streams} {seconds} {longer} (seconds +
 * 2) {messages} (10000 a second) {port} {host} {device} (mlx5_0), {device_port} (1) and {gid} are
 * replaced; a group in brackets, [-x {gid}], is left out where one of its values is not known.
 * Words NAME=VALUE before the program's name are its environment.
 */
#ifndef PLUMB_HARNESS_CROSSCHECK_WITNESS_H
#define PLUMB_HARNESS_CROSSCHECK_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct witness;

/* Reads the figure, as the program prints it, out of its output. 0, or -EBADMSG with what is wrong
 * in error. */
typedef int witness_read_fn(const struct witness *w, const char *text, double *value, char *error,
                            size_t len);

struct witness {      /* NOLINT(clang-analyzer-optin.performance.Padding): as its table reads */
    const char *name; /* of the comparison; the same in two rows that are for different versions */
    const char *program, *package; /* looked for in PATH; of Debian, for those who miss it */
    const char *source;            /* where it is to be built from; package NULL */
    const char *version;           /* the argument that makes it print its version; NULL: none */
    unsigned from, below;          /* versions that the row is for: major * 1000 + minor; 0: any */
    bool rdma;                     /* needs an RDMA device */
    uint64_t size, streams;        /* streams: of collectives the ranks */

    const char *launcher;     /* in front of our benchmark, "mpirun -np {streams}"; NULL: none */
    const char *bench, *ours; /* our benchmark and its arguments, without duration and output */
    const char *metric;       /* in our rows */
    const char *scope;        /* of cpu_per_gb rows: those of both sides are added; NULL: one row */
    const char *column;       /* value (the median) or mean: whichever the witness prints */
    const char *unit;         /* ours, in which both are compared: core/units.h */

    const char *server, *client; /* theirs; server NULL: the client alone */
    witness_read_fn *read;
    const char *where; /* what `read` looks for */
    unsigned field;    /* of witness_read_fields: which one, from 1 */
    const char *printed_unit;
    double as_printed; /* printed * this = our unit, if the printed unit's name is believed */
    double factor;     /* printed * this = our unit, by what the program does */
    double margin;     /* of the ratio: within it the two agree */

    const char *converted; /* what was done so that like is held against like */
    const char *notes;     /* what is different all the same */
};

extern const struct witness witness_table[]; /* ends with a NULL name */

/* The row's version range holds `version` (major * 1000 + minor; 0: not known, which holds always).
 */
bool witness_fits(const struct witness *w, unsigned version);
/* The first "3.12" or "0.4.11" in a text as 3012 or 4; 0: none. `text` gets it as it stands. */
unsigned witness_version(const char *output, char *text, size_t len);

#endif

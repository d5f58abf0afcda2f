/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: our figures against those of outside programs, in turn on the same machine. The
 * method is in docs/crosscheck.md. */
#ifndef PLUMB_HARNESS_CROSSCHECK_H
#define PLUMB_HARNESS_CROSSCHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/child.h"
#include "harness/foreign/foreign.h"
#include "harness/run/progress.h"
#include "harness/text.h"

/*
 * Outside witnesses: programs of others that measure what a benchmark of ours measures. One row of
 * witness_table is one comparison: how both are called, how the other's output is read, and how its
 * definition differs from ours. To add one, add a row.
 *
 * Arguments are templates, words parted by blanks. {size} {mib} (of it) {streams} {seconds} {longer}
 * (seconds + 2) {messages} (10000 a second) {port} {host} {device} (mlx5_0), {device_port} (1) and {gid} are
 * replaced; a group in brackets, [-x {gid}], is left out where one of its values is not known.
 * Words NAME=VALUE before the program's name are its environment.
 */

struct witness {      /* NOLINT(clang-analyzer-optin.performance.Padding): as its table reads */
    const char *name; /* of the comparison; the same in two rows that are for different versions */
    const char *program, *package; /* looked for in PATH; of Debian, for those who miss it */
    const char *source;            /* where it is to be built from; package NULL */
    const char *version;           /* the argument that makes it print its version; NULL: none */
    unsigned from, below;          /* versions that the row is for: major * 1000 + minor; 0: any */
    bool rdma;                     /* needs an RDMA device */
    uint64_t size, streams;        /* streams: of collectives the ranks */
    bool gpus;                     /* a rank for each GPU, whatever their number */

    const char *launcher;     /* in front of our benchmark, "mpirun -np {streams}"; NULL: none */
    const char *bench, *ours; /* our benchmark and its arguments, without duration and output */
    const char *metric;       /* in our rows */
    const char *scope;        /* of cpu_per_gb rows: those of both sides are added; NULL: one row */
    const char *rows;         /* which of several, "direction=forward"; NULL: there is one */
    const char *column;       /* value (the median) or mean: whichever the witness prints */
    const char *unit;         /* ours, in which both are compared: core/units.h */

    const char *server, *client; /* theirs; server NULL: the client alone */
    /* Whose output it is (harness/foreign), which of its lines (a condition on their facts; NULL:
     * the one of the size), and which figure. */
    const char *suite, *line, *quantity, *statistic;
    double margin; /* of the ratio: within it the two agree */

    const char *converted; /* what was done so that like is held against like */
    const char *notes;     /* what is different all the same */
};

extern const struct witness witness_table[]; /* ends with a NULL name */

/* The row's version range holds `version` (major * 1000 + minor; 0: not known, which holds always).
 */
bool witness_fits(const struct witness *w, unsigned version);

/* Reads the figure of the output of a witness, in w->unit. 0; -EOPNOTSUPP: it cannot run here;
 * -EBADMSG, -ENOMEM; with error. */
int witness_read(const struct witness *w, const char *text, size_t size,
                 struct foreign_figure *figure, char *error, size_t len);

/* ---- Verdicts ---- */

/*
 * From pairs of figures to a verdict. The ratio is ours / theirs, both in the same unit and
 * definition; its value is the median over the pairs, its interval that of core/stats.h (order
 * statistics, 95 %).
 *
 *   agree      the interval lies within 1 +/- the margin
 *   better     it excludes 1, and ours is the faster, or costs less
 *   worse      it excludes 1, and ours is the slower, or costs more
 *   undecided  neither: it holds 1, but reaches beyond the margin, or there are too few pairs
 */
enum verdict { VERDICT_AGREE, VERDICT_BETTER, VERDICT_WORSE, VERDICT_UNDECIDED };

struct judgement {
    size_t pairs;
    double ours, theirs;     /* medians */
    double ratio, low, high; /* low and high NaN: too few pairs */
    enum verdict verdict;
    const char *suspect; /* a mistake in a definition would give this very ratio; NULL: none */
    size_t pairs_wanted; /* undecided: about so many would decide; 0: not known */
};

#define JUDGE_CONFIDENCE 0.95
#define JUDGE_PAIRS_MIN  6 /* below there is no interval */

/* 0, -EINVAL (no pairs, or a figure that is not above 0), -ENOMEM. */
int judge(const double *ours, const double *theirs, size_t pairs, double margin,
          bool higher_is_better, struct judgement *j);

/* ---- Our own figure, out of the rows of one of our benchmarks, and how it was measured ---- */

struct ours {
    double value;
    char cpus[64]; /* the leader's > the peer's: "0>1"; "" where the benchmark has no such column */
    char detail[160]; /* what carried it: "lo bbr, MSS 65483" */
    char gid[8];      /* the index in RoCE's table; "" where there is none */
};

/* Reads the CSV of a run. 0; -EBADMSG: the rows are not those that were asked for; -EIO: they say
 * that it failed or is wrong; -EOPNOTSUPP: that it cannot run here. All with error. */
int ours_read(const struct witness *w, const char *csv, size_t size, struct ours *out, char *error,
              size_t len);

int cmd_crosscheck(int argc, char **argv); /* the exit status */

/* ---- The state of a plumb crosscheck: comparisons, and what they run with ---- */

enum comparison_state {
    COMPARISON_TODO,
    COMPARISON_DONE,
    COMPARISON_ABSENT,  /* the program is not on PATH */
    COMPARISON_SKIPPED, /* cannot run here: no RDMA device, ... */
    COMPARISON_FAILED,
};

struct comparison {
    const struct witness *w;
    enum comparison_state state;
    char version[32], reason[512];
    uint64_t streams;
    double *ours, *theirs, *printed; /* a figure a pair; theirs in our unit and definition */
    size_t pairs;
    struct foreign_figure figure; /* of their last run: the unit that is printed */
    struct ours last;             /* of our last run: its CPUs are the witness' CPUs */
    struct judgement judgement;
};

struct crosscheck_options {
    const char *only, *device, *out;
    uint64_t pairs, seconds, timeout_ns, gpus;
    bool json, csv, help;
};

struct crosscheck {
    struct crosscheck_options options;
    char device[64], device_port[8]; /* of RDMA; "" where there is none */
    char *folder;                    /* where all goes */
    FILE *pairs_file;                /* pairs.csv in it */
    struct comparison *comparisons;
    size_t n;
    struct progress progress;
    const volatile int *cancel;
    char error[512];
};

/* compare.c: runs all pairs of one comparison and judges them. A witness that fails is no error; 0,
 * -ECANCELED, or -errno with c->error when nothing can go on (the folder cannot be written,
 * memory). */
int comparison_run(struct crosscheck *c, struct comparison *m);

/* Keeps a text as log/NAME-PAIR-WHAT. 0 or -errno with c->error. */
int crosscheck_keep(struct crosscheck *c, const struct comparison *m, const char *what,
                    const struct buffer *text);
int crosscheck_keep_pair(struct crosscheck *c, const struct comparison *m, bool ours_first);

/* ---- Printing (show.c): the table, a comparison at a time; CSV; JSON ---- */

void show_begin(FILE *out, const struct crosscheck *c);
void show_comparison(FILE *out, const struct crosscheck *c, const struct comparison *m);
void show_end(FILE *out, const struct crosscheck *c);
void show_csv(FILE *out, const struct crosscheck *c);
int show_json(FILE *out, const struct crosscheck *c); /* 0 or -ENOMEM */

/* A server and its client, run together: each on the CPUs it is told, the client once the server
 * listens, both gone at the end. Who listens is read from /proc/net/tcp, not tried by connecting: a
 * server that serves one client would take the try for it. */

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

/* ---- Argument lists out of the templates of crosscheck.h ---- */

struct template_value {
    const char *name, *value; /* value NULL or "": not known */
};

/* `values` ends with a NULL name. A new array, ended by NULL (texts_free): `program` and the words,
 * or where program is NULL the words alone, of which the first is looked for in PATH; words
 * NAME=VALUE before it are put behind `env`. NULL with error: a value that is needed is not known,
 * the program is not there, too many words, or out of memory. */
char **template_fill(const char *program, const char *text, const struct template_value *values,
                     char *error, size_t len);

#endif

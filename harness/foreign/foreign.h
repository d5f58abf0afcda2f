/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of others print, read into one form: lines of facts and figures. For plumb
 * import, which makes rows of them.
 *
 * A line is one case of the other program. A fact is a name and a text that describe the case, in
 * the words of this suite where it has any ("f32", not "float"). A figure is a number with what it
 * is of (its quantity) and what it is among many ("mean"). Which case of which benchmark of ours it
 * is equal to is not known here: the benchmark itself says so (bench_imported in core/bench_rows.h).
 *
 * Every format was read in the sources of its program, or is of its real output. A text that is not
 * as expected is an error, never a guess: a figure from the wrong column is the worst that can
 * happen here.
 */
#ifndef PLUMB_HARNESS_FOREIGN_H
#define PLUMB_HARNESS_FOREIGN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/document/pool.h"

#define FOREIGN_FACTS_MAX   24
#define FOREIGN_FIGURES_MAX 12
#define FOREIGN_BYTES_MAX   (64u << 20) /* of one output */

struct foreign_fact {
    const char *name, *value;
};

struct foreign_figure {
    const char *quantity; /* "bandwidth", "time", "latency" */
    /* The name of a row's column: p50, mean, min, max, p95, p99, p999, stddev. "": there is one
     * number, such as bytes over all of the time. */
    const char *statistic;
    double value; /* in `unit`, by what the program does */
    const char *unit;
};

struct foreign_line {
    struct foreign_fact facts[FOREIGN_FACTS_MAX];
    size_t n_facts;
    struct foreign_figure figures[FOREIGN_FIGURES_MAX];
    size_t n_figures;
    const char *status; /* ok, wrong, skipped or failed */
    const char *reason; /* for people; "" of ok */
    uint64_t samples;   /* 0: not told */
};

struct foreign_reading;

struct foreign_format {
    const char *program; /* "nccl-tests": the suite that the program belongs to */
    const char *kind;    /* "text" or "JSON" */
    /* Text: a regular expression (POSIX, extended) that its output fits. JSON: the path of a member
     * that it has. */
    const char *mark;
    /* The versions that were read: major * 1000 + minor. 0: any, or the output tells none. */
    unsigned from, to;
    int (*read)(struct foreign_reading *r);
    /* The facts that name what a result is of, which a file without its head does not state:
     * "verb test". */
    const char *of;
    /* Of a text: a line that each output has once, at its head; lines before it that belong to it; a
     * line that each has, unless it is cut off. */
    const char *once, *first, *last;
    const char *refused; /* why it is not read; then it has no `read` */
};

extern const struct foreign_format foreign_formats[]; /* ends with a NULL program */

struct foreign_output {
    struct pool pool;
    const struct foreign_format *format;
    const char *version, *command, *host, *started; /* "" where the output does not tell */
    struct foreign_line *lines;
    size_t n;
};

/* Reads an output of whatever program; `name` is of the file, for messages. any_version: also of a
 * version that was not read. 0; -ENOENT: of no program that is known here; -EPROTO: of a version
 * that is not; -EBADMSG: cut off, damaged, or its figures contradict each other; -EIO: it says that
 * the program failed. error says which. *out is to be released in any case. */
int foreign_read(const char *name, const char *text, size_t size, bool any_version,
                 struct foreign_output *out, char *error, size_t len);
void foreign_release(struct foreign_output *out);

const char *foreign_value(const struct foreign_line *line, const char *name); /* "" if not told */
/* NULL: it has none. */
const struct foreign_figure *foreign_find(const struct foreign_line *line, const char *quantity,
                                          const char *statistic);
/* Does a condition (core/condition.h) on the line's facts hold? A fact that is not told is "". */
bool foreign_holds(const struct foreign_line *line, const char *where);

/* The first "3.12" or "0.4.11" in a text as 3012 or 4; 0: none. `text` gets it as it stands. */
unsigned foreign_version(const char *output, char *text, size_t len);

/* ---- Inside of this folder: what readers are made of ---- */

struct foreign_reading {
    struct foreign_output *out;
    const char *name;     /* of the file; "" */
    const char *text;     /* of one output: a file may hold several */
    const json_t *json;   /* of JSON */
    const char *twice;    /* of JSON: a message on a member that is there twice; "" */
    const char *prefixed; /* what stands before many lines, but not before all; "" */
    bool any_version;
    char *error;
    size_t len;
};

/* The text of a file as its program printed it (plain.c); NULL, with the error set. */
const char *plain_text(struct foreign_reading *r, const char *text, size_t size);
bool foreign_is_known(const char *text); /* of a program, or with a line that begins JSON */

#define PERFTEST_TITLE "^ *([A-Z][A-Za-z_ ]+ Test) *$"
int read_nvbandwidth_json(struct foreign_reading *r);
int read_nvbandwidth_text(struct foreign_reading *r);
int read_nccl_json(struct foreign_reading *r);
int read_nccl_text(struct foreign_reading *r);
int read_perftest_json(struct foreign_reading *r);
int read_perftest_text(struct foreign_reading *r);
int read_iperf3(struct foreign_reading *r);
int read_osu(struct foreign_reading *r);

/* -EBADMSG, with the error set. */
int reading_bad(struct foreign_reading *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
struct foreign_line *reading_add(struct foreign_reading *r);
void reading_fact(struct foreign_reading *r, struct foreign_line *line, const char *name,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Units as programs print them. */
enum foreign_unit {
    PRINTED_GB_S,   /* 1e9 bytes */
    PRINTED_MB_S,   /* 1e6 bytes */
    PRINTED_MIB_S,  /* 2^20 bytes, named "MB/s" */
    PRINTED_GBIT_S, /* 1e9 bits */
    PRINTED_BIT_S,
    PRINTED_US,
    PRINTED_NS, /* into ns */
    PRINTED_MOP_S,
    PRINTED_OP_S
};
void reading_figure(struct foreign_line *line, const char *quantity, const char *statistic,
                    double printed, enum foreign_unit unit);
double reading_scale(enum foreign_unit unit); /* printed * this = value */

/* A number above 0 that is all of a word. 0 or -EBADMSG. */
int reading_number(struct foreign_reading *r, const char *word, double *value);
/* reading_number() of a member of JSON, "end.sum_received.bits_per_second"; NaN is no number. */
int reading_json_number(struct foreign_reading *r, const json_t *root, const char *path,
                        double *value);
const json_t *reading_at(const json_t *root, const char *path);
/* The text of a member of JSON; "" if it is none. It lives as long as the output. */
const char *reading_json_text(struct foreign_reading *r, const json_t *root, const char *path);
/* The first group of a regular expression in the text; "" if it does not fit. */
const char *reading_match(struct foreign_reading *r, const char *text, const char *pattern);
/* Where a group of it (0: all) stands, and its length; 0: it does not fit, or is empty. */
size_t reading_find(const char *text, const char *pattern, size_t group, size_t *at);
size_t reading_count(const char *text, const char *pattern); /* how often it fits */

/* A line of the text, cut into words. */
#define READING_WORDS 48
struct words {
    char *all[READING_WORDS];
    size_t n;
};
/* The line at *at, and *at at the next one; false at the end. The line stands alone in *line. */
bool reading_line(struct foreign_reading *r, const char **at, const char **line);
void reading_words(struct foreign_reading *r, const char *line, struct words *words);
bool words_number(const struct words *words); /* is the first one a whole number? */
/* 0; -EBADMSG with the error set: there are fewer. */
int words_columns(struct foreign_reading *r, const struct words *words, size_t n);
size_t words_find(const struct words *words, const char *word,
                  size_t from); /* n: it is not there */

/* Of MPI's and NCCL's names. "" where this suite has no word. */
const char *reading_dtype(const char *name);

/* Two figures that say the same agree, though each is rounded by `ulp` of its own. */
bool reading_agrees(double a, double ulp_a, double b, double ulp_b);

#endif

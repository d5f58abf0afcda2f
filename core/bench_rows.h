/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a benchmark says of its rows: the columns, metrics and limits, and how a report shows and
 * judges them. The tables stand in the benchmark's own folder; --describe prints them as JSON,
 * run.json keeps them, and the harness, which knows no benchmark by name, reads them from there
 * into the same structs.
 *
 * Every table ends with an entry whose first member is NULL. `where` and the like are conditions
 * (core/condition.h) on the columns of a row, and on `metric` and `unit`. A member that is not
 * named is not there: a text NULL, a number 0, a flag false.
 */
#ifndef PLUMB_CORE_BENCH_ROWS_H
#define PLUMB_CORE_BENCH_ROWS_H

#include <stdbool.h>
#include <stddef.h>

/* Where things stand in a report: from the arithmetic units outwards. GPUs come before CPUs. */
enum bench_stage {
    STAGE_NONE, /* behind all others */
    STAGE_COMPUTE,
    STAGE_MEMORY,
    STAGE_COPY,
    STAGE_CALL,
    STAGE_LATENCY,
    STAGE_NETWORK,
    STAGE_GROUP,
    STAGES
};

enum {
    COLUMN_OUTCOME =
        1, /* follows from the others, and makes no case: it may differ between launches */
    COLUMN_DECIDES = 2, /* an outcome: where it differs between runs it is another quantity */
    COLUMN_USED = 4,  /* an outcome: what was chosen for the option of its name, see opt.left_by */
    COLUMN_BYTES = 8, /* a size in bytes. Of options: OPT_SIZE says so */
    COLUMN_PLACE =
        16, /* a place: "host", "cuda:0". Of options: OPT_PLACE says so. A case is on a GPU
                           where one of these is */
};

/* For the table for people: not a column there, but told once for the rows that it holds for. */
#define BENCH_COLUMN_ASIDE (-1)

/* A column of parameters: one that setup fills by point_column(), or more of an option's column (or
 * of its NAME_used), of which --describe tells all. */
struct bench_column {
    const char *name;
    int width; /* in the table for people; 0: as most; or BENCH_COLUMN_ASIDE */
    unsigned flags;
    const char *sought_by; /* the column that, where it was asked for, makes this one an outcome */
};

enum bench_better { BETTER_BY_UNIT, BETTER_MORE, BETTER_LESS };

struct bench_metric {
    const char *name;
    const char *units;        /* names of units_table, with blanks between */
    enum bench_better better; /* by the unit: a rate more, a time less */
    const char *unjudged;     /* why compare, check and history pass no verdict; NULL: they do */
    /* of a launch that died before its first row: what it was to measure. NULL: no launch is for
     * this metric */
    const char *where;
    const char
        *says; /* what it is, below its plot: "Packets that TCP sent again"; NULL: its name does */
};

enum {
    HEADLINE_GPU = 1,   /* of cases on a GPU alone; without it, of those on none */
    HEADLINE_TAIL = 2,  /* the sentence names the slowest in a thousand */
    HEADLINE_QUIET = 4, /* no line where all such cases were skipped: what they need is a luxury */
    HEADLINE_OVER = 8,  /* the line says over which device: the first word of the column `detail` */
};

/* One line of the report's first table: the best of the cases that it is for, or of places that are alike the median. */
struct bench_headline {
    const char *pipe;  /* "Memory" */
    const char *label; /* what the line is of; the value of `by` follows; "%s": that value alone */
    const char *where; /* of which cases */
    const char *by;    /* a line for each value of this column; NULL: one line */
    const char *at;    /* "+size": only cases at the largest size of their line; "-size": smallest;
                          "backend=auto": those that match, where any does; several, one after
                          another: "+ranks +size" */
    double low_below;  /* % of the limit below which it is called low; 0: not judged */
    enum bench_stage stage; /* STAGE_NONE: the benchmark's own */
    unsigned flags;
};

/* Cases that differ in one column alone, set side by side: each case that matches `where` against
 * the one that has another value of `column`. */
struct bench_contrast {
    const char *title;  /* "the library's choice against the best of its candidates" */
    const char *where;  /* of the first case */
    const char *column; /* in which they differ */
    const char *other;  /* condition of the second case */
    const char *by;     /* columns: of each combination of their values the best case is taken */
    const char *lower, *higher; /* "%s" is by how much the second is below or above the first */
    const char *same;           /* there is no difference that matters */
    unsigned flags;             /* HEADLINE_GPU */
};

/* Cases that do the same in places that are built alike, as the rails of a machine: a report names
 * one that is far behind, where judging proves it (harness/report/siblings.h). */
struct bench_sibling {
    const char *title;  /* what they are: "rail" */
    const char *where;  /* of which cases */
    const char *column; /* whose value tells them apart */
    /* NULL: each is held against all others that differ from it in `column` alone. Else against the
     * one case that this condition holds for, and that differs in the columns of `but` alone */
    const char *against, *but;
    /* columns that name it behind its value, each as NAME or WORD=NAME, where its value follows that
     * word: "device peer=other_device" is "(mlx5_3:1, peer mlx5_4:1)"; NULL: none */
    const char *named;
    double below;     /* % of the others below which it is far behind */
    const char *says; /* "carries %s of the other rails" */
    /* Of `against`: a case without a value for which this holds has no such path at all, and
     * `absent` says so. NULL: that is not told. */
    const char *refused, *absent;
};

/* How plots of the cases on a GPU, or on none, are cut; and how their labels are made. */
struct bench_plot {
    const char *x;      /* column of the x axis */
    const char *lines;  /* columns that make lines before others, best first: "op stores" */
    const char *ignore; /* columns that say nothing of their own here: "accumulate" */
    /* columns that are equal where x says all: "m n k" of square products. Cases in which they
     * differ are listed in plots of their own */
    const char *square;
    const char *undrawn;   /* metrics that are shown elsewhere, or say the same as another */
    const char *elsewhere; /* condition of cases that are drawn elsewhere */
    unsigned flags;
};

enum {
    PLOT_GPU = 1,         /* of cases on a GPU; else of those on none */
    PLOT_BYTES = 2,       /* x is a size in bytes */
    PLOT_CACHE_MARKS = 4, /* x is a working set: mark the caches' sizes */
};

/*
 * The time of an operation that n ranks do together: messages(n) a + bytes(n) S b, where a is the
 * time of a message, b that of a byte, and S the bytes of a rank's vector. The first of the table
 * that fits a case. These are formulas:
 *
 *   + - * / and parentheses, whole numbers, and the names
 *   n       number of ranks
 *   p       the largest power of two that is at most n
 *   steps   log2 of p
 *   beyond  1 where n is above p, else 0
 */
struct bench_terms {
    const char *where;
    const char *messages;
    const char *bytes; /* as a share of S */
    const char *bus;   /* the same, as bus bandwidth counts it: the least over a link */
};

/* The part of the machine that a case measures, for comparing: one for each case, the first that
 * fits. */
struct bench_pipe {
    const char *pipe; /* "Matrix core" */
    const char *where;
    unsigned flags; /* HEADLINE_GPU */
};

enum bench_limit_of {
    LIMIT_MACHINE, /* `figures` are keys of limits of the whole machine, whose threads (column
                        `threads`) fill all of its cores */
    LIMIT_GPU,     /* figures of the GPU that the column `address` names */
    /* of the slowest link between the host and the GPUs of `address`, "A" or "A+B" */
    LIMIT_HOST_LINK,
    LIMIT_PEER_LINK, /* of the links between these two; where there are none as LIMIT_HOST_LINK */
    /* figures of the GPUs that the column `gpu_addresses` names ("A+B+C"), of the one that has the
     * least; none where two of them have no NVLink between them */
    LIMIT_NVLINK_GROUP,
};

/* A limit of this machine that holds for rows, in place of a ceiling that the benchmark measured:
 * the first of the table that fits and is known. */
struct bench_limit {
    const char *where;
    enum bench_limit_of of;
    const char *figures; /* "f64_tensor_tflops f64_tflops"; of several the highest. NULL of links */
    double times;        /* of the limit: 2 for the sum of both directions; 0: once */
    const char *by;      /* a column: the limit is so many times that. NULL: none */
    const char *remark;  /* before the limit's source: "both directions" */
    /* Why a value may exceed it, where `times` is below 1. The limit is then the whole figure, and
     * this is the remark. NULL: no value may. */
    const char *exceeded;
};

/*
 * The price of one cause on this machine: the same case with it and without it, in turn
 * (plumb doctor --measure). Both sides run the benchmark with options that its command line has; a
 * row is `metric` and `where`, and there is one of it. Several may have the same id.
 *
 * `machine` is a condition on these facts of the machine. A fact that is not known holds.
 *
 *   cpus        CPUs that this process may use
 *   nodes       NUMA nodes with memory
 *   gpus        GPUs that a program here can use
 *   rdma        RDMA devices
 *   huge_pages  transparent huge pages: always, madvise, never
 *   congestion  congestion controls that a program may choose: +reno+cubic+
 *   quota       CPUs of the quota, or none
 *   guest       true or false
 *   peer        host of the listener (--peer); empty: both ends are on this machine
 *   rdma_mtu    the least path MTU of RoCE that an interface leaves room for
 */
struct bench_experiment {
    const char *check; /* id of the cause: "far-memory" */
    const char *cause; /* what the one side has: "memory of another NUMA node" */
    const char *lost;  /* what it costs: "memory bandwidth" */
    const char *both;  /* options of both sides; NULL: none */
    const char *with, *without;
    const char *unset; /* variables, of which the environment of `without` lacks one: "MKL_*" */
    const char *metric;
    const char *where;  /* which of its rows; NULL: there is one */
    const char *counts; /* a metric that is above 0 where the cause is at work: where the first turn
                            counts nothing with it, there is nothing to price. NULL: always */
    const char *absent; /* then the reason: "the line lost nothing" */
    const char *pipe;   /* the component of the machine, as in the table `pipes` */
    const char *machine; /* NULL: any */
    const char *lacks;   /* where `machine` does not hold: "it has one NUMA node" */
};

/*
 * Which rows are parts of a job, from which plumb forecast makes the time of a training step. Each
 * part is read from columns with fixed names.
 *
 *   product   a rate: products of matrices, m, n, k, of `dtype`
 *   stream    a rate: bytes through memory that no cache holds; the largest of `size`, or of
 *             `working_set` where there is no such option
 *   call      a time: between two operations that a host starts on a device one after another
 *   sum, scatter, gather, exchange, message
 *             a time: what `ranks` ranks do with a vector of `size` bytes: every rank gets the sum
 *             of all; its part of the sum; all parts; a part of each; one sends to the next. It
 *             needs an entry of `terms`. Rows that have a `limit` in GB/s stand beside it, of the
 *             metric `rate`
 *   overlap   percent: how much of the shorter of a sum and a product is hidden behind the other
 *   step      a time: of a whole step of training. It is not used, but held against the forecast.
 *             Its columns:
 *               model      as core/model.h; seq: tokens of a sample, 0: the model's
 *               ranks      on so many `nodes`; `dp` of them have a batch of `batch` samples each
 *               tp, pp, ep, zero, micro_batches
 *               bucket     bytes; overlap: `none`, or sums go on beside the backward pass
 *               dtype      of what is sent, by this `backend` and `transport`
 *               compute_ms both passes of the whole model over the batch, on one rank alone; empty:
 *                          not known
 *               update     none, or what updates the parameters; update_ms: how long that takes
 */
enum bench_part_of {
    JOB_NONE,
    JOB_PRODUCT,
    JOB_STREAM,
    JOB_CALL,
    JOB_SUM,
    JOB_SCATTER,
    JOB_GATHER,
    JOB_EXCHANGE,
    JOB_MESSAGE,
    JOB_OVERLAP,
    JOB_STEP,
    JOB_PARTS
};

struct bench_part {
    const char *where; /* which rows */
    enum bench_part_of of;
    const char *rate; /* of parts of several ranks: the metric whose rows have the limit; or NULL */
    const char *measure; /* the command that measures it: "plumb run node" */
};

/* What a process that measures many cases pays once: a run puts the cases that fit into one process. */
struct bench_start {
    const char *what;  /* "driver and context of the GPU" */
    const char *where; /* a condition on the options of a case; NULL: all */
};

/*
 * Which case of this benchmark a figure of another program is equal to (plumb import). All that fit
 * are taken.
 *
 * `columns` are words NAME=VALUE. A value that begins with '@' is a fact of the line: "size=@size".
 * A parameter that no word names, or whose fact is not told, is not known, and becomes the pattern
 * "*": it is in the row of any case. "node*" is any node. So is it not where the option does not
 * apply (its scope), and of a column that is no option: these are empty. A flag whose fact is not
 * told is off.
 */
struct bench_imported {
    const char *program;  /* a program of harness/foreign: "nccl-tests" */
    const char *where;    /* a condition on the facts of a line */
    const char *quantity; /* of the line's figures: all of it go into one row */
    const char *metric;   /* of the row */
    const char *columns;
    const char *differs; /* for people: what is not the same in both; NULL: nothing known */
    /* For people: why lines that fit are no case of any benchmark: "copies between nodes are not
     * measured here". Quantity, metric and columns are "" then. NULL: they are a case. */
    const char *refused;
};

/*
 * A whole job, such as training: its rate, and what bounds it, are in the first lines of a run. The
 * job of each value of `by` is its first case at the most of `at`: a suite gives it before the other
 * ways to do the same, which are the table `advice`. core/job.h has the rules.
 */
struct bench_job {
    const char *label;      /* of its lines: "Training" */
    const char *where;      /* cases of its rate */
    const char *by;         /* the column that names it: "model" */
    const char *at;         /* "+ranks", or "-ranks": the least; NULL: any */
    const char *on, *thing; /* a column and what it counts: "ranks", "rank". NULL: not told */
    const char
        *stated; /* behind a simulated rate: what is not measured in it. NULL: all is simulated */
    const char *stated_where; /* simulated cases of which that holds; NULL: all. Of others all is */
    double gain;              /* in percent of its time: no way to save less is advised */
};

/* BOUND_REST: what the other shares leave of the job's time, of cases that fit `where` */
enum { BOUND_REST = 1 };

/* What the time of a job goes into: rows in percent beside its rate, of which no two entries fit one. The largest share
 * bounds it. */
struct bench_bound {
    const char *where; /* "metric=exposed" */
    const char *word;  /* "the network" */
    const char *says;  /* "%s of the step waits for sums" */
    const char *todo;  /* what makes it less, if no other way is faster; NULL: nothing to say */
    unsigned flags;
};

/* A column in which ways to do the same job differ: a faster one is advised, where that is proven. */
struct bench_advice {
    const char *column;  /* "bucket" */
    const char *where;   /* jobs in which it changes something: "dp!=1"; NULL: all */
    const char *says;    /* "buckets of %s": the value of the way */
    const char *measure; /* options that measure several: "--bucket 1M,25M,100M" */
};

struct bench_rows {
    enum bench_stage stage;
    const struct bench_column *columns;
    const struct bench_metric *metrics;
    const struct bench_headline *headlines;
    const struct bench_contrast *contrasts;
    const struct bench_sibling *siblings;
    const struct bench_plot *plots;
    const struct bench_terms *terms;
    const struct bench_pipe *pipes;
    const struct bench_limit *limits;
    const struct bench_experiment *experiments;
    const struct bench_part *parts;
    const struct bench_start *starts;
    const struct bench_imported *imported;
    const struct bench_job *jobs;
    const struct bench_bound *bounds;
    const struct bench_advice *advice;

    /* Of the benchmark's own table, which the harness does not read. Names of columns, with blanks
     * between: what stands above the lines, and what is a column though one value was asked for */
    const char *context, *shown;
    const char *average;   /* a metric: its mean over all sizes is told at the end */
    const char *from, *to; /* options that name places: of three and more a matrix is shown */
};

/* The same as data: names of JSON members and where they are kept, for who writes and who reads. */
enum rows_field_type { ROWS_TEXT, ROWS_NUMBER, ROWS_FLAG, ROWS_CHOICE };

#define ROWS_NEEDED 1u /* no entry lacks it */

struct rows_field {
    const char *name;
    enum rows_field_type type;
    unsigned flag; /* ROWS_FLAG: this bit of an unsigned; ROWS_TEXT: ROWS_NEEDED, or 0 */
    size_t offset;
    const char *const
        *choices; /* ROWS_CHOICE: names of an enum's values; the first is not written */
};

struct rows_list {
    const char *name;                /* "columns" */
    size_t offset;                   /* of the table in struct bench_rows */
    size_t size;                     /* of an entry */
    const struct rows_field *fields; /* ends with a NULL name */
};

extern const struct rows_list rows_lists[];   /* ends with a NULL name */
extern const char *const bench_stage_names[]; /* of enum bench_stage; ends with NULL */
extern const char *const bench_part_names[];  /* of enum bench_part_of; the same */

#endif

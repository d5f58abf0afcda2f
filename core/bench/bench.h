/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a benchmark is. A folder in benches/ (or one C file) defines `const struct bench bench`;
 * core/bench/main.c owns main() and does the rest: options, the sweep over their lists, warm-up,
 * sampling, statistics, the ledger and the rows.
 *
 * The life of one point (one choice of parameters):  setup -> sample, many times -> check ->
 * evidence -> teardown.
 */
#ifndef PLUMB_CORE_BENCH_BENCH_H
#define PLUMB_CORE_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/backend.h"
#include "core/bench_rows.h"
#include "core/hw/topo.h"
#include "core/ledger.h"
#include "core/option.h"
#include "core/row.h"
#include "core/sampler.h"

#define BENCH_COLUMNS_MAX     16 /* columns that are outcomes, not options */
#define BENCH_OPTIONS_SET_MAX 40
#define SERIES_SET_MAX        4

/* The options that every benchmark has. */
struct bench_common {
    uint64_t budget_ns, warmup_ns;
    double confidence, width;
    uint64_t min_samples, max_samples;
    uint64_t repeats, seed;
    bool csv, json, verbose, planned, describe, help, version, no_color;
    const char *samples_path, *output_path, *batch_path;
};

struct point;
struct device_work;

struct gpu;
struct gpus;
struct gpu_watch;
struct teller;

/* One thing that a point measures; a row each. Filled in by setup. */
struct series {
    const char *metric; /* "bandwidth" */
    const char *unit;   /* a name of units_table */
    double quantity;    /* bytes or operations of one operation, where the unit is a rate */
    struct {
        const char *column, *value;
    } set[SERIES_SET_MAX]; /* columns whose value is this series' own: {"direction", "forward"} */
    double limit;          /* in the unit; NAN or 0: none known here */
    enum limit_kind limit_kind;
    const char *limit_link, *limit_scope; /* see row.h; NULL: none */
    const char *limit_source;             /* for people: "measured: ..."; must outlive the point */
    struct limit_parts parts;             /* of a measured limit; setup or check may set them */
    double limit_before, limit_after;     /* where it was measured twice: not 0 */
};

struct bench {
    const char *name; /* "memory"; the binary is plumb-memory */
    const char *help; /* one line */
    /* a paragraph under --help: what is timed, how bytes or operations are counted */
    const char *about;
    const char *arguments; /* that are no options, for the usage line: "[HOST]"; NULL: none */
    /* "", or what it cannot do without: "peer", "group", "gpu", "network"; "peer-if-asked": some of
     * its points have a peer, whose host stands on the command line as that of "peer" does */
    const char *needs;

    /* its own; OPT_COLUMN ones are columns, OPT_LIST ones may be swept; what one says nothing of
     * has an empty column, is measured once for all of its values, and refuses the only one
     * given: option.h */
    const struct opt *options;
    size_t params_size; /* of the struct that the options' offsets refer to */
    const struct bench_rows
        *rows;          /* what is said of its rows, further columns among them; NULL: nothing */
    const char *origin; /* NULL: measured; a benchmark that makes up its samples says simulated */

    /* Not required. Is this combination of values worth a point, in a sweep? Those that are not are
     * left out without a row, unless none would be left. pt as at setup, but for the reason. */
    bool (*wanted)(struct point *pt);

    /* Not required. Can these values be meant, of this machine and with one another? 0, or -errno
     * with the reason where they never can: more threads than CPUs, a rank that is not there. What
     * is absent (a GPU, a library, free memory) is setup's to say. Asked before open() and before
     * anything is measured: a value that was given and that no point can have is wrong usage, in a
     * run's launch (--planned) a skipped row. */
    int (*possible)(struct point *pt);

    /* Not required. Called when the command line was read: sets options that were not given by
     * those that were (opts_values(), opts_set()). 0, or -errno with o->error set. */
    int (*defaults)(struct opts *o);

    /* Not required. Where the options say so, does something else than to measure (serves a peer)
     * and returns the exit status; -1: it does not. */
    int (*instead)(struct opts *o, const struct bench_common *common, const volatile int *cancel);

    /* Required. Allocates, fills with data, chooses the series. 0; -EOPNOTSUPP or -ENODEV: cannot
     * run here, a skipped row (say why by point_reason()); any other -errno: a failed row. teardown
     * is called in every case. */
    int (*setup)(struct point *pt);
    /* Required, as teardown, unless setup hands the point on: work_setup(). The timed thing: see
     * sampler_fn; pt->n_series times in ns. No branch on options in here. */
    int (*sample)(struct point *pt, uint64_t inner, uint64_t *ns);
    /* Not required. Called when the warm-up is over, before the first sample that counts. 0 or
     * -errno. */
    int (*begin)(struct point *pt);
    /* Not required. Is the data right? 0; -EBADMSG: wrong data (say what by point_reason()); any
     * other -errno: failed. Not timed. */
    int (*check)(struct point *pt);
    /* Not required. Writes pt->evidence: what carried the bytes. Called after sampling. */
    int (*evidence)(struct point *pt);
    /* Required. Undoes setup, also one that stopped half-way. */
    void (*teardown)(struct point *pt);
    /* Of ctx->bench_state, the benchmark's own: zeroed before the first point of the process, which
     * may measure several command lines (--commands). */
    size_t bench_state_size;
    /* Not required: called after the last point. */
    void (*close)(struct point *ctx);

    /* Not required. Says which of its backends (libraries, engines, devices) are here, for plumb
     * list and for plans. */
    void (*backends)(backend_say_fn *say, void *arg);

    uint64_t sample_ns; /* wanted length of one sample; 0: one operation a sample (latency);
                           BENCH_SAMPLE_DEFAULT */
};

/* 1000 times the cost of a clock reading would do for one thread; a team's start and end cost a few
 * us more, which shall stay under 1 %. */
#define BENCH_SAMPLE_DEFAULT 1000000u

/* What other processes saw of their GPUs. The benchmark's, until the point is torn down. */
struct gpu_elsewhere {
    struct gpu_ledger same;   /* of the GPU that the point watches, too */
    struct gpu_ledger ledger; /* of others */
    char disturbed[256]; /* whose were, and how: "rank 3 (node1): GPU held back ..."; "" none */
};

struct point {
    const struct bench *bench;
    const struct bench_common *common;
    const void *params;              /* the benchmark's own struct, with this point's values */
    const struct opt_values *values; /* the same as texts, of its own options: use point_refuse() */
    const size_t *pick;
    void *state;       /* setup's own; NULL at setup */
    void *bench_state; /* the same in all points */
    struct series series[SAMPLER_SERIES_MAX];
    size_t n_series;
    uint64_t repeat;      /* which time this point is measured in this process, from 1 */
    uint64_t sample_ns;   /* from bench->sample_ns; setup may change it */
    uint64_t min_samples; /* from the options; setup may raise it */
    uint64_t max_samples; /* from the options; setup may lower it */
    uint64_t max_inner;   /* operations of one sample at most; 0: no bound; setup may set it */
    bool noisy;           /* check may set it, with the reason: whatever the intervals are */
    bool untimed;         /* the work is done and checked, but its times are not to be used */
    bool enough;          /* sample may set it: no further ones are wanted */
    const char *origin;   /* "measured", unless the benchmark or the device says otherwise */
    const struct device_work *work; /* the hooks: the benchmark's, or as work_setup() set them */
    char columns[BENCH_COLUMNS_MAX][128];
    struct {
        char name[40], value[64];
    } options[BENCH_OPTIONS_SET_MAX]; /* use point_option() */
    char reason[512];
    char evidence[256];
    unsigned carriers;        /* set with it, where it is proved: row.h */
    char carrier_device[64];  /* what this end opened for the bytes; "": none */
    int carrier_gid;          /* of RoCE, from 1 on: the index of its GID, and 1; 0: none */
    struct figure *figures;   /* use point_figure() */
    struct topo *topo_loaded; /* use point_topo() */
    struct gpus *gpus_loaded; /* use point_gpus() */
    struct teller *teller;    /* of the line that says how far it is */
    struct gpu_watch *watch;  /* the GPUs of this point; NULL: there was none yet */
    struct gpu_ledger seen;   /* what it saw while the samples were taken: for check */
    /* GPUs that other processes of this point watched, said by check; NULL: none */
    struct gpu_elsewhere *elsewhere;
    char watch_of[40]; /* whose GPUs `watch` has, where there are others': "rank 0: "; else "" */
    const volatile int *cancel; /* set: the program is to end; NULL: never */
};

/* The topology, loaded at first use; NULL on an error, with the reason set. Lives as long as the
 * process. */
struct topo *point_topo(struct point *pt);

/* Sets one of bench->rows->columns of this point's rows. Aborts on a name that the benchmark did
 * not declare (a bug). */
void point_column(struct point *pt, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What an option's column shows in this point's rows where that is not what was asked for: the 8
 * threads that --threads 0 meant; "" where the option says nothing here. */
void point_option(struct point *pt, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The GPUs of this machine: nothing is opened until one is asked for. Lives as long as the process.
 */
struct gpus *point_gpus(struct point *pt);

/* Opens GPU `index` for this point: its clocks and throttling go into the rows, and where it is a
 * simulated one, so does that. 0, or -errno with the reason set: -ENODEV where there is no GPU,
 * -EINVAL where there are, but none of that number. */
int point_gpu(struct point *pt, unsigned index, struct gpu **gpu);

/* For a point that was to use a GPU and did not get to: simulated, where a library that it would
 * have used is a stand-in. */
void point_gpu_origin(struct point *pt);

/* Adds what gpu_error() says to the reason, and returns err. */
int point_gpu_failed(struct point *pt, struct gpu *gpu, int err);

/* Adds a remark to the reason of this point's rows ("; " between remarks). Returns `err`, so that
 * setup can `return point_reason(...)`. */
int point_reason(struct point *pt, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What options cannot be together, and what to take instead. */
struct bench_rule {
    const char *when; /* a condition on options: core/condition.h */
    const char *why;
};
/* By the first of the rules that holds for this point: -EOPNOTSUPP with its reason. 0: none does. A
 * NULL `when` ends them. */
int point_refuse(struct point *pt, const struct bench_rule *rules);

/* Adds a series with these values and returns it. */
struct series *point_series(struct point *pt, const char *metric, const char *unit,
                            double quantity);

/* The benchmark of this binary, and what it says of its rows where that stands in a file of its
 * own. */
extern const struct bench bench;
extern const struct bench_rows bench_rows;

/* Its own columns, ended by a NULL name; never NULL. */
const struct bench_column *bench_columns(const struct bench *b);

/* A figure: what a point tells beside its series, a row of its own. It has no time series: one
 * value, or some few that were taken while the series were sampled (blocks of a second). Its row
 * has no stop rule: `samples` says how many values there are, the value is their median, and with
 * enough of them it has an interval. */

#define FIGURE_VALUES_MAX 64
#define FIGURE_SET_MAX    4

struct figure {
    char metric[32], unit[16]; /* the unit: a name of units_table */
    struct {
        char column[24], value[64];
    } set[FIGURE_SET_MAX]; /* columns whose value is this figure's own */
    double values[FIGURE_VALUES_MAX];
    size_t n;
    /* Of the one GPU that its row is about, which has this in its columns gpu_*; NULL: of none. The
     * benchmark's, until the point is torn down. */
    const struct gpu_ledger *gpu;
    char remark[128]; /* why its value is to be taken with care: the row is noisy; "" */
    char note[128]; /* what is to be known of it: the row is good, and says it as its reason; "" */
    struct figure *next;
};

/* Adds one to the point and returns it. Those without a value give no row. */
struct figure *point_figure(struct point *pt, const char *metric, const char *unit);
void figure_set(struct figure *f, const char *column, const char *value);
/* Both leave NULL alone; values beyond FIGURE_VALUES_MAX abort: a bug. */
void figure_value(struct figure *f, double value);
void figure_remark(struct figure *f, const char *remark);

void figures_release(struct point *pt);

/* ---- Measured ceilings of this process, so that each is measured once ---- */

/* "loads, CPUs 0-3, <detail>": a place. "" where the CPUs are too many ranges to be told. */
void ceiling_place(char place[CEILING_PLACE], const char *path, const unsigned *cpus, unsigned n,
                   const char *detail, ...) __attribute__((format(printf, 5, 6)));

struct ceilings { /* zeroed: empty */
    struct ceiling {
        char key[CEILING_PLACE + 8]; /* what was measured: parameters as text */
        double value;
    } * all;
    size_t n;
};

/* 0 with *value, or -ENOENT. */
int ceilings_find(const struct ceilings *c, const char *key, double *value);
void ceilings_add(struct ceilings *c, const char *key, double value);
/* The same, or where the key is there with a lower value, this one. */
void ceilings_raise(struct ceilings *c, const char *key, double value);
void ceilings_release(struct ceilings *c);

/* What a benchmark does on one kind of device. A benchmark that runs on several hands its hooks on
 * to the table of the device that was asked for, and knows no device by name. */

/* As the hooks of struct bench, all required. setup keeps what it needs in pt->state. */
struct device_work {
    int (*setup)(struct point *pt);
    int (*sample)(struct point *pt, uint64_t inner, uint64_t *ns);
    int (*check)(struct point *pt);
    int (*evidence)(struct point *pt);
    void (*teardown)(struct point *pt);
};

/* For a benchmark's own setup, which hands the point on: all further hooks are that table's. */
int work_setup(struct point *pt, const struct device_work *work);

#endif

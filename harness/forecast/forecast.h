/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb forecast: from the measured parts of a machine to the time of a training step, at numbers
 * of nodes that were not measured. docs/forecast.md has the method and an example by hand.
 *
 *   parts_read()     from runs: what products, memory, launches and operations between ranks cost
 *   forecast_make()  from parts and a job: a time with an interval for each number of nodes, or why
 *                    there is none
 *   forecast_show()  the answer as a document
 *
 * Which rows are which part, benchmarks say (struct bench_part). An interval is made of what each
 * part may be off by: the step is computed again with each part at both ends of its own interval,
 * and the differences are added as squares.
 */
#ifndef PLUMB_FORECAST_FORECAST_H
#define PLUMB_FORECAST_FORECAST_H

#include "harness/document/document.h"
#include "harness/forecast/law.h"
#include "harness/forecast/step.h"
#include "harness/plan/bench_info.h"

#define FORECAST_POINTS_MAX 64

/* ---- parts ---- */

struct part_product {
    double m, n, k;
    double flops;  /* operations a second */
    double limit;  /* the datasheet's or measured limit, operations a second; NaN */
    double jitter; /* the deviation of the logarithm of its samples; NaN */
};

struct part_law {
    struct law law;
    const char *label; /* "ring over tcp, 8 ranks" */
    double nodes;      /* the most that its points are on */
    double per_node;   /* ranks of a node there */
    double limit;      /* what the links of a node carry at most, bytes a second; NaN */
    double link_gbits; /* the rate of each, as the system states it; NaN: not known */
    double links;      /* so many */
};

/* A measured step, to be held against the forecast. */
struct part_step {
    const char *model; /* as the row has it: a name, or a path */
    double s, low_s, high_s;
    double ranks, nodes, batch, tp, pp, ep, micro, zero, prefetch, bucket, element_bytes;
    uint64_t sequence; /* 0: the model's */
    bool overlap;
    bool other_way;     /* than the sums: another backend or transport */
    bool other_order;   /* of its passes than a forecast has: GPipe's, of several stages */
    double compute_s;   /* both passes of the whole model on one rank alone; NaN: not known */
    const char *update; /* its name */
    double update_s;    /* 0: none; NaN: not known */
    bool simulated;     /* compute was a wait, which sums do not slow */
};

/* What a step takes beside its operations: a measured step of one rank, without its compute and its
 * update. Of those of the job's model; where there are none, of all. The mean, the least and the
 * most; NaN: none was measured. */
struct part_host {
    double s, low_s, high_s;
    bool other; /* of other models */
};

struct parts {
    const char *machine; /* the names of the runs */
    const char *dtype;   /* of the products */
    bool gpu;            /* parts of a GPU; else of CPUs */
    /* Limits are by the highest clock, which is above that of a datasheet. */
    bool products_clocked, memory_clocked;
    const char *device; /* the name of all GPUs of the runs; NULL: none, or several */
    struct part_product *products;
    size_t n_products;
    double product_apart;  /* the largest distance of one to its nearest, as a logarithm */
    double product_spread; /* of the logarithm of a rate, found by leaving out each; NaN */
    double jitter;         /* the mean of the products'; NaN */
    double stream;         /* bytes a second; NaN */
    double stream_low, stream_high;
    double stream_limit;                    /* the machine's, bytes a second; NaN */
    double call_s, call_low_s, call_high_s; /* NaN */
    double hidden, hidden_low, hidden_high; /* share of the shorter that overlaps; NaN */
    struct part_law laws[JOB_PARTS];        /* of several ranks; law.n 0: none */
    struct part_law inside[JOB_PARTS];      /* of ranks of one node; law.n 0: none */
    struct part_step *steps;
    size_t n_steps;
    struct part_host host, host_waits; /* of real compute; of compute that was a wait */
    double memory_bytes;               /* of the smallest GPU, or of a node; NaN, 0: not known */
    const char *measure[JOB_PARTS]; /* the command that measures a part; "" where nothing says it */
};

/* Reads the parts from a report's runs. `dtype`: of products, or NULL: that of the fastest. `over`:
 * a condition on rows of several ranks, or NULL. `per_node`: ranks of a node, where several were
 * measured; 0: the most of the most nodes. Everything lives in the report's pool. */
void parts_read(struct report *r, const struct bench_list *benches, const char *dtype,
                const char *over, double per_node, struct parts *parts);

/* Of a gradient, by the data type of the products. */
double parts_element_bytes(const struct parts *p);

#define PARTS_SHAPES 3 /* fewer do not tell how well one stands for another */

/* The time of `count` products; NaN: fewer than PARTS_SHAPES shapes were measured. The rate is the
 * mean of the measured ones, as logarithms, weighted by 1 / distance^4 in the logarithms of m, n
 * and k. */
double parts_product_s(const struct parts *p, double m, double n, double k, double count);
/* How far that may be off, as a logarithm: by Student's t on the spread; of a shape that is farther from all
 * measured ones than these are from each other, more in proportion. */
double parts_product_off(const struct parts *p, double m, double n, double k);

/* Fills in product_spread, product_apart and jitter from the products: parts_read() has done so. */
void parts_product_spread(struct parts *p);

/* Fills in host and host_waits from the steps. */
void parts_find_host(struct parts *p, const struct model *model);

/* Fills in the link's rate and number, of rows that have what all links of a node carry as payload. */
void parts_find_link(const struct report *r, struct part_law *law);

/* ---- the forecast ---- */

enum swap_part { SWAP_NETWORK, SWAP_PRODUCTS, SWAP_MEMORY, SWAPS };

/* Parts are replaced by others that were not measured: the rate of each is `times` what it was. */
struct forecast_swap {
    double times[SWAPS]; /* 0: as it is */
    double memory_bytes; /* of the device that is swapped in; NaN: not known; 0: none is */
    /* What the measured sums moved over the links of a node, where a network is swapped: whoever
     * states the measured link's rate can hold it against this. NaN: not known. */
    double reached_gbits;
    const char *text; /* "network: 10 to 400 Gb/s"; NULL: nothing is swapped */
};

/* Equal links of a node that may add up. */
#define FORECAST_LINKS 8

/* "network: 10 to 400 Gb/s: not measured; the measured sums moved 9.2 Gb/s over the links of a
 * node" */
const char *forecast_swap_text(struct pool *pool, const struct forecast_swap *swap);

/* Reads "network=400Gb/s,products=gpu.KEY": PART=FROM:TO, a rate, or [FILE:]ENTRY of
 * configs/hardware. Where FROM is not given it is what runs know. 0, or -EINVAL with error set.
 * Texts are of the pool. */
int forecast_swap_read(struct pool *pool, const struct parts *parts, const char *text,
                       struct forecast_swap *swap, char *error, size_t len);

/* Of a part that was swapped: the share of its limit that was measured is taken to hold. This is
 * how far it may be off, as a logarithm: an assumption. */
#define FORECAST_SWAPPED 0.15

/* Hosts of one kind differ by so much: the deviation of a logarithm. An assumption. */
#define FORECAST_JITTER 0.01

/* A host that computes slower than it should, and was not measured: how much slower, as a
 * logarithm, for each doubling of the nodes, since with more of them one is likelier. An
 * assumption. */
#define FORECAST_SLOW_HOST 0.07

/* Compute that is given is of the whole model on one rank. The products of ranks that share a layer
 * are smaller, and may take so much longer than their part, as a logarithm, for each halving. Experts
 * that are spread over ranks have fewer and larger products, which may take as much less. Both are
 * assumptions. */
#define FORECAST_DIVIDED 0.10

enum forecast_source {
    SOURCE_PRODUCT,
    SOURCE_DIVIDED, /* compute that is given, of ranks that share the model */
    SOURCE_STREAM,
    SOURCE_CALL,
    SOURCE_NETWORK,
    SOURCE_PARALLEL,
    SOURCE_OVERLAP,
    SOURCE_HOST,         /* what a step takes beside its operations */
    SOURCE_SLOWEST,      /* of so many ranks: upwards only */
    SOURCE_SLOW_HOST,    /* upwards only */
    SOURCE_SWAP_NETWORK, /* in the order of enum swap_part */
    SOURCE_SWAP_PRODUCTS,
    SOURCE_SWAP_MEMORY,
    SOURCES
};

enum forecast_bound { BOUND_COMPUTE, BOUND_NETWORK, BOUND_PARALLEL, BOUND_UPDATE, BOUNDS };

struct forecast_point {
    double nodes, ranks, dp;
    struct step_time time;
    enum forecast_bound bound; /* what the largest share of the step waits for */
    double low_s, high_s;      /* NaN: refused, or a part is not known */
    /* The step with each part at the ends of its interval: what offers are compared by. */
    double ends_s[SOURCES][2];
    enum forecast_source widest; /* which part makes the interval as wide as it is */
    enum law_refusal refused;
    enum bench_part_of refused_of; /* whose law refused */
    struct law_value law;          /* of the operation that lies farthest from what was measured */
    enum bench_part_of law_of;     /* which that is */
    double samples_s;              /* samples a second of the whole job; NaN */
    double host_s;                 /* beside the operations, in time.step_s */
    double crowding; /* how much longer messages take because other groups send, too; 1: no
                                    * other groups, or no longer; NaN: not known */
};

struct forecast {
    const struct parts *parts;
    struct step_job job; /* dp is set for each point */
    struct forecast_swap swap;
    double per_node;
    double
        memory_bytes; /* of a rank's device, as was said; 0: as runs or what is swapped in tell */
    bool core_known;  /* struct law's */
    bool compute_stated; /* compute is a wait, of which each rank has its exact part */
    struct forecast_point *points;
    size_t n;
};

/* Sets f->parts, and what follows from them. per_node: ranks of a node; 0: as sums were measured. */
void forecast_use(struct forecast *f, const struct parts *parts, double per_node);

/* A sample a rank in a step, of ranks that share nothing else, as the command has it by default. */
struct step_job forecast_job(const struct model *model, enum model_update update,
                             double element_bytes);

bool forecast_is_given(const struct forecast_point *p);
/* Samples a second if a step took so long: an end of the interval. */
double forecast_rate(const struct forecast_point *p, double step_s);

/* Fills in points[i] for nodes[i]. f->parts, job, swap and per_node are set. 0; -EINVAL: the job
 * makes no sense for the model. */
int forecast_make(struct forecast *f, const double *nodes, struct forecast_point *points, size_t n);

/* One point, with ranks in place of nodes. */
int forecast_point(const struct forecast *f, double ranks, struct forecast_point *p);

/* Bytes of a rank's device; NaN: not known. */
double forecast_memory(const struct forecast *f);

/* Why a measured step is not held against a forecast. */
enum check_left {
    CHECK_MADE,
    CHECK_WAY,     /* it went another way than the sums */
    CHECK_ORDER,   /* its stages take their passes in another order than a forecast has */
    CHECK_COMPUTE, /* its compute is not known */
    CHECK_UPDATE,  /* nor is how long its update took */
    CHECK_REFUSED, /* the point says why */
};

/* A measured step and its forecast, made as that of any other job. */
struct forecast_check {
    const struct part_step *step;
    enum check_left left;
    struct forecast_point point;
};

/* Of the measured steps of the model on two ranks or more, into checks, which have room for all of
 * f->parts->n_steps. Those that have a forecast come first, by ranks, the most first. Returns how many. */
size_t forecast_checks(const struct forecast *f, struct forecast_check *checks);

#define CHECK_NEAR 0.10 /* a forecast within this share of what was measured agrees with it */

/* Why there is no forecast for it, as the JSON has it. */
const char *forecast_check_name(enum check_left left);

/* Adds the answer, the table, what is missing and the assumptions. */
void forecast_show(struct pool *pool, struct document *d, const struct forecast *f, size_t answer);

/* Of its measured steps: a line of the answer, and a section with each of them. Nothing where there
 * are none. */
void forecast_answer_checks(struct pool *pool, struct document *d, const struct forecast *f);
void forecast_show_checks(struct pool *pool, struct document *d, const struct forecast *f);

/* What efficiency is against: the fewest nodes that have a forecast; NULL: none has. */
const struct forecast_point *forecast_base(const struct forecast *f);
/* Samples a second of a rank, as a share of those there; NaN: not known. */
double forecast_efficiency(const struct forecast *f, const struct forecast_point *p);

/* Samples a second over nodes; NULL: no point has a forecast. */
const struct plot *forecast_plot(struct pool *pool, const struct forecast *f);

/* Why a point has no forecast, and what to measure: a sentence. "" where it has one. */
const char *forecast_why(struct pool *pool, const struct forecast *f,
                         const struct forecast_point *p);

const char *forecast_bound_name(enum forecast_bound bound);  /* "network" */
const char *forecast_refusal_name(enum law_refusal refusal); /* "too far" */
/* Adds "ZeRO 1, 2 stages": what of a job is not the default. */
const char *forecast_ways(struct pool *pool, const char *ways, double zero, double tp, double pp,
                          double micro, double ep);
/* A member of JSON; nothing of what is not finite. */
void forecast_put(json_t *o, const char *name, double value);

/* 0 or -EIO. */
int forecast_print_json(FILE *out, const struct forecast *f, size_t answer);

/* FOLDER/report.html of the runs with a section of the document, and FOLDER/forecast/ with NAME.md
 * and the plot, where there is one. 0, or -errno as of report_make() with error set. */
struct forecast_files {
    const char *folder, *name, *title;
    const struct plot *plot; /* NULL: none */
    const char *const *runs;
    size_t n_runs;
};
int forecast_write(struct pool *pool, const struct document *d, const struct forecast_files *files,
                   char *error, size_t len);

/* plumb forecast. */
int forecast_command(int argc, char **argv);

#endif
